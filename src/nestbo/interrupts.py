"""Ctrl-C, held back for a moment: while it would cut something in two that nobody can mend afterwards.

Such are imports, of which half would stay, and the locks of executors. What nestbo itself does may be interrupted at
any instant.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]


class _Hold:
    """Stands in for the handler of Ctrl-C, and remembers that it came."""

    def __init__(self, handler: Handler, patience: float) -> None:
        self.handler, self.patience = handler, patience
        self.process, self.since = os.getpid(), math.inf
        self.open = self.came = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        elsewhere = os.getpid() != self.process  # in a process that was forked meanwhile
        if self.open or elsewhere or now - self.since > self.patience:
            self._hand_on(number, frame)
        else:
            self.came = True
        self.since = min(self.since, now)

    def _hand_on(self, number: int, frame: FrameType | None) -> None:
        """Once, as a rule: the handler raises, and what clears up after it is not to be interrupted again."""
        opened, self.open, self.came = self.open, False, False
        self.handler(number, frame)
        self.open = opened

    def deliver(self) -> None:
        """Hand on what came."""
        if self.came:
            self._hand_on(signal.SIGINT, None)


def _handler() -> Any:
    """What handles Ctrl-C in this thread: nothing in others than the main one, where Python never raises it."""
    if threading.current_thread() is not threading.main_thread():
        return None
    return signal.getsignal(signal.SIGINT)


@contextlib.contextmanager
def held_back(patience: float = math.inf) -> Iterator[None]:
    """Ctrl-C comes after the body. Who repeats it ``patience`` seconds later, gets it at once."""
    handler = _handler()
    if not callable(handler):
        yield
        return
    hold = _Hold(handler, patience)
    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        hold.deliver()


@contextlib.contextmanager
def let_through() -> Iterator[None]:
    """Ctrl-C comes at once, and once, in the midst of a body that holds it back."""
    hold = _handler()
    if not isinstance(hold, _Hold):
        yield
        return
    hold.open = True
    try:
        hold.deliver()
        yield
    finally:
        hold.open = False


@functools.cache
def load(*names: str) -> None:
    """Import modules that are wanted late, without leaving half of one behind."""
    with held_back():
        for name in names:
            importlib.import_module(name)
