"""The posterior of a fitted model of BoTorch at single points, in closed form.

A search for the maximum of an acquisition function asks for it a hundred times. The answers are those of BoTorch, about
twice as fast (``benchmarks/density.py``), because nothing is prepared for joint samples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Marginal(NamedTuple):
    """Mean and variance (b, 1, 1) of the objective at points (b, 1, size)."""

    mean: Tensor
    variance: Tensor


class Posterior(torch.nn.Module):
    """Stands for a fitted model in BoTorch's analytic acquisition functions, which read no more than this of it.

    With the Gram matrix K = LLᵀ of the data, noise included, the mean is m + kᵀK⁻¹(z − m) and the variance
    k(x, x) − |L⁻¹k|²; an outcome transform is undone.
    """

    num_outputs = 1

    def __init__(self, model: Any) -> None:
        from linear_operator.utils.cholesky import psd_safe_cholesky

        super().__init__()
        self.x, self.kernel = model.train_inputs[0], model.covar_module
        with torch.no_grad():
            gram = self.kernel(self.x).to_dense()
            self.prior = gram[0, 0].clone()  # the same at all points: the kernel is stationary
            gram.diagonal().add_(model.likelihood.noise)
            root = psd_safe_cholesky(gram)
            self.whitening = torch.linalg.solve_triangular(root, torch.eye(len(root), dtype=root.dtype), upper=False)
            self.constant = model.mean_module.constant.clone()
            self.weights = self.whitening.mT @ (self.whitening @ (model.train_targets - self.constant))
        transform = getattr(model, "outcome_transform", None)
        self.shift: Tensor | float = 0.0 if transform is None else transform.means
        self.unit: Tensor | float = 1.0 if transform is None else transform.stdvs

    def posterior(self, X: Tensor, posterior_transform: None = None) -> Marginal:  # noqa: N803 (BoTorch calls it X)
        """The marginal distributions at points (b, 1, size)."""
        from gpytorch.settings import min_variance

        k = self.kernel(X.squeeze(-2), self.x).to_dense()
        mean = self.constant + k @ self.weights
        variance = self.unit**2 * _alone(self.prior - (k @ self.whitening.mT).square().sum(-1))
        least = min_variance.value(X.dtype)  # in the units of the objective, as in BoTorch
        return Marginal(self.shift + self.unit * _alone(mean), variance.clamp(min=least))


def _alone(values: Tensor) -> Tensor:
    return values[:, None, None]
