"""Which processes have a file open, as those see it that cannot see the processes: from another container, say.

A process holds a lock on one byte of the file, far beyond its end, whose place follows from the name of the process.
The system gives up the lock when the process ends, however that comes about, and with the machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
from pathlib import Path
from typing import Any

fcntl: Any = None
with contextlib.suppress(ImportError):  # there is none on Windows
    import fcntl

_FAR = 2**62  # beyond every file, and beyond the bytes that SQLite locks
_FLOCK = "hhqqi4x"  # Linux's struct flock: kind, whence, start, length, process
Key = tuple[int, int, int]  # the process, the device and the file
_NONE = -1  # in place of a descriptor
_OPEN: dict[Key, list[int]] = {}  # the descriptor, and how many use it


def enter(place: Path, process: str) -> Key:
    """Mark a file as open by this process; the key to leave it with."""
    found = os.stat(place)
    key = os.getpid(), found.st_dev, found.st_ino
    if key not in _OPEN:
        _OPEN[key] = [_marked(place, process), 0]
    _OPEN[key][1] += 1
    return key


def _marked(place: Path, process: str) -> int:
    """A descriptor that holds the lock; none where the system or the file system has no such locks."""
    if not hasattr(fcntl, "F_OFD_SETLK"):
        return _NONE
    descriptor = os.open(place, os.O_RDWR | os.O_CLOEXEC)
    with contextlib.suppress(OSError):
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _lock(fcntl.F_WRLCK, process))
    return descriptor


def held(identity: tuple[int, int]) -> bool:
    """Whether this process has a file open."""
    return (os.getpid(), *identity) in _OPEN


def leave(key: Key | None) -> None:
    """Take the mark away when nobody in this process uses the file any more.

    Not earlier: to close any descriptor of a file gives up the locks that SQLite has on it in this process.
    """
    if key is None or key not in _OPEN:
        return
    _OPEN[key][1] -= 1
    if _OPEN[key][1] == 0:
        descriptor, _ = _OPEN.pop(key)
        if descriptor != _NONE:
            os.close(descriptor)


def present(key: Key | None, process: str) -> bool:
    """Whether a process has a file open, which this one has open, too; a process that cannot be judged has."""
    if key is None or key not in _OPEN or _OPEN[key][0] == _NONE:
        return True
    try:
        answer = fcntl.fcntl(_OPEN[key][0], fcntl.F_OFD_GETLK, _lock(fcntl.F_WRLCK, process))
    except OSError:
        return True
    kind: int = struct.unpack(_FLOCK, answer)[0]
    return kind != fcntl.F_UNLCK


def _lock(kind: int, process: str) -> bytes:
    digest = hashlib.blake2b(process.encode(), digest_size=8).digest()
    return struct.pack(_FLOCK, kind, os.SEEK_SET, _FAR + int.from_bytes(digest) % (_FAR - 1), 1, 0)
