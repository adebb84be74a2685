"""Constraints in a search: those known in advance as limits of its domain, others by the chance that they hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from nestbo.acquisition import Limits
from nestbo.constraints import Constraints
from nestbo.kernels import ManifoldKernel
from nestbo.manifolds import Space
from nestbo.memory import Fit
from nestbo.search.runs import Runs, refits, together
from nestbo.surrogate import Description, Surrogate, fit

Reach = Callable[[Tensor], Tensor]  # from points (…, runs, 1, *point) of the domain of a search to points of the space


def limits(allowed: Constraints | None, domain: Space, reach: Reach) -> Limits | None:
    """What constraints known on the space mean on the domain of a search."""
    if allowed is None:
        return None
    inside, outside = (-len(space.point_shape) - 1 for space in (domain, allowed.space))
    return Limits(lambda z: allowed(reach(z.unsqueeze(inside)).squeeze(outside)), allowed.smooth and allowed.batched)


def constraint_models(kernel: ManifoldKernel, runs: Runs) -> list[Surrogate]:
    """One surrogate on the whole space for each observed constraint."""
    if runs.constraints is None:
        return []
    each = enumerate(runs.constraints.unbind(-1))
    return [_fitted(kernel, runs, values, rule_name(k)) for k, values in each]


def _fitted(kernel: ManifoldKernel, runs: Runs, values: Tensor, name: str) -> Surrogate:
    previous, effort = together(refits(runs, name))
    return fit(Description(kernel), replace(runs.data, y=values, noise=None), previous, effort)


def rule_name(k: int) -> str:
    """What the model of the k-th constraint is called."""
    return f"constraint:{k}"


def rule_fits(models: list[Surrogate], run: int) -> dict[str, Fit]:
    """Where the next fits of the constraints of a run start."""
    return {rule_name(k): model.fits[run] for k, model in enumerate(models)}


def log_chance(models: list[Surrogate], domain: Space, reach: Reach) -> Callable[[Tensor], Tensor] | None:
    """The logarithm of the probability that all constraints hold, at flat points (…, runs, 1, size) of the domain."""
    if not models:
        return None

    def chance(z: Tensor) -> Tensor:
        return log_probability(models, reach(z.unflatten(-1, domain.point_shape)))

    return chance


def log_probability(models: list[Surrogate], x: Tensor) -> Tensor:
    """The logarithm of the probability that all constraints hold at points x (…, runs, 1, *point), (…, runs)."""
    return sum((_log_probability(model, x) for model in models), start=torch.zeros((), dtype=x.dtype, device=x.device))


def _log_probability(model: Surrogate, x: Tensor) -> Tensor:
    """log P(c(x) ≥ 0), (…, runs)."""
    mean, variance = model.gp.moments(x)
    zero = model.outputs.forward(torch.zeros_like(model.gp.z[..., :1]))
    return torch.special.log_ndtr((mean - zero) / variance.sqrt()).squeeze(-1)
