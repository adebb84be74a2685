"""Which arm suggested what, and when."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nestbo.history import Trial
from nestbo.plots.style import BEST, BLUE, EVALUATED, FAILED, HOLLOW, figure, number, value_axis, words
from nestbo.plots.view import Study, View

_START = "start"  # trials that no arm suggested: random ones, and those added by hand


def arms(study: Study) -> Figure:
    """The values, the arm behind each of them, and how often and with what success each arm suggested."""
    view = View(study)
    standings = view.standings
    if not standings:
        return words(view.title, f"{study.strategy} has no models that compete." if view.told else view.nothing)
    names = [_START, *(standing.arm for standing in standings)]
    made = figure(view.title, 8.6, 2.9 + 0.32 * len(names))
    cells = made.add_gridspec(2, 2, width_ratios=[2.6, 1], height_ratios=[2.2, 0.32 * len(names)])
    top, strip, shares, key = (made.add_subplot(cells[k]) for k in (0, 2, 3, 1))
    _values(top, view)
    _strip(strip, view, names)
    _shares(shares, standings)
    key.set_axis_off()
    key.legend(*top.get_legend_handles_labels(), loc="upper left", borderaxespad=0)
    return made


def _groups(view: View) -> tuple[tuple[list[Trial], dict[str, Any]], ...]:
    """The trials that did not improve on the best, those that did, and those that failed, with their marks."""
    improved = {trial.index for trial in view.improved}
    same = [trial for trial in view.told if trial.index not in improved]
    return (
        (same, {"label": "no improvement", **HOLLOW}),
        (view.improved, {"color": BLUE, "label": "a new best", **EVALUATED}),
        (view.failed, {"label": "failed", **FAILED}),
    )


def _values(axes: Any, view: View) -> None:
    best = view.best
    for trials, marks in _groups(view):
        if trials and trials[0].value is not None:
            axes.scatter([t.index for t in trials], [t.value for t in trials], **marks)
        elif trials:
            low = axes.get_xaxis_transform()
            axes.scatter([t.index for t in trials], [0.03] * len(trials), transform=low, **marks)
    curve = np.array([np.nan if value is None else value for value in view.best_so_far])
    axes.step(
        [trial.index for trial in view.finished], curve, where="post", color=BLUE, linewidth=1.6, label="best so far"
    )
    axes.scatter([best.index], [best.value], label=f"best: {number(best.value)}", **BEST)
    axes.margins(y=0.12)
    _trials(axes, view)
    axes.tick_params(labelbottom=False)
    value_axis(axes, view.values)


def _strip(axes: Any, view: View, names: list[str]) -> None:
    """One row for each arm."""
    row = {name: k for k, name in enumerate(names)}
    for trials, marks in _groups(view):
        at = [(t.index, row[name]) for t in trials if (name := t.memory.arm or _START) in row]
        if at:
            axes.scatter(*zip(*at, strict=True), **marks)
    axes.scatter([view.best.index], [row.get(view.best.memory.arm or _START, 0)], **BEST)
    _trials(axes, view)
    axes.set(xlabel="trial", yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.5, -0.5))


def _trials(axes: Any, view: View) -> None:
    """Both panels have the same horizontal axis."""
    axes.set_xlim(-1, view.finished[-1].index + 1)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))


def _shares(axes: Any, standings: Any) -> None:
    """How often each arm suggested, and its chance of success, beside its row."""
    rows = range(1, len(standings) + 1)
    axes.barh(rows, [100 * standing.share for standing in standings], height=0.5, color=BLUE)
    for row, standing in zip(rows, standings, strict=True):
        axes.text(100 * standing.share + 2, row, f"{standing.score:.2f}", va="center", fontsize=8.5)
    axes.set(xlabel="share of suggestions (%)", xlim=(0, 122), xticks=[0, 50, 100], yticks=[])
    axes.set(ylim=(len(standings) + 0.5, -0.5))
    axes.set_title("Number: chance of success")
