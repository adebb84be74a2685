"""The methods, and ``STRATEGIES``, where a new one is registered."""

from nestbo.manifolds import Space
from nestbo.search.runs import Runs
from nestbo.specification import parse
from nestbo.strategies.base import Standing, Strategy, Suggestion
from nestbo.strategies.dropout import DropoutBO
from nestbo.strategies.euclidean import EuclideanBO
from nestbo.strategies.gabo import GaBO, HDGaBO
from nestbo.strategies.random import RandomSearch
from nestbo.strategies.rembo import REMBO
from nestbo.strategies.retired import without_retired
from nestbo.strategies.sir import SIRBO

_SMALL = 10
STRATEGIES: dict[str, type[Strategy]] = {
    "randomsearch": RandomSearch,
    "gabo": GaBO,
    "hdgabo": HDGaBO,
    "euclideanbo": EuclideanBO,
    "dropoutbo": DropoutBO,
    "sirbo": SIRBO,
    "rembo": REMBO,
}


def strategy(text: str) -> Strategy:
    """The strategy that a text specifies: ``strategy("gabo:kernel=gaussian")``, ``strategy("hdgabo:latent_dim=5")``.

    Args:
        text: The text form of a strategy, such as "gabo:initial=3".
    """
    method: Strategy = parse(text, STRATEGIES, "strategy")
    return method


def stored_strategy(text: str) -> Strategy:
    """The strategy that a store names, which an earlier version may have written.

    Args:
        text: The text form of a strategy.
    """
    return strategy(without_retired(text) if isinstance(text, str) else text)


def default_strategy(space: Space, *, several: bool = False) -> Strategy:
    """The default method: HD-GaBO above ten dimensions, GaBO below and for several objectives."""
    return HDGaBO() if space.dim > _SMALL and not several else GaBO()


__all__ = [
    "REMBO",
    "SIRBO",
    "STRATEGIES",
    "DropoutBO",
    "EuclideanBO",
    "GaBO",
    "HDGaBO",
    "RandomSearch",
    "Runs",
    "Standing",
    "Strategy",
    "Suggestion",
    "default_strategy",
    "stored_strategy",
    "strategy",
]
