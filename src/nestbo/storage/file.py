"""The file of a study as SQLite has it open: one connection of each process, and what keeps it safe.

An interrupt at any instant undoes a transaction, or comes after it. For this, each is written as ``with`` the lock and
the connection themselves: they are entered and left in C, and Python raises no interrupt in between. A generator around
both would stay suspended, holding them, for as long as someone keeps the traceback.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
import time
import uuid
from pathlib import Path
from typing import Any
from weakref import finalize

from nestbo.errors import StoreError
from nestbo.storage.log import damage
from nestbo.storage.opening import BESIDE, connect, explained, identity, in_memory, inspected, logs, missing, writable
from nestbo.storage.owners import process
from nestbo.storage.presence import enter, held, leave, present
from nestbo.storage.schema import check, migrate

_MAGIC = b"SQLite format 3\0"  # at the beginning of every database
_MANY, _LONG = 10, 1.0  # tells and seconds after which the log is written to the file, which takes as long as two tells


class File:
    """The file of one study, or the same in memory; where it cannot be written, a copy of it in memory."""

    connection: sqlite3.Connection

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.path = None if path is None else Path(path)
        self.read_only = False
        self._place = None if self.path is None else self.path.absolute()  # whatever folder is current later
        self._opened: dict[Path, tuple[int, int]] = {}  # what was found at these paths
        self._written, self._unwritten = time.monotonic(), 0  # when the log was, and how many tells since
        with explained(self.path, "open"):
            self._adopt(self._first())

    def _first(self) -> sqlite3.Connection:
        """The first connection: to a sound file of this schema, to an empty one, or to memory."""
        place = self._place
        if place is None:
            return connect(None)
        _say_damage(place)
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
        self._opened = {place: identity(place)}
        return connection

    def _adopt(self, connection: sqlite3.Connection) -> None:
        self._own_lock, self._process, self.connection = threading.RLock(), os.getpid(), connection
        self._key = None if self._place is None or self.read_only else enter(self._place, process())
        self._leave = finalize(self, leave, self._key)
        self._leave.atexit = False  # the end of the process is enough

    @property
    def lock(self) -> threading.RLock:
        """Whoever has it may use the connection. One that came through a fork has lost its locks, and stays unused."""
        if self._place is not None and not self.read_only and self._process != os.getpid():
            self._inherited, self._opened = self.connection, {self._place: self._opened[self._place]}
            with explained(self.path, "open"):
                self._adopt(connect(self._place))
        return self._own_lock

    def present(self, who: str) -> bool:
        """Whether a process has this file open, as far as that can be told."""
        return present(self._key, who)

    def found(self, query: str, *values: Any) -> list[Any]:
        """What a query finds."""
        with explained(self.path, "read"), self.lock:
            undo(self.connection)
            return self.connection.execute(query, values).fetchall()

    def begin(self, durable: bool = True) -> None:
        """Begin a transaction; if it is not durable, a power cut, unlike a kill, may undo it."""
        if self.read_only:
            raise StoreError(f"Cannot write to the store {self.path}. Make the file and its folder writable.")
        undo(self.connection)
        self.connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self.connection.execute("BEGIN IMMEDIATE")
        self._check_place()

    def _check_place(self) -> None:
        """Refuse to write where nobody will find it: the file, or its log, is no longer at its path."""
        if self._place is not None and len(self._opened) == 1:
            log = logs(self._place)[0]
            with contextlib.suppress(FileNotFoundError):
                self._opened[log] = identity(log)  # the log is there as soon as there is a transaction
        for path, opened in self._opened.items():
            if not _is(path, opened):
                raise StoreError(
                    f"{path} is no longer the file that this study opened: it was removed, renamed or replaced, and "
                    "nothing was recorded. Put it back, or load the study from where it is now."
                )

    def start_log(self) -> None:
        """Have a new file keep a log from now on."""
        if self._place is not None:
            _keep_log(self.connection)

    def write_log(self) -> None:
        """Have what is in the log written to the file itself, as far as other processes allow it now."""
        self._written, self._unwritten = time.monotonic(), 0
        if self._place is not None and not self.read_only:
            with self.lock, contextlib.suppress(sqlite3.Error):  # else it stays in the log
                self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def write_log_at_times(self) -> None:
        """The same after a value was told, if it was not done for a while."""
        self._unwritten += 1
        if self._unwritten >= _MANY or time.monotonic() - self._written >= _LONG:
            self.write_log()

    def close(self) -> None:
        """Let go of the file."""
        if self._process == os.getpid():
            with self.lock:  # another thread may be writing
                self.write_log()
                self.connection.close()
                self._leave()

    def copy(self, target: sqlite3.Connection) -> None:
        """Copy everything to another database, as it is now."""
        with explained(self.path, "copy"), self.lock:
            undo(self.connection)
            self.connection.backup(target)

    def save(self, path: Path) -> None:
        """Write everything to a new file, which is complete or not there at all."""
        part = path.absolute().with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.part")
        try:
            with explained(path, "make"):
                with contextlib.closing(connect(part, "rwc")) as target:
                    self.copy(target)
                _rename(part, path)
        finally:
            for end in ("", *BESIDE):
                part.with_name(part.name + end).unlink(missing_ok=True)


def undo(connection: sqlite3.Connection) -> None:
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
    if held(identity(path)):
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


def _say_damage(place: Path) -> None:
    """Say that the log of a study has lost its end, which SQLite drops in silence."""
    found = damage(logs(place)[0])
    if found is not None:
        said = "The log of %s is damaged: %s. What was told last may be lost; nestbo show says what is there."
        logging.getLogger("nestbo").warning(said, place, found)


def _keep_log(connection: sqlite3.Connection) -> None:
    """Have SQLite write ahead into a log from now on, unless another process is busy: then the next one does it."""
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")
