"""Proportions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.manifolds.base import Manifold, check_size, told_apart
from nestbo.manifolds.sphere import Sphere

# The share of the sphere's radius that is left to zero proportions, see below.
_MARGIN = 1e-6


@dataclass(frozen=True, repr=False)
class Simplex(Manifold):
    """n + 1 proportions that are at least 0 and sum to 1; the distance is the angle between their square roots.

    The map x ↦ s with s² = (1 − ε) x + ε/(n + 1) takes the simplex into the positive orthant of the sphere S^n. The
    small number ε = 10⁻⁶ keeps s away from the edge of the orthant, where the square root has no slope. A proportion
    can still be exactly 0: then s = √(ε/(n + 1)), which is a bound like that of a box. Geodesics may leave the simplex
    and continue on the sphere with negative proportions. ``retract`` and ``project`` stay within the simplex.

    Args:
        n: The dimension, one less than the number of proportions.
    """

    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_size("The dimension of Simplex, one less than its proportions,", self.n))

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(1), cls(4)]

    @property
    def dim(self) -> int:
        return self.n

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.n + 1,)

    @property
    def typical_distance(self) -> float:
        return math.acos(2 / math.pi)

    @property
    def injectivity_radius(self) -> float:
        return math.pi

    @property
    def _sphere(self) -> Sphere:
        return Sphere(self.n)

    def _root(self, x: Tensor) -> Tensor:
        """s, the point on the sphere; negative proportions beyond the bound have negative roots."""
        square = (1 - _MARGIN) * x + _MARGIN / (self.n + 1)
        return square.sign() * linalg.safe_sqrt(square.abs())

    def _square(self, s: Tensor) -> Tensor:
        return (s * s.abs() - _MARGIN / (self.n + 1)) / (1 - _MARGIN)

    def _slope(self, s: Tensor) -> Tensor:
        """dx/ds."""
        return 2 * s.abs() / (1 - _MARGIN)

    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        """Uniform on the orthant: Dirichlet with all parameters ½."""
        z = torch.randn(*batch, self.n + 1, generator=rng, dtype=torch.float64, device=rng.device) ** 2
        return z / z.sum(-1, keepdim=True)

    def project(self, x: Tensor) -> Tensor:
        """Negative proportions become 0, the others are divided by their sum. If none is positive, all become equal."""
        inside = (self.violation(x) == 0).unsqueeze(-1)
        size = x.detach().abs().amax(-1, keepdim=True)
        positive = x.clamp(min=0) / torch.where(size > 0, size, 1)
        positive = torch.where((positive <= 0).all(-1, keepdim=True), 1, positive)
        return torch.where(inside, x, positive / positive.sum(-1, keepdim=True))

    def violation(self, x: Tensor) -> Tensor:
        rounding = (self.n + 1) * torch.finfo(x.dtype).eps
        astray = (x.sum(-1) - 1).abs()
        return torch.maximum(torch.where(astray <= rounding, 0, astray), -x.amin(-1)).clamp(min=0)

    def fault(self, x: Tensor) -> str:
        least, total = x.amin(), x.sum()
        if -least > (total - 1).abs():
            return f"its proportion {int(x.argmin())} is {least:.4g}, it must be at least 0"
        return f"its proportions sum to {told_apart(total, 1)}, the sum must be 1"

    def to_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        side = self._root(x).sign()
        return v - side * (side * v).mean(-1, keepdim=True)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        slope = self._slope(self._root(x))
        return linalg.inner(u / slope, v / slope)

    def from_noise(self, x: Tensor, noise: Tensor) -> Tensor:
        """Tangent vectors of the sphere, so that a proportion of 0 does not take all of their length."""
        s = self._root(x)
        return self._slope(s) * self._sphere.to_tangent(s, noise)

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        s = self._root(x)
        return self._square(self._sphere.exp(s, v / self._slope(s)))

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        s = self._root(x)
        return self._slope(s) * self._sphere.log(s, self._root(y))

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        s = self._root(x)
        return self.project(self._square(linalg.unit(s + v / self._slope(s))))

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        s, t = self._root(x), self._root(y)
        return self._slope(t) * self._sphere.transport(s, t, v / self._slope(s))

    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        return linalg.arc_squared(self._root(x), self._root(y))

    def embed(self, x: Tensor) -> Tensor:
        return self._root(x)

    def gradient(self, x: Tensor, euclidean: Tensor) -> Tensor:
        s = self._root(x)
        slope = self._slope(s)
        return slope * self._sphere.gradient(s, slope * euclidean)

    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        """The Hessian of f(x(s)) on the sphere, whose second derivatives are x′ f″ x′ + f′ x″."""
        s = self._root(x)
        slope = self._slope(s)
        w = v / slope
        second = slope * product + 2 / (1 - _MARGIN) * s.sign() * gradient * w
        return slope * self._sphere.hessian(s, slope * gradient, second, w)

    @property
    def bounded(self) -> bool:
        return True

    def face(self, x: Tensor, descent: Tensor, slack: float) -> Callable[[Tensor], Tensor]:
        s = self._root(x)
        slope = self._slope(s)
        free = ~((s <= math.sqrt(_MARGIN / (self.n + 1)) + slack) & (descent < 0))
        kept = free * s
        along = kept / linalg.inner(kept, kept).unsqueeze(-1)

        def apply(v: Tensor) -> Tensor:
            w = free * (v / slope)
            return slope * (w - linalg.inner(w, kept).unsqueeze(-1) * along)

        return apply

    def _shape_hint(self, shape: tuple[int, ...]) -> str:
        k = shape[-1] - 1 if shape else 0
        return f" For {k + 1} proportions use Simplex({k})." if k > 0 else ""
