"""The page: facts and pictures of a study, put into a template that escapes whatever it is given."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import platform
import statistics
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import metadata, resources
from typing import Any

from nestbo.history import Trial
from nestbo.report.snapshot import Snapshot
from nestbo.study import Study
from nestbo.study.tables import plain, words
from nestbo.text import printable

_HEAVY = 200_000  # bytes of a drawing; a heavier one becomes a picture of dots
_SETTINGS = {"svg.hashsalt": "nestbo"}  # the same study gives the same page
_STATUS = {"asked": "pending", "told": "told", "failed": "failed", "discarded": "discarded"}
_PACKAGES = ("nestbo", "torch", "gpytorch", "botorch", "numpy", "scipy", "matplotlib", "jinja2")


def page(study: Study, *, name: str = "study", facts: Mapping[str, Any] | None = None, live: str | None = None) -> str:
    """The study as HTML, all in one: pictures, table, style and script are inside, and no network is needed.

    ``name`` is its title, and ``facts`` are more lines for its settings; a ``budget`` also gives a bar of progress.
    With ``live``, the state that it shows, the page asks its server whether there is another one (``Watch``).
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("nestbo.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=_harmless,
    )
    environment.filters |= {"number": _number, "duration": _duration, "share": lambda part: f"{part:.0%}"}
    style, script = (resources.files("nestbo.report").joinpath(file).read_text() for file in ("page.css", "page.js"))
    about = _about(study, Snapshot(study), name, facts or {})
    return environment.get_template("page.html").render(
        **about, live=live, style=style, script=script, style_hash=_hash(style), script_hash=_hash(script)
    )


def _harmless(value: Any) -> Any:
    """What is put into the page: texts of the study, not the style and the script, without control characters."""
    return printable(value) if type(value) is str else value


def _hash(text: str) -> str:
    """What lets a browser obey this style or script and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _about(study: Study, now: Snapshot, name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that the template shows."""
    from nestbo.plots import summarise

    numbers, error = _attempt(lambda: summarise(now))
    finished, front = now.history.finished, now.history.front
    best = None if now.history.several else now.history.best
    recommended = _attempt(lambda: now.recommendation)[0]
    shown = best if recommended is None else recommended.trial
    return {
        "name": name,
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "study": study,
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
        "standings": [] if error or not finished.front or len(now.standings()) < 2 else now.standings(),
        "figures": _figures(now),
        "failures": Counter(t.told.failed for t in finished if t.status == "failed").most_common(),
        "rows": [_row(trial, now) for trial in now.history],
        "settings": _settings(study, facts),
        "versions": _versions(),
    }


def _attempt(work: Callable[[], Any]) -> tuple[Any, str | None]:
    """What some work gives, or why it gives nothing: one broken picture must not cost the whole page."""
    try:
        return work(), None
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def _figures(now: Snapshot) -> dict[str, dict[str, Any]]:
    """The pictures that say something about this study, by kind."""
    from nestbo.plots import DRAWINGS

    if not now.history.front:
        return {}
    nested, _ = _attempt(lambda: any(m.mapping.latent != m.mapping.ambient for m in now.models().values()))
    several, _ = _attempt(lambda: len(now.standings()) > 1)
    many = now.history.several
    wanted = {"latent": nested, "subspace": nested, "reconstruction": nested, "arms": several}
    wanted |= {"front": many, "hypervolume": many, "best": not many, "convergence": not many}
    wanted |= {"surrogate": not many, "predictions": not many, "importance": not many and bool(now.models())}
    found = {kind: _figure(now, kind) for kind in DRAWINGS if wanted.get(kind, True)}
    pairs = [(kind, name) for name in now.objectives for kind in ("predictions", "importance")] if many else []
    return found | {f"{kind} {name}": _figure(now, kind, name) for kind, name in pairs}


def _figure(now: Snapshot, kind: str, objective: str | None = None) -> dict[str, Any]:
    source, error = _attempt(lambda: _drawn(now, kind, objective))
    return {"source": source, "error": error}


