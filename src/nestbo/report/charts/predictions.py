"""Each value predicted from all others, against what was told."""

from __future__ import annotations

import numpy as np

from nestbo.plots.summary import leave_one_out
from nestbo.plots.view import Study, View
from nestbo.report.charts.chart import BLUE, GREY, Chart, Face, axis, described, dots, line


def predictions(study: Study) -> Chart | None:
    """Which trials the model understands, and which surprise it."""
    view = View(study)
    found = leave_one_out(view)
    if found is None:
        return None
    told, low, high = (np.array(found[key]) for key in ("predicted", "low", "high"))
    arms = {"type": "data", "symmetric": False, "color": BLUE, "thickness": 1, "width": 0}
    arms |= {"array": (high - told).tolist(), "arrayminus": (told - low).tolist()}
    labels = [
        f"{described(trial, ('value',))}<br>predicted {at:.5g}, 95 % from {a:.5g} to {b:.5g}"
        for trial, at, a, b in zip(view.told, told, low, high, strict=True)
    ]
    ends = [float(view.values.min()), float(view.values.max())]
    same = line("predicted = told", GREY, ends, ends, line={"dash": "dash", "width": 1})
    points = dots(
        "trial, with its 95 % interval",
        BLUE,
        found["observed"],
        found["predicted"],
        labels,
        error_y=arms,
        meta="trials",
    )
    inside = found["coverage"]["0.95"]
    summary = f"{len(labels)} values, each predicted from all others; {inside:.0%} lie within their 95 % intervals."
    return Chart(summary, [Face("", [same, points], {"xaxis": axis("told"), "yaxis": axis("predicted")})])
