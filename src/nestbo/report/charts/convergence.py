"""Values and the best so far, trial by trial, with what random search would have found."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nestbo.history import Trial
from nestbo.plots.view import Array, Study, View
from nestbo.report.charts.chart import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    Chart,
    Face,
    Trace,
    axis,
    described,
    dots,
    line,
    number,
)

_SAMPLE = 1024  # random points of the reference
_LEVELS = (-1.2816, -0.5244, 0.0, 0.5244, 1.2816)  # normal quantiles 0.1, 0.3, …, 0.9: where each value may lie
_NOTE = (
    "The dashed line is the median of what random search would have found by then, as the model expects it. "
    "Random search was not run."
)
_LINEAR, _LOG = "Value", "Distance to the best value, log scale"


def convergence(study: Study) -> Chart | None:
    """How the search went, in the objective's units and by the distance to the best value."""
    view = View(study)
    if not view.told:
        return None
    best, count = view.best, len(view.finished)
    summary = f"Values of {count} trials. The best value, {number(best.value or 0.0)}, is that of trial {best.index}."
    reference = random_reference(view)
    faces = [Face(_LINEAR, _traces(view, None, reference), _layout("value", "linear"))]
    if np.ptp(view.values) > 0:
        faces.append(
            Face(_LOG, _traces(view, best.value, reference), _layout("distance to the best value found", "log"))
        )
    return Chart(summary, faces, "Vertical axis", note="" if reference is None else _NOTE)


def _layout(title: str, kind: str) -> dict[str, Any]:
    across = axis("trial")
    scale = {"type": kind, "exponentformat": "power"} if kind == "log" else {}
    return {"xaxis": across, "yaxis": axis(title, **scale), "yaxis2": _FLOOR}


_FLOOR = {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}


def _traces(view: View, zero: float | None, reference: list[float] | None) -> list[Trace]:
    """The marks, with values as they are or as distances to the value ``zero``, which itself has no logarithm."""
    shown = [trial for trial in view.told if trial.feasible]
    traces = [line("best so far", BLUE, *_curve(view, zero), line={"shape": "hv"})]
    if reference is not None:
        at = [trial.index for trial in view.finished]
        curve = [_moved(view, value, zero) for value in reference]
        traces.append(line("random search, as the model expects", GREY, at, curve, line={"dash": "dash"}))
    traces.append(_dots(view, "value", BLUE, shown, zero, meta="trials", opacity=0.75))
    if view.infeasible:
        traces.append(_dots(view, "infeasible", ORANGE, view.infeasible, zero, marker={"symbol": "circle-open"}))
    if view.failed:
        traces.append(_dots(view, "failed", GREEN, view.failed, None, yaxis="y2", marker={"symbol": "x-thin-open"}))
    if zero is None:
        star = {"symbol": "star", "size": 15}
        traces.append(_dots(view, f"best: {number(view.best.value or 0.0)}", RED, [view.best], zero, marker=star))
    return traces


def _dots(view: View, name: str, colour: str, trials: list[Trial], zero: float | None, **more: Any) -> Trace:
    values = [0.03 if trial.value is None else _moved(view, trial.value, zero) for trial in trials]
    labels = [described(trial, ("value",)) for trial in trials]
    return dots(name, colour, [trial.index for trial in trials], values, labels, **more)


def _curve(view: View, zero: float | None) -> tuple[list[int], list[float | None]]:
    curve = [None if value is None else _moved(view, value, zero) for value in view.best_so_far]
    return [trial.index for trial in view.finished], curve


def _moved(view: View, value: float, zero: float | None) -> float | None:
    """A value, or its distance to the best one where there is one."""
    if zero is None:
        return value
    gap = view.sign * (value - zero)
    return gap if gap > 0 else None


def random_reference(view: View) -> list[float] | None:
    """The best of as many random points as were evaluated: a median for each number of points, as the model has it.

    Values at random points are spread as the model predicts them, with its own uncertainty, independently of each
    other. The best of n of them lies below the quantile 1 − ½^(1/n) of this spread in one case of two.
    """
    if view.model is None or view.history.several:
        return None
    points = view.space.random(_SAMPLE, rng=torch.Generator().manual_seed(0))
    costs: Array = view.sign * np.concatenate([view.predict(points, level) for level in _LEVELS])
    counts = np.arange(1, len(view.finished) + 1)
    found: list[float] = (view.sign * np.quantile(costs, 1 - 0.5 ** (1 / counts))).tolist()
    return found
