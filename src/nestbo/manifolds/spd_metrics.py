"""The two metrics of symmetric positive definite matrices."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.linalg import EXP, LOG, LOG1P, sym


class Metric(ABC):
    """Those operations of a ``Manifold`` that depend on the metric; the base class documents them."""

    @abstractmethod
    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor: ...
    @abstractmethod
    def exp(self, x: Tensor, v: Tensor) -> Tensor: ...
    @abstractmethod
    def log(self, x: Tensor, y: Tensor) -> Tensor: ...
    @abstractmethod
    def retract(self, x: Tensor, v: Tensor, bounds: tuple[float, float] | None) -> Tensor: ...
    @abstractmethod
    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor: ...
    @abstractmethod
    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor: ...
    @abstractmethod
    def pairwise_sq_dist(self, x: Tensor, y: Tensor) -> Tensor: ...
    @abstractmethod
    def gain(self, bound: float, values: Tensor, slack: float) -> Tensor:
        """The d of ``SPD.bend`` for an eigenvalue at ``bound`` next to others."""

    @abstractmethod
    def gradient(self, x: Tensor, euclidean: Tensor) -> Tensor: ...
    @abstractmethod
    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor: ...


class AffineInvariant(Metric):
    """⟨u, v⟩ = tr(x⁻¹ u x⁻¹ v), unchanged under x ↦ a x aᵀ. With x = l lᵀ, everything happens at l⁻¹ · l⁻ᵀ."""

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        root = _cholesky(x)
        return linalg.inner(_whiten(root, u), _whiten(root, v), axes=2)

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        root = _cholesky(x)
        return sym(root @ linalg.expm(_whiten(root, v)) @ root.mT)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        root = _cholesky(x)
        return sym(root @ _log_ratio(root, x, y) @ root.mT)

    def retract(self, x: Tensor, v: Tensor, bounds: tuple[float, float] | None) -> Tensor:
        """X + v + ½ v x⁻¹ v, which is at least x/2 and so positive definite for every v."""
        half = torch.linalg.solve_triangular(_cholesky(x), v, upper=False)
        return sym(x + v + half.mT @ half / 2)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        """The isometry v ↦ a v aᵀ with a = l_y l_x⁻¹, cheaper than parallel transport."""
        root = _cholesky(y)
        return sym(root @ _whiten(_cholesky(x), v) @ root.mT)

    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        return linalg.sum_of_squared_logs(_whiten(_cholesky(x), y - x))

    def pairwise_sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        if y is x:
            return self._among(x)
        x, y = x.unsqueeze(-3), y.unsqueeze(-4)
        return linalg.sum_of_squared_logs(_whiten(_cholesky(x), y - x))

    def _among(self, x: Tensor) -> Tensor:
        """Those of n points from each other: each pair once, because eigenvalues take most of the time."""
        n = x.shape[-3]
        rows, columns = torch.triu_indices(n, n, 1, device=x.device)
        difference = x[..., columns, :, :] - x[..., rows, :, :]
        pairs = linalg.sum_of_squared_logs(_whiten(_cholesky(x)[..., rows, :, :], difference))
        above = pairs.new_zeros(*x.shape[:-2], n)
        above[..., rows, columns] = pairs
        return above + above.mT

    def gain(self, bound: float, values: Tensor, slack: float) -> Tensor:
        """1/(b − λ) by perturbation, and 1/(2λ) by the last term of the retraction."""
        return 1 / _apart(bound, values, slack) + 1 / (2 * values)

    def gradient(self, x: Tensor, euclidean: Tensor) -> Tensor:
        return sym(x @ sym(euclidean) @ x)

    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        return sym(x @ sym(product) @ x) + sym(v @ sym(gradient) @ x)


class LogEuclidean(Metric):
    """The flat metric that log: SPD(n) → Sym(n) pulls back from the Frobenius inner product."""

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return linalg.inner(linalg.frechet(x, u, LOG), linalg.frechet(x, v, LOG), axes=2)

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        return linalg.expm(linalg.logm(x) + linalg.frechet(x, v, LOG))

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        start = linalg.logm(x)
        return linalg.frechet(start, linalg.logm(y) - start, EXP)

    def retract(self, x: Tensor, v: Tensor, bounds: tuple[float, float] | None) -> Tensor:
        """Exp; with bounds on the eigenvalues, a long step stops at them before it overflows."""
        s = linalg.logm(x) + linalg.frechet(x, v, LOG)
        if bounds is not None:
            s = linalg.matrix_function(s, linalg.clip(*map(math.log, bounds)))
        return linalg.expm(s)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        """Parallel transport, the same along every path."""
        return linalg.frechet(linalg.logm(y), linalg.frechet(x, v, LOG), EXP)

    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        difference = linalg.logm(x) - linalg.logm(y)
        return linalg.inner(difference, difference, axes=2)

    def pairwise_sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        difference = linalg.logm(x).unsqueeze(-3) - linalg.logm(y).unsqueeze(-4)
        return linalg.inner(difference, difference, axes=2)

    def gain(self, bound: float, values: Tensor, slack: float) -> Tensor:
        """B·log(b/λ) / (b − λ)², by perturbation of the logarithm."""
        apart = _apart(bound, values, slack)
        return -bound * torch.log1p(-apart / bound) / apart**2

    def gradient(self, x: Tensor, euclidean: Tensor) -> Tensor:
        s = linalg.logm(x)
        return linalg.frechet(s, linalg.frechet(s, sym(euclidean), EXP), EXP)

    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        """The ordinary Hessian of f(exp s) at s = log x, carried back by the differential of exp."""
        s = linalg.logm(x)
        bend = linalg.second_frechet(s, sym(gradient), linalg.frechet(x, v, LOG), EXP)
        return linalg.frechet(s, linalg.frechet(s, sym(product), EXP) + bend, EXP)


METRICS: dict[str, Metric] = {"affine-invariant": AffineInvariant(), "log-euclidean": LogEuclidean()}


def _apart(bound: float, values: Tensor, slack: float) -> Tensor:
    """b − λ, at least ``slack`` in relative size."""
    difference = bound - values
    return torch.where(difference < 0, -1, 1) * difference.abs().clamp(min=slack * bound)


def _cholesky(x: Tensor) -> Tensor:
    """The lower factor; a matrix that is not positive definite gives NaN and leaves the others alone."""
    root, failed = torch.linalg.cholesky_ex(x)
    return torch.where((failed != 0)[..., None, None], torch.nan, root)


def _whiten(root: Tensor, v: Tensor) -> Tensor:
    """l⁻¹ v l⁻ᵀ."""
    left = torch.linalg.solve_triangular(root, v, upper=False)
    return sym(torch.linalg.solve_triangular(root, left.mT, upper=False))


def _log_ratio(root: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """log(l⁻¹ y l⁻ᵀ) from the difference y − x: exactly 0 where y = x, and with all digits nearby."""
    return linalg.matrix_function(_whiten(root, y - x), LOG1P)
