"""When a run ends early: a time limit, a target, a standstill, little left to gain.

Each rule is a small value for ``Study.run(…, stop=…)`` and ``minimize(…, stop=…)``. A rule of your own is a subclass of
``Rule``, or a function of the study and the trial that has just ended.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from nestbo.errors import ArgumentError, shown
from nestbo.history import History
from nestbo.manifolds.base import check_size


@dataclass(frozen=True)
class Progress:
    """The state of a run between two evaluations.

    Attributes:
        history: All trials of the study, those of earlier runs included.
        seconds: The time since this run began.
        expected_gain: A function that computes what the next evaluation is expected to gain over the best value, in the
            units of the objective. It gives None as long as there is no model, and takes as long as a suggestion.
    """

    history: History
    seconds: float
    expected_gain: Callable[[], float | None]


class Rule(ABC):
    """A reason to end a run."""

    @abstractmethod
    def reason(self, now: Progress) -> str | None:
        """Why the run ends now, in words; None if it continues."""


@dataclass(frozen=True)
class After(Rule):
    """A time limit: no evaluation begins later. Running evaluations are finished.

    Args:
        seconds: The time since the run began.
    """

    seconds: float

    def __post_init__(self) -> None:
        _check("seconds", self.seconds)

    def reason(self, now: Progress) -> str | None:
        return f"the time limit of {self.seconds:g} s has passed" if now.seconds >= self.seconds else None


@dataclass(frozen=True)
class Target(Rule):
    """A value that is good enough.

    Args:
        value: The value to reach: from above if the study minimises, from below if it maximises.
    """

    value: float

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not math.isfinite(self.value):
            raise ArgumentError(f"The target is a finite number, got {shown(self.value)}.")

    def reason(self, now: Progress) -> str | None:
        best = now.history.best
        if best is None or best.value is None:
            return None
        better = min if now.history.direction == "minimize" else max
        reached = better(best.value, self.value) == best.value
        return f"the target {self.value:g} is reached" if reached else None


@dataclass(frozen=True)
class Stalled(Rule):
    """A standstill: the last evaluations have not improved the best value.

    Where there are several objectives, none of the last evaluations belongs to the front.

    Args:
        evaluations: The number of evaluations in a row that may gain nothing.
        by: The smallest difference to the best value that counts as a gain, in the units of the objective. Use it with
            a single objective.
    """

    evaluations: int = 30
    by: float = 0.0

    def __post_init__(self) -> None:
        check_size("The number of evaluations without a gain", self.evaluations)
        _check("by", self.by, zero=True)

    def reason(self, now: Progress) -> str | None:
        finished = now.history.finished
        earlier, words = finished[: -self.evaluations], f"nothing was gained for {self.evaluations} evaluations"
        if now.history.several:
            last = finished.front[-1:]
            return words if last and last[0].index in {trial.index for trial in earlier} else None
        before, best = earlier.best, finished.best
        if before is None or best is None or before.value is None or best.value is None:
            return None
        if abs(best.value - before.value) > self.by:
            return None
        return words


@dataclass(frozen=True)
class Gain(Rule):
    """Little left to gain: the model expects a smaller improvement from the next evaluation.

    The rule computes a suggestion after every evaluation, which about doubles the time between two evaluations.

    Args:
        tolerance: The least expected gain worth an evaluation, in the units of the objective.
    """

    tolerance: float

    def __post_init__(self) -> None:
        _check("tolerance", self.tolerance)

    def reason(self, now: Progress) -> str | None:
        gain = now.expected_gain()
        if gain is None or gain >= self.tolerance:
            return None
        return f"the next evaluation is expected to gain {gain:.2g}, less than {self.tolerance:g}"


def _check(name: str, value: object, zero: bool = False) -> None:
    """Refuse what is no positive finite number."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not (value > 0 or (zero and value == 0)):  # type: ignore[operator]
        kind = "a finite number of at least 0" if zero else "a positive finite number"
        raise ArgumentError(f"{name} is {kind}, got {shown(value)}.")
