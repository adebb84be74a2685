"""``example``: the applications of the gallery, as a start of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nestbo.cli.app import app, say


def _names(incomplete: str) -> list[tuple[str, str]]:
    """Tab completion."""
    from nestbo.gallery.catalogue import CATALOGUE

    return [(name, entry.about) for name, entry in CATALOGUE.items() if name.startswith(incomplete)]


@app.command()
def example(
    name: Annotated[
        str | None, typer.Argument(help="Name of an example; without it, the list.", autocompletion=_names)
    ] = None,
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the files go.")] = Path("."),
) -> None:
    """List the examples of the gallery, or copy one into your folder as a start."""
    from nestbo.gallery.catalogue import CATALOGUE, copy, entry

    if name is None:
        for one in CATALOGUE.values():
            needed = f"; pip install {' '.join(one.missing)}" if one.missing else ""
            typer.echo(f"{one.name:10} {one.about} [{one.space}]{needed}")
        say("nestbo example NAME copies one. pip install 'nestbo[gallery]' brings the packages of all.")
        return
    for path in copy(name, to):
        typer.echo(str(path))
    missing = entry(name).missing
    first = f"pip install {' '.join(missing)}, then " if missing else ""
    say(f"Run it: {first}python {to / name}.py")
