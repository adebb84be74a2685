"""How far a run has come: a live bar on a terminal or in a notebook, plain lines elsewhere, or nothing."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from html import escape
from typing import Any, TextIO

from nestbo.history import Trial
from nestbo.interrupts import load
from nestbo.text import printable


class Reporter:
    """Silent, unless someone has to do something; others show what happens."""

    @contextlib.contextmanager
    def watching(self, total: int) -> Iterator[None]:
        """Around a run of ``total`` evaluations."""
        yield

    def advanced(self, done: Trial, best: Trial | None) -> None:
        """After each evaluation."""

    def interrupted(self) -> None:
        """After Ctrl-C."""

    def idle(self, why: str) -> None:
        """Before the first evaluation: that nothing is left to evaluate, or how much."""

    def waiting(self, why: str) -> None:
        """When a run waits for what may never come, and again every minute."""
        sys.stderr.write(printable(f"waiting: {why}\n"))


class Lines(Reporter):
    """A line now and then, with the best value and the time left."""

    every = 5.0  # seconds

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr

    @contextlib.contextmanager
    def watching(self, total: int) -> Iterator[None]:
        self.total, self.count, self.started, self.shown = total, 0, time.monotonic(), 0.0
        yield

    def advanced(self, done: Trial, best: Trial | None) -> None:
        self.count += 1
        now = time.monotonic()
        if self.count < self.total and now - self.shown < self.every:
            return
        self.shown = now
        left = (now - self.started) / self.count * (self.total - self.count)
        self.say(f"{self.count}/{self.total} evaluations, {_standing(done, best)}, {left:.0f} s left")

    def idle(self, why: str) -> None:
        self.say(why)

    def interrupted(self) -> None:
        self.say("interrupted; everything told is kept, and the next run goes on")

    def waiting(self, why: str) -> None:
        self.say(f"waiting: {why}")

    def say(self, text: str) -> None:
        """One line."""
        print(printable(text), file=self.stream, flush=True)


def _standing(done: Trial, best: Trial | None) -> str:
    """The best value so far; where there are several objectives, and so no best one, the last values."""
    if len(done.values) > 1:
        return f"last {', '.join(f'{value:.6g}' for value in done.values)}"
    if best is None:
        return "no value yet" if done.value is None else "no feasible value yet"
    return f"best {best.value:.6g}"


def _placed(done: Trial, best: Trial | None) -> str:
    """The same with the trial of the best value."""
    place = "" if best is None else f" (trial {best.index})"
    return _standing(done, best) + place


class Bar(Reporter):
    """A live bar."""

    @contextlib.contextmanager
    def watching(self, total: int) -> Iterator[None]:
        load("rich.console", "rich.progress")
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns: tuple[Any, ...] = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, TextColumn("{task.description}"), console=Console(stderr=True)) as self.bar:
            self.task = self.bar.add_task("", total=total)
            yield

    def advanced(self, done: Trial, best: Trial | None) -> None:
        self.bar.update(self.task, advance=1, description=_placed(done, best))

    def idle(self, why: str) -> None:
        self.bar.console.print(why, markup=False)

    def interrupted(self) -> None:
        self.bar.console.print("interrupted; everything told is kept, and the next run goes on")

    def waiting(self, why: str) -> None:
        self.bar.console.print(printable(f"waiting: {why}"), markup=False)


class Inline(Reporter):
    """One line in a notebook, written anew as the run goes on."""

    every = 0.2  # seconds, as often as an eye can follow

    @contextlib.contextmanager
    def watching(self, total: int) -> Iterator[None]:
        load("IPython.display")
        from IPython.display import display

        self.total, self.count, self.shown, self.text = total, 0, 0.0, ""
        self.line = display(self._html(), display_id=True)
        try:
            yield
        finally:
            self._renew()

    def advanced(self, done: Trial, best: Trial | None) -> None:
        self.count += 1
        self.text = _placed(done, best)
        if time.monotonic() - self.shown >= self.every:
            self._renew()

    def idle(self, why: str) -> None:
        self.text = why

    def interrupted(self) -> None:
        self.text += "; interrupted, everything told is kept, and the next run goes on"

    def waiting(self, why: str) -> None:
        self.text = f"waiting: {why}"
        self._renew()

    def _renew(self) -> None:
        self.shown = time.monotonic()
        self.line.update(self._html())

    def _html(self) -> Any:
        from IPython.display import HTML

        bar = f'<progress max="{max(self.total, 1)}" value="{self.count}"></progress>'
        return HTML(f"{bar} {self.count}/{self.total} {escape(printable(self.text, keep=''))}")


def _in_a_notebook() -> bool:
    """Whether this process serves a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


def reporter(progress: bool | Reporter) -> Reporter:
    """The reporter for a setting: True chooses by where the output goes and what is installed."""
    if isinstance(progress, Reporter):
        return progress
    if not progress:
        return Reporter()
    if _in_a_notebook():
        return Inline()
    if not sys.stderr.isatty():
        return Lines()
    try:
        import rich  # noqa: F401
    except ImportError:
        return Lines()
    return Bar()
