"""Experiments: suites of problems and methods, run in many processes and sittings; tables and figures of what came out.

    python -m nestbo.experiment list
    python -m nestbo.experiment run --suite paper --methods hdgabo,gabo --trials 30 --budget 305 --jobs 2 --out DIR
    python -m nestbo.experiment table DIR

It needs neither typer nor rich, and runs on a GPU with ``--device cuda``. ``nestbo bench`` is the same command. Names
are imported when they are first used, because ``list`` and ``--help`` do not wait for torch.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nestbo.experiment.command import main
    from nestbo.experiment.suites import METHODS, SUITES, Cell, Suite
    from nestbo.experiment.tasks import Task
    from nestbo.experiment.trial_files import run
    from nestbo.experiment.trials import INITIAL, ORACLE, Progress, Trials

__all__ = ["INITIAL", "METHODS", "ORACLE", "SUITES", "Cell", "Progress", "Suite", "Task", "Trials", "main", "run"]

_HOMES = ("command", "suites", "tasks", "trial_files", "trials")


if not TYPE_CHECKING:

    def __getattr__(name):
        """A public name from the first module that defines it."""
        from importlib import import_module

        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        homes = (import_module(f"{__name__}.{home}") for home in _HOMES)
        return next(getattr(home, name) for home in homes if hasattr(home, name))
