"""The surrogate: one exact Gaussian process per run, on a manifold, batched over runs.

It is a BoTorch model, so that BoTorch's acquisition functions run on it, but computes its posterior in closed form
instead of through gpytorch: the same numbers, for a batch of runs at once, and with cheap second derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from gpytorch.distributions import MultivariateNormal
from linear_operator import to_linear_operator
from torch import Tensor

from nestbo.kernels import ManifoldKernel
from nestbo.manifolds import Box
from nestbo.optimise import lbfgs
from nestbo.outputs import Outputs, Standardise

_NOISE = (1e-6, 1.0)  # the variance of noise relative to that of the signal
_NOISE_PRIOR = (math.log(1e-4), 3.0)  # mean and deviation of its logarithm
_SCALE_PRIOR = (1.0, 1.5)  # shape and rate of the inverse gamma prior of the signal's variance
_LEAST_VARIANCE = 1e-10  # that of gpytorch, which warns below it
_STARTS = 4
_FIT_ITERATIONS = 40
_FIT_TOLERANCE = 1e-3


class GP(Model):  # type: ignore[misc]
    """A Gaussian process posterior, in the units of its training values.

    kernel, x (*runs, n, *point), z (*runs, n), length scales (*runs, scales), and per run the mean, the variance of the
    signal and that of the noise relative to it; ``root`` is the factor of the noisy Gram matrix, where it is at hand.
    As a BoTorch model it takes points flattened to vectors.
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
        self.root = gram_root(kernel, x, lengthscale, noise) if root is None else root
        eye = torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)
        self.inverse_root = torch.linalg.solve_triangular(self.root, eye, upper=False)
        self.weights = (self.inverse_root.mT @ (self.inverse_root @ (z - mean.unsqueeze(-1)).unsqueeze(-1))).squeeze(-1)

    @property
    def num_outputs(self) -> int:
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        return self.z.shape[:-1]

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of the function at x (…, *runs, q, *point), each (…, *runs, q)."""
        cross = self.kernel.correlation(x, self.x, self.lengthscale)
        mean = self.mean.unsqueeze(-1) + (cross @ self.weights.unsqueeze(-1)).squeeze(-1)
        explained = (cross @ self.inverse_root.mT).square().sum(-1)
        return mean, (self.scale.unsqueeze(-1) * (1 - explained)).clamp(min=_LEAST_VARIANCE)

    def posterior(
        self,
        X: Tensor,  # noqa: N803
        output_indices: list[int] | None = None,
        observation_noise: bool = False,
        posterior_transform: Callable[[GPyTorchPosterior], Any] | None = None,
    ) -> Any:
        """The joint posterior at X (…, *runs, q, size), of the function or of noisy observations of it."""
        x = X.unflatten(-1, self.kernel.space.point_shape)
        cross = self.kernel.correlation(x, self.x, self.lengthscale)
        mean = self.mean.unsqueeze(-1) + (cross @ self.weights.unsqueeze(-1)).squeeze(-1)
        white = cross @ self.inverse_root.mT
        prior = self.kernel.correlation(x, x, self.lengthscale) if X.shape[-2] > 1 else X.new_ones(1, 1)
        covariance = self.scale[..., None, None] * (prior - white @ white.mT)
        if X.shape[-2] == 1:
            covariance = covariance.clamp(min=_LEAST_VARIANCE)
        else:
            covariance = covariance + _LEAST_VARIANCE * torch.eye(X.shape[-2], dtype=X.dtype, device=X.device)
        if observation_noise:
            covariance = covariance + torch.diag_embed((self.scale * self.noise).unsqueeze(-1).expand(mean.shape))
        # As an operator it is not factorised before someone draws samples.
        posterior = GPyTorchPosterior(MultivariateNormal(mean, to_linear_operator(covariance)))
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def leave_one_out(self) -> tuple[Tensor, Tensor]:
        """Mean and variance of each observation predicted from the others (Rasmussen and Williams, eq. 5.12)."""
        precision = self.inverse_root.square().sum(-2)
        return self.z - self.weights / precision, self.scale.unsqueeze(-1) / precision


@dataclass(frozen=True)
class Surrogate:
    """A fitted model of an objective: ``gp`` in the model's units, ``outputs`` between these and the objective's."""

    gp: GP
    outputs: Outputs
    notes: tuple[dict[str, Any], ...]

    def predict(self, x: Tensor, deviations: float = 0.0) -> Tensor:
        """The median prediction at points (…, *runs, q, *point), moved by a number of standard deviations."""
        mean, variance = self.gp.moments(x)
        return self.outputs.inverse(mean + deviations * variance.sqrt())


def fit_surrogate(
    kernel: ManifoldKernel,
    x: Tensor,
    y: Tensor,
    rngs: list[torch.Generator],
    *,
    outputs: type[Outputs] = Standardise,
    priors: bool = True,
    previous: Tensor | None = None,
    noise: float | None = None,
) -> Surrogate:
    """Fit length scales, noise, mean and scale to x (runs, n, *point), y (runs, n), n ≥ 1, one generator per run.

    With ``priors`` the fit is maximum a posteriori, else maximum likelihood, best of several starts: ``previous``
    parameters (runs, scales + 1) where there are any, the prior's median, and random ones. It does not fail: where
    nothing finite was found, the prior's median stands in, shortened until the Gram matrix is positive definite, and
    the note says so. ``noise`` is the variance of the noise in y, if it is known; a map of the outputs that is not
    linear has no use for it.
    """
    transform = outputs.fit(y)
    z = transform.forward(y)
    known = None if noise is None else transform.noise(noise)
    if known is not None:  # less than this is lost in the rounding of the Gram matrix anyway
        known = known.clamp(min=100 * max(_NOISE[0], kernel.tolerance))
    box = _parameter_box(kernel, known is not None)
    starts = _starts(kernel, box, rngs, previous)
    statistic = kernel.statistic(x, x)

    def loss(parameters: Tensor, statistic: Tensor, z: Tensor, *known: Tensor) -> Tensor:
        return negative_log_likelihood(kernel, parameters, statistic.unsqueeze(1), z.unsqueeze(1), priors, *known)

    data = (statistic, z) if known is None else (statistic, z, known)
    found = lbfgs(loss, box, starts, data=data, tolerance=_FIT_TOLERANCE, max_iterations=_FIT_ITERATIONS)
    value = found.value.nan_to_num(nan=math.inf)
    chosen = value.argmin(1)
    runs = torch.arange(len(x), device=x.device)
    failed = ~value[runs, chosen].isfinite()
    parameters = torch.where(failed.unsqueeze(-1), starts[:, 0], found.point[runs, chosen])
    parameters = _shortened(kernel, parameters, statistic) if failed.any() else parameters
    gp = _condition(kernel, x, z, parameters, priors, known)
    return Surrogate(gp, transform, tuple(map(_note, parameters.tolist(), value[runs, chosen].tolist())))


def _note(parameters: list[float], value: float) -> dict[str, Any]:
    note: dict[str, Any] = {"parameters": parameters}
    return note if math.isfinite(value) else {**note, "fallback": "the fit failed; the prior's median stands in"}


def previous_parameters(kernel: ManifoldKernel, notes: list[dict[str, Any]]) -> Tensor:
    """The fitted parameters (runs, scales + 1) in the notes of each run; the prior's median where there are none."""
    median = _median_parameters(kernel).tolist()
    rows = [note.get("parameters", median) for note in notes]
    fits = [len(row) == len(median) for row in rows]
    return torch.tensor([row if fit else median for row, fit in zip(rows, fits, strict=True)], dtype=torch.float64)


