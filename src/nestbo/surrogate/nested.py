"""Fitting the geometry-aware nested surrogate: mapping and hyperparameters together (paper, section 3.2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nestbo.kernels import ManifoldKernel
from nestbo.manifolds import Euclidean, Manifold, Product
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
_MOST_WORTH = 1e9  # where a fit has failed
_FEWEST = 20  # data, or more than two for each parameter of a basis, may tell whether something is nested
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
    warm = previous is not None and not fresh
    starts = _starts(nesting, kernel, both, rngs, previous, guess, warm)

    def loss(point: Tensor, prepared: Tensor, z: Tensor, *known: Tensor) -> Tensor:
        basis, wanted = both.split(point)
        parameters = box.project(wanted)
        latent = nesting.project(basis, prepared.unsqueeze(1))
        loss = criterion(kernel, parameters, kernel.statistic(latent, latent), z.unsqueeze(1), priors, *known)
        return loss + _PENALTY * (wanted - parameters).square().sum(-1)

    seen, values, *weights = representative(nesting.prepare(x), z, *known[1:])
    data = (seen, values, *known[:1], *(each.unsqueeze(1) for each in weights))
    point, value = best_of(loss, both, starts, data, warm=warm)
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


def worth_of_basis(nested: Surrogate, full: Surrogate, size: int) -> Tensor:
    """How much likelier the nested model is than the full one, less what a basis of this size costs (BIC), (runs,).

    Where something is nested it is positive, where nothing is it is negative; and zero while there are so few data
    that nobody can tell.
    """
    n = nested.gp.z.shape[-1]
    cost = size / 2 * math.log(n)
    gain = (full.loss - nested.loss - cost).nan_to_num(0.0, _MOST_WORTH, -_MOST_WORTH)
    return gain if max(cost, min(_FEWEST, 2 * size + 1)) <= n else torch.zeros_like(gain)


def _starts(
    nesting: Nesting,
    kernel: ManifoldKernel,
    both: Product,
    rngs: list[torch.Generator],
    previous: list[dict[str, Any]] | None,
    guess: Tensor | None,
    warm: bool,
) -> Tensor:
    """(runs, starts, size): of a warm fit the previous one; of others that and a perturbation of it, and new ones.

    New are random subspaces and the guess, with the medians of the priors of the parameters.
    """
    bases, known, device = nesting.bases, [], rngs[0].device
    new = [] if warm else [bases.random_each(_RANDOM_STARTS, rngs).movedim(0, 1)]
    if new and guess is not None:
        new.append(guess.unsqueeze(1))
    if previous is not None:
        last, parameters = (
            torch.tensor([note[name] for note in previous], dtype=torch.float64, device=device).unsqueeze(1)
            for name in ("basis", "parameters")
        )
        near = [] if warm else [_perturbed(bases, last, rngs)]
        known = [both.join([basis, parameters]) for basis in (last, *near)]
    median = median_parameters(kernel).to(device)
    found = torch.cat([*known, *(both.join([basis, median]) for basis in new)], 1)
    return both.retract(found, torch.zeros_like(found))  # rounding apart they are points already


def _perturbed(bases: Manifold, at: Tensor, rngs: list[torch.Generator]) -> Tensor:
    """Bases (runs, 1, *basis) moved in random directions."""
    step = _PERTURBATION * bases.typical_distance
    moved = [bases.exp(w, step * bases.random_tangent(w, rng)) for w, rng in zip(at, rngs, strict=True)]
    return torch.stack(moved)
