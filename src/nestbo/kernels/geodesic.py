"""Kernels of the geodesic distance, as GaBO and HD-GaBO use them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError
from nestbo.kernels.base import ManifoldKernel
from nestbo.kernels.beta_table import BETA_MIN
from nestbo.manifolds import SPD, Space, Sphere

_DRAWS = 5


class GeodesicGaussian(ManifoldKernel):
    """exp(−β d²) with the geodesic distance, for β = 1/2ℓ² above the β_min of the space.

    No β makes the kernel positive definite for every set of points on a sphere. Use it to reproduce the papers. Gram
    matrices may have eigenvalues down to minus the tolerance of ``beta_min``, so noise must stay above the tolerance.
    """

    tolerance = 1e-4

    @classmethod
    def bounds_of(cls, space: Space, *, beta_min: float | None = None) -> tuple[float, float]:
        """``beta_min`` is that of the table, which holds the published values, unless given."""
        beta = _tabulated(space) if beta_min is None else beta_min
        low, _ = super().bounds_of(space)
        return low, 1 / math.sqrt(2 * beta)

    def compare(self, x: Tensor, y: Tensor) -> Tensor:
        return self.space.pairwise_sq_dist(x, y).unsqueeze(-1)

    def correlate(self, statistic: Tensor, lengthscale: Tensor) -> Tensor:
        return (-statistic / (2 * lengthscale**2)).squeeze(-1).exp()


class GeodesicLaplace(ManifoldKernel):
    """exp(−d/ℓ) with the angle d on a sphere: positive definite at every length scale, and rough."""

    @classmethod
    def bounds_of(cls, space: Space) -> tuple[float, float]:
        """Refuse spaces where the distance is not of negative type."""
        if not isinstance(space, Sphere):
            raise ArgumentError(f"The geodesic Laplace kernel is valid on a Sphere, got {space}. Use matern12 there.")
        return super().bounds_of(space)

    def compare(self, x: Tensor, y: Tensor) -> Tensor:
        return self.space.pairwise_dist(x, y).unsqueeze(-1)

    def correlate(self, statistic: Tensor, lengthscale: Tensor) -> Tensor:
        return (-statistic / lengthscale).squeeze(-1).exp()


def beta_min(space: Space, n: int = 500, tolerance: float = 1e-6, *, rng: torch.Generator | None = None) -> float:
    """The smallest β at which exp(−β d²) was positive definite on random points.

    The guarantee is limited: in five draws of ``n`` random points of ``space``, no Gram matrix had an eigenvalue below
    −``tolerance``. Points in special position (on a great circle, in a cluster) may need a larger β. The value is found
    by bisection between 10⁻³ and 10³, and rounded up to two digits.
    """
    rng = rng or torch.Generator().manual_seed(0)
    squared = [space.pairwise_sq_dist(x, x) for x in space.random(_DRAWS, n, rng=rng)]

    def positive(beta: float) -> bool:
        return all(linalg.eigh((-beta * d).exp())[0].min().item() >= -tolerance for d in squared)

    low, high = math.log(1e-3), math.log(1e3)
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if positive(math.exp(middle)) else (middle, high)
    digit = 10.0 ** (math.floor(high / math.log(10)) - 1)
    return float(f"{math.ceil(math.exp(high) / digit) * digit:.2g}")


def _tabulated(space: Space) -> float:
    """The tabulated value for a sphere or affine-invariant SPD matrices; between two entries, that of the smaller."""
    if isinstance(space, SPD) and space.metric == "log-euclidean":
        return 1e-3  # a flat metric: every β is valid
    family = {"Sphere": "sphere", "SPD": "spd"}.get(type(space).__name__)
    if family is None or not isinstance(space, Sphere | SPD):
        raise ArgumentError(
            f"The geodesic Gaussian has bounds for Sphere and SPD in its table, got {space}. Pass beta_min=…."
        )
    known = [n for n in BETA_MIN[family] if n <= space.n]
    return BETA_MIN[family][max(known)] if known else 10.0
