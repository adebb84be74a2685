"""What the objective depends on."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nestbo.plots.sensitivity import Share, directions, parts, shares
from nestbo.plots.style import BLUE, INK, ORANGE, figure, say, words
from nestbo.plots.view import Study, View

_MOST = 12  # bars of a panel
_FEWEST = 3  # values from which a model learns something


def importance(study: Study) -> Figure:
    """Which parts of the space the objective depends on, as the model has it, and which directions."""
    view = View(study)
    if len(view.told) < _FEWEST or view.model is None:
        return words(view.title, _why(view))
    first, total = shares(view.space, view.model) if len(parts(view.space)) > 1 else ([], [])
    slopes = directions(view.space, view.model, view.points(view.told))
    rows = min(_MOST, max(len(first), len(slopes), 3))
    made = figure(view.title, 9.2 if total and slopes else 6.4, 1.9 + 0.32 * rows)
    panels = made.subplots(1, 2 if total and slopes else 1, squeeze=False)[0]
    if total:
        _parts(panels[0], first, total)
    if slopes:
        _directions(panels[-1], slopes)
    if not total and not slopes:
        say(panels[0], "The space has one part, and no directions to compare.")
    return made


def _why(view: View) -> str:
    if not view.told:
        return view.nothing
    if view.model is None:
        return f"{view.study.strategy} fits no model,\nwhich could say what matters."
    return f"What matters is shown from {_FEWEST} values on, there are {len(view.told)}."


def _parts(axes: Any, first: list[Share], total: list[Share]) -> None:
    """Two bars for each part, the most important on top."""
    order = sorted(range(len(total)), key=lambda k: -total[k].value)[:_MOST]
    place = np.arange(len(order))
    for shift, colour, label, found in ((-0.2, BLUE, "alone", first), (0.2, ORANGE, "with the others", total)):
        _bars(axes, place + shift, [found[k] for k in order], 0.36, colour, label)
    axes.set_yticks(place, [_short(total[k].name) for k in order])
    axes.legend(loc="lower right", fontsize=8.5)
    left_out = f" ({len(total) - len(order)} more)" if len(total) > len(order) else ""
    _finish(axes, f"Share of the variance that a part explains{left_out}")


def _directions(axes: Any, found: list[Share]) -> None:
    """A bar for each direction, the steepest on top."""
    shown = found[:_MOST]
    _bars(axes, np.arange(len(shown)), shown, 0.6, BLUE, "")
    axes.set_yticks(np.arange(len(shown)), [share.name for share in shown])
    _finish(axes, "Share of the slope by direction")


def _bars(axes: Any, place: Any, found: list[Share], height: float, colour: str, label: str) -> None:
    values = np.array([share.value for share in found])
    around = [values - [share.low for share in found], [share.high for share in found] - values]
    style = {"ecolor": INK, "elinewidth": 1, "capsize": 2}
    axes.barh(place, values, height, color=colour, label=label, xerr=np.maximum(0, around), error_kw=style, zorder=3)


def _finish(axes: Any, title: str) -> None:
    axes.set_title(title)
    axes.set_xlim(0, 1.02)
    axes.invert_yaxis()


def _short(name: str, most: int = 26) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
