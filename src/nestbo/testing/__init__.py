"""The laws that spaces, manifolds, kernels, mappings, methods and problems obey, for people who write their own.

Each takes what it judges and a ``torch.Generator`` and raises ``AssertionError`` with a sentence on failure:
``for law in MANIFOLD_LAWS: law(MyManifold(3), rng)``; those of a method take a space as well. Registering something
runs them in the tests of this library.
"""

from nestbo.testing.kernels import KERNEL_LAWS
from nestbo.testing.manifolds import MANIFOLD_LAWS
from nestbo.testing.mappings import MAPPING_LAWS
from nestbo.testing.problems import PROBLEM_LAWS
from nestbo.testing.spaces import SPACE_LAWS
from nestbo.testing.strategies import STRATEGY_LAWS

__all__ = ["KERNEL_LAWS", "MANIFOLD_LAWS", "MAPPING_LAWS", "PROBLEM_LAWS", "SPACE_LAWS", "STRATEGY_LAWS"]
