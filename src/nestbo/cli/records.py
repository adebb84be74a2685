"""Trials as text: JSON, CSV and tables."""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

from nestbo.errors import ArgumentError
from nestbo.history import History, Trial, noted
from nestbo.text import cell, dumps, printable

if TYPE_CHECKING:
    from nestbo.study import Study
    from nestbo.study.judging import Recommendation
    from nestbo.study.light import Light

Times = Mapping[int, tuple[float | None, float | None]]


def brief(trial: Trial) -> dict[str, Any]:
    """What ``ask`` and ``best`` print of a trial."""
    return {"index": trial.index, **_values(trial), **_named(trial), "x": trial.x.tolist()}


def _named(trial: Trial) -> dict[str, Any]:
    """The parameters, where the space names them."""
    from nestbo.study.tables import plain

    return {} if trial.space is None or trial.space.names is None else {"parameters": plain(trial.parameters)}


def _whole(trial: Trial) -> str:
    """The line of a point, to the last bit: by name, where its parameters have names."""
    named = _named(trial)
    return f"at     {json.dumps(named['parameters'])}" if named else f"x      {json.dumps(trial.x.tolist())}"


def _values(trial: Trial) -> dict[str, Any]:
    """The value, or those of several objectives, under the key that ``tell --json`` takes; nothing before that."""
    if len(trial.values) > 1:
        return {"values": list(trial.values)}
    return {} if trial.value is None else {"value": trial.value}


def described(trial: Trial, trust: Recommendation | None = None) -> str:
    """A told trial for the eye, its numbers to the last bit, and the one that a noisy study recommends."""
    best = f"best   {trial.value!r} (trial {trial.index})\n{_whole(trial)}"
    if trust is None:
        return best
    why = "recommended: values are noisy, and its posterior mean is the best"
    mean = f"mean   {trust.mean:.6g}, with 95 % between {trust.low:.6g} and {trust.high:.6g}"
    return f"{best}\ntrust  trial {trust.trial.index}, {why}\n{mean}\n{_whole(trust.trial)}"


def described_front(study: Study | Light) -> str:
    """The front for the eye, its numbers to the last bit."""
    lines = []
    for trial in study.front:
        pairs = zip(study.objectives, trial.values, strict=True)
        values = ", ".join(f"{name} {value!r}" for name, value in pairs)
        lines += [f"front  {values} (trial {trial.index})", _whole(trial)]
    return "\n".join(lines)


def recommendation(study: Study | Light) -> dict[str, Any]:
    """What a noisy study recommends; nothing for another."""
    found = study.recommendation() if study.history.noisy and not study.several else None
    if found is None:
        return {}
    return {"recommended": {**brief(found.trial), "mean": found.mean, "interval": [found.low, found.high]}}


def record(trial: Trial, times: Times) -> dict[str, Any]:
    """All that is known of a trial."""
    asked, told = times.get(trial.index, (None, None))
    return {
        "index": trial.index,
        "status": trial.state,
        "value": trial.value,
        **_values(trial),
        **_named(trial),
        "x": trial.x.tolist(),
        "notes": noted(trial),
        **({} if trial.told.note is None else {"note": trial.told.note}),
        **({"corrected": trial.told.corrected} if trial.told.corrected else {}),
        "asked_at": _date(asked),
        "told_at": _date(told),
    }


def records(study: Study | Light) -> list[dict[str, Any]]:
    """All that is known of all trials."""
    times = study.times
    return [record(trial, times) for trial in study.history]


def _date(seconds: float | None) -> str | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError, TypeError):  # the clock was far off
        return None


def summary(study: Study | Light, path: str) -> dict[str, Any]:
    """The study in short: settings, counts, the best trial or the front."""
    history = study.history
    counts = dict.fromkeys(("told", "failed", "asked"), 0) | Counter(trial.state for trial in history)
    found: dict[str, Any] = {"store": path, **study.settings, "counts": counts}
    if study.several:
        return found | {"front": [brief(trial) for trial in history.front]}
    best = history.best
    return found | {"best": None if best is None else brief(best), **recommendation(study)}


