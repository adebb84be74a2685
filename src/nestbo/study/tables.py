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
    """The part of a study that gives its trials away."""

    def to_dataframe(self) -> DataFrame:
        """The trials as a table of pandas, which has to be installed.

        Returns:
            A row for each trial, with its index as the row's. The columns are ``status`` (also "discarded"), ``value``
            or the names of several objectives, a column for each number of the point (``x0``, ``x1``, … where the
            parameters have no names), ``constraint0``, …, ``noise``, ``failed``, ``note``, ``asked_at`` and ``told_at``
            (UTC). Columns that no trial has anything for are left out, but for the first three kinds.
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
    """The numbers of a point, by the name of the parameter and the place in it."""
    found: dict[str, Any] = {}
    for name, value in trial.parameters.items():
        if not isinstance(value, np.ndarray):
            found[name] = value
            continue
        for place, number in np.ndenumerate(value):
            found[f"{name}{'_'.join(map(str, place))}"] = float(number)
    return found


def _date(seconds: float | None) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):  # the clock was far off
        return None
