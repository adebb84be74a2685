"""Suites: what they compare, how they run and go on, and the files that come out."""

import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import nestbo as nb
from nestbo import ArgumentError
from nestbo.cli import app
from nestbo.experiment import SUITES, Task, Trials, main
from nestbo.experiment.names import APPLICATIONS
from nestbo.experiment.results import Record, pack, records, unpack
from nestbo.experiment.rivals import ELSEWHERE, method
from nestbo.experiment.runner import run
from nestbo.experiment.threads import workers
from nestbo.experiment.trial_files import run as run_trials
from nestbo.gallery import CATALOGUE

PAPER = SUITES["paper"]
SPHERE, MATRICES = Task("ackley", "sphere:6", 2), Task("rosenbrock", "spd:4:eigenvalues=0.001,5", 2)
SMALL = replace(PAPER, tasks=(SPHERE, MATRICES))


def silent(line):
    pass


def values(folder):
    return {path.name: np.load(path)["y"] for path in sorted(folder.glob("*.npz"))}


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """The whole suite, small: every method on both families, random search on every problem."""
    out = tmp_path_factory.mktemp("smoke")
    cells = PAPER.cells(problems="ackley-sphere-50,rosenbrock-spd-10", seeds=range(2))
    cells += [cell for cell in PAPER.cells("random", seeds=range(2)) if cell not in cells]
    assert run(cells, 6, out, report=silent) == []
    return out


class TestSuites:
    def test_the_paper(self):
        assert len(PAPER.tasks) == 12
        assert {(task.space, task.latent_dim) for task in PAPER.tasks} == {
            ("sphere:50", 5),
            ("sphere:70", 5),
            ("spd:10:eigenvalues=0.001,5", 3),
            ("spd:12:eigenvalues=0.001,5", 3),
        }

    @pytest.mark.parametrize("name", SUITES)
    def test_methods_are_strategies_that_the_spaces_allow(self, name):
        for cell in SUITES[name].cells(seeds=[0]):
            if cell.trials.method != "oracle" and cell.trials.method.split(":")[0] not in ELSEWHERE:
                method(cell.trials.method).check(nb.space(cell.task.space))

    @pytest.mark.parametrize("name", SUITES)
    def test_files_have_names_of_their_own_and_one_content(self, name):
        """Also between suites, so that one folder holds them all."""
        everywhere = {c.name: c.trials for suite in SUITES.values() for c in suite.cells(seeds=range(2))}
        cells = SUITES[name].cells(seeds=range(2))
        assert len({cell.name for cell in cells}) == len(cells)
        assert all(everywhere[cell.name] == cell.trials for cell in cells)
        assert len({(cell.task, cell.trials.method) for cell in cells}) == len(cells)

    def test_cholesky_methods_are_for_matrices(self):
        spaces = {cell.task.matrices for cell in PAPER.cells("cholesky-bo,cholesky-sir", seeds=[0])}
        assert spaces == {True}

    def test_vectors_hold_the_latent_space(self):
        assert (Task("ackley", "sphere:50", 5).vectors, Task("ackley", "spd:10", 3).vectors) == (6, 6)

    def test_order_and_chunks(self):
        cells = PAPER.cells("oracle,random", "spd-10", seeds=range(3, 8), chunk=2)
        assert [cell.label for cell in cells] == ["oracle"] * 9 + ["random"] * 9
        assert [cell.trials.seeds for cell in cells[:3]] == [(3, 4), (5, 6), (7,)]
        assert cells[0].name == "rosenbrock-spd-10__oracle__3-4.npz"

    @pytest.mark.parametrize(
        ("options", "message"),
        [({"methods": "gaboo"}, "got 'gaboo'"), ({"problems": "akley"}, "got 'akley'"), ({"chunk": 0}, "chunk")],
    )
    def test_mistakes(self, options, message):
        with pytest.raises(ArgumentError, match=message):
            PAPER.cells(seeds=[0], **options)


class TestSmoke:
    def test_every_method_on_every_family_and_every_problem(self, smoke):
        found = [record.about for _, record in records(smoke)]
        assert {(a["problem"], a["space"]) for a in found} == {(t.problem, t.space) for t in PAPER.tasks}
        for family in ("sphere", "spd"):
            wanted = {c.label for c in PAPER.cells(seeds=[0]) if c.task.space.startswith(family)}
            assert {a["label"] for a in found if a["space"].startswith(family)} == wanted

    def test_files_say_where_they_come_from(self, smoke):
        for name, record in records(smoke):
            about = record.about
            assert record.regret.shape == (2, 6), name
            assert record.regret.min() >= 0
            assert len(record.seconds) == 6
            assert about["seeds"] == [0, 1]
            assert about["device"] == "cpu"
            assert {"nestbo", "torch", "python"} <= set(about)

    def test_methods_start_from_the_same_points(self, smoke):
        first = {a["label"]: r.regret[:, :5] for _, r in records(smoke) if (a := r.about)["space"] == "sphere:50"}
        for label in set(first) - {"oracle", "random"}:
            np.testing.assert_array_equal(first[label], first["gabo"])


