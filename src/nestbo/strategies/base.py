"""What a method is: frozen configuration that turns a history into suggestions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from torch import Tensor

from nestbo.history import History
from nestbo.manifolds import Manifold
from nestbo.specification import Specified
from nestbo.surrogate import Surrogate


@dataclass(frozen=True)
class Suggestion:
    """A point to evaluate, and what the method wants remembered with it (JSON values only)."""

    x: Tensor
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Runs:
    """Several independent runs of equal length, the data of a strategy's core.

    Points (runs, n, *point), values (runs, n) with n ≥ 0, points asked and not yet told (runs, m, *point), one random
    generator per run, the notes of each run's last suggestion, and the variance of the noise of values, if known.
    """

    x: Tensor
    y: Tensor
    pending: Tensor
    rngs: list[torch.Generator]
    notes: list[dict[str, Any]]
    noise: float | None = None
    cache: dict[str, Any] = field(default_factory=dict, compare=False)  # what was computed from x and y

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
            [next((trial.notes for trial in reversed(finished) if trial.notes), {})],
            history.noise,
        )

    def with_pending(self, x: Tensor) -> Runs:
        """The same runs with one more point each that is asked and not yet told."""
        return replace(self, pending=torch.cat([self.pending, x.unsqueeze(1)], 1))


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

    def suggest(self, space: Manifold, history: History, n: int, rng: torch.Generator) -> list[Suggestion]:
        """``n`` different points to evaluate next, each chosen with the earlier ones pending."""
        runs, suggestions = Runs.of(space, history, rng), []
        for _ in range(n):
            x, notes = self.propose(space, runs)
            suggestions.append(Suggestion(x[0], notes[0]))
            runs = runs.with_pending(x)
        return suggestions
