"""Kernels of the straight distance in an embedding: positive definite at every length scale.

Points of spheres and Stiefel manifolds and rotation matrices are used as they are (the chordal distance), subspaces and
quaternions of either sign through their projectors, angles through cosines and sines, proportions through square roots,
SPD matrices through their logarithms (the log-Euclidean distance), boxes scaled to the unit cube.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from nestbo.kernels import profiles
from nestbo.kernels.base import ManifoldKernel


class _Extrinsic(ManifoldKernel):
    """A radial profile of the distance between ``space.embed`` of two points."""

    @staticmethod
    @abstractmethod
    def profile(q: Tensor) -> Tensor:
        """The correlation at (distance / length scale)² = q."""

    def features(self, x: Tensor) -> Tensor:
        return self.space.embed(x)

    def compare(self, x: Tensor, y: Tensor) -> Tensor:
        return squared_distances(x, y).unsqueeze(-1)

    def correlate(self, statistic: Tensor, lengthscale: Tensor) -> Tensor:
        return self.profile((statistic / lengthscale**2).squeeze(-1))


class Gaussian(_Extrinsic):
    """exp(−d²/2ℓ²)."""

    profile = staticmethod(profiles.gaussian)


class Matern12(_Extrinsic):
    """The Matérn kernel of smoothness 1/2."""

    profile = staticmethod(profiles.matern12)


class Matern32(_Extrinsic):
    """The Matérn kernel of smoothness 3/2."""

    profile = staticmethod(profiles.matern32)


class Matern52(_Extrinsic):
    """The Matérn kernel of smoothness 5/2."""

    profile = staticmethod(profiles.matern52)


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """|x_i − y_j|² for x (…, n, k), y (…, m, k): (…, n, m), with all digits where the points nearly coincide."""
    value: Tensor = _SquaredDistances.apply(x, y)  # type: ignore[no-untyped-call]
    return value


class _SquaredDistances(torch.autograd.Function):
    """Differences forward, so that close points keep their digits; matrix products backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist") ** 2

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, y = ctx.saved_tensors
        needs_x, needs_y = ctx.needs_input_grad
        return _pull(upstream, x, y) if needs_x else None, _pull(upstream.mT, y, x) if needs_y else None


def _pull(upstream: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """2 Σ_j u_ij (x_i − y_j), summed over the leading axes that broadcasting added to x."""
    gradient = 2 * (upstream.sum(-1, keepdim=True) * x - upstream @ y)
    return gradient.sum_to_size(x.shape)
