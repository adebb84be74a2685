"""What an example of the gallery declares, so that it can be run, drawn and compared like all others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:  # so that a list of examples needs no torch
    from nestbo.history import Observation
    from nestbo.manifolds import Space

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Numbers in a box, and the point of the space that they stand for: how people do without a manifold.

    ``decode`` turns an array of numbers into a point. A rival of nestbo searches the box.
    """

    name: str
    low: ArrayLike
    high: ArrayLike
    decode: Callable[[Array], ArrayLike]

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return int(np.size(self.low))

    def point(self, unit: Array) -> Array:
        """The point for numbers between 0 and 1."""
        low, high = np.asarray(self.low, float), np.asarray(self.high, float)
        return np.asarray(self.decode(low + (high - low) * unit), float)


@dataclass(frozen=True, eq=False)
class Application:
    """A problem with a real component: where its parameters live, what is minimised, how its best point looks.

    ``objective`` takes a point as an array and returns a number or an ``Observation``. ``picture`` draws a point into
    axes of matplotlib, flat ones or, with ``solid``, those of three dimensions. ``coordinates`` are parametrisations of
    the field; the first one is the most usual. ``value`` names what is minimised, with its unit. ``worst`` is what a
    method hears that cannot be told of a failure or of a violated constraint. ``noise`` and ``objectives`` are as in
    ``Study``; ``truth`` gives the value without noise.
    """

    name: str
    value: str
    space: Space
    objective: Callable[[Array], float | Observation]
    picture: Callable[[Array, Any], None]
    coordinates: Sequence[Coordinates]
    budget: int
    worst: float
    solid: bool = False
    noise: float | str | None = None
    truth: Callable[[Array], float] | None = None
    objectives: tuple[str, ...] | None = None

    def settings(self) -> dict[str, Any]:
        """What a study of this application is made with."""
        return {"noise": self.noise, "objectives": self.objectives}


@contextlib.contextmanager
def needs(*packages: str) -> Iterator[None]:
    """Around the imports of an example: if one is missing, say what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"This example needs {' and '.join(packages)}, and {error.name} is missing: pip install "
            f"{' '.join(packages)}. The packages of all examples come with pip install 'nestbo[gallery]'.",
            name=error.name,
        ) from error
