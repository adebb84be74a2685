"""Nested spheres: the paper's chain of projections S^D → … → S^d as one matrix and one vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError, ShapeError
from nestbo.manifolds import Manifold, Sphere
from nestbo.nested.base import NestedMapping


@dataclass(frozen=True, eq=False)
class NestedSphere(NestedMapping):
    """project(x) = Wᵀx / |Wᵀx| and lift(z) = s·W z + h, with h ⟂ W and s² + |h|² = 1.

    ``basis`` is W, (D+1, d+1); ``offset`` is h, (D+1,), zero unless given.
    """

    basis: Tensor
    offset: Tensor | None = None

    def __post_init__(self) -> None:
        if self.basis.ndim != 2 or self.basis.shape[0] < self.basis.shape[1] or self.basis.shape[1] < 2:
            raise ShapeError(
                f"The basis of nested spheres is (D+1, d+1) with D ≥ d ≥ 1, got {tuple(self.basis.shape)}."
            )

    @property
    def ambient(self) -> Sphere:
        return Sphere(self.basis.shape[0] - 1)

    @property
    def latent(self) -> Sphere:
        return Sphere(self.basis.shape[1] - 1)

    @classmethod
    def random(cls, ambient: Manifold, latent: Manifold, rng: torch.Generator) -> Self:
        if not isinstance(ambient, Sphere) or not isinstance(latent, Sphere) or latent.n > ambient.n:
            raise ArgumentError(f"Nested spheres go from Sphere(D) to Sphere(d) with d ≤ D, got {ambient} to {latent}.")
        return cls(linalg.random_frames(ambient.n + 1, latent.n + 1, rng=rng))

    def project(self, x: Tensor) -> Tensor:
        return linalg.unit(x @ self.basis)

    def lift(self, z: Tensor) -> Tensor:
        if self.offset is None:
            return z @ self.basis.mT
        s = (1 - linalg.inner(self.offset, self.offset)).clamp(min=0).sqrt()
        return linalg.unit(s * z @ self.basis.mT + self.offset)
