"""REMBO: random linear embeddings."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import torch
from torch import Tensor

from nestbo.manifolds import Space
from nestbo.manifolds.base import check_size
from nestbo.manifolds.euclidean import Cuboid
from nestbo.memory import Memory
from nestbo.search import Runs, seen, unrepeated
from nestbo.strategies.base import alike
from nestbo.strategies.coordinates import Vectors, vectors
from nestbo.strategies.in_coordinates import InCoordinates, Reduction

_FEWEST = 2  # evaluations that make a model


@dataclass(frozen=True, repr=False)
class REMBO(InCoordinates):
    """Search a random subspace: x = A y, projected to the space, with A Gaussian and |y_i| ≤ √d (Wang et al. 2013).

    Each embedding A is drawn once; memories keep its seed as ``frame``. The first two points of each embedding are
    random. The model sees A⁺x, which is y if the projection changes nothing. If the projection changes a point, several
    y give the same x (a whole ray on the sphere), and the model sees them as one input.

    Args:
        latent_dim: The dimension d of the subspace.
        embeddings: The number of subspaces that take turns. Each has a model of its own evaluations. A single subspace
            may miss the optimum.
        coordinates: "matrix" for the entries of a point, or "cholesky" for the factors of SPD matrices.
        acquisition: The acquisition function: "ei", "logei", "lognei" or "ucb".
        initial: The number of random points at the beginning.
        optimiser: The optimiser of the acquisition function: "lbfgs" or "slsqp".
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

    def propose(self, space: Space, runs: Runs) -> tuple[Tensor, list[Memory]]:
        on = vectors(space, self.coordinates)
        seeds = [self._turn(memories, runs.count, rng) for memories, rng in zip(runs.memories, runs.rngs, strict=True)]
        own = [_own(memories, seed) for memories, seed in zip(runs.memories, seeds, strict=True)]
        x, memories = runs.x.new_empty(len(seeds), *space.point_shape), [Memory(frame=seed) for seed in seeds]
        for mine, which in alike(own).items():  # runs whose embeddings made the same evaluations go on together
            known = runs.take(which)
            part = seen(space, known.only(list(mine)))
            if len(mine) < _FEWEST or runs.count < self.initial:
                anywhere = partial(self._anywhere, on, [seeds[run] for run in which], part)
                x[which], found = unrepeated(space, anywhere(), [Memory() for _ in which], known, anywhere)
            else:
                x[which], found = self.searched(on, self.reduction(on, part), part, known)
            for run, memory in zip(which, found, strict=True):
                memories[run] = replace(memory, frame=seeds[run])
        return x, memories

    def _turn(self, memories: list[Memory], asked: int, rng: torch.Generator) -> int:
        """The seed of the embedding whose turn it is; a new one until there are enough."""
        named = dict.fromkeys(memory.frame for memory in memories if memory.frame is not None)
        known = list(named)[: self.embeddings]
        fresh = int(torch.randint(2**53, (), generator=rng, device=rng.device))
        return known[asked % len(known)] if len(known) == self.embeddings else fresh

    def reduction(self, on: Vectors, runs: Runs) -> Reduction:
        """Of the embedding in which all these evaluations of a run were made."""
        matrix = self._matrices(on, [memories[0].frame or 0 for memories in runs.memories]).to(runs.x)
        back, domain = torch.linalg.pinv(matrix).mT, self._domain
        starts = domain.project(on.coordinates(runs.x) @ back)
        return Reduction(domain, lambda y: on.point(y @ matrix.mT), lambda v: v @ back, starts)

    @property
    def _domain(self) -> Cuboid:
        width = math.sqrt(self.latent_dim)
        return Cuboid((-width,) * self.latent_dim, (width,) * self.latent_dim)

    def _matrices(self, on: Vectors, seeds: list[int]) -> Tensor:
        return torch.stack([embedding(on.size, self.latent_dim, seed) for seed in seeds])

    def _anywhere(self, on: Vectors, seeds: list[int], runs: Runs) -> Tensor:
        """A random point of each embedding."""
        y = torch.stack([self._domain.random(rng=rng) for rng in runs.rngs])
        matrix = self._matrices(on, seeds).to(y)
        return on.point((matrix @ y.unsqueeze(-1)).squeeze(-1))


def embedding(size: int, latent_dim: int, seed: int) -> Tensor:
    """A, (size, latent_dim), of independent standard normal entries."""
    return torch.randn(size, latent_dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _own(memories: list[Memory], seed: int) -> tuple[int, ...]:
    """Which evaluations were made in an embedding."""
    return tuple(k for k, memory in enumerate(memories) if memory.frame == seed)
