"""Flat space, whole, or bounded in its own units."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError
from nestbo.manifolds.base import Manifold, as_tensor, check_size


class _Flat(Manifold):
    """What Euclidean space and a box in it share."""

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.dim,)

    @property
    def injectivity_radius(self) -> float:
        return math.inf

    @property
    def euclidean_metric(self) -> bool:
        return True

    def to_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        return v + torch.zeros_like(x)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return linalg.inner(u, v)

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        return x + v

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        return y - x

    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        return linalg.inner(x - y, x - y)

    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        return product

    def _shape_hint(self, shape: tuple[int, ...]) -> str:
        return vector_hint(shape)


def vector_hint(shape: tuple[int, ...]) -> str:
    """What to do with vectors of another length."""
    return f" Use a space of dimension {shape[-1]} for vectors of that length." if shape else ""


# Widths of a box, whose squares, inverses and products are numbers, also where steps are kept in single precision.
_NARROWEST, _WIDEST = 1e-30, 1e30


@dataclass(frozen=True, repr=False)
class Euclidean(_Flat):
    """R^n.

    Args:
        n: The dimension.
    """

    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_size("The dimension of Euclidean", self.n))

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(1), cls(5)]

    @property
    def dim(self) -> int:
        return self.n

    @property
    def typical_distance(self) -> float:
        return math.sqrt(2 * self.n)

    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        return torch.randn(*batch, self.n, generator=rng, dtype=torch.float64, device=rng.device)

    def project(self, x: Tensor) -> Tensor:
        return x

    def embed(self, x: Tensor) -> Tensor:
        return x

    def violation(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x[..., 0])


@dataclass(frozen=True, repr=False)
class Cuboid(_Flat):
    """The vectors between two bounds, with the Euclidean distance in their own units.

    Fits and searches inside of methods use it. A user's space is a ``Box``, whose coordinates may have different units.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def __post_init__(self) -> None:
        lower, upper = checked_bounds(self.lower, self.upper)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(0, 1), cls([-1, 0, 2], [1, 5, 2.5])]  # type: ignore[arg-type]

    @property
    def dim(self) -> int:
        return len(self.lower)

    @property
    def typical_distance(self) -> float:
        return math.dist(self.lower, self.upper) / math.sqrt(6)

    @property
    def bounded(self) -> bool:
        return True

    def bounds(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Lower and upper bounds with the dtype and device of ``like``."""
        return linalg.constant(self.lower, like), linalg.constant(self.upper, like)

    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        t = torch.rand(*batch, self.dim, generator=rng, dtype=torch.float64, device=rng.device)
        lower, upper = self.bounds(t)
        return lower + (upper - lower) * t

    def project(self, x: Tensor) -> Tensor:
        return torch.clamp(x, *self.bounds(x))

    def embed(self, x: Tensor) -> Tensor:
        lower, upper = self.bounds(x)
        return (x - lower) / (upper - lower)

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        return self.project(x + v)

    def face(self, x: Tensor, descent: Tensor, slack: float) -> Callable[[Tensor], Tensor]:
        lower, upper = self.bounds(x)
        margin = slack * (upper - lower)
        free = ~((x <= lower + margin) & (descent < 0) | (x >= upper - margin) & (descent > 0))
        return lambda v: v * free

    def violation(self, x: Tensor) -> Tensor:
        lower, upper = self.bounds(x)
        return torch.maximum(lower - x, x - upper).amax(-1).clamp(min=0)


def checked_bounds(lower: Any, upper: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The bounds of each coordinate, from numbers or sequences, or what is wrong with them."""
    low, high = (as_tensor(bound).double() for bound in (lower, upper))
    try:
        low, high = torch.broadcast_tensors(torch.atleast_1d(low), torch.atleast_1d(high))
    except RuntimeError:
        raise ArgumentError(f"Box bounds have one length, got {len(low)} and {len(high)}.") from None
    if low.ndim != 1 or low.numel() == 0:
        raise ArgumentError(f"Box bounds are numbers or vectors, got shape {tuple(low.shape)}. Flatten them.")
    if not (low.isfinite().all() and high.isfinite().all()):
        raise ArgumentError("Box bounds are finite, got NaN or infinity. Use Euclidean(n) for an unbounded space.")
    if not (low < high).all():
        k = int((low >= high).nonzero()[0])
        raise ArgumentError(
            f"Box needs lower < upper, got [{low[k]:g}, {high[k]:g}] in coordinate {k}. Swap or widen them."
        )
    _check_widths(high - low)
    return tuple(low.tolist()), tuple(high.tolist())


def _check_widths(width: Tensor) -> None:
    """Refuse coordinates so wide or so narrow that distances cannot be computed."""
    wrong = ~((width >= _NARROWEST) & (width <= _WIDEST))
    if wrong.any():
        k = int(wrong.nonzero()[0])
        raise ArgumentError(
            f"The coordinates of Box are between {_NARROWEST:g} and {_WIDEST:g} wide, got {width[k]:g} in "
            f"coordinate {k}. Choose another unit for it, or search its logarithm."
        )
