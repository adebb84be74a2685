"""Files of studies and of results: nothing told is lost by copying, moving or writing, nor by a failed beginning."""

import contextlib
import ctypes
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import nestbo as nb
from damage import raw
from nestbo.cli import app
from nestbo.experiment import command
from nestbo.files import replaced, written
from nestbo.storage.opening import missing
from processes import exit_code, forked, killed

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def bowl(x):
    return float((x**2 * torch.arange(1, x.numel() + 1, dtype=x.dtype)).sum())


def fresh(path, **options):
    return nb.Study(nb.Sphere(2), nb.RandomSearch(), seed=3, store=path, **options)


def invoke(*arguments):
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, list(map(str, arguments)), prog_name="nestbo")


@pytest.fixture
def path(tmp_path):
    """A study of five trials."""
    with fresh(tmp_path / "s.db") as study:
        study.run(bowl, 5, progress=False)
    return tmp_path / "s.db"


def told(path):
    with nb.Study.load(path) as study:
        return [trial.value for trial in study.history]


WRITERS = [("export",), ("export", "--format", "jsonl"), ("report",), ("plot",)]


class TestResults:
    """What commands write takes the place of the target when it is complete, and never that of a study."""

    @pytest.mark.parametrize("writer", WRITERS, ids=" ".join)
    @pytest.mark.parametrize("target", ["itself", "link", "other", "log", "hard link", "orphaned"])
    def test_a_study_is_not_written_over(self, path, writer, target):
        before, other = told(path), path.with_name("o.png")
        with fresh(path.with_name("other.db")) as live:  # its log lies beside it
            live.run(bowl, 2, progress=False)
            targets = {
                "itself": path,
                "other": live._store.path,
                "log": Path(f"{live._store.path}-wal"),
                "orphaned": other,
            }
            if target == "link":
                other.symlink_to(path.name)
            elif target == "hard link":
                other.hardlink_to(path)
            elif target == "orphaned":
                Path(f"{other}-wal").write_bytes(b"a log")
            result = invoke(writer[0], path, *writer[1:], "-o", targets.get(target, other))
            assert (result.exit_code, result.stdout) == (2, "")
            assert "Write to another file" in result.stderr
            live.run(bowl, 1, progress=False)
        assert told(path) == before
        assert len(told(path.with_name("other.db"))) == 3
        assert not list(path.parent.glob("*.part"))

    @pytest.mark.parametrize("writer", WRITERS, ids=" ".join)
    def test_the_former_result_is_replaced_also_behind_a_link(self, path, writer):
        real, link = path.with_name("real.png"), path.with_name("link.png")
        real.write_bytes(b"former")
        real.chmod(0o640)
        link.symlink_to(real.name)
        assert invoke(writer[0], path, *writer[1:], "-o", link).exit_code == 0
        assert link.is_symlink()
        assert real.stat().st_size > 100
        assert real.stat().st_mode & 0o777 == 0o640
        assert sorted(os.listdir(path.parent)) == ["link.png", "real.png", "s.db"]

    def test_an_error_leaves_the_former_result(self, path, monkeypatch):
        from nestbo.cli import looking, reporting

        def broken(*_):
            raise ValueError("half way")

        monkeypatch.setattr(reporting, "_page", broken)
        monkeypatch.setitem(looking.FORMATS, "csv", lambda study, file: file.write("half") and broken())
        target = path.with_name("former")
        target.write_text("former")
        for writer in ("report", "export"):
            assert invoke(writer, path, "-o", target).exit_code == 1
            assert target.read_text() == "former"
        assert sorted(os.listdir(path.parent)) == ["former", "s.db"]

    def test_a_lone_surrogate_does_not_break_it(self, path):
        with nb.Study.load(path) as study:
            study.tell(study.ask(), failed="a \ud800")
        for writer in WRITERS[:3]:
            assert invoke(writer[0], path, *writer[1:], "-o", path.with_name("out")).exit_code == 0
            assert "\\ud800" in path.with_name("out").read_text(encoding="utf-8")

    def test_devices_and_folders(self, path):
        assert invoke("export", path, "-o", "/dev/null").exit_code == 0
        assert not Path("/dev/null").is_file()
        assert "Name a file in it" in invoke("export", path, "-o", path.parent).stderr
        assert "nowhere" in invoke("report", path, "-o", path.parent / "nowhere" / "a.html").stderr

    def test_a_picture_without_an_ending_gets_one(self, path):
        assert "picture.png" in invoke("plot", path, "-o", path.with_name("picture")).stderr
        assert path.with_name("picture.png").exists()

    def test_results_of_experiments_are_not_written_over_a_study(self, path, tmp_path, capsys):
        store, results = tmp_path / "s.zip", tmp_path / "results"
        shutil.copy(path, store)
        one = ["one", "ackley", "sphere:2", "randomsearch", "--trials", "1", "--budget", "6", "--out", str(results)]
        command.main(one)
        (file,) = results.iterdir()
        for arguments in (
            ["pack", str(results), "-o", str(store)],
            ["report", str(results), "-o", str(store)],
        ):
            with pytest.raises(SystemExit) as caught:
                command.main(arguments)
            assert caught.value.code == 2
            said = capsys.readouterr().err
            assert "is a study" in said or "has no marks" in said
        assert store.read_bytes() == path.read_bytes()
        shutil.copy(path, file)
        with pytest.raises((SystemExit, ValueError)):
            command.main(one)
        assert file.read_bytes() == path.read_bytes()

    def test_a_link_in_a_folder_is_replaced_and_not_followed(self, tmp_path):
        (tmp_path / "target").write_text("precious")
        (tmp_path / "link").symlink_to("target")
        with replaced(tmp_path / "link") as file:
            file.write(b"new")
        assert ((tmp_path / "target").read_text(), (tmp_path / "link").read_text()) == ("precious", "new")

    def test_two_writers_at_once_leave_one_whole_result(self, tmp_path):
        with written(tmp_path / "a") as first, written(tmp_path / "a") as second:
            first.write(b"first" * 10_000)
            second.write(b"second" * 10_000)
        assert (tmp_path / "a").read_bytes() == b"first" * 10_000
        assert os.listdir(tmp_path) == ["a"]


