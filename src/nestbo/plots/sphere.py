"""A study on S^2, as a map."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from nestbo.plots.style import BEST, EVALUATED, FAILED, INK, colour_bar, figure, legend, number, scale, shade
from nestbo.plots.view import Array, View

_RINGS, _SPOKES = 61, 181
_DIGITS = "₁₂₃"


def hemispheres(view: View) -> Figure:
    """The mean and the evaluations on two hemispheres, each in Lambert's equal-area projection.

    The first is centred on the axis nearest to the best point, the second seen from behind.
    """
    made = figure(view.title, 8.6, 5.0)
    front = _frame(view.best.x)
    back = np.stack([-front[0], front[1], -front[2]])
    means = [view.predict(_disc(frame)) if view.model is not None else np.zeros(0) for frame in (front, back)]
    colours = scale(view, *means)
    panels = made.subplots(1, 2)
    for axes, frame, mean in zip(panels, (front, back), means, strict=True):
        _map(axes, frame, view.letter)
        if len(mean):
            shade(axes, *_grid(), mean.reshape(_RINGS, _SPOKES), colours)
        _evaluations(axes, view, frame, colours)
    if view.model is None:
        panels[0].set_title(view.modelless)
    colour_bar(made, colours, list(panels))
    legend(made, panels[0])
    return made


def _frame(best: Tensor) -> Array:
    """Unit vectors to the right, upward and towards the reader, the last the axis nearest to the best point."""
    k = int(best.abs().argmax())
    sign = 1.0 if best[k] > 0 else -1.0
    nearest, second, third = np.roll(np.eye(3), -k, axis=0)
    return np.stack([sign * second, third, sign * nearest])


def _grid() -> tuple[Array, Array]:
    """A polar grid of the map, each (rings, spokes)."""
    radius, turn = np.meshgrid(np.linspace(0, 1, _RINGS), np.linspace(0, 2 * np.pi, _SPOKES), indexing="ij")
    return radius * np.cos(turn), radius * np.sin(turn)


def _disc(frame: Array) -> Tensor:
    """Points (rings · spokes, 3) of a hemisphere, those of the grid of its map."""
    x, y = _grid()
    squared = x**2 + y**2
    stretch = np.sqrt(2 - squared)
    local = np.stack([stretch * x, stretch * y, 1 - squared], -1)
    return torch.from_numpy((local @ frame).reshape(-1, 3))


def project(x: Array, frame: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Where points (n, 3) lie on the map (n, 2), and which of them are on this hemisphere (n,)."""
    local = x @ frame.T
    flat, height = local[:, :2], local[:, 2]
    length = np.linalg.norm(flat, axis=1, keepdims=True)
    radius = np.sqrt(np.clip(1 - height, 0, None))[:, None]
    return flat / np.where(length > 0, length, 1) * radius, height >= 0


def _map(axes: Any, frame: Array, letter: str) -> None:
    """The rim and the names of the axes around it."""
    turn = np.linspace(0, 2 * np.pi, 181)
    axes.plot(np.cos(turn), np.sin(turn), color=INK, linewidth=0.9, zorder=3)
    right, up, _ = frame
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        name = _name(x * right + y * up, letter)
        axes.plot([x, 1.03 * x], [y, 1.03 * y], color=INK, linewidth=0.9, zorder=3)
        axes.text(1.11 * x, 1.11 * y, name, ha="center", va="center", fontsize=9)
    axes.text(0, -1.3, f"around {_name(frame[2], letter)}", ha="center", va="center")
    axes.set(xlim=(-1.22, 1.22), ylim=(-1.38, 1.22), aspect="equal")
    axes.set_axis_off()


def _name(axis: Array, letter: str) -> str:
    k = int(np.abs(axis).argmax())
    return f"{'+' if axis[k] > 0 else '−'}{letter}{_DIGITS[k]}"


def _evaluations(axes: Any, view: View, frame: Array, colours: ScalarMappable) -> None:
    at, here = project(view.points(view.told).numpy(), frame)
    shades = {"cmap": colours.cmap, "norm": colours.norm}
    axes.scatter(*at[here].T, c=view.values[here], label="evaluation", **shades, **EVALUATED)
    at, here = project(view.points(view.failed).numpy(), frame)
    if view.failed:
        axes.scatter(*at[here].T, label="failed", **FAILED)
    at, here = project(view.best.x.numpy()[None], frame)
    axes.scatter(*at[here].T, label=f"best: {number(view.best.value)}", **BEST)
