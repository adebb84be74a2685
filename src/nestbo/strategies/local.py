"""A trust region around the best point: a local model there finds its way along valleys that bend.

The idea is that of TuRBO (Eriksson et al. 2019), reduced to what the notes of a run can tell: no state is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nestbo.acquisition import Limits, maximise, scattered
from nestbo.kernels import kernel
from nestbo.manifolds import Manifold
from nestbo.optimise import Result
from nestbo.strategies.base import successes
from nestbo.strategies.runs import Runs
from nestbo.surrogate import Surrogate, fit_surrogate, median_parameters

_KERNEL = "gaussian"  # near a minimum most functions are smooth
_LARGEST, _FIRST, _LEAST = 0.6, 0.25, 0.005  # radii, of the typical distance
_GROWTH, _SHRINKAGE = 1.6, 0.75
_POINTS = 20  # of the local model, and three for each dimension
_STARTS = 256
_PENALTY = 100.0  # outside


def radius(arm: str, notes: list[dict[str, Any]], y: list[float]) -> float:
    """Of the trust region, relative to the space: widened by successes, narrowed by failures, in the end anew."""
    size = _FIRST
    for note, success in zip(notes, successes(y), strict=True):
        if note.get("arm") == arm:
            size = min(_LARGEST, _GROWTH * size) if success else _SHRINKAGE * size
            size = _FIRST if size < _LEAST else size
    return size


def search_near(
    latent: Manifold,
    runs: Runs,
    radii: list[float],
    acquisition: Callable[[Runs, Surrogate], Callable[[Tensor], Tensor]],
    *,
    priors: bool,
    optimiser: Callable[..., Result],
    limits: Limits | None = None,
) -> Tensor:
    """Where a model of the points around the best one is worth most, (runs, *point), for runs on the latent space."""
    x, y, each = runs.x, runs.y, torch.arange(len(runs.x), device=runs.x.device)
    features, best = latent.embed(x), runs.ranking.argmin(1)
    middle = features[each, best].unsqueeze(1)
    count = min(y.shape[1], _POINTS + 3 * latent.dim)
    around = (features - middle).norm(dim=-1).topk(count, largest=False).indices.T
    near = runs.at(x[each, around].transpose(0, 1), y[each, around].T, around.T)
    smooth = kernel(_KERNEL, latent)
    usual = median_parameters(smooth).expand(len(x), -1)  # few points, few parameters: a few steps from there will do
    model = fit_surrogate(smooth, near.x, near.y, runs.rngs, previous=usual, priors=priors, noise=near.noise)
    worth = acquisition(near, model)
    size = latent.typical_distance * torch.tensor(radii, dtype=x.dtype, device=x.device)

    def inside(z: Tensor) -> Tensor:
        away = (latent.embed(z.unflatten(-1, latent.point_shape)) - middle).norm(dim=-1).squeeze(-1)
        return worth(z) - _PENALTY * (away / size - 1).clamp(min=0).square()

    starts = scattered(latent, x[each, best].expand(_STARTS, *x[:, 0].shape), size.expand(_STARTS, -1), runs.rngs)
    return maximise(inside, latent, [starts], optimiser=optimiser, restarts=4, limits=limits)[0]
