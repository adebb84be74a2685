"""The command ``nestbo``: studies from a shell. Nothing in the library imports this package."""

from nestbo.cli import automatic, bench, experiments, looking, reporting
from nestbo.cli.app import app


def main() -> None:
    """The entry point of the command."""
    app(prog_name="nestbo")


__all__ = ["app", "automatic", "bench", "experiments", "looking", "main", "reporting"]
