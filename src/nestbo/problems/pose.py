"""Every problem by its name: the functions of coordinates, and those that were held out."""

from __future__ import annotations

from nestbo.manifolds import Space
from nestbo.problems.base import Problem, problem
from nestbo.problems.functions import PROBLEMS
from nestbo.problems.held_out import HELD_OUT
from nestbo.problems.posed import Posed
from nestbo.specification import check_known


def pose(name: str, space: Space, *, latent_dim: int | None = None, seed: int = 0) -> Problem | Posed:
    """The problem of a name on a space; a seed draws what hides it.

    >>> from nestbo import Sphere
    >>> pose("linear", Sphere(50), seed=7).optimal_value
    -1.0
    """
    check_known("problem", name, {**PROBLEMS, **HELD_OUT})
    if name in HELD_OUT:
        return HELD_OUT[name](space, latent_dim, seed)
    return problem(name, space, latent_dim=latent_dim, seed=seed)
