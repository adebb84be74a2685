"""A study on a space that has no picture of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from nestbo.manifolds import leaf
from nestbo.plots.style import BEST, BLUE, EVALUATED, FAILED, GREEN, ORANGE, figure, legend, number, value_axis
from nestbo.plots.view import WIDTH, Array, View

_STEPS = 121
_SHOWN = ((BLUE, "-"), (ORANGE, "--"), (GREEN, "-."))


def geodesics(view: View) -> Figure:
    """Values against the distance to the best point; the mean along geodesics through it where the data lie."""
    directions = principal_directions(view) if view.model is not None else []
    made = figure(view.title, 9.2 if directions else 7.0, 4.2)
    panels = made.subplots(1, 2 if directions else 1, squeeze=False)[0]
    _distances(made, panels[0], view)
    if directions:
        _profiles(panels[1], view, directions)
        beyond = int(view.space.dist(view.points(view.told), view.best.x).isnan().sum())
        panels[0].set_title("The evaluations" + (f" ({beyond} too far for a distance)" if beyond else ""))
        panels[1].legend(loc="best", fontsize=8.5)
    else:
        panels[0].set_title(view.modelless if view.model is None else "All at one point: no direction to look along")
    legend(made, panels[0])
    return made


def _distances(made: Figure, axes: Any, view: View) -> None:
    at = view.space.dist(view.points(view.told), view.best.x).numpy()
    order = np.array([trial.index for trial in view.told])
    dots = axes.scatter(at, view.values, c=order, cmap="cividis_r", label="evaluation", **EVALUATED)
    axes.scatter([0], [view.best.value], label=f"best: {number(view.best.value)}", **BEST)
    if view.failed:
        away = view.space.dist(view.points(view.failed), view.best.x).numpy()
        axes.scatter(away, np.full(len(away), 0.03), transform=axes.get_xaxis_transform(), label="failed", **FAILED)
    if len(order) > 1:
        bar = made.colorbar(dots, ax=axes, label="trial", shrink=0.8, aspect=28, pad=0.02)
        bar.outline.set_visible(False)
    axes.set_xlabel("distance to the best point")
    value_axis(axes, view.values)


def principal_directions(view: View) -> list[Tensor]:
    """At the best point, up to three orthonormal tangent vectors along which the evaluations spread most."""
    space, best = leaf(view.space), view.best.x
    logs = space.log(best, view.points(view.told))
    logs = logs[logs.flatten(1).isfinite().all(1)]  # beyond the reach of the space there may be none
    gram = space.inner(best, logs.unsqueeze(1), logs.unsqueeze(0))
    values, vectors = torch.linalg.eigh((gram + gram.mT) / 2)
    least = max(1e-12, 1e-9 * values[-1].item())
    keep = [k for k in reversed(range(len(values))) if values[k] > least][: len(_SHOWN)]
    return [torch.tensordot(vectors[:, k], logs, 1) / values[k].sqrt() for k in keep]


def _profiles(axes: Any, view: View, directions: list[Tensor]) -> None:
    """Mean and band along each geodesic, as far as it stays in the space and near the data."""
    spread = view.space.dist(view.points(view.told), view.best.x).nan_to_num(nan=0.0).max().item()
    t = torch.linspace(-1, 1, _STEPS, dtype=torch.float64) * min(spread, leaf(view.space).injectivity_radius)
    shown = [view.values]
    for k, (direction, (colour, line)) in enumerate(zip(directions, _SHOWN, strict=False), 1):
        path = leaf(view.space).exp(view.best.x, t[(..., *[None] * direction.ndim)] * direction)
        inside = (view.space.violation(path) <= 1e-6).numpy()
        low, mean, high = (_along(view, path, inside, d) for d in (-WIDTH, 0.0, WIDTH))
        shown += [low[inside], high[inside]]
        axes.fill_between(t.numpy(), low, high, color=colour, alpha=0.13, linewidth=0)
        axes.plot(t.numpy(), mean, line, color=colour, linewidth=2, label=f"direction {k}")
    axes.scatter([0], [view.best.value], **BEST)
    axes.set_xlabel("signed distance from the best point")
    value_axis(axes, np.concatenate(shown), "mean and 95 % band")
    axes.set_title("The model along the main directions of the data")


def _along(view: View, path: Tensor, inside: Any, deviations: float) -> Array:
    """The prediction on a path, NaN where it has left the space."""
    values = np.full(len(path), np.nan)
    values[inside] = view.predict(path[torch.from_numpy(inside)], deviations)
    return values
