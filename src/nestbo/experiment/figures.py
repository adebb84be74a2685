"""Figures of results, laid out as in the paper: regret along the evaluations beside box plots of where it ended."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nestbo.experiment.comparison import common, profiles
from nestbo.experiment.results import Array, Results, Series
from nestbo.experiment.suites import Suite
from nestbo.experiment.tables import called, heading
from nestbo.experiment.tasks import Task
from nestbo.experiment.trials import INITIAL
from nestbo.files import written

_FLOOR = 1e-10  # of regret, on a logarithmic axis
TOLERANCES = (0.1, 0.001)  # share of the regret after the initial points at which a problem counts as solved
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#A0522D", "#7F7F7F")  # Okabe and Ito's
_KNOWN = {  # a colour for each method in all pictures, related ones for a family; a line by variant
    "random": ("#8A8A8A", "-"),
    "bo": ("#E69F00", "-"),
    "cholesky-bo": ("#EBCB5A", "--"),
    "dropout": ("#56B4E9", "-"),
    "cholesky-dropout": ("#A3D9F2", "--"),
    "sir": ("#009E73", "-"),
    "cholesky-sir": ("#7CCBB4", "--"),
    "rembo": ("#CC79A7", "-"),
    "cholesky-rembo": ("#E8BBD3", "--"),
    "gabo-paper": ("#5B4FB3", "--"),
    "gabo-paper-lbfgs": ("#A59FD6", ":"),
    "gabo": ("#0072B2", "-"),
    "hdgabo-paper": ("#8B4A22", "--"),
    "hdgabo-paper-lbfgs": ("#C9A27E", ":"),
    "hdgabo": ("#D55E00", "-"),
    "hdgabo-nested": ("#7A0019", "-."),
    "hdgabo-unknown": ("#F59A62", ":"),
    "hdgabo-auto": ("#B5338A", "-"),
    "oracle": ("#333333", ":"),
    "turbo": ("#2F4B7C", "-"),
    "turbo-logei": ("#6C8EBF", "--"),
    "turbo-tangent": ("#9DB7DD", ":"),
    "botorch": ("#8C6D1F", "-"),
    "saas": ("#C9A227", "--"),
    "rpm": ("#D1495B", "--"),
    "cma-es": ("#1B9E4B", "-."),
    "tpe": ("#00A6C8", "-."),
    "optuna-gp": ("#7FD3E3", "--"),
    "nelder-mead": ("#4D4D4D", ":"),
    "powell": ("#9ACD32", ":"),
    "hdgabo-3": ("#F2C14E", "--"),
    "hdgabo-7": ("#E07A5F", "--"),
    "hdgabo-10": ("#6A994E", "--"),
    "hdgabo-auto-3": ("#D98BC0", ":"),
    "hdgabo-auto-7": ("#8E4585", "-."),
    "hdgabo-auto-10": ("#5A2A6E", "--"),
}
_WIDTH = 10.0  # inches of a picture
_LETTER, _KEY = 0.072, 0.55  # inches of a letter of a legend, and of the line in front of a name


def figures(found: Results, folder: Path, suite: Suite | None = None, prefix: str = "") -> list[Path]:
    """One picture for each space, in a folder; returns the paths."""
    import matplotlib

    from nestbo.plots.style import STYLE

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for where in dict.fromkeys(task.where for task in found):
        some = {task: methods for task, methods in found.items() if task.where == where}
        path = folder / f"{prefix}{where}.png"
        with matplotlib.rc_context(STYLE):
            figure = _draw(some, suite)
        with written(path) as file, matplotlib.rc_context(STYLE):
            figure.savefig(file, dpi=100)
        paths.append(path)
    return paths


def profile(found: Results, path: Path, suite: Suite | None = None) -> Path:
    """The share of problems solved along the evaluations, for a coarse and a fine tolerance; returns the path."""
    import matplotlib
    from matplotlib.figure import Figure

    from nestbo.plots.style import STYLE

    labels = common(found)
    styles = _styles(labels)
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        page = Figure(figsize=(_WIDTH, 3.8), layout="constrained")
        for axes, tolerance in zip(page.subplots(1, 2, sharey=True), TOLERANCES, strict=True):
            for label, curve in profiles(found, tolerance).items():
                colour, line = styles[label]
                at = np.arange(1, len(curve) + 1)
                axes.plot(at, curve, color=colour, linestyle=line, label=called(label, suite))
            axes.set(title=f"to {100 * tolerance:g} % of the initial regret", xlabel="evaluations", ylim=(-0.02, 1.02))
        page.axes[0].set(ylabel=f"share of {len(found)} problems solved")
        handles, shown = page.axes[0].get_legend_handles_labels()
        _legend(page, handles, shown)
        with written(path) as file:
            page.savefig(file, dpi=100)
    return path


def _draw(found: Results, suite: Suite | None) -> Any:
    from matplotlib.figure import Figure

    labels = list(dict.fromkeys(label for methods in found.values() for label in methods))
    styles = _styles(labels)
    page = Figure(figsize=(_WIDTH, 2.9 * len(found) + 0.6), layout="constrained")
    axes = page.subplots(len(found), 2, squeeze=False, width_ratios=(3, 2))
    for (left, right), (task, methods) in zip(axes, found.items(), strict=True):
        _curves(left, task, methods, styles)
        _boxes(right, methods, styles, suite)
    lines = {line.get_label(): line for row in axes for line in row[0].get_lines()}
    shown = [called(label, suite) for label in labels]
    _legend(page, [lines[label] for label in labels], shown)
    return page


def _legend(page: Any, handles: list[Any], names: list[str]) -> None:
    """The methods below the picture, in as many columns as its width holds."""
    column = _KEY + _LETTER * max(map(len, names))
    page.legend(handles, names, loc="outside lower center", ncols=max(1, int(_WIDTH / column)))


def _styles(labels: list[str]) -> dict[str, tuple[str, str]]:
    """A colour and a kind of line for each method: its own, or one that no other method of the picture has."""
    known = {label: _KNOWN[label] for label in labels if label in _KNOWN}
    taken = {colour for colour, _ in known.values()}
    free = [colour for colour in _COLOURS if colour not in taken]
    spare = itertools.cycle((colour, line) for line in ("-", "--", ":") for colour in free)
    return {label: known.get(label) or next(spare) for label in labels}


def _curves(axes: Any, task: Task, methods: Mapping[str, Series], styles: Mapping[str, tuple[str, str]]) -> None:
    """The logarithm of the median of regret, the median of the tables, and a band between the quartiles."""
    for label, one in methods.items():
        colour, line = styles[label]
        regret = one.best[:, INITIAL - 1 :]
        low, middle, high = _log(np.quantile(regret, [0.25, 0.5, 0.75], axis=0))
        at = np.arange(len(middle))
        axes.plot(at, middle, color=colour, linestyle=line, label=label)
        axes.fill_between(at, low, high, color=colour, alpha=0.1, linewidth=0)
    axes.set(title=heading(task), xlabel="iterations after the random points")
    axes.set_ylabel("log₁₀ regret (median, quartiles)")
    axes.set_xlim(left=0)


def _boxes(
    axes: Any, methods: Mapping[str, Series], styles: Mapping[str, tuple[str, str]], suite: Suite | None
) -> None:
    """Where trials ended; the line in a box is the median of the tables."""
    ends = [_log(one.best[:, -1]) for one in methods.values()]
    middles = [float(_log(np.median(one.best[:, -1]))) for one in methods.values()]
    names = [f"{called(label, suite)} ({len(end)})" for label, end in zip(methods, ends, strict=True)]
    looks: dict[str, Any] = {"widths": 0.6, "patch_artist": True, "flierprops": {"markersize": 3}}
    made = axes.boxplot(ends, orientation="horizontal", tick_labels=names, usermedians=middles, **looks)
    for label, box, middle in zip(methods, made["boxes"], made["medians"], strict=True):
        box.set(facecolor=styles[label][0], alpha=0.6, edgecolor="#333333")
        middle.set(color="#333333", linewidth=1.5)
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=7.5)
    axes.set(title="after the last evaluation (number of trials)", xlabel="log₁₀ regret")


def _log(regret: Array) -> Array:
    return np.log10(np.maximum(regret, _FLOOR))
