"""The spaces, and ``MANIFOLDS``, where a new one is registered."""

from nestbo.manifolds.base import Manifold
from nestbo.manifolds.box import Box
from nestbo.manifolds.euclidean import Euclidean
from nestbo.manifolds.grassmann import Grassmann
from nestbo.manifolds.product import Product
from nestbo.manifolds.quaternion import Quaternion
from nestbo.manifolds.rotation import Rotation
from nestbo.manifolds.simplex import Simplex
from nestbo.manifolds.spd import SPD
from nestbo.manifolds.sphere import Sphere
from nestbo.manifolds.stiefel import Stiefel
from nestbo.manifolds.torus import Torus
from nestbo.specification import parse

MANIFOLDS: dict[str, type[Manifold]] = {
    "euclidean": Euclidean,
    "box": Box,
    "sphere": Sphere,
    "spd": SPD,
    "grassmann": Grassmann,
    "stiefel": Stiefel,
    "rotation": Rotation,
    "quaternion": Quaternion,
    "torus": Torus,
    "simplex": Simplex,
    "product": Product,
}


def space(text: str) -> Manifold:
    """The manifold that a text specifies.

    >>> space("spd:10:eigenvalues=0.001,5")
    SPD(10, eigenvalues=(0.001, 5.0))
    >>> space("product:(sphere:2):(box:0:1)").specification
    'product:(sphere:2):(box:0.0,:1.0,)'
    """
    manifold: Manifold = parse(text, MANIFOLDS, "space")
    return manifold


__all__ = [
    "MANIFOLDS",
    "SPD",
    "Box",
    "Euclidean",
    "Grassmann",
    "Manifold",
    "Product",
    "Quaternion",
    "Rotation",
    "Simplex",
    "Sphere",
    "Stiefel",
    "Torus",
    "space",
]
