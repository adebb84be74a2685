"""The learned subspace, and how it settles."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from nestbo.plots.nesting import factors, fits, nested_models, unnested
from nestbo.plots.style import BLUE, GREY, ORANGE, figure, legend, words
from nestbo.plots.view import Array, Study, View


def subspace(study: Study) -> Figure:
    """How much of each ambient coordinate the leading nested model keeps, and how far its subspace turns at each fit.

    Fits are those in the notes, and the one to all data.
    """
    view = View(study)
    models = nested_models(view)
    if not models:
        return words(view.title, unnested(view))
    name, model = next(iter(models.items()))
    now = len(view.finished) + 1, [part.basis[0] for part in factors(model.mapping)]
    found = [*fits(view, name), now]
    made = figure(f"{view.title}; model {name}", 8.6, 6.0)
    cells = made.add_gridspec(2, 2, width_ratios=[2.6, 1], height_ratios=[1.7, 1])
    run, last, angles = (made.add_subplot(cells[k]) for k in (0, 1, 2))
    shown = np.stack([loadings(bases) for _, bases in found])
    _run(made, run, shown, [place for place, _ in found])
    _last(last, shown[-1], found[-1][1])
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
    return np.sort(np.concatenate([principal_angles(a, b) for a, b in zip(first, second, strict=True)]))[::-1]


def _run(made: Figure, axes: Any, shown: Array, places: list[int]) -> None:
    """The loadings at each fit, until the next."""
    edges = np.array([*places, places[-1] + 1]) - 0.5
    rows = np.arange(shown.shape[1] + 1) + 0.5
    image = axes.pcolormesh(edges, rows, shown.T, cmap="cividis", vmin=0, vmax=1)
    bar = made.colorbar(image, ax=axes, label="loading", aspect=28, pad=0.02)
    bar.outline.set_visible(False)
    axes.set(xlim=(0.5, edges[-1]), ylim=(rows[-1], rows[0]), ylabel="ambient coordinate")
    axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True))
    axes.tick_params(labelbottom=False)
    axes.grid(visible=False)
    axes.set_title("Loading of each coordinate on the subspace")


def _last(axes: Any, shown: Array, bases: list[Tensor]) -> None:
    rows = range(1, len(shown) + 1)
    axes.barh(rows, shown, height=0.7, color=BLUE)
    usual = np.concatenate([np.full(len(basis), basis.shape[1] / basis.shape[0]) for basis in bases])
    axes.step(np.append(usual, usual[-1]), np.arange(len(shown) + 1) + 0.5, color=ORANGE, linestyle="--", linewidth=1.6)
    axes.set(xlim=(0, 1.02), ylim=(len(shown) + 0.5, 0.5), xlabel="loading")
    axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True))
    axes.set_title("Last fit (dashed: mean)")


def _angles(axes: Any, found: list[tuple[int, list[Tensor]]]) -> None:
    places = [place for place, _ in found]
    steps = [_turns(a, b) for (_, a), (_, b) in itertools.pairwise(found)]
    away = [_turns(bases, found[-1][1])[0] for _, bases in found]
    axes.plot(places, away, "--", color=ORANGE, linewidth=1.6, label="largest angle to the last fit")
    if steps:
        others = np.array(steps)[:, 1:]
        axes.plot(
            places[1:], np.array(steps)[:, 0], color=BLUE, linewidth=1.6, label="to the fit before: largest angle"
        )
        axes.plot(places[1:], others, ".", color=GREY, markersize=4)
        axes.plot([], [], ".", color=GREY, label="other principal angles")
    axes.set(xlim=(0.5, places[-1] + 0.5), ylim=(-2, 92), yticks=[0, 30, 60, 90], xlabel="evaluation")
    axes.set_ylabel("angle (degrees)")
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
