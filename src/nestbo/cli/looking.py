"""``show``, ``best``, ``export``, ``plot``, ``list``: what there is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from nestbo.cli.app import Json, Store, app, opened, output_text, put, read, say
from nestbo.cli.records import (
    FORMATS,
    ROWS,
    brief,
    described,
    described_front,
    number,
    recommendation,
    records,
    summary,
    table,
)
from nestbo.cli.topics import PLOTS, TOPICS, Entry, completion
from nestbo.errors import ArgumentError, NestboError
from nestbo.files import written
from nestbo.specification import check_known
from nestbo.text import counted, printable


@app.command()
def show(store: Store, json: Json = False) -> None:
    """Show the settings of a study, its best trial and a table of all trials."""
    from rich.console import Console

    with read(store) as study:
        facts = summary(study, store)
        if json:
            put({**facts, "trials": records(study)})
            return
        console = Console(highlight=False)
        for name, text in _in_words(facts).items():
            console.print(printable(f"{name:9} {text}", keep=""), markup=False, soft_wrap=True)
        history = study.history
        if len(history):
            console.print(table(history, study.objectives))
        if (left := len(history) - ROWS) > 0:
            console.print(f"{left} earlier trials are left out here; nestbo export writes all.", markup=False)


def _in_words(facts: dict[str, Any]) -> dict[str, str]:
    """The summary, in words."""
    counts = facts["counts"]
    apart = ("counts", "best", "front", "recommended", "nestbo")
    known = {name: value for name, value in facts.items() if name not in apart and value is not None}
    plain = {name: "yes" if value is True else str(value) for name, value in known.items() if value is not False}
    trials = f"{counts['told']} told, {counts['failed']} failed, {counts['asked']} pending"
    trials += f", {counts['discarded']} discarded" if counts.get("discarded") else ""
    if "front" in facts:
        members = ", ".join(str(trial["index"]) for trial in facts["front"])
        pairs = zip(facts["objectives"], facts["direction"], strict=True)
        plain = {**plain, "direction": ", ".join(f"{way} {name}" for name, way in pairs)}
        plain.pop("objectives")
        return {**plain, "trials": trials, "front": f"trials {members}" if members else "none yet"}
    best = facts["best"]
    found = "none yet" if best is None else f"{best['value']!r} (trial {best['index']})"
    return {**plain, "trials": trials, "best": found, **_trust(facts)}


def _trust(facts: dict[str, Any]) -> dict[str, str]:
    """Which trial a noisy study recommends, in words."""
    if "recommended" not in facts:
        return {}
    trial = facts["recommended"]
    return {"trust": f"trial {trial['index']}, recommended, with the posterior mean {trial['mean']:.6g}"}


@app.command()
def best(store: Store, json: Json = False) -> None:
    """Print the best trial with all digits. The exit code is 1 if there is none yet.

    If values are noisy, print also the recommended trial, which has the best posterior mean, and this mean with its
    95 % interval.
    """
    with read(store) as study:
        if study.several:
            raise ArgumentError(f"{store} has several objectives, and so no best trial. nestbo front prints its front.")
        trial = study.best
        if trial is None:
            raise NestboError(f"No trial of {store} has a value yet. nestbo tell gives one.")
        if json:
            put({**brief(trial), **recommendation(study)})
        else:
            typer.echo(described(trial, study.recommendation() if study.history.noisy else None))


@app.command()
def front(
    store: Store,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS", help="Reference point, such as 3,0.5: print the hypervolume up to it, on stderr."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Print the trials of several objectives that no other trial dominates. The exit code is 1 if there is none yet."""
    with opened(store) as study:
        found = study.front
        if not found:
            raise NestboError(f"No trial of {store} has values yet. nestbo tell gives them.")
        for trial in found if json else []:
            put(brief(trial))
        if not json:
            typer.echo(described_front(study))
        if reference is not None:
            say(f"The hypervolume is {study.hypervolume([number(part) for part in reference.split(',')])!r}.")


@app.command()
def copy(
    store: Store,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The file to create.")],
) -> None:
    """Copy a study to a new file, also while it is in use. A plain copy of the file may lack the latest values."""
    with read(store) as study:
        study.save(target)
        say(f"Copied {store} to {target}, {counted(len(study.history), 'trial')}.")


@app.command()
def export(
    store: Store,
    format: Annotated[  # noqa: A002
        str, typer.Option("--format", "-f", help="csv, or jsonl for JSON lines.", autocompletion=lambda: list(FORMATS))
    ] = "csv",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The file to write; - is stdout.")
    ] = "-",
) -> None:
    """Write all trials as CSV or JSON lines, with all digits."""
    check_known("format", format, FORMATS)
    with read(store) as study, output_text(output) as file:
        FORMATS[format](study, file)


@app.command()
def plot(
    store: Store,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="A .png, .pdf or .svg file.")],
    kind: Annotated[
        str, typer.Option("--kind", "-k", help=f"One of {', '.join(PLOTS)}.", autocompletion=completion(PLOTS))
    ] = "convergence",
    title: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The title of the picture. By default it names space and strategy."),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Which of several objectives to draw. By default it is the first."),
    ] = None,
) -> None:
    """Draw a study into a file."""
    from nestbo.plots import draw

    output = output if Path(output).suffix else f"{output}.png"
    with opened(store) as study, written(output) as file:
        figure = draw(study, kind, objective, title=title)
        try:
            figure.savefig(file, format=Path(output).suffix[1:])
        except ValueError as error:
            raise ArgumentError(
                f"Cannot write a picture as {output}: {error}. End the name in .png, .pdf or .svg."
            ) from error
    say(f"Wrote {output}.")


@app.command("list")
def list_(
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar=f"[{'|'.join(TOPICS)}]",
            help="What to list; by default everything.",
            autocompletion=lambda: list(TOPICS),
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List the manifolds, kernels, strategies, problems and plots, each with an example of its text form."""
    if topic is not None:
        check_known("topic", topic, TOPICS)
    found = TOPICS if topic is None else {topic: TOPICS[topic]}
    if json:
        listed = {key: {name: entry._asdict() for name, entry in some.items()} for key, some in found.items()}
        put(listed if topic is None else listed[topic])
        return
    for key, entries in found.items():
        if topic is None:
            typer.echo(f"{key}:")
        _print_entries(entries)


def _print_entries(entries: Mapping[str, Entry]) -> None:
    names, examples = (2 + max(map(len, texts)) for texts in (entries, (entry.example for entry in entries.values())))
    for name, entry in entries.items():
        typer.echo(f"{name:{names}}{entry.example:{examples}}{entry.about}")
