"""The floor on which methods stand: their data, what they search, and the one search that serves them all."""

from nestbo.search.choosing import seen
from nestbo.search.exploring import farthest, spread_out
from nestbo.search.feasibility import constraint_models, rule_fits, rule_name
from nestbo.search.repeats import drawn_again, unrepeated
from nestbo.search.runs import Runs
from nestbo.search.sections import Section, same, search

__all__ = [
    "Runs",
    "Section",
    "constraint_models",
    "drawn_again",
    "farthest",
    "rule_fits",
    "rule_name",
    "same",
    "search",
    "seen",
    "spread_out",
    "unrepeated",
]
