"""The spaces, and ``MANIFOLDS``, where a new one is registered; those without tangent vectors in ``FINITE``."""

from nestbo.errors import ArgumentError
from nestbo.manifolds.base import Manifold
from nestbo.manifolds.box import Box
from nestbo.manifolds.euclidean import Euclidean
from nestbo.manifolds.finite import Choice, Finite, Integer, Levels
from nestbo.manifolds.grassmann import Grassmann
from nestbo.manifolds.held import Held, fixed, leaf, released
from nestbo.manifolds.product import ManifoldProduct, Product
from nestbo.manifolds.quaternion import Quaternion
from nestbo.manifolds.rotation import Rotation
from nestbo.manifolds.simplex import Simplex
from nestbo.manifolds.spaces import Space
from nestbo.manifolds.spd import SPD
from nestbo.manifolds.sphere import Sphere
from nestbo.manifolds.stiefel import Stiefel
from nestbo.manifolds.torus import Torus
from nestbo.specification import parse

MANIFOLDS: dict[str, type[Space]] = {
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


FINITE: dict[str, type[Finite]] = {"integer": Integer, "choice": Choice, "levels": Levels}


def space(text: str) -> Space:
    """The space that a text specifies.

    Args:
        text: The text form of a space, such as "sphere:50".

    >>> space("spd:10:eigenvalues=0.001,5")
    SPD(10, eigenvalues=(0.001, 5.0))
    >>> space("product:(sphere:2):(box:0:1)").specification
    'product:(sphere:2):(box:0.0:1.0)'
    >>> space("product:(force=box:0:40):(tool=choice:soft,hard,vacuum)")
    Product(force=Box(0.0, 40.0), tool=Choice('soft', 'hard', 'vacuum'))
    """
    found: Space = parse(text, MANIFOLDS | FINITE, "space")
    return found


def as_written_today(text: str) -> str:
    """The text form of a space as this version writes it; files of an earlier one have ``box:0.0,:1.0,``."""
    try:
        return space(text).specification
    except ArgumentError:
        return text


__all__ = [
    "FINITE",
    "MANIFOLDS",
    "SPD",
    "Box",
    "Choice",
    "Euclidean",
    "Finite",
    "Grassmann",
    "Held",
    "Integer",
    "Levels",
    "Manifold",
    "ManifoldProduct",
    "Product",
    "Quaternion",
    "Rotation",
    "Simplex",
    "Space",
    "Sphere",
    "Stiefel",
    "Torus",
    "as_written_today",
    "fixed",
    "leaf",
    "released",
    "space",
]
