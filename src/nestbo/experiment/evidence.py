"""All comparisons of the documentation as one command: what is to be run, how long that takes, and running it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nestbo.experiment.pages import report as write_page
from nestbo.experiment.results import collect, records
from nestbo.experiment.rivals import ELSEWHERE, RIVALS
from nestbo.experiment.runner import run
from nestbo.experiment.suites import METHODS, SUITES, Cell
from nestbo.experiment.trial_files import evaluated, made_by, minutes, source
from nestbo.experiment.trials import INITIAL

PAGES = ("results.md", "evidence.md", "evidence-comparisons.md", "evidence-problems.md")
_UNKNOWN = 1.0  # seconds that a suggestion is taken to need where nothing is known of its method
_ABOUT = {  # seconds of a suggestion after 100 evaluations on one core, until files say better
    "hdgabo-paper-lbfgs": 0.2,
    "turbo": 0.5,
    "turbo-logei": 1.0,
    "turbo-tangent": 1.0,
    "botorch": 3.0,
    "saas": 2.5,
    "rpm": 0.5,
    "nelder-mead": 0.01,
    "powell": 0.01,
    "cma-es": 0.05,
    "tpe": 0.2,
    "optuna-gp": 2.0,
}
_TRUST_REGIONS = ("gabo-paper", "hdgabo-paper")  # slow; HD-GaBO's twin with L-BFGS does as well: docs/results.md
_PAPER = ",".join(label for label in METHODS if label not in _TRUST_REGIONS)
_OURS = "gabo,hdgabo-auto"
_QUICK = "random,nelder-mead,powell,cma-es,tpe"
_SLOW = "turbo,turbo-logei,turbo-tangent,botorch,saas,rpm,optuna-gp"


@dataclass(frozen=True)
class Part:
    """Methods of a suite, the number of trials, and whether they are run one by one on the CPU, as rivals are."""

    suite: str
    methods: str = "all"
    trials: int = 30
    alone: bool = False


PARTS = (
    Part("paper", _PAPER),
    Part("held-out", f"{_OURS},oracle", 10),
    Part("held-out", _QUICK, 10, alone=True),
    Part("held-out-metric"),
    Part("mismatch"),
    Part("ablation", trials=10),
    Part("few-dimensions", trials=10),
    Part("rivals-205", _QUICK, 10, alone=True),
    Part("rivals-205", _SLOW, 5, alone=True),
)


def cells(part: Part, trials: int | None = None) -> list[Cell]:
    """The cells of a part, with as many trials or with fewer; without rivals whose packages nobody registered."""
    count = part.trials if trials is None else min(part.trials, trials)
    made = SUITES[part.suite].cells(part.methods, seeds=range(count), chunk=1 if part.alone else None)
    missing = set(ELSEWHERE) - set(RIVALS)
    return [cell for cell in made if cell.trials.method.split(":")[0] not in missing]


def paces(places: Sequence[Path]) -> dict[str, float]:
    """Seconds that a suggestion of each method takes for one trial, by its label: the median over known files."""
    found: dict[str, list[float]] = {}
    for place in places:
        for _, record in records(place) if place.exists() else ():
            made = (len(record.seconds) - INITIAL) * len(record.regret)
            found.setdefault(record.label, []).append(float(record.seconds.sum()) / max(1, made))
    return _ABOUT | {label: float(np.median(each)) for label, each in found.items()}


def plan(
    parts: Sequence[Part], out: Path, known: Mapping[str, float], jobs: int, trials: int | None = None
) -> list[str]:
    """Lines: for each part what is left to do, and how long it will take."""
    lines, total = [], 0.0
    for part in parts:
        todo = [(cell, _left(cell, part, out)) for cell in cells(part, trials)]
        seconds = sum(left * known.get(cell.label, _UNKNOWN) for cell, left in todo)
        total += seconds
        count, steps = sum(left > 0 for _, left in todo), sum(left for _, left in todo)
        lasting = minutes(seconds / jobs)
        lines.append(f"{part.suite}: {count} of {len(todo)} cells, {steps} suggestions, {lasting}")
    guessed = sorted({cell.label for part in parts for cell in cells(part, trials)} - set(known))
    lines += [f"nothing is known of {', '.join(guessed)}: {_UNKNOWN:g} s a suggestion is assumed"] if guessed else []
    return [
        *lines,
        f"in all about {minutes(total / jobs)} with {jobs} processes, if this machine is like the former ones",
    ]


def _left(cell: Cell, part: Part, out: Path) -> int:
    """Suggestions that all trials of a cell still need."""
    done = max(evaluated(out / cell.name), INITIAL)
    return max(0, SUITES[part.suite].budget - done) * len(cell.trials.seeds)


def set_aside(parts: Sequence[Part], out: Path, trials: int | None = None) -> int:
    """Move files that another version of the library made to ``out/older``, so that they are made anew; how many."""
    paths = {out / cell.name for part in parts for cell in cells(part, trials)}
    older = [path for path in sorted(paths) if path.exists() and made_by(path) != source()]
    for path in older:
        (out / "older").mkdir(exist_ok=True)
        path.replace(out / "older" / path.name)
    return len(older)


def make(
    out: Path,
    archive: Path,
    *,
    parts: Sequence[Part] = PARTS,
    jobs: int = os.cpu_count() or 1,
    device: str = "cpu",
    trials: int | None = None,
    one_version: bool = False,
    say: Callable[[str], Any],
) -> list[str]:
    """Say how long it takes, run what is left, collect it in an archive per problem; returns what went wrong.

    With ``one_version`` no row is made by several versions of the library: what others began is made anew.
    """
    if one_version:
        say(f"{set_aside(parts, out, trials)} files of other versions set aside")
    for line in plan(parts, out, paces([archive]) | paces([out]), jobs, trials):
        say(line)
    wrong = []
    for part in parts:
        where = "cpu" if part.alone else device
        todo, budget = cells(part, trials), SUITES[part.suite].budget
        wrong += run(todo, budget, out, device=where, jobs=jobs, together=where != "cpu", report=say)
    say(f"{len(collect([out], archive))} archives in {archive}")
    return wrong


def pages(folder: Path, archives: Sequence[Path], say: Callable[[str], Any]) -> None:
    """Write the pages of the documentation anew."""
    for name in PAGES:
        say(f"{folder / name}: {', '.join(write_page(archives, folder / name))}")