class TestRunning:
    def test_in_processes_as_alone(self, tmp_path):
        """Chunks, two processes, and a second call for a larger budget."""
        cells = SMALL.cells("gabo", "sphere", seeds=range(3), chunk=2)
        lines = []
        for cell in cells[:1]:
            run_trials(cell.trials, 6, tmp_path / cell.name)
        assert run(cells, 7, tmp_path, jobs=2, report=lines.append) == []
        assert lines[0] == "2 of 2 cells to run, 3 steps"
        assert "3/3 steps" in lines[-2]
        assert lines[-1] == "done"
        for cell in cells:
            alone = run_trials(cell.trials, 7, tmp_path / "alone" / cell.name)
            np.testing.assert_array_equal(np.load(tmp_path / cell.name)["y"], alone.y)
        run(cells, 7, tmp_path, report=lines.append)
        assert "0 of 2 cells to run, 0 steps" in lines

    def test_problems_of_a_space_together(self, tmp_path):
        """One process for each space; what is there is gone on with, as far as it has come."""
        cells, lines = SMALL.cells("random", seeds=range(2)), []
        run_trials(cells[0].trials, 6, tmp_path / cells[0].name)
        assert run(cells, 7, tmp_path, together=True, report=lines.append) == []
        assert lines[-1] == "done"
        for cell in cells:
            alone = run_trials(cell.trials, 7, tmp_path / "alone" / cell.name)
            np.testing.assert_array_equal(np.load(tmp_path / cell.name)["y"], alone.y)

    def test_what_fails_is_told_and_the_others_go_on(self, tmp_path):
        cells = SMALL.cells("random", seeds=range(2))
        broken = replace(cells[0], label="broken", trials=Trials("ackley", "sphere:6", "gaboo", (0,), 2))
        (wrong,) = run([broken, *cells], 6, tmp_path, report=silent)
        assert "Did you mean 'gabo'?" in wrong
        assert len(values(tmp_path)) == 2

    def test_no_time_no_step(self, tmp_path):
        lines = []
        run(SMALL.cells("gabo", seeds=[0]), 8, tmp_path, limit=0.0, report=lines.append)
        assert lines[-1] == "6 steps left; the same command goes on"
        assert values(tmp_path) == {}

    def test_a_killed_run_goes_on(self, tmp_path):
        """Killed in the middle, with its processes; what is finished stays, the same command does the rest."""
        options = ["--methods", "random,gabo", "--problems", "ackley-sphere-50", "--trials", "1", "--budget", "7"]
        command = [sys.executable, "-m", "nestbo.experiment", "run", *options, "--out", str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 60
            while not values(tmp_path) and time.monotonic() < deadline:
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
        before = values(tmp_path)
        assert before
        main(command[3:])
        for cell in PAPER.cells("random,gabo", "ackley-sphere-50", seeds=[0]):
            straight = run_trials(cell.trials, 7, tmp_path / "straight" / cell.name)
            after = values(tmp_path)[cell.name]
            np.testing.assert_array_equal(after, straight.y)
            np.testing.assert_array_equal(before.get(cell.name, after), after)

    @pytest.mark.parametrize("former", [None, "7"])
    def test_processes_share_the_cores(self, former, monkeypatch):
        """A worker begins with the number of threads that was asked for; afterwards all is as it was."""
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        if former is not None:
            monkeypatch.setenv("OMP_NUM_THREADS", former)
        spawn = multiprocessing.get_context("spawn")
        with workers(3), ProcessPoolExecutor(1, spawn) as pool:
            assert pool.submit(os.getenv, "OMP_NUM_THREADS").result() == "3"
        assert os.getenv("OMP_NUM_THREADS") == former

    def test_a_run_says_how_many_threads_its_processes_have(self, tmp_path, monkeypatch):
        given = []
        monkeypatch.setattr("nestbo.experiment.runner.workers", lambda count: given.append(count) or workers(count))
        run(SMALL.cells("random", seeds=[0]), 6, tmp_path, threads=2, limit=0.0, report=silent)
        assert given == [2]

    def test_a_gpu_that_is_not_there(self, tmp_path, monkeypatch):
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
        with pytest.raises(ArgumentError, match="finds no GPU"):
            run(SMALL.cells("random", seeds=[0]), 6, tmp_path, device="cuda")


class TestPacking:
    def test_an_archive_says_what_the_files_say(self, smoke, tmp_path):
        assert pack(smoke, tmp_path / "all.zip") == len(list(smoke.glob("*.npz")))
        packed = dict(records(tmp_path / "all.zip"))
        for name, record in records(smoke):
            assert packed[name].about == record.about
            np.testing.assert_allclose(packed[name].regret, record.regret, rtol=1e-6)
            np.testing.assert_array_equal(packed[name].arms, record.arms)
            np.testing.assert_allclose(packed[name].seconds, record.seconds, rtol=1e-6)

    def test_it_is_small(self, smoke, tmp_path):
        pack(smoke, tmp_path / "all.zip")
        raw = sum(path.stat().st_size for path in smoke.glob("*.npz"))
        assert (tmp_path / "all.zip").stat().st_size < raw / 5
        assert not list(tmp_path.glob("*.part"))

    def test_unpacking_keeps_longer_runs(self, tmp_path):
        cells, out = SMALL.cells("random", "sphere", seeds=range(2)), tmp_path / "kept"
        for budget in (6, 9):
            run_trials(cells[0].trials, budget, tmp_path / "raw" / cells[0].name)
            pack(tmp_path / "raw", tmp_path / f"{budget}.zip")
        assert unpack(tmp_path / "9.zip", out) == 1
        assert unpack(tmp_path / "6.zip", out) == 0
        assert Record.read(out / cells[0].name).regret.shape == (2, 9)

    def test_packed_runs_cannot_go_on(self, tmp_path):
        cells = SMALL.cells("random", "sphere", seeds=range(2))
        run_trials(cells[0].trials, 6, tmp_path / "raw" / cells[0].name)
        unpack(tmp_path / "raw", tmp_path / "packed")
        with pytest.raises(ArgumentError, match="Packed files cannot be resumed"):
            run_trials(cells[0].trials, 8, tmp_path / "packed" / cells[0].name)

    def test_names_in_an_archive_lead_nowhere_else(self, smoke, tmp_path):
        path = next(smoke.glob("*.npz"))
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.write(path, "../../" + path.name)
        unpack(tmp_path / "a.zip", tmp_path / "inside")
        assert [p.name for p in (tmp_path / "inside").iterdir()] == [path.name]

    @pytest.mark.parametrize("name", ["nothing", "f.txt", "f.zip"])
    def test_what_holds_no_results(self, name, tmp_path):
        (tmp_path / "f.txt").write_text("words")
        (tmp_path / "f.zip").write_text("words")
        with pytest.raises(ArgumentError, match="got .*" + name):
            list(records(tmp_path / name))


class TestCommand:
    def test_list(self, capsys):
        main(["list"])
        assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [*SUITES, APPLICATIONS]

    @pytest.mark.parametrize("name", ["paper", "ablation", "held-out-metric"])
    def test_list_of_a_suite(self, name, capsys):
        main(["list", name])
        said = capsys.readouterr().out
        assert all(label in said for label in SUITES[name].methods)
        assert all(task.key in said for task in SUITES[name].tasks)

    def test_list_of_the_gallery(self, capsys):
        main(["list", APPLICATIONS])
        said = capsys.readouterr().out
        assert all(name in said for name in (*CATALOGUE, "nestbo", "cma"))

    def test_bench_is_the_same_command(self):
        result = CliRunner().invoke(app, ["bench", "list"], prog_name="nestbo")
        assert result.exit_code == 0
        assert "held-out-metric" in result.stdout

    def test_mistakes_are_told_as_such(self, tmp_path, capsys):
        for arguments in (["--methods", "x"], ["--jobs", "0"], ["--suite", "papre"]):
            with pytest.raises(SystemExit) as stop:
                main(["run", *arguments, "--out", str(tmp_path)])
            assert stop.value.code == 2
        assert "Methods of this suite are" in capsys.readouterr().err

    def test_pack_and_unpack(self, smoke, tmp_path, capsys):
        main(["pack", str(smoke), "-o", str(tmp_path / "a.zip")])
        main(["unpack", str(tmp_path / "a.zip"), "-o", str(tmp_path / "b")])
        count = len(list(smoke.glob("*.npz")))
        assert [line.split(" ")[0] for line in capsys.readouterr().out.splitlines()] == [str(count)] * 2


def damaged(kind, sound):
    """A file of results that is none, in one of many ways."""
    words = {"empty": b"", "text": b"words", "array": b"\x93NUMPY\x01\x00", "cut": sound[: len(sound) // 2]}
    if kind in words:
        return words[kind]
    made = io.BytesIO()
    if kind == "pickle":
        np.save(made, np.array([{}], dtype=object), allow_pickle=True)
    elif kind == "pickle inside":
        np.savez(made, about="{}", seconds=np.array([{}], dtype=object))
    elif kind == "zip":
        zipfile.ZipFile(made, "w").close()
    elif kind == "other arrays":
        np.savez(made, x=np.zeros(3))
    elif kind == "no mapping":
        np.savez(made, about="[]", seconds=np.zeros(3), regret=np.zeros((1, 3)), arms=np.zeros((1, 3)))
    elif kind == "nothing said":
        np.savez(made, about="{}", seconds=np.zeros(3), regret=np.zeros((1, 3)), arms=np.zeros((1, 3)))
    else:
        data = dict(np.load(io.BytesIO(sound)))
        about = json.loads(str(data["about"]))
        about |= {"another space": {"space": "sphere:../../x"}, "another label": {"label": 3}}.get(kind, {})
        other = {"regret": np.zeros((1, 99))} if kind == "other shapes" else {}
        np.savez(made, **data | {"about": json.dumps(about)} | other)
    return made.getvalue()


KINDS = ["empty", "text", "array", "cut", "pickle", "pickle inside", "zip", "other arrays", "no mapping"]


class TestFilesFromAnywhere:
    """What is no file of results is told as such, and what others wrote is not written through."""

    @pytest.fixture
    def sound(self, smoke, tmp_path):
        pack(smoke, tmp_path / "sound.zip")
        with zipfile.ZipFile(tmp_path / "sound.zip") as archive:
            return archive.read(archive.namelist()[0])

    @pytest.mark.parametrize("kind", [*KINDS, "nothing said", "other shapes", "another space", "another label"])
    def test_garbage(self, kind, sound, tmp_path, capsys):
        folder = tmp_path / "folder"
        folder.mkdir()
        (folder / "a.npz").write_bytes(damaged(kind, sound))
        with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
            archive.writestr("a.npz", damaged(kind, sound))
        for place in (folder, tmp_path / "b.zip"):
            for command in (["table", str(place)], ["unpack", str(place), "-o", str(tmp_path / "out")]):
                with pytest.raises(SystemExit) as stop:
                    main(command)
                said = capsys.readouterr().err
                assert stop.value.code == 2
                assert "a.npz" in said
                assert "that nestbo wrote, or is damaged" in said.replace("\n", " ")
                assert not any(word in said for word in ("allow_pickle", "Cannot load", "Traceback"))

    @pytest.mark.parametrize("kind", KINDS)
    def test_garbage_where_a_run_would_go_on(self, kind, sound, tmp_path, capsys):
        trials = SMALL.cells("random", "sphere", seeds=[0])[0].trials
        path = tmp_path / trials.name
        path.write_bytes(damaged(kind, sound))
        with pytest.raises(ArgumentError, match="no trials that nestbo wrote, or is damaged"):
            run_trials(trials, 6, path)
        assert path.read_bytes() == damaged(kind, sound)

    def test_a_damaged_archive(self, smoke, tmp_path, capsys):
        pack(smoke, tmp_path / "a.zip")
        sound = bytearray((tmp_path / "a.zip").read_bytes())
        sound[200:400] = bytes(200)
        (tmp_path / "a.zip").write_bytes(sound)
        with pytest.raises(ArgumentError, match="or is damaged"):
            unpack(tmp_path / "a.zip", tmp_path / "out")

    @pytest.mark.parametrize("suffix", ["", ".part"])
    def test_unpacking_writes_through_no_link(self, suffix, smoke, tmp_path):
        pack(smoke, tmp_path / "a.zip")
        names = [name for name, _ in records(tmp_path / "a.zip")]
        out, precious = tmp_path / "out", tmp_path / "precious"
        out.mkdir()
        for name in names:
            (out / f"{name}{suffix}").symlink_to(precious)
            (out / Path(name).with_suffix(".part")).symlink_to(precious)
        precious.write_text("mine") if suffix else None
        unpack(tmp_path / "a.zip", out)
        assert [path.name for path in sorted(out.glob("*.npz"))] == sorted(names)
        assert not any((out / name).is_symlink() for name in names)
        assert precious.read_text() == "mine" if suffix else not precious.exists()

    def test_packing_writes_through_no_link(self, smoke, tmp_path):
        precious = tmp_path / "precious"
        precious.write_text("mine")
        for name in ("a.part", "a.npz.part", "a.zip.part"):
            (tmp_path / name).symlink_to(precious)
        pack(smoke, tmp_path / "a.zip")
        assert precious.read_text() == "mine"
        assert len(list(records(tmp_path / "a.zip"))) == len(list(smoke.glob("*.npz")))

    @pytest.mark.parametrize("option", ["--first", "--trials", "--budget", "--jobs", "--threads", "--chunk"])
    @pytest.mark.parametrize("given", ["-1", "1.5", "many", "9" * 5000])
    def test_numbers_that_are_none(self, option, given, tmp_path, capsys):
        with pytest.raises(SystemExit) as stop:
            main(["run", option, given, "--out", str(tmp_path)])
        assert stop.value.code == 2
        assert "wanted a whole number of at least" in capsys.readouterr().err
