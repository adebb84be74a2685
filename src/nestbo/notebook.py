"""Studies, trials, spaces and results as small tables in a notebook, with the best point drawn."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from nestbo.errors import NestboError
from nestbo.history import History, Trial
from nestbo.manifolds import Space
from nestbo.minimum import Minimum
from nestbo.study import Study
from nestbo.text import printable

_MOST = 6  # numbers of a parameter that are shown
_LAST = 5  # trials of a study that are shown


def study_html(study: Study) -> str:
    """How a study stands, its last trials, and its best point drawn."""
    history = study.history
    counts = [f"{len(history.finished)} finished", *_some(len(history.pending), "pending")]
    counts += _some(sum(trial.told.discarded for trial in history), "discarded")
    facts = {
        "space": study.space,
        "strategy": study.strategy,
        "trials": ", ".join(counts),
        **_best(study),
        "file": study.path,
        "stopped": study.stopped,
    }
    rows = "".join(map(_line, history[-_LAST:]))
    last = f"<table><tr><th>trial</th><th>status</th><th>value</th><th>point</th></tr>{rows}</table>" if rows else ""
    return f"<b>Study</b>{_table(facts)}{last}{_picture(study)}"


def trial_html(trial: Trial) -> str:
    """What is known of a trial."""
    told = trial.told
    facts = {
        "status": trial.state,
        "value": _numbers(told.values),
        "constraints": _numbers(told.constraints or ()),
        "noise": told.noise,
        "failed": told.failed,
        "note": told.note,
        "corrected": "; ".join(_numbers(values) or "failed" for values in told.corrected),
        **{name: _short(value) for name, value in trial.parameters.items()},
    }
    return f"<b>Trial {trial.index}</b>{_table(facts)}"


def space_html(space: Space) -> str:
    """What a space is, and how its points look."""
    shape = " × ".join(map(str, space.point_shape))
    facts = {"text form": space.specification, "dimension": space.dim, "shape of a point": shape}
    return f"<b>{escape(str(space))}</b>{_table(facts)}"


def minimum_html(found: Minimum) -> str:
    """What was found, and how."""
    facts = {
        "value": f"{found.value:.6g}",
        "evaluations": found.nfev,
        "ended": found.message,
        **{name: _short(value) for name, value in found.parameters.items()},
    }
    chosen = next((trial for trial in found.history if trial.x.equal(found.x)), None)
    drawn = "" if found.space is None else _picture(_Shown(found.space, found.history, chosen))
    return f"<b>Minimum</b>{_table(facts)}{drawn}"


@dataclass(frozen=True)
class _Shown:
    """What the picture of a best point reads of a study."""

    space: Space
    history: History
    chosen: Trial | None = None
    direction: str = "minimize"
    strategy: Any = None
    times: Mapping[int, tuple[float | None, float | None]] = None  # type: ignore[assignment]

    def models(self) -> dict[str, Any]:
        return {}

    def recommend(self) -> Trial | None:
        return self.chosen

    def standings(self) -> list[Any]:
        return []


def _best(study: Study) -> dict[str, str]:
    """The best value, or how many trials make up the front."""
    if study.several:
        return {"front": f"{len(study.front)} trials"}
    best = study.best
    return {"best": "none yet" if best is None else f"{best.value:.6g} (trial {best.index})"}


def _line(trial: Trial) -> str:
    """A row of the table of trials."""
    point = ", ".join(f"{name} {_short(value)}" for name, value in trial.parameters.items())
    cells = [
        str(trial.index),
        trial.state,
        _numbers(trial.told.values),
        trial.told.failed or point,
        trial.told.note or "",
    ]
    struck = ' style="text-decoration: line-through"' if trial.told.discarded else ""
    return f"<tr{struck}>{''.join(f'<td>{_text(cell)}</td>' for cell in cells)}</tr>"


def _table(facts: Mapping[str, Any]) -> str:
    """Names and what there is for each; what is None or empty is left out."""
    rows = [
        f"<tr><th>{_text(name)}</th><td>{_text(fact)}</td></tr>"
        for name, fact in facts.items()
        if fact not in (None, "")
    ]
    return f"<table>{''.join(rows)}</table>"


def _picture(study: Any) -> str:
    """The best point, drawn; nothing where there is none, or where it cannot be drawn."""
    from nestbo.plots import draw

    try:
        if study.history.several or study.history.best is None:
            return ""
        file = io.BytesIO()
        draw(study, "best").savefig(file, format="png")
    except NestboError:
        return ""
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="the best point" src="data:image/png;base64,{data}">'


def _some(count: int, word: str) -> list[str]:
    return [f"{count} {word}"] if count else []


def _numbers(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.6g}" for value in values)


def _short(value: Any) -> str:
    """A parameter for the eye: a few digits of its first numbers."""
    if not isinstance(value, np.ndarray):
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    shown = [f"{number:.4g}" for number in value.flatten()[:_MOST].tolist()]
    return f"[{', '.join(shown)}{', …' if value.size > _MOST else ''}]"


def _text(value: Any) -> str:
    """Text that may come from a stranger's file, harmless."""
    return escape(printable(str(value), keep=""))
