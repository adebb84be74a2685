"""One exact Gaussian process per run, on a manifold, batched over runs.

It is a BoTorch model, so that BoTorch's acquisition functions run on it, but computes its posterior in closed form
instead of through gpytorch: the same numbers, for a batch of runs at once, and with cheap second derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from gpytorch.distributions import MultivariateNormal
from linear_operator import to_linear_operator
from torch import Tensor

from nestbo.kernels import ManifoldKernel

_LEAST_VARIANCE = 1e-10  # that of gpytorch, which warns below it
_AT_ONCE = 4096  # points of a prediction whose correlations with all evaluations are held in memory
_MORE_NOISE, _MOST_NOISE = 10.0, 1.0  # of a point that is only believed, relative to the signal: its growth and end


class _Posterior(GPyTorchPosterior):  # type: ignore[misc]
    """One whose variances are not checked at every look: a GPU would have to be waited for."""

    @property
    def variance(self) -> Tensor:
        value: Tensor = self.distribution.lazy_covariance_matrix.diagonal(dim1=-1, dim2=-2).unsqueeze(-1)
        return value.clamp(min=_LEAST_VARIANCE)


class GP(Model):  # type: ignore[misc]
    """A Gaussian process posterior, in the units of its training values.

    It has a kernel, points x (*runs, n, *point), values z (*runs, n) and length scales (*runs, scales). Each run has a
    mean, a variance of the signal, and a variance of the noise relative to the signal. ``root`` is the factor of the
    noisy Gram matrix, if it is known. As a BoTorch model, the process takes points flattened to vectors.
    """

    def __init__(
        self,
        kernel: ManifoldKernel,
        x: Tensor,
        z: Tensor,
        lengthscale: Tensor,
        mean: Tensor,
        scale: Tensor,
        noise: Tensor,
        root: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.kernel, self.x, self.z = kernel, x, z
        self.lengthscale, self.mean, self.scale, self.noise = lengthscale, mean, scale, noise
        self.features = kernel.features(x)
        self.root = _gram_root(kernel, x, lengthscale, noise) if root is None else root
        eye = torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)
        self.inverse_root = torch.linalg.solve_triangular(self.root, eye, upper=False)
        whitened = self.inverse_root @ (z - mean.unsqueeze(-1)).unsqueeze(-1)
        self.weights = (self.inverse_root.mT @ whitened).squeeze(-1)

    def of_run(self, run: int | list[int]) -> GP:
        """The process of one of several runs."""
        data = (self.x, self.z, self.lengthscale, self.mean, self.scale, self.noise, self.root)
        return GP(self.kernel, *(part[run] for part in data))

    @property
    def num_outputs(self) -> int:
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        return self.z.shape[:-1]

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of the function at x (…, *runs, q, *point), each (…, *runs, q)."""
        runs = self.z.ndim - 1
        batch = x.shape[: x.ndim - len(self.kernel.space.point_shape)]
        ahead = tuple(range(max(0, len(batch) - 1 - runs)))
        within = tuple(range(runs, runs + len(ahead)))
        # All points of a run in one row: matrix products instead of many products with a vector.
        rows = x.movedim(ahead, within).flatten(runs, runs + len(ahead))
        cross = self._cross(rows)
        mean = self.mean.unsqueeze(-1) + (cross @ self.weights.unsqueeze(-1)).squeeze(-1)
        explained = (cross @ self.inverse_root.mT).square().sum(-1)
        variance = (self.scale.unsqueeze(-1) * (1 - explained)).clamp(min=_LEAST_VARIANCE)
        shape = (*batch[len(ahead) : -1], *batch[: len(ahead)], batch[-1])
        return mean.reshape(shape).movedim(within, ahead), variance.reshape(shape).movedim(within, ahead)

    def moments_in_parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The same at very many points x (*runs, q, *point), a few thousand at a time."""
        axis = self.z.ndim - 1
        means, variances = zip(*(self.moments(part) for part in x.split(_AT_ONCE, axis)), strict=True)
        return torch.cat(means, axis), torch.cat(variances, axis)

    def given(self, x: Tensor) -> GP:
        """The process as if points x (*runs, m, *point) had been evaluated, too, with the values it expects there.

        If rounding makes the Gram matrix indefinite, these points get more and more noise.
        """
        cross = self.inverse_root @ self._cross(x).mT
        rest, noise = self.kernel.correlation(x, x, self.lengthscale) - cross.mT @ cross, self.noise
        eye = torch.eye(x.shape[self.z.ndim - 1], dtype=x.dtype, device=x.device)
        corner, failed = torch.linalg.cholesky_ex(rest + noise[..., None, None] * eye)
        while failed.any() and bool((noise < _MOST_NOISE).all()):
            noise = torch.where(failed != 0, _MORE_NOISE * noise, noise)
            corner, failed = torch.linalg.cholesky_ex(rest + noise[..., None, None] * eye)
        above = torch.cat([self.root, torch.zeros_like(cross)], -1)
        root = torch.cat([above, torch.cat([cross.mT, corner], -1)], -2)
        z = torch.cat([self.z, self.moments(x)[0]], -1)
        both = torch.cat([self.x, x], self.z.ndim - 1)
        return GP(self.kernel, both, z, self.lengthscale, self.mean, self.scale, self.noise, root)

    def _cross(self, x: Tensor) -> Tensor:
        """Correlations (…, q, n) of points x (…, q, *point) with the training points."""
        statistic = self.kernel.compare(self.kernel.features(x), self.features)
        return self.kernel.correlate(statistic, self.lengthscale[..., None, None, :])

    def posterior(
        self,
        X: Tensor,  # noqa: N803
        output_indices: list[int] | None = None,
        observation_noise: bool = False,
        posterior_transform: Callable[[GPyTorchPosterior], Any] | None = None,
    ) -> Any:
        """The joint posterior at X (…, *runs, q, size), of the function or of noisy observations of it."""
        x = X.unflatten(-1, self.kernel.space.point_shape)
        mean, covariance = self._joint(x) if X.shape[-2] > 1 else self._single(x)
        if observation_noise:
            covariance = covariance + torch.diag_embed((self.scale * self.noise).unsqueeze(-1).expand(mean.shape))
        # As an operator it is not factorised before someone draws samples.
        posterior = _Posterior(MultivariateNormal(mean, to_linear_operator(covariance)))
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def _single(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, variance = self.moments(x)
        return mean, variance.unsqueeze(-1)

    def _joint(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (…, q) and covariance (…, q, q); where a point cannot be computed with, NaN and one to factorise."""
        cross = self._cross(x)
        mean = self.mean.unsqueeze(-1) + (cross @ self.weights.unsqueeze(-1)).squeeze(-1)
        white = cross @ self.inverse_root.mT
        prior = self.kernel.correlation(x, x, self.lengthscale)
        eye = torch.eye(mean.shape[-1], dtype=x.dtype, device=x.device)
        covariance = self.scale[..., None, None] * (prior - white @ white.mT) + _LEAST_VARIANCE * eye
        sound = covariance.isfinite().all(-1).all(-1)[..., None]
        return torch.where(sound, mean, torch.nan), torch.where(sound.unsqueeze(-1), covariance, eye)

    def leave_one_out(self) -> tuple[Tensor, Tensor]:
        """Mean and variance of each observation predicted from the others (Rasmussen and Williams, eq. 5.12)."""
        precision = self.inverse_root.square().sum(-2)
        return self.z - self.weights / precision, self.scale.unsqueeze(-1) / precision


def _gram_root(kernel: ManifoldKernel, x: Tensor, lengthscale: Tensor, noise: Tensor) -> Tensor:
    """The Cholesky factor of the correlations of x (…, n, *point) with relative noise (…) added."""
    gram = kernel.correlation(x, x, lengthscale)
    return torch.linalg.cholesky(gram + torch.diag_embed(noise.unsqueeze(-1).expand(gram.shape[:-1])))
