"""What came out of the suite "applications", as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import wilcoxon

from nestbo.experiment.applications.evaluations import Run
from nestbo.experiment.applications.methods import METHODS
from nestbo.experiment.statistics import FEWEST
from nestbo.gallery.catalogue import CATALOGUE

OURS = "nestbo"
_CLOSE = 0.95  # of the way from random search to the best value known: a success
_SURE = 0.05  # below this p a difference counts
_QUARTILES = 4  # runs from which on quartiles are shown
_HEAD = "| method | searches | median | quartiles | successes | nestbo is | s per suggestion | runs |"
_LINE = "|---|---|--:|--:|--:|--:|--:|--:|"


@dataclass(frozen=True)
class Row:
    """All runs of one method on one application, in one kind of coordinates."""

    method: str
    coordinates: str
    runs: tuple[Run, ...]

    @property
    def reached(self) -> dict[int, float]:
        """The value reached with each seed; infinite where nothing allowed was found."""
        return {run.seed: np.inf if run.reached is None else run.reached for run in self.runs}

    @property
    def median(self) -> float:
        """Of the values reached."""
        return float(np.median(list(self.reached.values())))


def read(places: Iterable[Path]) -> list[Run]:
    """The complete runs in folders, and all runs in files with one on each line.

    Of two runs with the same application, method, coordinates and seed, the first one counts.
    """
    found: list[Run] = []
    for place in places:
        if place.is_dir():
            found += [run for path in sorted(place.glob("*.json")) if (run := Run.read(path)).complete]
        else:
            found += [Run.parse(line) for line in place.read_text(encoding="utf-8").splitlines()]
    cells = {(run.application, run.method, run.coordinates, run.seed): run for run in reversed(found)}
    return [cells[key] for key in sorted(cells)]


def tables(runs: Sequence[Run], only: str | None = None) -> list[str]:
    """A table for each application, or for one of them."""
    lines: list[str] = []
    for name in [only] if only else CATALOGUE:
        rows = rows_of([run for run in runs if run.application == name])
        if rows:
            lines += [f"### {name}: {CATALOGUE[name].about}", "", *table(rows), ""]
    return lines


def rows_of(runs: Sequence[Run]) -> list[Row]:
    """The runs of one application, by method and coordinates; the lowest median comes first."""
    keys = dict.fromkeys((run.method, run.coordinates) for run in runs)
    rows = [Row(*key, tuple(run for run in runs if (run.method, run.coordinates) == key)) for key in keys]
    return sorted(rows, key=lambda row: row.median)


def table(rows: Sequence[Row]) -> list[str]:
    """Lines of Markdown."""
    best = min(value for row in rows for value in row.reached.values())
    plain = [row.median for row in rows if row.method == "random"]
    ours = next((row for row in rows if row.method == OURS), None)
    goal = best + (1 - _CLOSE) * (plain[0] - best) if plain else None
    return [_HEAD, _LINE, *(_line(row, goal, ours) for row in rows)]


def _line(row: Row, goal: float | None, ours: Row | None) -> str:
    values = np.array(list(row.reached.values()))
    low, high = np.quantile(values, [0.25, 0.75])
    quartiles = f"{low:.4g}, {high:.4g}" if len(values) >= _QUARTILES else ""
    successes = "" if goal is None else f"{int((values <= goal).sum())} of {len(values)}"
    thought = np.median([run.thought for run in row.runs])
    name = METHODS[row.method].about if row.method in METHODS else row.method
    verdict = "" if ours is None or row is ours else compared(ours, row)
    return (
        f"| {name} | {row.coordinates} | {row.median:.4g} | {quartiles} | {successes} | {verdict} "
        f"| {thought:.2g} | {len(values)} |"
    )


def compared(ours: Row, other: Row) -> str:
    """Whether ours is better, level or worse, by Wilcoxon's signed-rank test over common seeds, with its p."""
    seeds = sorted(ours.reached.keys() & other.reached.keys())
    gains = np.array([other.reached[seed] - ours.reached[seed] for seed in seeds])
    if len(seeds) < FEWEST or not np.isfinite(gains).all() or not gains.any():
        return "" if gains.any() else "level"
    p = float(wilcoxon(gains).pvalue)
    word = "level" if p > _SURE else "better" if np.median(gains) > 0 else "worse"
    return f"{word} (p {p:.2g})"
