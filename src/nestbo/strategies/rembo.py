"""REMBO: random linear embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor

from nestbo.manifolds import Box, Manifold
from nestbo.manifolds.base import check_size
from nestbo.strategies.coordinates import Chart, chart
from nestbo.strategies.repeats import unrepeated
from nestbo.strategies.runs import Runs
from nestbo.strategies.sections import InCoordinates, Section

_NOTE = "embedding"  # a seed, from which the embedding is drawn
_FEWEST = 2  # evaluations that make a model


@dataclass(frozen=True, repr=False)
class REMBO(InCoordinates):
    """Search a random subspace: x = A y, projected to the space, with A Gaussian and |y_i| ≤ √d (Wang et al. 2013).

    ``latent_dim`` is d. Since a subspace may miss the optimum, several ``embeddings`` take turns, each with a model of
    its own evaluations; they are drawn once, as the notes keep their seeds. The first two points of each are random.

    The model sees A⁺x, which is y where the projection had nothing to do. Where it had, several y give the same x (all
    of a ray, on the sphere), and are then one input.
    """

    latent_dim: int
    embeddings: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size("latent_dim", self.latent_dim)
        check_size("The number of embeddings", self.embeddings)

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(2, 1), cls(2, 2, coordinates="cholesky")]

    def propose(self, space: Manifold, runs: Runs) -> tuple[Tensor, list[dict[str, Any]]]:
        on, asked = chart(space, self.coordinates), runs.y.shape[1] + runs.pending.shape[1]
        seeds = [self._turn(notes, asked, rng) for notes, rng in zip(runs.notes, runs.rngs, strict=True)]
        own = [_own(notes, seed) for notes, seed in zip(runs.notes, seeds, strict=True)]
        x, notes = runs.x.new_empty(len(seeds), *space.point_shape), [dict[str, Any]() for _ in seeds]
        for mine in dict.fromkeys(own):  # runs whose embeddings made the same evaluations go on together
            which = [run for run, other in enumerate(own) if other == mine]
            known = runs.take(which)
            part = known.only(list(mine))
            if len(mine) < _FEWEST or asked < self.initial:
                explore: Callable[[], Tensor] = partial(self._anywhere, on, [seeds[run] for run in which], part)
                point, found = explore(), [dict[str, Any]() for _ in which]
            else:
                point, found, explore = self.search(on, self.section(on, part), part)
            found = [{_NOTE: seeds[run]} | note for run, note in zip(which, found, strict=True)]
            x[which], found = unrepeated(space, point, found, known, explore)
            for run, note in zip(which, found, strict=True):
                notes[run] = note
        return x, notes

    def _turn(self, notes: list[dict[str, Any]], asked: int, rng: torch.Generator) -> int:
        """The seed of the embedding whose turn it is; a new one until there are enough."""
        known = list(dict.fromkeys(note[_NOTE] for note in notes if _NOTE in note))[: self.embeddings]
        fresh = int(torch.randint(2**53, (), generator=rng, device=rng.device))
        return known[asked % len(known)] if len(known) == self.embeddings else fresh

    def section(self, chart: Chart, runs: Runs) -> Section:
        """Of the embedding in which all these evaluations of a run were made."""
        matrix = self._matrices(chart, [notes[0][_NOTE] for notes in runs.notes]).to(runs.x)
        back, domain = torch.linalg.pinv(matrix).mT, self._domain
        starts = domain.project(chart.coordinates(runs.x) @ back)
        return Section(domain, lambda y: chart.point(y @ matrix.mT), lambda v: v @ back, starts)

    @property
    def _domain(self) -> Box:
        width = math.sqrt(self.latent_dim)
        return Box((-width,) * self.latent_dim, (width,) * self.latent_dim)

    def _matrices(self, chart: Chart, seeds: list[int]) -> Tensor:
        return torch.stack([embedding(chart.size, self.latent_dim, seed) for seed in seeds])

    def _anywhere(self, chart: Chart, seeds: list[int], runs: Runs) -> Tensor:
        """A random point of each embedding."""
        y = torch.stack([self._domain.random(rng=rng) for rng in runs.rngs])
        matrix = self._matrices(chart, seeds).to(y)
        return chart.point((matrix @ y.unsqueeze(-1)).squeeze(-1))


def embedding(size: int, latent_dim: int, seed: int) -> Tensor:
    """A, (size, latent_dim), of independent standard normal entries."""
    return torch.randn(size, latent_dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _own(notes: list[dict[str, Any]], seed: int) -> tuple[int, ...]:
    """Which evaluations were made in an embedding."""
    return tuple(k for k, note in enumerate(notes) if note.get(_NOTE) == seed)
