"""Fitting the geometry-aware nested surrogate: mapping and hyperparameters together (paper, section 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nestbo.kernels import ManifoldKernel
from nestbo.manifolds import Euclidean, Product
from nestbo.nested import Nesting
from nestbo.outputs import Outputs, Standardise
from nestbo.surrogate.fit import (
    Surrogate,
    best_of,
    condition,
    median_parameters,
    note_of,
    parameter_box,
    representative,
    shortened,
    targets,
)
from nestbo.surrogate.likelihood import Criterion, negative_log_likelihood

_RANDOM_STARTS = 3
_PENALTY = 10.0
_PERTURBATION = 0.2  # of the typical distance of two subspaces


def fit_nested(
    nesting: Nesting,
    kernel: ManifoldKernel,
    x: Tensor,
    y: Tensor,
    rngs: list[torch.Generator],
    *,
    outputs: Callable[[Tensor], Outputs] = Standardise.fit,
    priors: bool = True,
    previous: list[dict[str, Any]] | None = None,
    fresh: bool = False,
    guess: Tensor | None = None,
    noise: float | Tensor | None = None,
    criterion: Criterion = negative_log_likelihood,
) -> Surrogate:
    """Fit basis, length scales, noise, mean and scale to x (runs, n, *point), y (runs, n), one generator per run.

    ``kernel`` is one on the latent space. The search runs over (subspaces) × (log parameters): a few steps from the
    ``previous`` fit, as the notes of each run have it; with ``fresh``, or where there is none, many steps from several
    starts: it and a perturbation of it, or else random subspaces, and a ``guess``. ``criterion`` is what is minimised.
    """
    transform, z, known = targets(kernel, y, outputs, noise)
    box = parameter_box(kernel, bool(known))
    both = Product(nesting.bases, Euclidean(box.dim))  # the bounds are a penalty: cheaper than following them
    starts = _starts(nesting, kernel, both, rngs, previous, guess)
    starts = starts[:, :1] if previous is not None and not fresh else starts

    def loss(point: Tensor, prepared: Tensor, z: Tensor, *known: Tensor) -> Tensor:
        basis, wanted = both.split(point)
        parameters = box.project(wanted)
        latent = nesting.project(basis, prepared.unsqueeze(1))
        loss = criterion(kernel, parameters, kernel.statistic(latent, latent), z.unsqueeze(1), priors, *known)
        return loss + _PENALTY * (wanted - parameters).square().sum(-1)

    seen, values, *weights = representative(nesting.prepare(x), z, *known[1:])
    data = (seen, values, *known[:1], *(each.unsqueeze(1) for each in weights))
    point, value = best_of(loss, both, starts, data, warm=previous is not None and not fresh)
    basis, parameters = both.split(point)
    parameters = box.project(parameters)
    mapping = nesting.at(basis)
    latent = mapping.project(x)
    parameters = shortened(kernel, parameters, latent, known)
    notes = tuple(
        note_of(p, v, values.shape[1], y.shape[1]) | {"basis": b}
        for p, v, b in zip(parameters.tolist(), value.tolist(), basis.tolist(), strict=True)
    )
    return Surrogate(condition(kernel, latent, z, parameters, priors, known), transform, mapping, notes, value)


def _starts(
    nesting: Nesting,
    kernel: ManifoldKernel,
    both: Product,
    rngs: list[torch.Generator],
    previous: list[dict[str, Any]] | None,
    guess: Tensor | None,
) -> Tensor:
    """(runs, starts, size), with the previous parameters where there are any, else the medians of their priors."""
    bases = nesting.bases
    found = torch.stack([bases.random(_RANDOM_STARTS, rng=rng) for rng in rngs])
    if guess is not None:
        found = torch.cat([found, guess.unsqueeze(1)], 1)
    starts = both.join([found, median_parameters(kernel).to(found).expand(*found.shape[:2], -1)])
    if previous is not None:
        last, parameters = (
            torch.tensor([note[name] for note in previous], dtype=torch.float64).to(found)
            for name in ("basis", "parameters")
        )
        step = _PERTURBATION * bases.typical_distance
        near = [bases.exp(w, step * bases.random_tangent(w, rng)) for w, rng in zip(last, rngs, strict=True)]
        known = both.join([torch.stack([last, torch.stack(near)], 1), parameters.unsqueeze(1)])
        starts = torch.cat([known, starts], 1)
    return both.project(starts)
