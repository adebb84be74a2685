"""The density that a fit of BoTorch maximises, with the gradient of the likelihood in closed form.

A fit of fifty length scales evaluates the density up to thousands of times for one suggestion. The closure here has the
values and the gradients of BoTorch's own, about twice as fast (``benchmarks/density.py``). Matrices are changed in
place, because new ones of this size cost as much as the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

Profile = Callable[[Tensor], tuple[Tensor, Tensor]]  # of squared distances: correlations, and their derivatives


def density(mll: Any) -> Any:
    """The closure for ``fit_gpytorch_mll(mll, closure=…)``: minus the log density per observation, and its gradient.

    The model has a Gaussian kernel without a scale, as BoTorch's default, or a Matérn-5/2 kernel with a scale, as
    MAP-SAAS and TuRBO.
    """
    from botorch.optim.closures.core import ForwardBackwardClosure
    from botorch.optim.utils import get_parameters
    from gpytorch.kernels import ScaleKernel

    model = mll.model
    outer, mean, noise = model.covar_module, model.mean_module, model.likelihood.noise_covar
    scaled = isinstance(outer, ScaleKernel)
    kernel, profile = (outer.base_kernel, _matern52) if scaled else (outer, _gaussian)
    x = model.train_inputs[0]
    data = _Data(x - x.mean(0), model.train_targets, profile)
    one = torch.ones((), dtype=data.z.dtype)
    priors = [(prior, value, module) for _, module, prior, value, _ in model.named_priors()]

    def loss() -> Tensor:
        scale = outer.outputscale if scaled else one
        likelihood = _LogLikelihood.apply(data, kernel.lengthscale, scale, noise.noise, mean.constant)  # type: ignore[no-untyped-call]
        prior = sum(prior.log_prob(value(module)).sum() for prior, value, module in priors)
        return -(likelihood + prior) / len(data.z)

    return ForwardBackwardClosure(loss, get_parameters(mll, requires_grad=True))


class _Data(NamedTuple):
    x: Tensor
    z: Tensor
    profile: Profile


def _gaussian(q: Tensor) -> tuple[Tensor, Tensor]:
    k = q.div_(-2).exp_()
    return k, k / -2


def _matern52(q: Tensor) -> tuple[Tensor, Tensor]:
    a = q.mul_(5).sqrt_()
    decay = torch.exp(-a)
    slope = (1 + a) * decay
    return a.square_().div_(3).mul_(decay).add_(slope), slope.mul_(-5 / 6)


class _LogLikelihood(torch.autograd.Function):
    """log N(z; m, σ k(q) + noise·I) with q_ij = |x_i − x_j|² in units of the length scales.

    With r = z − m and α = K⁻¹r, the derivative with respect to K is H = ½(ααᵀ − K⁻¹). All others follow from it.
    """

    @staticmethod
    def forward(ctx: Any, data: _Data, lengths: Tensor, scale: Tensor, noise: Tensor, mean: Tensor) -> Tensor:
        from linear_operator.utils.cholesky import psd_safe_cholesky

        x = data.x / lengths
        k, slope = data.profile(_squared_distances(x))
        gram = scale * k
        gram.diagonal().add_(noise)
        root = psd_safe_cholesky(gram)  # GPyTorch's: adds the same jitter where it has to
        inverse = torch.cholesky_inverse(root)
        residual = data.z - mean
        alpha = inverse @ residual
        half = torch.outer(alpha, alpha).sub_(inverse).div_(2)
        to_scale, to_noise = (half * k).sum(), half.trace().expand_as(noise)
        to_lengths = -2 * scale / lengths * _moved(half.mul_(slope), x)
        ctx.save_for_backward(to_lengths, to_scale, to_noise, alpha.sum())
        constant = len(x) * math.log(2 * math.pi) / 2
        return -residual @ alpha / 2 - root.diagonal().log().sum() - constant

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        return None, *(upstream * gradient for gradient in ctx.saved_tensors)


def _squared_distances(x: Tensor) -> Tensor:
    squares = x.square().sum(-1)
    return torch.addmm(squares.unsqueeze(-1) + squares, x, x.mT, alpha=-2).clamp_(min=0)


def _moved(weights: Tensor, x: Tensor) -> Tensor:
    """Σ_ij w_ij (x_i − x_j)², one number per coordinate, of symmetric weights."""
    return 2 * ((weights.sum(-1, keepdim=True) * x - weights @ x) * x).sum(0)
