"""Nested products: one mapping for each factor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from nestbo.errors import ArgumentError, shown
from nestbo.manifolds import Product, Space
from nestbo.nested.base import NestedMapping
from nestbo.nested.identity import Identity


@dataclass(frozen=True, eq=False)
class NestedProduct(NestedMapping):
    """Each factor has its own mapping; ``Identity`` leaves a factor whole.

    ``basis`` holds the bases of all factors that have one, packed flat, (*runs, size).
    """

    mappings: tuple[NestedMapping, ...]

    def __post_init__(self) -> None:
        wrong = [m for m in self.mappings if not isinstance(m, NestedMapping)]
        if wrong or not self.mappings:
            came = shown(wrong[0]) if wrong else "none"
            raise ArgumentError(f"NestedProduct takes a tuple with one mapping per factor, got {came}.")

    @property
    def basis(self) -> Tensor:  # type: ignore[override]
        learned = [m for m in self.mappings if not isinstance(m, Identity)]
        parts = [m.basis if isinstance(m, NestedProduct) else m.basis.flatten(-2) for m in learned]
        return torch.cat(parts, -1) if parts else torch.zeros(0, dtype=torch.float64)

    @property
    def ambient(self) -> Product:
        return Product(*(m.ambient for m in self.mappings))

    @property
    def latent(self) -> Product:
        return Product(*(m.latent for m in self.mappings))

    @classmethod
    def at(cls, basis: Tensor, ambient: Space) -> Self:
        raise ArgumentError("The shape of a packed basis is not known here. Use Nesting(ambient, latent).at(basis).")

    def of_run(self, run: int | list[int]) -> Self:
        return type(self)(tuple(m.of_run(run) for m in self.mappings))

    @classmethod
    def random(cls, ambient: Space, latent: Space, rng: torch.Generator) -> Self:
        from nestbo.nested.nesting import Nesting  # which itself builds these

        nesting = Nesting(ambient, latent)
        return cls(tuple(part.kind.random(part.ambient, part.latent, rng) for part in nesting.parts))

    def project(self, x: Tensor) -> Tensor:
        return self.latent.join(self._each(lambda m, x: m.project(x), self.ambient.split(x)))

    def lift(self, z: Tensor) -> Tensor:
        return self.ambient.join(self._each(lambda m, z: m.lift(z), self.latent.split(z)))

    def lift_near(self, z: Tensor, x: Tensor) -> Tensor:
        parts = self.latent.split(z), self.ambient.split(x)
        return self.ambient.join(self._each(lambda m, z, x: m.lift_near(z, x), *parts))

    def fit_lift(self, x: Tensor, *, max_iterations: int = 1000) -> Self:
        return type(self)(
            tuple(self._each(lambda m, x: m.fit_lift(x, max_iterations=max_iterations), self.ambient.split(x)))
        )

    def _each(self, operation: Callable[..., Any], *parts: Iterable[Tensor]) -> list[Any]:
        return [operation(*each) for each in zip(self.mappings, *parts, strict=True)]
