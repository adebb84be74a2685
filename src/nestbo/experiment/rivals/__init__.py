"""What people would use instead of nestbo: methods for boxes on charts of the space, and ``RIVALS``, their registry.

Those that need a package beyond nestbo's own are in ``benchmarks/rivals.py``, which registers them here.
"""

from nestbo.errors import ArgumentError
from nestbo.experiment.rivals.base import Rival
from nestbo.experiment.rivals.charts import Cube, natural, tangent
from nestbo.experiment.rivals.random_projection import RPM
from nestbo.experiment.rivals.replayed import Local, Replayed
from nestbo.experiment.rivals.stock import BoTorch
from nestbo.experiment.rivals.turbo import Turbo
from nestbo.specification import parse
from nestbo.strategies import STRATEGIES, Strategy

RIVALS: dict[str, type[Strategy]] = {"turbo": Turbo, "botorch": BoTorch, "local": Local, "rpm": RPM}


ELSEWHERE = ("cmaes", "optuna")  # registered by benchmarks/rivals.py


def method(text: str) -> Strategy:
    """The strategy or the rival that a text specifies: ``method("turbo:chart=tangent")``."""
    name = text.split(":")[0]
    if name in ELSEWHERE and name not in RIVALS:
        raise ArgumentError(f"{name!r} brings a package of its own. Run it with python benchmarks/rivals.py.")
    found: Strategy = parse(text, {**STRATEGIES, **RIVALS}, "strategy")
    return found


__all__ = [
    "ELSEWHERE",
    "RIVALS",
    "RPM",
    "BoTorch",
    "Cube",
    "Local",
    "Replayed",
    "Rival",
    "Turbo",
    "method",
    "natural",
    "tangent",
]
