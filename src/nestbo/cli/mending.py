"""``correct``, ``discard``: for values that were mistyped, and trials that do not count."""

from __future__ import annotations

from typing import Annotated

import typer

from nestbo.cli.app import Store, app, read, say
from nestbo.cli.came import trial_index, what_came
from nestbo.cli.evaluations import Note, Numbers, Variance, leading, said_of

Index = Annotated[str, typer.Argument(metavar="INDEX", help="The index of the trial.")]


@app.command(context_settings={"ignore_unknown_options": True})  # so that -1.5 is a value
def correct(
    store: Store,
    index: Index,
    value: Annotated[
        list[str] | None,
        typer.Argument(metavar="[VALUE]…", help="The right value, one for each objective."),
    ] = None,
    failed: Annotated[
        str | None, typer.Option(metavar="WHY", help="Why the evaluation failed, instead of a value.")
    ] = None,
    constraints: Numbers = None,
    noise: Variance = None,
    note: Note = None,
) -> None:
    """Replace the value of a trial, or its note alone. The file keeps the earlier value.

    Without --constraints, --noise or --note, those told before stay.
    """
    with read(store) as study:
        if note is not None and not value and (failed, constraints, noise) == (None, None, None):
            trial = study.correct(trial_index(index), note=note)
            say(f"Trial {trial.index} has the note: {note}")
            return
        came = what_came(study, "correct", (index, *(value or ())), failed, constraints, noise, note)
        trial = study.correct(came.index, came.found, failed=came.failed, note=came.note)
        earlier = trial.told.corrected[-1]
        was = ", ".join(map(repr, earlier)) if earlier else "no value"
        say(f"{said_of(study, trial)} It was {was} before.")


@app.command()
def discard(store: Store, index: Index, note: Note = None) -> None:
    """Exclude a trial from the study. It stays in the file, and the report strikes it through."""
    with read(store) as study:
        trial = study.discard(trial_index(index), note=note)
        say(f"Trial {trial.index} is discarded.{leading(study)}")
