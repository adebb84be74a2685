"""Files that are damaged, or made by a stranger: refused with a sentence, in bounded time, and not read as others."""

import contextlib
import itertools
import logging
import os
import random
import shutil
import signal
import sqlite3
import struct
from pathlib import Path

import pytest
import torch

import nestbo as nb
from damage import change, raw
from nestbo.storage import log
from processes import exit_code, forked

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
GOLDEN = Path(__file__).parent / "golden"


def bowl(x):
    return float((x**2 * torch.arange(1, x.numel() + 1, dtype=x.dtype)).sum())


def seen(path):
    """All that can be read from a file."""
    with nb.Study.load(path) as study:
        trials = [(t.index, t.status, t.x.tolist(), t.told, repr(t.memory)) for t in study.history]
        return trials, study.times, study.settings, study.best and study.best.index


@contextlib.contextmanager
def limited(seconds=20):
    """Fail instead of going on for ever; SQLite, which is written in C, is not interrupted by Python's own alarm."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    yield
    signal.alarm(0)


def refused(path, words):
    """Whether looking at a file, and going on with it, is refused in time; judged in a process that can be ended."""

    def work():
        with limited():
            for act in (lambda study: study.history, lambda study: study.ask()):
                with pytest.raises(nb.StoreError, match=words), nb.Study.load(path) as study:
                    act(study)

    return exit_code(forked(work)) == 0


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """A study with values, a failure, pending trials, and what HD-GaBO remembers."""
    path = Path(shutil.copy(GOLDEN / "schema1-hdgabo.db", tmp_path_factory.mktemp("sample") / "s.db"))
    with nb.Study.load(path) as study:
        study.add([0.0, 1.0, 0.0, 0.0, 0.0], 3.0, noise=0.25)
    return path


def flip(path, bit):
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """A study of which much is in its log: that of a process that was killed."""
    folder = tmp_path_factory.mktemp("logged")
    with nb.Study(nb.Sphere(2), nb.RandomSearch(), store=folder / "live.db") as study:
        study.run(bowl, 10, progress=False)
        study.run(bowl, 6, progress=False)
        for end in ("", "-wal"):
            shutil.copy(folder / f"live.db{end}", folder / f"s.db{end}")
    return folder / "s.db"


class TestSingleBits:
    """One bit that has changed is noticed, or changes nothing. Full run: 2,000 bits of files, 1,000 of logs."""

    def test_of_a_file(self, sample, tmp_path, request):
        chance, path, noticed = random.Random(0), tmp_path / "s.db", 0
        before, size = seen(sample), 8 * sample.stat().st_size
        for _ in range(2000 if request.config.getoption("--full") else 60):
            shutil.copy(sample, path)
            flip(path, bit := chance.randrange(size))
            try:
                assert seen(path) == before, bit
            except nb.NestboError:
                noticed += 1
        assert noticed > 10

    def test_of_rows(self, sample, tmp_path, request):
        """The bits that say something: of the pages that hold rows."""
        data = sample.read_bytes()
        chance, path = random.Random(1), tmp_path / "s.db"
        before, places = seen(sample), [at for at, byte in enumerate(data) if byte]
        for _ in range(1000 if request.config.getoption("--full") else 40):
            shutil.copy(sample, path)
            flip(path, bit := 8 * chance.choice(places) + chance.randrange(8))
            with contextlib.suppress(nb.NestboError):
                assert seen(path) == before, bit

    def test_of_a_log(self, logged, tmp_path, request, caplog):
        chance, path, noticed = random.Random(2), tmp_path / "s.db", 0
        size = 8 * os.path.getsize(f"{logged}-wal")
        shutil.copy(logged, path)
        shutil.copy(f"{logged}-wal", f"{path}-wal")
        before = seen(path)
        assert (len(before[0]), caplog.messages) == (16, [])
        for _ in range(1000 if request.config.getoption("--full") else 40):
            for end in ("", "-wal"):
                shutil.copy(f"{logged}{end}", f"{path}{end}")
            flip(Path(f"{path}-wal"), bit := chance.randrange(size))
            caplog.clear()
            with contextlib.suppress(nb.NestboError):
                same, said = seen(path) == before, "What was told last may be lost" in caplog.text
                assert same or said, bit
                noticed += said
        assert noticed > 3

    def test_an_incomplete_last_frame_is_no_damage(self, logged, tmp_path, caplog):
        """That is what a kill leaves while the log grows."""
        whole = Path(f"{logged}-wal").read_bytes()
        size = 24 + 4096
        for length in (0, 31, 32, 33, 32 + 23, 32 + size - 1, 32 + size, 32 + 2 * size + 7):
            for end in ("", "-wal"):
                shutil.copy(f"{logged}{end}", tmp_path / f"s.db{end}")
            (tmp_path / "s.db-wal").write_bytes(whole[:length])
            seen(tmp_path / "s.db")
        assert caplog.messages == []

    def test_a_frame_that_is_being_written_is_no_damage(self, logged, tmp_path, monkeypatch):
        path = tmp_path / "w"
        data = Path(f"{logged}-wal").read_bytes()
        path.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
        assert "cannot be read" in log.damage(path)
        monkeypatch.setattr(log.time, "sleep", lambda _: path.write_bytes(data))
        assert log.damage(path) is None


def as_view(name):
    endless = "WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n) SELECT"
    columns = {
        "trials": "k AS number, 'told' AS status, x'' AS x, '{}' AS told, '{}' AS memory, NULL AS owner, "
        "NULL AS asked_at, NULL AS told_at, NULL AS version, 1 AS revision, x'' AS checksum",
        "settings": "k AS name, '' AS value, x'' AS checksum",
    }
    return [f"DROP TABLE {name}", f"CREATE VIEW {name} AS {endless} {columns[name]} FROM n"]


TRAPS = {
    "trials as a view": as_view("trials"),
    "settings as a view": as_view("settings"),
    "a trigger": [
        "CREATE TRIGGER falsify AFTER INSERT ON trials "
        "BEGIN UPDATE trials SET told = '{}' WHERE number = NEW.number; END"
    ],
    "another table": ["CREATE TABLE more (a)"],
    "another view": ["CREATE VIEW more AS SELECT 1"],
    "another index": ["CREATE INDEX more ON trials (abs(number))"],
    "a virtual table": ["CREATE VIRTUAL TABLE more USING rtree(a, b, c)"],
    "statistics": ["ANALYZE"],
    "a missing index": ["DROP INDEX states"],
    "another column": ["ALTER TABLE trials ADD COLUMN more"],
    "a generated column": ["ALTER TABLE trials ADD COLUMN more AS (number + 1)"],
    "tables that changed names": [
        *("ALTER TABLE trials RENAME TO t", "ALTER TABLE settings RENAME TO trials", "ALTER TABLE t RENAME TO settings")
    ],
}


class TestTraps:
    @pytest.mark.parametrize("trap", TRAPS)
    def test_a_file_has_the_tables_of_a_study_and_nothing_else(self, sample, trap, tmp_path):
        path = Path(shutil.copy(sample, tmp_path / "s.db"))
        with raw(path) as connection:
            for statement in TRAPS[trap]:
                try:
                    connection.execute(statement)
                except sqlite3.OperationalError as error:
                    pytest.skip(f"this SQLite has none: {error}")
        before = path.read_bytes()
        assert refused(path, "did not make|malformed|damaged")
        assert path.read_bytes() == before

    @pytest.mark.parametrize("trap", ["trials as a view", "settings as a view", "a trigger", "another table"])
    def test_of_schema_1_too(self, trap, tmp_path):
        path = Path(shutil.copy(GOLDEN / "schema1-hdgabo.db", tmp_path / "s.db"))
        with raw(path) as connection:
            for statement in TRAPS[trap]:
                connection.execute(statement.replace("told = '{}'", "value = 0"))
        assert refused(path, "did not make")

    def test_a_table_that_is_another_under_its_name(self, sample, tmp_path):
        """The text of the tables is as it should be; their pages are not."""
        path = Path(shutil.copy(sample, tmp_path / "s.db"))
        with raw(path) as connection:
            (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'settings'").fetchone()
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = 'trials'", (root,))
        assert refused(path, "damaged|malformed")

    @pytest.mark.parametrize("number", [-1, -(2**63)])
    def test_a_negative_number(self, sample, number, tmp_path):
        path = shutil.copy(sample, tmp_path / "s.db")
        change(path, "UPDATE trials SET number = ? WHERE number = 3", number)
        assert refused(path, "damaged")
        path = shutil.copy(GOLDEN / "schema1-gabo.db", tmp_path / "former.db")
        with raw(path) as connection:
            connection.execute("UPDATE trials SET number = ? WHERE number = 3", (number,))
        assert refused(path, "damaged in trial -")

    @pytest.mark.parametrize("column", ["number", "revision"])
    def test_the_largest_number(self, sample, column, tmp_path):
        path = shutil.copy(sample, tmp_path / "s.db")
        change(path, f"UPDATE trials SET {column} = ? WHERE number = 10", 2**63 - 1)
        with nb.Study.load(path) as study, pytest.raises(nb.StoreError, match="damaged"):
            study.ask()

    @pytest.mark.parametrize("table", ["sqlite_master", "trials", "settings"])
    def test_pages_that_lead_to_each_other(self, sample, table, tmp_path):
        """Ten floors of pages with two hundred doors each, all to one page below: no one gets to the end of it."""
        path = Path(shutil.copy(sample, tmp_path / "s.db"))
        with raw(path) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
            (root,) = connection.execute(query, (table,)).fetchone() or (1,)
        build_labyrinth(path, root)
        assert refused(path, "damaged|malformed|interrupted")


def build_labyrinth(path, root, floors=10, doors=200, size=4096):
    """Put interior pages between a root and what was there."""
    data = bytearray(path.read_bytes())
    last, start = len(data) // size, 100 if root == 1 else 0
    data += data[(root - 1) * size + start : root * size] + bytes(start)  # the former root, now the lowest page
    cells = struct.unpack(">H", data[last * size + 3 : last * size + 5])[0]
    for k in range(cells):  # its cells lie as many bytes further to the front
        at = last * size + 8 + 2 * k
        (place,) = struct.unpack(">H", data[at : at + 2])
        data[at : at + 2] = struct.pack(">H", place - start)
    pages = [root, *range(last + 2, last + 1 + floors), last + 1]
    for page, below in itertools.pairwise(pages):
        content = bytearray(size)
        first = 100 if page == 1 else 0
        content[first : first + 12] = struct.pack(">BHHHBI", 5, 0, doors, size - 6 * doors, 0, below)
        for k in range(doors):
            at = size - 6 * (k + 1)
            content[at : at + 6] = struct.pack(">IBB", below, 0x80 | (k >> 7), k & 0x7F)
            content[first + 12 + 2 * k : first + 14 + 2 * k] = struct.pack(">H", at)
        if page == 1:
            content[:100] = data[:100]
        data[(page - 1) * size : page * size] = content
    data[28:32] = struct.pack(">I", len(data) // size)
    path.write_bytes(data)


def test_what_is_read_of_a_file_is_bounded(sample):
    """What SQLite itself would do for ever is interrupted."""
    connection = nb.storage.opening.connect(sample, "ro")
    endless = "WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n) SELECT max(k) FROM n"
    with pytest.raises(sqlite3.OperationalError, match="interrupted"), nb.storage.opening._limited(connection, 1000):
        connection.execute(endless).fetchone()
    connection.close()


def test_the_log_says_what_is_lost(tmp_path, caplog):
    path = tmp_path / "s.db"
    with nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path) as study:
        study.run(bowl, 3, progress=False)
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", tmp_path / f"c.db{end}")
    data = bytearray((tmp_path / "c.db-wal").read_bytes())
    data[-1] ^= 1
    (tmp_path / "c.db-wal").write_bytes(data)
    with caplog.at_level(logging.WARNING, "nestbo"):
        seen(tmp_path / "c.db")
    assert "What was told last may be lost" in caplog.text
