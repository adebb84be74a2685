"""The table of all trials: a row for each, with a column for each named parameter."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from nestbo.history import Trial
from nestbo.report.snapshot import Snapshot
from nestbo.study.tables import words

_STATUS = {"asked": "pending", "told": "told", "failed": "failed", "discarded": "discarded"}
_FEW = 4  # numbers of a point that are shown at once


@dataclass(frozen=True)
class Cell:
    """A parameter of a trial: a few digits, all numbers where there are many, and what the column is sorted by."""

    short: str
    whole: str | None = None
    key: str | float = ""

    @classmethod
    def of(cls, value: Any) -> Cell:
        """A number, a word, an array, or parameters that have names themselves."""
        if isinstance(value, np.ndarray):
            flat = value.ravel().tolist()
            whole = _listed(flat, 0) if len(flat) > _FEW else None
            return cls(_listed(flat[:_FEW], len(flat)), whole, flat[0])
        if isinstance(value, dict):
            return cls(", ".join(f"{name} {cls.of(part).short}" for name, part in value.items()))
        return cls(f"{value:.4g}".replace("-", "−") if isinstance(value, float) else str(value), None, value)


def _listed(numbers: list[float], count: int) -> str:
    """Numbers in brackets, with dots where there are more."""
    texts = [f"{number:.3g}".replace("-", "−") for number in numbers]
    more = ["…"] if count > len(numbers) else []
    return f"[{', '.join(texts + more)}]"


@dataclass(frozen=True)
class Row:
    """A trial as the table shows it; ``cells`` are its named parameters, without names ``point`` is all of it."""

    trial: Trial
    status: str
    values: tuple[float | None, ...]
    earlier: tuple[str, ...]
    constraints: str
    told: float | None
    seconds: float | None
    cells: tuple[Cell, ...]
    point: Cell | None

    @property
    def date(self) -> str:
        """When the trial was told."""
        return "" if self.told is None else date(self.told)


def row(trial: Trial, now: Snapshot) -> Row:
    """A line of the table."""
    named = now.space.names is not None
    size = len(trial.x.flatten())
    return Row(
        trial=trial,
        status=_STATUS[trial.state] if trial.feasible or trial.state != "told" else "infeasible",
        values=trial.values or (None,) * len(now.objectives),
        earlier=tuple(", ".join(map(number, values)) or "failed" for values in trial.told.corrected),
        constraints=", ".join(f"{c:.4g}".replace("-", "−") for c in trial.constraints or ()),
        told=now.times.get(trial.index, (None, None))[1],
        seconds=seconds(trial, now),
        cells=tuple(Cell.of(value) for value in trial.parameters.values()) if named else (),
        point=None if named else Cell(words(trial, _FEW), words(trial, size) if size > _FEW else None),
    )


def seconds(trial: Trial, now: Snapshot) -> float | None:
    """How long a trial took from being asked to being told; nothing of one that was added."""
    asked, told = now.times.get(trial.index, (None, None))
    return None if asked is None or told is None or asked == told else told - asked


def date(time: float) -> str:
    """A moment, unless the clock was far off."""
    try:
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return ""


def number(value: float) -> str:
    """A value to six digits, with a minus sign."""
    return f"{value:.6g}".replace("-", "−")
