"""The names that options of strategies take, for type checkers and editors; a registry that users extend is none."""

from dataclasses import dataclass
from typing import Literal

Acquisition = Literal["logei", "lognei", "ei", "ucb"]
Climb = Literal["lbfgs", "trust-region"]
Coordinates = Literal["matrix", "cholesky"]
CoordinateClimb = Literal["lbfgs", "slsqp"]
Criterion = Literal["likelihood", "leave-one-out"]
LatentDim = int | Literal["auto"] | tuple[int | None, ...]
Lift = Literal["incumbent", "fitted"]
Metric = Literal["isotropic", "diagonal", "full", "auto"]
Outputs = Literal["standardise", "half-log", "log", "bilog", "auto"]
Within = Literal["subspace", "space"]


@dataclass(frozen=True)
class Modelling:
    """How models are fitted and searched: what methods with one model and with several have in common."""

    kernel: str
    acquisition: str
    outputs: str
    optimiser: str
    criterion: str
    priors: bool