class TestCopies:
    def test_the_file_alone_has_almost_all_of_a_live_study(self, tmp_path):
        with fresh(tmp_path / "s.db") as study:
            for name, count in (("first.db", 0), ("second.db", 60)):
                study.run(bowl, count, progress=False)
                shutil.copy(tmp_path / "s.db", tmp_path / name)
                assert len(told(tmp_path / name)) >= count - 9

    def test_a_value_that_took_long_is_in_the_file_alone(self, tmp_path, monkeypatch):
        """Of slow evaluations, each is written to the file."""
        with fresh(tmp_path / "s.db") as study:
            monkeypatch.setattr(nb.storage.file, "_LONG", 0.0)
            study.tell(study.ask(), 2.5)
            shutil.copy(tmp_path / "s.db", tmp_path / "alone.db")
        assert told(tmp_path / "alone.db") == [2.5]

    def test_after_closing_the_file_alone_has_all_though_another_process_has_it_open(self, tmp_path):
        other = fresh(tmp_path / "s.db")
        with nb.Study.load(tmp_path / "s.db") as study:
            study.run(bowl, 3, progress=False)
        shutil.copy(tmp_path / "s.db", tmp_path / "alone.db")
        assert len(told(tmp_path / "alone.db")) == 3
        other.close()

    def test_a_study_that_was_killed_and_moved_is_not_begun_anew_over_its_log(self, tmp_path):
        path, away = tmp_path / "k.db", tmp_path / "away"
        fresh(path).close()

        def work():
            study = nb.Study.load(path)
            study.run(bowl, 12, progress=False)
            signal.pause()

        pid = forked(work)
        end = time.monotonic() + 30
        while len(told(path)) < 12:
            assert time.monotonic() < end
            time.sleep(0.01)
        killed(pid)
        away.mkdir()
        path.rename(away / "k.db")
        log = Path(f"{path}-wal")
        before = log.read_bytes()
        assert before
        for begin in (lambda: fresh(path), lambda: nb.minimize(bowl, nb.Sphere(2), budget=1, store=path)):
            with pytest.raises(nb.StoreError, match="Put the study back beside it"):
                begin()
        path.touch()
        with pytest.raises(nb.StoreError, match="Put the study back beside it"):
            fresh(path)
        path.unlink()
        assert "Put the study back" in invoke("new", path, "--space", "sphere:2").stderr
        assert log.read_bytes() == before
        (away / "k.db").rename(path)
        assert len([value for value in told(path) if value is not None]) == 12

    @pytest.mark.parametrize("live", [True, False])
    def test_a_copy_has_all(self, path, live, tmp_path):
        study = nb.Study.load(path)
        study.run(bowl, 4, progress=False)
        if not live:
            study.close()
        result = invoke("copy", path, tmp_path / "copy.db")
        assert (result.exit_code, result.stderr) == (0, f"Copied {path} to {tmp_path / 'copy.db'}, 9 trials.\n")
        assert told(tmp_path / "copy.db") == [trial.value for trial in study.history]
        with nb.Study.load(tmp_path / "copy.db") as copied:
            copied.run(bowl, 1, progress=False)
        assert len(study.history) == 9
        study.close()
        assert sorted(os.listdir(tmp_path)) == ["copy.db", "s.db"]

    def test_nothing_is_copied_over(self, path):
        before = path.read_bytes()
        there, link, orphan = (path.with_name(name) for name in ("there", "link", "orphan.db"))
        there.write_text("precious")
        link.symlink_to("nowhere")
        Path(f"{orphan}-wal").write_bytes(b"a log")
        for target in (path, there, link, orphan, path.parent, path.parent / "nowhere" / "a.db"):
            assert invoke("copy", path, target).exit_code in (1, 2)
        assert (path.read_bytes(), there.read_text(), link.is_symlink(), orphan.exists()) == (
            before,
            "precious",
            True,
            False,
        )
        assert not list(path.parent.glob("*.part*"))


