"""One file that survives anything: kills, several processes, full disks, and files that are something else."""

import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch

import nestbo as nb
from damage import change
from processes import exit_code, forked, killed

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def bowl(x):
    return float((x**2 * torch.arange(1, x.numel() + 1, dtype=x.dtype).reshape(x.shape)).sum())


def straight(strategy, n):
    return nb.Study(nb.Sphere(2), strategy, seed=3).run(bowl, n, progress=False).history


def same(a, b):
    return torch.equal(a.points, b.points) and torch.equal(a.values, b.values)


@pytest.mark.parametrize("space", [nb.Sphere(2), nb.SPD(3), nb.Product(nb.Sphere(1), nb.SPD(2))], ids=repr)
def test_nothing_is_rounded(space, tmp_path):
    path = tmp_path / "s.db"
    study = nb.Study(space, nb.RandomSearch(), seed=1, store=path)
    values = [0.1 + 0.2, 5e-324, 1.7976931348623157e308, -0.0]
    trials = study.ask(4)
    for trial, value in zip(trials, values, strict=True):
        study.tell(trial, value)
    study.close()
    loaded = nb.Study.load(path)
    assert torch.equal(loaded.history.points, torch.stack([t.x for t in trials]))
    assert [t.value.hex() for t in loaded.history] == [v.hex() for v in values]
    assert loaded.space == space


def test_settings_come_back(tmp_path):
    path, strategy = tmp_path / "s.db", nb.GaBO(kernel="gaussian", initial=3)
    nb.Study(nb.SPD(2, eigenvalues=(0.1, 3.0)), strategy, seed=11, store=path, direction="maximize").close()
    loaded = nb.Study.load(path)
    assert (loaded.space, loaded.strategy) == (nb.SPD(2, eigenvalues=(0.1, 3.0)), strategy)
    assert (loaded.seed, loaded.direction) == (11, "maximize")


@pytest.mark.parametrize("strategy", [nb.RandomSearch(), nb.GaBO()], ids=repr)
def test_resuming_at_every_trial_equals_the_straight_run(strategy, tmp_path):
    path = tmp_path / "s.db"
    nb.Study(nb.Sphere(2), strategy, seed=3, store=path).close()
    for _ in range(10):
        with nb.Study.load(path) as study:
            study.run(bowl, 1, progress=False)
    assert same(nb.Study.load(path).history, straight(strategy, 10))


def test_a_study_is_not_continued_with_other_settings(tmp_path):
    path = tmp_path / "s.db"
    nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path).close()
    for other in ({"seed": 5}, {"direction": "maximize"}, {"strategy": nb.GaBO()}):
        with pytest.raises(nb.ArgumentError, match=r"Study\.load"):
            nb.Study(**{"space": nb.Sphere(2), "strategy": nb.RandomSearch(), "store": path, **other})
    nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path).close()


def killed_while_running(path, pause):
    """Fork a run, let it go on for a while, kill it; what it had been told, by its own word."""
    reader, writer = os.pipe()

    def work():
        study = nb.Study.load(path)
        while True:
            study.run(bowl, 1, progress=False)
            told = max(t.index for t in study.history if t.status == "told")
            os.write(writer, f"{told}\n".encode())

    pid = forked(work)
    killed(pid, pause)
    os.close(writer)
    with os.fdopen(reader) as lines:
        return [int(line) for line in lines]


@pytest.mark.parametrize(
    ("strategy", "kills", "longest"), [(nb.RandomSearch(), 24, 0.04), (nb.GaBO(), 5, 0.8)], ids=repr
)
def test_kills_lose_nothing(strategy, kills, longest, tmp_path, request):
    """Full run: 290 kills."""
    kills *= 10 if request.config.getoption("--full") else 1
    path, chance, told = tmp_path / "s.db", random.Random(0), set()
    nb.Study(nb.Sphere(2), strategy, seed=3, store=path).close()
    for _ in range(kills):
        told |= set(killed_while_running(path, chance.uniform(0, longest)))
        with sqlite3.connect(path) as raw:
            assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        raw.close()
        with nb.Study.load(path) as study:
            kept = {t.index: t for t in study.history}
            assert all(kept[k].status == "told" and kept[k].value == bowl(kept[k].x) for k in told)
    with nb.Study.load(path) as study:
        study.run(bowl, len(study.pending) + 3, progress=False)
        assert not study.pending
        assert [t.index for t in study.history] == list(range(len(study.history)))
        assert len(study.history) >= 3
        assert same(study.history, straight(strategy, len(study.history)))


def test_four_processes_share_one_file(tmp_path):
    path, each = tmp_path / "s.db", 25
    nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path).close()

    def work():
        with nb.Study.load(path) as study:
            for _ in range(each):
                trial = study.ask()
                study.tell(trial, bowl(trial.x))

    assert [exit_code(pid) for pid in [forked(work) for _ in range(4)]] == [0] * 4
    history = nb.Study.load(path).history
    assert [t.index for t in history] == list(range(4 * each))
    assert all(t.status == "told" and t.value == bowl(t.x) for t in history)
    assert len({tuple(t.x.tolist()) for t in history}) == 4 * each


def test_a_study_taken_through_a_fork_stays_durable(tmp_path):
    """Also when the parent closes it: the child's connection is its own."""
    path = tmp_path / "s.db"
    study = nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path)
    study.run(bowl, 1, progress=False)
    reader, writer = os.pipe()

    def work():
        os.read(reader, 1)
        study.run(bowl, 5, progress=False)
        study.close()

    pid = forked(work)
    study.close()
    os.write(writer, b"x")
    assert exit_code(pid) == 0
    assert [t.status for t in nb.Study.load(path).history] == ["told"] * 6


