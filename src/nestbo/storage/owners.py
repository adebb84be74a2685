"""Who works on a trial: a call of a process, told apart from those of other containers, and of an earlier boot."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nestbo import calls

NOBODY = "nobody"  # the owner of a trial that a call left behind


class Owner(NamedTuple):
    """A call of a process: the boot, the namespace that the process number is of, the number, its start, the call."""

    boot: str
    namespace: str
    number: str
    started: str
    call: str

    def __str__(self) -> str:
        return "/".join(self)


def owner(call: str) -> str:
    """A call of the present process."""
    return str(Owner(*_process(os.getpid()), call))


@cache
def _process(pid: int) -> tuple[str, str, str, str]:
    return _boot(), _namespace(), str(pid), _started(pid)


def alive(text: str | None) -> bool:
    """Whether an owner is still at work; one that cannot be judged from here is.

    A call of another process is at work as long as that process runs. Process numbers are comparable within one boot
    and one namespace. Owners in files of schema 1 have neither, and are taken for processes of this namespace, as they
    were then.
    """
    if text is None or text == NOBODY:
        return False
    parts = text.split("/")
    if len(parts) == 1:
        number, _, started = text.partition(":")
        return _runs(number, started)
    if len(parts) != len(Owner._fields):
        return False
    found = Owner(*parts)
    if (found.boot, found.namespace) != (_boot(), _namespace()):
        return True
    if found.number == str(os.getpid()):
        return calls.lasts(found.call)
    return _runs(found.number, found.started)


def _runs(number: str, started: str) -> bool:
    """Whether a process of this namespace is there; a zombie is not."""
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


def _boot() -> str:
    """The boot of this machine, where the system tells (Linux)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _namespace() -> str:
    """The namespace of process numbers that this process lives in, where the system has them (Linux)."""
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return ""
