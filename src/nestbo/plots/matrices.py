"""A study on SPD(2)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from matplotlib.cm import ScalarMappable
from matplotlib.collections import EllipseCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from nestbo.history import Trial
from nestbo.plots.style import BEST, EVALUATED, FAILED, INK, colour_bar, figure, legend, number, say, scale, shade
from nestbo.plots.view import Array, View

_MOST = 100  # ellipses that can still be told apart
_STEPS = 60


def matrices(view: View) -> Figure:
    """The matrices as ellipses in the order of evaluation, in their cone, and the mean over eigenvalues."""
    made = figure(view.title, 11.6, 4.6)
    cells = made.add_gridspec(1, 4, width_ratios=[1, 1, 0.1, 1])  # the third keeps the cone's label off the next
    left, right = made.add_subplot(cells[0]), made.add_subplot(cells[3])
    middle = made.add_subplot(cells[1], projection="3d")
    grid, points = _slice(view)
    mean = view.predict(points) if view.model is not None else np.zeros(0)
    colours = scale(view, mean)
    _ellipses(left, view, colours)
    _cone(middle, view, colours)
    if view.model is None:
        say(right, view.modelless.replace(": ", ":\n"))
    else:
        _mean(right, view, grid, mean.reshape(_STEPS, _STEPS), colours)
    colour_bar(made, colours, [left, middle, right])
    legend(made, middle)
    return made


def _eigen(x: Tensor) -> tuple[Array, Array]:
    values, vectors = torch.linalg.eigh(x)
    return values.numpy(), vectors.numpy()


def _ellipses(axes: Any, view: View, colours: ScalarMappable) -> None:
    """{v: vᵀ X⁻¹ v = 1}, its semi-axes the roots of the eigenvalues, one per told trial."""
    order = np.argsort(view.sign * view.values, kind="stable")[:_MOST]
    shown = [view.told[k] for k in sorted(order)]
    columns = math.ceil(math.sqrt(len(shown)))
    at = np.array([(k % columns, -(k // columns)) for k in range(len(shown))], dtype=float)
    values, vectors = _eigen(view.points(shown))
    axis = np.sqrt(np.clip(values, 0, None))
    axis *= 0.92 / (2 * axis.max())  # the largest fills its cell
    turn = np.degrees(np.arctan2(vectors[:, 1, 1], vectors[:, 0, 1]))
    faces = colours.to_rgba(np.array([trial.value for trial in shown]))
    axes.add_collection(
        EllipseCollection(
            2 * axis[:, 1], 2 * axis[:, 0], turn, units="xy", offsets=at, offset_transform=axes.transData,
            facecolors=faces, edgecolors=faces, linewidths=1.2,
        )
    )  # fmt: skip
    best = at[[trial.index for trial in shown].index(view.best.index)]
    axes.scatter(best[:1] + 0.38, best[1:] + 0.38, **{**BEST, "s": 90})
    _cells(axes, shown, at, columns)
    some = "all" if len(shown) == len(view.told) else f"the {_MOST} best"
    axes.set_title(f"Ellipses, {some} in order of evaluation")


def _cells(axes: Any, shown: list[Trial], at: Array, columns: int) -> None:
    """The index of the first trial of each row, beside it."""
    for k in range(0, len(shown), columns):
        axes.text(-0.75, at[k, 1], f"{shown[k].index}", ha="right", va="center", fontsize=8, color=INK)
    axes.set(xlim=(-1.2, columns - 0.3), ylim=(-columns + 0.05, 0.95), aspect="equal")
    axes.set_axis_off()


def cone(x: Array) -> Array:
    """Matrices (n, 2, 2) as ((x₁₁ − x₂₂)/2, x₁₂, (x₁₁ + x₂₂)/2), (3, n): a cone around the last axis."""
    a, b, c = x[:, 0, 0], x[:, 0, 1], x[:, 1, 1]
    return np.stack([(a - c) / 2, b, (a + c) / 2])


def _cone(axes: Any, view: View, colours: ScalarMappable) -> None:
    axes.computed_zorder = False  # else the depth may hide the best behind its neighbours
    height = np.linspace(*_span(view), 25)
    low, high = getattr(view.space, "eigenvalues", None) or (0.0, math.inf)
    radius = np.minimum(height - low, high - height)
    turn = np.linspace(0, 2 * np.pi, 25)[:, None]
    shell = (radius * np.cos(turn), radius * np.sin(turn), height + 0 * turn)
    axes.plot_wireframe(*shell, rstride=2, cstride=6, color="#C4C4C4", linewidth=0.5)
    at = cone(view.points(view.told).numpy())
    shades = {"cmap": colours.cmap, "norm": colours.norm, "depthshade": False}
    axes.scatter(*at, c=view.values, label="evaluation", **shades, **EVALUATED)
    if view.failed:
        axes.scatter(*cone(view.points(view.failed).numpy()), label="failed", depthshade=False, **FAILED)
    best = cone(view.best.x.numpy()[None])
    axes.scatter(*best, label=f"best: {number(view.best.value)}", depthshade=False, **BEST)
    x = view.letter
    axes.set(xlabel=f"({x}₁₁ − {x}₂₂)/2", ylabel=f"{x}₁₂", zlabel=f"({x}₁₁ + {x}₂₂)/2")
    axes.set_title("In the cone of positive definite matrices")
    axes.tick_params(labelsize=8, pad=0)
    axes.set_box_aspect(None, zoom=0.86)
    for side in (axes.xaxis, axes.yaxis, axes.zaxis):
        side.set_pane_color((1, 1, 1, 0))
        side.set_major_locator(MaxNLocator(4))


def _span(view: View) -> tuple[float, float]:
    """The range of eigenvalues to show: the bounds, or what was evaluated."""
    bounds: tuple[float, float] | None = getattr(view.space, "eigenvalues", None)
    if bounds is not None:
        return bounds
    values, _ = _eigen(view.points(list(view.finished)))
    return float(values.min()) / 1.5, float(values.max()) * 1.5


def _slice(view: View) -> tuple[Array, Tensor]:
    """Eigenvalues (steps,) and the matrices with each pair of them and the eigenvectors of the best one."""
    low, high = _span(view)
    bounded = getattr(view.space, "eigenvalues", None) is not None
    grid = np.linspace(low, high, _STEPS) if bounded else np.geomspace(low, high, _STEPS)
    pairs = torch.from_numpy(np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2))
    vectors = torch.from_numpy(_eigen(view.best.x)[1]).flip(-1)
    return grid, vectors @ torch.diag_embed(pairs) @ vectors.mT


def _mean(axes: Any, view: View, grid: Array, mean: Array, colours: ScalarMappable) -> None:
    shade(axes, grid, grid, mean, colours)
    values, _ = _eigen(view.best.x)
    axes.scatter(values[1], values[0], clip_on=False, **BEST)
    if getattr(view.space, "eigenvalues", None) is None:
        axes.set(xscale="log", yscale="log")
    axes.set(xlabel="eigenvalue along its long axis", ylabel="along its short axis", box_aspect=1)
    axes.set_title("Mean, with the eigenvectors of the best")
    axes.grid(visible=False)
