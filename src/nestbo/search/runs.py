"""The data of a strategy: several runs of equal length, as tensors, with what was remembered along the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from nestbo.constraints import Constraints
from nestbo.fronts import ranks
from nestbo.history import History
from nestbo.manifolds import Space
from nestbo.memory import Fit, Memory
from nestbo.surrogate import Data, Effort

_PER_EVALUATION = ("noise", "constraints", "feasible", "violation", "failed", "posterior", "outcomes")
_FRESH_FIT = 10  # every so many evaluations a fit starts anew, and every so many times three later on
_LATER = 100  # evaluations
_FIRST = 10  # values that say what is usual
_IMPROVEMENT = 1e-3  # of (usual − best): less is no success

T = TypeVar("T")


@dataclass(frozen=True)
class Runs:
    """Several independent runs of equal length, the data of a strategy's core.

    ============ =====================================================================================================
    x, y         evaluated points (runs, n, *point) and values (runs, n), n ≥ 0; failures count as the worst value
    pending      points asked and not yet told, (runs, m, *point)
    rngs         one random generator for each run
    memories     what was remembered with each evaluation of each run
    asked        the same of pending points; empty if there are none
    indices      the indices of the trials of each run; empty where these are 0, 1, 2, …
    noise        the variance of the noise of values, if known: one number, or one for each value (runs, n)
    noisy        whether values are not to be taken as exact
    allowed      constraints known in advance
    constraints  what was observed of others, (runs, n, m)
    feasible     which evaluations violate none of either kind, (runs, n); None if all do
    violation    by how much evaluations violate constraints known in advance, (runs, n); None if none does
    failed       which evaluations failed, (runs, n); None if none did
    posterior    means of a model at the evaluated points, (runs, n), which rank them where values are noisy
    outcomes     values (runs, n, m) where there are m objectives, whose ranks y then are; None for a single one
    variances    those of the noise of each of several objectives, if known
    whole        the same runs with all their evaluations, where these are only some; None where they are all
    ============ =====================================================================================================
    """

    x: Tensor
    y: Tensor
    pending: Tensor
    rngs: list[torch.Generator]
    memories: list[list[Memory]]
    asked: list[list[Memory]] = field(default_factory=list)
    indices: list[list[int]] = field(default_factory=list)
    noise: float | Tensor | None = None
    noisy: bool = False
    allowed: Constraints | None = None
    constraints: Tensor | None = None
    feasible: Tensor | None = None
    violation: Tensor | None = None
    failed: Tensor | None = None
    posterior: Tensor | None = None
    outcomes: Tensor | None = None
    variances: tuple[float, ...] | None = None
    whole: Runs | None = None

    @classmethod
    def of(cls, space: Space, history: History, rng: torch.Generator, allowed: Constraints | None = None) -> Runs:
        """A single run, from its history."""
        finished, pending = history.finished, history.pending
        variances, constraints = finished.variances, finished.constraints
        empty = torch.zeros(0, *space.point_shape, dtype=torch.float64)
        noise = history.noise if isinstance(history.noise, float) else None
        outcomes = finished.outcomes if history.several and finished else None
        return cls(
            (finished.points if finished else empty).unsqueeze(0),
            _ranked(finished, outcomes).unsqueeze(0),
            (pending.points if pending else empty).unsqueeze(0),
            [rng],
            [[trial.memory for trial in finished]],
            asked=[[trial.memory for trial in pending]],
            indices=[[trial.index for trial in finished]],
            noise=noise if variances is None else variances.unsqueeze(0),
            noisy=history.noise is not None or variances is not None,
            allowed=allowed,
            constraints=None if constraints is None else constraints.unsqueeze(0),
            outcomes=None if outcomes is None else outcomes.unsqueeze(0),
            variances=history.noise if isinstance(history.noise, tuple) else None,
            **_facts(finished, constraints),
        )

    @property
    def data(self) -> Data:
        """What a model of the values is fitted to."""
        return Data(self.x, self.y, self.rngs, self.noise, None if self.whole is None else self.whole.y.shape[1])

    @property
    def record(self) -> Runs:
        """All evaluations: what is counted and remembered, and which points are known, depends on these."""
        return self if self.whole is None else self.whole

    @property
    def count(self) -> int:
        """How many evaluations each run has, with those under way."""
        return self.record.y.shape[1] + self.pending.shape[1]

    def begun(self, initial: int) -> bool:
        """Whether the random points of the beginning have been asked, and one of them told."""
        return self.y.shape[1] > 0 and self.count >= initial

    def take(self, which: list[int]) -> Runs:
        """Some of the runs."""
        if len(which) == len(self.rngs):
            return self
        names = ("x", "y", "pending", "rngs", "memories", "asked", "indices", *_PER_EVALUATION)
        whole = None if self.whole is None else self.whole.take(which)
        return replace(self, **{name: _part(getattr(self, name), which) for name in names}, whole=whole)

    def only(self, which: list[int]) -> Runs:
        """The same runs with some of their evaluations; who asked for pending points is then unknown."""
        columns = (slice(None), which)
        tensors: dict[str, Any] = {name: _part(getattr(self, name), columns) for name in ("x", "y", *_PER_EVALUATION)}
        memories = [_part(run, which) for run in self.memories]
        indices = [_part(run, which) for run in self.indices]
        return replace(self, **tensors, memories=memories, indices=indices, asked=[])

    def at(self, x: Tensor, y: Tensor, which: Tensor | None = None) -> Runs:
        """The same runs with other data, of all their evaluations, or of those at places ``which`` (runs, k)."""
        place = slice(None) if which is None else (torch.arange(len(y), device=y.device).unsqueeze(-1), which)
        parts: dict[str, Any] = {name: _part(getattr(self, name), place) for name in _PER_EVALUATION}
        return replace(self, x=x, y=y, **parts)

    def random(self, space: Space) -> Tensor:
        """A random point of the space for each run, (runs, *point), allowed where constraints are known."""
        if self.allowed is None:
            return space.random_each(1, self.rngs)[0]
        return torch.stack([self.allowed.random(rng) for rng in self.rngs])

    def index(self, run: int, place: int) -> int:
        """The index of the trial at a place of a run."""
        return self.indices[run][place] if self.indices else place

    @property
    def best(self) -> Tensor:
        """The best point of each run, (runs, 1, *point)."""
        runs = torch.arange(len(self.x), device=self.x.device)
        return self.x[runs, self.ranking.argmin(1)].unsqueeze(1)

    @property
    def ranking(self) -> Tensor:
        """Numbers (runs, n), the less the better: values; where some violate constraints, ranks, these last."""
        y = self.y if self.posterior is None else self.posterior
        if self.feasible is None:
            return y
        by_value = y.argsort(-1)
        violation = self._violations.gather(-1, by_value)
        return by_value.gather(-1, violation.argsort(dim=-1, stable=True)).argsort(-1).to(self.y)

    @property
    def _violations(self) -> Tensor:
        """How much evaluations violate constraints, in units of the deviation of each, (runs, n)."""
        known = torch.zeros_like(self.y) if self.violation is None else self.violation
        if self.constraints is None:
            return known
        unit = self.constraints.std(-2, keepdim=True, correction=0)
        return known + ((-self.constraints).clamp(min=0) / torch.where(unit > 0, unit, 1)).sum(-1)

    @property
    def scores(self) -> list[list[float]]:
        """Values by which successes are counted: infeasible ones as the worst, changes within the noise as none."""
        y = self.y
        if self.feasible is not None:
            y = torch.where(self.feasible, y, y.amax(-1, keepdim=True))
        return [settled(values, width) for values, width in zip(y.tolist(), self._widths, strict=True)]

    @property
    def _widths(self) -> list[float]:
        """The standard deviation of the noise in each run: known, or as the last fit has it."""
        if self.noise is None:
            inferred = [latest(run, lambda memory: memory.noise) or 0.0 for run in self.memories]
            return [math.sqrt(variance) if self.noisy else 0.0 for variance in inferred]
        noise = self.noise if isinstance(self.noise, Tensor) else self.y.new_full((len(self.y), 1), self.noise)
        widths: list[float] = noise.mean(-1).sqrt().tolist()
        return widths

    def with_pending(self, x: Tensor, memories: list[Memory]) -> Runs:
        """The same runs with one more point each that is asked and not yet told."""
        before = self.asked or [[] for _ in memories]
        asked = [[*past, memory] for past, memory in zip(before, memories, strict=True)]
        return replace(self, pending=torch.cat([self.pending, x.unsqueeze(1)], 1), asked=asked)


def _ranked(finished: History, outcomes: Tensor | None) -> Tensor:
    """Numbers (n,), the less the better: values or, where there are several objectives, the ranks of fronts."""
    if outcomes is not None:
        return ranks(outcomes)
    return torch.zeros(0, dtype=torch.float64) if finished.several else finished.values


def _facts(finished: History, constraints: Tensor | None) -> dict[str, Any]:
    """Which evaluations of one run are feasible, by how much others are not, and which failed."""
    feasible = torch.tensor([trial.feasible for trial in finished], dtype=torch.bool)
    if constraints is not None:
        feasible &= (constraints >= 0).all(-1)
    violation = torch.tensor([trial.told.violation or 0.0 for trial in finished], dtype=torch.float64)
    failed = torch.tensor([trial.status == "failed" for trial in finished], dtype=torch.bool)
    return {
        "feasible": None if constraints is None and feasible.all() else feasible.unsqueeze(0),
        "violation": violation.unsqueeze(0) if violation.any() else None,
        "failed": failed.unsqueeze(0) if failed.any() else None,
    }


def successes(y: Sequence[float], least: float = _IMPROVEMENT) -> list[bool]:
    """Which values lowered the best so far noticeably: by a share of its distance to the median of the first."""
    if not y:
        return []
    with np.errstate(over="ignore"):
        usual, best = float(np.median(y[:_FIRST])), np.minimum.accumulate(y)
        enough = best[:-1] - least * np.abs(usual - best[:-1])
    return [False, *(np.asarray(y[1:]) < enough).tolist()]


def settled(y: list[float], width: float) -> list[float]:
    """The values with every one that is lower than all before by less than ``width`` raised to the least of these."""
    if width == 0:
        return y
    found, best = [], math.inf
    for value in y:
        found.append(value if value < best - width else max(value, best))
        best = min(best, found[-1])
    return found


def _part(whole: Any, which: Any) -> Any:
    """Some entries of a tensor or list; of anything else, or of an empty list, all."""
    if isinstance(whole, Tensor):
        return whole[which]
    return [whole[k] for k in which] if isinstance(whole, list) and whole else whole


def latest(memories: list[Memory], read: Callable[[Memory], T | None]) -> T | None:
    """What the newest memory that has it says, or None."""
    return next((found for memory in reversed(memories) if (found := read(memory)) is not None), None)


class Refit(NamedTuple):
    """From which fit the next one of a run starts, None if it is the first, and how much effort it takes."""

    fit: Fit | None
    effort: Effort


def refits(runs: Runs, model: str, *, shared: bool = True) -> list[Refit]:
    """How a model is to be fitted to each run.

    A fit that a point under evaluation was suggested with is taken over as long as nothing was told since, if it is
    ``shared`` among the suggestions.
    """
    runs = runs.record
    asked = runs.asked if shared and runs.asked else [[] for _ in runs.rngs]
    return [_refit(model, *pair, runs.y.shape[1]) for pair in zip(runs.memories, asked, strict=True)]


def _refit(model: str, told: list[Memory], asked: list[Memory], n: int) -> Refit:
    read: Callable[[Memory], Fit | None] = lambda memory: memory.fits.get(model)
    current, last = latest(asked, read), latest(told, read)
    if current is not None and current.evaluations == n:
        return Refit(current, Effort.NONE)
    return Refit(last, Effort.ANEW if last is None or _due(last, n) else Effort.FEW_STEPS)


def together(each: list[Refit]) -> tuple[list[Fit] | None, Effort]:
    """The same for several runs at once: the previous fits, None if a run has none yet, and the largest effort."""
    fits = [one.fit for one in each if one.fit is not None]
    effort = max((one.effort for one in each), key=lambda effort: effort.value)
    return (fits, effort) if len(fits) == len(each) else (None, Effort.ANEW)


def _due(fit: Fit, n: int) -> bool:
    """Whether a fit to n evaluations starts anew, given the one before."""
    return _round(n) > _round(fit.evaluations)


def _round(n: int) -> int:
    """How many times fits to up to n evaluations have been due to start anew."""
    return n // _FRESH_FIT if n < _LATER else 6 + n // (3 * _FRESH_FIT)
