"""What the nested space leaves out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nestbo.plots.nesting import fits, nested_models, refitted, unnested
from nestbo.plots.style import BLUE, EVALUATED, GREY, INK, ORANGE, figure, legend, words
from nestbo.plots.view import Array, Study, View

_FITS = 12  # along the run: each costs a fit of its lift


def reconstruction(study: Study) -> Figure:
    """How far the evaluated points are from the lifted nested space, seen now and as it was learned."""
    view = View(study)
    models = nested_models(view)
    if not models:
        return words(view.title, unnested(view))
    name, model = next(iter(models.items()))
    made = figure(f"{view.title}; model {name}", 8.6, 4.4)
    axes = made.add_subplot()
    x = view.points(list(view.finished))
    _points(axes, view, name, errors(model.mapping.fit_lift(x), x))
    _along(axes, view, name)
    _usual(axes, view)
    axes.set(xlabel="trial", ylabel="distance of x and lift(project(x))", xlim=(-1, view.finished[-1].index + 1))
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    legend(made, axes)
    return made


def _usual(axes: Any, view: View) -> None:
    """How far points usually are from each other, for comparison."""
    distance = view.space.typical_distance
    axes.axhline(distance, color=GREY, linewidth=1.2, linestyle=":")
    text = {"ha": "right", "va": "bottom", "fontsize": 8.5, "transform": axes.get_yaxis_transform()}
    axes.text(0.995, distance, "distance of two random points", **text)


def errors(mapping: Any, x: Any) -> Array:
    """The distance of points x (n, *point) from their reconstructions, (n,)."""
    return np.asarray(mapping.ambient.dist(x, mapping.lift(mapping.project(x))).numpy())


def _points(axes: Any, view: View, name: str, away: Array) -> None:
    """Each evaluated point, by the last fit."""
    arms = [trial.memory.arm for trial in view.finished]
    inside = np.array([trial.memory.arm is not None and name in trial.memory.fits for trial in view.finished])
    start = np.array([arm is None for arm in arms])
    place = np.array([trial.index for trial in view.finished])
    groups = (
        (start, GREY, "o", "start"),
        (inside, BLUE, "o", "from the nested space"),
        (~inside & ~start, ORANGE, "s", "from elsewhere"),
    )
    for chosen, colour, marker, label in groups:
        if chosen.any():
            axes.scatter(place[chosen], away[chosen], color=colour, marker=marker, label=label, **EVALUATED)


def _along(axes: Any, view: View, name: str) -> None:
    """Root mean squares over the points known at a fit, with its basis and the lift nearest to them."""
    found = [(place, bases) for place, bases in fits(view, name) if place > view.finished[0].index]
    if found:
        spread = np.linspace(0, len(found) - 1, _FITS).astype(int)
        found = [found[k] for k in np.unique(spread)]
    x, means = view.points(list(view.finished)), []
    with torch.no_grad():
        for place, bases in found:
            known = x[: sum(trial.index < place for trial in view.finished)]
            away = errors(refitted(view.models[name].mapping, bases, known), known)
            means.append(float(np.sqrt(np.mean(away**2))))
    if means:
        label = "root mean square, as it was then"
        axes.plot([place for place, _ in found], means, color=INK, linewidth=1.6, label=label)
