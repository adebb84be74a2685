"""What a nested mapping can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import torch
from torch import Tensor

from nestbo.manifolds import Space


class NestedMapping(ABC):
    """A projection from a manifold onto a smaller manifold of the same kind, with a right inverse.

    ``basis`` is the orthonormal matrix W; mappings are immutable. ``project(lift(z)) == z`` by construction. An object
    can hold one mapping for each of several runs. Then the basis is (*runs, rows, columns), and points are
    (…, *runs, q, *point).
    """

    basis: Tensor

    @property
    @abstractmethod
    def ambient(self) -> Space:
        """The large manifold."""

    @property
    @abstractmethod
    def latent(self) -> Space:
        """The small manifold."""

    @classmethod
    @abstractmethod
    def at(cls, basis: Tensor, ambient: Space) -> Self:
        """The mapping with this basis and a default lift."""

    def of_run(self, run: int | list[int]) -> Self:
        """The mapping of one of several runs, with a default lift."""
        return type(self).at(self.basis[run], self.ambient)

    @classmethod
    @abstractmethod
    def random(cls, ambient: Space, latent: Space, rng: torch.Generator) -> Self:
        """A mapping with a Haar-random basis."""

    @abstractmethod
    def project(self, x: Tensor) -> Tensor:
        """From the large manifold to the small one; differentiable in x and in the basis."""

    @abstractmethod
    def lift(self, z: Tensor) -> Tensor:
        """One point of the large manifold that projects to z."""

    @abstractmethod
    def lift_near(self, z: Tensor, x: Tensor) -> Tensor:
        """A point that projects to z and otherwise resembles the point x, (…, q or 1, *point)."""

    @abstractmethod
    def fit_lift(self, x: Tensor, *, max_iterations: int = 1000) -> Self:
        """The same projection with the lift that is nearest to points x (*runs, n, *point), as in the paper's eq. 1."""
