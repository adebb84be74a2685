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


def chosen(study: Any) -> Any:
    """The trial to look at: the recommended one, or, of several objectives, one in the middle of the front, or None."""
    if not study.several:
        return study.recommend()
    front = sorted(study.front, key=lambda trial: trial.values)
    return front[len(front) // 2] if front else None


def draw(application: Application, study: Any) -> Figure:
    """The best point of a study on the left; on the right how it was found, or the front of several objectives."""
    best = chosen(study)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        left = figure.add_subplot(1, 2, 1, projection="3d" if application.solid else None)
        if best is not None:
            application.picture(best.x.numpy(), left)
        right = figure.add_subplot(1, 2, 2)
        if study.several:
            _front(right, study)
        else:
            _progress(right, [trial.value if trial.feasible else None for trial in study.history], application.value)
    return figure


def thumbnail(application: Application, study: Any) -> Figure:
    """The best point alone, small."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(_HEIGHT, _HEIGHT), layout="constrained")
        axes = figure.add_subplot(projection="3d" if application.solid else None)
        application.picture(chosen(study).x.numpy(), axes)
        axes.set_title("")
    return figure


def _front(axes: Any, study: Any) -> None:
    """Two objectives against each other; what nothing dominates is joined by a line."""
    allowed = [trial.values for trial in study.history if trial.status == "told" and trial.feasible]
    if allowed:
        axes.plot(*zip(*allowed, strict=True), ".", alpha=0.4)
    front = sorted(trial.values for trial in study.front)
    if front:
        axes.step(*zip(*front, strict=True), "o-", where="post")
    axes.set_xlabel(study.objectives[0])
    axes.set_ylabel(study.objectives[1])


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
