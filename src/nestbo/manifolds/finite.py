"""Whole numbers, choices and levels: spaces of separate values, without tangent vectors."""

from __future__ import annotations

import difflib
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError, OffManifoldError, shown
from nestbo.manifolds.numbers import is_whole
from nestbo.manifolds.spaces import Space
from nestbo.specification import written

_LARGEST = 2**53  # whole numbers that a float holds exactly
_ALL = 32  # values, up to which a step of a search may go to any of them
Option = str | int | float | bool


class Finite(Space):
    """A finite set of values. A point is one number: a whole number itself, or the place of a value among the others.

    Every operation rounds first, so that a kernel sees only values that exist (Garrido-Merchán and Hernández-Lobato
    2020). There are no tangent vectors: searches step from value to value, see ``steps``.
    """

    @property
    @abstractmethod
    def range(self) -> tuple[int, int]:
        """The smallest and the largest number that a point can be."""

    @property
    def count(self) -> int:
        """How many values there are."""
        low, high = self.range
        return high - low + 1

    @property
    def dim(self) -> int:
        return 1

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (1,)

    @property
    def points(self) -> Tensor:
        """All values, (count, 1)."""
        low, high = self.range
        return torch.arange(low, high + 1, dtype=torch.float64).unsqueeze(-1)

    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        low, high = self.range
        drawn = torch.randint(low, high + 1, (*batch, 1), generator=rng, device=rng.device)
        return drawn.double()

    def project(self, x: Tensor) -> Tensor:
        low, high = self.range
        return x.round().clamp(low, high)

    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        apart = self.embed(x) - self.embed(y)
        return linalg.inner(apart, apart)

    def cells(self, x: Tensor) -> list[Any]:
        return [self.value(x)]

    def violation(self, x: Tensor) -> Tensor:
        return (x - self.project(x)).abs().amax(-1)

    def steps(self, x: Tensor) -> Tensor:
        """Where a search may step from x (…, 1): values (m, …, 1), all of them, or of many those 1, 2, 4, … away.

        Args:
            x: The point that the search has reached.
        """
        low, high = self.range
        if self.count <= _ALL:
            return self.points.to(x).reshape(-1, *[1] * x.ndim).expand(-1, *x.shape)
        lengths = [2**k for k in range(self.count.bit_length())]
        moves = torch.tensor([*lengths, *(-length for length in lengths)], dtype=x.dtype, device=x.device)
        return (x + moves.reshape(-1, *[1] * x.ndim)).clamp(low, high)


@dataclass(frozen=True, repr=False)
class Integer(Finite):
    """The whole numbers from ``low`` to ``high``, both included.

    Args:
        low: The lowest number.
        high: The highest number.
        scale: "linear" or "log". On "log", equal ratios are equally far apart.
    """

    low: int
    high: int
    scale: Literal["linear", "log"] = "linear"

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            if not is_whole(bound := getattr(self, name)) or abs(bound) > _LARGEST:
                raise ArgumentError(f"The bounds of Integer are whole numbers, got {shown(bound)}. Use Box for others.")
            object.__setattr__(self, name, int(bound))
        if self.low >= self.high:
            raise ArgumentError(f"Integer needs low < high, got {self.low} and {self.high}. Swap or widen them.")
        if self.scale not in ("linear", "log"):
            raise ArgumentError(f'The scale of Integer is "linear" or "log", got {shown(self.scale)}.')
        if self.scale == "log" and self.low < 1:
            raise ArgumentError(f'Whole numbers on a logarithmic scale are at least 1, got {self.low}. Use "linear".')

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(0, 1), cls(-3, 8), cls(1, 1000, "log")]

    @property
    def range(self) -> tuple[int, int]:
        return self.low, self.high

    @property
    def typical_distance(self) -> float:
        return math.sqrt((self.count + 1) / (self.count - 1) / 6)

    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        if self.scale == "linear":
            return super().random(*batch, rng=rng)
        t = torch.rand(*batch, 1, generator=rng, dtype=torch.float64, device=rng.device)
        first, last = math.log(self.low - 0.5), math.log(self.high + 0.5)
        return self.project((first + (last - first) * t).exp())

    def embed(self, x: Tensor) -> Tensor:
        """A line from 0 to 1."""
        low, high = self.range
        whole = self.project(x)
        if self.scale == "linear":
            return (whole - low) / (high - low)
        return (whole / low).log() / math.log(high / low)

    def fault(self, x: Tensor) -> str:
        found = float(x[0])
        if found == round(found):
            side = f"below {self.low}" if found < self.low else f"above {self.high}"
            return f"{found:.0f} is {side}"
        return f"{found:g} is not a whole number from {self.low} to {self.high}"

    def value(self, x: Tensor) -> int:
        return int(self.project(x).item())

    def read(self, value: Any) -> Tensor:
        if isinstance(value, bool) or not hasattr(value, "__float__") or isinstance(value, str):
            raise ArgumentError(f"{shown(value)} is not a whole number from {self.low} to {self.high}")
        x = torch.tensor([float(value)], dtype=torch.float64)
        if not self.violation(x) == 0:
            raise OffManifoldError(self.fault(x))
        return x


