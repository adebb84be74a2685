"""What was typed about evaluations, checked before anything is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nestbo.cli.records import entries, number, parsed
from nestbo.errors import ArgumentError, TrialError, shown
from nestbo.evaluation import numbers
from nestbo.evaluation import values as values_of
from nestbo.history import Observation
from nestbo.study.settings import checked_note

if TYPE_CHECKING:
    from nestbo.study import Study
    from nestbo.study.light import Light


@dataclass(frozen=True)
class Came:
    """What a user tells of a trial: an observation, or why there is none."""

    index: int
    found: Observation | None
    failed: str | None
    note: str | None


def observations(
    x: str | None, value: str | None, more: tuple[str | None, str | None, str | None], text: str | None
) -> list[tuple[Any, Observation]]:
    """Points and what was observed there, as they were given."""
    constraints, noise, note = more
    if x is not None and value is not None and text is None:
        return [(parsed(x), _observation(_one_or_all(_listed(value)), _listed(constraints), _variance(noise), note))]
    if text is not None and (x, value, *more) == (None,) * 5:
        return [(entry.get("parameters", entry.get("x")), _found(entry)) for entry in entries(text)]
    raise ArgumentError("add takes --x JSON --value NUMBER, or --json JSON. Give one of the two.")


def trial_index(text: str) -> int:
    """The index of a trial, as it was typed."""
    try:
        return int(text)
    except ValueError as error:
        raise ArgumentError(f"Wanted the index of a trial, got {text!r}. nestbo ask --pending lists them.") from error


def _listed(text: str | None) -> list[float] | None:
    return None if text is None else [number(part) for part in text.split(",")]


def _one_or_all(values: Any) -> Any:
    """The only one of some values, or all of them."""
    return values[0] if isinstance(values, list) and len(values) == 1 else values


def _variance(text: str | None) -> float | None:
    return None if text is None else number(text)


def _observation(value: Any, constraints: Any, noise: Any, note: Any) -> Observation:
    """What was observed, checked before anything is told."""
    if noise is not None and (isinstance(noise, bool) or not isinstance(noise, int | float) or not noise > 0):
        raise ArgumentError(f"Wanted the variance of the noise, a positive number, got {shown(noise)}.")
    return Observation(value, None if constraints is None else numbers(constraints), noise, note)


def _found(entry: dict[str, Any]) -> Observation:
    value = _one_or_all(entry.get("values", entry.get("value")))
    return _observation(value, *(entry.get(name) for name in ("constraints", "noise", "note")))


def what_came(
    study: Study | Light,
    command: str,
    texts: tuple[str, ...],
    failed: str | None,
    constraints: str | None,
    noise: str | None,
    note: str | None,
) -> Came:
    """What was typed: an index, and as many values as there are objectives, or why there are none.

    Several values go without an index where a single trial waits; one number alone could be either.
    """
    count = len(study.objectives) if failed is None else 0
    if len(texts) != count + 1 and not (study.several and len(texts) == count and command == "tell"):
        values = "VALUE" if count < 2 else f"{count} values ({', '.join(study.objectives)})"
        more = " or --json JSON" if command == "tell" else ""
        raise ArgumentError(f"{command} takes INDEX {values}, INDEX --failed WHY{more}. Give one of these.")
    index = trial_index(texts[0]) if len(texts) > count else _only(study)
    if failed is not None:
        return Came(index, None, failed, note)
    found = [number(text) for text in texts[len(texts) - count :]]
    return Came(index, _observation(_one_or_all(found), _listed(constraints), _variance(noise), note), None, note)


def _only(study: Study | Light) -> int:
    """The index of the trial that waits for a value, if there is only one."""
    waiting = [trial.index for trial in study.pending]
    if len(waiting) == 1:
        return waiting[0]
    raise ArgumentError(
        f"{len(waiting)} trials are pending. Put the index of one before the value; nestbo ask --pending lists them."
    )


def checked(entry: dict[str, Any]) -> Came:
    """What a JSON object tells."""
    index, value, failed = entry.get("index"), entry.get("values", entry.get("value")), entry.get("failed")
    numeric = values_of(_one_or_all(value)) is not None
    if type(index) is not int or numeric == isinstance(failed, str) or not (numeric or value is None):
        raise ArgumentError(
            f'Wanted {{"index": 0, "value": 1.5}} or {{"index": 0, "failed": "why"}}, got {shown(entry)}.'
        )
    return Came(index, _found(entry) if numeric else None, failed, checked_note(entry.get("note")))


def check_alike(study: Study | Light, observations: list[Observation]) -> None:
    """Refuse other numbers of values or constraints before anything is told."""
    for found in observations:
        if len(values_of(found.value) or ()) != len(study.objectives):
            wanted = "one value" if not study.several else f"a value for each of {', '.join(study.objectives)}"
            raise ArgumentError(f"Wanted {wanted} with every trial, got {shown(found.value)}.")
    counts = {len(found.constraints or ()) for found in observations}
    if len(counts) > 1:
        raise ArgumentError(f"Wanted the same constraints with every value, got {sorted(counts)} of them.")


def check_open(study: Study | Light, indices: list[int]) -> None:
    """Refuse before anything is told, so that a mistake changes nothing."""
    status = {trial.index: trial.state for trial in study.history}
    for index in indices:
        if index not in status:
            raise TrialError(f"There is no trial {index} in this study. nestbo ask --pending lists the pending ones.")
        if status[index] != "asked":
            raise TrialError(f"Trial {index} was {status[index]} already. nestbo correct changes its value.")
    if len(set(indices)) < len(indices):
        raise ArgumentError(f"Wanted one value for each trial, got several for one of {indices}. Keep one of them.")