def test_one_orphan_is_taken_up_by_one_process(tmp_path):
    path = tmp_path / "s.db"
    nb.Study(nb.Sphere(2), nb.RandomSearch(), seed=3, store=path).close()

    def die():
        nb.Study.load(path).run(lambda x: os._exit(0), 1, progress=False)

    def work():
        nb.Study.load(path).run(bowl, 1, progress=False)

    os.waitpid(forked(die), 0)
    assert [exit_code(pid) for pid in [forked(work) for _ in range(4)]] == [0] * 4
    history = nb.Study.load(path).history
    assert [(t.index, t.status) for t in history] == [(k, "told") for k in range(4)]


def test_a_zombie_is_dead(tmp_path):
    path = tmp_path / "s.db"
    study = nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path)
    pid = forked(lambda: nb.Study.load(path).run(lambda x: os._exit(0), 1, progress=False))
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet reaped
    study.run(bowl, 1, progress=False)
    os.waitpid(pid, 0)
    assert [(t.index, t.status) for t in study.history] == [(0, "told")]


def test_a_trial_is_told_once_by_whoever_comes_first(tmp_path):
    path = tmp_path / "s.db"
    first = nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path)
    trial, second = first.ask(), nb.Study.load(path)
    assert [t.index for t in second.pending] == [0]
    second.tell(0, 1.0)
    with pytest.raises(nb.TrialError, match="told already"):
        first.tell(trial, 2.0)
    assert first.best.value == 1.0


def make_corrupt(path):
    nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path).run(bowl, 30, progress=False).close()
    data = bytearray(path.read_bytes())
    data[100:] = os.urandom(len(data) - 100)
    path.write_bytes(data)


def make_truncated(path):
    nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path).run(bowl, 200, progress=False).close()
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def make_foreign(path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE people (name TEXT)")
    other.close()


def make_future(path):
    nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path).close()
    with sqlite3.connect(path) as store:
        store.execute("PRAGMA user_version = 99")
    store.close()


def make_settings_unreadable(path):
    nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path).close()
    change(path, "UPDATE settings SET value = '\"klein-bottle:3\"' WHERE name = 'space'")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (make_corrupt, "damaged"),
        (make_truncated, "damaged"),
        (make_foreign, "another program's database"),
        (make_future, "schema version 99"),
        (make_settings_unreadable, "klein-bottle"),
        (lambda path: path.write_text("hello, world, this is no database"), "another kind of file"),
        (lambda path: path.mkdir(), "Cannot"),
        (lambda path: None, "no store"),
    ],
)
def test_other_files_get_one_sentence_and_stay_as_they_are(make, words, tmp_path):
    path = tmp_path / "s.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(nb.StoreError) as caught:
        nb.Study.load(path).history  # noqa: B018
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before


@pytest.fixture
def open_to_all():
    """A folder that every user may look into, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which takes root")
def test_a_read_only_store_says_so(open_to_all):
    path = open_to_all / "s.db"
    nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path).run(bowl, 2, progress=False).close()
    before = path.read_bytes()
    path.chmod(0o444)

    def work():
        os.setuid(65534)
        try:
            nb.Study.load(path).ask()
        except nb.StoreError as error:
            os._exit(0 if "writable" in str(error) else 3)

    assert exit_code(forked(work)) == 0
    assert path.read_bytes() == before


def test_a_full_disk_says_so_and_loses_nothing(tmp_path):
    """A limit on file sizes stands in for a full disk."""
    path = tmp_path / "s.db"
    nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path).run(bowl, 5, progress=False).close()

    def work():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
        study = nb.Study.load(path)
        try:
            study.run(bowl, 2000, progress=False)
        except nb.StoreError as error:
            os._exit(0 if "Cannot" in str(error) and "\n" not in str(error) else 3)

    assert exit_code(forked(work)) == 0
    with nb.Study.load(path) as study:
        told = [t for t in study.history if t.status == "told"]
        assert len(told) >= 5
        assert all(t.value == bowl(t.x) for t in told)
        study.run(bowl, 3, progress=False)


def test_loading_runs_no_code(tmp_path):
    """Settings and notes are JSON; a pickle in their place is only a damaged store."""
    path = tmp_path / "s.db"
    nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path).run(bowl, 1, progress=False).close()
    change(path, "UPDATE trials SET memory = ?", b"\x80\x04cos\nsystem\n(S'touch pwned'\ntR.")
    with pytest.raises(nb.StoreError, match="damaged"):
        nb.Study.load(path).history  # noqa: B018


def test_two_looks_at_one_file_do_not_lose_what_another_process_or_this_one_tells(tmp_path):
    """A second look at the file, come and gone, must not give up the locks of the first."""
    path = tmp_path / "s.db"
    study = nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path).run(bowl, 2, progress=False)
    nb.Study.load(path).close()
    text = f"import nestbo as nb\nwith nb.Study.load({str(path)!r}) as s: s.add([0.0, 0.0, 1.0], -5.0)"
    assert subprocess.run([sys.executable, "-c", text], timeout=120).returncode == 0
    assert study.best.value == -5.0
    study.add([0.0, 1.0, 0.0], -7.0)
    text = f"import nestbo as nb\nraise SystemExit(nb.Study.load({str(path)!r}).best.value != -7.0)"
    assert subprocess.run([sys.executable, "-c", text], timeout=120).returncode == 0
