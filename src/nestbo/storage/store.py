"""The file of one study, or the same in memory: every method is one transaction.

The file holds the settings as text (no pickle: loading a stranger's file runs no code) and a row per trial. An index is
reserved before its point is computed; a reservation whose call has ended is taken up again by the next one, with the
same random numbers. Every row has a checksum, which is checked whenever the row is read. A write gives a row the next
revision, so that a reader asks for what has changed.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
import uuid
from pathlib import Path
from typing import Any
from weakref import WeakSet

from torch import Tensor

from nestbo.errors import StoreError, TrialError
from nestbo.history import Told, Trial
from nestbo.storage.opening import BESIDE, connect, explained, identity, in_memory, inspected, logs, missing, writable
from nestbo.storage.owners import NOBODY, alive, owner
from nestbo.storage.rows import COLUMNS, UNREADABLE, Row, checked, checksum, pack, trial_of, version, write_told
from nestbo.storage.schema import check, make, migrate, put_row, put_setting

_CONTENT = "SELECT 1 FROM sqlite_master LIMIT 1"
_MAGIC = b"SQLite format 3\0"  # at the beginning of every database
_MANY, _LONG = 10, 1.0  # tells and seconds after which the log is written to the file, which takes as long as two tells
_STORES: WeakSet[Store] = WeakSet()  # those of this process
Times = tuple[float | None, float | None]  # when a trial was asked and told, in seconds since 1970


class Store:
    """The file of one study, or the same in memory. Every method is one transaction.

    An interrupt at any instant undoes a transaction, or comes after it. For this, each is written as ``with`` the lock
    and the connection themselves: they are entered and left in C, and Python raises no interrupt in between. A
    generator around both would stay suspended, holding them, for as long as someone keeps the traceback.
    """

    def __init__(self, path: str | os.PathLike[str] | None, shape: tuple[int, ...] = ()) -> None:
        self.path = None if path is None else Path(path)
        self.shape, self.read_only = shape, False
        self._place = None if self.path is None else self.path.absolute()  # whatever folder is current later
        self._files: dict[Path, tuple[int, int]] = {}  # what was opened at these paths
        self._checkpointed, self._unsaved = time.monotonic(), 0  # when, and how many transactions since
        with explained(self.path, "open"):
            self._adopt(self._begun())
        _STORES.add(self)

    def _begun(self) -> sqlite3.Connection:
        """The first connection: to a sound file of this schema, to an empty one, or to memory."""
        place = self._place
        if place is None:
            return connect(None)
        if missing(place):
            connection = connect(place, "rwc")
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # the file is there from now on
        elif writable(place):
            found, connection = inspected(place), connect(place)
            if found == 1:
                migrate(connection, self.path)
            if found:
                _keep_log(connection)
        else:
            connection, self.read_only = in_memory(place), True
            if check(connection, self.path) == 1:
                migrate(connection, self.path)
        self._files = {place: identity(place)}
        return connection

    def _adopt(self, connection: sqlite3.Connection) -> None:
        self._own_lock, self._process, self._connection = threading.RLock(), os.getpid(), connection

    @property
    def _lock(self) -> threading.RLock:
        """Whoever has it may use the connection. One that came through a fork has lost its locks, and stays unused."""
        if self._place is not None and not self.read_only and self._process != os.getpid():
            self._inherited, self._files = self._connection, {self._place: self._files[self._place]}
            with explained(self.path, "open"):
                self._adopt(connect(self._place))
        return self._own_lock

    def close(self) -> None:
        """Let go of the file."""
        if self._process == os.getpid():
            with self._lock:  # another thread may be writing
                self._checkpoint()
                self._connection.close()

    def copy(self) -> Store:
        """The same as it is now, in memory."""
        other = Store(None, self.shape)
        with explained(self.path, "read"), self._lock:
            _undo(self._connection)
            self._connection.backup(other._connection)
        return other

    def save(self, path: Path) -> None:
        """Write the same as it is now to a new file, which is complete or not there at all."""
        part = path.absolute().with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.part")
        try:
            with explained(self.path, "copy"), self._lock, contextlib.closing(connect(part, "rwc")) as target:
                _undo(self._connection)
                self._connection.backup(target)
            with explained(path, "make"):
                _rename(part, path)
        finally:
            for end in ("", *BESIDE):
                part.with_name(part.name + end).unlink(missing_ok=True)

    def _found(self, query: str, *values: Any) -> list[Any]:
        """What a query finds."""
        with explained(self.path, "read"), self._lock:
            _undo(self._connection)
            return self._connection.execute(query, values).fetchall()

    def _begin(self, durable: bool = True) -> None:
        """Begin a transaction; if it is not durable, a power cut, unlike a kill, may undo it."""
        if self.read_only:
            raise StoreError(f"Cannot write to the store {self.path}. Make the file and its folder writable.")
        _undo(self._connection)
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self._connection.execute("BEGIN IMMEDIATE")
        self._check_files()

    def _check_files(self) -> None:
        """Refuse to write where nobody will find it: the file, or its log, is no longer at its path."""
        if self._place is not None and len(self._files) == 1:
            log = logs(self._place)[0]
            with contextlib.suppress(FileNotFoundError):
                self._files[log] = identity(log)  # the log is there as soon as there is a transaction
        for path, opened in self._files.items():
            if not _is(path, opened):
                raise StoreError(
                    f"{path} is no longer the file that this study opened: it was removed, renamed or replaced, and "
                    "nothing was recorded. Put it back, or load the study from where it is now."
                )

    def _checkpoint(self) -> None:
        """Have what is in the log written to the file itself, as far as other processes allow it now."""
        self._checkpointed, self._unsaved = time.monotonic(), 0
        if self._place is not None and not self.read_only:
            with contextlib.suppress(sqlite3.Error):  # it stays in the log
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _save(self) -> None:
        """After a value was told: have it written to the file itself, if that was not done for a while."""
        self._unsaved += 1
        if self._unsaved >= _MANY or time.monotonic() - self._checkpointed >= _LONG:
            with self._lock:
                self._checkpoint()

    def create(self, settings: dict[str, Any]) -> None:
        """Write the settings of a new study, unless another process just did.

        The log comes first: where there is no room for it, the file stays one without a study.
        """
        if self._place is not None:
            _keep_log(self._connection)
        with explained(self.path, "create"), self._lock, self._connection as connection:
            self._begin()
            if not connection.execute(_CONTENT).fetchall():
                make(connection, settings | {"nestbo": version()})
        with self._lock:
            self._checkpoint()

    @property
    def empty(self) -> bool:
        """Whether there is no study here yet."""
        return not self._found(_CONTENT)

    def settings(self) -> dict[str, Any]:
        """The settings as they were created, with the version of nestbo that made the file."""
        rows = self._found("SELECT name, value, checksum FROM settings")
        try:
            if any(found != checksum((name, text)) for name, text, found in rows):
                raise ValueError("the checksum of one is another")
            return {name: json.loads(text) for name, text, _ in rows}
        except UNREADABLE as error:
            raise StoreError(f"The settings in {self.path} are damaged: {error}. Restore a copy.") from error

    def set(self, name: str, value: Any) -> None:
        """Change one setting."""
        with explained(self.path, "write to"), self._lock, self._connection as connection:
            self._begin()
            put_setting(connection, name, json.dumps(value))

    def suggested_by(self) -> str | None:
        """The version of nestbo that wrote the last trial; None if that was before versions were written."""
        found = self._found("SELECT version FROM trials ORDER BY number DESC LIMIT 1")
        return found[0][0] if found else self.settings().get("nestbo")

    def reserve(self, count: int, call: str) -> list[int]:
        """Indices for points that a call is about to compute; those of calls that have ended first."""
        with explained(self.path, "write to"), self._lock, self._connection as connection:
            self._begin(durable=False)
            held = self._rows(connection, "WHERE status = 'reserved'")
            numbers = [row.number for row in held if not alive(row.owner)][:count]
            following = self._following(connection)
            numbers += range(following, following + count - len(numbers))
            self._write(connection, [Row(number, "reserved", owner=owner(call)) for number in numbers])
        return numbers

    def release(self, call: str) -> None:
        """Leave what a call still holds to others: other processes cannot see that the call has ended."""
        with explained(self.path, "write to"), self._lock, self._connection as connection:
            self._begin(durable=False)
            held = self._rows(connection, "WHERE status IN ('reserved', 'asked') AND owner = ?", owner(call))
            self._write(connection, [row._replace(owner=NOBODY) for row in held])

    def ask(self, trials: list[Trial], call: str, running: bool, revision: int) -> bool:
        """Record the points of indices that a call reserved, unless points came after a revision: then say False.

        ``running`` says that the call is about to evaluate them: undone by a power cut, they are asked again.
        """
        this = owner(call)
        with explained(self.path, "write to"), self._lock, self._connection as connection:
            self._begin(durable=not running)
            later = "SELECT 1 FROM trials WHERE revision > ? AND x NOTNULL LIMIT 1"
            if connection.execute(later, (revision,)).fetchone():
                return False
            asked = [self._asked(connection, trial, this) for trial in trials]
            self._write(connection, [row._replace(owner=this if running else None) for row in asked])
        return True

    def _asked(self, connection: sqlite3.Connection, trial: Trial, this: str) -> Row:
        held = self._row(connection, trial.index)
        if held is None or (held.status, held.owner) != ("reserved", this):
            raise StoreError(f"Trial {trial.index} of {self.path} was taken by another process. Ask again.")
        memory = json.dumps(trial.memory.json)
        return held._replace(status="asked", x=pack(trial.x), memory=memory, asked_at=time.time())

    def take_orphan(self, call: str) -> int | None:
        """The first trial that a call was to evaluate and left behind, now this call's; None if there is none."""
        with explained(self.path, "write to"), self._lock, self._connection as connection:
            self._begin(durable=False)
            rows = self._rows(connection, "WHERE status = 'asked' AND owner NOTNULL")
            orphan = next((row for row in rows if not alive(row.owner)), None)
            if orphan is None:
                return None
            self._write(connection, [orphan._replace(owner=owner(call))])
        return orphan.number

    def note(self, trial: Trial) -> None:
        """Record what is known of a trial that waits for a value."""
        with explained(self.path, "write to"), self._lock, self._connection as connection:
            self._begin(durable=False)
            row = self._row(connection, trial.index)
            if row is not None and row.status == "asked":
                self._write(connection, [row._replace(told=write_told(trial.told))])

    def tell(self, trial: Trial) -> None:
        """Record the outcome of an asked trial; refuse to overwrite one."""
        with explained(self.path, "write to"), self._lock, self._connection as connection:
            self._begin()
            row = self._row(connection, trial.index)
            if row is None or row.status != "asked":
                raise TrialError(f"Trial {trial.index} was told already. Use add(x, value) for another observation.")
            done = row._replace(status=trial.status, told=write_told(trial.told), told_at=time.time())
            self._write(connection, [done])
        self._save()

    def add(self, x: Tensor, told: Told) -> int:
        """Record an observation made elsewhere; its index."""
        now = time.time()
        with explained(self.path, "write to"), self._lock, self._connection as connection:
            self._begin()
            number = self._following(connection)
            row = Row(number, "told", pack(x), write_told(told), asked_at=now, told_at=now)
            self._write(connection, [row])
        self._save()
        return number

    def trials(self, since: int = -1) -> tuple[list[Trial], dict[int, Times], int]:
        """What was written after a revision: trials that have a point, times of all, and the revision they are of."""
        with explained(self.path, "read"), self._lock:
            _undo(self._connection)
            how = "INDEXED BY revisions" if since >= 0 else "NOT INDEXED"
            rows = self._rows(self._connection, f"{how} WHERE revision > ?", since)
        trials = [self._trial(row) for row in rows if row.x is not None]
        times = {row.number: (row.asked_at, row.told_at) for row in rows}
        return trials, times, max((row.revision for row in rows), default=since)

    def _trial(self, row: Row) -> Trial:
        try:
            return trial_of(row, self.shape)
        except UNREADABLE as error:
            raise self._damaged(row.number, error) from error

    def _row(self, connection: sqlite3.Connection, number: int) -> Row | None:
        return next(iter(self._rows(connection, "WHERE number = ?", number)), None)

    def _rows(self, connection: sqlite3.Connection, where: str, *values: Any) -> list[Row]:
        """Rows in the order of their numbers, each as its checksum wants it."""
        found = connection.execute(f"SELECT {COLUMNS}, checksum FROM trials {where} ORDER BY number", values)
        rows = []
        for row in found.fetchall():
            try:
                rows.append(checked(*row))
            except UNREADABLE as error:
                raise self._damaged(row[0], error) from error
        return rows

    def _damaged(self, number: int, error: Exception) -> StoreError:
        return StoreError(f"The store {self.path} is damaged in trial {number}: {error}. Restore a copy.")

    def _write(self, connection: sqlite3.Connection, rows: list[Row]) -> None:
        """Write rows as the next revision."""
        revision = self._after(connection, "revision")
        for row in rows:
            put_row(connection, row._replace(version=version(), revision=revision))

    def _following(self, connection: sqlite3.Connection) -> int:
        """The first index that was never used."""
        return self._after(connection, "number")

    def _after(self, connection: sqlite3.Connection, column: str) -> int:
        """One more than the largest of a column, from 0 on."""
        found = connection.execute(f"SELECT coalesce(max({column}), -1) + 1 FROM trials").fetchone()[0]
        if not isinstance(found, int):  # beyond what SQLite counts
            raise StoreError(f"The store {self.path} is damaged: its last {column} is {found:.0f}. Restore a copy.")
        return found


def _undo(connection: sqlite3.Connection) -> None:
    """Roll back what was neither committed nor undone, however that came about: nobody was told that it was done."""
    if connection.in_transaction:
        connection.rollback()


def is_store(path: Path) -> bool:
    """Whether a file is a study or another database, or one that SQLite keeps beside it."""
    belongs = [path.with_name(path.name.removesuffix(end)) for end in BESIDE if path.name.endswith(end)]
    if any(other.exists() for other in belongs) or any(log.exists() for log in logs(path)):
        return True
    if not path.is_file():
        return False
    # A file that this process has open must not be opened and closed again: that gives up the locks on it.
    if any(identity(path) in store._files.values() for store in list(_STORES)):
        return True
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _rename(part: Path, path: Path) -> None:
    """Give a file another name, at which there is nothing yet."""
    try:
        os.link(part, path)  # unlike a renaming, refused where something has come into being
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        os.rename(part, path)


def _is(path: Path, opened: tuple[int, int]) -> bool:
    """Whether a path still leads to what was opened there."""
    try:
        return identity(path) == opened
    except OSError:
        return False


def _keep_log(connection: sqlite3.Connection) -> None:
    """Have SQLite write ahead into a log from now on, unless another process is busy: then the next one does it."""
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")
