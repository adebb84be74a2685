"""Optimal values over feasible domains, in ``optima.json``, which ``benchmarks/optima.py`` writes."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import NamedTuple


class Optimum(NamedTuple):
    """A least value, whether it is attained, and the coordinates where it is attained or approached."""

    value: float
    attained: bool
    coordinates: tuple[float, ...]


def _read() -> dict[tuple[str, str], Optimum]:
    rows = json.loads(files("nestbo.problems").joinpath("optima.json").read_text())
    return {
        (row["problem"], row["space"]): Optimum(row["value"], row["attained"], tuple(row["coordinates"]))
        for row in rows
    }


OPTIMA = _read()
