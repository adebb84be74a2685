"""A metric that is learned: the kernel sees z = L φ(x), on spheres z = L φ(x) / |L φ(x)|.

φ(x) are independent coordinates of a point, and L = exp(S) with S symmetric and free of trace has no redundant
direction; S = 0 is the isotropic kernel, and the paper's projection is the limit in which L loses rank. S is normal a
priori, and τ, the strength of a metric, says how far L may go. In a product every factor has a block of its own:

============================ ==================================== ================= ================================
factor                       φ(x)                                 S of a full one   S of a diagonal one
============================ ==================================== ================= ================================
Sphere, Quaternion           the unit vector, and z is one        symmetric         zero: no axis is special
Rotation, Grassmann, Stiefel the embedding                        symmetric         zero
SPD                          Mandel's entries of the logarithm    symmetric         one number for each entry
Euclidean, Box               unit coordinates                     symmetric         one number for each coordinate
Simplex                      roots of the weights, a unit vector  symmetric         one number for each weight
Torus                        cosines and sines                    diagonal          one number for each angle
Integer, Levels, Choice      the embedding                        zero              zero: a length scale will do
============================ ==================================== ================= ================================
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.manifolds import (
    SPD,
    Box,
    Euclidean,
    Finite,
    Grassmann,
    Product,
    Quaternion,
    Rotation,
    Simplex,
    Space,
    Sphere,
    Stiefel,
    Torus,
)

_SQUARINGS = 4  # L = (I + S/16)^16: exp(S) up to terms of S²/32, in matrix products alone, which a GPU replays
_SAMPLE = 400  # random points that tell the size of coordinates
_MOST = 40  # coordinates of a block that are mixed: 820 numbers; more are not learned from some hundred evaluations
_UNIT_VECTORS = (Sphere, Quaternion, Simplex)
_WITHOUT_AXES = (Sphere, Quaternion, Rotation, Grassmann, Stiefel, Finite)
_MIXED = (Sphere, Quaternion, Rotation, Grassmann, Stiefel, SPD, Euclidean, Box, Simplex)


@dataclass(frozen=True)
class Block:
    """The coordinates of a factor that is no product."""

    space: Space

    @property
    def unit(self) -> bool:
        """Whether coordinates are unit vectors, and stay so."""
        return isinstance(self.space, _UNIT_VECTORS)

    @property
    def mixed(self) -> bool:
        """Whether a full metric mixes coordinates."""
        return isinstance(self.space, _MIXED) and 1 < self.count <= _MOST

    @property
    def seen(self) -> Space:
        """Where the kernel lives."""
        if isinstance(self.space, Simplex):
            return Sphere(self.count - 1)
        return self.space if self.unit else Euclidean(self.count)

    @cached_property
    def count(self) -> int:
        """How many coordinates there are."""
        return int(self._raw(_some(self.space)).shape[-1])

    @property
    def groups(self) -> list[int] | None:
        """Which number of a diagonal metric scales each coordinate; None where no axis is special, or there is one."""
        if isinstance(self.space, _WITHOUT_AXES):
            return None
        found = [*range(self.space.n)] * 2 if isinstance(self.space, Torus) else [*range(self.count)]
        return found if max(found) else None  # one axis has the length scale of its kernel

    def coordinates(self, x: Tensor) -> Tensor:
        """φ(x), (…, count), of points (…, *point): unit vectors, or around 0 in units of their usual deviation."""
        if self.unit:
            return self._raw(x)
        middle, deviation = self._scale
        return (self._raw(x) - middle.to(x)) / deviation

    @cached_property
    def _scale(self) -> tuple[Tensor, float]:
        raw = self._raw(_some(self.space))
        return raw.mean(0), float(raw.std(0).mean())

    def _raw(self, x: Tensor) -> Tensor:
        """Coordinates in their own units."""
        if isinstance(self.space, SPD):
            return _mandel(linalg.logm(x))
        return x if isinstance(self.space, Quaternion) else self.space.embed(x)


@dataclass(frozen=True)
class Sight:
    """What a kernel sees of the points of a space: coordinates φ, and what becomes of them under a metric."""

    space: Space

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """One for each factor."""
        return tuple(Block(factor) for factor, _ in _parts(self.space, _some(self.space)))

    @property
    def seen(self) -> Space:
        """Where the kernel lives."""
        if not isinstance(self.space, Product):
            return self.blocks[0].seen
        return Product(*(block.seen for block in self.blocks))

    @property
    def counts(self) -> list[int]:
        """How many coordinates each block has."""
        return [block.count for block in self.blocks]

    @cached_property
    def count(self) -> int:
        """How many coordinates there are."""
        return sum(self.counts)

    def coordinates(self, x: Tensor) -> Tensor:
        """φ(x), (…, count), of points (…, *point)."""
        parts = zip(self.blocks, _parts(self.space, x), strict=True)
        return torch.cat([block.coordinates(part) for block, (_, part) in parts], -1)

    def warped(self, factor: Tensor, phi: Tensor) -> Tensor:
        """z (…, n, count) from coordinates φ (…, n, count) and factors L (…, count, count)."""
        parts = zip(self.blocks, (phi @ factor.mT).split(self.counts, -1), strict=True)
        return torch.cat([linalg.unit(z) if block.unit else z for block, z in parts], -1)


@cache
def _some(space: Space) -> Tensor:
    return space.random(_SAMPLE, rng=torch.Generator().manual_seed(0))


def _parts(space: Space, x: Tensor) -> Iterator[tuple[Space, Tensor]]:
    """The factors that are no products, with what a point has of each."""
    if not isinstance(space, Product):
        yield space, x
        return
    for factor, part in zip(space.factors, space.split(x), strict=True):
        yield from _parts(factor, part)


def _mandel(a: Tensor) -> Tensor:
    """The independent entries of symmetric matrices (…, n, n), whose length is that of the matrix."""
    i, j = torch.triu_indices(a.shape[-1], a.shape[-1], 1, device=a.device)
    diagonal, above = a.diagonal(dim1=-2, dim2=-1), a[..., i, j]
    return torch.cat([diagonal, math.sqrt(2) * above], -1)


@dataclass(frozen=True)
class Metric:
    """A metric to be learned: of what it is one, how far it may go (τ), and whether coordinates keep apart."""

    sight: Sight
    strength: float
    diagonal: bool = False

    @cached_property
    def size(self) -> int:
        """How many numbers it has."""
        return int(self.layout[0].amax()) + 1

    @property
    def mixed(self) -> bool:
        """Whether it mixes coordinates of some factor."""
        return not self.diagonal and any(block.mixed for block in self.sight.blocks)

    def factor(self, entries: Tensor) -> Tensor:
        """L (…, count, count) from entries (…, size) that are standard normal a priori."""
        if not self.size:
            eye = torch.eye(self.sight.count, dtype=entries.dtype, device=entries.device)
            return eye.expand(*entries.shape[:-1], -1, -1)
        place, weight, mean = _layout_on(self, entries.device)
        s = entries[..., place] * weight
        trace = (s.diagonal(dim1=-2, dim2=-1) @ mean).diag_embed()
        power = torch.eye(self.sight.count, dtype=s.dtype, device=s.device) + (s - trace) / 2**_SQUARINGS
        for _ in range(_SQUARINGS):
            power = power @ power
        return power

    @cached_property
    def layout(self) -> tuple[Tensor, Tensor, Tensor]:
        """For S (count, count): which entry is where, −1 for none, its weight, and the average over each block."""
        count, places, weights, means, used = self.sight.count, [], [], [], 0
        for block in self.sight.blocks:
            place, weight = self._block(block)
            places.append(torch.where(place < 0, place, place + used))
            weights.append(self.strength * weight)
            means.append(torch.full((block.count, block.count), 1 / block.count, dtype=torch.float64))
            used += int(place.amax()) + 1
        inside = torch.block_diag(*(torch.ones_like(weight) for weight in weights)).bool()
        place = torch.full((count, count), -1).masked_scatter(inside, torch.cat([each.flatten() for each in places]))
        return place, torch.block_diag(*weights), torch.block_diag(*means)

    def _block(self, block: Block) -> tuple[Tensor, Tensor]:
        """Which entry is where in the block of a factor, and with which weight."""
        count, groups = block.count, block.groups
        if block.mixed and not self.diagonal:
            return _symmetric(count)
        if groups is None:
            return torch.full((count, count), -1), torch.zeros(count, count, dtype=torch.float64)
        place = torch.full((count, count), -1)
        place.diagonal()[:] = torch.tensor(groups)
        return place, torch.eye(count, dtype=torch.float64)


@cache
def _layout_on(metric: Metric, device: torch.device) -> tuple[Tensor, ...]:
    """The layout where it is needed; an entry that is nowhere has weight 0."""
    place, weight, mean = metric.layout
    return place.clamp(min=0).to(device), weight.to(device), mean.to(device)


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


@cache
def _symmetric(count: int) -> tuple[Tensor, Tensor]:
    """A symmetric matrix from its diagonal and, times √½, from what is above it; as long as a normal vector."""
    i, j = torch.triu_indices(count, count, 1)
    place = torch.diag(torch.arange(count))
    place[i, j] = place[j, i] = count + torch.arange(len(i))
    weight = torch.full((count, count), math.sqrt(0.5), dtype=torch.float64).fill_diagonal_(1.0)
    return place, weight / math.sqrt(count)
