"""Textbook functions that were held out: of the paper's coordinates, of a hidden subspace of a box, and of a box."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError
from nestbo.manifolds import Box, Space
from nestbo.nested import Identity
from nestbo.problems.coordinates import coordinates, from_coordinates, within
from nestbo.problems.posed import Builder, Posed, generator, hidden, with_best_known

_STEEPNESS = 10  # of Michalewicz's valleys, as in the literature
_MICHALEWICZ = (2.2029055201726093461, math.pi / 2, 1.2849915705529243599)  # minimisers of its first three terms
_SCHWEFEL = (420.96874635998202731, 418.98288727243370627)  # minimiser of −u sin √u below 500, and the depth there
_SUBSPACE = 5  # dimensions of the box that matter
_STRETCH = 2.0  # t = 2 Bᵀx has a standard deviation of about 1 for random x in [−1, 1]^n


@dataclass(frozen=True)
class Formula:
    """A function of coordinates t (…, m), and its free minimiser in m coordinates."""

    value: Callable[[Tensor], Tensor]
    minimiser: Callable[[int], Tensor]


def michalewicz(t: Tensor) -> Tensor:
    """−Σ sin t_i sin²⁰(i t_i²/π)."""
    steep = torch.sin(_index(t) * t**2 / math.pi) ** (2 * _STEEPNESS)
    return -(torch.sin(t) * steep).sum(-1)


def dixon_price(t: Tensor) -> Tensor:
    """(t₁ − 1)² + Σ_{i ≥ 2} i (2 t_i² − t_{i−1})²."""
    index = _index(t)[1:]
    before, after = t[..., :-1], t[..., 1:]
    bent = index * (2 * after**2 - before) ** 2
    return (t[..., 0] - 1) ** 2 + bent.sum(-1)


def zakharov(t: Tensor) -> Tensor:
    """Σ t² + s² + s⁴ with s = ½ Σ i t_i."""
    along = (_index(t) * t).sum(-1) / 2
    return t.square().sum(-1) + along**2 + along**4


def _index(t: Tensor) -> Tensor:
    return torch.arange(1, t.shape[-1] + 1, dtype=t.dtype, device=t.device)


def _michalewicz_minimiser(m: int) -> Tensor:
    if m > len(_MICHALEWICZ):
        raise ArgumentError(f"Michalewicz's function is posed in at most {len(_MICHALEWICZ)} coordinates, got {m}.")
    return torch.tensor(_MICHALEWICZ[:m], dtype=torch.float64)


def _dixon_price_minimiser(m: int) -> Tensor:
    power = 0.5 ** torch.arange(1, m + 1, dtype=torch.float64)
    return 2 ** (2 * power - 1)


def _origin(m: int) -> Tensor:
    return torch.zeros(m, dtype=torch.float64)


FORMULAS = {
    "michalewicz": Formula(michalewicz, _michalewicz_minimiser),
    "dixon-price": Formula(dixon_price, _dixon_price_minimiser),
    "zakharov": Formula(zakharov, _origin),
}


def _of_coordinates(name: str, space: Space, latent_dim: int | None, seed: int) -> Posed:
    """A formula of the coordinates of the latent point; the optimum is stored where the free one is infeasible."""
    mapping, formula = hidden(space, latent_dim, seed), FORMULAS[name]
    latent = mapping.latent

    def value(z: Tensor) -> Tensor:
        return formula.value(coordinates(latent, z))

    t = formula.minimiser(latent.dim)
    if not within(latent, t):
        return with_best_known(Posed(name, space, mapping, value, (), math.nan, None))
    z = latent.project(from_coordinates(latent, t))
    return Posed(name, space, mapping, value, (), formula.value(t).item(), mapping.lift(z))


def subspace_dixon_price(space: Space, latent_dim: int | None, seed: int) -> Posed:
    """Dixon and Price's function of 2 Bᵀx, B being five random orthonormal columns, on the box [−1, 1]^n."""
    name = "subspace-dixon-price"
    box = _cube(name, space, latent_dim, 1.0)
    columns = linalg.random_frames(box.dim, _SUBSPACE, rng=generator(seed))
    optimum = columns @ _dixon_price_minimiser(_SUBSPACE) / _STRETCH

    def value(x: Tensor, columns: Tensor) -> Tensor:
        return dixon_price(_STRETCH * x @ columns)

    if not box.violation(optimum) <= 0:
        raise ArgumentError(f"The optimum of {name!r} lies outside {space} for seed={seed}. Take a larger box.")
    return Posed(name, space, Identity(space), value, (columns,), 0.0, optimum)


def schwefel(space: Space, latent_dim: int | None, seed: int) -> Posed:
    """418.98 n − Σ x sin √|x| on the box [−500, 500]^n; the same for every seed."""
    box = _cube("schwefel", space, latent_dim, 500.0)
    best, depth = _SCHWEFEL

    def value(x: Tensor) -> Tensor:
        return (depth - x * torch.sin(linalg.safe_sqrt(x.abs()))).sum(-1)

    optimum = torch.full((box.dim,), best, dtype=torch.float64)
    return Posed("schwefel", space, Identity(space), value, (), 0.0, optimum)


def _cube(name: str, space: Space, latent_dim: int | None, half: float) -> Box:
    """The space, if it is the wanted cube."""
    if isinstance(space, Box) and latent_dim is None and {*space.lower, *space.upper} == {-half, half}:
        return space
    raise ArgumentError(
        f"The problem {name!r} needs a box from {-half:g} to {half:g}, got {space} and latent_dim={latent_dim}."
    )


TEXTBOOK: dict[str, Builder] = {
    **{name: partial(_of_coordinates, name) for name in FORMULAS},
    "subspace-dixon-price": subspace_dixon_price,
    "schwefel": schwefel,
}
