"""The model along one parameter, all others as at the best point, and along the main directions of the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nestbo.manifolds import Box, Finite, Product, Space, leaf
from nestbo.plots.geodesics import principal_directions
from nestbo.plots.view import WIDTH, Study, View
from nestbo.report.charts.chart import (
    BLUE,
    GREY,
    RED,
    Chart,
    Face,
    Trace,
    axis,
    band,
    described,
    dots,
    line,
    number,
    safe,
)

_STEPS = 61  # points of a slice, and the most separate values that are shown
_MOST = 16  # parameters with a slice of their own


@dataclass(frozen=True)
class Slice:
    """Points (m, *point) through the best one, and what stands below them.

    Trials have their place by the ``column`` of their numbers; on a geodesic only the best point has one.
    """

    title: str
    at: list[Any]
    path: Tensor
    column: int | None = None
    kind: str = "linear"


def slices(study: Study) -> Chart | None:
    """What the model expects along each parameter, and along the directions in which the data lie."""
    view = View(study)
    if not view.told or view.model is None:
        return None
    found = [*_coordinates(view.space, view.best.x)[:_MOST], *_geodesics(view)]
    faces = [_face(view, each) for each in found]
    where = f"the best point, trial {view.best.index}"
    summary = f"What the model expects along {len(faces)} parameters or directions through {where}."
    return Chart(summary, faces, "Along") if faces else None


def _coordinates(space: Space, x: Tensor) -> list[Slice]:
    """A slice for each number between bounds and for each parameter that takes separate values."""
    labels = [label if space.names else f"x{label}" for label in space.labels]
    return [replace(each, title=labels[each.column or 0]) for each in _through(space, x, 0)]


def _through(space: Space, x: Tensor, column: int) -> list[Slice]:
    """The slices of a space whose first number is this column."""
    if isinstance(space, Box):
        return [_of_box(space, x, k, column + k) for k in range(space.dim)] if space.bounded else []
    if isinstance(space, Finite):
        return [_of_values(space, column)] if space.count <= _STEPS else []
    if not isinstance(space, Product):
        return []
    parts, found = space.split(x), []
    for k, factor in enumerate(space.factors):
        for each in _through(factor, parts[k], column):
            path = space.join([*parts[:k], each.path, *parts[k + 1 :]])
            found.append(replace(each, path=path))
        column += len(factor.labels)
    return found


def _of_box(box: Box, x: Tensor, k: int, column: int) -> Slice:
    unit = box.unit(x).repeat(_STEPS, 1)
    unit[:, k] = torch.linspace(0, 1, _STEPS, dtype=x.dtype)
    path = box.project(box.at(unit))
    return Slice("", path[:, k].tolist(), path, column, box.scales[k])


def _of_values(space: Finite, column: int) -> Slice:
    low, high = space.range
    path = torch.arange(low, high + 1, dtype=torch.float64).unsqueeze(-1)
    return Slice("", [safe(str(space.value(x))) for x in path], path, column, "category")


def _geodesics(view: View) -> list[Slice]:
    """Along up to three geodesics through the best point, as far as they stay in the space and near the data."""
    space, best = leaf(view.space), view.best.x
    spread = view.space.dist(view.points(view.told), best).nan_to_num(nan=0.0).max().item()
    t = torch.linspace(-1, 1, _STEPS, dtype=torch.float64) * min(spread, space.injectivity_radius)
    found = []
    for k, direction in enumerate(principal_directions(view), 1):
        path = space.exp(best, t[(..., *[None] * direction.ndim)] * direction)
        inside = view.space.violation(path) <= 1e-6
        found.append(Slice(f"main direction {k} of the data", t[inside].tolist(), path[inside]))
    return found


def _face(view: View, along: Slice) -> Face:
    low, mean, high = (view.predict(along.path, d).tolist() for d in (-WIDTH, 0.0, WIDTH))
    draw = _intervals if along.kind == "category" else _curve
    title = along.title if along.column is not None else "distance from the best point"
    layout = {"xaxis": axis(title, type=along.kind), "yaxis": axis("value")}
    return Face(along.title, [*draw(along.at, low, mean, high), *_trials(view, along)], layout)


def _curve(at: list[Any], low: list[float], mean: list[float], high: list[float]) -> list[Trace]:
    label = "%{x:.4g}<br>expected %{y:.5g}<extra></extra>"
    return [band(BLUE, at, low, high), line("expected value", BLUE, at, mean, hovertemplate=label)]


def _intervals(at: list[Any], low: list[float], mean: list[float], high: list[float]) -> list[Trace]:
    """Separate values: a dot with an interval for each."""
    arms = {"type": "data", "symmetric": False, "color": BLUE}
    arms |= {"array": np.subtract(high, mean).tolist(), "arrayminus": np.subtract(mean, low).tolist()}
    texts = [f"{place}<br>expected {number(value)}" for place, value in zip(at, mean, strict=True)]
    return [dots("expected value and 95 % interval", BLUE, at, mean, texts, error_y=arms, marker={"size": 10})]


def _trials(view: View, along: Slice) -> list[Trace]:
    """The evaluated trials, where they have a place on the axis, and the best one."""
    best, column = view.best, along.column
    shown = [best] if column is None else view.told
    places = [0.0 if column is None else _written(view.space.cells(trial.x)[column], along) for trial in shown]
    values, labels = [trial.value for trial in shown], [described(trial, ("value",)) for trial in shown]
    k = shown.index(best)
    star = dots("best", RED, [places[k]], [values[k]], [labels[k]], marker={"symbol": "star", "size": 14})
    faint = {"opacity": 0.7, "meta": "trials", "marker": {"size": 6}}
    return [dots("trials", GREY, places, values, labels, **faint), star] if column is not None else [star]


def _written(cell: Any, along: Slice) -> Any:
    return safe(str(cell)) if along.kind == "category" else cell
