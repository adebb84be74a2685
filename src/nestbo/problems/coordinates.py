"""Coordinates in which benchmark functions are written on a manifold (paper, appendix E)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError
from nestbo.manifolds import SPD, Box, Product, Quaternion, Space, Sphere

_WANTED = "Benchmark problems live on a Sphere, on SPD matrices, on a Quaternion, in a Box or in a Product of these"


def check_space(space: Space) -> None:
    """Refuse a space that has no such coordinates."""
    factors = space.factors if isinstance(space, Product) else (space,)
    if not all(isinstance(factor, Sphere | SPD | Quaternion | Box) for factor in factors):
        raise ArgumentError(f"{_WANTED}, got {space}.")


def coordinates(space: Space, z: Tensor) -> Tensor:
    """z ↦ t (…, dim).

    Sphere: Log at the base point (1, 0, …, 0), without its first entry. SPD: the entries of Log at 2I, which is
    2 log(Z/2), diagonal first, then the super-diagonals, without the √2 of Mandel's notation. Quaternion: the vector of
    the rotation, axis times angle. Box: z itself. Product: those of its factors, one after the other.
    """
    if isinstance(space, Product):
        parts = zip(space.factors, space.split(z), strict=True)
        return torch.cat([coordinates(factor, part) for factor, part in parts], -1)
    if isinstance(space, Sphere):
        return space.log(_base(z), z)[..., 1:]
    if isinstance(space, Quaternion):
        return 2 * space.log(_base(z), z)[..., 1:]
    if isinstance(space, SPD):
        log = 2 * linalg.logm(z / 2)
        return torch.cat([log.diagonal(offset=k, dim1=-2, dim2=-1) for k in range(space.n)], -1)
    check_space(space)
    return z


def from_coordinates(space: Space, t: Tensor) -> Tensor:
    """The inverse: t ↦ z. On a sphere and on quaternions |t| is at most π."""
    if isinstance(space, Product):
        return space.join(from_coordinates(factor, part) for factor, part in _parts(space, t))
    if isinstance(space, Sphere | Quaternion):
        tangent = torch.cat([torch.zeros_like(t[..., :1]), t], -1)
        half = 2 if isinstance(space, Quaternion) else 1  # an angle is twice that of the quaternions
        return space.exp(_base(tangent), tangent / half)
    if isinstance(space, SPD):
        parts = t.split([space.n - k for k in range(space.n)], -1)
        upper = torch.stack([torch.diag_embed(part, offset=k) for k, part in enumerate(parts)]).sum(0)
        log = linalg.sym(upper + upper.triu(1))
        return 2 * linalg.expm(log / 2)
    check_space(space)
    return t


def _base(like: Tensor) -> Tensor:
    """(1, 0, …, 0)."""
    return torch.eye(like.shape[-1], dtype=like.dtype, device=like.device)[0]


def _parts(space: Product, t: Tensor) -> list[tuple[Space, Tensor]]:
    """The factors of a product, with the coordinates of each."""
    sizes = [factor.dim for factor in space.factors]
    return list(zip(space.factors, t.split(sizes, -1), strict=True))


def within(space: Space, t: Tensor) -> bool:
    """Whether coordinates t (dim,) belong to a point of the space."""
    if isinstance(space, Product):
        return all(within(factor, part) for factor, part in _parts(space, t))
    if isinstance(space, Sphere | Quaternion):
        return bool(linalg.norm(t) <= math.pi)
    return bool(space.violation(from_coordinates(space, t)) <= 1e-12)
