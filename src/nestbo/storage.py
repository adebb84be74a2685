"""A study as one SQLite file: durable when ``tell`` returns, shared by processes of one machine, safe to kill.

The file holds the settings as text (no pickle: loading a stranger's file runs no code) and a row per trial. Points are
eight-byte floats, so that nothing is rounded. An index is reserved before its point is computed; a reservation whose
process has died is taken up again by the next one, with the same random numbers.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
import threading
import time
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nestbo.errors import NestboError, StoreError, TrialError
from nestbo.history import Status, Trial

APPLICATION = 0x6E657374  # "nest", in the header of the file
SCHEMA = 1
_NOBODY = "nobody"  # the owner of a trial whose run was interrupted
_BUSY = 60.0  # seconds to wait for another process's transaction

_TABLES = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE trials (
    number INTEGER PRIMARY KEY,
    status TEXT NOT NULL CHECK (status IN ('reserved', 'asked', 'told', 'failed')),
    x BLOB,
    value, -- a number without declared type: a REAL column would lose the sign of zero
    notes TEXT NOT NULL DEFAULT '{}',
    owner TEXT,
    asked REAL,
    told REAL
);
"""


class Store:
    """The file of one study, or the same in memory. Every method is one transaction."""

    def __init__(self, path: str | os.PathLike[str] | None, shape: tuple[int, ...] = ()) -> None:
        self.path = None if path is None else Path(path)
        self.shape = shape
        with self._explained("open"):
            if self.path is not None and self.path.exists() and self.path.stat().st_size:
                _check_kind(self.path)
        self._open()

    def _open(self) -> None:
        self._lock, self._process = threading.RLock(), os.getpid()
        self._own = self._connect()

    @property
    def _connection(self) -> sqlite3.Connection:
        """The connection of the present process: one that came through a fork has lost its locks, and stays unused."""
        if self.path is not None and self._process != os.getpid():
            self._inherited = self._own
            self._open()
        return self._own

    def _connect(self) -> sqlite3.Connection:
        with self._explained("open"):
            connection = sqlite3.connect(
                self.path or ":memory:", timeout=_BUSY, isolation_level=None, check_same_thread=False
            )
            if self.path is not None:
                connection.execute("PRAGMA journal_mode = WAL")
            return connection

    def close(self) -> None:
        """Let go of the file."""
        if self._process == os.getpid():
            with self._lock:  # another thread may be writing
                self._own.close()

    def copy(self) -> Store:
        """The same as it is now, in memory."""
        other = Store(None, self.shape)
        with self._reading() as connection:
            connection.backup(other._own)
        return other

    @contextlib.contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        try:
            yield
        except NestboError:
            raise
        except (sqlite3.Error, OSError, ValueError) as error:
            raise StoreError(f"Cannot {doing} the store {self.path}: {error}. {_remedy(str(error))}") from error

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection  # first: a fork has a lock of its own
        with self._lock, self._explained("read"):
            yield connection

    @contextlib.contextmanager
    def _transaction(self, doing: str, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Committed at the end; if it is not durable, a power cut, unlike a kill, may undo it."""
        connection = self._connection
        with self._lock, self._explained(doing):
            try:
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def create(self, settings: dict[str, Any]) -> None:
        """Write the settings of a new study, unless another process just did."""
        with self._transaction("create") as connection:
            if not self.empty:
                return
            for statement in filter(str.strip, _TABLES.split(";")):
                connection.execute(statement)
            rows = [(name, json.dumps(value)) for name, value in settings.items()]
            connection.executemany("INSERT INTO settings VALUES (?, ?)", rows)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {SCHEMA}")

    @property
    def empty(self) -> bool:
        """Whether there is no study here yet."""
        with self._reading() as connection:
            return connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0

    def settings(self) -> dict[str, Any]:
        """The settings as they were created."""
        with self._reading() as connection:
            rows = connection.execute("SELECT name, value FROM settings").fetchall()
        try:
            return {name: json.loads(value) for name, value in rows}
        except _UNREADABLE as error:
            raise StoreError(f"The settings in {self.path} are damaged: {error}. Restore a copy.") from error

    def set(self, name: str, value: Any) -> None:
        """Change one setting."""
        with self._transaction("write to") as connection:
            connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, json.dumps(value)))

    def reserve(self, count: int) -> list[int]:
        """Indices for points about to be computed; those of dead processes first."""
        with self._transaction("write to", durable=False) as connection:
            held = connection.execute("SELECT number, owner FROM trials WHERE status = 'reserved' ORDER BY number")
            numbers = [number for number, owner in held.fetchall() if not _alive(owner)][:count]
            following = self._following(connection)
            numbers += range(following, following + count - len(numbers))
            rows = [(number, _owner()) for number in numbers]
            connection.executemany(
                "INSERT OR REPLACE INTO trials (number, status, owner) VALUES (?, 'reserved', ?)", rows
            )
        return numbers

    def _following(self, connection: sqlite3.Connection) -> int:
        """The first index that was never used."""
        number = connection.execute("SELECT coalesce(max(number), -1) + 1 FROM trials").fetchone()[0]
        if not isinstance(number, int):  # beyond what SQLite counts
            raise StoreError(f"The store {self.path} is damaged: its last trial is {number:.0f}. Restore a copy.")
        return number

    def release(self, numbers: list[int]) -> None:
        """Give up reservations whose points were not computed."""
        with self._transaction("write to", durable=False) as connection:
            rows = [(number,) for number in numbers]
            connection.executemany("UPDATE trials SET owner = NULL WHERE number = ? AND status = 'reserved'", rows)

    def ask(self, trials: list[Trial], running: bool, known: int) -> bool:
        """Record the points of indices reserved here, unless there are more points than those known: then say False.

        ``running`` says that this process is about to evaluate them: undone by a power cut, they are asked again.
        """
        owner, now = _owner(), time.time()
        with self._transaction("write to", durable=not running) as connection:
            if connection.execute("SELECT count(*) FROM trials WHERE x NOTNULL").fetchone()[0] > known:
                return False
            for t in trials:
                row = (_pack(t.x), json.dumps(t.notes), owner if running else None, now, t.index, owner)
                done = connection.execute(
                    "UPDATE trials SET status = 'asked', x = ?, notes = ?, owner = ?, asked = ? "
                    "WHERE number = ? AND status = 'reserved' AND owner = ?",
                    row,
                )
                if done.rowcount != 1:
                    raise StoreError(f"Trial {t.index} of {self.path} was taken by another process. Ask again.")
        return True

    def abandon(self, index: int) -> None:
        """Leave a trial that this process was evaluating to the next run."""
        with self._transaction("write to", durable=False) as connection:
            connection.execute("UPDATE trials SET owner = ? WHERE number = ? AND status = 'asked'", (_NOBODY, index))

    def take_orphan(self) -> int | None:
        """The first trial whose evaluating process died, now to be evaluated by this one; None if there is none."""
        with self._transaction("write to", durable=False) as connection:
            rows = connection.execute(
                "SELECT number, owner FROM trials WHERE status = 'asked' AND owner NOTNULL ORDER BY number"
            )
            number = next((number for number, owner in rows.fetchall() if not _alive(owner)), None)
            connection.execute("UPDATE trials SET owner = ? WHERE number = ?", (_owner(), number))
        return number

    def note(self, trial: Trial) -> None:
        """Record the notes of a trial that waits for a value."""
        with self._transaction("write to", durable=False) as connection:
            row = (json.dumps(trial.notes), trial.index)
            connection.execute("UPDATE trials SET notes = ? WHERE number = ? AND status = 'asked'", row)

    def tell(self, trial: Trial) -> None:
        """Record the outcome of an asked trial; refuse to overwrite one."""
        with self._transaction("write to") as connection:
            row = (trial.status, trial.value, json.dumps(trial.notes), time.time(), trial.index)
            done = connection.execute(
                "UPDATE trials SET status = ?, value = ?, notes = ?, told = ? WHERE number = ? AND status = 'asked'",
                row,
            )
            if done.rowcount != 1:
                raise TrialError(f"Trial {trial.index} was told already. Use add(x, value) for another observation.")

    def add(self, x: Tensor, value: float, notes: dict[str, Any]) -> int:
        """Record an observation made elsewhere; its index."""
        now = time.time()
        with self._transaction("write to") as connection:
            number = self._following(connection)
            row = (number, _pack(x), value, json.dumps(notes), now, now)
            connection.execute(
                "INSERT INTO trials (number, status, x, value, notes, asked, told) VALUES (?, 'told', ?, ?, ?, ?, ?)",
                row,
            )
        return number

    def trials(self, first: int = 0, known: Container[int] = ()) -> list[Trial]:
        """The trials that have a point, from index ``first`` on and not known, in the order of their indices."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT number, x, value, status, notes FROM trials WHERE number >= ? AND x NOTNULL ORDER BY number",
                (first,),
            ).fetchall()
        return [self._trial(*row) for row in rows if row[0] not in known]

    def _trial(self, number: int, x: bytes, value: float | None, status: Status, notes: str) -> Trial:
        try:
            point = np.frombuffer(x, dtype="<f8").astype(np.float64).reshape(self.shape)
            trial = Trial(number, torch.from_numpy(point), value, status, json.loads(notes))
            _check_trial(trial, point)
            return trial
        except _UNREADABLE as error:
            raise StoreError(f"The store {self.path} is damaged in trial {number}: {error}. Restore a copy.") from error

    def times(self) -> dict[int, tuple[float | None, float | None]]:
        """When each trial was asked and told, in seconds since 1970."""
        with self._reading() as connection:
            rows = connection.execute("SELECT number, asked, told FROM trials").fetchall()
        return {number: (asked, told) for number, asked, told in rows}


