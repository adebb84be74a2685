"""TuRBO-1, from its description: Eriksson, Pearce, Gardner, Turner and Poloczek (NeurIPS 2019), section 2 and appendix.

A Gaussian process with one length scale per coordinate, fitted to the evaluations since the last restart; a box around
the best of them, whose sides are proportional to the length scales; Thompson sampling on candidates of the box, each
of which changes a few coordinates of the best. The box doubles after three successes in a row, halves after d failures
in a row, and a new search begins when it is tiny.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

_FIRST, _LARGEST, _LEAST = 0.8, 1.6, 2.0**-7  # of the side of the box
_SUCCESSES = 3  # in a row, until the box grows
_MOST_CANDIDATES = 2000  # the paper has 5000; with these a suggestion takes less than a second on one core
_CHANGED = 20  # coordinates of the best that a candidate changes, on average, at most
_NOTICEABLE = 1e-3  # relative gain that counts as a success


@dataclass(frozen=True)
class Region:
    """The box of a search: its side, and how many successes or failures came in a row."""

    side: float = _FIRST
    successes: int = 0
    failures: int = 0

    def after(self, success: bool, patience: int) -> Region:
        """The box after one more evaluation."""
        if success:
            grown = self.successes + 1 >= _SUCCESSES
            return (
                Region(min(2 * self.side, _LARGEST))
                if grown
                else replace(self, successes=self.successes + 1, failures=0)
            )
        shrunk = self.failures + 1 >= patience
        return Region(self.side / 2) if shrunk else replace(self, failures=self.failures + 1, successes=0)


def turbo(evaluate: Callable[[Tensor], float], size: int, rng: torch.Generator) -> None:
    """Minimise over the unit cube, until ``evaluate`` raises."""
    while True:
        _search(evaluate, size, rng)


def _search(evaluate: Callable[[Tensor], float], size: int, rng: torch.Generator) -> None:
    """One search, from random points to a tiny box."""
    x = _sobol(2 * size if size <= 10 else size + 10, size, rng)
    y = torch.tensor([evaluate(point) for point in x], dtype=torch.float64)
    region = Region()
    while region.side >= _LEAST:
        new = _thompson(x, y, region.side, rng)
        value = evaluate(new)
        success = value < float(y.min()) - _NOTICEABLE * abs(float(y.min()))
        region = region.after(success, patience=max(4, size))
        x, y = torch.cat([x, new[None]]), torch.cat([y, y.new_tensor([value])])


def _thompson(x: Tensor, y: Tensor, side: float, rng: torch.Generator) -> Tensor:
    """The candidate where a sample of the posterior is lowest."""
    model = _model(x, y)
    candidates = _candidates(x[y.argmin()], _scales(model), side, rng)
    with torch.no_grad():
        posterior = model.posterior(candidates).distribution
        root = psd_safe_cholesky(posterior.covariance_matrix)
        sample = posterior.mean + root @ torch.randn(len(candidates), dtype=x.dtype, generator=rng)
    best: Tensor = candidates[sample.argmin()]
    return best


def _model(x: Tensor, y: Tensor) -> Any:
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Standardize
    from gpytorch.kernels import MaternKernel, ScaleKernel
    from gpytorch.mlls import ExactMarginalLogLikelihood

    kernel = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=x.shape[-1]))
    model = SingleTaskGP(x, y[:, None], covar_module=kernel, outcome_transform=Standardize(1))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def _scales(model: Any) -> Tensor:
    """Length scales with a geometric mean of one."""
    found: Tensor = model.covar_module.base_kernel.lengthscale.detach().squeeze(0)
    return found / found.log().mean().exp()


def _candidates(best: Tensor, scales: Tensor, side: float, rng: torch.Generator) -> Tensor:
    """Points of the box around the best, each of which differs from it in some coordinates, in one at least."""
    size = len(best)
    low, high = ((best + sign * side * scales / 2).clamp(0, 1) for sign in (-1, 1))
    drawn = low + (high - low) * _sobol(min(100 * size, _MOST_CANDIDATES), size, rng)
    chance = min(1.0, _CHANGED / size)
    changed = torch.rand(drawn.shape, generator=rng, dtype=drawn.dtype) <= chance
    one = torch.randint(size, (len(drawn),), generator=rng)
    changed[torch.arange(len(drawn)), one] = True
    return torch.where(changed, drawn, best)


def _sobol(count: int, size: int, rng: torch.Generator) -> Tensor:
    seed = int(torch.randint(2**31, (), generator=rng))
    return torch.quasirandom.SobolEngine(size, scramble=True, seed=seed).draw(count, dtype=torch.float64)
