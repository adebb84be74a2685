"""Sample-efficient optimisation of expensive functions on Riemannian manifolds, in high dimension."""

from nestbo import optimise
from nestbo.errors import ArgumentError, NestboError, OffManifoldError, ShapeError, SpecificationError
from nestbo.manifolds import SPD, Box, Euclidean, Grassmann, Manifold, Product, Sphere, Stiefel, space

__version__ = "0.1.0"

__all__ = [
    "SPD",
    "ArgumentError",
    "Box",
    "Euclidean",
    "Grassmann",
    "Manifold",
    "NestboError",
    "OffManifoldError",
    "Product",
    "ShapeError",
    "SpecificationError",
    "Sphere",
    "Stiefel",
    "optimise",
    "space",
]
