"""Sequential least squares programming, from scipy, under the constraints of a space.

It minimises from one start after the other, and is kept to compare with: the batched methods are faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.interrupts import load
from nestbo.linalg import sym
from nestbo.manifolds import SPD, Box, Manifold, Sphere
from nestbo.manifolds.euclidean import Cuboid
from nestbo.optimise.batch import Batch, Function, Result, check_options, stationarity
from nestbo.optimise.state import Reason

_REASONS = {0: Reason.CONVERGED, 9: Reason.MAX_ITERATIONS}  # of scipy's codes; all others are kinds of failure
_SMALLEST = 1e-6  # eigenvalue of matrices without bounds


def slsqp(
    f: Function,
    manifold: Manifold,
    start: Any,
    *,
    data: tuple[Tensor, ...] = (),
    tolerance: float = 1e-9,
    max_iterations: int = 200,
) -> Result:
    """Minimise f from every start, one after the other, by SLSQP (Kraft 1988): on a Sphere, on SPD or in a Box.

    ``f`` and ``data`` are as in ``trust_region``; ``tolerance`` is that of values of f. Unit vectors are constrained to
    |x| = 1, and f is asked about vectors beside the sphere. Matrices are vectors of their entries, their smallest and
    largest eigenvalues are constrained, and outside the bounds f is that of the projection. A start that SLSQP does not
    improve is kept.
    """
    check_options(tolerance=tolerance, max_iterations=max_iterations)
    batch, vectors = Batch(f, manifold, start, data), _vectors(manifold)
    x, shape = batch.start.clone(), batch.shape
    iterations = np.zeros(x.shape[:2], dtype=int)
    reason = np.empty(x.shape[:2], dtype=object)
    for at in np.ndindex(reason.shape):
        found = _minimise(batch, vectors, at, {"ftol": tolerance, "maxiter": max_iterations})
        x[at] = manifold.project(vectors.point(x.new_tensor(found.x)))
        iterations[at], reason[at] = found.nit, _REASONS.get(found.status, Reason.STALLED).words
    better = batch.value(x, data) < batch.value(batch.start, data)
    x = torch.where(better[(..., *[None] * len(manifold.point_shape))], x, batch.start)
    _, value, euclidean = batch.derivatives(x, data)
    norm = stationarity(manifold, x, manifold.gradient(x, euclidean))
    return Result(
        point=x.reshape(*shape, *manifold.point_shape),
        value=value.reshape(shape),
        gradient_norm=norm.reshape(shape),
        iterations=torch.from_numpy(iterations).reshape(shape),
        reason=reason.astype(str).reshape(shape),
    )


@dataclass(frozen=True)
class _Vectors:
    """Points as vectors, and the constraints that make vectors points, as scipy wants them."""

    vector: Callable[[Tensor], Tensor]
    point: Callable[[Tensor], Tensor]
    constraints: tuple[dict[str, Any], ...] = ()
    bounds: Any = None


def _minimise(batch: Batch, vectors: _Vectors, at: tuple[int, ...], options: dict[str, Any]) -> Any:
    """From one start, at (row, place in it)."""
    row, place = at
    data = tuple(part[row : row + 1] for part in batch.data)

    load("scipy.optimize")
    from scipy.optimize import minimize  # a third of a second to import

    def value(v: np.ndarray[Any, Any]) -> tuple[float, np.ndarray[Any, Any]]:
        leaf = batch.start.new_tensor(v).requires_grad_()
        with torch.enable_grad():
            x = batch.start[row : row + 1].clone()
            x[0, place] = vectors.point(leaf)
            here = batch.evaluate(batch.f, x, data)[0, place]
            (gradient,) = torch.autograd.grad(here, leaf)
        return here.item(), gradient.numpy(force=True)

    first = vectors.vector(batch.start[at]).numpy(force=True)
    limits: dict[str, Any] = {"bounds": vectors.bounds, "constraints": vectors.constraints}
    return minimize(value, first, jac=True, method="SLSQP", options=options, **limits)


def _vectors(manifold: Manifold) -> _Vectors:
    if isinstance(manifold, Sphere):
        unit = {"type": "eq", "fun": lambda v: v @ v - 1, "jac": lambda v: 2 * v}
        return _Vectors(lambda x: x, lambda v: v, (unit,))
    if isinstance(manifold, Box):
        return _Vectors(manifold.unit, manifold.at, bounds=[(0.0, 1.0)] * manifold.dim)
    if isinstance(manifold, Cuboid):
        return _Vectors(lambda x: x, lambda v: v, bounds=list(zip(manifold.lower, manifold.upper, strict=True)))
    if isinstance(manifold, SPD):
        return _matrices(manifold)
    raise ArgumentError(f"SLSQP is for a Sphere, SPD matrices or a Box, got {manifold}. Use lbfgs.")


def _matrices(manifold: SPD) -> _Vectors:
    """The entries of symmetric matrices, those beside the diagonal times √2, so that inner products agree."""
    rows, columns = torch.tril_indices(manifold.n, manifold.n)
    beside = torch.where(rows == columns, 1.0, math.sqrt(2))
    low, high = manifold.eigenvalues or (_SMALLEST, math.inf)

    def vector(x: Tensor) -> Tensor:
        return sym(x)[..., rows, columns] * beside.to(x)

    def matrix(v: Tensor) -> Tensor:
        lower = v.new_zeros(manifold.n, manifold.n).index_put((rows, columns), v / beside.to(v))
        return lower + lower.tril(-1).mT

    def eigenvalue(which: int, sign: float, bound: float) -> dict[str, Any]:
        """±λ ≥ ±bound, for the smallest (0) or the largest (−1) eigenvalue λ."""

        def slope(v: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            u = torch.linalg.eigh(matrix(torch.from_numpy(v))).eigenvectors[:, which]
            return sign * vector(torch.outer(u, u)).numpy()

        def distance(v: np.ndarray[Any, Any]) -> float:
            return sign * (torch.linalg.eigvalsh(matrix(torch.from_numpy(v)))[which].item() - bound)

        return {"type": "ineq", "fun": distance, "jac": slope}

    limits = [eigenvalue(0, 1.0, low)] + [eigenvalue(-1, -1.0, high)] * math.isfinite(high)
    return _Vectors(vector, lambda v: manifold.project(matrix(v)), tuple(limits))
