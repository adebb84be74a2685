"""What a method is: frozen configuration that turns a history into suggestions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.history import History
from nestbo.manifolds import Manifold
from nestbo.specification import Specified
from nestbo.surrogate import Surrogate

_FIRST = 10  # values that say what is usual
_IMPROVEMENT = 1e-3  # of (usual − best): less is no success
_FRESH_FIT = 10  # every so many evaluations, and less often later on, a fit starts anew


@dataclass(frozen=True)
class Suggestion:
    """A point to evaluate, and what the method wants remembered with it (JSON values only)."""

    x: Tensor
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Runs:
    """Several independent runs of equal length, the data of a strategy's core.

    Points (runs, n, *point), values (runs, n) with n ≥ 0, points asked and not yet told (runs, m, *point), one random
    generator per run, the notes of each run's evaluations, and the variance of the noise of values, if known.
    """

    x: Tensor
    y: Tensor
    pending: Tensor
    rngs: list[torch.Generator]
    notes: list[list[dict[str, Any]]]
    noise: float | None = None
    cache: dict[str, Any] = field(default_factory=dict, compare=False)  # what was computed from x and y
    asked: list[list[dict[str, Any]]] = field(default_factory=list)  # the notes of pending points

    @classmethod
    def of(cls, space: Manifold, history: History, rng: torch.Generator) -> Runs:
        """A single run, from its history."""
        finished, pending = history.finished, history.pending
        empty = torch.zeros(0, *space.point_shape, dtype=torch.float64)
        return cls(
            (finished.points if finished else empty).unsqueeze(0),
            finished.values.unsqueeze(0),
            (pending.points if pending else empty).unsqueeze(0),
            [rng],
            [[trial.notes for trial in finished]],
            history.noise,
            asked=[[trial.notes for trial in pending]],
        )

    def take(self, which: list[int]) -> Runs:
        """Some of the runs."""
        if len(which) == len(self.rngs):
            return self
        rngs, notes = [self.rngs[k] for k in which], [self.notes[k] for k in which]
        asked = [self.asked[k] for k in which] if self.asked else []
        return Runs(self.x[which], self.y[which], self.pending[which], rngs, notes, self.noise, asked=asked)

    def at(self, x: Tensor, y: Tensor) -> Runs:
        """The same runs with other data."""
        return replace(self, x=x, y=y, cache={})

    def noted(self, key: str) -> list[Any] | None:
        """What each run noted last under a key; None if one of them never did."""
        found = [latest(run, key) for run in self.notes]
        return None if any(note is None for note in found) else found

    @property
    def best(self) -> Tensor:
        """The best point of each run, (runs, 1, *point)."""
        return self.x[torch.arange(len(self.x), device=self.x.device), self.y.argmin(1)].unsqueeze(1)

    def with_pending(self, x: Tensor, notes: list[dict[str, Any]]) -> Runs:
        """The same runs with one more point each that is asked and not yet told."""
        asked = [[*past, note] for past, note in zip(self.asked or [[] for _ in notes], notes, strict=True)]
        return replace(self, pending=torch.cat([self.pending, x.unsqueeze(1)], 1), asked=asked)


def latest(notes: list[dict[str, Any]], key: str) -> Any:
    """What was noted last under a key, or None."""
    return next((note[key] for note in reversed(notes) if key in note), None)


def successes(y: list[float]) -> list[bool]:
    """Which values lowered the best so far noticeably."""
    if not y:
        return []
    with np.errstate(over="ignore"):
        usual, best = float(np.median(y[:_FIRST])), np.minimum.accumulate(y)
        enough = best[:-1] - _IMPROVEMENT * np.abs(usual - best[:-1])
    return [False, *(np.asarray(y[1:]) < enough).tolist()]


@dataclass(frozen=True)
class Standing:
    """How one of several arms of a method is doing: suggestions made, their share of all, and chance of success."""

    arm: str
    suggestions: int
    share: float
    score: float


class Strategy(Specified, ABC):
    """A method of choosing points. It remembers nothing: a suggestion is a function of space, history and generator."""

    @classmethod
    @abstractmethod
    def samples(cls) -> list[Self]:
        """A few configurations on which the laws are tested."""

    @abstractmethod
    def propose(self, space: Manifold, runs: Runs) -> tuple[Tensor, list[dict[str, Any]]]:
        """One point for each run, (runs, *point), with notes: the core, in which runs are a batch axis."""

    def check(self, space: Manifold) -> None:
        """Raise if the method cannot work on this space: before anything is evaluated, not after."""

    def models(self, space: Manifold, runs: Runs) -> dict[str, Surrogate]:
        """The surrogates behind the next suggestion, by name, the leading one first; none for a method without."""
        return {}

    def standings(self, space: Manifold, runs: Runs) -> list[Standing]:
        """How the competing arms of a method are doing in the first run; none for a method without."""
        return []

    def suggest(self, space: Manifold, history: History, n: int, rng: torch.Generator) -> list[Suggestion]:
        """``n`` different points to evaluate next, each chosen with the earlier ones pending."""
        runs, suggestions = Runs.of(space, history, rng), []
        for _ in range(n):
            x, notes = self.propose(space, runs)
            suggestions.append(Suggestion(x[0], notes[0]))
            runs = runs.with_pending(x, notes)
        return suggestions


def check_choice(name: str, value: Any, known: Collection[str]) -> None:
    """Refuse a name that is not known."""
    if not isinstance(value, str) or value not in known:
        raise ArgumentError(f"{name} is one of {', '.join(known)}, got {value!r}.")


def due(note: dict[str, Any] | None, n: int) -> bool | None:
    """Whether a fit to n evaluations starts anew, given the note of the one before; None if there was none."""
    return None if note is None else _round(n) > _round(note["evaluations"])


def _round(n: int) -> int:
    """How many times fits to up to n evaluations have been due to start anew."""
    return n // _FRESH_FIT if n < 10 * _FRESH_FIT else 6 + n // (3 * _FRESH_FIT)
