"""The suite "applications": the examples of the gallery, compared with what people use today."""

from nestbo.experiment.applications.evaluations import Evaluations, Run, SpentError
from nestbo.experiment.applications.methods import METHODS, InCoordinates, OnBox, OnSpace
from nestbo.experiment.applications.suite import Cell, cells, run
from nestbo.experiment.applications.tables import read, tables

__all__ = [
    "METHODS",
    "Cell",
    "Evaluations",
    "InCoordinates",
    "OnBox",
    "OnSpace",
    "Run",
    "SpentError",
    "cells",
    "read",
    "run",
    "tables",
]
