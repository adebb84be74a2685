"""The multistart search behind the stored optima; ``benchmarks/optima.py`` rewrites their table with it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from nestbo.linalg import inner
from nestbo.manifolds import SPD, Box, Euclidean, Product, Quaternion, Space, Sphere, leaf
from nestbo.optimise import lbfgs, trust_region
from nestbo.problems.coordinates import coordinates, from_coordinates, within
from nestbo.problems.functions import Formula

TABULATED: tuple[Space, ...] = (
    *(Sphere(n) for n in (2, 3, 5, 10, 20)),
    *(SPD(n, eigenvalues=(1e-3, 5.0)) for n in (2, 3, 5)),
    *(SPD(n) for n in (2, 3)),
    *(Box((-2.0,) * n, (3.0,) * n) for n in (6, 20)),  # no minimiser lies in the middle
    Quaternion(),
    Product(Quaternion(), Box((-2.0,) * 3, (3.0,) * 3)),
)


def find_optimum(function: Formula, space: Space, starts: int = 200, seed: int = 0) -> tuple[float, list[float], bool]:
    """The least value over the feasible coordinates, where, and whether it is attained there.

    A closed-form minimiser is taken where it is feasible. Otherwise many starts are refined, random ones and as many
    around that minimiser: on the sphere over the ball |t| ≤ π of coordinates, whose whole boundary is the antipode, so
    that a minimum there is an infimum only.
    """
    if function.minimiser is not None:
        t = torch.full((space.dim,), function.minimiser, dtype=torch.float64)
        if within(space, t):
            return function.value(t).item(), t.tolist(), True
    seek = _search_ball if isinstance(space, Sphere) else _search_space
    t = seek(function, space, starts, torch.Generator().manual_seed(seed))
    values = function.value(t)
    best = t[values.argmin()]
    attained = not isinstance(space, Sphere) or best.norm().item() < math.pi - 1e-6
    return values.min().item(), best.tolist(), attained


def _near(function: Formula, space: Space, starts: int, rng: torch.Generator) -> Tensor:
    """Coordinates (starts, dim) around the free minimiser, or 0 without one, at distances from 0.01 to 1."""
    spread = torch.logspace(-2, 0, starts, dtype=torch.float64).unsqueeze(-1)
    return (function.minimiser or 0.0) + spread * torch.randn(starts, space.dim, generator=rng, dtype=torch.float64)


def _search_ball(function: Formula, space: Space, starts: int, rng: torch.Generator) -> Tensor:
    direction = space.random(starts, rng=rng)[:, 1:]
    radius = torch.rand(starts, 1, generator=rng, dtype=torch.float64)
    drawn = math.pi * radius * direction / direction.norm(dim=-1, keepdim=True)
    near = _near(function, space, starts, rng)
    shorter = (0.99 * math.pi / near.norm(dim=-1, keepdim=True)).clamp(max=1)
    found = trust_region(
        function.value,
        Euclidean(space.dim),
        torch.cat([drawn, near * shorter]),
        constraints=lambda t: math.pi**2 - inner(t, t),
        tolerance=1e-10,
        max_iterations=500,
    )
    return found.point


def _search_space(function: Formula, space: Space, starts: int, rng: torch.Generator) -> Tensor:
    space = leaf(space)
    drawn = space.random(starts, rng=rng)
    share = torch.rand(starts, *[1] * len(space.point_shape), generator=rng, dtype=torch.float64)
    moved = space.retract(drawn, 2 * space.typical_distance * share * space.random_tangent(drawn, rng))
    found = lbfgs(
        lambda z: function.value(coordinates(space, z)),
        space,
        torch.cat([drawn, moved, space.project(from_coordinates(space, _near(function, space, starts, rng)))]),
        tolerance=1e-9,
        max_iterations=1000,
    )
    return coordinates(space, space.project(found.point))
