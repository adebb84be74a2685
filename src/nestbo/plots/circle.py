"""A study on S^1."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from torch import Tensor

from nestbo.plots.style import BEST, BLUE, EVALUATED, FAILED, GREY, colour_bar, figure, legend, number, scale
from nestbo.plots.view import WIDTH, Array, View

_STEPS = 361


def circle(view: View) -> Figure:
    """Mean and band against the angle, and the mean around the circle."""
    made = figure(view.title, 9.2, 4.2)
    left, right = made.subplots(1, 2, width_ratios=[1, 1.9])
    turn = np.linspace(-np.pi, np.pi, _STEPS)
    around = torch.from_numpy(np.stack([np.cos(turn), np.sin(turn)], -1))
    mean = view.predict(around) if view.model is not None else np.zeros(0)
    _ring(left, view, around.numpy(), mean)
    if view.model is not None:
        band = [view.predict(around, k * WIDTH) for k in (-1, 1)]
        right.fill_between(np.degrees(turn), *band, color=BLUE, alpha=0.16, linewidth=0, label="95 % band")
        right.plot(np.degrees(turn), mean, color=BLUE, linewidth=2, label="mean")
    else:
        right.set_title(view.modelless)
    _evaluations(right, view)
    colour_bar(made, scale(view, mean), left, orientation="horizontal", shrink=0.7)
    legend(made, right)
    return made


def _angles(x: Tensor) -> Array:
    return np.degrees(np.arctan2(x[:, 1].numpy(), x[:, 0].numpy()))


def _evaluations(axes: Any, view: View) -> None:
    best = view.best
    axes.scatter(_angles(view.points(view.told)), view.values, color=GREY, label="evaluation", **EVALUATED)
    axes.scatter(_angles(best.x.unsqueeze(0)), [best.value], label=f"best: {number(best.value)}", **BEST)
    if view.failed:
        at = _angles(view.points(view.failed))
        axes.scatter(at, np.full(len(at), 0.03), transform=axes.get_xaxis_transform(), label="failed", **FAILED)
    axes.set(xlabel="angle (degrees)", ylabel="value", xlim=(-180, 180), xticks=range(-180, 181, 60))


def _ring(axes: Any, view: View, around: Array, mean: Array) -> None:
    """The circle itself, coloured by the mean, with the evaluations on it."""
    colours = scale(view, mean)
    segments = list(np.stack([around[:-1], around[1:]], 1))
    if len(mean):
        axes.add_collection(LineCollection(segments, colors=colours.to_rgba(mean[:-1]), linewidths=7, zorder=2))
    else:
        axes.add_collection(LineCollection(segments, colors="#D0D0D0", linewidths=1.5, zorder=2))
    axes.scatter(*view.points(view.told).T.numpy(), c=view.values, cmap=colours.cmap, norm=colours.norm, **EVALUATED)
    axes.scatter(*view.points(view.failed).T.numpy(), **FAILED)
    axes.scatter(*view.best.x.numpy(), **BEST)
    limits, ticks = (-1.25, 1.25), (-1, 0, 1)
    axes.set(xlim=limits, ylim=limits, aspect="equal", xticks=ticks, yticks=ticks)
    axes.set(xlabel=f"{view.letter}₁", ylabel=f"{view.letter}₂")
