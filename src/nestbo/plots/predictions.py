"""Predicted against observed, each value left out in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import norm

from nestbo.plots.style import BLUE, GREY, RED, figure, legend, words
from nestbo.plots.summary import FEWEST, leave_one_out
from nestbo.plots.view import Study, View


def predictions(study: Study) -> Figure:
    """Whether the model may be believed: its leave-one-out predictions, and how often their intervals are right."""
    view = View(study)
    numbers = leave_one_out(view)
    if numbers is None:
        return words(view.title, _why(view))
    made = figure(view.title, 8.6, 4.4)
    left, right = made.subplots(1, 2, width_ratios=[1.25, 1])
    _scatter(left, numbers)
    _calibration(right, np.array(numbers["standardised"]))
    legend(made, left)
    return made


def _why(view: View) -> str:
    if not view.told:
        return view.nothing
    if len(view.told) < FEWEST:
        return f"Leaving one out needs at least {FEWEST} values, there are {len(view.told)}."
    return f"{view.study.strategy} fits no model,\nso that there are no predictions to compare."


def _scatter(axes: Any, numbers: dict[str, Any]) -> None:
    names = ("observed", "predicted", "low", "high")
    observed, predicted, low, high = (np.array(numbers[name]) for name in names)
    inside = (low <= observed) & (observed <= high)
    groups = ((inside, BLUE, "o", "within the 95 % interval"), (~inside, RED, "s", "outside"))
    for chosen, colour, marker, label in groups:
        if chosen.any():
            bars = np.maximum(0, [predicted - low, high - predicted])[:, chosen]
            style = {"markersize": 5, "elinewidth": 1, "ecolor": (colour, 0.45), "markeredgecolor": "white"}
            axes.errorbar(
                observed[chosen], predicted[chosen], bars, fmt=marker, color=colour, label=label, zorder=3, **style
            )
    ends = [observed.min(), observed.max()]
    axes.plot(ends, ends, color=GREY, linewidth=1, label="predicted = observed")
    axes.set(xlabel="observed", ylabel="predicted from the others")
    axes.ticklabel_format(scilimits=(-3, 4))
    axes.locator_params(nbins=7)
    axes.set_title(f"{inside.sum()} of {len(inside)} within the 95 % interval; error {numbers['error']:.3g} (rms)")


def _calibration(axes: Any, errors: Any) -> None:
    """The share of values inside the central interval of each level."""
    levels = np.linspace(0.01, 0.99, 99)
    share = (errors[:, None] <= norm.ppf((1 + levels) / 2)).mean(0)
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    axes.step(levels, share, where="mid", color=BLUE, linewidth=2)
    ticks = [0, 0.25, 0.5, 0.75, 1]
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xticks=ticks, yticks=ticks)
    axes.set(xlabel="level of the interval", ylabel="share of values inside")
    axes.set_title("Calibration: below the line is too sure")
