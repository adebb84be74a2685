"""Heat and Matérn kernels on the sphere, as Gegenbauer series: positive definite at every length scale.

k(x, y) = Σ w_n P_n(⟨x, y⟩) / Σ w_n, where P_n is the Gegenbauer polynomial of degree n with P_n(1) = 1 and w_n the
number of spherical harmonics of degree n times the spectral density at the eigenvalue n(n + d − 1) of the Laplacian
(Borovitskiy et al. 2020). Truncation leaves a positive definite kernel; weights are formed in log space, so that S^500
does not overflow.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import lru_cache

import torch
from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.kernels.base import ManifoldKernel
from nestbo.manifolds import Space, Sphere

_MAX_DEGREE = 512


class _Spectral(ManifoldKernel):
    negligible = 1e-14  # the share of the weights that may be cut off

    @classmethod
    def bounds_of(cls, space: Space) -> tuple[float, float]:
        """From a length scale that 512 degrees resolve, to one at which the kernel is constant."""
        if not isinstance(space, Sphere):
            raise ArgumentError(f"Spectral kernels exist on a Sphere only, got {space}. Use matern52 there.")
        return min(0.02, 1 / space.dim), 1e2

    def compare(self, x: Tensor, y: Tensor) -> Tensor:
        return (x @ y.mT).unsqueeze(-1)

    def correlate(self, statistic: Tensor, lengthscale: Tensor) -> Tensor:
        weights = self._weights(lengthscale.squeeze(-1))
        cosine = statistic.squeeze(-1)
        before, current = torch.ones_like(cosine), cosine
        total = weights[..., 0] + weights[..., 1] * current
        for n in range(2, weights.shape[-1]):
            before, current = current, _next_polynomial(cosine, current, before, n, self.space.dim)
            total = total + weights[..., n] * current
        return total

    def _weights(self, lengthscale: Tensor) -> Tensor:
        """w_n / Σ w, (…, degrees), cut for each length scale where its rest is negligible."""
        dim = self.space.dim
        degree = torch.arange(_MAX_DEGREE, dtype=lengthscale.dtype, device=lengthscale.device)
        log_density = self.log_density(lengthscale.unsqueeze(-1), degree * (degree + dim - 1))
        weights = (_log_multiplicity(dim).to(degree) + log_density).softmax(-1)
        tail = weights.detach().flip(-1).cumsum(-1).flip(-1)
        kept = torch.where(tail > self.negligible, weights, 0)  # per length scale, so that a batch is its elements
        kept = kept[..., : max(2, int((kept > 0).sum(-1).amax()))]
        return kept / kept.sum(-1, keepdim=True)

    @abstractmethod
    def log_density(self, lengthscale: Tensor, eigenvalue: Tensor) -> Tensor:
        """Logarithm of the spectral density at eigenvalues of the Laplacian."""


class Heat(_Spectral):
    """The heat kernel: spectral density exp(−ℓ²λ/2)."""

    def log_density(self, lengthscale: Tensor, eigenvalue: Tensor) -> Tensor:
        return -(lengthscale**2) * eigenvalue / 2


class SpectralMatern(_Spectral):
    """The intrinsic Matérn kernel of smoothness ν = 5/2: spectral density (2ν/ℓ² + λ)^{−ν−d/2}."""

    smoothness = 2.5
    negligible = 1e-9  # its weights fall slowly, like the sixth power of the degree

    def log_density(self, lengthscale: Tensor, eigenvalue: Tensor) -> Tensor:
        power = self.smoothness + self.space.dim / 2
        return -power * (2 * self.smoothness / lengthscale**2 + eigenvalue).log()


def _next_polynomial(t: Tensor, current: Tensor, before: Tensor, n: int, dim: int) -> Tensor:
    """P_n from P_{n−1} and P_{n−2}: (n + 2α − 1) P_n = 2 (n + α − 1) t P_{n−1} − (n − 1) P_{n−2}, α = (d − 1)/2."""
    return ((2 * n + dim - 3) * t * current - (n - 1) * before) / (n + dim - 2)


@lru_cache(maxsize=64)
def _log_multiplicity(dim: int) -> Tensor:
    """Logarithm of the number of spherical harmonics of each degree on S^dim."""
    if dim == 1:
        return torch.tensor([0.0] + [math.log(2)] * (_MAX_DEGREE - 1), dtype=torch.float64)
    logs = [_log_harmonics(n, dim - 1) for n in range(1, _MAX_DEGREE)]
    return torch.tensor([0.0, *logs], dtype=torch.float64)


def _log_harmonics(n: int, k: int) -> float:
    """log of (2n + k)/k · (n + k − 1)!/((k − 1)! n!), the number of harmonics of degree n on S^{k+1}."""
    return math.log((2 * n + k) / k) + math.lgamma(n + k) - math.lgamma(k) - math.lgamma(n + 1)
