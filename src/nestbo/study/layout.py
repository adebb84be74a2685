"""How the points of a file are read without their space: as numbers, or as parameters with names.

A study writes this beside its settings. Commands that show a file or tell a value then wait for no tensors.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, Self

from nestbo.text import entry_labels, labelled

SHAPE = "shape of a point"  # a setting: of points that are plain numbers
PARTS = "parts of a point"  # a setting: of points whose parameters have names
HIDDEN = (SHAPE, PARTS)


@dataclass(frozen=True)
class Numbers:
    """Points that are plain numbers: their parameters have no names."""

    point_shape: tuple[int, ...]
    names: None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """What tells the entries of a point apart: 0, 1, … or 0_0, 0_1, …."""
        return entry_labels(self.point_shape)

    def cells(self, x: Any) -> list[Any]:
        """The entries of a point, in the order of the labels."""
        found: list[Any] = x.flatten().tolist()
        return found


@dataclass(frozen=True)
class Part:
    """One parameter: an array, a number, a whole number, or the place of one of ``options``."""

    name: str
    shape: tuple[int, ...]
    whole: bool = False
    options: tuple[Any, ...] = ()

    @classmethod
    def read(cls, found: Any) -> Self | None:
        """From JSON; None if it is no part."""
        if not isinstance(found, dict) or set(found) != {"name", "shape", "whole", "options"}:
            return None
        name, shape, whole, options = found["name"], found["shape"], found["whole"], found["options"]
        sound = isinstance(name, str) and is_shape(shape) and isinstance(whole, bool) and isinstance(options, list)
        single = sound and (shape == [1] or not (whole or options))
        return cls(name, tuple(shape), whole, tuple(options)) if single else None

    @property
    def written(self) -> dict[str, Any]:
        """As JSON."""
        return {"name": self.name, "shape": list(self.shape), "whole": self.whole, "options": list(self.options)}

    def value(self, x: Any) -> Any:
        """The parameter as a person would write it, from the numbers of its place in a point."""
        if self.options:
            return self.options[min(max(round(x.item()), 0), len(self.options) - 1)]
        if self.whole:
            return round(x.item())
        return x.item() if self.shape == (1,) else x.reshape(self.shape).copy()

    def cells(self, x: Any) -> list[Any]:
        """The entries of the parameter, as a table shows them."""
        return [self.value(x)] if self.options or self.whole else list(x.tolist())


@dataclass(frozen=True)
class Parts:
    """Points whose parameters have names."""

    parts: tuple[Part, ...]

    @property
    def point_shape(self) -> tuple[int, ...]:
        """All parts in one vector."""
        return (sum(math.prod(part.shape) for part in self.parts),)

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the parameters."""
        return tuple(part.name for part in self.parts)

    @property
    def labels(self) -> tuple[str, ...]:
        """One for each entry of a point."""
        return tuple(label for part in self.parts for label in labelled(part.name, entry_labels(part.shape)))

    def cells(self, x: Any) -> list[Any]:
        """The entries of a point, in the order of the labels."""
        return [cell for part, numbers in self._split(x) for cell in part.cells(numbers)]

    def parameters(self, x: Any) -> dict[str, Any]:
        """The parameters of a point by name."""
        return {part.name: part.value(numbers) for part, numbers in self._split(x)}

    def _split(self, x: Any) -> list[tuple[Part, Any]]:
        ends = itertools.accumulate((math.prod(part.shape) for part in self.parts), initial=0)
        spans = itertools.starmap(slice, itertools.pairwise(ends))
        return [(part, x[span]) for part, span in zip(self.parts, spans, strict=True)]


def is_shape(shape: Any) -> bool:
    """Whether a setting is the shape of a point."""
    return isinstance(shape, list) and all(type(size) is int and size > 0 for size in shape)


def layout(settings: dict[str, Any]) -> Numbers | Parts | None:
    """What the settings of a file say; None if only the space can tell."""
    shape, parts = settings.get(SHAPE), settings.get(PARTS)
    if is_shape(shape):
        return Numbers(tuple(settings[SHAPE]))
    read = [Part.read(part) for part in parts] if isinstance(parts, list) else []
    sound = tuple(part for part in read if part is not None)
    return Parts(sound) if sound and len(sound) == len(read) else None
