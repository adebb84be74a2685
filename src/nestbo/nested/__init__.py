"""Nested mappings, ``MAPPINGS``, where a new one is registered, and ``Nesting``, the family a fit chooses from."""

from nestbo.nested.base import NestedMapping
from nestbo.nested.identity import Identity
from nestbo.nested.nesting import MAPPINGS, Nesting, smaller
from nestbo.nested.product import NestedProduct
from nestbo.nested.spd import NestedLogSPD, NestedSPD
from nestbo.nested.sphere import NestedSphere

__all__ = [
    "MAPPINGS",
    "Identity",
    "NestedLogSPD",
    "NestedMapping",
    "NestedProduct",
    "NestedSPD",
    "NestedSphere",
    "Nesting",
    "smaller",
]
