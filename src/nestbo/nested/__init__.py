"""Nested mappings, and ``MAPPINGS``, where a new one is registered by the manifold it nests."""

from nestbo.nested.base import NestedMapping
from nestbo.nested.identity import Identity
from nestbo.nested.spd import NestedLogSPD, NestedSPD
from nestbo.nested.sphere import NestedSphere

MAPPINGS: dict[str, type[NestedMapping]] = {"sphere": NestedSphere, "spd": NestedSPD}

__all__ = ["MAPPINGS", "Identity", "NestedLogSPD", "NestedMapping", "NestedSPD", "NestedSphere"]
