"""Sample-efficient optimisation of expensive functions on Riemannian manifolds, in high dimension.

A name is imported when it is first used: what needs no tensors, such as most of the command line, does not wait for
torch.
"""

from importlib import import_module as _import_module
from importlib import util as _util
from typing import TYPE_CHECKING

from nestbo.interrupts import held_back as _held_back

if TYPE_CHECKING:
    from nestbo import botorch as botorch
    from nestbo import kernels, nested, optimise, stop
    from nestbo import optuna as optuna
    from nestbo import plots as plots
    from nestbo import report as report
    from nestbo.errors import (
        ArgumentError,
        ConstraintError,
        FailureWarning,
        NestboError,
        ObjectiveError,
        OffManifoldError,
        ShapeError,
        SpecificationError,
        StoreError,
        TrialError,
    )
    from nestbo.history import History, Observation, Told, Trial
    from nestbo.manifolds import (
        SPD,
        Box,
        Choice,
        Euclidean,
        Grassmann,
        Integer,
        Levels,
        Manifold,
        Product,
        Quaternion,
        Rotation,
        Simplex,
        Space,
        Sphere,
        Stiefel,
        Torus,
        space,
    )
    from nestbo.memory import Memory
    from nestbo.minimum import Minimum, minimize
    from nestbo.problems import Problem, problem
    from nestbo.strategies import (
        REMBO,
        SIRBO,
        DropoutBO,
        EuclideanBO,
        GaBO,
        HDGaBO,
        RandomSearch,
        Standing,
        Strategy,
        Suggestion,
        strategy,
    )
    from nestbo.study import Study

__version__ = "0.2.0"

__all__ = [
    "REMBO",
    "SIRBO",
    "SPD",
    "ArgumentError",
    "Box",
    "Choice",
    "ConstraintError",
    "DropoutBO",
    "Euclidean",
    "EuclideanBO",
    "FailureWarning",
    "GaBO",
    "Grassmann",
    "HDGaBO",
    "History",
    "Integer",
    "Levels",
    "Manifold",
    "Memory",
    "Minimum",
    "NestboError",
    "ObjectiveError",
    "Observation",
    "OffManifoldError",
    "Problem",
    "Product",
    "Quaternion",
    "RandomSearch",
    "Rotation",
    "ShapeError",
    "Simplex",
    "Space",
    "SpecificationError",
    "Sphere",
    "Standing",
    "Stiefel",
    "StoreError",
    "Strategy",
    "Study",
    "Suggestion",
    "Told",
    "Torus",
    "Trial",
    "TrialError",
    "kernels",
    "minimize",
    "nested",
    "optimise",
    "problem",
    "space",
    "stop",
    "strategy",
]

_HOMES = ("errors", "manifolds", "history", "memory", "problems", "strategies", "study", "minimum")  # of public names
_BESIDE = ("botorch", "optuna", "plots", "report")  # modules that "from nestbo import *" leaves out


if not TYPE_CHECKING:  # a type checker would take any name for one of nestbo

    def __getattr__(name):
        """A module of the package, or a public name from the module that defines it."""
        unknown = AttributeError(f"module 'nestbo' has no attribute {name!r}")
        if name.startswith("_"):
            raise unknown
        with _held_back():  # Ctrl-C would leave half of torch behind
            if _util.find_spec(f"nestbo.{name}"):
                return _import_module(f"nestbo.{name}")
            if name not in __all__:
                raise unknown
            homes = (_import_module(f"nestbo.{home}") for home in _HOMES)
            globals()[name] = next(getattr(home, name) for home in homes if hasattr(home, name))
        return globals()[name]

    def __dir__():
        return sorted({*globals(), *__all__, *_BESIDE})
