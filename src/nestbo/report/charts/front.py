"""Several objectives: what nothing dominates, pair by pair, and the volume that it dominates."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from nestbo.plots.front import stairs, volumes_so_far
from nestbo.plots.view import Study, View, objective_names
from nestbo.report.charts.chart import BLUE, GREY, ORANGE, RED, Chart, Face, Trace, axis, described, dots, line

_MOST = 15  # pairs: all of six objectives


def front(study: Study) -> Chart | None:
    """The values of each pair of objectives."""
    view = View(study)
    if not view.told or not view.history.several:
        return None
    names = objective_names(study)
    pairs = list(combinations(range(len(names)), 2))[:_MOST]
    faces = [_face(view, pair, names) for pair in pairs]
    on = len(view.history.front)
    return Chart(f"The values of {len(view.told)} trials. No trial dominates the {on} on the front.", faces, height=440)


def _face(view: View, pair: tuple[int, int], names: tuple[str, ...]) -> Face:
    title = " and ".join(names[k] for k in pair)
    return Face(title, _pair(view, pair, names), _layout(view, pair, names))


def _layout(view: View, pair: tuple[int, int], names: tuple[str, ...]) -> dict[str, Any]:
    ways = ("less" if view.history.directions[k] == "minimize" else "more" for k in pair)
    titles = [f"{names[k]} ({way} is better)" for k, way in zip(pair, ways, strict=True)]
    return {"xaxis": axis(titles[0]), "yaxis": axis(titles[1])}


def _pair(view: View, pair: tuple[int, int], names: tuple[str, ...]) -> list[Trace]:
    best = {trial.index for trial in view.history.front}
    groups = (
        ("dominated", BLUE, [t for t in view.told if t.feasible and t.index not in best], {"opacity": 0.7}),
        ("infeasible", ORANGE, view.infeasible, {"marker": {"symbol": "circle-open"}}),
        ("front", RED, [t for t in view.told if t.index in best], {"marker": {"size": 10}, "meta": "trials"}),
    )
    found = []
    if len(names) == 2:
        found.append(line("edge of what is dominated", GREY, *stairs(view.history), line={"width": 1}))
    for name, colour, trials, more in groups:
        if trials:
            x, y = ([trial.values[k] for trial in trials] for k in pair)
            found.append(dots(name, colour, x, y, [described(trial, names) for trial in trials], **more))
    return found


def hypervolume(study: Study) -> Chart | None:
    """How the dominated volume grew."""
    view = View(study)
    if not view.told or not view.history.several:
        return None
    volumes, at = volumes_so_far(view.finished), [trial.index for trial in view.finished]
    label = "trial %{x}<br>volume %{y:.5g}<extra></extra>"
    curve = line("hypervolume", BLUE, at, volumes, line={"shape": "hv"}, hovertemplate=label)
    layout = {"xaxis": axis("trial", rangemode="nonnegative"), "yaxis": axis("dominated volume")}
    summary = f"The dominated volume after each of {len(at)} trials; now {volumes[-1]:.4g}."
    return Chart(summary, [Face("", [curve], layout)])