def _check_trial(trial: Trial, point: np.ndarray[Any, Any]) -> None:
    """Refuse what nestbo cannot have written."""
    finite = isinstance(trial.value, int | float) and math.isfinite(trial.value)
    if not (finite if trial.status == "told" else trial.status in ("asked", "failed") and trial.value is None):
        raise ValueError(f"it is {trial.status!r} with the value {trial.value!r}"[:200])
    if not np.isfinite(point).all():
        raise ValueError("its point is not finite")
    if not isinstance(trial.notes, dict) or not _sound(**trial.notes):
        raise ValueError(f"its notes are {str(trial.notes)[:80]}")
    constraints = trial.notes.get("constraints", [])
    numbers = constraints if isinstance(constraints, list) else [None]
    for number in (*numbers, trial.notes.get("noise", 1.0), trial.notes.get("violation", 0.0)):
        if isinstance(number, bool) or not isinstance(number, int | float) or math.isnan(number):
            raise ValueError(f"its notes have {str(number)[:80]} in place of a number")


def _sound(
    lost: Any = (), constraints: Any = (), noise: Any = 1.0, violation: Any = 1.0, failed: Any = "", **_: Any
) -> bool:
    """Whether notes that are not a strategy's own are of their kinds."""
    lists = isinstance(lost, list | tuple) and isinstance(constraints, list | tuple)
    return (
        lists and isinstance(failed, str) and all(isinstance(y, int | float) for y in (*constraints, noise, violation))
    )


