"""No nesting: the space itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.manifolds import Space
from nestbo.nested.base import NestedMapping


@dataclass(frozen=True, eq=False)
class Identity(NestedMapping):
    """The mapping of a space to itself."""

    space: Space

    @property
    def basis(self) -> Tensor:  # type: ignore[override]
        """Empty: there is nothing to choose."""
        return torch.zeros(0, dtype=torch.float64)

    @property
    def ambient(self) -> Space:
        return self.space

    @property
    def latent(self) -> Space:
        return self.space

    @classmethod
    def at(cls, basis: Tensor, ambient: Space) -> Self:
        return cls(ambient)

    def of_run(self, run: int | list[int]) -> Self:
        return self

    @classmethod
    def random(cls, ambient: Space, latent: Space, rng: torch.Generator) -> Self:
        if ambient != latent:
            raise ArgumentError(f"The identity maps a space to itself, got {ambient} to {latent}.")
        return cls(ambient)

    def project(self, x: Tensor) -> Tensor:
        return x

    def lift(self, z: Tensor) -> Tensor:
        return z

    def lift_near(self, z: Tensor, x: Tensor) -> Tensor:
        return z

    def fit_lift(self, x: Tensor, *, max_iterations: int = 1000) -> Self:
        return self
