"""``new``, ``ask``, ``tell``, ``add``: for people who evaluate by hand, at a bench."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from nestbo.cli.app import Store, app, opened, put, say
from nestbo.cli.beginning import Allowed, Method, Noise, Seed, Space, Way, begun, under
from nestbo.cli.records import brief, entries, number, parsed
from nestbo.errors import ArgumentError, TrialError, shown
from nestbo.evaluation import numbers
from nestbo.history import Observation, Trial
from nestbo.study import Study
from nestbo.text import printable

Numbers = Annotated[
    str | None,
    typer.Option("--constraints", metavar="NUMBERS", help="Found with the value, ≥ 0 where satisfied, such as 0.3,-1."),
]
Variance = Annotated[str | None, typer.Option("--noise", metavar="VARIANCE", help="Of the noise of this value.")]


@app.command()
def new(
    store: Annotated[str, typer.Argument(metavar="STORE", help="The file to make.")],
    space: Space,
    strategy: Method = None,
    seed: Seed = 0,
    direction: Way = "minimize",
    noise: Noise = None,
    constraints: Allowed = None,
) -> None:
    """Begin a study that is evaluated by hand, with ask and tell."""
    settings: dict[str, Any] = {"seed": seed, "direction": direction, "noise": noise, "constraints": constraints}
    with begun(store, space, strategy, **settings) as study:
        say(f"{store} holds a new study of {study.space} with {study.strategy}. nestbo ask {store} gives a point.")


@app.command()
def ask(
    store: Store,
    n: Annotated[int, typer.Option("-n", min=1, help="How many different points.")] = 1,
    pending: Annotated[bool, typer.Option("--pending", help="The open trials again, instead of new ones.")] = False,
    constraints: Allowed = None,
) -> None:
    """Print new points to evaluate, each as a line of JSON with its index and x.

    A study that was begun with constraints wants them again.
    """
    with under(store, constraints) as study:
        for trial in study.pending if pending else study.ask(n):
            put(brief(trial))


@app.command(context_settings={"ignore_unknown_options": True})  # so that -1.5 is a value
def tell(
    store: Store,
    index: Annotated[str | None, typer.Argument(metavar="[INDEX]", help="Of a trial that was asked.")] = None,
    value: Annotated[str | None, typer.Argument(metavar="[VALUE]", help="What was measured.")] = None,
    failed: Annotated[str | None, typer.Option(metavar="WHY", help="Instead of a value.")] = None,
    constraints: Numbers = None,
    noise: Variance = None,
    json: Annotated[
        str | None,
        typer.Option(metavar="JSON", help='Instead: {"index": 0, "value": 1.5} or "failed", several, or - for stdin.'),
    ] = None,
) -> None:
    """Tell the value of a trial, or why it has none; it is on the disk when this returns.

    A value that is not finite (nan, inf) counts as a failure. With --json, "constraints" and "noise" are keys.
    """
    if json is not None and (index, value, failed, constraints, noise) != (None,) * 5:
        raise ArgumentError("tell takes INDEX VALUE, INDEX --failed WHY or --json JSON, got two of these. Keep one.")
    given = [_outcome(index, value, failed, constraints, noise)] if json is None else map(_checked, entries(json))
    outcomes = list(given)
    with opened(store) as study:
        _check_open(study, [at for at, *_ in outcomes])
        _check_alike([found for _, found, _ in outcomes if found is not None])
        for at, found, why in outcomes:
            _say_told(study, study.tell(at, found, failed=why))


@app.command()
def add(
    store: Store,
    x: Annotated[str | None, typer.Option(metavar="JSON", help="The point, such as [0, 0, 1].")] = None,
    value: Annotated[str | None, typer.Option(metavar="NUMBER", help="Its value.")] = None,
    constraints: Numbers = None,
    noise: Variance = None,
    allowed: Annotated[
        str | None, typer.Option(metavar="FILE.py:function", help="The constraints that the study was begun with.")
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="JSON", help='Instead: {"x": …, "value": …}, several, or - for stdin.')
    ] = None,
) -> None:
    """Add an observation made elsewhere; it may violate the constraints that the study was begun with."""
    observations = _observations(x, value, constraints, noise, json)
    with under(store, allowed) as study:
        rehearsal = Study(study.space)  # so that a mistake changes nothing
        for which in (rehearsal, study):
            added = [which.add(point, found) for point, found in observations]
        for trial in added:
            say(f"Added trial {trial.index} with the value {trial.value!r}.")


def _observations(
    x: str | None, value: str | None, constraints: str | None, noise: str | None, text: str | None
) -> list[tuple[Any, Observation]]:
    """Points and what was observed there, as they were given."""
    if x is not None and value is not None and text is None:
        return [(parsed(x), _observation(number(value), _listed(constraints), _variance(noise)))]
    if text is not None and (x, value, constraints, noise) == (None,) * 4:
        return [(entry.get("x"), _found(entry)) for entry in entries(text)]
    raise ArgumentError("add takes --x JSON --value NUMBER, or --json JSON. Give one of the two.")


def _index(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ArgumentError(f"Wanted the index of a trial, got {text!r}. nestbo ask --pending lists them.") from error


def _listed(text: str | None) -> list[float] | None:
    return None if text is None else [number(part) for part in text.split(",")]


def _variance(text: str | None) -> float | None:
    return None if text is None else number(text)


def _observation(value: Any, constraints: Any, noise: Any) -> Observation:
    """What was observed, checked before anything is told."""
    if noise is not None and (isinstance(noise, bool) or not isinstance(noise, int | float) or not noise > 0):
        raise ArgumentError(f"Wanted the variance of the noise, a positive number, got {shown(noise)}.")
    return Observation(value, None if constraints is None else numbers(constraints), noise)


def _found(entry: dict[str, Any]) -> Observation:
    return _observation(entry.get("value"), entry.get("constraints"), entry.get("noise"))


def _outcome(
    index: str | None, value: str | None, failed: str | None, constraints: str | None, noise: str | None
) -> tuple[int, Observation | None, str | None]:
    if index is None or (value is None) == (failed is None):
        raise ArgumentError("tell takes INDEX VALUE, INDEX --failed WHY or --json JSON. Give one of these.")
    found = None if value is None else _observation(number(value), _listed(constraints), _variance(noise))
    return _index(index), found, failed


def _checked(entry: dict[str, Any]) -> tuple[int, Observation | None, str | None]:
    """What a JSON object tells."""
    index, value, failed = (entry.get(name) for name in ("index", "value", "failed"))
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if type(index) is not int or numeric == isinstance(failed, str) or not (numeric or value is None):
        raise ArgumentError(
            f'Wanted {{"index": 0, "value": 1.5}} or {{"index": 0, "failed": "why"}}, got {shown(entry)}.'
        )
    return index, _found(entry) if numeric else None, failed


def _check_alike(observations: list[Observation]) -> None:
    counts = {len(found.constraints or ()) for found in observations}
    if len(counts) > 1:
        raise ArgumentError(f"Wanted the same constraints with every value, got {sorted(counts)} of them.")


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
    outcome = repr(trial.value) if trial.status == "told" else f"failed, {printable(str(trial.told.failed), keep='')}"
    best = study.best
    say(f"Trial {trial.index}: {outcome}." + (f" Best: {best.value!r} (trial {best.index})." if best else ""))