def _pack(x: Tensor) -> bytes:
    return x.detach().cpu().numpy().astype("<f8").tobytes()


def _check_kind(path: Path) -> None:
    """Refuse what is not a study of this schema, without touching it."""
    # Through SQLite alone: whoever opens and closes the file otherwise, gives up this process's locks on it, and then
    # another process may remove the log into which this one still writes.
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        try:
            connection.execute("BEGIN")  # one snapshot
            application, version, tables = (connection.execute(query).fetchone()[0] for query in _KIND)
        except sqlite3.DatabaseError as error:
            if "not a database" not in str(error):
                raise
            raise StoreError(
                f"Wanted a nestbo store, got another kind of file: {path}. Choose another path."
            ) from error
    if application != APPLICATION and tables:
        raise StoreError(f"Wanted a nestbo store, got another program's database: {path}. Choose another path.")
    if application == APPLICATION and version != SCHEMA:
        raise StoreError(
            f"The store {path} has schema version {version}, this nestbo reads {SCHEMA}. Use the nestbo that wrote it."
        )


_UNREADABLE = (ValueError, TypeError, RecursionError, OverflowError)
_KIND = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")


def _remedy(message: str) -> str:
    for words, remedy in _REMEDIES.items():
        if words in message:
            return remedy
    return "The file is as it was."


_REMEDIES = {
    "full": "Free some space and go on; nothing told is lost.",
    "readonly": "Make the file and its folder writable.",
    "unable to open": "Check that the folder exists and is writable.",
    "malformed": "The file is damaged; restore a copy of it.",
    "not a database": "The file is damaged or not a store; restore a copy of it.",
    "locked": "Another process has held it for a minute; try again.",
    "no such table": "The file is a database, but not a study; choose another path.",
}


def _owner() -> str:
    """The present process, told apart from a later one that got the same number."""
    return f"{os.getpid()}:{_started(os.getpid())}"


def _alive(owner: str | None) -> bool:
    """Whether a process still runs; a zombie does not."""
    number, _, started = str(owner or _NOBODY).partition(":")
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        return True
    return started == _started(int(number))


def _started(pid: int) -> str:
    """When a process started, where the system tells (Linux); else nothing. A zombie has no start."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return "zombie" if state == "Z" else fields[18]
    except (OSError, IndexError, ValueError):
        return ""
