"""What SQLite itself does not say of its log: that it ends too early, because a part of it was damaged.

After a kill, SQLite takes from the log what is sound, up to the first frame that is not, and drops the rest in silence:
the end of a log looks the same. Here the rest is looked at: frames that belong to the log and can no longer be read
were written for someone, unless the kill came in the middle of the last one. (SQLite, "WAL-mode File Format".)
"""

from __future__ import annotations

import struct
import time
from pathlib import Path

_HEADER, _FRAME = 32, 24  # bytes: of the log, and of each frame before its page
_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}  # the order of bytes in checksums
_LARGEST = 2**24  # bytes: a larger log is one that was never written to its file, and takes too long to look at
_MOMENT = 0.05  # seconds in which another process completes the frame that it is writing


def damage(log: Path) -> str | None:
    """What is wrong with the log of a study, in words; None if nothing is, or there is none.

    What another process is writing looks unsound for a moment, and at another place in the next.
    """
    found = _damage(log)
    if found is None:
        return None
    time.sleep(_MOMENT)
    return found if _damage(log) == found else None


def _damage(log: Path) -> str | None:
    try:
        data = log.read_bytes() if log.stat().st_size <= _LARGEST else b""
    except OSError:
        return None
    if len(data) <= _HEADER:
        return None
    magic, _, size, _, *salts, _, _ = struct.unpack(">8I", data[:_HEADER])
    order = _MAGIC.get(magic, "<")
    sums = _sums(data[:24], (0, 0), order)
    if magic not in _MAGIC or sums != struct.unpack(">2I", data[24:_HEADER]):
        return "its first bytes cannot be read"
    return _first_unsound(data, size, salts, sums, order)


def _first_unsound(data: bytes, size: int, salts: list[int], sums: tuple[int, int], order: str) -> str | None:
    """The first frame that is of this log, to judge by one of its two marks at least, and has another checksum."""
    starts = range(_HEADER, len(data) - _FRAME - size + 1, _FRAME + size)
    for number, at in enumerate(starts):
        header, page = data[at : at + _FRAME], data[at + _FRAME : at + _FRAME + size]
        marks, found = struct.unpack(">2I", header[8:16]), struct.unpack(">2I", header[16:])
        if not any(mark == salt for mark, salt in zip(marks, salts, strict=True)):
            return None  # of an earlier use of the log
        sums = _sums(page, _sums(header[:8], sums, order), order)
        if list(marks) != salts or sums != found:
            return f"frame {number} of {len(starts)} cannot be read"
    return None


def _sums(data: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    """SQLite's checksum of pairs of words, continued."""
    a, b = sums
    for x, y in struct.iter_unpack(f"{order}2I", data):
        a = (a + x + b) & 0xFFFFFFFF
        b = (b + y + a) & 0xFFFFFFFF
    return a, b
