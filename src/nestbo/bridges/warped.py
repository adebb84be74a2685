"""A kernel with a metric that GPyTorch and BoTorch models learn with their own optimisers."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.kernels import Kernel
from gpytorch.priors import NormalPrior
from torch import Tensor

from nestbo.kernels import ManifoldKernel, kernel
from nestbo.manifolds import Space
from nestbo.surrogate.metric import Metric, Sight


class WarpedKernel(Kernel):  # type: ignore[misc]
    """k(L φ(x), L φ(y)) of flattened points (…, n, size): L is a parameter, with a normal prior around the identity.

    Args:
        space: The space of the points.
        name: The kernel of the transformed points: a kernel of a straight distance, such as "matern52".
        strength: How far L may depart from the identity: with 1 it may lose a direction, with 0.25 it hardly moves.
        diagonal: Whether each coordinate is scaled by itself, without mixing.
    """

    has_lengthscale = False  # the inner kernel has one

    def __init__(self, space: Space, name: str = "matern52", *, strength: float = 1.0, diagonal: bool = False) -> None:
        super().__init__()
        self.space, self.metric = space, Metric(Sight(space), strength, diagonal)
        self.inner: ManifoldKernel = kernel(name, self.metric.sight.seen)
        self.register_parameter("entries", torch.nn.Parameter(torch.zeros(self.metric.size, dtype=torch.float64)))
        centre = torch.zeros(self.metric.size, dtype=torch.float64)
        self.register_prior("entries_prior", NormalPrior(centre, torch.ones_like(centre)), "entries")

    @property
    def factor(self) -> Tensor:
        """L, (count, count)."""
        return self.metric.factor(self.entries)

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **options: Any) -> Tensor:
        return self.inner(self._seen(x1), self._seen(x2), diag=diag, **options)

    def _seen(self, x: Tensor) -> Tensor:
        points = x.unflatten(-1, self.space.point_shape)
        return self.metric.sight.warped(self.factor, self.metric.sight.coordinates(points))