def _median_parameters(kernel: ManifoldKernel) -> Tensor:
    return torch.cat([kernel.median_lengthscale.log(), torch.tensor([_NOISE_PRIOR[0]], dtype=torch.float64)])


def _parameter_box(kernel: ManifoldKernel, known: bool) -> Box:
    """Bounds of (log length scales, log relative noise); with known noise the latter sets the signal's scale."""
    low, high = kernel.lengthscale_bounds
    least, most = max(_NOISE[0], kernel.tolerance), 1e3 if known else _NOISE[1]
    return Box(
        [*low.log().tolist(), math.log(least)],  # type: ignore[arg-type]
        [*high.log().tolist(), math.log(most)],  # type: ignore[arg-type]
    )


def _starts(kernel: ManifoldKernel, box: Box, rngs: list[torch.Generator], previous: Tensor | None) -> Tensor:
    """(runs, starts, parameters): the prior's median first, then the previous fit, then draws from the prior."""
    median = _median_parameters(kernel)
    size = len(median)
    count = _STARTS if previous is None else 1
    draws = torch.stack(
        [torch.randn(count - 1, size, generator=rng, dtype=torch.float64, device=rng.device) for rng in rngs]
    )
    median = median.to(draws)
    starts = [median.expand(len(rngs), 1, size), median + draws]
    if previous is not None:
        starts.append(previous.to(draws).unsqueeze(1))
    return box.project(torch.cat(starts, 1))


