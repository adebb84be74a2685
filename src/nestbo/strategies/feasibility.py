"""Constraints in a search: those known in advance as limits of its domain, others by the chance that they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nestbo.acquisition import Limits
from nestbo.constraints import Constraints
from nestbo.kernels import ManifoldKernel
from nestbo.manifolds import Manifold
from nestbo.strategies.base import due
from nestbo.strategies.runs import Runs
from nestbo.surrogate import Surrogate, fit_surrogate, previous_parameters

Reach = Callable[[Tensor], Tensor]  # from points (…, runs, 1, *point) of the domain of a search to points of the space


def limits(allowed: Constraints | None, domain: Manifold, reach: Reach) -> Limits | None:
    """What constraints known on the space mean on the domain of a search."""
    if allowed is None:
        return None
    inside, outside = (-len(space.point_shape) - 1 for space in (domain, allowed.space))
    return Limits(lambda z: allowed(reach(z.unsqueeze(inside)).squeeze(outside)), allowed.smooth and allowed.batched)


def constraint_models(kernel: ManifoldKernel, runs: Runs) -> list[Surrogate]:
    """One surrogate on the whole space for each observed constraint, fitted to each run once."""
    if runs.constraints is None:
        return []
    if "constraints" not in runs.cache:
        each = enumerate(runs.constraints.unbind(-1))
        runs.cache["constraints"] = [_fit(kernel, runs, values, _name(k)) for k, values in each]
    models: list[Surrogate] = runs.cache["constraints"]
    return models


def _fit(kernel: ManifoldKernel, runs: Runs, values: Tensor, name: str) -> Surrogate:
    noted = runs.noted(name)
    fresh = noted is None or any(due(note, values.shape[1]) for note in noted)
    previous = None if fresh or noted is None else previous_parameters(noted)
    return fit_surrogate(kernel, runs.x, values, runs.rngs, previous=previous)


def _name(k: int) -> str:
    return f"constraint:{k}"


def constraint_notes(models: list[Surrogate], notes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The notes of each run together with what the next fits of the constraints want to know."""
    fitted = [{_name(k): model.notes[run] for k, model in enumerate(models)} for run in range(len(notes))]
    return [note | more for note, more in zip(notes, fitted, strict=True)]


def log_chance(models: list[Surrogate], domain: Manifold, reach: Reach) -> Callable[[Tensor], Tensor] | None:
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
