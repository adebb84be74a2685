"""Experiments: suites of problems and methods, run in many processes and sittings; tables and figures of what came out.

    python -m nestbo.experiment list
    python -m nestbo.experiment run --suite paper --methods hdgabo,gabo --trials 30 --budget 305 --jobs 2 --out DIR
    python -m nestbo.experiment table DIR

It needs neither typer nor rich, and runs on a GPU with ``--device cuda``. ``nestbo bench`` is the same command.
"""

from nestbo.experiment.command import main
from nestbo.experiment.suites import METHODS, SUITES, Cell, Suite
from nestbo.experiment.tasks import Task
from nestbo.experiment.trials import INITIAL, ORACLE, Progress, Trials, run

__all__ = ["INITIAL", "METHODS", "ORACLE", "SUITES", "Cell", "Progress", "Suite", "Task", "Trials", "main", "run"]
