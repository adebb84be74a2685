"""TuRBO, written from Eriksson, Pearce, Gardner, Turner and Poloczek (NeurIPS 2019), with one trust region."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from nestbo.experiment.rivals.base import INITIAL, Rival
from nestbo.experiment.rivals.posterior import Posterior
from nestbo.experiment.rivals.stock import fitted, maximised
from nestbo.strategies.base import check_choice

ACQUISITIONS = ("thompson", "logei")
_LENGTH, _LONGEST, _SHORTEST = 0.8, 1.6, 0.5**7  # of the region's side, in the unit cube (paper, section 2)
_SUCCESSES = 3  # in a row, after which the region doubles (paper, supplement)
_NOTICEABLE = 1e-3  # relative decrease of the best value that counts as a success (paper, supplement)
_MOVED = 20  # coordinates of the centre that a candidate changes on average (paper, supplement)
_CANDIDATES = 2000  # at most; 5,000 in the paper, whose joint sample costs seconds on one core
_LENGTH_SCALES, _SIGNALS, _NOISES = (0.005, 2.0), (0.05, 20.0), (5e-4, 0.1)  # bounds of the fit (paper, supplement)


class Region(NamedTuple):
    """A trust region: the evaluation with which it began, and its side."""

    first: int
    side: float


def region(y: list[float], size: int) -> Region:
    """The trust region after values y: it doubles after successes, halves after failures, begins anew when small."""
    first, side, best, successes, failures = 0, _LENGTH, math.inf, 0, 0
    for k, value in enumerate(y):
        if k - first < INITIAL:
            best = min(best, value)
            continue
        succeeded = value < best - _NOTICEABLE * abs(best)
        successes, failures = (successes + 1, 0) if succeeded else (0, failures + 1)
        best = min(best, value)
        if successes == _SUCCESSES:
            side, successes = min(2 * side, _LONGEST), 0
        elif failures == size:
            side, failures = side / 2, 0
        if side < _SHORTEST:
            first, side, best, successes, failures = k + 1, _LENGTH, math.inf, 0, 0
    return Region(first, side)


@dataclass(frozen=True, repr=False, kw_only=True)
class Turbo(Rival):
    """A Gaussian process with a length scale per coordinate, searched in a box around the best point.

    The box has the proportions of the length scales; its side follows success and failure. The next point is the best
    of a joint sample of the posterior at candidates ("thompson", as published), or the maximum of LogEI ("logei").
    """

    acquisition: str = "thompson"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("acquisition", self.acquisition, ACQUISITIONS)

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(acquisition=name) for name in ACQUISITIONS]

    def next(self, u: Tensor, y: Tensor, seed: int) -> Tensor:
        from botorch.utils.sampling import manual_seed

        now = region(y.tolist(), u.shape[-1])
        rng = torch.Generator().manual_seed(seed)
        u, y = u[now.first :], y[now.first :]
        if len(y) < INITIAL:
            return torch.rand(u.shape[-1], generator=rng, dtype=torch.float64)
        with manual_seed(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that begin again: BoTorch goes on by itself
            model = fitted(_model(u, y))
            low, high = _box(model, u[y.argmin()], now.side)
            if self.acquisition == "logei":
                return _most_promising(model, y, low, high)
            return _sampled(model, _candidates(u[y.argmin()], low, high, rng))


def _model(u: Tensor, y: Tensor) -> Any:
    """Matérn-5/2 with a length scale for each coordinate, on standardised values of opposite sign; not yet fitted."""
    from botorch.models import SingleTaskGP
    from gpytorch.constraints import Interval
    from gpytorch.kernels import MaternKernel, ScaleKernel
    from gpytorch.likelihoods import GaussianLikelihood

    z = (y.mean() - y) / y.std().clamp(min=1e-12)
    scales = Interval(*_LENGTH_SCALES, initial_value=0.5)
    matern = MaternKernel(2.5, ard_num_dims=u.shape[-1], lengthscale_constraint=scales)
    kernel = ScaleKernel(matern, outputscale_constraint=Interval(*_SIGNALS, initial_value=1.0))
    noise = GaussianLikelihood(noise_constraint=Interval(*_NOISES, initial_value=0.005))
    return SingleTaskGP(u, z.unsqueeze(-1), likelihood=noise, covar_module=kernel, outcome_transform=None)


def _box(model: Any, centre: Tensor, side: float) -> tuple[Tensor, Tensor]:
    """Corners of the region: its sides are in the proportion of the length scales, their product is side^size."""
    scales = model.covar_module.base_kernel.lengthscale.detach().squeeze(0)
    half = side / 2 * scales / scales.log().mean().exp()
    return (centre - half).clamp(0, 1), (centre + half).clamp(0, 1)


def _candidates(centre: Tensor, low: Tensor, high: Tensor, rng: torch.Generator) -> Tensor:
    """Points of the region that differ from its centre in some coordinates, at least in one."""
    size = len(centre)
    count = min(100 * size, _CANDIDATES)
    drawn = torch.rand(count, size, generator=rng, dtype=torch.float64)
    moved = torch.rand(count, size, generator=rng, dtype=torch.float64) < min(1.0, _MOVED / size)
    moved[torch.arange(count), torch.randint(size, (count,), generator=rng)] = True
    return torch.where(moved, low + (high - low) * drawn, centre)


def _sampled(model: Any, candidates: Tensor) -> Tensor:
    """The candidate where a joint sample of the posterior is best."""
    with torch.no_grad():
        sample = model.posterior(candidates).rsample().flatten()
    return candidates[sample.argmax()]


def _most_promising(model: Any, y: Tensor, low: Tensor, high: Tensor) -> Tensor:
    from botorch.acquisition import LogExpectedImprovement

    best = (y.mean() - y.min()) / y.std().clamp(min=1e-12)
    return maximised(LogExpectedImprovement(Posterior(model), best_f=best), len(low), low, high)
