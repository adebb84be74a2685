"""Spaces as vectors: the coordinates in which methods work that know no geometry."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.manifolds import SPD, Box, Space, Sphere

COORDINATES = ("matrix", "cholesky")
_USUAL = (math.exp(-2), math.exp(2))  # eigenvalues of almost all random matrices of a space without bounds
_ROUNDING = 1e-14


@dataclass(frozen=True)
class Vectors(ABC):
    """Points of a space as vectors (…, size), and back by projection: ``point(coordinates(x)) == x``.

    Coordinates are shifted and scaled, all by the same factor, such that the middle of the space is 0 and no coordinate
    exceeds ``half``, which is about 1: a Gaussian kernel remains one, and a random direction has a sensible length.
    """

    space: Space

    @property
    @abstractmethod
    def half(self) -> tuple[float, ...]:
        """The largest absolute value of each coordinate."""

    @property
    @abstractmethod
    def radius(self) -> float:
        """The norm that the coordinates of a point do not exceed."""

    @abstractmethod
    def coordinates(self, x: Tensor) -> Tensor:
        """Of points (…, *point)."""

    @abstractmethod
    def point(self, v: Tensor) -> Tensor:
        """The point with these coordinates, or the projection of what has them to the space."""

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return len(self.half)


class Ambient(Vectors):
    """Unit vectors as they are; back by dividing by the norm."""

    space: Sphere

    @property
    def half(self) -> tuple[float, ...]:
        return (1.0,) * (self.space.n + 1)

    @property
    def radius(self) -> float:
        return 1.0

    def coordinates(self, x: Tensor) -> Tensor:
        return x

    def point(self, v: Tensor) -> Tensor:
        return self.space.project(v)


class Scaled(Vectors):
    """A box as the cube [−1, 1]^n, its own units forgotten, as these methods' authors do."""

    space: Box

    @property
    def half(self) -> tuple[float, ...]:
        return (1.0,) * self.space.dim

    @property
    def radius(self) -> float:
        return math.sqrt(self.space.dim)

    def coordinates(self, x: Tensor) -> Tensor:
        return 2 * self.space.embed(x) - 1

    def point(self, v: Tensor) -> Tensor:
        return self.space.project(self.space.at((v + 1) / 2))


class _Matrices(Vectors):
    """What coordinates of SPD matrices share: the bounds of eigenvalues, and those entries that are free."""

    space: SPD

    @property
    def eigenvalues(self) -> tuple[float, float]:
        """Bounds; without any, where those of random matrices usually lie."""
        low, high = self.space.eigenvalues or _USUAL
        return low, high

    @cached_property
    def _rows(self) -> Tensor:
        return torch.tril_indices(self.space.n, self.space.n)[0]

    @cached_property
    def _columns(self) -> Tensor:
        return torch.tril_indices(self.space.n, self.space.n)[1]

    def _each(self, diagonal: float, below: float) -> tuple[float, ...]:
        """One number for each free entry."""
        return tuple(diagonal if i == j else below for i in range(self.space.n) for j in range(i + 1))

    def _eye(self, like: Tensor) -> Tensor:
        return torch.eye(self.space.n, dtype=like.dtype, device=like.device)

    def _triangle(self, v: Tensor) -> Tensor:
        """The lower triangular matrices with these entries."""
        matrix = v.new_zeros(*v.shape[:-1], self.space.n, self.space.n)
        matrix[..., self._rows, self._columns] = v
        return matrix


class Entries(_Matrices):
    """The entries of (X − c)/r on and beside the diagonal, those beside it times √2: distances are Frobenius distances.

    c and r are the middle and half the width of the bounds, so that the space is the ball of spectral norm 1.
    """

    @property
    def half(self) -> tuple[float, ...]:
        return self._each(1.0, math.sqrt(2))

    @property
    def radius(self) -> float:
        return math.sqrt(self.space.n)

    def coordinates(self, x: Tensor) -> Tensor:
        low, high = self.eigenvalues
        matrix = (x - (high + low) / 2 * self._eye(x)) / ((high - low) / 2)
        return matrix[..., self._rows, self._columns] * x.new_tensor(self._each(1.0, math.sqrt(2)))

    def point(self, v: Tensor) -> Tensor:
        low, high = self.eigenvalues
        part = self._triangle(v * v.new_tensor(self._each(1 / 2, 1 / math.sqrt(2))))
        middle, half = (high + low) / 2, (high - low) / 2
        return self.space.project(middle * self._eye(v) + half * (part + part.mT))


class Cholesky(_Matrices):
    """The entries of (L − c)/r, L lower triangular, L Lᵀ = X; c is the middle of its diagonal, r = √(high − low)."""

    @property
    def half(self) -> tuple[float, ...]:
        low, high = self.eigenvalues
        return self._each((math.sqrt(high) - math.sqrt(low)) / 2 / math.sqrt(high - low), 1.0)

    @property
    def radius(self) -> float:
        """From |L|² = tr X ≤ n·high."""
        low, high = self.eigenvalues
        return math.sqrt(self.space.n * high / (high - low))

    def coordinates(self, x: Tensor) -> Tensor:
        low, high = self.eigenvalues
        trace = x.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
        # A little more on the diagonal, without which a matrix that is barely positive definite has no factor.
        root, _ = torch.linalg.cholesky_ex(x + _ROUNDING * trace * self._eye(x))
        return ((root - self._middle * self._eye(x)) / math.sqrt(high - low))[..., self._rows, self._columns]

    def point(self, v: Tensor) -> Tensor:
        low, high = self.eigenvalues
        root = math.sqrt(high - low) * self._triangle(v) + self._middle * self._eye(v)
        return self.space.project(root @ root.mT)

    @property
    def _middle(self) -> float:
        low, high = self.eigenvalues
        return (math.sqrt(low) + math.sqrt(high)) / 2


def vectors(space: Space, coordinates: str = "matrix") -> Vectors:
    """The vectors of a space: unit vectors, boxes, and SPD matrices by their entries or by their Cholesky factors."""
    if isinstance(space, SPD):
        return Entries(space) if coordinates == "matrix" else Cholesky(space)
    if coordinates == "cholesky":
        raise ArgumentError(f'Only SPD matrices have Cholesky factors, got {space}. Use coordinates="matrix".')
    if isinstance(space, Sphere):
        return Ambient(space)
    if isinstance(space, Box):
        return Scaled(space)
    raise ArgumentError(f"Methods in coordinates work on spheres, SPD matrices and boxes, got {space}. Use GaBO().")
