"""``report`` and ``watch``: a study as a page."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nestbo.cli.app import Store, app, opened, output_text, say
from nestbo.errors import NestboError

if TYPE_CHECKING:
    from nestbo.study import Study


@app.command()
def report(
    store: Store,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="An .html file.")],
) -> None:
    """Write a study as one HTML page to send: pictures, all trials, settings. It needs no network."""
    try:
        with opened(store) as study, output_text(output) as file:
            file.write(_page(study, store))
    except OSError as error:
        raise NestboError(f"Cannot write {output}: {error.strerror}. Choose another file.") from error
    if output != "-":
        say(f"Wrote {output}.")


@app.command()
def watch(
    store: Annotated[str, typer.Argument(metavar="STORE", help="The file of a study, or a folder with several.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="To serve on; 0 takes any free one.")] = 8765,
) -> None:
    """Serve the page of report to a browser on this machine, and renew it while the study runs, until Ctrl-C.

    The studies of a folder, its files that end in .db, are shown side by side.
    """
    from nestbo.report import Watch

    if Path(store).is_dir():
        _watch_folder(store, port)
        return
    with opened(store) as study:
        watching = Watch(lambda: _state(study), lambda state: _page(study, store, state), port=port)
        say(f"Watching {store} at {watching.url} (Ctrl-C ends it, the study goes on).")
        with contextlib.suppress(KeyboardInterrupt):
            watching.run()


def _watch_folder(path: str, port: int) -> None:
    from nestbo.report import Folder, Watch

    with contextlib.closing(Folder(Path(path), _state, _page)) as folder:
        watching = Watch(folder.state, folder.page, port=port, room=folder.room)
        say(f"Watching the studies in {path} at {watching.url} (Ctrl-C ends it, the studies go on).")
        with contextlib.suppress(KeyboardInterrupt):
            watching.run()


def _page(study: Study, store: str, live: str | None = None) -> str:
    from nestbo.report import page

    facts = {key: value for key, value in study.settings.items() if key != "numpy"}
    return page(study, name=Path(store).stem, facts=facts, live=live)


def _state(study: Study) -> str:
    """What changes whenever something was asked or told: how many there are of both, and when the last one was."""
    pairs = study.times.values()
    asked, told = ([time for pair in pairs if (time := pair[k]) is not None] for k in (0, 1))
    return ":".join(f"{len(times)}:{max(times, default=0.0)!r}" for times in (asked, told))
