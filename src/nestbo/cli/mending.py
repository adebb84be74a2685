"""``correct``, ``discard``: for values that were mistyped, and trials that do not count."""

from __future__ import annotations

from typing import Annotated

import typer

from nestbo.cli.app import Store, app, read, say
from nestbo.cli.evaluations import Note, Numbers, Variance, leading, said_of, trial_index, what_came

Index = Annotated[str, typer.Argument(metavar="INDEX", help="Of the trial.")]


@app.command(context_settings={"ignore_unknown_options": True})  # so that -1.5 is a value
def correct(
    store: Store,
    index: Index,
    value: Annotated[
        list[str] | None,
        typer.Argument(metavar="[VALUE]…", help="What should have been told: a value for each objective."),
    ] = None,
    failed: Annotated[str | None, typer.Option(metavar="WHY", help="Instead of a value.")] = None,
    constraints: Numbers = None,
    noise: Variance = None,
    note: Note = None,
) -> None:
    """Replace the value of a trial that was told or has failed; the earlier one stays in the file.

    Without --constraints, --noise or --note, those told before stay.
    """
    with read(store) as study:
        came = what_came(study, "correct", (index, *(value or ())), failed, constraints, noise, note)
        trial = study.correct(came.index, came.found, failed=came.failed, note=came.note)
        earlier = trial.told.corrected[-1]
        was = ", ".join(map(repr, earlier)) if earlier else "no value"
        say(f"{said_of(study, trial)} It was {was} before.")


@app.command()
def discard(store: Store, index: Index, note: Note = None) -> None:
    """Leave a trial out of everything; it stays in the file, struck through in the report."""
    with read(store) as study:
        trial = study.discard(trial_index(index), note=note)
        say(f"Trial {trial.index} is discarded.{leading(study)}")