def write_csv(study: Study | Light, file: TextIO) -> None:
    """One line for each trial, one column for each number of its point, under its name where it has one."""
    writer, space = csv.writer(file, lineterminator="\n"), study.space
    columns = space.labels if space.names is not None else [f"x{label}" for label in space.labels]
    told = next((trial.constraints for trial in study.history if trial.constraints is not None), ())
    noted = any(trial.told.note for trial in study.history)
    limits = [f"constraint{k}" for k in range(len(told))]
    names = [*map(_column, columns), *limits, *["note"] * noted]
    values = [f"value_{name}" for name in study.objectives] if study.several else ["value"]
    writer.writerow(["index", "status", *map(cell, values), "failed", "asked_at", "told_at", *names])
    for trial, row in zip(study.history, records(study), strict=False):
        failed = None if trial.told.failed is None else cell(trial.told.failed)
        found = trial.values or [None] * len(values)
        start = [trial.index, trial.state, *found, failed, row["asked_at"], row["told_at"]]
        end = [cell(trial.told.note or "")] * noted
        limited = trial.constraints or [None] * len(told)
        writer.writerow([*start, *map(_cell, space.cells(trial.x)), *limited, *end])


_TAKEN = ("index", "status", "value", "failed", "asked_at", "told_at", "note")


def _column(name: str) -> str:
    """The name of a parameter as that of a column, if no other column is called so."""
    return f"x_{name}" if name in _TAKEN else name


def _cell(entry: Any) -> Any:
    return cell(entry) if isinstance(entry, str) else entry


def write_jsonl(study: Study | Light, file: TextIO) -> None:
    """One JSON object on a line for each trial."""
    for row in records(study):
        file.write(dumps(row) + "\n")


FORMATS = {"csv": write_csv, "jsonl": write_jsonl}


ROWS = 1000  # of a table: rich takes a second for them


def table(history: History, objectives: Sequence[str]) -> Any:
    """The last trials, and the best one or the front, as a table of rich."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from nestbo.study.tables import words

    best = {trial.index for trial in (history.front if history.several else [history.best]) if trial is not None}
    result = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    result.add_column("trial", justify="right")
    result.add_column("status")
    for name in objectives:
        result.add_column(Text(printable(name)), justify="right")
    result.add_column("point or reason", overflow="fold")
    shown = history[-ROWS:]
    first = [trial for trial in history[:-ROWS] if trial.index in best]
    for trial in (*first, *shown):
        values = [f"{value:.6g}" for value in trial.values] or [""] * len(objectives)
        last = Text(printable(str(trial.told.failed)) if trial.status == "failed" else words(trial))
        if trial.told.note:
            last.append(printable(f"\n{trial.told.note}"), style="italic")
        state = "pending" if trial.state == "asked" else trial.state
        status = state if trial.feasible else f"{state}, infeasible"
        style = "bold green" if trial.index in best else None
        style = "strike dim" if trial.told.discarded else style
        result.add_row(str(trial.index), status, *values, last, style=style)
    return result


def parsed(text: str) -> Any:
    """The JSON value in a text, or a list of those on its lines."""
    try:
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            if len(text.splitlines()) < 2:
                raise
            return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"Wanted JSON, got {text[:80]!r} ({error}). Quote it for the shell.") from error


def number(text: str) -> float:
    """The number in a text."""
    try:
        return float(text)
    except ValueError as error:
        raise ArgumentError(
            f"Wanted a number such as 1.5 or -2e-3, got {text!r}. Write decimals with a point."
        ) from error


def entries(text: str) -> list[dict[str, Any]]:
    """The JSON objects in a text: one, a list, or one on each line; ``-`` reads stdin."""
    text = sys.stdin.read() if text == "-" else text
    found = parsed(text)
    found = found if isinstance(found, list) else [found]
    if not all(isinstance(entry, dict) for entry in found):
        raise ArgumentError(f'Wanted JSON objects such as {{"index": 0, "value": 1.5}}, got {text[:80]!r}.')
    return found
