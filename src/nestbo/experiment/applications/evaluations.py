"""One method on one application: every evaluation is counted, timed and kept."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from nestbo.files import replaced
from nestbo.gallery.application import Application, Array
from nestbo.history import Observation


class SpentError(Exception):
    """The budget, or the time, is used up; methods are left by it."""


@dataclass
class Evaluations:
    """Calls the objective of an application until the budget is spent or the clock passes ``deadline``.

    A value is NaN where the evaluation failed or a constraint is violated.
    """

    application: Application
    budget: int
    deadline: float = math.inf  # of time.time()
    values: list[float] = field(default_factory=list)
    points: list[Array] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    clock: Callable[[], float] = time.time

    def observe(self, x: Array) -> float | Observation:
        """What the objective returns."""
        if len(self.values) >= self.budget or self.clock() > self.deadline:
            raise SpentError
        began = time.perf_counter()
        try:
            found: float | Observation = self.application.objective(x)
        except Exception:  # whatever a simulator raises is a failed evaluation
            found = math.nan
        self.costs.append(time.perf_counter() - began)
        self.points.append(np.array(x))
        self.values.append(_allowed(found))
        return found

    def told(self, x: Array) -> float:
        """For a method that knows neither failures nor constraints: the worst value, and more the more is amiss."""
        found = self.observe(x)
        if math.isfinite(self.values[-1]):
            return self.values[-1]
        return self.application.worst + _amiss(found)

    def true(self, index: int) -> float:
        """The value of an evaluation, without noise where the application knows it."""
        truth = self.application.truth
        return self.values[index] if truth is None else truth(self.points[index])

    @property
    def best(self) -> int | None:
        """The index of the lowest value."""
        finite = [k for k, value in enumerate(self.values) if math.isfinite(value)]
        return min(finite, key=self.values.__getitem__) if finite else None


def _allowed(found: float | Observation) -> float:
    """A value, NaN if it is none or if a constraint is violated."""
    if isinstance(found, Observation):
        return math.nan if _amiss(found) > 0 else float(found.value)
    return float(found) if math.isfinite(found) else math.nan


def _amiss(found: float | Observation) -> float:
    """By how much constraints are violated, in all."""
    given = found.constraints if isinstance(found, Observation) else None
    return sum(max(0.0, -float(c)) for c in given or ())


@dataclass(frozen=True)
class Run:
    """What one method did on one application: its values, in their order, and the index of the point that it chose.

    ``reached`` is the value there, without noise where the application knows it. ``thought`` and ``evaluation`` are the
    median seconds between evaluations and of one.
    """

    application: str
    method: str
    coordinates: str
    seed: int
    budget: int
    values: tuple[float | None, ...]
    chosen: int | None
    reached: float | None
    thought: float
    evaluation: float

    @property
    def complete(self) -> bool:
        """Whether the budget was used up."""
        return len(self.values) >= self.budget

    def write(self, path: Path) -> None:
        """Into a file, complete or not at all."""
        with replaced(path) as file:
            file.write(json.dumps(asdict(self), allow_nan=False).encode())

    @classmethod
    def read(cls, path: Path) -> Run:
        """From a file."""
        return cls.parse(path.read_text(encoding="utf-8"))

    @classmethod
    def parse(cls, text: str) -> Run:
        """From its text."""
        found = json.loads(text)
        return cls(**{**found, "values": tuple(found["values"])})


def summary(
    made: Evaluations, method: str, coordinates: str, seed: int, seconds: float, chosen: int | None = None
) -> Run:
    """A run as it is kept; ``chosen`` is the index of the lowest value unless the method says another one."""
    index = made.best if chosen is None else chosen
    values = tuple(value if math.isfinite(value) else None for value in made.values)
    thought = max(0.0, seconds - sum(made.costs)) / max(1, len(values))
    evaluation = median(made.costs) if made.costs else 0.0
    reached = None if index is None else made.true(index)
    name = made.application.name
    return Run(name, method, coordinates, seed, made.budget, values, index, reached, thought, evaluation)
