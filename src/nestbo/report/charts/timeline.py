"""When each trial was asked and told: what ran at the same time, and how long it took."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from nestbo.history import Trial
from nestbo.plots.view import Study, objective_names
from nestbo.report.charts.chart import BLUE, RED, Chart, Face, Trace, axis, described

_UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
_COLOURS = {"told": BLUE, "failed": RED}


@dataclass(frozen=True)
class Bar:
    """A trial from its question to its answer, in seconds, and the lane in which it is drawn."""

    trial: Trial
    start: float
    end: float
    lane: int


def timeline(study: Study) -> Chart | None:
    """Each evaluation as a bar; bars of the same time lie in lanes one above the other."""
    bars = _bars(study)
    if len(bars) < 2:
        return None
    begin, lanes = bars[0].start, 1 + max(bar.lane for bar in bars)
    size, unit = _unit(max(bar.end for bar in bars) - begin)
    names = objective_names(study)
    kinds = [[bar for bar in bars if bar.trial.status == status] for status in _COLOURS]
    traces = [_trace(group, begin, size, names) for group in kinds if group]
    up = {"tickvals": list(range(1, lanes + 1)), "range": [0.4, lanes + 0.6]}
    layout = {"xaxis": axis(f"{unit} since the first question"), "yaxis": up, "barmode": "overlay"}
    summary = f"{len(bars)} evaluations, up to {lanes} at the same time, in {_length(bars, size):.3g} {unit}."
    return Chart(summary, [Face("", traces, layout)], height=min(420, 190 + 24 * lanes))


def _length(bars: list[Bar], size: float) -> float:
    return (max(bar.end for bar in bars) - bars[0].start) / size


def _bars(study: Study) -> list[Bar]:
    """The trials that took time, in the order of their questions, each in the first lane that is free."""
    spans = [(trial, *study.times.get(trial.index, (None, None))) for trial in study.history.finished]
    known = [(a, b, trial) for trial, a, b in spans if a is not None and b is not None and _sound(a, b)]
    free: list[float] = []
    bars = []
    for start, end, trial in sorted(known, key=lambda span: span[0]):
        lane = next((k for k, until in enumerate(free) if until <= start), len(free))
        free[lane : lane + 1] = [end]
        bars.append(Bar(trial, start, end, lane))
    return bars


def _sound(start: float, end: float) -> bool:
    """Whether a trial took time, by a clock that was not far off."""
    return math.isfinite(start) and math.isfinite(end) and end > start


def _unit(seconds: float) -> tuple[float, str]:
    """The unit in which so many seconds are read most easily."""
    return next((pair for pair in _UNITS if seconds >= 2 * pair[0]), _UNITS[-1])


def _trace(bars: list[Bar], begin: float, size: float, names: tuple[str, ...]) -> Trace:
    status = bars[0].trial.status
    colour = _COLOURS[status]
    marker: dict[str, Any] = {"color": colour, "line": {"color": colour, "width": 1}}
    texts = [f"{described(bar.trial, names)}<br>took {bar.end - bar.start:.3g} s" for bar in bars]
    spans = {"base": [(bar.start - begin) / size for bar in bars], "x": [(bar.end - bar.start) / size for bar in bars]}
    rows = {"y": [bar.lane + 1 for bar in bars], "orientation": "h", "width": 0.6, "meta": "trials"}
    labels = {"hovertext": texts, "hovertemplate": "%{hovertext}<extra></extra>"}
    return {"type": "bar", "name": status, **spans, **rows, **labels, "marker": marker}
