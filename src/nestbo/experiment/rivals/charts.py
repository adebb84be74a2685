"""Spaces as unit cubes: where methods work that know boxes only.

The natural chart is what people write down first: a vector that is divided by its norm, the entries of a Cholesky
factor, angles, proportions that are divided by their sum. The tangent chart unrolls the space at one of its points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError
from nestbo.manifolds import SPD, Box, Product, Simplex, Space, Sphere, Torus
from nestbo.strategies.coordinates import vectors

_LEAST = 1e-9  # proportion that a cube's corner stands for
_WIDE = 3.0  # half the width of a tangent chart, in units of a typical distance spread over all directions
_USUAL = 2.0  # logarithm of an eigenvalue, beyond which random matrices of a space without bounds hardly go


@dataclass(frozen=True)
class Cube:
    """A space as the cube [0, 1]^size: ``point(coordinates(x)) == x``, and every u (…, size) is some point."""

    size: int
    point: Callable[[Tensor], Tensor]
    coordinates: Callable[[Tensor], Tensor]


def natural(space: Space) -> Cube:
    """The chart that people write down first."""
    if isinstance(space, Product):
        return _joined(space, [natural(factor) for factor in space.factors])
    if isinstance(space, Sphere | SPD | Box):
        on = vectors(space, "cholesky" if isinstance(space, SPD) else "matrix")
        return _stretched(on.half, on.point, on.coordinates)
    if isinstance(space, Torus):
        return _stretched((math.pi,) * space.dim, lambda v: v, lambda x: x)
    if isinstance(space, Simplex):
        return _proportions(space)
    return _entries(space)


def _stretched(
    half: Sequence[float], point: Callable[[Tensor], Tensor], coordinates: Callable[[Tensor], Tensor]
) -> Cube:
    """The cube of vectors whose entries lie within ± half."""
    width = torch.tensor(half, dtype=torch.float64)

    def from_cube(u: Tensor) -> Tensor:
        return point((2 * u - 1) * width)

    def to_cube(x: Tensor) -> Tensor:
        return ((coordinates(x) / width + 1) / 2).clamp(0, 1)

    return Cube(len(half), from_cube, to_cube)


def _proportions(space: Simplex) -> Cube:
    """−log u divided by its sum: u uniform in the cube is uniform on the simplex."""

    def point(u: Tensor) -> Tensor:
        parts = -torch.log(u.clamp(_LEAST, 1 - _LEAST))
        return parts / parts.sum(-1, keepdim=True)

    return Cube(space.n + 1, point, lambda x: torch.exp(-x * (space.n + 1)))


def _entries(space: Space) -> Cube:
    """The entries of a point, each within ±1, and back by projection: quaternions, rotations, frames."""
    size = math.prod(space.point_shape)
    back = lambda v: space.project(v.unflatten(-1, space.point_shape))
    return _stretched((1.0,) * size, back, lambda x: x.flatten(-len(space.point_shape)))


def _joined(space: Product, parts: list[Cube]) -> Cube:
    sizes = [part.size for part in parts]

    def point(u: Tensor) -> Tensor:
        return space.join(part.point(own) for part, own in zip(parts, u.split(sizes, -1), strict=True))

    def coordinates(x: Tensor) -> Tensor:
        return torch.cat([part.coordinates(own) for part, own in zip(parts, space.split(x), strict=True)], -1)

    return Cube(sum(sizes), point, coordinates)


def tangent(space: Space, base: Tensor) -> Cube:
    """The tangent space at a point, by the exponential map: a box so wide that its corners leave nothing out."""
    if isinstance(space, Sphere):
        return _tangent_sphere(space, base)
    if isinstance(space, SPD):
        return _tangent_matrices(space, base)
    raise ArgumentError(f"Tangent charts exist for spheres and SPD matrices only, got {space}. Use the natural chart.")


def _tangent_sphere(space: Sphere, base: Tensor) -> Cube:
    frame = linalg.completion(base.unsqueeze(-1))
    half = min(math.pi, _WIDE * space.typical_distance / math.sqrt(space.n))
    point = lambda v: space.project(space.exp(base, v @ frame.mT))
    return _stretched((half,) * space.n, point, lambda x: space.log(base, x) @ frame)


def _tangent_matrices(space: SPD, base: Tensor) -> Cube:
    """log X − log B, entries on and above the diagonal, those beside it times √2."""
    rows, columns = torch.triu_indices(space.n, space.n)
    scale = torch.where(rows == columns, 1.0, math.sqrt(2)).double()
    middle = linalg.logm(base)
    low, high = space.eigenvalues or (math.exp(-_USUAL), math.exp(_USUAL))
    half = (math.log(high) - math.log(low)) / 2

    def point(v: Tensor) -> Tensor:
        upper = v.new_zeros(*v.shape[:-1], space.n, space.n)
        upper[..., rows, columns] = v / scale
        step = upper + upper.triu(1).mT
        return space.project(linalg.expm(middle + step))

    coordinates = lambda x: (linalg.logm(x) - middle)[..., rows, columns] * scale
    return _stretched((half,) * len(rows), point, coordinates)
