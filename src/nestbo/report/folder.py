"""Several studies in the files of one folder, side by side on one page, each with a whole report behind its name."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from nestbo.errors import NestboError
from nestbo.plots.view import View, called
from nestbo.report.charts.chart import BLUE, GREEN, GREY, ORANGE, RED, Chart, Face, axis, line, safe
from nestbo.report.charts.convergence import convergence
from nestbo.report.charts.front import hypervolume
from nestbo.report.figures import attempt
from nestbo.report.page import rendered
from nestbo.report.rows import number
from nestbo.report.serving import Live
from nestbo.report.snapshot import Snapshot
from nestbo.study import Study

_ALL = "/"  # the chart of all studies: no file has this name
_COLOURS, _LINES = (BLUE, RED, GREEN, ORANGE, GREY), ("solid", "dash", "dot")


class Folder:
    """The studies in the files of a folder that end in .db, including studies that begin later.

    ``state`` returns the state of a study as a text. ``draw`` makes the report of a study, given its name and state.
    """

    def __init__(self, path: Path, state: Callable[[Study], str], draw: Callable[[Study, str, str], str]) -> None:
        self._path, self._state, self._draw = path, state, draw
        self._lock, self._files = threading.Lock(), ExitStack()
        self._studies: dict[str, Study] = {}
        self._rooms: dict[str, Live] = {}

    def studies(self) -> dict[str, Study]:
        """What is there now, by the names of the files."""
        files = {file.stem: file for file in sorted(self._path.glob("*.db"))}
        with self._lock:
            for name in [*self._studies]:
                if name not in files:
                    del self._studies[name]
            for name in files.keys() - self._studies.keys():
                study = self._loaded(files[name])
                if study is not None:
                    self._studies[name] = study
            return dict(sorted(self._studies.items()))

    def state(self) -> str:
        """What changes whenever something happens to one of the studies."""
        return "|".join(f"{name}:{self._state(study)}" for name, study in self.studies().items())

    def page(self, live: str) -> str:
        """All studies side by side."""
        return overview(self.studies(), name=self._path.resolve().name, live=live)

    def room(self, name: str) -> Live | None:
        """The report of one study, which reads the file for itself."""
        if name not in self.studies():
            return None
        if name not in self._rooms:
            study = self._loaded(self._path / f"{name}.db")
            if study is not None:
                self._rooms[name] = Live(lambda: self._state(study), lambda state: self._draw(study, name, state))
        return self._rooms.get(name)

    def close(self) -> None:
        """Close all files that are read here."""
        self._files.close()

    def _loaded(self, file: Path) -> Study | None:
        """The study in a file, unless it holds none."""
        try:
            return self._files.enter_context(Study.load(file))
        except NestboError:
            return None


class Said(NamedTuple):
    """What a study has found, in a word and a number."""

    label: str
    text: str


@dataclass(frozen=True)
class Card:
    """A study in a few words."""

    name: str
    aim: str
    where: str
    strategy: str
    told: Said
    evaluations: int
    failed: int
    pending: int
    budget: int | None


def overview(studies: dict[str, Study], *, name: str, live: str | None = None) -> str:
    """Several studies side by side as one HTML page, without their models.

    Args:
        studies: The studies by name.
        name: The title of the page.
        live: The state that the page shows, if it is served.
    """
    snapshots = {each: Snapshot(study, fitted=False) for each, study in studies.items()}
    charts = {each: attempt(partial(_progress, now))[0] for each, now in snapshots.items()}
    charts[_ALL] = attempt(lambda: _together(snapshots))[0]
    about = {
        "name": name,
        "live": live,
        "cards": [_card(each, studies[each], now) for each, now in snapshots.items()],
        "charts": {kind: chart for kind, chart in charts.items() if chart is not None},
    }
    return rendered("folder.html", about)


def _progress(now: Snapshot) -> Chart | None:
    return hypervolume(now) if now.history.several else convergence(now)


def _card(name: str, study: Study, now: Snapshot) -> Card:
    history, best = now.history, None if now.history.several else now.history.best
    aim = "Several objectives" if history.several else "Minimising" if study.direction == "minimize" else "Maximising"
    found = "none yet" if best is None or best.value is None else number(best.value)
    told = Said("On the front", str(len(history.front))) if history.several else Said("Best value", found)
    states = [trial.state for trial in history]
    counts = {state: states.count(state) for state in ("told", "failed", "asked")}
    budget = study.settings.get("budget")
    evaluations = counts["told"] + counts["failed"]
    return Card(
        name,
        aim,
        called(study.space),
        str(study.strategy),
        told,
        evaluations,
        counts["failed"],
        counts["asked"],
        budget,
    )


def _together(snapshots: dict[str, Snapshot]) -> Chart | None:
    """The curves of all studies of one objective that have values."""
    views = {name: View(now) for name, now in snapshots.items() if not now.history.several and now.history.front}
    if len(views) < 2:
        return None
    curves = []
    for k, (name, view) in enumerate(views.items()):
        style = {"dash": _LINES[k // len(_COLOURS) % len(_LINES)], "shape": "hv"}
        at = [trial.index for trial in view.finished]
        label = "trial %{x}<br>best so far %{y:.5g}"
        colour = _COLOURS[k % len(_COLOURS)]
        curves.append(line(safe(name), colour, at, view.best_so_far, line=style, hovertemplate=label))
    layout = {"xaxis": axis("trial", rangemode="nonnegative"), "yaxis": axis("best value so far")}
    logs = {**layout, "yaxis": axis("best value so far", type="log", exponentformat="power")}
    positive = all((value or 1.0) > 0 for view in views.values() for value in view.best_so_far)
    faces = [Face("Value", curves, layout), *([Face("Value, log scale", curves, logs)] if positive else [])]
    return Chart(f"The best value so far of {len(views)} studies.", faces, "Vertical axis")
