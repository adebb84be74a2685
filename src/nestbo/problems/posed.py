"""A problem that is not a function of coordinates: it has constants of its own, and lives on any space."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import NamedTuple

import torch
from torch import Tensor

from nestbo.manifolds import Space
from nestbo.nested import MAPPINGS, Identity, NestedMapping, smaller

CONSTANTS = 1  # seed of the constants that all trials share


@dataclass(frozen=True, eq=False)
class Posed:
    """y = value(mapping.project(x), *constants), to be minimised over ``space``.

    ``best_known`` says that no proof stands behind the optimal value: it is the least that a long search found.
    """

    name: str
    space: Space
    mapping: NestedMapping
    value: Callable[..., Tensor]
    constants: tuple[Tensor, ...]
    optimal_value: float
    optimum: Tensor | None
    best_known: bool = False

    def objective(self, x: Tensor) -> Tensor:
        """Values (*batch) at points (*batch, *point)."""
        return self.value(self.mapping.project(x), *self.constants)

    def to(self, device: str) -> Posed:
        """The same problem with its constants and its mapping on a device."""
        constants = tuple(constant.to(device) for constant in self.constants)
        return replace(self, constants=constants, mapping=moved(self.mapping, self.space, device))


Builder = Callable[[Space, int | None, int], Posed]


def moved(mapping: NestedMapping, space: Space, device: str) -> NestedMapping:
    """A mapping with its basis on a device."""
    return mapping if isinstance(mapping, Identity) else mapping.at(mapping.basis.to(device), space)


def hidden(space: Space, latent_dim: int | None, seed: int) -> NestedMapping:
    """A projection of the space onto a latent one, drawn from a seed; the identity without a latent dimension."""
    if latent_dim is None:
        return Identity(space)
    return MAPPINGS[type(space)].random(space, smaller(space, latent_dim), generator(seed))


def generator(seed: int) -> torch.Generator:
    """Random numbers of a seed."""
    return torch.Generator().manual_seed(seed)


def with_best_known(posed: Posed) -> Posed:
    """With the optimum that is stored for its latent space; a space without one has NaN, which no regret survives."""
    latent = posed.mapping.latent
    stored = BEST_KNOWN.get((posed.name, latent.specification))
    if stored is None:
        return posed
    z = torch.tensor(stored.point, dtype=torch.float64).reshape(latent.point_shape)
    return replace(posed, optimal_value=stored.value, optimum=posed.mapping.lift(z), best_known=True)


class Best(NamedTuple):
    """The least value that a search found, where it found it, and how it searched."""

    value: float
    point: tuple[float, ...]
    how: str


def _read() -> dict[tuple[str, str], Best]:
    rows = json.loads(files("nestbo.problems").joinpath("best_known.json").read_text())
    return {(row["problem"], row["space"]): Best(row["value"], tuple(row["point"]), row["how"]) for row in rows}


BEST_KNOWN = _read()
