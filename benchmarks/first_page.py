"""The picture and the figures of README, from the raw results in ``benchmarks/results``.

python benchmarks/first_page.py docs/pictures/first-page.png

draws the median regret of the methods in ``SHOWN`` and prints the figures that README states. A method that has no
results for a problem, or those of too few trials, is left out of its panel. All numbers come from the files; nothing is
computed anew.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from nestbo.experiment.results import Record, Series, records, series
from nestbo.experiment.statistics import FEWEST
from nestbo.experiment.tables import heading
from nestbo.experiment.tasks import Task
from nestbo.experiment.trials import INITIAL
from nestbo.plots.style import STYLE

RESULTS = Path(__file__).parent / "results"
PANELS = ("ackley-sphere-50", "rosenbrock-sphere-50", "rosenbrock-spd-10")
SHOWN = {  # label: name, colour, kind of line
    "hdgabo-auto": ("nestbo: HD-GaBO", "#882255", "-"),
    "gabo": ("nestbo: GaBO, no metric", "#0072B2", "-"),
    "hdgabo-paper-lbfgs": ("HD-GaBO as published", "#D55E00", "--"),
    "bo": ("Euclidean BO", "#E69F00", "--"),
    "rembo": ("REMBO", "#CC79A7", "--"),
    "turbo": ("TuRBO", "#117733", "--"),
    "botorch": ("BoTorch GP", "#A0522D", "--"),
    "tpe": ("Optuna TPE", "#56B4E9", "-."),
    "cma-es": ("CMA-ES", "#009E73", "-."),
    "powell": ("Powell", "#A0A000", ":"),
    "nelder-mead": ("Nelder–Mead", "#333333", ":"),
    "random": ("random search", "#8A8A8A", "-"),
}
GOAL = 0.1  # regret on Ackley's function below which a trial has left every local minimum but the global one


def found() -> dict[Task, dict[str, Series]]:
    """All trials of the methods that are shown, by problem and label."""
    groups: dict[Task, dict[str, list[Record]]] = {}
    for place in (RESULTS / "paper", *sorted((RESULTS / "evidence").glob("*.zip"))):
        for _, record in records(place):
            if record.label in SHOWN:
                groups.setdefault(record.task, {}).setdefault(record.label, []).append(record)
    every = {task: {label: series(parts) for label, parts in some.items()} for task, some in groups.items()}
    enough = lambda methods: {label: one for label, one in methods.items() if len(one.seeds) >= FEWEST}
    return {task: enough(methods) for task, methods in every.items()}


def panels(results: dict[Task, dict[str, Series]]) -> dict[Task, dict[str, Series]]:
    """The problems of the picture, in its order."""
    by_key = {task.key: task for task in results}
    return {by_key[key]: results[by_key[key]] for key in PANELS}


def draw(results: dict[Task, dict[str, Series]]) -> Figure:
    """A panel for each problem along the evaluations: shares of trials where medians mislead, else medians of regret.

    On Ackley's function trials end at the bottom or in a local minimum far above, and a median may lie between both.
    """
    made = Figure(figsize=(10, 4.2), layout="constrained")
    for axes, (task, methods) in zip(made.subplots(1, len(results)), results.items(), strict=True):
        if task.key == PANELS[0]:
            draw_lines(axes, {label: 100 * (one.best < GOAL).mean(0) for label, one in methods.items()})
            axes.set(title=heading(task), ylabel=f"% of trials below a regret of {GOAL}", ylim=(-2, 102))
        else:
            draw_lines(axes, {label: np.median(one.best, 0) for label, one in methods.items()})
            axes.set(title=heading(task), ylabel="median regret", yscale="log")
        axes.set(xlabel="evaluations", xlim=(INITIAL, None))
    named = {line.get_label(): line for axes in made.axes for line in axes.get_lines()}
    order = [name for name, *_ in SHOWN.values() if name in named]
    made.legend([named[name] for name in order], order, loc="outside lower center", ncols=5)
    return made


def draw_lines(axes: Any, curves: dict[str, Any]) -> None:
    """One line for each method, as long as its trials."""
    for label, (name, colour, line) in SHOWN.items():
        if label in curves:
            at, width = 1 + np.arange(len(curves[label])), 2.4 if name.startswith("nestbo") else 1.4
            axes.plot(at, curves[label], color=colour, linestyle=line, linewidth=width, label=name)


def shares(methods: dict[str, Series]) -> dict[str, tuple[int, int]]:
    """How many trials ended below the goal, and of how many, by label."""
    return {label: (int((one.best[:, -1] < GOAL).sum()), len(one.best)) for label, one in methods.items()}


def main(path: str = "docs/pictures/first-page.png") -> None:
    results = panels(found())
    with matplotlib.rc_context(STYLE):
        draw(results).savefig(path, dpi=100)
    for task, methods in results.items():
        for label, (below, trials) in shares(methods).items():
            end = methods[label].best[:, -1]
            print(f"{task.key} {label}, {trials} trials of {methods[label].best.shape[1]} evaluations:", end=" ")
            print(f"median regret {np.median(end):.3g}, {below} below {GOAL}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
