"""Linear subspaces."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.linalg import ScalarFunction, sym
from nestbo.manifolds.frames import Frames

# θ/sin θ and θ² as power series in w = sin²(θ/2), which principal angles keep below ½.
_TERMS = 56
_RATIO_TERMS = [4**k * math.factorial(k) ** 2 / math.factorial(2 * k + 1) for k in range(_TERMS)]
_SQUARE_TERMS = [2 / (k**2 * math.comb(2 * k, k)) * 4**k for k in range(1, _TERMS)]
_RATIO = linalg.power_series(tuple(_RATIO_TERMS))
_SQUARE = linalg.power_series((0.0, *_SQUARE_TERMS))
# The root of a Gram matrix, whose zero eigenvalues may come out slightly negative.
_ROOT = ScalarFunction(
    value=lambda m: m.clamp(min=0).sqrt(),
    taylor=lambda m, k: linalg.SQRT.taylor(m.clamp(min=0), k),
    scale=lambda m: m.clamp(min=0),
)


@dataclass(frozen=True, repr=False)
class Grassmann(Frames):
    """Gr(n, p): the p-dimensional subspaces of R^n, each represented by any orthonormal basis of it, (n, p).

    The distance is the norm of the principal angles. All bases of a subspace are the same point.

    Args:
        n: The dimension of the surrounding space.
        p: The dimension of the subspaces.
    """

    n: int
    p: int

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(2, 1), cls(5, 2), cls(5, 3), cls(8, 3)]

    @property
    def dim(self) -> int:
        return self.p * (self.n - self.p)

    @property
    def typical_distance(self) -> float:
        return math.sqrt(min(self.p, self.n - self.p)) * math.pi / 3

    @property
    def injectivity_radius(self) -> float:
        return math.pi / 2

    def to_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        return v - x @ (x.mT @ v)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """u Θ qᵀ, where y is first turned within its subspace so that xᵀy = q cos Θ qᵀ."""
        y = y @ linalg.polar(y.mT @ x)
        sine = self._off(x, y)  # u sin Θ qᵀ
        return sine @ linalg.matrix_function(self._half_angles(sine, x.mT @ y), _RATIO)

    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        half = self._half_angles(self._off(x, y), x.mT @ y)
        return linalg.matrix_function(half, _SQUARE).diagonal(dim1=-2, dim2=-1).sum(-1)

    def _off(self, x: Tensor, y: Tensor) -> Tensor:
        """The part of y outside the span of x, from the difference so that it is exactly 0 where y = x."""
        return self.to_tangent(x, y - x)

    def _half_angles(self, sine: Tensor, cross: Tensor) -> Tensor:
        """The matrix with eigenvalues sin²(θ/2) = sin²θ / (2 + 2 cos θ), θ the principal angles."""
        cosine = linalg.matrix_function(sym(cross.mT @ cross), _ROOT)
        eye = torch.eye(self.p, dtype=sine.dtype, device=sine.device)
        return sym(torch.linalg.solve_ex(2 * (eye + cosine), sine.mT @ sine).result)

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        """The span of x + v, in the basis that a Cholesky factorisation gives."""
        moved = x + v
        root, failed = torch.linalg.cholesky_ex(moved.mT @ moved)
        root = torch.where((failed != 0)[..., None, None], torch.nan, root)
        return torch.linalg.solve_triangular(root.mT, moved, upper=True, left=False)

    def embed(self, x: Tensor) -> Tensor:
        """The projector onto the subspace, scaled so that small distances agree with the geodesic one."""
        return (x @ x.mT).flatten(-2) / math.sqrt(2)

    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        return self.to_tangent(x, product) - v @ (x.mT @ gradient)
