"""The trials of a study as a table: one row for each, one column for each number."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from nestbo.errors import NestboError
from nestbo.history import Trial
from nestbo.storage import Times
from nestbo.study.reading import Reading

if TYPE_CHECKING:
    from pandas import DataFrame


class Tables(Reading):
    """The part of a study that exports its trials."""

    def to_dataframe(self) -> DataFrame:
        """The trials as a pandas table. pandas has to be installed.

        Returns:
            A row for each trial, with the same index. The columns are ``status`` (also "discarded"), ``value`` or the
            names of several objectives, a column for each number of the point (``x0``, ``x1``, … where the
            parameters have no names), ``constraint0``, …, ``noise``, ``failed``, ``note``, ``asked_at`` and ``told_at``
            (UTC). Empty columns are left out, except the first three kinds.
        """
        try:
            import pandas
        except ImportError as error:
            raise NestboError("to_dataframe needs pandas. Install it: pip install pandas.") from error
        times = self.times
        rows = [_row(trial, self.objectives, times.get(trial.index, (None, None))) for trial in self._read()]
        names = list(dict.fromkeys(name for row in rows for name in row))
        last = [name for name in _LAST if name in names]
        first = [name for name in names if name not in last]
        return pandas.DataFrame(rows, columns=[*first, *last]).set_index("index") if rows else pandas.DataFrame()


_LAST = ("noise", "failed", "note", "asked_at", "told_at")


def _row(trial: Trial, objectives: tuple[str, ...], times: Times) -> dict[str, Any]:
    """What there is of a trial, by column."""
    told = trial.told
    values = told.values or (None,) * len(objectives)
    named = {f"constraint{k}": value for k, value in enumerate(told.constraints or ())}
    facts = {"noise": told.noise, "failed": told.failed, "note": told.note}
    dates = {name: _date(time) for name, time in zip(("asked_at", "told_at"), times, strict=True)}
    row = {"index": trial.index, "status": trial.state, **dict(zip(objectives, values, strict=True))}
    return row | numbers(trial) | named | {name: fact for name, fact in (facts | dates).items() if fact is not None}


def numbers(trial: Trial) -> dict[str, Any]:
    """The numbers of a point, and its choices, by the name of the parameter and the place in it."""
    if trial.space is not None and trial.space.names is not None:
        return dict(zip(trial.space.labels, trial.space.cells(trial.x), strict=True))
    found: dict[str, Any] = {}
    for name, value in trial.parameters.items():
        if not isinstance(value, np.ndarray):
            found[name] = value
            continue
        for place, number in np.ndenumerate(value):
            found[f"{name}{'_'.join(map(str, place))}"] = float(number)
    return found


def words(trial: Trial, most: int = 6) -> str:
    """A point for the eye: a few digits of its first numbers, or its parameters by name where they have names."""
    if trial.space is None or trial.space.names is None:
        return f"[{_some(trial.x.flatten().tolist(), most)}]"
    return ", ".join(f"{name} {_short(value, most)}" for name, value in trial.parameters.items())


def _short(value: Any, most: int) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_short(part, most)}" for name, part in value.items())
    if isinstance(value, np.ndarray):
        return f"[{_some(value.flatten().tolist(), most)}]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _some(numbers: list[float], most: int) -> str:
    """The first numbers of a list."""
    return ", ".join(f"{number:.4g}" for number in numbers[:most]) + (", …" if len(numbers) > most else "")


def plain(value: Any) -> Any:
    """Parameters as JSON holds them: arrays as lists."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def _date(seconds: float | None) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):  # the clock was far off
        return None
