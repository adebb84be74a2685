"""Parts of a point that do not move while a search goes on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError, shown
from nestbo.manifolds.base import Manifold
from nestbo.manifolds.box import Box
from nestbo.manifolds.names import check_given
from nestbo.manifolds.product import ManifoldProduct, Product
from nestbo.manifolds.spaces import Space, read_part


@dataclass(frozen=True, repr=False)
class Held(Manifold):
    """A space whose points stay where they are: a manifold of dimension 0, every tangent vector is 0.

    A search over separate values uses it: the search moves the other factors, and steps from value to value in between.
    If ``at`` holds the entries of a point, the space has this point only, because a user has fixed the factor.
    """

    space: Space
    at: tuple[float, ...] | None = None

    @classmethod
    def samples(cls) -> list[Self]:
        return []

    @property
    def dim(self) -> int:
        return 0

    @property
    def point_shape(self) -> tuple[int, ...]:
        return self.space.point_shape

    @property
    def typical_distance(self) -> float:
        return self.space.typical_distance

    @property
    def injectivity_radius(self) -> float:
        return math.inf

    @property
    def euclidean_metric(self) -> bool:
        return True

    def _only(self, like: Tensor) -> Tensor:
        assert self.at is not None
        return linalg.constant(self.at, like).reshape(self.point_shape)

    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        if self.at is None:
            return self.space.random(*batch, rng=rng)
        return self._only(torch.zeros(0, dtype=torch.float64, device=rng.device)).expand(*batch, *self.point_shape)

    def project(self, x: Tensor) -> Tensor:
        return self.space.project(x) if self.at is None else self._only(x).expand_as(x)

    def embed(self, x: Tensor) -> Tensor:
        return self.space.embed(x)

    def violation(self, x: Tensor) -> Tensor:
        return self.space.violation(x)

    def fault(self, x: Tensor) -> str:
        return self.space.fault(x)

    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        return self.space.sq_dist(x, y)

    def pairwise_sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        return self.space.pairwise_sq_dist(x, y)

    def to_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        return torch.zeros_like(x + v)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return linalg.inner(u, v, len(self.point_shape))

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        return x + torch.zeros_like(v)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.zeros_like(x + y)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        return torch.zeros_like(y + v)

    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        return torch.zeros_like(product)


@dataclass(frozen=True, repr=False)
class Slab(Manifold):
    """A box in which some coordinates stay where they are: ``at`` holds these numbers, and None for the others."""

    box: Box
    at: tuple[float | None, ...]

    @classmethod
    def samples(cls) -> list[Self]:
        return []

    @property
    def dim(self) -> int:
        return sum(value is None for value in self.at)

    @property
    def point_shape(self) -> tuple[int, ...]:
        return self.box.point_shape

    @property
    def typical_distance(self) -> float:
        return self.box.typical_distance

    @property
    def injectivity_radius(self) -> float:
        return math.inf

    @property
    def bounded(self) -> bool:
        return True

    def _free(self, like: Tensor) -> Tensor:
        return linalg.constant(tuple(float(value is None) for value in self.at), like)

    def project(self, x: Tensor) -> Tensor:
        kept = linalg.constant(tuple(0.0 if value is None else value for value in self.at), x)
        return torch.where(self._free(x) > 0, self.box.project(x), kept)

    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        return self.project(self.box.random(*batch, rng=rng))

    def embed(self, x: Tensor) -> Tensor:
        return self.box.embed(x)

    def violation(self, x: Tensor) -> Tensor:
        return self.box.violation(x)

    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        return self.box.sq_dist(x, y)

    def to_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        return self._free(x) * self.box.to_tangent(x, v)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return self.box.inner(x, u, v)

    def from_noise(self, x: Tensor, noise: Tensor) -> Tensor:
        return self._free(x) * self.box.from_noise(x, noise)

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        return self.box.exp(x, self._free(x) * v)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        return self._free(x) * self.box.log(x, y)

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        return self.box.retract(x, self._free(x) * v)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        return self.box.transport(x, y, v)

    def gradient(self, x: Tensor, euclidean: Tensor) -> Tensor:
        return self._free(x) * self.box.gradient(x, euclidean)

    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        return self._free(x) * self.box.hessian(x, gradient, product, v)

    def face(self, x: Tensor, descent: Tensor, slack: float) -> Callable[[Tensor], Tensor]:
        return self.box.face(x, descent, slack)


def leaf(space: Space) -> Manifold:
    """The manifold through each point of a space on which its separate values stay as they are."""
    if isinstance(space, Manifold):
        return space
    return ManifoldProduct(*map(leaf, space.factors)) if isinstance(space, Product) else Held(space)


def released(space: Space) -> Space:
    """The space without what was fixed: models see all of it."""
    if isinstance(space, Held):
        return space.space
    if isinstance(space, Slab):
        return space.box
    if not isinstance(space, Product):
        return space
    factors = tuple(map(released, space.factors))
    return space if factors == space.factors else Product(*factors)


def fixed(space: Space, values: Mapping[str, Any]) -> Space:
    """The part of a space where some parameters, given by name, have these values."""
    if space.names is None:
        raise ArgumentError(f"Parameters are fixed by name, and {space} has none. Write Product(force=…, tool=…).")
    if not isinstance(values, Mapping):
        raise ArgumentError(f'fixed is a dict such as {{"{space.names[0]}": …}}, got {shown(values)}.')
    check_given(values, space.names, some=True)
    found = _fixed(space, values)
    if _nothing_left(found):
        raise ArgumentError("fixed leaves no parameter to choose. Use enqueue for a point of your own.")
    return found


def _nothing_left(space: Space) -> bool:
    """Whether all parameters are fixed."""
    if isinstance(space, Product):
        return all(map(_nothing_left, space.factors))
    return space.dim == 0 and isinstance(space, Held | Slab)


def _fixed(space: Space, values: Mapping[str, Any]) -> Space:
    if isinstance(space, Box) and space.names is not None:
        parts = [
            read_part(name, space.coordinate(k), values[name]).item() if name in values else None
            for k, name in enumerate(space.names)
        ]
        return Slab(space, tuple(parts)) if values else space
    if not isinstance(space, Product):
        return space
    if space.titles is None:
        inside = [{name: values[name] for name in factor.names or () if name in values} for factor in space.factors]
        return Product(*map(_fixed, space.factors, inside))
    pairs = zip(space.titles, space.factors, strict=True)
    return Product(*(_held(name, factor, values[name]) if name in values else factor for name, factor in pairs))


def _held(name: str, factor: Space, value: Any) -> Space:
    """A factor with the value that a user gave for it, or for some of its own parameters."""
    if isinstance(value, Mapping) and factor.names is not None:
        return fixed(factor, value) if set(value) < set(factor.names) else Held(factor, _entries(name, factor, value))
    return Held(factor, _entries(name, factor, value))


def _entries(name: str, factor: Space, value: Any) -> tuple[float, ...]:
    return tuple(read_part(name, factor, value).flatten().tolist())
