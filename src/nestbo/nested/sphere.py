"""Nested spheres: the paper's chain of projections S^D → … → S^d as one matrix and one vector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError, ShapeError
from nestbo.manifolds import Space, Sphere
from nestbo.nested.base import NestedMapping
from nestbo.optimise import trust_region

_LEAST_SCALE = 0.1  # project(lift(z)) loses digits like 1/s


@dataclass(frozen=True, eq=False)
class NestedSphere(NestedMapping):
    """project(x) = Wᵀx / |Wᵀx| and lift(z) = s·W z + h, with h ⟂ W and s² + |h|² = 1.

    ``basis`` is W, (*runs, D+1, d+1); ``offset`` is h, (D+1,) or (*runs, 1, D+1), zero unless given. Distances on the
    latent sphere depend only on the span of W, and not on h (paper, appendix B).
    """

    basis: Tensor
    offset: Tensor | None = None

    def __post_init__(self) -> None:
        shape = self.basis.shape
        if len(shape) < 2 or not shape[-2] >= shape[-1] >= 2:
            raise ShapeError(
                f"The basis of nested spheres is (D+1, d+1) with D ≥ d ≥ 1, got {tuple(self.basis.shape)}."
            )

    @property
    def ambient(self) -> Sphere:
        return Sphere(self.basis.shape[-2] - 1)

    @property
    def latent(self) -> Sphere:
        return Sphere(self.basis.shape[-1] - 1)

    @property
    def scale(self) -> Tensor:
        """s, the radius of the lifted sphere: the product of the sines of the paper's radii."""
        if self.offset is None:
            return torch.ones((), dtype=self.basis.dtype, device=self.basis.device)
        return (1 - linalg.inner(self.offset, self.offset)).clamp(min=0).sqrt()

    @classmethod
    def at(cls, basis: Tensor, ambient: Space) -> Self:
        return cls(basis)

    @classmethod
    def random(cls, ambient: Space, latent: Space, rng: torch.Generator) -> Self:
        if not isinstance(ambient, Sphere) or not isinstance(latent, Sphere) or latent.n > ambient.n:
            raise ArgumentError(f"Nested spheres go from Sphere(D) to Sphere(d) with d ≤ D, got {ambient} to {latent}.")
        return cls(linalg.random_frames(ambient.n + 1, latent.n + 1, rng=rng))

    @classmethod
    def from_axes(cls, axes: Sequence[Tensor], radii: Sequence[float]) -> Self:
        """From the paper's parameters: unit axes v_k ∈ R^{k+1} and radii in (0, π/2], from S^D down to S^{d+1}."""
        if len(axes) != len(radii) or not axes:
            raise ArgumentError(
                f"Nested spheres need as many axes as radii, at least one, got {len(axes)} and {len(radii)}."
            )
        basis = torch.eye(axes[0].shape[-1], dtype=axes[0].dtype, device=axes[0].device)
        turns = [_truncated_rotation(axis) for axis in axes]
        for turn in turns:
            basis = basis @ turn.mT
        offset = torch.zeros_like(basis[0])
        for axis, radius, turn in reversed(list(zip(axes, radii, turns, strict=True))):
            offset = math.sin(radius) * offset @ turn + math.cos(radius) * axis
        return cls(basis, offset)

    def axes(self) -> list[Tensor]:
        """Axes v_D, …, v_{d+1} of this mapping in the paper's terms, up to a rotation of the latent sphere."""
        rest, found = self._complement(), []
        while rest.shape[1]:
            found.append(rest[:, 0])
            rest = _truncated_rotation(rest[:, 0]) @ rest[:, 1:]
        return found

    def radii(self) -> list[float]:
        """Radii that belong to ``axes``: the first axis takes all of the offset, the others are great spheres."""
        steps = self.basis.shape[0] - self.basis.shape[1]
        height = 0.0 if self.offset is None else linalg.norm(self.offset).item()
        return [math.acos(min(1.0, height))] + [math.pi / 2] * (steps - 1) if steps else []

    def _complement(self) -> Tensor:
        """An orthonormal basis of the directions that the projection drops, that of the offset first."""
        if self.offset is None or not self.offset.any():
            return linalg.completion(self.basis)
        first = linalg.unit(self.offset).unsqueeze(-1)
        return torch.cat([first, linalg.completion(torch.cat([self.basis, first], -1))], -1)

    def project(self, x: Tensor) -> Tensor:
        return linalg.unit(x @ self.basis)

    def lift(self, z: Tensor) -> Tensor:
        if self.offset is None:
            return z @ self.basis.mT
        return linalg.unit(self.scale.unsqueeze(-1) * (z @ self.basis.mT) + self.offset)

    def lift_near(self, z: Tensor, x: Tensor) -> Tensor:
        """The nearest point to x that projects to z, with s ≥ 0.1."""
        inside, outside = z @ self.basis.mT, self._outside(x)
        along, across = linalg.inner(inside, x).unsqueeze(-1), linalg.norm(outside).unsqueeze(-1)
        s = (along / torch.hypot(along, across)).clamp(_LEAST_SCALE, 1)
        s = torch.where(across > 1e-8, s, 1)  # x is in the span of W: so is every point near it
        away = linalg.unit(self._outside(linalg.unit(outside)))  # twice: once leaves rounding divided by |outside|
        return linalg.unit(s * inside + (1 - s**2).sqrt() * away)

    def fit_lift(self, x: Tensor, *, max_iterations: int = 1000) -> Self:
        """The lift nearest to points x (*runs, n, D+1) in the sense of the paper's eq. 1, with s ≥ 0.1.

        ⟨x, lift(project(x))⟩ = ⟨(s, h), y⟩ for the unit vectors y = (|Wᵀx|, x − W Wᵀx), so that (s, h) is their mean.
        """
        inside = x @ self.basis
        outside = x - inside @ self.basis.mT
        y = linalg.unit(torch.cat([linalg.norm(inside).unsqueeze(-1), outside], -1))
        sphere = Sphere(y.shape[-1] - 1)

        def loss(mean: Tensor, y: Tensor) -> Tensor:
            return sphere.sq_dist(mean.unsqueeze(-2), y).mean(-1)

        points = y.reshape(-1, *y.shape[-2:])
        mean = trust_region(
            loss, sphere, linalg.unit(points.sum(-2)), data=(points,), max_iterations=max_iterations
        ).point
        offset = self._outside(mean[:, 1:].reshape(*y.shape[:-2], 1, -1))
        longest = math.sqrt(1 - _LEAST_SCALE**2)
        size = linalg.norm(offset).unsqueeze(-1)
        offset = torch.where(size > longest, longest / size, 1) * offset
        return replace(self, offset=offset.squeeze(-2) if x.ndim == 2 else offset)

    def _outside(self, v: Tensor) -> Tensor:
        return v - v @ self.basis @ self.basis.mT


def _truncated_rotation(axis: Tensor) -> Tensor:
    """The rotation in the plane of ``axis`` and the pole (0, …, 0, 1) that takes one to the other, last row dropped."""
    pole = torch.zeros_like(axis)
    pole[-1] = 1
    eye = torch.eye(len(axis), dtype=axis.dtype, device=axis.device)
    both = axis + pole
    square = linalg.inner(both, both)  # 2 + 2 cosine, without its cancellation
    if square < 1e-20:  # opposite: half a turn in any plane that contains them
        both = pole.roll(1)
        return (eye - 2 * torch.outer(both, both))[:-1]
    rotation = eye + 2 * torch.outer(pole, axis)
    return (rotation - 2 * torch.outer(both, both) / square)[:-1]
