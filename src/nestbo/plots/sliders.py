"""Numbers between bounds, whole numbers, levels and choices, each on a line of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from nestbo.manifolds import Box, Finite, Space
from nestbo.plots.style import INK, RED

_WIDEST = 12  # coordinates of a box that are shown as lines


class Row(NamedTuple):
    """One line: where a value lies on it, from 0 to 1, and what is written at its beginning, middle and end."""

    label: str
    place: float
    texts: tuple[str, str, str]


def slides(space: Space) -> bool:
    """Whether the values of a space are shown as lines."""
    return isinstance(space, Finite) or (isinstance(space, Box) and space.dim <= _WIDEST)


def rows(space: Space, x: Tensor, labels: list[str]) -> list[Row]:
    """The lines of one point."""
    if isinstance(space, Box):
        places, bounds = space.embed(x).tolist(), zip(space.lower, x.tolist(), space.upper, strict=True)
        texts = [(f"{low:.4g}", f"{value:.4g}", f"{high:.4g}") for low, value, high in bounds]
        return [Row(*row) for row in zip(labels, places, texts, strict=True)]
    assert isinstance(space, Finite)
    low, high = space.range
    ends = [str(space.value(end)) for end in (x * 0 + low, x * 0 + high)]
    place = (float(space.project(x)) - low) / (high - low)
    return [Row(labels[0], place, (ends[0], str(space.value(x)), ends[1]))]


def draw_rows(axes: Any, shown: list[Row]) -> None:
    """All lines, one under the other."""
    places = list(range(1, len(shown) + 1))
    axes.hlines(places, 0, 1, color="#D0D0D0", linewidth=3)
    axes.scatter([row.place for row in shown], places, s=60, color=RED, edgecolors="white", zorder=3)
    for place, row in zip(places, shown, strict=True):
        for at, text, side in zip((0, 0.5, 1), row.texts, ("left", "center", "right"), strict=True):
            style = {"fontsize": 8.5, "color": RED if side == "center" else INK, "ha": side, "va": "bottom"}
            axes.annotate(text, (at, place), (0, 5), textcoords="offset points", **style)
    axes.set(xlim=(-0.05, 1.05), ylim=(len(shown) + 0.7, 0.2), xticks=[], yticks=places)
    axes.set_yticklabels([row.label for row in shown])
    axes.grid(visible=False)
    axes.spines[["left", "bottom"]].set_visible(False)
