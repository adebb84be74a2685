"""The suite "applications": the examples of the gallery, compared with what people use today."""

from nestbo.experiment.applications.evaluations import Evaluations, Run, SpentError
from nestbo.experiment.applications.methods import METHODS, InCoordinates, OnSpace
from nestbo.experiment.applications.suite import ABOUT, SUITE, Cell, cells, run
from nestbo.experiment.applications.tables import read, tables

__all__ = [
    "ABOUT",
    "METHODS",
    "SUITE",
    "Cell",
    "Evaluations",
    "InCoordinates",
    "OnSpace",
    "Run",
    "SpentError",
    "cells",
    "read",
    "run",
    "tables",
]
