"""What a fit minimises: the likelihood of the parameters of a process, with its priors, and rivals of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nestbo.kernels import ManifoldKernel

NOISE_PRIOR = (math.log(1e-4), 3.0)  # mean and deviation of the logarithm of the relative noise
_SCALE_PRIOR = (1.0, 1.5)  # shape and rate of the inverse gamma prior of the signal's variance


def negative_log_likelihood(
    kernel: ManifoldKernel,
    parameters: Tensor,
    statistic: Tensor,
    z: Tensor,
    priors: bool,
    noise: Tensor | None = None,
    weights: Tensor | None = None,
) -> Tensor:
    """−log p(z | parameters) (…), less the log priors if wanted, at the best mean and scale, up to a constant.

    Where the variance of the ``noise`` is known, (runs, 1), it and the relative noise give the scale; ``weights``
    (runs, 1, n) say how much more or less noisy each observation is than that.
    """
    gram = noisy_gram(kernel, parameters, statistic, weights)
    half_log_determinant, square = _Whitened.apply(gram, z.expand(gram.shape[:-1]))  # type: ignore[no-untyped-call]
    weight, rate = scale_prior(z, priors)
    loss = half_log_determinant + _at_scale(square, weight, rate, parameters, noise)
    return loss + _unusual(kernel, parameters, noise) if priors else loss


def _at_scale(square: Tensor, weight: float, rate: float, parameters: Tensor, noise: Tensor | None) -> Tensor:
    """What the scale of the signal adds: at the best one, or at that which the known noise gives."""
    if noise is None:
        return weight * best_scale(square, weight, rate).log()
    scale = noise / parameters[..., -1].exp()
    return weight * scale.log() + (square / 2 + rate) / scale


def _unusual(kernel: ManifoldKernel, parameters: Tensor, noise: Tensor | None) -> Tensor:
    """Minus the log priors of length scales and, unless it is known, of the relative noise."""
    centre, width = NOISE_PRIOR
    unusual = ((parameters[..., -1] - centre) / width) ** 2 / 2 if noise is None else 0
    return unusual - kernel.log_prior(parameters[..., :-1])


def leave_one_out(
    kernel: ManifoldKernel,
    parameters: Tensor,
    statistic: Tensor,
    z: Tensor,
    priors: bool,
    noise: Tensor | None = None,
    weights: Tensor | None = None,
) -> Tensor:
    """−Σ log p(z_i | the others) at the best mean and scale, less the log priors: what predicts, not what explains."""
    root, failed = torch.linalg.cholesky_ex(noisy_gram(kernel, parameters, statistic, weights))
    root = torch.where((failed != 0)[..., None, None], torch.nan, root)
    inverse = _inverse(root)
    both = torch.stack([z, torch.ones_like(z)], -1).expand(*inverse.shape[:-1], 2)
    of_z, of_one = (inverse @ both).unbind(-1)
    mean = of_z.sum(-1, keepdim=True) / of_one.sum(-1, keepdim=True)
    alpha, precision = of_z - mean * of_one, inverse.diagonal(dim1=-2, dim2=-1)
    weight, rate = scale_prior(z, priors)
    square = (alpha.square() / precision).sum(-1)
    loss = _at_scale(square, weight, rate, parameters, noise) - precision.log().sum(-1) / 2
    return loss + _unusual(kernel, parameters, noise) if priors else loss


Criterion = Callable[..., Tensor]
CRITERIA: dict[str, Criterion] = {"likelihood": negative_log_likelihood, "leave-one-out": leave_one_out}


def noisy_gram(kernel: ManifoldKernel, parameters: Tensor, statistic: Tensor, weights: Tensor | None = None) -> Tensor:
    """Correlations with relative noise on the diagonal, (…, n, n), at parameters (…, scales + 1)."""
    gram = kernel.correlate(statistic, parameters[..., :-1].exp()[..., None, None, :])
    noise = parameters[..., -1:].exp()
    noise = noise if weights is None else noise * weights
    return gram + torch.diag_embed(noise.expand(gram.shape[:-1]))


class _Whitened(torch.autograd.Function):
    """½ log|K| and (z − m)ᵀK⁻¹(z − m) at the mean m that makes it least; one Cholesky factorisation.

    m is optimal, so that the derivatives are ½K⁻¹ and −ααᵀ with α = K⁻¹(z − m), as if it were constant.
    """

    @staticmethod
    def forward(ctx: Any, k: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        root, failed = torch.linalg.cholesky_ex(k)
        root = torch.where((failed != 0)[..., None, None], torch.nan, root)
        _, residual = best_mean(root, z)
        ctx.save_for_backward(root, residual)
        half_log = root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return half_log, residual.square().sum(-1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, to_log: Tensor, to_square: Tensor) -> tuple[Tensor, None]:
        root, residual = ctx.saved_tensors
        alpha = torch.linalg.solve_triangular(root.mT, residual.unsqueeze(-1), upper=True)
        inverse = to_log[..., None, None] * _inverse(root) / 2
        return inverse - to_square[..., None, None] * (alpha @ alpha.mT), None


def _inverse(root: Tensor) -> Tensor:
    """(L Lᵀ)⁻¹; a GPU has to be waited for where it has a function for this."""
    if not root.is_cuda:
        return torch.cholesky_inverse(root)
    eye = torch.eye(root.shape[-1], dtype=root.dtype, device=root.device)
    half = torch.linalg.solve_triangular(root, eye, upper=False)
    return half.mT @ half


def best_mean(root: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """Given K = L Lᵀ: the most likely mean m, and L⁻¹(z − m)."""
    both = torch.stack([z, torch.ones_like(z)], -1)
    white, ones = torch.linalg.solve_triangular(root, both, upper=False).unbind(-1)
    mean = (white * ones).sum(-1) / ones.square().sum(-1)
    return mean, white - mean.unsqueeze(-1) * ones


def scale_prior(z: Tensor, priors: bool) -> tuple[float, float]:
    """The weight of log s² in the loss, n/2 + a + 1, and the rate of the prior of s²; n/2 and 0 without one."""
    shape, rate = _SCALE_PRIOR if priors else (-1.0, 0.0)
    return z.shape[-1] / 2 + shape + 1, rate


def best_scale(square: Tensor, weight: float, rate: float) -> Tensor:
    """The most likely variance of the signal."""
    return ((square / 2 + rate) / weight).clamp(min=1e-12)
