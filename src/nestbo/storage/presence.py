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
_OPEN: dict[Key, list[int]] = {}  # the descriptor, and how many use it


def enter(place: Path, process: str) -> Key | None:
    """Mark a file as open by this process; the key to leave it with, or None where the system has no such locks."""
    with contextlib.suppress(OSError, AttributeError):
        found = os.stat(place)
        key = os.getpid(), found.st_dev, found.st_ino
        if key not in _OPEN:
            _OPEN[key] = [os.open(place, os.O_RDWR | os.O_CLOEXEC), 0]
            fcntl.fcntl(_OPEN[key][0], fcntl.F_OFD_SETLK, _lock(fcntl.F_WRLCK, process))
        _OPEN[key][1] += 1
        return key
    return None


def leave(key: Key | None) -> None:
    """Take the mark away when nobody in this process uses the file any more.

    Not earlier: to close any descriptor of a file gives up the locks that SQLite has on it in this process.
    """
    if key is None or key not in _OPEN:
        return
    _OPEN[key][1] -= 1
    if _OPEN[key][1] == 0:
        os.close(_OPEN.pop(key)[0])


def present(key: Key | None, process: str) -> bool:
    """Whether a process has a file open, which this one has open, too; a process that cannot be judged has."""
    if key is None or key not in _OPEN:
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
