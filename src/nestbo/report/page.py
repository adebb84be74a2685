"""The page: facts and pictures of a study, put into a template that escapes whatever it is given."""

from __future__ import annotations

import json
import math
import platform
import statistics
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from nestbo.history import Trial
from nestbo.plots import summarise
from nestbo.plots.view import called
from nestbo.report.assets import Assets
from nestbo.report.figures import attempt, charts, figures
from nestbo.report.rows import date, number, row, seconds
from nestbo.report.snapshot import Snapshot
from nestbo.study import Study
from nestbo.study.tables import plain
from nestbo.text import printable

_PACKAGES = ("nestbo", "torch", "gpytorch", "botorch", "numpy", "scipy", "matplotlib", "jinja2")


def page(study: Study, *, name: str = "study", facts: Mapping[str, Any] | None = None, live: str | None = None) -> str:
    """The study as one HTML page. Pictures, table, style and scripts are inside, and it needs no network.

    ``name`` is the title, and ``facts`` are further lines of the settings; a ``budget`` among them gives a bar of
    progress. ``live`` is the state that the page shows: the page asks its server (``Watch``) whether the state has
    changed.
    """
    about = _about(study, Snapshot(study), name, facts or {})
    return rendered("page.html", about | {"live": live})


def rendered(template: str, about: Mapping[str, Any]) -> str:
    """A template with what it shows, and the style and scripts that every page carries."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("nestbo.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=_harmless,
    )
    environment.filters |= {"number": number, "duration": _duration, "share": lambda part: f"{part:.0%}"}
    return environment.get_template(template).render(**about, assets=Assets.read(), versions=_versions())


def _harmless(value: Any) -> Any:
    """What is put into the page: texts of the study, not the style and the script, without control characters."""
    return printable(value) if type(value) is str else value


def _about(study: Study, now: Snapshot, name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that the template shows."""
    numbers, error = attempt(lambda: summarise(now))
    finished, front = now.history.finished, now.history.front
    best = None if now.history.several else now.history.best
    recommended = attempt(lambda: now.recommendation)[0]
    shown = best if recommended is None else recommended.trial
    return {
        "name": name,
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "study": study,
        "where": called(study.space),
        "error": error,
        "budget": facts.get("budget"),
        "counts": dict.fromkeys(("told", "failed", "asked"), 0) | Counter(t.state for t in now.history),
        "ways": ", ".join(f"{name} ({way})" for name, way in zip(now.objectives, now.history.directions, strict=True)),
        "best": best,
        "front": [trial.index for trial in front],
        "recommended": recommended,
        "shown_json": None if shown is None else _all_of(shown),
        "infeasible": sum(trial.state == "told" and not trial.feasible for trial in now.history),
        "constrained": any(trial.constraints for trial in now.history),
        "stale": _stale(now),
        "times": _times(now),
        "leave_one_out": None if numbers is None or now.history.several else numbers["leave_one_out"],
        "models": [] if error else _models(now),
        "standings": [] if error or not best or len(now.standings()) < 2 else now.standings(),
        "figures": figures(now),
        "charts": charts(now),
        "failures": Counter(t.told.failed for t in finished if t.status == "failed").most_common(),
        "parameters": now.space.names or (),
        "rows": [row(trial, now) for trial in now.history],
        "settings": _settings(study, facts),
    }


def _models(now: Snapshot) -> list[dict[str, Any]]:
    """The fitted models: where they live, their length scales, and noise relative to the signal."""
    return [
        {
            "name": name,
            "space": called(model.mapping.latent),
            "lengthscale": ", ".join(number(scale) for scale in model.gp.lengthscale.tolist()),
            "noise": math.sqrt(model.gp.noise.item()),
        }
        for name, model in (now.models().items() if now.history.front else ())
    ]


def _stale(now: Snapshot) -> int | None:
    """How many evaluations finished after the best one, or after the newest one of the front."""
    front, finished = now.history.front, now.history.finished
    last = front[-1] if front and now.history.several else front[0] if front else None
    return None if last is None else sum(trial.index > last.index for trial in finished)


def _times(now: Snapshot) -> dict[str, Any]:
    """From the first question to the last answer, and the median of one."""
    asked = [pair[0] for pair in now.times.values() if pair[0] is not None]
    told = [pair[1] for pair in now.times.values() if pair[1] is not None]
    each = [took for trial in now.history if (took := seconds(trial, now)) is not None]
    return {
        "whole": max(told) - min(asked) if asked and told else None,
        "each": statistics.median(each) if each else None,
        "last": date(max(told)) if told else None,
    }


def _all_of(trial: Trial) -> str:
    """A point to the last bit: its parameters, where they have names, and its numbers."""
    named = trial.space is not None and trial.space.names is not None
    lines = [f"{name} = {json.dumps(plain(value))}" for name, value in trial.parameters.items()] if named else []
    return "\n".join([*lines, json.dumps(trial.x.tolist())])


def _settings(study: Study, facts: Mapping[str, Any]) -> dict[str, str]:
    way = study.direction if isinstance(study.direction, str) else ", ".join(study.direction)
    own = {"space": study.space.specification, "strategy": study.strategy.specification, "direction": way}
    rest = {"stopped": study.stopped, **facts, "seed": study.seed, "noise": study.noise, **own}
    return own | {key: _said(value) for key, value in rest.items() if value is not None}


def _said(value: Any) -> str:
    """A setting for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in _PACKAGES}


def _duration(seconds: float | None) -> str:
    """Seconds in the units that people use."""
    if seconds is None:
        return "–"
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    if seconds < 0.1:
        return f"{1000 * seconds:.2g} ms"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
