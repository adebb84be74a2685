"""Angles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.manifolds.base import Manifold, check_size

_TURN = 2 * math.pi


@dataclass(frozen=True, repr=False)
class Torus(Manifold):
    """n angles in radians, each the same after a full turn. ``project`` brings them to [−π, π).

    Args:
        n: The number of angles.
    """

    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_size("The number of angles of Torus", self.n))

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(1), cls(3)]

    @property
    def dim(self) -> int:
        return self.n

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.n,)

    @property
    def typical_distance(self) -> float:
        return math.pi * math.sqrt(self.n / 3)

    @property
    def injectivity_radius(self) -> float:
        return math.pi

    @property
    def euclidean_metric(self) -> bool:
        return True

    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        return _TURN * torch.rand(*batch, self.n, generator=rng, dtype=torch.float64, device=rng.device) - math.pi

    def project(self, x: Tensor) -> Tensor:
        inside = (x >= -math.pi) & (x < math.pi)
        return torch.where(inside, x, torch.remainder(x + math.pi, _TURN) - math.pi)

    def to_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        return v + torch.zeros_like(x)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return linalg.inner(u, v)

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        return x + v

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        apart = y - x
        return apart - _TURN * (apart / _TURN).round()

    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        v = self.log(x, y)
        return linalg.inner(v, v)

    def embed(self, x: Tensor) -> Tensor:
        """Cosines and sines."""
        return torch.cat([x.cos(), x.sin()], -1)

    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        return product

    def violation(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x[..., 0])

    def _shape_hint(self, shape: tuple[int, ...]) -> str:
        return f" For {shape[-1]} angles use Torus({shape[-1]})." if shape and shape[-1] else ""
