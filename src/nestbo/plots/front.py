"""Several objectives: what nothing dominates, and how much of the outcomes it dominates."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nestbo.fronts import hypervolume as volume
from nestbo.history import History, Trial
from nestbo.plots.style import BLUE, EVALUATED, FAILED, HOLLOW, RED, figure, legend, number, value_axis, words
from nestbo.plots.view import Study, View, objective_names

_ALLOWED: dict[str, Any] = {**EVALUATED, "color": "#7FB7D9"}
_FRONT: dict[str, Any] = {**EVALUATED, "s": 46, "color": RED, "zorder": 5}
_MOST = 6  # panels of pairs of objectives: of four objectives all, of more the first ones
_ONE = "One objective has no front but its best value.\nSee the picture convergence."


def front(study: Study) -> Figure:
    """The values of every pair of objectives, with the trials that nothing dominates."""
    view = View(study)
    if not view.told or not view.history.several:
        return words(view.title, _ONE if view.told else view.nothing)
    names = objective_names(study)
    pairs = list(combinations(range(len(names)), 2))[:_MOST]
    columns = min(3, len(pairs))
    rows = -(-len(pairs) // columns)
    title = f"{view.title}; {len(view.history.front)} on the front"
    made = figure(title, max(6.0, 3.6 * columns), 1.0 + 3.2 * rows)
    panels: Any = made.subplots(rows, columns, squeeze=False).ravel()
    for axes, pair in zip(panels, pairs, strict=False):
        _pair(axes, view, pair, names)
    for axes in panels[len(pairs) :]:
        axes.set_axis_off()
    legend(made, panels[0])
    return made


def _pair(axes: Any, view: View, pair: tuple[int, int], names: tuple[str, ...]) -> None:
    """Two objectives; where there are no others, with the edge of what is dominated."""
    best = {trial.index for trial in view.history.front}
    dominated = [trial for trial in view.told if trial.feasible and trial.index not in best]
    groups = (
        (dominated, "dominated", _ALLOWED),
        (view.infeasible, "infeasible", HOLLOW),
        ([trial for trial in view.told if trial.index in best], "front", _FRONT),
    )
    for trials, label, marks in groups:
        if trials:
            axes.scatter(*_columns(trials, pair), label=label, **marks)
    if len(names) == 2 and best:
        axes.plot(*stairs(view.history), color=RED, linewidth=1.2, alpha=0.6, zorder=3)
    across, up = (_axis(names[k], view.history.directions[k]) for k in pair)
    axes.set(xlabel=across, ylabel=up)
    axes.margins(0.1)


def _axis(name: str, way: str) -> str:
    return f"{name} ({'less' if way == 'minimize' else 'more'} is better)"


def _columns(trials: list[Trial], pair: tuple[int, int]) -> list[list[float]]:
    return [[trial.values[k] for trial in trials] for k in pair]


def stairs(history: History) -> tuple[list[float], list[float]]:
    """The corners of the stairs between the front of two objectives and what it dominates."""
    signs = history.signs.numpy()
    values = np.array(sorted({tuple(signs * np.array(trial.values)) for trial in history.front}))
    first, second = values.T
    right, top = np.maximum(signs * np.array(history.worst), values.max(0))
    across = [first[0], *first, right]
    down = [top, *second, second[-1]]
    x, y = np.repeat(across, 2)[1:], np.repeat(down, 2)[:-1]
    return (signs[0] * x).tolist(), (signs[1] * y).tolist()


def hypervolume(study: Study) -> Figure:
    """How the dominated volume grew with the evaluations, up to the worst value of each objective."""
    view = View(study)
    if not view.told or not view.history.several:
        return words(view.title, _ONE if view.told else view.nothing)
    made = figure(view.title)
    axes: Any = made.add_subplot()
    volumes = volumes_so_far(view.finished)
    axes.step(
        [trial.index for trial in view.finished], volumes, where="post", color=BLUE, linewidth=2, label="hypervolume"
    )
    if view.failed:
        at = [trial.index for trial in view.failed]
        axes.scatter(at, [0.03] * len(at), transform=axes.get_xaxis_transform(), label="failed", **FAILED)
    axes.set_xlabel("trial")
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    value_axis(axes, np.array(volumes), f"volume up to ({', '.join(map(number, view.finished.worst))})")
    legend(made, axes)
    return made


def volumes_so_far(finished: History) -> list[float]:
    """The hypervolume after each finished trial, up to the worst told value of each objective."""
    signs = finished.signs
    bound = signs * torch.tensor(finished.worst, dtype=torch.float64)
    outcomes = signs * finished.outcomes
    counted = torch.tensor([trial.status == "told" and trial.feasible for trial in finished], dtype=torch.bool)
    return [volume(outcomes[: k + 1][counted[: k + 1]], bound) for k in range(len(finished))]
