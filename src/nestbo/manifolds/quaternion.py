"""Rotations of space as unit quaternions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.manifolds.base import Manifold
from nestbo.manifolds.rotation import TYPICAL_ANGLE
from nestbo.manifolds.sphere import Sphere

_SPHERE = Sphere(3)


@dataclass(frozen=True, repr=False)
class Quaternion(Manifold):
    """Unit quaternions (4,), where q and −q are one point: the rotations of space, isometric to ``Rotation(3)``.

    The distance is the angle of the rotation from one to the other, twice the angle between ±q on S³. The real part may
    come first or last.
    """

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls()]

    @property
    def dim(self) -> int:
        return 3

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (4,)

    @property
    def typical_distance(self) -> float:
        return TYPICAL_ANGLE

    @property
    def injectivity_radius(self) -> float:
        return math.pi

    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        return _SPHERE.random(*batch, rng=rng)

    def project(self, x: Tensor) -> Tensor:
        return linalg.unit(x)

    def to_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        return _SPHERE.to_tangent(x, v)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return 4 * linalg.inner(u, v)

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        return _SPHERE.exp(x, v)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        return _SPHERE.log(x, _toward(x, y))

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        return linalg.unit(x + v)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        """Transport from x to the nearer one of y and −y, and from there to y."""
        side = torch.where(linalg.inner(x, y) < 0, -1, 1).unsqueeze(-1)
        return self.to_tangent(y, side * v)

    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        return 4 * linalg.arc_squared(x, _toward(x, y))

    def embed(self, x: Tensor) -> Tensor:
        """√2 q qᵀ, which −q shares; small distances agree with the angle: |x − y|² = 4 sin²(θ/2)."""
        return math.sqrt(2) * (x.unsqueeze(-1) * x.unsqueeze(-2)).flatten(-2)

    def gradient(self, x: Tensor, euclidean: Tensor) -> Tensor:
        return self.to_tangent(x, euclidean) / 4

    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        return _SPHERE.hessian(x, gradient, product, v) / 4

    def violation(self, x: Tensor) -> Tensor:
        return _SPHERE.violation(x)

    def fault(self, x: Tensor) -> str:
        return _SPHERE.fault(x)

    def _shape_hint(self, shape: tuple[int, ...]) -> str:
        return " For rotation matrices use Rotation(3)." if shape[-2:] == (3, 3) else ""


def _toward(x: Tensor, y: Tensor) -> Tensor:
    """That of y and −y which is nearer to x."""
    return torch.where((linalg.inner(x, y) < 0).unsqueeze(-1), -y, y)
