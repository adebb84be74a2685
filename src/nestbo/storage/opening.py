"""How the file of a store is opened: checked first, for writing where that is allowed, else as a copy in memory."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nestbo.errors import NestboError, StoreError
from nestbo.interrupts import held_back
from nestbo.storage.schema import check, check_integrity

BUSY = 60.0  # seconds to wait for another process's transaction
LOGS = ("-wal", "-journal")  # what SQLite writes beside a file before it writes to it
BESIDE = (*LOGS, "-shm")
_STEPS = 5  # of SQLite's machine for each byte of a file: to check a sound one takes fewer than 0.2


def connect(place: Path | None, mode: str = "rw") -> sqlite3.Connection:
    """A connection in SQLite's mode "ro", "rw" (no new file) or "rwc"; to memory without a place."""
    name = "file::memory:" if place is None else f"{place.as_uri()}?mode={mode}"
    connection = sqlite3.connect(name, timeout=BUSY, isolation_level=None, check_same_thread=False, uri=True)
    connection.execute("PRAGMA trusted_schema = OFF")  # a stranger's file calls no functions
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def identity(place: Path) -> tuple[int, int]:
    """What stays the same as long as a path leads to the same file."""
    found = os.stat(place)
    return found.st_dev, found.st_ino


def missing(place: Path) -> bool:
    """Whether a study may be made there: no file, or an empty one, and no log of a file that was moved away."""
    # The logs come first: where another process begins the study meanwhile, the file has content before it has a log.
    found = [log for log in logs(place) if _size(log)]
    if place.exists() and not (place.is_file() or place.is_dir()):
        raise StoreError(f"A store is a file, got {place}, which is a device or the like. Choose another path.")
    size = _size(place)
    if size:
        return False
    for log in found:
        if size is None or not log.name.endswith("-journal"):
            raise StoreError(
                f"Beside {place} lies {log.name}, the log of a study that was moved away or removed, and may hold "
                f"values that were told. Put the study back beside it, or remove {log.name}."
            )
    return True


def _size(path: Path) -> int | None:
    """In bytes; None where there is nothing, or no longer, or no way to it."""
    try:
        return path.stat().st_size if path.exists() else None
    except FileNotFoundError:  # removed between the two looks
        return None


def vacant(place: Path) -> bool:
    """Whether there is nothing at a path, or what a beginning that failed has left there: a file without a study."""
    if missing(place):
        return True
    try:
        return writable(place) and inspected(place) == 0
    except (sqlite3.Error, OSError, StoreError):
        return False


def logs(place: Path) -> list[Path]:
    """Where SQLite's logs of a file are, if there are any."""
    return [place.with_name(place.name + end) for end in LOGS]


def writable(place: Path) -> bool:
    """Whether this process may write to a file and beside it."""
    return os.access(place, os.W_OK) and os.access(place.parent, os.W_OK)


def inspected(place: Path) -> int:
    """The schema of the study in a file, which is sound; 0 where there is no study yet. The file stays as it is.

    Only where a kill left a transaction to be undone is the file opened for writing, which SQLite needs to undo it.
    """
    # Through SQLite alone: whoever opens and closes the file otherwise, gives up this process's locks on it, and then
    # another process may remove the log into which this one still writes.
    try:
        return _inspected(place, "ro")
    except sqlite3.OperationalError as error:
        if "readonly" not in str(error):
            raise
        return _inspected(place, "rw")


def _inspected(place: Path, mode: str) -> int:
    with contextlib.closing(connect(place, mode)) as connection:
        return checked(connection, place)


def checked(connection: sqlite3.Connection, place: Path) -> int:
    """The schema of the study that a connection sees, which is sound; 0 where there is none."""
    with held_back(), _limited(connection, place.stat().st_size):  # SQLite takes an interrupt for damage
        try:
            connection.execute("BEGIN")  # one snapshot
            found = check(connection, place)
            if found:
                check_integrity(connection, place)
            connection.execute("ROLLBACK")
            return found
        except sqlite3.DatabaseError as error:
            if "not a database" not in str(error):
                raise
            raise StoreError(
                f"Wanted a nestbo store, got another kind of file: {place}. Choose another path."
            ) from error


@contextlib.contextmanager
def _limited(connection: sqlite3.Connection, size: int) -> Iterator[None]:
    """Interrupt what takes far longer than a file of this size can: its pages lead in circles."""
    every = 10_000
    left = iter(range(_STEPS * size // every + 100))
    connection.set_progress_handler(lambda: next(left, None) is None, every)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


def in_memory(place: Path) -> sqlite3.Connection:
    """A copy of a file that cannot be written to, with what its log holds."""
    if not any(map(os.path.exists, logs(place))):
        return _copied(place, "ro&immutable=1")  # nobody has it open
    try:
        return _copied(place, "ro")
    except sqlite3.OperationalError:  # nobody has it open, and its log needs a place where SQLite may write
        with tempfile.TemporaryDirectory() as folder:
            for end in ("", *LOGS):
                if os.path.exists(f"{place}{end}"):
                    shutil.copyfile(f"{place}{end}", f"{folder}/copy{end}")
            return _copied(Path(folder, "copy"), "rw")


def _copied(place: Path, mode: str) -> sqlite3.Connection:
    copy = connect(None)
    with contextlib.closing(connect(place, mode)) as source:
        checked(source, place)
        source.backup(copy)
    return copy


@contextlib.contextmanager
def explained(path: Any, doing: str) -> Iterator[None]:
    """Errors of SQLite and of the system, as sentences of ours."""
    try:
        yield
    except NestboError:
        raise
    except (sqlite3.Error, OSError, ValueError) as error:
        raise StoreError(f"Cannot {doing} the store {path}: {error}. {_remedy(str(error))}") from error


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
    "interrupted": "The file is damaged; restore a copy of it.",
    "decode": "The file is damaged; restore a copy of it.",
    "not a database": "The file is damaged or not a store; restore a copy of it.",
    "locked": "Another process has held it for a minute; try again.",
}
