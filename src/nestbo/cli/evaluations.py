"""``new``, ``ask``, ``tell``, ``add``: for people who evaluate by hand, at a bench."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nestbo.cli.app import Store, app, put, read, say
from nestbo.cli.beginning import Allowed, Method, Noise, Objectives, Seed, SpaceOrNone, Way, begun, under
from nestbo.cli.came import check_alike, check_open, checked, observations, what_came
from nestbo.cli.questions import answers
from nestbo.cli.records import brief, entries, parsed
from nestbo.errors import ArgumentError
from nestbo.history import Trial
from nestbo.storage import vacant
from nestbo.text import printable

if TYPE_CHECKING:
    from nestbo.study import Study
    from nestbo.study.light import Light

Numbers = Annotated[
    str | None,
    typer.Option(
        "--constraints",
        metavar="NUMBERS",
        help="Constraints measured with the value, such as 0.3,-1; ≥ 0 is satisfied.",
    ),
]
Note = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="A note of your own, kept with the trial.")]
Variance = Annotated[
    str | None, typer.Option("--noise", metavar="VARIANCE", help="Variance of the noise in this value.")
]


@app.command()
def new(
    store: Annotated[str | None, typer.Argument(metavar="[STORE]", help="The file to create.")] = None,
    space: SpaceOrNone = None,
    strategy: Method = None,
    budget: Annotated[
        int | None, typer.Option(min=1, help="Number of evaluations that you plan; nestbo resume stops there.")
    ] = None,
    seed: Seed = 0,
    objectives: Objectives = None,
    direction: Way = "minimize",
    noise: Noise = None,
    constraints: Allowed = None,
) -> None:
    """Begin a study that you evaluate by hand, with ask and tell.

    On a terminal, nestbo new without arguments asks for everything step by step.
    """
    if store is None and space is None and sys.stdin.isatty():
        wanted = answers(lambda path: vacant(Path(path).absolute()))
        store, space, budget = wanted.store, wanted.space, wanted.budget
        direction, noise = wanted.direction, wanted.noise
        say(f"The same without questions: {wanted.command}")
    if store is None or space is None:
        missing = "STORE" if store is None else "--space SPACE"
        raise ArgumentError(
            f"{missing} is missing. Write nestbo new robot.db --space sphere:2, or, on a terminal, nestbo new alone."
        )
    settings: dict[str, Any] = {"seed": seed, "objectives": objectives, "direction": direction, "noise": noise}
    with begun(store, space, strategy, **settings, constraints=constraints) as study:
        if budget is not None:
            study.remember(budget=budget)
        say(f"{store} holds a new study of {study.space} with {study.strategy}. nestbo ask {store} gives a point.")


@app.command()
def ask(
    store: Store,
    n: Annotated[int, typer.Option("-n", min=1, help="Number of different points.")] = 1,
    pending: Annotated[
        bool, typer.Option("--pending", help="Print the pending trials again instead of new ones.")
    ] = False,
    fix: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Fix a parameter to a value; may be repeated."),
    ] = None,
    constraints: Allowed = None,
) -> None:
    """Print new points to evaluate, each as a line of JSON with its index, x, and parameters by name.

    If the study was begun with constraints, give them again.
    """
    if pending:
        with read(store) as known:
            found = known.pending
    else:
        with under(store, constraints) as study:
            found = study.ask(n, fixed=_fixed(fix))
    for trial in found:
        put(brief(trial))


def _fixed(texts: list[str] | None) -> dict[str, Any] | None:
    """Parameters from texts such as tool=soft: a value is JSON, or else a word."""
    found: dict[str, Any] = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not sign:
            raise ArgumentError(f"--fix takes NAME=VALUE, such as tool=soft, got {text!r}.")
        try:
            found[name] = parsed(value)
        except ArgumentError:
            found[name] = value
    return found or None


@app.command(context_settings={"ignore_unknown_options": True})  # so that -1.5 is a value
def tell(
    store: Store,
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[INDEX] VALUE…",
            help="The index of a trial and the value measured there. For several objectives, one value for each; the "
            "index can be left out if only one trial is pending.",
        ),
    ] = None,
    failed: Annotated[
        str | None, typer.Option(metavar="WHY", help="Why the evaluation failed, instead of a value.")
    ] = None,
    constraints: Numbers = None,
    noise: Variance = None,
    note: Note = None,
    json: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help='One or more objects like {"index": 0, "value": 1.5} or {"index": 0, "failed": "why"}; - reads stdin.',
        ),
    ] = None,
) -> None:
    """Tell the value of a trial, one value for each objective, or why the evaluation failed.

    The value is on the disk when the command returns. A value that is not finite (nan, inf) counts as a failure. With
    --json, "constraints", "noise" and "note" are further keys.
    """
    texts = tuple(given or ())
    if json is not None and (texts, failed, constraints, noise, note) != ((), None, None, None, None):
        raise ArgumentError("tell takes INDEX VALUE, INDEX --failed WHY or --json JSON, got two of these. Keep one.")
    told = None if json is None else [checked(entry) for entry in entries(json)]
    with read(store) as study:
        outcomes = told or [what_came(study, "tell", texts, failed, constraints, noise, note)]
        check_open(study, [came.index for came in outcomes])
        check_alike(study, [came.found for came in outcomes if came.found is not None])
        for came in outcomes:
            say(said_of(study, study.tell(came.index, came.found, failed=came.failed, note=came.note)))


@app.command()
def add(
    store: Store,
    x: Annotated[
        str | None, typer.Option(metavar="JSON", help='The point, such as [0, 0, 1] or {"force": 3, "tool": "soft"}.')
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="The value, or one for each objective, such as 3.2,0.7.")
    ] = None,
    constraints: Numbers = None,
    noise: Variance = None,
    note: Note = None,
    allowed: Annotated[
        str | None, typer.Option(metavar="FILE.py:function", help="The constraints that the study was begun with.")
    ] = None,
    json: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help='One or more objects like {"x": …, "value": …} or {"parameters": …, "value": …}; - reads stdin.',
        ),
    ] = None,
) -> None:
    """Add an observation made elsewhere. It may violate the constraints of the study."""
    from nestbo.study import Study

    observed = observations(x, value, (constraints, noise, note), json)
    with under(store, allowed) as study:
        names = study.objectives if study.several else None
        rehearsal = Study(study.space, objectives=names)  # so that a mistake changes nothing
        for which in (rehearsal, study):
            added = [which.add(point, found) for point, found in observed]
        for trial in added:
            say(f"Added trial {trial.index} with the value {_shown_values(trial)}.")


def said_of(study: Study | Light, trial: Trial) -> str:
    """What became of a trial, and the best one, or the front, now."""
    reason = f"failed, {printable(str(trial.told.failed), keep='')}"
    return f"Trial {trial.index}: {_shown_values(trial) if trial.status == 'told' else reason}.{leading(study)}"


def _shown_values(trial: Trial) -> str:
    return ", ".join(map(repr, trial.values))


def leading(study: Study | Light) -> str:
    """The best trial, or those of the front, in words; nothing before there are values."""
    found = study.front
    if not found:
        return ""
    if study.several:
        return f" Front: trials {', '.join(str(trial.index) for trial in found)}."
    return f" Best: {found[0].value!r} (trial {found[0].index})."