def _drawn(now: Snapshot, kind: str, objective: str | None) -> str:
    """A picture as the address of an image that contains it: as such, it can run nothing."""
    import matplotlib

    from nestbo.plots import draw

    figure = draw(now, kind, objective)
    figure.suptitle("")  # the page has its own headings
    with matplotlib.rc_context(_SETTINGS):
        drawing = _saved(figure, format="svg", metadata={"Date": None, "Creator": None})
    if len(drawing) <= _HEAVY:
        return f"data:image/svg+xml;base64,{base64.b64encode(drawing).decode()}"
    return f"data:image/png;base64,{base64.b64encode(_saved(figure, format='png', dpi=180)).decode()}"


def _saved(figure: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, **options)
    return file.getvalue()


def _models(now: Snapshot) -> list[dict[str, Any]]:
    """The fitted models: where they live, their length scales, and noise relative to the signal."""
    return [
        {
            "name": name,
            "space": str(model.mapping.latent),
            "lengthscale": ", ".join(_number(scale) for scale in model.gp.lengthscale.tolist()),
            "noise": math.sqrt(model.gp.noise.item()),
        }
        for name, model in (now.models().items() if now.history.front else ())
    ]


def _stale(now: Snapshot) -> int | None:
    """How many evaluations finished after the best one, or after the newest one of the front."""
    front, finished = now.history.front, now.history.finished
    last = front[-1] if front and now.history.several else front[0] if front else None
    return None if last is None else sum(trial.index > last.index for trial in finished)


def _seconds(trial: Trial, now: Snapshot) -> float | None:
    """How long a trial took from being asked to being told; nothing of one that was added."""
    asked, told = now.times.get(trial.index, (None, None))
    return None if asked is None or told is None or asked == told else told - asked


def _times(now: Snapshot) -> dict[str, Any]:
    """From the first question to the last answer, and the median of one."""
    asked = [pair[0] for pair in now.times.values() if pair[0] is not None]
    told = [pair[1] for pair in now.times.values() if pair[1] is not None]
    each = [seconds for trial in now.history if (seconds := _seconds(trial, now)) is not None]
    return {
        "whole": max(told) - min(asked) if asked and told else None,
        "each": statistics.median(each) if each else None,
        "last": _date(max(told)) if told else None,
    }


def _all_of(trial: Trial) -> str:
    """A point to the last bit: its parameters, where they have names, and its numbers."""
    named = trial.space is not None and trial.space.names is not None
    lines = [f"{name} = {json.dumps(plain(value))}" for name, value in trial.parameters.items()] if named else []
    return "\n".join([*lines, json.dumps(trial.x.tolist())])


def _row(trial: Trial, now: Snapshot) -> dict[str, Any]:
    """A line of the table."""
    told = now.times.get(trial.index, (None, None))[1]
    size = len(trial.x.flatten())
    return {
        "trial": trial,
        "arm": trial.memory.arm or "",
        "values": list(trial.values) or [None] * len(now.objectives),
        "told": told,
        "date": "" if told is None else _date(told),
        "seconds": _seconds(trial, now),
        "status": _STATUS[trial.state] if trial.feasible or trial.state != "told" else "infeasible",
        "discarded": trial.told.discarded,
        "earlier": [", ".join(map(_number, values)) or "failed" for values in trial.told.corrected],
        "note": trial.told.note,
        "constraints": ", ".join(f"{c:.4g}".replace("-", "−") for c in trial.constraints or ()),
        "failed": trial.told.failed if trial.status == "failed" else None,
        "short": words(trial, 4),
        "whole": words(trial, size) if size > 4 else None,
    }


def _settings(study: Study, facts: Mapping[str, Any]) -> dict[str, str]:
    way = study.direction if isinstance(study.direction, str) else ", ".join(study.direction)
    own = {"space": study.space.specification, "strategy": study.strategy.specification, "direction": way}
    rest = {"stopped": study.stopped, **facts, "seed": study.seed, "noise": study.noise, **own}
    return own | {key: str(value) for key, value in rest.items() if value is not None}


def _versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in _PACKAGES}


def _date(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):  # the clock was far off
        return ""


def _number(value: float) -> str:
    return f"{value:.6g}".replace("-", "−")


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
