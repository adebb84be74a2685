"""Nested SPD matrices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError, ShapeError
from nestbo.linalg import sym
from nestbo.manifolds import SPD, Manifold
from nestbo.nested.base import NestedMapping


@dataclass(frozen=True, eq=False)
class NestedSPD(NestedMapping):
    """project(X) = WᵀXW and lift(Z) = W Z Wᵀ + V B Vᵀ, where V completes W to an orthonormal basis.

    ``basis`` is W, (D, d); ``complement`` is V B Vᵀ, (D, D), which is VVᵀ clipped to the bounds unless given. With B
    within the eigenvalue bounds of ``space`` the lift is, too: its eigenvalues are those of Z and B together.
    """

    basis: Tensor
    space: SPD
    complement: Tensor | None = None

    def __post_init__(self) -> None:
        rows, columns = self.basis.shape[-2:] if self.basis.ndim == 2 else (0, 0)
        if rows != self.space.n or not 1 <= columns <= rows:
            raise ShapeError(
                f"The basis of nested SPD matrices is ({self.space.n}, d) with 1 ≤ d ≤ {self.space.n}, "
                f"got {tuple(self.basis.shape)}."
            )

    @property
    def ambient(self) -> SPD:
        return self.space

    @property
    def latent(self) -> SPD:
        return replace(self.space, n=self.basis.shape[1])

    @classmethod
    def random(cls, ambient: Manifold, latent: Manifold, rng: torch.Generator) -> Self:
        if not isinstance(ambient, SPD) or not isinstance(latent, SPD) or latent.n > ambient.n:
            raise ArgumentError(f"Nested matrices go from SPD(D) to SPD(d) with d ≤ D, got {ambient} to {latent}.")
        return cls(linalg.random_frames(ambient.n, latent.n, rng=rng), ambient)

    def project(self, x: Tensor) -> Tensor:
        return sym(self.basis.mT @ x @ self.basis)

    def lift(self, z: Tensor) -> Tensor:
        return sym(self.basis @ z @ self.basis.mT + self._complement)

    @property
    def _complement(self) -> Tensor:
        if self.complement is not None:
            return self.complement
        low, high = self.space.eigenvalues or (1.0, 1.0)
        rest = linalg.completion(self.basis)
        return min(max(1.0, low), high) * rest @ rest.mT