class TestPlace:
    """What is told goes to the file at the path, or is refused."""

    def remove(self, path):
        path.unlink()

    def rename(self, path):
        path.rename(path.with_name("moved.db"))

    def replace(self, path):
        shutil.copy(path, path.with_name("copy.db"))
        os.replace(path.with_name("copy.db"), path)

    def restore(self, path):
        """From a copy, under the same name."""
        shutil.copy(path, path.with_name("copy.db"))
        path.unlink()
        path.with_name("copy.db").rename(path)

    def move_folder(self, path):
        path.parent.rename(path.parent.with_name("elsewhere"))

    def remove_log(self, path):
        Path(f"{path}-wal").unlink()

    @pytest.mark.parametrize("change", ["remove", "rename", "replace", "restore", "move_folder", "remove_log"])
    @pytest.mark.parametrize("act", ["tell", "ask", "add", "run"])
    def test_a_file_that_is_no_longer_there_is_not_written_to(self, tmp_path, change, act):
        (tmp_path / "folder").mkdir()
        path = tmp_path / "folder" / "s.db"
        study = fresh(path)
        trial = study.ask()
        getattr(self, change)(path)
        acts = {
            "tell": lambda: study.tell(trial, 1.0),
            "ask": study.ask,
            "add": lambda: study.add([0.0, 0.0, 1.0], 1.0),
            "run": lambda: study.run(bowl, 1, progress=False),
        }
        with pytest.raises(nb.StoreError, match="no longer the file that this study opened"):
            acts[act]()
        assert [t.status for t in study.history] == ["asked"]
        study.close()

    def test_who_puts_it_back_goes_on(self, path):
        with nb.Study.load(path) as study:
            self.rename(path)
            with pytest.raises(nb.StoreError):
                study.add([0.0, 0.0, 1.0], 1.0)
            path.with_name("moved.db").rename(path)
            study.add([0.0, 0.0, 1.0], 2.0)
        assert told(path)[5:] == [2.0]

    def test_another_current_folder_changes_nothing(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with fresh("s.db") as study:
            monkeypatch.chdir("/")
            study.run(bowl, 2, progress=False)
        assert len(told(tmp_path / "s.db")) == 2

    def test_in_a_fork_too(self, path):
        with nb.Study.load(path) as study:
            path.unlink()

            def work():
                with pytest.raises(nb.StoreError):
                    study.add([0.0, 0.0, 1.0], 1.0)

            assert exit_code(forked(work)) == 0
            assert not path.exists()


class TestBeginnings:
    def begin(self, path):
        fresh(path).close()

    def test_a_kill_while_a_study_is_begun(self, tmp_path, request):
        """Whatever it leaves, the path can be used: by the library and by the command. Full run: 400 kills."""
        chance, kinds = random.Random(0), set()
        longest = max(self.duration(tmp_path / f"t{k}.db") for k in range(3))
        for k in range(400 if request.config.getoption("--full") else 20):
            path = tmp_path / f"{k}.db"
            killed(forked(lambda path=path: self.begin(path)), chance.uniform(0, 1.2 * longest))
            kinds.add((path.exists(), path.exists() and path.stat().st_size > 0, Path(f"{path}-journal").exists()))
            if path.exists() and k % 2:
                with contextlib.suppress(nb.StoreError):  # holds no study yet
                    nb.Study.load(path).close()
            if k % 4 == 0:
                result = invoke("new", path, "--space", "sphere:2", "--strategy", "randomsearch", "--seed", "3")
                assert result.exit_code == 0 or "exists. nestbo resume" in result.stderr
            with fresh(path) as study:
                study.run(bowl, 1, progress=False)
            assert len(told(path)) == 1
        assert len(kinds) > 1 or not request.config.getoption("--full")

    def duration(self, path):
        began = time.monotonic()
        assert exit_code(forked(lambda: self.begin(path))) == 0
        return time.monotonic() - began

    def test_a_journal_that_waits_to_be_undone(self, path, tmp_path):
        """What a kill leaves in the worst case: SQLite wrote to the file, and was to undo that at the next opening."""
        for name, begun in (("a.db", False), ("b.db", True)):
            hot = tmp_path / name
            self.leave_journal(hot, begun)
            assert Path(f"{hot}-journal").stat().st_size > 0
            if begun:
                assert len(told(hot)) == 5
            else:
                with fresh(hot) as study:
                    assert len(study.history) == 0
            assert not Path(f"{hot}-journal").exists()

    def leave_journal(self, path, begun):
        """Copy file and journal of an unfinished transaction that has outgrown its memory."""
        source = path.with_name("source.db")
        with fresh(source) as study:
            study.run(bowl, 5, progress=False)
        connection = sqlite3.connect(source, isolation_level=None)
        connection.execute("PRAGMA journal_mode = DELETE")
        if not begun:
            for name in ("trials", "settings"):
                connection.execute(f"DROP TABLE {name}")
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE large (content)")
        connection.executemany("INSERT INTO large VALUES (?)", [(os.urandom(1000),) for _ in range(300)])
        for end in ("", "-journal"):
            shutil.copy(f"{source}{end}", f"{path}{end}")
        connection.execute("ROLLBACK")
        connection.close()
        source.unlink()

    @pytest.mark.parametrize("room", [0, 2000, 5000, 9000, 13000, 20000, 30000, 40000])
    def test_a_full_disk(self, tmp_path, room):
        """A limit on file sizes stands in for one; where there is room again, the path can be used."""
        path = tmp_path / "s.db"

        def work():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
            code = invoke("new", path, "--space", "sphere:2", "--strategy", "randomsearch").exit_code
            os._exit(10 + code)

        begun = exit_code(forked(work)) == 10
        assert begun == (room >= 40000)
        result = invoke("new", path, "--space", "sphere:2", "--strategy", "randomsearch")
        assert result.exit_code == (2 if begun else 0), result.stderr
        with nb.Study.load(path) as study:
            study.run(bowl, 1, progress=False)

    def test_new_takes_an_empty_file_and_no_other(self, path, tmp_path):
        (tmp_path / "empty.db").touch()
        (tmp_path / "text.db").write_text("precious")
        assert invoke("new", tmp_path / "empty.db", "--space", "sphere:2").exit_code == 0
        former = Path(shutil.copy(Path(__file__).parent / "golden" / "schema1-gabo.db", tmp_path / "former.db"))
        before = former.read_bytes()
        for name in ("s.db", "text.db", "former.db", "."):
            assert invoke("new", tmp_path / name, "--space", "sphere:2").exit_code == 2
        assert (tmp_path / "text.db").read_text() == "precious"
        assert former.read_bytes() == before

    @pytest.mark.parametrize("way", ["a file", "a link to itself"])
    def test_a_path_that_leads_nowhere(self, tmp_path, way):
        path = tmp_path / "x" / "s.db" if way == "a file" else tmp_path / "x"
        if way == "a file":
            (tmp_path / "x").touch()
        else:
            path.symlink_to(path.name)
        result = invoke("new", path, "--space", "sphere:2")
        assert result.exit_code == 1
        assert "Check that the folder exists and is writable" in result.stderr

    def test_a_device_is_no_store(self):
        with pytest.raises(nb.StoreError, match="is a device"):
            fresh("/dev/null")
        assert "is a device" in invoke("new", "/dev/null", "--space", "sphere:2").stderr

    def looked(self, path, monkeypatch, happens):
        """Whether a study may be made at a path, where something happens after each look at a file."""
        stat = Path.stat

        def then(self, **options):
            try:
                return stat(self, **options)
            finally:
                happens(self)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "stat", then)
            return missing(path)

    def test_another_process_begins_after_the_first_look(self, tmp_path, monkeypatch):
        path, log = tmp_path / "s.db", tmp_path / "s.db-wal"

        def begin(_):
            path.write_bytes(b"content")
            log.write_bytes(b"a log")

        assert not self.looked(path, monkeypatch, begin)

    def test_the_log_of_another_process_is_gone_after_a_look(self, tmp_path, monkeypatch):
        path, log = tmp_path / "s.db", tmp_path / "s.db-journal"
        path.touch()
        log.write_bytes(b"a transaction")
        assert self.looked(path, monkeypatch, lambda seen: seen == log and os.path.exists(log) and os.unlink(log))

    def test_many_begin_at_once(self, tmp_path):
        path = tmp_path / "s.db"

        def work():
            with fresh(path) as study:
                study.run(bowl, 2, progress=False)

        assert [exit_code(pid) for pid in [forked(work) for _ in range(5)]] == [0] * 5
        assert len(told(path)) == 10


