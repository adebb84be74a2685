"""The command ``nestbo``: studies from a shell. Nothing in the library imports this package."""

import io
import sys

from nestbo.cli import automatic, bench, evaluations, examples, looking, mending, reporting
from nestbo.cli.app import app


def main() -> None:
    """The entry point of the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # rather an escape than no answer
    app(prog_name="nestbo")


__all__ = ["app", "automatic", "bench", "evaluations", "examples", "looking", "main", "mending", "reporting"]