class _Options(Finite):
    """One of several values that were named one by one."""

    options: tuple[Option, ...]

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.options, {}

    @property
    def specification(self) -> str:
        return f"{type(self).__name__.lower()}:{','.join(map(written, self.options))}"

    @property
    def range(self) -> tuple[int, int]:
        return 0, len(self.options) - 1

    def value(self, x: Tensor) -> Option:
        return self.options[int(self.project(x).item())]

    def read(self, value: Any) -> Tensor:
        same = [k for k, option in enumerate(self.options) if _alike(option, value)]
        if not same:
            near = difflib.get_close_matches(str(value), [str(option) for option in self.options], n=1)
            hint = f". Did you mean {near[0]!r}?" if near else ""
            raise ArgumentError(f"{shown(value)} is not one of {', '.join(map(str, self.options))}{hint}")
        return torch.tensor([float(same[0])], dtype=torch.float64)

    def fault(self, x: Tensor) -> str:
        return f"{float(x[0]):g} is the place of none of {', '.join(map(str, self.options))}"


@dataclass(frozen=True, repr=False, init=False)
class Choice(_Options):
    """One of several values that have no order: ``Choice("soft", "hard", "vacuum")``. All are equally far apart.

    Args:
        *options: The values: texts, numbers, True or False.
    """

    options: tuple[Option, ...]

    def __init__(self, *options: Option | Sequence[Option]) -> None:
        object.__setattr__(self, "options", _checked(options, "Choice"))

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls("off", "on"), cls("soft", "hard", "vacuum", 4)]

    @property
    def typical_distance(self) -> float:
        return math.sqrt(1 - 1 / self.count)

    def embed(self, x: Tensor) -> Tensor:
        """The vertices of a simplex whose edges are 1 long."""
        places = linalg.constant(tuple(map(float, range(self.count))), x)
        return (self.project(x) == places).to(x) * math.sqrt(0.5)


@dataclass(frozen=True, repr=False, init=False)
class Levels(_Options):
    """One of several values in an order: ``Levels(0.1, 0.5, 2)``. Neighbours are equally far apart.

    Args:
        *options: The values, in their order.
    """

    options: tuple[Option, ...]

    def __init__(self, *options: Option | Sequence[Option]) -> None:
        options = _checked(options, "Levels")
        numbers = [option for option in options if not isinstance(option, str)]
        if len(numbers) == len(options) and numbers not in (sorted(numbers), sorted(numbers, reverse=True)):
            raise ArgumentError(f"Levels that are numbers are in their order, got {shown(options)}. Sort them.")
        object.__setattr__(self, "options", options)

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(0.1, 0.5, 2), cls("low", "high")]

    @property
    def typical_distance(self) -> float:
        return math.sqrt((self.count + 1) / (self.count - 1) / 6)

    def embed(self, x: Tensor) -> Tensor:
        """A line from 0 to 1."""
        return self.project(x) / (self.count - 1)


def _usable(option: Any) -> bool:
    """Whether a value is a word, or a number that is finite."""
    if isinstance(option, str):
        return option != "" and option == option.strip()
    return isinstance(option, int | float) and math.isfinite(option)


def _alike(option: Option, value: Any) -> bool:
    """Whether a value is an option; True is not 1."""
    if isinstance(option, str | bool) or isinstance(value, str | bool):
        return type(option) is type(value) and option == value
    try:
        return bool(option == value)
    except (TypeError, ValueError, RuntimeError):
        return False


def _checked(options: tuple[Any, ...], name: str) -> tuple[Option, ...]:
    """At least two different words or numbers that a text form can hold; a sequence stands for its parts."""
    found = tuple(options[0]) if len(options) == 1 and isinstance(options[0], list | tuple) else options
    if len(found) < 2:
        raise ArgumentError(f"{name} has at least two values, got {shown(list(found))}. Leave out what cannot vary.")
    for option in found:
        if isinstance(option, Space | Mapping):
            raise ArgumentError(
                "A parameter that exists for one choice only is not supported. Make it a parameter of its own, which "
                "the objective ignores for the other choices."
            )
        if not _usable(option):
            raise ArgumentError(
                f"The values of {name} are words, without spaces around them, or finite numbers, got {shown(option)}."
            )
    for k, option in enumerate(found):
        if any(_alike(option, before) for before in found[:k]):
            raise ArgumentError(f"Each value of {name} may appear once, got {shown(option)} twice. Leave one out.")
    return found
