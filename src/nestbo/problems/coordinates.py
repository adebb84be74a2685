"""Coordinates in which benchmark functions are written on a manifold (paper, appendix E)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError
from nestbo.manifolds import SPD, Box, Space, Sphere

WANTED = "Benchmark problems live on a Sphere, on SPD matrices or in a Box"


def coordinates(space: Space, z: Tensor) -> Tensor:
    """z ↦ t (…, dim).

    Sphere: Log at the base point (1, 0, …, 0), without its first entry. SPD: the entries of Log at 2I, which is
    2 log(Z/2), diagonal first, then the super-diagonals, without the √2 of Mandel's notation. Box: z itself.
    """
    if isinstance(space, Sphere):
        return space.log(_base(space, z), z)[..., 1:]
    if isinstance(space, SPD):
        log = 2 * linalg.logm(z / 2)
        return torch.cat([log.diagonal(offset=k, dim1=-2, dim2=-1) for k in range(space.n)], -1)
    if isinstance(space, Box):
        return z
    raise ArgumentError(f"{WANTED}, got {space}.")


def from_coordinates(space: Space, t: Tensor) -> Tensor:
    """The inverse: t ↦ z. On the sphere |t| is at most π."""
    if isinstance(space, Sphere):
        return space.exp(_base(space, t), torch.cat([torch.zeros_like(t[..., :1]), t], -1))
    if isinstance(space, SPD):
        parts = t.split([space.n - k for k in range(space.n)], -1)
        upper = torch.stack([torch.diag_embed(part, offset=k) for k, part in enumerate(parts)]).sum(0)
        log = linalg.sym(upper + upper.triu(1))
        return 2 * linalg.expm(log / 2)
    if isinstance(space, Box):
        return t
    raise ArgumentError(f"{WANTED}, got {space}.")


def _base(space: Sphere, like: Tensor) -> Tensor:
    return torch.eye(space.n + 1, dtype=like.dtype, device=like.device)[0]


def within(space: Space, t: Tensor) -> bool:
    """Whether coordinates t (dim,) belong to a point of the space."""
    if isinstance(space, Sphere):
        return bool(linalg.norm(t) <= math.pi)
    return bool(space.violation(from_coordinates(space, t)) <= 1e-12)
