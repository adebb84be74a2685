"""``bench``: suites of benchmark problems, the command of ``nestbo.experiment``."""

from __future__ import annotations

import typer

from nestbo.cli.app import app

_AS_GIVEN = {
    "allow_extra_args": True,
    "allow_interspersed_args": False,
    "ignore_unknown_options": True,
    "help_option_names": [],
}


@app.command(context_settings=_AS_GIVEN)
def bench(context: typer.Context) -> None:
    """Compare methods on suites of benchmark problems; nestbo bench --help lists the commands."""
    from nestbo.experiment import main

    main(context.args, prog="nestbo bench")
