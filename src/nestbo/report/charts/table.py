"""The charts by name; those of a picture of the same name take its place in a browser that runs scripts."""

from __future__ import annotations

from collections.abc import Callable

from nestbo.plots.view import Study
from nestbo.report.charts.chart import Chart
from nestbo.report.charts.convergence import convergence
from nestbo.report.charts.front import front, hypervolume
from nestbo.report.charts.parameters import parameters
from nestbo.report.charts.predictions import predictions
from nestbo.report.charts.slices import slices
from nestbo.report.charts.timeline import timeline

CHARTS: dict[str, Callable[[Study], Chart | None]] = {
    "front": front,
    "hypervolume": hypervolume,
    "convergence": convergence,
    "parameters": parameters,
    "slices": slices,
    "predictions": predictions,
    "timeline": timeline,
}
