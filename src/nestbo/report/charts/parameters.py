"""All named parameters of all trials: one vertical line for each parameter, one path across them for each trial."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nestbo.history import Trial
from nestbo.manifolds import Box, Finite, Product, Space
from nestbo.plots.view import Array, Study, View
from nestbo.report.charts.chart import RED, Chart, Face, Trace, described, line, number, safe

_MOST_TRIALS, _MOST_PARAMETERS = 150, 24  # the best trials, and the first parameters: more are a grey cloud
_GOOD, _POOR = (36, 134, 192), (168, 174, 182)  # colours of the best and of the worst path


def parameters(study: Study) -> Chart | None:
    """Which values of the parameters go with good values of the objective."""
    view = View(study)
    labels = view.space.labels[:_MOST_PARAMETERS] if view.space.names is not None else ()
    if len(labels) < 2 or len(view.told) < 2:
        return None
    ranked = sorted(view.told, key=lambda trial: view.sign * (trial.value or 0.0))[:_MOST_TRIALS]
    places, ends = _places(view, ranked, len(labels))
    places = np.column_stack([places, np.linspace(1, 0, len(ranked))])
    ends.append((number(ranked[-1].value or 0.0), number(ranked[0].value or 0.0)))
    summary = f"{len(ranked)} trials, each a path across {len(labels)} parameters. Blue paths have better values."
    layout = _layout((*labels, "rank of the value"), ends)
    return Chart(summary, [Face("", _paths(ranked, places), layout)], height=440)


def _places(view: View, trials: list[Trial], count: int) -> tuple[Array, list[tuple[str, str]]]:
    """Where each trial meets each line, from 0 to 1, and what is written at both ends of each line."""
    columns = np.stack([_unit(view.space, trial.x) for trial in trials])[:, :count]
    ends = []
    for column, known in zip(columns.T, _bounds(view.space), strict=False):
        low, high = column.min(), column.max()
        if known is None:
            column[:] = (column - low) / max(high - low, 1e-300)
        ends.append(known or (f"{low:.3g}", f"{high:.3g}"))
    return columns, ends


def _unit(space: Space, x: Any) -> Array:
    """The numbers of a point, those with bounds from 0 to 1."""
    if isinstance(space, Product):
        return np.concatenate([_unit(factor, part) for factor, part in zip(space.factors, space.split(x), strict=True)])
    if isinstance(space, Box):
        return np.asarray(space.unit(x).numpy())
    if isinstance(space, Finite):
        low, high = space.range
        return np.asarray((space.project(x).numpy() - low) / (high - low))
    return np.asarray(x.numpy().ravel().copy())


def _bounds(space: Space) -> list[tuple[str, str] | None]:
    """The ends of each number's line, in words; None where the space has no bounds of its own."""
    if isinstance(space, Product):
        return [ends for factor in space.factors for ends in _bounds(factor)]
    if isinstance(space, Box):
        return [(f"{low:.3g}", f"{high:.3g}") for low, high in zip(space.lower, space.upper, strict=True)]
    if isinstance(space, Finite):
        first, last = (str(space.value(torch.tensor([float(end)]))) for end in space.range)
        return [(first, last)]
    return [None] * len(space.labels)


def _paths(ranked: list[Trial], places: Array) -> list[Trace]:
    """One trace for each trial, the best one last, so that it lies on top."""
    at = list(range(places.shape[1]))
    paths = []
    for k in reversed(range(len(ranked))):
        style = {"width": 4 if k == 0 else 1.5}
        label = {
            "text": described(ranked[k], ("value",)),
            "hovertemplate": "%{text}<extra></extra>",
            "showlegend": k == 0,
        }
        name = f"best: {number(ranked[0].value or 0.0)}" if k == 0 else f"trial {ranked[k].index}"
        colour = RED if k == 0 else _colour(k / len(ranked))
        paths.append(line(name, colour, at, places[k].tolist(), line=style, mode="lines+markers", **label))
    return paths


def _colour(share: float) -> str:
    """From the colour of the best to that of the worst."""
    mixed = (round(good + share * (poor - good)) for good, poor in zip(_GOOD, _POOR, strict=True))
    return f"rgb({','.join(map(str, mixed))})"


def _layout(labels: tuple[str, ...], ends: list[tuple[str, str]]) -> dict[str, Any]:
    """A line for each parameter, its ends written above and below."""
    ticks = {"tickvals": list(range(len(labels))), "ticktext": [safe(label) for label in labels], "zeroline": False}
    across = {**ticks, "range": [-0.3, len(labels) - 0.7], "tickangle": -30 if len(labels) > 6 else 0}
    notes = [
        {"x": k, "y": y, "text": safe(end), "showarrow": False, "yshift": shift, "font": {"size": 11}}
        for k, pair in enumerate(ends)
        for y, end, shift in ((0, pair[0], -11), (1, pair[1], 11))
    ]
    up = {"visible": False, "range": [-0.1, 1.1]}
    return {"xaxis": across, "yaxis": up, "annotations": notes, "hovermode": "closest"}
