"""Bayesian optimisation that ignores the geometry of its space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from nestbo.search.runs import Runs
from nestbo.search.sections import same
from nestbo.strategies.coordinates import Vectors
from nestbo.strategies.in_coordinates import InCoordinates, Reduction


@dataclass(frozen=True, repr=False)
class EuclideanBO(InCoordinates):
    """Classical Bayesian optimisation in the coordinates of the space: Euclidean BO and, on SPD matrices, Cholesky BO.

    The kernel is that of the coordinates: on the sphere the chordal distance, on SPD matrices the Frobenius distance of
    the matrices themselves or, with ``coordinates="cholesky"``, of their factors. The search is constrained to |x| = 1
    or to the bounds of eigenvalues: batched Riemannian L-BFGS on the space replaces SLSQP under the same constraints.

    Args:
        coordinates: "matrix" for the entries of a point, or "cholesky" for the factors of SPD matrices.
        acquisition: The acquisition function: "ei", "logei", "lognei" or "ucb".
        initial: The number of random points at the beginning.
        optimiser: The optimiser of the acquisition function: "lbfgs" or "slsqp".

    >>> import nestbo as nb
    >>> study = nb.Study(nb.SPD(2, eigenvalues=(0.1, 2)), EuclideanBO(coordinates="cholesky"), seed=0)
    >>> _ = study.run(lambda x: float(x.trace()), 8, progress=False)
    >>> study.best.value < 2
    True
    """

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(), cls(coordinates="cholesky")]

    def reduction(self, on: Vectors, runs: Runs) -> Reduction:
        return Reduction(on.space, same, same, runs.x)
