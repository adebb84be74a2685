"""Sample-efficient optimisation of expensive functions on Riemannian manifolds, in high dimension."""

from nestbo import kernels, nested, optimise
from nestbo.errors import (
    ArgumentError,
    ConstraintError,
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
    Euclidean,
    Grassmann,
    Manifold,
    Product,
    Quaternion,
    Rotation,
    Simplex,
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

__version__ = "0.1.0"

__all__ = [
    "REMBO",
    "SIRBO",
    "SPD",
    "ArgumentError",
    "Box",
    "ConstraintError",
    "DropoutBO",
    "Euclidean",
    "EuclideanBO",
    "GaBO",
    "Grassmann",
    "HDGaBO",
    "History",
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
    "strategy",
]
