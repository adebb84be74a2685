"""Unit vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.manifolds.base import Manifold, check_size, told_apart


@dataclass(frozen=True, repr=False)
class Sphere(Manifold):
    """S^n: the unit vectors of R^{n+1}, with the angle between them as distance.

    Args:
        n: The dimension, one less than the length of the vectors.
    """

    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_size("The dimension of Sphere", self.n))

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(1), cls(2), cls(7)]

    @property
    def dim(self) -> int:
        return self.n

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.n + 1,)

    @property
    def typical_distance(self) -> float:
        return math.pi / 2

    @property
    def injectivity_radius(self) -> float:
        return math.pi

    @property
    def euclidean_metric(self) -> bool:
        return True

    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        return linalg.unit(torch.randn(*batch, self.n + 1, generator=rng, dtype=torch.float64, device=rng.device))

    def project(self, x: Tensor) -> Tensor:
        return linalg.unit(x)

    def to_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        return v - linalg.inner(x, v).unsqueeze(-1) * x

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return linalg.inner(u, v)

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        q = linalg.inner(v, v).unsqueeze(-1)
        return linalg.unit(linalg.cos_root(q) * x + linalg.sinc_root(q) * v)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """At the antipode every direction is shortest, and one of them is chosen."""
        x, y = torch.broadcast_tensors(x, y)
        apart, together = y - x, y + x
        # u = y − ⟨x, y⟩ x = sin θ · direction, from whichever of y ± x is small, to keep its digits.
        same_half = (linalg.inner(x, y) >= 0).unsqueeze(-1)
        u = self.to_tangent(x, torch.where(same_half, apart, together))
        w = (linalg.inner(apart, apart) / 4).unsqueeze(-1)  # sin²(θ/2)
        near = linalg.arcsinc_root(torch.where(same_half, w, 0)) / torch.where(same_half, 1 - w, 1).sqrt() * u
        length = linalg.norm(u).unsqueeze(-1)
        direction = torch.where(length > 0, u / torch.where(length > 0, length, 1), self._some_direction(x))
        far = linalg.arc(x, y).unsqueeze(-1) * direction
        return torch.where(same_half, near, far)

    def _some_direction(self, x: Tensor) -> Tensor:
        """A unit tangent vector at each x."""
        axis = torch.zeros_like(x).scatter(-1, x.abs().argmin(-1, keepdim=True), 1)
        return linalg.unit(self.to_tangent(x, axis))

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        return linalg.unit(x + v)

    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        return linalg.arc(x, y)

    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        return linalg.arc_squared(x, y)

    def embed(self, x: Tensor) -> Tensor:
        return x

    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        return self.to_tangent(x, product) - linalg.inner(x, gradient).unsqueeze(-1) * v

    def violation(self, x: Tensor) -> Tensor:
        return (linalg.norm(x) - 1).abs()

    def fault(self, x: Tensor) -> str:
        return f"its norm is {told_apart(linalg.norm(x), 1)}, it must be 1"

    def _shape_hint(self, shape: tuple[int, ...]) -> str:
        k = shape[-1] - 1 if shape else 0
        return f" For points of S^{k} use Sphere({k})." if k > 0 else ""
