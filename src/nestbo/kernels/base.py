"""Kernels on manifolds, as gpytorch kernels."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import torch
from gpytorch.constraints import Interval
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from nestbo import linalg
from nestbo.manifolds import Space

_PRIOR_WIDTH = 1.0  # standard deviation of the logarithm of a length scale
_CALIBRATION_PAIRS = 200
_CALIBRATION_NUMBERS = 10_000_000  # in all points together: in very many dimensions a few pairs say as much as many
_MEDIANS: dict[Any, float] = {}


class ManifoldKernel(Kernel):  # type: ignore[misc]
    """A correlation function k(x, y) on a manifold, with k(x, x) = 1 and one length scale (a product has several).

    A kernel works in two steps. ``statistic`` computes a number from two points, such as a squared distance or an inner
    product. ``correlate`` turns this number into a correlation. A fit of the length scale needs the first step only
    once. As a gpytorch kernel, it takes points flattened to vectors. The length scale starts at the median of its
    prior, where two random points have the average correlation ½, in any dimension.
    """

    has_lengthscale = True
    tolerance = 0.0  # Gram matrices have no eigenvalue below minus this, for points as they come

    def __init__(self, space: Space, **options: Any) -> None:
        low, high = self.bounds_of(space, **options)
        self._begin(space, torch.tensor([low], dtype=torch.float64), torch.tensor([high], dtype=torch.float64))
        key = (type(self), space, tuple(options.items()))
        if key not in _MEDIANS:
            _MEDIANS[key] = self._calibrate()
        self._centre(torch.tensor([_MEDIANS[key]], dtype=torch.float64))

    def _begin(self, space: Space, low: Tensor, high: Tensor) -> None:
        super().__init__(ard_num_dims=len(low), lengthscale_constraint=Interval(low, high))
        self.ard_num_dims = None  # the length scales belong to factors, not to input coordinates
        self.to(torch.float64)
        self.space, self.lengthscale_bounds = space, (low, high)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.space})"

    def _centre(self, medians: Tensor) -> None:
        """Put the prior around the medians, and start there."""
        low, high = self.lengthscale_bounds
        self.median_lengthscale = medians
        self.initialize(lengthscale=torch.clamp(medians, 1.001 * low, 0.999 * high))
        prior = LogNormalPrior(medians.log(), torch.full_like(medians, _PRIOR_WIDTH))
        self.register_prior("lengthscale_prior", prior, "lengthscale")

    @classmethod
    def bounds_of(cls, space: Space) -> tuple[float, float]:
        """The length scales between which the kernel is positive definite and useful."""
        return 1e-3, 1e3

    def features(self, x: Tensor) -> Any:
        """The features of points (…, n, *point) for ``compare``, computed once for points that are used many times."""
        return x

    @abstractmethod
    def compare(self, x: Any, y: Any) -> Tensor:
        """The statistic of the features of n and of m points: (…, n, m, number of length scales)."""

    def statistic(self, x: Tensor, y: Tensor) -> Tensor:
        """The statistic of all pairs: x (…, n, *point), y (…, m, *point) ↦ (…, n, m, number of length scales)."""
        features = self.features(x)
        return self.compare(features, features if y is x else self.features(y))

    @abstractmethod
    def correlate(self, statistic: Tensor, lengthscale: Tensor) -> Tensor:
        """The correlation for a statistic (…, scales) and length scales that broadcast against it: (…)."""

    def correlation(self, x: Tensor, y: Tensor, lengthscale: Tensor) -> Tensor:
        """k(x, y) for x (…, n, *point), y (…, m, *point) and length scales (…, scales): (…, n, m)."""
        return self.correlate(self.statistic(x, y), lengthscale[..., None, None, :])

    def log_prior(self, log_lengthscale: Tensor) -> Tensor:
        """Logarithm of the normal prior density of log ℓ (…, scales), up to a constant: (…)."""
        medians = linalg.constant(tuple(self.median_lengthscale.log().tolist()), log_lengthscale)
        z = (log_lengthscale - medians) / _PRIOR_WIDTH
        return -(z**2).sum(-1) / 2

    def _calibrate(self) -> float:
        """The length scale at which random pairs have average correlation ½, by bisection on its logarithm."""
        most = _CALIBRATION_NUMBERS // (2 * math.prod(self.space.point_shape))
        pairs = max(1, min(_CALIBRATION_PAIRS, most))
        points = self.space.random(2, pairs, 1, rng=torch.Generator().manual_seed(0))
        differ = (points[0] != points[1]).flatten(1).any(-1)  # separate values often coincide, and say nothing then
        statistic = self.statistic(points[0][differ], points[1][differ])
        low, high = (bound.log().item() for bound in self.lengthscale_bounds)
        for _ in range(50):
            middle = (low + high) / 2
            correlation = self.correlate(statistic, torch.tensor([math.exp(middle)], dtype=torch.float64)).mean()
            low, high = (middle, high) if correlation < 0.5 else (low, middle)
        return math.exp((low + high) / 2)

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: Any) -> Tensor:
        """The gpytorch interface: points flattened to vectors, (…, n, size)."""
        shape = self.space.point_shape
        x1, x2 = x1.unflatten(-1, shape), x2.unflatten(-1, shape)
        if not diag:
            return self.correlate(self.statistic(x1, x2), self.lengthscale.unsqueeze(-2))
        axis = -len(shape) - 1
        pairs = self.statistic(x1.unsqueeze(axis), x2.unsqueeze(axis))
        return self.correlate(pairs, self.lengthscale.unsqueeze(-2).unsqueeze(-2)).squeeze(-1).squeeze(-1)
