"""The data of a strategy: several runs of equal length, as tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from nestbo.constraints import Constraints
from nestbo.history import History
from nestbo.manifolds import Manifold

INFERRED = "inferred_noise"  # in the notes of noisy runs: the variance that the last fit found
_PER_EVALUATION = ("noise", "constraints", "feasible", "posterior", "failed", "violation")


@dataclass(frozen=True)
class Runs:
    """Several independent runs of equal length, the data of a strategy's core.

    Points (runs, n, *point), values (runs, n) with n ≥ 0, points asked and not yet told (runs, m, *point), one random
    generator per run, the memories of each run's evaluations, and the variance of the noise of values, if known: one
    number, or one for each value (runs, n). ``noisy`` says that values are not to be taken as exact. ``allowed`` are
    constraints known in advance, ``constraints`` (runs, n, m) what was observed of others, and ``feasible`` (runs, n)
    which evaluations violate none of either kind; None if there are none, or no violation. ``posterior`` (runs, n) are
    means of a model at the evaluated points, which rank them where values are noisy. ``failed`` (runs, n) says which
    evaluations gave no value, and ``violation`` (runs, n) by how much points violate constraints known in advance; None
    if none did.
    """

    x: Tensor
    y: Tensor
    pending: Tensor
    rngs: list[torch.Generator]
    notes: list[list[dict[str, Any]]]
    noise: float | Tensor | None = None
    cache: dict[str, Any] = field(default_factory=dict, compare=False)  # what was computed from x and y
    asked: list[list[dict[str, Any]]] = field(default_factory=list)  # the notes of pending points
    noisy: bool = False
    allowed: Constraints | None = None
    constraints: Tensor | None = None
    feasible: Tensor | None = None
    posterior: Tensor | None = None
    failed: Tensor | None = None
    violation: Tensor | None = None

    @classmethod
    def of(cls, space: Manifold, history: History, rng: torch.Generator, allowed: Constraints | None = None) -> Runs:
        """A single run, from its history."""
        finished, pending = history.finished, history.pending
        variances, constraints = finished.variances, finished.constraints
        noise = history.noise if isinstance(history.noise, float) else None
        feasible = torch.tensor([trial.feasible for trial in finished])
        if constraints is not None:
            feasible &= (constraints >= 0).all(-1)
        failed = torch.tensor([trial.status == "failed" for trial in finished])
        violation = torch.tensor([trial.told.violation or 0.0 for trial in finished], dtype=torch.float64)
        empty = torch.zeros(0, *space.point_shape, dtype=torch.float64)
        return cls(
            (finished.points if finished else empty).unsqueeze(0),
            finished.values.unsqueeze(0),
            (pending.points if pending else empty).unsqueeze(0),
            [rng],
            [[trial.memory for trial in finished]],
            noise if variances is None else variances.unsqueeze(0),
            asked=[[trial.memory for trial in pending]],
            noisy=history.noise is not None or variances is not None,
            allowed=allowed,
            constraints=None if constraints is None else constraints.unsqueeze(0),
            feasible=None if constraints is None and feasible.all() else feasible.unsqueeze(0),
            failed=failed.unsqueeze(0) if failed.any() else None,
            violation=violation.unsqueeze(0) if violation.any() else None,
        )

    def take(self, which: list[int]) -> Runs:
        """Some of the runs."""
        if len(which) == len(self.rngs):
            return self
        names = ("x", "y", "pending", *_PER_EVALUATION)
        parts: dict[str, Any] = {name: _part(getattr(self, name), which) for name in names}
        parts |= {name: [getattr(self, name)[k] for k in which] for name in ("rngs", "notes")}
        asked = [self.asked[k] for k in which] if self.asked else []
        return replace(self, **parts, asked=asked, cache={})

    def only(self, which: list[int]) -> Runs:
        """The same runs with some of their evaluations."""
        notes = [[past[k] for k in which] for past in self.notes]
        columns = (slice(None), which)
        tensors: dict[str, Any] = {name: _part(getattr(self, name), columns) for name in ("x", "y", *_PER_EVALUATION)}
        return replace(self, **tensors, notes=notes, cache={})

    def at(self, x: Tensor, y: Tensor, which: Tensor | None = None) -> Runs:
        """The same runs with other data, of all their evaluations, or of those at places ``which`` (runs, k)."""
        place = slice(None) if which is None else (torch.arange(len(y), device=y.device).unsqueeze(-1), which)
        parts: dict[str, Any] = {name: _part(getattr(self, name), place) for name in _PER_EVALUATION}
        return replace(self, x=x, y=y, **parts, cache={})

    def random(self, space: Manifold) -> Tensor:
        """A random point of the space for each run, (runs, *point), allowed where constraints are known."""
        if self.allowed is None:
            return space.random_each(1, self.rngs)[0]
        return torch.stack([self.allowed.random(rng) for rng in self.rngs])

    def noted(self, key: str) -> list[Any] | None:
        """What each run noted last under a key; None if one of them never did."""
        found = [latest(run, key) for run in self.notes]
        return None if any(note is None for note in found) else found

    @property
    def best(self) -> Tensor:
        """The best point of each run, (runs, 1, *point)."""
        return self.x[torch.arange(len(self.x), device=self.x.device), self.ranking.argmin(1)].unsqueeze(1)

    @property
    def ranking(self) -> Tensor:
        """Numbers (runs, n), the less the better: values; where some violate constraints, ranks, these last."""
        y = self.y if self.posterior is None else self.posterior
        if self.feasible is None:
            return y
        by_value = y.argsort(-1)
        violation = self._violation.gather(-1, by_value)
        return by_value.gather(-1, violation.argsort(dim=-1, stable=True)).argsort(-1).to(self.y)

    @property
    def _violation(self) -> Tensor:
        """How much evaluations violate constraints, in units of the deviation of each, (runs, n)."""
        assert self.feasible is not None
        known = torch.zeros_like(self.y) if self.violation is None else self.violation.to(self.y)
        if self.constraints is None:
            return known
        unit = self.constraints.std(-2, keepdim=True, correction=0)
        return known + ((-self.constraints).clamp(min=0) / torch.where(unit > 0, unit, 1)).sum(-1)

    @property
    def scores(self) -> list[list[float]]:
        """Values of each run as arms are judged by: infeasible ones as the worst, changes within the noise as none."""
        y = self.y if self.feasible is None else torch.where(self.feasible, self.y, self.y.amax(-1, keepdim=True))
        return [settled(values, width) for values, width in zip(y.tolist(), self._widths, strict=True)]

    @property
    def _widths(self) -> list[float]:
        """The standard deviation of the noise in each run: known, or as the last fit has it."""
        if self.noise is None:
            return [math.sqrt(latest(run, INFERRED) or 0.0) if self.noisy else 0.0 for run in self.notes]
        noise = self.noise if isinstance(self.noise, Tensor) else self.y.new_full((len(self.y), 1), self.noise)
        widths: list[float] = noise.mean(-1).sqrt().tolist()
        return widths

    def with_pending(self, x: Tensor, notes: list[dict[str, Any]]) -> Runs:
        """The same runs with one more point each that is asked and not yet told."""
        asked = [[*past, note] for past, note in zip(self.asked or [[] for _ in notes], notes, strict=True)]
        return replace(self, pending=torch.cat([self.pending, x.unsqueeze(1)], 1), asked=asked)


def settled(y: list[float], width: float) -> list[float]:
    """The values with every one that is lower than all before by less than ``width`` raised to the least of these."""
    if width == 0:
        return y
    found, best = [], math.inf
    for value in y:
        found.append(value if value < best - width else max(value, best))
        best = min(best, found[-1])
    return found


def _part(tensor: Any, which: Any) -> Any:
    return tensor[which] if isinstance(tensor, Tensor) else tensor


def latest(notes: list[dict[str, Any]], key: str) -> Any:
    """What was noted last under a key, or None."""
    return next((note[key] for note in reversed(notes) if key in note), None)
