"""BoTorch as it comes: a Gaussian process on the cube and LogEI, and the same with a sparse axis-aligned prior."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from nestbo.experiment.rivals.base import Rival
from nestbo.experiment.rivals.density import density
from nestbo.experiment.rivals.posterior import Posterior
from nestbo.strategies.base import check_choice

MODELS = ("gp", "saas")
_RESTARTS, _RAW = 5, 256  # of the search for the maximum of LogEI


@dataclass(frozen=True, repr=False, kw_only=True)
class BoTorch(Rival):
    """``SingleTaskGP`` with its default priors, or BoTorch's MAP-SAAS model; LogEI, L-BFGS from five starts.

    The second is the sparse axis-aligned model of Eriksson and Jankowiak (2021), its parameters and its degree of
    sparsity being those of the largest posterior density.
    """

    model: str = "gp"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("model", self.model, MODELS)

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(model=model) for model in MODELS]

    def next(self, u: Tensor, y: Tensor, seed: int) -> Tensor:
        from botorch.acquisition import LogExpectedImprovement
        from botorch.utils.sampling import manual_seed

        with manual_seed(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that begin again: BoTorch goes on by itself
            model = Posterior(fitted(process(self.model, u, -y)))
            return maximised(LogExpectedImprovement(model, best_f=(-y).max()), u.shape[-1])


def process(name: str, u: Tensor, y: Tensor) -> Any:
    """One of the two models, at points u (n, size) with values y (n,), not yet fitted."""
    from botorch.models import SingleTaskGP
    from botorch.models.map_saas import get_map_saas_model
    from botorch.models.transforms import Standardize

    make = SingleTaskGP if name == "gp" else get_map_saas_model
    return make(u, y.unsqueeze(-1), outcome_transform=Standardize(1))


def fitted(model: Any) -> Any:
    """A model with the parameters of the largest posterior density."""
    from botorch.fit import fit_gpytorch_mll
    from gpytorch.mlls import ExactMarginalLogLikelihood

    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    fit_gpytorch_mll(mll, closure=density(mll))
    return model


def maximised(acquisition: Any, size: int, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """Where an acquisition function is largest in the cube, or between two corners of it."""
    from botorch.optim import optimize_acqf

    low = torch.zeros(size, dtype=torch.float64) if low is None else low
    high = torch.ones(size, dtype=torch.float64) if high is None else high
    found, _ = optimize_acqf(acquisition, torch.stack([low, high]), q=1, num_restarts=_RESTARTS, raw_samples=_RAW)
    return found[0]