def negative_log_likelihood(
    kernel: ManifoldKernel,
    parameters: Tensor,
    statistic: Tensor,
    z: Tensor,
    priors: bool,
    noise: Tensor | None = None,
) -> Tensor:
    """−log p(z | parameters) (…), less the log priors if wanted, at the best mean and scale, up to a constant.

    Where the variance of the ``noise`` is known, (runs, 1), it and the relative noise give the scale.
    """
    gram = _noisy_gram(kernel, parameters, statistic)
    half_log_determinant, square = _Whitened.apply(gram, z.expand(gram.shape[:-1]))  # type: ignore[no-untyped-call]
    weight, rate = _scale_prior(z, priors)
    log_lengthscale, log_noise = parameters[..., :-1], parameters[..., -1]
    if noise is None:
        loss = half_log_determinant + weight * _best_scale(square, weight, rate).log()
    else:
        scale = noise / log_noise.exp()
        loss = half_log_determinant + weight * scale.log() + (square / 2 + rate) / scale
    if not priors:
        return loss
    centre, width = _NOISE_PRIOR
    usual = ((log_noise - centre) / width) ** 2 / 2 if noise is None else 0
    return loss - kernel.log_prior(log_lengthscale) + usual


def _noisy_gram(kernel: ManifoldKernel, parameters: Tensor, statistic: Tensor) -> Tensor:
    gram = kernel.correlate(statistic, parameters[..., :-1].exp()[..., None, None, :])
    return gram + torch.diag_embed(parameters[..., -1:].exp().expand(gram.shape[:-1]))


def _shortened(kernel: ManifoldKernel, parameters: Tensor, statistic: Tensor) -> Tensor:
    """Halve the length scales of those runs whose Gram matrix is not positive definite until it is."""
    least = kernel.lengthscale_bounds[0].log().to(parameters)
    while (broken := torch.linalg.cholesky_ex(_noisy_gram(kernel, parameters, statistic)).info != 0).any():
        shorter = torch.maximum(parameters[..., :-1] - math.log(2), least)
        if (shorter == parameters[..., :-1])[broken].all():
            break
        shorter = torch.where(broken.unsqueeze(-1), shorter, parameters[..., :-1])
        parameters = torch.cat([shorter, parameters[..., -1:]], -1)
    return parameters


class _Whitened(torch.autograd.Function):
    """½ log|K| and (z − m)ᵀK⁻¹(z − m) at the mean m that makes it least; one Cholesky factorisation.

    m is optimal, so that the derivatives are ½K⁻¹ and −ααᵀ with α = K⁻¹(z − m), as if it were constant.
    """

    @staticmethod
    def forward(ctx: Any, k: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        root, failed = torch.linalg.cholesky_ex(k)
        root = torch.where((failed != 0)[..., None, None], torch.nan, root)
        _, residual = _best_mean(root, z)
        ctx.save_for_backward(root, residual)
        return root.diagonal(dim1=-2, dim2=-1).log().sum(-1), residual.square().sum(-1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, to_log: Tensor, to_square: Tensor) -> tuple[Tensor, None]:
        root, residual = ctx.saved_tensors
        alpha = torch.linalg.solve_triangular(root.mT, residual.unsqueeze(-1), upper=True)
        inverse = to_log[..., None, None] * torch.cholesky_inverse(root) / 2
        return inverse - to_square[..., None, None] * (alpha @ alpha.mT), None


def _best_mean(root: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """Given K = L Lᵀ: the most likely mean m, and L⁻¹(z − m)."""
    both = torch.stack([z, torch.ones_like(z)], -1)
    white, ones = torch.linalg.solve_triangular(root, both, upper=False).unbind(-1)
    mean = (white * ones).sum(-1) / ones.square().sum(-1)
    return mean, white - mean.unsqueeze(-1) * ones


def _scale_prior(z: Tensor, priors: bool) -> tuple[float, float]:
    """The weight of log s² in the loss, n/2 + a + 1, and the rate of the prior of s²; n/2 and 0 without one."""
    shape, rate = _SCALE_PRIOR if priors else (-1.0, 0.0)
    return z.shape[-1] / 2 + shape + 1, rate


def _best_scale(square: Tensor, weight: float, rate: float) -> Tensor:
    return ((square / 2 + rate) / weight).clamp(min=1e-12)


def _condition(
    kernel: ManifoldKernel, x: Tensor, z: Tensor, parameters: Tensor, priors: bool, known: Tensor | None
) -> GP:
    """The process with these parameters, given the data."""
    lengthscale, noise = parameters[..., :-1].exp(), parameters[..., -1].exp()
    root = gram_root(kernel, x, lengthscale, noise)
    mean, residual = _best_mean(root, z)
    best = _best_scale(residual.square().sum(-1), *_scale_prior(z, priors))
    scale = best if known is None else known.squeeze(-1) / noise
    return GP(kernel, x, z, lengthscale, mean, scale, noise, root)


def gram_root(kernel: ManifoldKernel, x: Tensor, lengthscale: Tensor, noise: Tensor) -> Tensor:
    """The Cholesky factor of the correlations of x (…, n, *point) with relative noise (…) added."""
    gram = kernel.correlation(x, x, lengthscale)
    return torch.linalg.cholesky(gram + torch.diag_embed(noise.unsqueeze(-1).expand(gram.shape[:-1])))
