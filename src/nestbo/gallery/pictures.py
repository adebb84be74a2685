"""The picture of an example: its best point, and how it was found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from nestbo.gallery.application import Application
from nestbo.plots.style import STYLE

_WIDTH, _HEIGHT = 9.0, 4.0  # inches


def draw(application: Application, study: Any) -> Figure:
    """The best point of a study on the left, the best value after each evaluation on the right."""
    best = study.best
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        left = figure.add_subplot(1, 2, 1, projection="3d" if application.solid else None)
        if best is not None:
            application.picture(best.x.numpy(), left)
        found = [trial.value if trial.feasible else None for trial in study.history]
        _progress(figure.add_subplot(1, 2, 2), found, application.value)
    return figure


def thumbnail(application: Application, study: Any) -> Figure:
    """The best point alone, small."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(_HEIGHT, _HEIGHT), layout="constrained")
        axes = figure.add_subplot(projection="3d" if application.solid else None)
        application.picture(study.best.x.numpy(), axes)
        axes.set_title("")
    return figure


def _progress(axes: Any, values: Sequence[float | None], label: str) -> None:
    """Values as points, the best so far as a line; what failed or is not allowed is left out."""
    y = np.array([math.nan if value is None else value for value in values], float)
    best = np.fmin.accumulate(y)
    axes.plot(np.arange(1, len(y) + 1), y, ".", alpha=0.4)
    axes.step(np.arange(1, len(y) + 1), best, where="post")
    if np.isfinite(best).any():
        low, high = np.nanmin(y), np.nanquantile(y, 0.9)
        axes.set_ylim(low - 0.05 * (high - low + 1e-9), high + 0.05 * (high - low + 1e-9))
    axes.set_xlabel("evaluations")
    axes.set_ylabel(label)
