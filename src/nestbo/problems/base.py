"""A benchmark problem: a function on a manifold, perhaps hidden behind a random nested projection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from nestbo.errors import ArgumentError, shown
from nestbo.manifolds import Space
from nestbo.manifolds.base import is_whole
from nestbo.nested import MAPPINGS, Identity, NestedMapping, smaller
from nestbo.problems.coordinates import check_space, coordinates, from_coordinates
from nestbo.problems.functions import PROBLEMS, Formula
from nestbo.problems.optima import OPTIMA
from nestbo.problems.posed import moved
from nestbo.problems.search import find_optimum
from nestbo.specification import check_known


@dataclass(frozen=True, eq=False)
class Problem:
    """y = f(coordinates(mapping.project(x))), to be minimised over ``space``.

    Args:
        name: The name of the function.
        space: The space on which it is minimised.
        mapping: The mapping from the space to the small manifold on which the function is defined.
        function: The function of coordinates of the small manifold.
    """

    name: str
    space: Space
    mapping: NestedMapping
    function: Formula

    def objective(self, x: Tensor) -> Tensor:
        """Values (*batch) at points (*batch, *point); finite everywhere.

        Args:
            x: Points (*batch, *point).
        """
        return self.function.value(coordinates(self.mapping.latent, self.mapping.project(x)))

    def to(self, device: str) -> Problem:
        """The same problem with its mapping on a device.

        Args:
            device: A device of torch.
        """
        return replace(self, mapping=moved(self.mapping, self.space, device))

    @cached_property
    def _optimum(self) -> tuple[float, bool, tuple[float, ...]]:
        """Stored, or found by the search for a space that is not tabulated."""
        stored = OPTIMA.get((self.name, self.mapping.latent.specification))
        if stored is not None:
            return stored
        value, t, attained = find_optimum(self.function, self.mapping.latent)
        return value, attained, tuple(t)

    @property
    def optimal_value(self) -> float:
        """The infimum over the feasible domain."""
        return self._optimum[0]

    @property
    def optimum(self) -> Tensor | None:
        """A point that attains the optimal value; None if no point attains it."""
        _, attained, t = self._optimum
        if not attained:
            return None
        z = from_coordinates(self.mapping.latent, torch.tensor(t, dtype=torch.float64))
        return self.mapping.lift(self.mapping.latent.project(z))


def problem(name: str, space: Space, *, latent_dim: int | None = None, seed: int | None = None) -> Problem:
    """A registered problem, such as ``problem("product-of-sines", Sphere(50), latent_dim=5, seed=7)``.

    Args:
        name: A name of ``nestbo.problems.PROBLEMS``.
        space: The space on which it is minimised.
        latent_dim: The size of the small manifold on which the function is defined. A random projection leads to it.
            Without a size, the function is defined on the space itself.
        seed: The seed of the random projection.

    >>> from nestbo import Sphere
    >>> hidden = problem("rosenbrock", Sphere(50), latent_dim=5, seed=7)
    >>> hidden.mapping.latent
    Sphere(5)
    >>> hidden.objective(hidden.optimum).item() < 1e-20
    True
    """
    check_known("problem", name, PROBLEMS)
    check_space(space)
    if latent_dim is None:
        return Problem(name, space, Identity(space), PROBLEMS[name])
    if not is_whole(seed) or not -(2**63) <= seed < 2**64:
        raise ArgumentError(
            "A hidden problem draws its projection from a whole number of 64 bits, got seed="
            f"{shown(seed)}. Pass seed=0, say."
        )
    latent = smaller(space, latent_dim)
    mapping = MAPPINGS[type(space)].random(space, latent, torch.Generator().manual_seed(int(seed)))
    return Problem(name, space, mapping, PROBLEMS[name])
