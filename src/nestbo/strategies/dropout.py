"""Dropout BO: a few random coordinates at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from nestbo.errors import ArgumentError, shown
from nestbo.manifolds.base import check_size
from nestbo.manifolds.euclidean import Cuboid
from nestbo.search.runs import Runs
from nestbo.strategies.coordinates import Vectors
from nestbo.strategies.in_coordinates import InCoordinates, Reduction


@dataclass(frozen=True, repr=False)
class DropoutBO(InCoordinates):
    """Model and optimise some coordinates, drawn anew each time, and fill in the others (Li et al. 2017).

    The vector is then projected to the space.

    Args:
        latent_dim: How many coordinates.
        mix: The probability that the others are those of a random point, and not of the best one: 0 is the paper's
            Dropout-Copy, 1 its Dropout-Random, in between its Dropout-Mix.
        coordinates: "matrix" for the entries of a point, or "cholesky" for the factors of SPD matrices.
        acquisition: The acquisition function: "ei", "logei", "lognei" or "ucb".
        initial: The number of random points at the beginning.
        optimiser: The optimiser of the acquisition function: "lbfgs" or "slsqp".
    """

    latent_dim: int
    mix: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size("latent_dim", self.latent_dim)
        if isinstance(self.mix, bool) or not isinstance(self.mix, int | float) or not 0 <= self.mix <= 1:
            raise ArgumentError(
                f"mix is a probability between 0 (copy the best) and 1 (random), got {shown(self.mix)}."
            )

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(2), cls(2, 1.0, coordinates="cholesky")]

    def reduction(self, on: Vectors, runs: Runs) -> Reduction:
        chosen = torch.stack([_some(on.size, self.latent_dim, rng) for rng in runs.rngs]).unsqueeze(1)
        others, half = self.others(on, runs), runs.x.new_tensor(on.half)[chosen]
        domain = Cuboid((-1.0,) * self.latent_dim, (1.0,) * self.latent_dim)
        starts = domain.project(taken(on.coordinates(runs.x), chosen) / half)
        return Reduction(
            domain, lambda z: on.point(filled(others, chosen, half * z)), lambda v: taken(v, chosen), starts
        )

    def others(self, on: Vectors, runs: Runs) -> Tensor:
        """Coordinates (runs, 1, size) of the best point of each run or, now and then, of a random one.

        Args:
            on: The coordinates of the space.
            runs: The data: evaluations, pending points and memories of each run.
        """
        dropped = [torch.rand((), generator=rng, device=rng.device) < self.mix for rng in runs.rngs]
        anywhere = torch.stack([on.space.random(1, rng=rng) for rng in runs.rngs])
        best, anywhere = on.coordinates(runs.best), on.coordinates(anywhere)
        return torch.where(torch.stack(dropped)[:, None, None], anywhere, best)


def taken(v: Tensor, chosen: Tensor) -> Tensor:
    """The chosen (runs, 1, d) of coordinates (…, runs, n, size)."""
    return v.gather(-1, chosen.expand(*v.shape[:-1], chosen.shape[-1]))


def filled(others: Tensor, chosen: Tensor, values: Tensor) -> Tensor:
    """Coordinates (…, runs, n, size) with given values (…, runs, n, d) at the chosen places and all others as given."""
    batch = values.shape[:-1]
    return others.expand(*batch, others.shape[-1]).scatter(-1, chosen.expand(values.shape), values)


def _some(size: int, count: int, rng: torch.Generator) -> Tensor:
    return torch.randperm(size, generator=rng, device=rng.device)[:count]
