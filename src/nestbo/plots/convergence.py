"""Values and the best so far, trial by trial."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nestbo.plots.style import BEST, BLUE, EVALUATED, FAILED, HOLLOW, figure, legend, number, value_axis, words
from nestbo.plots.view import Array, Study, View

ALLOWED: dict[str, Any] = {**EVALUATED, "color": "#7FB7D9"}


def convergence(study: Study) -> Figure:
    """How the search went."""
    view = View(study)
    if not view.told:
        return words(view.title, view.nothing)
    made, best = figure(view.title), view.best
    axes: Any = made.add_subplot()
    groups = (([t for t in view.told if t.feasible], "value", ALLOWED), (view.infeasible, "infeasible", HOLLOW))
    for trials, label, marks in groups:
        if trials:
            axes.scatter([t.index for t in trials], [t.value for t in trials], label=label, **marks)
    curve = np.array([np.nan if value is None else value for value in view.best_so_far])
    axes.step(
        [trial.index for trial in view.finished], curve, where="post", color=BLUE, linewidth=2, label="best so far"
    )
    axes.scatter([best.index], [best.value], label=f"best: {number(best.value)}", **BEST)
    if view.failed:
        at = [trial.index for trial in view.failed]
        lines = axes.get_xaxis_transform()
        axes.scatter(at, [0.03] * len(at), transform=lines, label="failed", **FAILED)
    _finish(axes, view.values)
    legend(made, axes)
    return made


def _finish(axes: Any, values: Array) -> None:
    axes.set_xlabel("trial")
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    axes.margins(x=0.03, y=0.12)
    value_axis(axes, values)
