"""What a method is: frozen configuration that turns a history into suggestions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from nestbo.constraints import Constraints
from nestbo.errors import ArgumentError
from nestbo.history import History
from nestbo.manifolds import Manifold
from nestbo.specification import Specified
from nestbo.strategies.repeats import drawn_again
from nestbo.strategies.runs import Runs
from nestbo.surrogate import Surrogate

_FIRST = 10  # values that say what is usual
_IMPROVEMENT = 1e-3  # of (usual − best): less is no success
_FRESH_FIT = 10  # every so many evaluations, and less often later on, a fit starts anew


@dataclass(frozen=True)
class Suggestion:
    """A point to evaluate, and what the method wants to know again: a JSON object, which nobody else reads."""

    x: Tensor
    memory: dict[str, Any] = field(default_factory=dict)


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

    @property
    def repeats(self) -> bool:
        """Whether a point that is known may be suggested again: published methods do so, to the letter."""
        return False

    def check(self, space: Manifold) -> None:
        """Raise if the method cannot work on this space: before anything is evaluated, not after."""

    def models(self, space: Manifold, runs: Runs) -> dict[str, Surrogate]:
        """The surrogates behind the next suggestion, by name, the leading one first; none for a method without."""
        return {}

    def standings(self, space: Manifold, runs: Runs) -> list[Standing]:
        """How the competing arms of a method are doing in the first run; none for a method without."""
        return []

    def suggest(
        self,
        space: Manifold,
        history: History,
        n: int,
        rng: torch.Generator,
        *,
        constraints: Constraints | None = None,
    ) -> list[Suggestion]:
        """``n`` different points to evaluate next, each chosen with the earlier ones pending, all of them allowed."""
        runs, suggestions = Runs.of(space, history, rng, constraints), []
        for _ in range(n):
            x, notes = self.propose(space, runs)
            if constraints is not None and not constraints.allows(x[0]):
                x = constraints.nearest(x[0], rng, runs.x[0]).unsqueeze(0)
                notes = [{**notes[0], "moved": "to satisfy the constraints"}]
            if not self.repeats:
                x, notes = drawn_again(space, x, notes, runs)
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
