"""Who works on a trial: a call of a process, told apart from those of other containers, and of an earlier boot."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nestbo import calls

NOBODY = "nobody"  # the owner of a trial that a call left behind
QUEUE = "queue"  # the owner of a trial that is to be asked first; to an earlier nestbo, it was left behind


class Owner(NamedTuple):
    """A call of a process: the boot, the namespace that the process number is of, the number, its start, the call."""

    boot: str
    namespace: str
    number: str
    started: str
    call: str


def owner(call: str) -> str:
    """A call of the present process."""
    return f"{process()}/{call}"


def process() -> str:
    """The present process."""
    return _named(os.getpid())


@cache
def _named(pid: int) -> str:
    return "/".join((_boot(), _namespace(), str(pid), _started(pid)))


def alive(text: str | None, present: Callable[[str], bool]) -> bool:
    """Whether an owner is still at work; a call of another process is as long as that process runs.

    ============================== ==========================================================================
    of this boot and namespace     its number and start are those of a process
    of another one                 ``present`` says that the process has the file of the study open
    of a file of schema 1          the same as the first: boot and namespace are not known
    ============================== ==========================================================================
    """
    if text is None or text in (NOBODY, QUEUE):
        return False
    parts = text.split("/")
    if len(parts) == 1:
        number, _, started = text.partition(":")
        return _runs(number, started)
    if len(parts) != len(Owner._fields):
        return False
    found = Owner(*parts)
    if (found.boot, found.namespace) != (_boot(), _namespace()):
        return present("/".join(parts[:-1]))
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
