"""Vectors between bounds, in any units. Internally, every coordinate goes from 0 to 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, cast, get_args

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError, shown
from nestbo.manifolds.base import Manifold, told_apart
from nestbo.manifolds.euclidean import checked_bounds, vector_hint
from nestbo.manifolds.names import check_given, check_names
from nestbo.manifolds.spaces import read_part

Scale = Literal["linear", "log"]
SCALES: tuple[Scale, ...] = get_args(Scale)


@dataclass(frozen=True, repr=False)
class Box(Manifold):
    """The vectors between two bounds: ``Box(0, 1)``, ``Box([0, 0], [1, 2])``.

    Distances, steps and bounds are those of unit coordinates t, which go from 0 to 1. So the unit of a coordinate does
    not matter.

    Args:
        lower: The lowest value, a number or a sequence. If the other bound is a sequence, a number stands for every
            coordinate.
        upper: The highest value, a number or a sequence.
        scale: On "linear", x = lower + t (upper − lower); on "log", x = lower (upper / lower)^t, which suits a quantity
            that goes over several powers of ten. A tuple gives one for each coordinate.
        names: The names of the coordinates; they do not change the points.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    scale: Scale | tuple[Scale, ...] = "linear"
    names: tuple[str, ...] | None = field(default=None, compare=False)

    if TYPE_CHECKING:  # what is given is more than what is kept

        def __init__(
            self,
            lower: float | Sequence[float],
            upper: float | Sequence[float],
            scale: Scale | Sequence[Scale] = "linear",
            names: Sequence[str] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        lower, upper = checked_bounds(self.lower, self.upper)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "scale", _checked_scale(self.scale, lower))
        if self.names is not None:
            object.__setattr__(self, "names", _checked_names(self.names, len(lower)))

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        positional, keywords = super().arguments()
        if self.dim > 1:
            return positional, keywords
        only = {name: value[0] if name == "names" else value for name, value in keywords.items()}
        return (self.lower[0], self.upper[0]), only

    @classmethod
    def samples(cls) -> list[Self]:
        mixed = cls([0.01, -1, 0.1], [1, 1, 2], ("log", "linear", "log"))
        return [cls(0, 1), cls([-1, 0, 2], [1, 5, 2.5]), mixed]

    @property
    def dim(self) -> int:
        return len(self.lower)

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.dim,)

    @property
    def injectivity_radius(self) -> float:
        return math.inf

    @property
    def typical_distance(self) -> float:
        return math.sqrt(self.dim / 6)

    @property
    def bounded(self) -> bool:
        return True

    @cached_property
    def scales(self) -> tuple[Scale, ...]:
        """The scale of each coordinate."""
        return (self.scale,) * self.dim if isinstance(self.scale, str) else self.scale

    @cached_property
    def _logarithmic(self) -> tuple[bool, ...] | None:
        """Which coordinates are on a logarithmic scale; None where none is."""
        chosen = tuple(scale == "log" for scale in self.scales)
        return chosen if any(chosen) else None

    @cached_property
    def _range(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Where each coordinate begins, and how wide it is, on its scale."""
        ends = zip(self.scales, self.lower, self.upper, strict=True)
        pairs = [(math.log(a), math.log(b)) if scale == "log" else (a, b) for scale, a, b in ends]
        return tuple(a for a, _ in pairs), tuple(b - a for a, b in pairs)

    def bounds(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Lower and upper bounds with the dtype and device of ``like``.

        Args:
            like: A tensor with the dtype and device that are wanted.
        """
        return linalg.constant(self.lower, like), linalg.constant(self.upper, like)

    def _width(self, like: Tensor) -> Tensor:
        return linalg.constant(self._range[1], like)

    def _on_log(self, like: Tensor) -> Tensor | None:
        return None if self._logarithmic is None else linalg.constant(self._logarithmic, like) > 0

    def _scaled(self, x: Tensor) -> Tensor:
        """The coordinates, or their logarithms where these are the scale."""
        which = self._on_log(x)
        return x if which is None else torch.where(which, torch.where(which, x, 1).log(), x)

    def unit(self, x: Tensor) -> Tensor:
        """Unit coordinates of points.

        Args:
            x: A point (…, *point).
        """
        return (self._scaled(x) - linalg.constant(self._range[0], x)) / self._width(x)

    def at(self, t: Tensor) -> Tensor:
        """The points that have these unit coordinates.

        Args:
            t: Unit coordinates.
        """
        scaled, which = linalg.constant(self._range[0], t) + self._width(t) * t, self._on_log(t)
        if which is None:
            return scaled
        return self.project(torch.where(which, torch.where(which, scaled, 0).exp(), scaled))

    def _slope(self, x: Tensor) -> Tensor:
        """dx/dt."""
        which, width = self._on_log(x), self._width(x)
        return width + torch.zeros_like(x) if which is None else torch.where(which, x * width, width)

    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        return self.at(torch.rand(*batch, self.dim, generator=rng, dtype=torch.float64, device=rng.device))

    def project(self, x: Tensor) -> Tensor:
        return torch.clamp(x, *self.bounds(x))

    def embed(self, x: Tensor) -> Tensor:
        return self.unit(x)

    def to_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        return v + torch.zeros_like(x)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        slope = self._slope(x)
        return linalg.inner(u / slope, v / slope)

    def pairwise_inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        slope = self._slope(x).unsqueeze(-2)
        return (u / slope) @ (v / slope).mT

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        which = self._on_log(x)
        if which is None:
            return x + v
        base = torch.where(which, x, 1)
        return torch.where(which, base * (v / base).exp(), x + v)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        return self._slope(x) * self._apart(x, y)

    def _apart(self, x: Tensor, y: Tensor) -> Tensor:
        """From x to y in unit coordinates."""
        return (self._scaled(y) - self._scaled(x)) / self._width(x)

    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        apart = self._apart(x, y)
        return linalg.inner(apart, apart)

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        return self.project(self.exp(x, v))

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        if self._logarithmic is None:
            return v + torch.zeros_like(y)
        return v * (self._slope(y) / self._slope(x))

    def from_noise(self, x: Tensor, noise: Tensor) -> Tensor:
        """Every coordinate varies alike."""
        return self._slope(x) * noise

    def gradient(self, x: Tensor, euclidean: Tensor) -> Tensor:
        return self._slope(x).square() * euclidean

    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        """The Hessian of f(x(t)), whose second derivatives are x′ f″ x′ + f′ x″."""
        slope, which = self._slope(x), self._on_log(x)
        second = slope * product
        if which is not None:
            second = second + torch.where(which, self._width(x) * gradient * v, 0)  # x″ dt = width · dx
        return slope * second

    def face(self, x: Tensor, descent: Tensor, slack: float) -> Callable[[Tensor], Tensor]:
        t = self.unit(x)
        free = ~((t <= slack) & (descent < 0) | (t >= 1 - slack) & (descent > 0))
        return lambda v: v * free

    def violation(self, x: Tensor) -> Tensor:
        return self._beyond(x).amax(-1).clamp(min=0)

    def _beyond(self, x: Tensor) -> Tensor:
        """How far each coordinate is outside, in unit coordinates; below 0 inside."""
        which = self._on_log(x)
        if which is not None:
            x = torch.where(which, x.clamp(min=torch.finfo(x.dtype).tiny), x)
        t = self.unit(x)
        return torch.maximum(-t, t - 1)

    @property
    def labels(self) -> tuple[str, ...]:
        return super().labels if self.names is None else self.names

    def value(self, x: Tensor) -> Any:
        return super().value(x) if self.names is None else dict(zip(self.names, x.tolist(), strict=True))

    def read(self, value: Any) -> Tensor:
        if self.names is None or not isinstance(value, Mapping):
            return self.project(super().read(value))
        check_given(value, self.names)
        return torch.cat([read_part(name, self.coordinate(k), value[name]) for k, name in enumerate(self.names)])

    def coordinate(self, k: int) -> Box:
        """One coordinate, alone.

        Args:
            k: The index of the coordinate, from 0.
        """
        return Box(self.lower[k], self.upper[k], self.scales[k])

    def complaint(self, x: Tensor) -> str:
        if not x.isfinite().all() or (self.dim > 1 and self.names is None):
            return super().complaint(x)
        k = int(self._beyond(x).argmax())
        below = bool(x[k] < self.lower[k])
        bound = self.lower[k] if below else self.upper[k]
        where = f"{self.names[k]}: " if self.names is not None else ""
        return f"{where}{told_apart(x[k], bound)} is {'below' if below else 'above'} {bound:g}"

    def fault(self, x: Tensor) -> str:
        if self.names is not None:
            return self.complaint(x)
        k = int(self._beyond(x).argmax())
        found = told_apart(x[k], self.lower[k] if x[k] < self.lower[k] else self.upper[k])
        return f"its coordinate {k} is {found}, it must lie between {self.lower[k]:g} and {self.upper[k]:g}"

    def _shape_hint(self, shape: tuple[int, ...]) -> str:
        return vector_hint(shape)


def _checked_names(names: Any, count: int) -> tuple[str, ...]:
    """One name for each coordinate; a word alone names the only one."""
    found = check_names((names,) if isinstance(names, str) else names if isinstance(names, list | tuple) else ())
    if len(found) != count:
        raise ArgumentError(f"Box has {count} coordinates, got {len(found)} names. Give one for each.")
    return found


def _checked_scale(scale: object, lower: tuple[float, ...]) -> Scale | tuple[Scale, ...]:
    """One word if all coordinates have one scale, else one for each of them."""
    each = (scale,) * len(lower) if isinstance(scale, str) else tuple(scale) if isinstance(scale, list | tuple) else ()
    if not each or any(one not in SCALES for one in each):
        raise ArgumentError(f'The scale of Box is "linear" or "log", or a tuple of these, got {shown(scale)}.')
    if len(each) != len(lower):
        raise ArgumentError(
            f"Box has {len(lower)} coordinates, got {len(each)} scales. Give one for each, or one word."
        )
    for k, (one, low) in enumerate(zip(each, lower, strict=True)):
        if one == "log" and low <= 0:
            raise ArgumentError(
                f"A coordinate on a logarithmic scale is positive, got a lower bound of {low:g} in coordinate {k}. "
                'Raise it, or use scale="linear".'
            )
    scales = cast(tuple[Scale, ...], each)
    return scales[0] if len(set(scales)) == 1 else scales
