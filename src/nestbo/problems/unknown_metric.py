"""Functions that need a learned metric, or that lack what a learned metric and a nested sphere assume."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError
from nestbo.manifolds import Space, Sphere
from nestbo.nested import Identity
from nestbo.problems.functions import PROBLEMS
from nestbo.problems.posed import CONSTANTS, Builder, Posed, generator, hidden, with_best_known

_CONDITION = 1000.0  # of the quadratic form: ratio of its largest and least curvature
_NEURONS = 32
_STEEP = 3.0  # size of a neuron's argument for a typical point; tanh then saturates in about half of them
_STRETCH = 3.0  # the unit ball of Wᵀx becomes |t| ≤ 3, about the range π of the paper's coordinates
_FEW = 5  # coordinates that matter
_OF_WX = ("ackley", "rosenbrock", "levy")


def quadratic(space: Space, latent_dim: int | None, seed: int) -> Posed:
    """|A (φ(z) − φ(z₀))|², φ being what a kernel sees of a point, A of condition √1000 in a random frame."""
    mapping, rng = hidden(space, latent_dim, seed), generator(CONSTANTS)
    latent = mapping.latent
    centre = latent.random(rng=rng)
    seen = latent.embed(centre)
    scales = torch.logspace(0, math.log10(_CONDITION) / 2, len(seen), dtype=torch.float64)
    form = scales.unsqueeze(-1) * linalg.random_frames(len(seen), len(seen), rng=rng)

    def value(z: Tensor, form: Tensor, seen: Tensor) -> Tensor:
        return ((latent.embed(z) - seen) @ form.mT).square().sum(-1)

    return Posed("quadratic", space, mapping, value, (form, seen), 0.0, mapping.lift(centre))


def neural_network(space: Space, latent_dim: int | None, seed: int) -> Posed:
    """A network with 32 neurons in one hidden layer and random weights, of what a kernel sees of a point."""
    mapping, rng = hidden(space, latent_dim, seed), generator(CONSTANTS)
    latent = mapping.latent
    drawn = latent.embed(latent.random(1000, rng=rng))
    size = drawn.square().mean().sqrt() * math.sqrt(drawn.shape[-1])
    weights = _STEEP / size * torch.randn(drawn.shape[-1], _NEURONS, generator=rng, dtype=torch.float64)
    shifts, outer = torch.randn(2, _NEURONS, generator=rng, dtype=torch.float64)

    def value(z: Tensor, weights: Tensor, shifts: Tensor, outer: Tensor) -> Tensor:
        return torch.tanh(latent.embed(z) @ weights + shifts) @ outer

    return with_best_known(Posed("neural-network", space, mapping, value, (weights, shifts, outer), math.nan, None))


def linear(space: Space, latent_dim: int | None, seed: int) -> Posed:
    """aᵀx on a sphere, a of unit length: the least value, −1, is at −a."""
    _only_bare_sphere("linear", space, latent_dim)
    slope = linalg.unit(torch.randn(space.point_shape, generator=generator(seed), dtype=torch.float64))

    def value(x: Tensor, slope: Tensor) -> Tensor:
        return x @ slope

    return Posed("linear", space, Identity(space), value, (slope,), -1.0, -slope)


def _only_bare_sphere(name: str, space: Space, latent_dim: int | None) -> None:
    if not isinstance(space, Sphere) or latent_dim is not None:
        raise ArgumentError(
            f"The problem {name!r} is defined on a whole Sphere, got {space} and latent_dim={latent_dim}."
        )
    if space.n < _FEW:
        raise ArgumentError(f"The problem {name!r} needs a Sphere of at least {_FEW} dimensions, got {space}.")


def _random_frame(columns: int, rng: torch.Generator) -> Tensor:
    """W (columns, 5), orthonormal at random."""
    return linalg.random_frames(columns, _FEW, rng=rng)


def _chosen_coordinates(columns: int, rng: torch.Generator) -> Tensor:
    """W (columns, 5), which picks five coordinates at random."""
    return torch.eye(columns, dtype=torch.float64)[:, torch.randperm(columns, generator=rng)[:_FEW]]


def _of_wx(
    name: str,
    formula: str,
    frame: Callable[[int, torch.Generator], Tensor],
    space: Space,
    latent: int | None,
    seed: int,
) -> Posed:
    """g(3 Wᵀx − shift) on a sphere, without the normalisation of nested spheres.

    The free minimiser of g, moved to (1, …, 1) where it is 0, belongs to points with |Wᵀx| = √5/3, which exist.
    """
    _only_bare_sphere(name, space, latent)
    columns = frame(space.point_shape[0], generator(seed))
    function = PROBLEMS[formula]
    least = torch.full((_FEW,), function.minimiser or 0.0, dtype=torch.float64)
    shift = torch.ones(_FEW, dtype=torch.float64) - least

    def value(x: Tensor, columns: Tensor, shift: Tensor) -> Tensor:
        return function.value(_STRETCH * x @ columns - shift)

    inside = torch.ones(_FEW, dtype=torch.float64) / _STRETCH
    outside = linalg.completion(columns)[:, 0] * (1 - inside @ inside).sqrt()
    optimum = columns @ inside + outside
    return Posed(name, space, Identity(space), value, (columns, shift), function.value(least).item(), optimum)


def unnormalised() -> Mapping[str, Builder]:
    """Functions of Wᵀx, W a random frame or one that picks coordinates, by their names."""
    families = {"unnormalised": _random_frame, "few-coordinates": _chosen_coordinates}
    names = {(f"{family}-{formula}", formula): frame for family, frame in families.items() for formula in _OF_WX}
    return {name: partial(_of_wx, name, formula, frame) for (name, formula), frame in names.items()}


UNKNOWN_METRIC: dict[str, Builder] = {
    "quadratic": quadratic,
    "neural-network": neural_network,
    "linear": linear,
    **unnormalised(),
}
