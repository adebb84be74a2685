"""A call in a process of its own, forked here, which can be ended at any time, with all processes that it started."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from nestbo.interrupts import held_back, let_through
from nestbo.lazy import torch

T = TypeVar("T")

_LOOK = 0.05  # seconds between two looks at whether a process lives: a death is noticed soon, and looking costs nothing
_PATIENCE = 5.0  # seconds for which Ctrl-C waits for a process to be killed, which takes some milliseconds
_KILLING = 1.0  # seconds for which a process may resist being killed: only the system itself can keep it that long
_COLLECTING = 60.0  # seconds within which the parent collects an answer, or is dead
_ADOPT = 36  # PR_SET_CHILD_SUBREAPER of Linux: a process whose parent dies becomes a child of this one, not of init
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def apart(work: Callable[[], T], seconds: float) -> T:
    """What ``work`` returns, in a process of its own; TimeoutError if that takes longer, BrokenExecutor if it dies."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    receiver, sender = multiprocessing.Pipe(duplex=False)
    with held_back(_PATIENCE):  # else a process could be started and forgotten
        child = os.fork()
        if child == 0:
            _live(work, seconds, sender)
        sender.close()
        alone = False
        try:
            with let_through():
                answer, alone = _answer(child, receiver, seconds)
        finally:
            _end(child, alone)
            receiver.close()
    if isinstance(answer, KeyboardInterrupt):
        raise answer
    result: T = answer
    return result


def _live(work: Callable[[], Any], seconds: float, sender: Any) -> NoReturn:
    """The life of the process. Having answered it waits to be killed: what it started is found through it."""
    try:
        os.setpgid(0, 0)
        if _LIBC is not None:
            _LIBC.prctl(_ADOPT, 1, 0, 0, 0)
        torch.set_num_threads(1)  # the others do not survive a fork
        _die_in(seconds + 1)
        try:
            answer = work()
        except KeyboardInterrupt:
            answer = KeyboardInterrupt()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        _die_in(_COLLECTING)
        sender.send((answer, _childless()))
        while True:
            signal.pause()
    finally:
        os._exit(0)


def _childless() -> bool:
    """Whether all that this process started has ended."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


def _die_in(seconds: float) -> None:
    """End by itself, should the parent have died and not do it."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _answer(child: int, receiver: Any, seconds: float) -> tuple[Any, bool]:
    """What a child sends: its answer, and whether it has no children left.

    Its death is looked for: a pipe does not tell of it as long as another process, forked meanwhile, holds the end.
    """
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        died = _died(child)
        try:
            if receiver.poll(0 if died else min(left, _LOOK)):
                answer, alone = receiver.recv()
                return answer, alone
        except EOFError:
            died = True
        if died:
            raise BrokenExecutor("the process of the evaluation died")
    raise TimeoutError


def _died(child: int) -> bool:
    """Whether a child has ended. It is not collected yet, so that its number stays its own."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13: only the pipe tells
        return False
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # this program collects its children by other means
        return True


def _end(child: int, alone: bool) -> None:
    """Kill a child and, unless it is alone, what descends from it."""
    if not alone:
        _end_descendants(child)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    _kill(child)  # it may not have got as far as having a group
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)


def _end_descendants(child: int) -> None:
    """Kill what descends from a child, where the system tells (Linux); elsewhere, only its group is killed."""
    _kill(child, signal.SIGSTOP)  # from now on it starts nothing
    end = time.monotonic() + _KILLING
    while (found := _descendants(child)) and time.monotonic() < end:
        for process in found:
            _kill(process)
        time.sleep(0.001)


def _kill(process: int, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, number)


def _descendants(process: int) -> list[int]:
    """The processes that a process started, those that they started, and so on, as far as they live."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):  # it ended while we looked
            state, parent = path.read_text(errors="replace").rsplit(")", 1)[1].split()[:2]
            if state not in "ZX":
                children.setdefault(int(parent), []).append(int(path.parent.name))
    found = list(children.get(process, []))
    for each in found:
        found += children.get(each, [])
    return found
