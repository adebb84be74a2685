"""``new``, ``ask``, ``tell``, ``add``: for people who evaluate by hand, at a bench."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from nestbo.cli.app import Store, app, opened, put, say
from nestbo.cli.beginning import Method, Noise, Seed, Space, Way, begun
from nestbo.cli.records import brief, entries, parsed
from nestbo.errors import ArgumentError, TrialError
from nestbo.history import Trial
from nestbo.study import Study


@app.command()
def new(
    store: Annotated[str, typer.Argument(metavar="STORE", help="The file to make.")],
    space: Space,
    strategy: Method = None,
    seed: Seed = 0,
    direction: Way = "minimize",
    noise: Noise = None,
) -> None:
    """Begin a study that is evaluated by hand, with ask and tell."""
    with begun(store, space, strategy, seed=seed, direction=direction, noise=noise) as study:
        say(f"{store} holds a new study of {study.space} with {study.strategy}. nestbo ask {store} gives a point.")


@app.command()
def ask(
    store: Store,
    n: Annotated[int, typer.Option("-n", min=1, help="How many different points.")] = 1,
    pending: Annotated[bool, typer.Option("--pending", help="The open trials again, instead of new ones.")] = False,
) -> None:
    """Print new points to evaluate, each as a line of JSON with its index and x."""
    with opened(store) as study:
        for trial in study.pending if pending else study.ask(n):
            put(brief(trial))


@app.command(context_settings={"ignore_unknown_options": True})  # so that -1.5 is a value
def tell(
    store: Store,
    index: Annotated[str | None, typer.Argument(metavar="[INDEX]", help="Of a trial that was asked.")] = None,
    value: Annotated[str | None, typer.Argument(metavar="[VALUE]", help="What was measured.")] = None,
    failed: Annotated[str | None, typer.Option(metavar="WHY", help="Instead of a value.")] = None,
    json: Annotated[
        str | None,
        typer.Option(metavar="JSON", help='Instead: {"index": 0, "value": 1.5} or "failed", several, or - for stdin.'),
    ] = None,
) -> None:
    """Tell the value of a trial, or why it has none; it is on the disk when this returns.

    A value that is not finite (nan, inf) counts as a failure.
    """
    if json is not None and (index, value, failed) != (None, None, None):
        raise ArgumentError("tell takes INDEX VALUE, INDEX --failed WHY or --json JSON, got two of these. Keep one.")
    outcomes = [_outcome(index, value, failed)] if json is None else [_checked(entry) for entry in entries(json)]
    with opened(store) as study:
        _check_open(study, [number for number, *_ in outcomes])
        for number, result, why in outcomes:
            _say_told(study, study.tell(number, result, failed=why))


@app.command()
def add(
    store: Store,
    x: Annotated[str | None, typer.Option(metavar="JSON", help="The point, such as [0, 0, 1].")] = None,
    value: Annotated[str | None, typer.Option(metavar="NUMBER", help="Its value.")] = None,
    json: Annotated[
        str | None, typer.Option(metavar="JSON", help='Instead: {"x": …, "value": …}, several, or - for stdin.')
    ] = None,
) -> None:
    """Add an observation made elsewhere."""
    observations = _observations(x, value, json)
    with opened(store) as study:
        for point, number in observations:  # a rehearsal, so that a mistake changes nothing
            Study(study.space).add(point, number)
        for point, number in observations:
            trial = study.add(point, number)
            say(f"Added trial {trial.index} with the value {trial.value!r}.")


def _observations(x: str | None, value: str | None, text: str | None) -> list[tuple[Any, Any]]:
    """Points and values, as they were given."""
    if x is not None and value is not None and text is None:
        return [(parsed(x), _number(value))]
    if text is not None and x is None and value is None:
        return [(entry.get("x"), entry.get("value")) for entry in entries(text)]
    raise ArgumentError("add takes --x JSON --value NUMBER, or --json JSON. Give one of the two.")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ArgumentError(
            f"Wanted a number such as 1.5 or -2e-3, got {text!r}. Write decimals with a point."
        ) from error


def _index(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ArgumentError(f"Wanted the index of a trial, got {text!r}. nestbo ask --pending lists them.") from error


def _outcome(index: str | None, value: str | None, failed: str | None) -> tuple[int, float | None, str | None]:
    if index is None or (value is None) == (failed is None):
        raise ArgumentError("tell takes INDEX VALUE, INDEX --failed WHY or --json JSON. Give one of these.")
    return _index(index), None if value is None else _number(value), failed


def _checked(entry: dict[str, Any]) -> tuple[int, float | None, str | None]:
    """What a JSON object tells."""
    index, value, failed = (entry.get(name) for name in ("index", "value", "failed"))
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if type(index) is not int or numeric == isinstance(failed, str) or not (numeric or value is None):
        raise ArgumentError(f'Wanted {{"index": 0, "value": 1.5}} or {{"index": 0, "failed": "why"}}, got {entry!r}.')
    return index, value, failed


def _check_open(study: Study, indices: list[int]) -> None:
    """Refuse before anything is told, so that a mistake changes nothing."""
    status = {trial.index: trial.status for trial in study.history}
    for index in indices:
        if index not in status:
            raise TrialError(f"There is no trial {index} in this study. nestbo ask --pending lists the open ones.")
        if status[index] != "asked":
            raise TrialError(f"Trial {index} was {status[index]} already. nestbo add takes another observation.")
    if len(set(indices)) < len(indices):
        raise ArgumentError(f"Wanted one value for each trial, got several for one of {indices}. Keep one of them.")


def _say_told(study: Study, trial: Trial) -> None:
    outcome = repr(trial.value) if trial.status == "told" else f"failed, {trial.notes['failed']}"
    best = study.best
    say(f"Trial {trial.index}: {outcome}." + (f" Best: {best.value!r} (trial {best.index})." if best else ""))