NEW_MOUNTS = 0x20000  # Linux's CLONE_NEWNS


def mount_read_only(folder):
    """Make a folder one that nobody can write to, root included, as far as this process sees."""
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_MOUNTS):
        raise PermissionError
    for options in (["--make-rprivate", "/"], ["--bind", folder, folder], ["-o", "remount,ro,bind", folder]):
        subprocess.run(["mount", *options], check=True, capture_output=True)


def may_mount():
    with tempfile.TemporaryDirectory() as folder:
        return exit_code(forked(lambda: mount_read_only(folder))) == 0


@pytest.mark.skipif(not may_mount(), reason="mounts a folder read-only, which takes rights")
class TestReadOnly:
    """A medium that cannot be written is read, from Python and through every command that looks."""

    def looked(self, folder, page):
        """What one sees of the study there."""
        reader, writer = os.pipe()

        def work():
            mount_read_only(folder)
            path = folder / "m.db"
            for look in (
                "show",
                "show --json",
                "best",
                "best --json",
                "export",
                "export -f jsonl",
                f"report -o {page}",
            ):
                name, *options = look.split()
                assert invoke(name, path, *options).exit_code == 0
            with nb.Study.load(path) as study:
                os.write(writer, f"{len(study.history)} {study.best.value!r}\n".encode())
                with pytest.raises(nb.StoreError, match="writable"):
                    study.ask()

        before = sorted(os.listdir(folder))
        assert exit_code(forked(work)) == 0
        assert sorted(os.listdir(folder)) == before
        assert page.stat().st_size > 1000
        os.close(writer)
        with os.fdopen(reader) as said:
            return said.read().split()

    @pytest.mark.parametrize("ends", [[""], ["", "-wal"], ["", "-wal", "-shm"]], ids=["closed", "killed", "live"])
    def test_a_study(self, path, ends, tmp_path):
        (tmp_path / "medium").mkdir()
        study = nb.Study.load(path)
        study.run(bowl, 4, progress=False)
        if ends == [""]:
            study.close()
        for end in ends:
            shutil.copy(f"{path}{end}", tmp_path / "medium" / f"m.db{end}")
        assert self.looked(tmp_path / "medium", tmp_path / "page.html") == ["9", repr(study.best.value)]
        study.close()

    def test_a_study_of_an_older_schema(self, tmp_path):
        (tmp_path / "medium").mkdir()
        shutil.copy(Path(__file__).parent / "golden" / "schema1-hdgabo.db", tmp_path / "medium" / "m.db")
        assert self.looked(tmp_path / "medium", tmp_path / "page.html")[0] == "11"


def test_a_folder_without_the_right_to_write_is_read(path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert len(told(path)) == 5
    assert invoke("show", path).exit_code == 0
    result = invoke("ask", path)
    assert (result.exit_code, "writable" in result.stderr) == (1, True)
    monkeypatch.undo()
    with raw(path) as connection:
        assert connection.execute("PRAGMA quick_check").fetchone() == ("ok",)


def test_a_temporary_folder_is_not_needed_to_read(path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    monkeypatch.setattr(tempfile, "mkdtemp", lambda *_, **__: pytest.fail("wrote to a temporary folder"))
    assert len(told(path)) == 5
