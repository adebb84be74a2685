"""A metric that is learned: the kernel sees z = L φ(x), on spheres z = L φ(x) / |L φ(x)|.

φ(x) are independent coordinates of a point: the unit vector of a sphere, Mandel's entries of the logarithm of a matrix,
unit coordinates of a box. L = exp(τS/√k) with S symmetric and free of trace has no redundant direction; S = 0 is the
isotropic kernel, and the paper's projection is the limit in which L loses rank. S is normal a priori, and τ, the
strength of a metric, says how far L may go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.manifolds import SPD, Euclidean, Space, Sphere, released

_SQUARINGS = 4  # L = (I + A/16)^16: exp(A) up to terms of A²/32, in matrix products alone, which a GPU replays
_SAMPLE = 400  # random points that tell the size of coordinates


@dataclass(frozen=True)
class Sight:
    """What a kernel sees of the points of a space: coordinates φ, and what becomes of them under a metric."""

    space: Space

    @property
    def spherical(self) -> bool:
        """Whether coordinates are unit vectors, and stay so."""
        return isinstance(self.space, Sphere)

    @property
    def seen(self) -> Space:
        """Where the kernel lives."""
        return self.space if self.spherical else Euclidean(self.count)

    @cached_property
    def count(self) -> int:
        """How many coordinates there are."""
        return int(_raw(self.space, _some(self.space)).shape[-1])

    def coordinates(self, x: Tensor) -> Tensor:
        """φ(x), (…, count), of points (…, *point): around 0, in units of their usual deviation."""
        if self.spherical:
            return x
        middle, unit = self._scale
        return (_raw(self.space, x) - middle.to(x)) / unit

    @cached_property
    def _scale(self) -> tuple[Tensor, float]:
        raw = _raw(self.space, _some(self.space))
        return raw.mean(0), float(raw.std(0).mean())

    def warped(self, factor: Tensor, phi: Tensor) -> Tensor:
        """z (…, n, count) from coordinates φ (…, n, count) and factors L (…, count, count)."""
        z = phi @ factor.mT
        return linalg.unit(z) if self.spherical else z


@cache
def _some(space: Space) -> Tensor:
    return released(space).random(_SAMPLE, rng=torch.Generator().manual_seed(0))


def _raw(space: Space, x: Tensor) -> Tensor:
    """Independent coordinates in their own units."""
    if not isinstance(space, SPD):
        return space.embed(x)
    log = linalg.logm(x)
    i, j = torch.triu_indices(log.shape[-1], log.shape[-1], 1, device=x.device)
    return torch.cat([log.diagonal(dim1=-2, dim2=-1), math.sqrt(2) * log[..., i, j]], -1)


@dataclass(frozen=True)
class Metric:
    """A metric to be learned: of what it is one, and how far it may go (τ)."""

    sight: Sight
    strength: float

    @property
    def size(self) -> int:
        """How many numbers it has: the entries of S on and above the diagonal."""
        count = self.sight.count
        return count * (count + 1) // 2

    def factor(self, entries: Tensor) -> Tensor:
        """L (…, count, count) from the entries (…, size) of S, standard normal a priori."""
        s = _symmetric(entries, self.sight.count)
        identity = torch.eye(self.sight.count, dtype=entries.dtype, device=entries.device)
        trace = s.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
        step = self.strength / math.sqrt(self.sight.count) / 2**_SQUARINGS
        power = identity + step * (s - trace * identity)
        for _ in range(_SQUARINGS):
            power = power @ power
        return power


@dataclass(frozen=True)
class Learned:
    """A metric that was learned: factors L (*runs, count, count)."""

    sight: Sight
    factor: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """What the kernel sees of points (…, *runs, n, *point)."""
        return self.sight.warped(self.factor, self.sight.coordinates(x))

    def of_run(self, run: int | list[int]) -> Learned:
        """That of one of several runs, or of some."""
        return Learned(self.sight, self.factor[run])


def _symmetric(entries: Tensor, count: int) -> Tensor:
    """A symmetric matrix from its diagonal and, times √½, from what is above it."""
    place, weight = _layout(count)
    return entries[..., place.to(entries.device)].unflatten(-1, (count, count)) * weight.to(entries)


@cache
def _layout(count: int) -> tuple[Tensor, Tensor]:
    """Where the entries of a matrix are found, (count²,), and their weights, (count, count)."""
    i, j = torch.triu_indices(count, count, 1)
    place = torch.diag(torch.arange(count))
    place[i, j] = place[j, i] = count + torch.arange(len(i))
    weight = torch.full((count, count), math.sqrt(0.5), dtype=torch.float64).fill_diagonal_(1.0)
    return place.flatten(), weight
