"""Several manifolds as one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError, shown
from nestbo.manifolds.base import Manifold
from nestbo.manifolds.box import Box
from nestbo.manifolds.spd import SPD
from nestbo.manifolds.sphere import Sphere


@dataclass(frozen=True, repr=False, init=False)
class Product(Manifold):
    """Tuples of points, packed into one flat vector: ``split`` takes it apart, ``join`` puts it together."""

    factors: tuple[Manifold, ...]

    def __init__(self, *factors: Manifold) -> None:
        wrong = [factor for factor in factors if not isinstance(factor, Manifold)]
        if wrong or not factors:
            came = shown(wrong[0]) if wrong else "nothing"
            raise ArgumentError(f"Product takes manifolds, got {came}. Write Product(Sphere(2), SPD(3)).")
        object.__setattr__(self, "factors", factors)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.factors, {}

    @classmethod
    def samples(cls) -> list[Self]:
        return [
            cls(Sphere(2)),
            cls(Sphere(2), SPD(3), Box(0, [1, 2])),  # type: ignore[arg-type]
            cls(cls(Sphere(1), Sphere(1)), SPD(2, metric="log-euclidean", eigenvalues=(0.1, 4.0))),
        ]

    @property
    def dim(self) -> int:
        return sum(factor.dim for factor in self.factors)

    @property
    def _sizes(self) -> list[int]:
        return [math.prod(factor.point_shape) for factor in self.factors]

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (sum(self._sizes),)

    @property
    def typical_distance(self) -> float:
        return math.hypot(*(factor.typical_distance for factor in self.factors))

    @property
    def injectivity_radius(self) -> float:
        return min(factor.injectivity_radius for factor in self.factors)

    def split(self, x: Tensor) -> tuple[Tensor, ...]:
        """The parts of packed points or tangent vectors, each in the shape of its factor."""
        parts = x.split(self._sizes, dim=-1)
        return tuple(part.unflatten(-1, f.point_shape) for part, f in zip(parts, self.factors, strict=True))

    def join(self, parts: Iterable[Tensor]) -> Tensor:
        """The inverse of ``split``; leading axes broadcast."""
        flat = [part.flatten(-len(f.point_shape)) for part, f in zip(parts, self.factors, strict=True)]
        batch = torch.broadcast_shapes(*(part.shape[:-1] for part in flat))
        return torch.cat([part.expand(*batch, -1) for part in flat], dim=-1)

    def _each(self, operation: str, *tensors: Tensor) -> list[Any]:
        """Apply an operation factor by factor to the parts of packed tensors."""
        parts = zip(*map(self.split, tensors), strict=True)
        return [getattr(f, operation)(*part) for f, part in zip(self.factors, parts, strict=True)]

    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        return self.join(factor.random(*batch, rng=rng) for factor in self.factors)

    def random_each(self, count: int, rngs: list[torch.Generator]) -> Tensor:
        return self.join(factor.random_each(count, rngs) for factor in self.factors)

    def project(self, x: Tensor) -> Tensor:
        return self.join(self._each("project", x))

    def to_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        return self.join(self._each("to_tangent", x, v))

    def from_noise(self, x: Tensor, noise: Tensor) -> Tensor:
        return self.join(self._each("from_noise", x, noise))

    @property
    def euclidean_metric(self) -> bool:
        return all(factor.euclidean_metric for factor in self.factors)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        if self.euclidean_metric:
            return linalg.inner(u, v)
        return _total(self._each("inner", x, u, v))

    def pairwise_inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        if self.euclidean_metric:
            return super().pairwise_inner(x, u, v)
        return _total(self._each("pairwise_inner", x, u, v))

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        return self.join(self._each("exp", x, v))

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        return self.join(self._each("log", x, y))

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        return self.join(self._each("retract", x, v))

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        return self.join(self._each("transport", x, y, v))

    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        return _total(self._each("sq_dist", x, y))

    def pairwise_sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        return _total(self._each("pairwise_sq_dist", x, y))

    def gradient(self, x: Tensor, euclidean: Tensor) -> Tensor:
        return self.join(self._each("gradient", x, euclidean))

    def embed(self, x: Tensor) -> Tensor:
        return torch.cat(self._each("embed", x), -1)

    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        return self.join(self._each("hessian", x, gradient, product, v))

    @property
    def bounded(self) -> bool:
        return any(factor.bounded for factor in self.factors)

    def face(self, x: Tensor, descent: Tensor, slack: float) -> Callable[[Tensor], Tensor]:
        parts = zip(self.factors, self.split(x), self.split(descent), strict=True)
        faces = [factor.face(at, down, slack) for factor, at, down in parts]
        return lambda v: self.join(face(part) for face, part in zip(faces, self.split(v), strict=True))

    def bend(self, x: Tensor, gradient: Tensor, slack: float) -> Callable[[Tensor], Tensor]:
        parts = zip(self.factors, self.split(x), self.split(gradient), strict=True)
        bends = [factor.bend(at, slope, slack) for factor, at, slope in parts]
        return lambda v: self.join(bend(part) for bend, part in zip(bends, self.split(v), strict=True))

    def violation(self, x: Tensor) -> Tensor:
        return torch.stack(self._each("violation", x)).amax(0)

    def fault(self, x: Tensor) -> str:
        k = int(torch.stack(self._each("violation", x)).argmax())
        return f"its part {k} is no point of {self.factors[k]}: {self.factors[k].fault(self.split(x)[k])}"

    def _shape_hint(self, shape: tuple[int, ...]) -> str:
        return " Pack one point per factor with .join([…])."


def _total(parts: list[Tensor]) -> Tensor:
    return torch.stack(torch.broadcast_tensors(*parts)).sum(0)
