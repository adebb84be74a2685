"""The methods, and ``STRATEGIES``, where a new one is registered."""

from nestbo.manifolds import Manifold
from nestbo.specification import parse
from nestbo.strategies.base import Runs, Standing, Strategy, Suggestion
from nestbo.strategies.gabo import GaBO, HDGaBO
from nestbo.strategies.random import RandomSearch

_SMALL = 10
STRATEGIES: dict[str, type[Strategy]] = {"randomsearch": RandomSearch, "gabo": GaBO, "hdgabo": HDGaBO}


def strategy(text: str) -> Strategy:
    """The strategy that a text specifies: ``strategy("gabo:kernel=gaussian")``."""
    method: Strategy = parse(text, STRATEGIES, "strategy")
    return method


def default_strategy(space: Manifold) -> Strategy:
    """The method for who names none: HD-GaBO above ten dimensions, GaBO below."""
    return HDGaBO() if space.dim > _SMALL else GaBO()


__all__ = [
    "STRATEGIES",
    "GaBO",
    "HDGaBO",
    "RandomSearch",
    "Runs",
    "Standing",
    "Strategy",
    "Suggestion",
    "default_strategy",
    "strategy",
]
