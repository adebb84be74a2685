"""What Plotly is given: traces and a layout, and nothing that a stranger's text could turn into a command."""

from __future__ import annotations

import html
import json
import math
from dataclasses import dataclass, field
from typing import Any

from nestbo.history import Trial
from nestbo.study.tables import words
from nestbo.text import printable

# Each stands out from a white and from a dark page by a contrast of 3 or more.
BLUE, ORANGE, GREEN, RED, GREY = "#2486C0", "#C77A00", "#12906B", "#D9601A", "#868E99"
_LONGEST = 90  # characters of one line of a label

Trace = dict[str, Any]


@dataclass(frozen=True)
class Face:
    """One of the drawings that a chart can show, and what the reader chooses it by."""

    label: str
    traces: list[Trace]
    layout: dict[str, Any]


@dataclass(frozen=True)
class Chart:
    """A figure: what it says, for people who do not see it, and its drawings, the first one shown first."""

    summary: str
    faces: list[Face]
    choice: str = "Show"
    note: str = field(default="", kw_only=True)  # below the figure
    height: int = field(default=380, kw_only=True)  # pixels

    @property
    def walkable(self) -> bool:
        """Whether the arrow keys find trials in it."""
        return any(trace.get("meta") == "trials" for face in self.faces for trace in face.traces)

    @property
    def json(self) -> str:
        """The chart as text for a ``script`` element, which the text cannot end."""
        faces = [{"label": face.label, "data": face.traces, "layout": face.layout} for face in self.faces]
        whole = {"choice": self.choice, "height": self.height, "faces": faces}
        return json.dumps(_finite(whole), separators=(",", ":")).replace("<", "\\u003c")


def _finite(value: Any) -> Any:
    """The same with null for what JSON lacks, and eight digits of each number."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.8g}") if math.isfinite(value) else None
    return value


def safe(text: str) -> str:
    """A text in which Plotly finds no tags: it knows some, links among them."""
    return html.escape(printable(text), quote=False)


def number(value: float) -> str:
    """A value to six digits, with a minus sign."""
    return f"{value:.6g}".replace("-", "−")


def described(trial: Trial, names: tuple[str, ...]) -> str:
    """A trial in the lines of a label: its number, its values, who suggested it, and its point."""
    values = [f"{name} {number(value)}" for name, value in zip(names, trial.values, strict=False)]
    arm = [f"suggested by {trial.memory.arm}"] if trial.memory.arm else []
    why = [f"failed: {trial.told.failed}"] if trial.status == "failed" else []
    lines = [f"trial {trial.index}", *values, *why, *arm, *_point(trial)]
    return "<br>".join(safe(line if len(line) <= _LONGEST else line[:_LONGEST] + "…") for line in lines)


def _point(trial: Trial) -> list[str]:
    """The point, a line for each of its named parameters."""
    if trial.space is None or trial.space.names is None:
        return [words(trial, 4)]
    return [f"{name} {_brief(value)}" for name, value in trial.parameters.items()]


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_brief(part)}" for name, part in value.items())
    if isinstance(value, float | int | str):
        return f"{value:.4g}" if isinstance(value, float) else str(value)
    flat = value.ravel().tolist()
    texts = [f"{part:.3g}" for part in flat[:4]]
    more = ["…"] if len(flat) > 4 else []
    return f"[{', '.join(texts + more)}]"


def dots(name: str, colour: str, x: list[Any], y: list[Any], text: list[str], **more: Any) -> Trace:
    """Points with a label each."""
    marker = {"color": colour, "size": 7, **more.pop("marker", {})}
    labels = {"text": text, "hovertemplate": "%{text}<extra></extra>"}
    return {"type": "scatter", "mode": "markers", "name": name, "x": x, "y": y, "marker": marker, **labels, **more}


def line(name: str, colour: str, x: list[Any], y: list[Any], **more: Any) -> Trace:
    """A curve without labels of its own."""
    style = {"color": colour, "width": 2, **more.pop("line", {})}
    silent = {} if "hovertemplate" in more else {"hoverinfo": "skip"}
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "line": style, **silent, **more}


def band(colour: str, x: list[Any], low: list[Any], high: list[Any], name: str = "95 % band") -> Trace:
    """The region between two curves, as one closed outline."""
    red, green, blue = bytes.fromhex(colour[1:])
    shade = f"rgba({red},{green},{blue},0.18)"
    outline = {"fill": "toself", "fillcolor": shade, "line": {"width": 0}}
    return line(name, colour, [*x, *x[::-1]], [*high, *low[::-1]], **outline)


def axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis with a title."""
    return {"title": {"text": safe(title)}, **more}
