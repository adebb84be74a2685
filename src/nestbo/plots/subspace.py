"""The learned subspace, and how it settles."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from nestbo.plots.nesting import factors, fits, nested_models, unnested
from nestbo.plots.style import BLUE, GREY, ORANGE, RED, figure, legend, words
from nestbo.plots.view import Array, Study, View


def subspace(study: Study) -> Figure:
    """How much of each ambient coordinate the leading nested model keeps, and how far its subspace turns at each fit.

    Fits are those that trials remember, and the one to all data.
    """
    view = View(study)
    models = nested_models(view)
    if not models:
        return words(view.title, unnested(view))
    name, model = next(iter(models.items()))
    now = view.finished[-1].index + 1, [part.basis for part in factors(model.mapping)]
    found = [*fits(view, name), now]
    made = figure(f"{view.title}; model {name}", 8.6, 6.0)
    cells = made.add_gridspec(2, 2, width_ratios=[2.6, 1], height_ratios=[1.7, 1])
    angles = made.add_subplot(cells[2])
    run = made.add_subplot(cells[0], sharex=angles)
    last = made.add_subplot(cells[1], sharey=run)
    shown = np.stack([loadings(bases) for _, bases in found])
    colours = ScalarMappable(Normalize(0, shown.max()), "cividis")
    _run(run, shown, [place for place, _ in found], colours)
    _last(last, shown[-1], now[1], colours)
    _angles(angles, found)
    legend(made, angles)
    return made


def loadings(bases: list[Tensor]) -> Array:
    """|Wᵀe|² for the unit vector e of each ambient coordinate, (coordinates,): 1 if the subspace contains it."""
    return np.concatenate([basis.square().sum(-1).numpy() for basis in bases])


def principal_angles(a: Tensor, b: Tensor) -> Array:
    """Between the spans of orthonormal a and b (n, p), in degrees, the largest first, small ones to all digits."""
    sine = torch.linalg.svdvals(b - a @ (a.mT @ b))
    cosine = torch.linalg.svdvals(a.mT @ b).flip(-1)
    return np.asarray(torch.atan2(sine, cosine).rad2deg().numpy())


def _turns(first: list[Tensor], second: list[Tensor]) -> Array:
    """The principal angles of all factors, the largest first."""
    angles = [principal_angles(a, b) for a, b in zip(first, second, strict=True)]
    return np.sort(np.concatenate(angles))[::-1]


def _run(axes: Any, shown: Array, places: list[int], colours: ScalarMappable) -> None:
    """The loadings at each fit, until the next."""
    edges = np.array([*places, places[-1] + 1]) - 0.5
    rows = np.arange(shown.shape[1] + 1) + 0.5
    axes.pcolormesh(edges, rows, shown.T, cmap=colours.cmap, norm=colours.norm)
    axes.set(ylim=(rows[-1], rows[0]), ylabel="ambient coordinate")
    axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True))
    axes.tick_params(labelbottom=False)
    axes.grid(visible=False)
    axes.set_title("Loading of each coordinate on the subspace")


def _last(axes: Any, shown: Array, bases: list[Tensor], colours: ScalarMappable) -> None:
    """Bars that are the scale of the colours, too."""
    axes.barh(range(1, len(shown) + 1), shown, height=0.8, color=colours.to_rgba(shown))
    usual = np.concatenate([np.full(len(basis), basis.shape[1] / basis.shape[0]) for basis in bases])
    edges = np.repeat(np.arange(len(shown) + 1) + 0.5, 2)[1:-1]
    axes.plot(np.repeat(usual, 2), edges, color=RED, linestyle="--", linewidth=1.4)
    axes.set(xlim=(0, None), xlabel="loading |Wᵀe|²")
    axes.tick_params(labelleft=False)
    axes.set_title("The last fit (dashed: mean)")


def _angles(axes: Any, found: list[tuple[int, list[Tensor]]]) -> None:
    places = [place for place, _ in found]
    steps = [_turns(a, b) for (_, a), (_, b) in itertools.pairwise(found)]
    away = [_turns(bases, found[-1][1])[0] for _, bases in found]
    axes.plot(places, away, "--", color=ORANGE, linewidth=1.6, label="largest angle to the last fit")
    if steps:
        largest, *others = np.array(steps).T
        axes.plot(places[1:], largest, ".-", color=BLUE, linewidth=1.6, label="largest angle to the fit before")
        axes.plot(places[1:], np.transpose(others), ".", color=GREY, markersize=4)
        axes.plot([], [], ".", color=GREY, label="the others to the fit before")
    axes.set(xlim=(-0.5, places[-1] + 0.5), ylim=(-2, 92), yticks=[0, 30, 60, 90], xlabel="trial")
    axes.set_ylabel("angle (degrees)")
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
