"""Many trials of one method, advanced together: those of one problem, or of several problems on one space.

A trial's projection, initial points and random numbers depend on its seed alone, so that all methods of a trial start
from the same points; only the oracle draws its own, in the latent space.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nestbo.experiment.rivals import method
from nestbo.manifolds import Space, space
from nestbo.manifolds.base import check_size
from nestbo.memory import Memory
from nestbo.problems import Posed, Problem, pose
from nestbo.strategies import GaBO, Runs, Strategy

INITIAL = 5
ORACLE = "oracle"
_RANGE = 1000  # random points that say which values are usual
_NOISE = 1  # which of a seed's streams of random numbers the noise comes from


@dataclass(frozen=True)
class Trials:
    """Trials of a method on a problem, one for each seed; the method is a strategy's text, or "oracle".

    The oracle knows the hidden mapping: it is GaBO on the latent space. ``noise`` is the
    standard deviation of what is observed, in units of the range of values (see ``noises``).
    """

    problem: str
    space: str
    method: str
    seeds: tuple[int, ...]
    latent_dim: int | None = None
    noise: float = 0.0

    def __post_init__(self) -> None:
        check_size("The number of trials", len(self.seeds))

    @property
    def name(self) -> str:
        """A file name."""
        seeds = f"{self.seeds[0]}-{self.seeds[-1]}"
        parts = [self.problem, self.space, f"in{self.latent_dim}", self.method, seeds]
        parts += [f"noise{self.noise:g}"] if self.noise else []
        return "__".join(parts).replace(":", "_").replace(",", "_").replace("=", "") + ".npz"

    def problems(self) -> list[Problem | Posed]:
        """One for each trial, with the projection drawn from its seed."""
        return [pose(self.problem, space(self.space), latent_dim=self.latent_dim, seed=seed) for seed in self.seeds]


@dataclass(frozen=True)
class Progress:
    """Where trials stand: points (trials, n, *point), values (trials, n) as they were observed, memories of each trial.

    ``exact`` (trials, n) are the values without noise. ``seconds`` (n,) are those that the suggestions of all trials
    took together, 0 for the random points.
    """

    x: Tensor
    y: Tensor
    memories: list[list[Memory]]
    seconds: tuple[float, ...]
    exact: Tensor

    def rows(self, first: int, count: int) -> Progress:
        """Some of the trials, with their share of the seconds."""
        own, share = slice(first, first + count), count / len(self.y)
        seconds = tuple(share * passed for passed in self.seconds)
        return Progress(self.x[own], self.y[own], self.memories[own], seconds, self.exact[own])

    @classmethod
    def joined(cls, parts: Sequence[Progress]) -> Progress:
        """Trials of several kinds that have come equally far, as one batch."""
        x, y, exact = (torch.cat([getattr(part, name) for part in parts]) for name in ("x", "y", "exact"))
        memories = [own for part in parts for own in part.memories]
        steps = zip(*(part.seconds for part in parts), strict=True)
        return cls(x, y, memories, tuple(map(sum, steps)), exact)


@dataclass(frozen=True)
class Setting:
    """What a batch of trials is advanced with.

    ============ =====================================================================================================
    seeds        one for each trial
    method       the strategy of all of them
    where        the space that the strategy sees
    objective    the values (trials,) at points (trials, *point) of that space
    sizes        the standard deviation of each trial's noise
    ============ =====================================================================================================
    """

    seeds: tuple[int, ...]
    method: Strategy
    where: Space
    objective: Callable[[Tensor], Tensor]
    sizes: tuple[float, ...]

    @classmethod
    def of(cls, parts: Sequence[Trials], device: str) -> Setting:
        """That of trials that have a space and a method in common."""
        problems = [p.to(device) for part in parts for p in part.problems()]
        seeds = tuple(seed for part in parts for seed in part.seeds)
        sizes = tuple(size for part in parts for size in noises(part))

        def objective(x: Tensor) -> Tensor:
            return torch.stack([p.objective(point) for p, point in zip(problems, x, strict=True)])

        def lifted(z: Tensor) -> Tensor:
            return objective(torch.stack([p.mapping.lift(point) for p, point in zip(problems, z, strict=True)]))

        if parts[0].method == ORACLE:
            return cls(seeds, GaBO(), problems[0].mapping.latent, lifted, sizes)
        return cls(seeds, method(parts[0].method), problems[0].space, objective, sizes)

    def begin(self, device: str) -> Progress:
        """The random points with which trials begin."""
        x = torch.stack([self.where.random(INITIAL, rng=_rng(seed, 0, "cpu")) for seed in self.seeds]).to(device)
        exact = torch.stack([self.objective(point) for point in x.unbind(1)], 1)
        y = torch.stack([self._observed(k, column) for k, column in enumerate(exact.unbind(1))], 1)
        return Progress(x, y, [[Memory() for _ in range(INITIAL)] for _ in self.seeds], (0.0,) * INITIAL, exact)

    def advance(self, state: Progress) -> Progress:
        """One more evaluation of every trial."""
        before, n = time.monotonic(), state.y.shape[1]
        rngs = [_rng(seed, n, state.x.device) for seed in self.seeds]
        runs = Runs(state.x, state.y, state.x[:, :0], rngs, state.memories, noisy=any(self.sizes))
        x, memories = self.method.propose(self.where, runs)
        exact = self.objective(x)
        y = torch.cat([state.y, self._observed(n, exact).unsqueeze(1)], 1)
        grown = [[*_lightened(past, new), new] for past, new in zip(state.memories, memories, strict=True)]
        seconds = (*state.seconds, time.monotonic() - before)
        exact = torch.cat([state.exact, exact.unsqueeze(1)], 1)
        return Progress(torch.cat([state.x, x.unsqueeze(1)], 1), y, grown, seconds, exact)

    def _observed(self, index: int, exact: Tensor) -> Tensor:
        """Values (trials,) of evaluation ``index`` with their noise, which depends on the seed and the index alone."""
        if not any(self.sizes):
            return exact
        rngs = [_rng(seed, index, "cpu", _NOISE) for seed in self.seeds]
        drawn = torch.stack([torch.randn((), generator=rng, dtype=torch.float64) for rng in rngs])
        return exact + (drawn * torch.tensor(self.sizes, dtype=torch.float64)).to(exact.device)


def noises(trials: Trials) -> tuple[float, ...]:
    """The standard deviation of each trial's noise: a share of the median of random values above the least value."""
    if not trials.noise:
        return (0.0,) * len(trials.seeds)
    rng = torch.Generator().manual_seed(0)
    ranges = [p.objective(p.space.random(_RANGE, rng=rng)).median().item() - p.optimal_value for p in trials.problems()]
    return tuple(trials.noise * width for width in ranges)


def _lightened(past: list[Memory], new: Memory) -> list[Memory]:
    """Memories without the nested models that a new one replaces: only the last is of use, and bases are large."""
    replaced = [name for name, fit in new.fits.items() if fit.basis]
    return [memory.without(replaced) for memory in past]


def _rng(seed: int, index: int, device: Any, *stream: int) -> torch.Generator:
    state = np.random.SeedSequence([seed, index, *stream]).generate_state(1, np.uint64)[0]
    return torch.Generator(device=device).manual_seed(int(state))
