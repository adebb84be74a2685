"""Sample-efficient optimisation of expensive functions on Riemannian manifolds, in high dimension."""

from nestbo import kernels, nested, optimise
from nestbo.errors import ArgumentError, NestboError, OffManifoldError, ShapeError, SpecificationError
from nestbo.history import History, Trial
from nestbo.manifolds import SPD, Box, Euclidean, Grassmann, Manifold, Product, Sphere, Stiefel, space
from nestbo.problems import Problem, problem
from nestbo.strategies import GaBO, RandomSearch, Strategy, Suggestion, strategy

__version__ = "0.1.0"

__all__ = [
    "SPD",
    "ArgumentError",
    "Box",
    "Euclidean",
    "GaBO",
    "Grassmann",
    "History",
    "Manifold",
    "NestboError",
    "OffManifoldError",
    "Problem",
    "Product",
    "RandomSearch",
    "ShapeError",
    "SpecificationError",
    "Sphere",
    "Stiefel",
    "Strategy",
    "Suggestion",
    "Trial",
    "kernels",
    "nested",
    "optimise",
    "problem",
    "space",
    "strategy",
]
