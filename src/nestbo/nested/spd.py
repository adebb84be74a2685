"""Nested SPD matrices: the paper's projection WᵀXW, and the same idea on logarithms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError, ShapeError
from nestbo.linalg import sym
from nestbo.manifolds import SPD, Euclidean, ManifoldProduct, Space
from nestbo.nested.base import NestedMapping
from nestbo.optimise import lbfgs

_BITS = 28  # of a number that a search finds
_FEW = 64  # matrices, for which sixteen places are tried at once instead of one: fewer operations of more work
_ROUNDING = 1e-13  # relative to the upper bound: an eigenvalue at a bound is within it


class _Matrices(NestedMapping):
    """What both mappings share: a basis W (D, d) and the space of large matrices."""

    space: SPD

    def __post_init__(self) -> None:
        rows, columns = self.basis.shape[-2:] if self.basis.ndim > 1 else (0, 0)
        if rows != self.space.n or not 1 <= columns <= rows:
            raise ShapeError(
                f"The basis of nested SPD matrices is ({self.space.n}, d) with 1 ≤ d ≤ {self.space.n}, "
                f"got {tuple(self.basis.shape)}."
            )

    @property
    def ambient(self) -> SPD:
        return self.space

    @property
    def latent(self) -> SPD:
        return replace(self.space, n=self.basis.shape[-1])

    @classmethod
    def random(cls, ambient: Space, latent: Space, rng: torch.Generator) -> Self:
        if not isinstance(ambient, SPD) or not isinstance(latent, SPD) or latent.n > ambient.n:
            raise ArgumentError(f"Nested matrices go from SPD(D) to SPD(d) with d ≤ D, got {ambient} to {latent}.")
        return cls.at(linalg.random_frames(ambient.n, latent.n, rng=rng), ambient)

    @property
    def _frame(self) -> Tensor:
        """W, as it stands in front of and behind points."""
        return self.basis if self.basis.ndim == 2 else self.basis.unsqueeze(-3)

    def _within_bounds(self, lift: Callable[[Tensor], Tensor], batch: Tensor) -> Tensor:
        """lift(t) for the largest t ∈ [0, 1] that keeps the bounds, per element (…); t = 0 always does."""
        bounds = self.space.eigenvalues
        t = torch.ones(batch.shape[:-2], dtype=batch.dtype, device=batch.device)
        if bounds is None:
            return lift(t)

        slack = _ROUNDING * bounds[1]

        def inside(t: Tensor) -> Tensor:
            values, _ = linalg.eigh(lift(t))
            return ((values >= bounds[0] - slack) & (values <= bounds[1] + slack)).all(-1)

        with torch.no_grad():
            low, width = torch.where(inside(t), t, 0), t
            bits = 4 if low.numel() <= _FEW else 1
            places = torch.arange(1, 2**bits, dtype=t.dtype, device=t.device)[(..., *[None] * low.ndim)]
            for _ in range(_BITS // bits):
                width = width / 2**bits
                tried = inside((low + width * places).clamp(max=1))
                reached = tried.long().cumprod(0).sum(0)  # up to the first that is outside
                low = (low + width * reached).clamp(max=1)
        return lift(low)


@dataclass(frozen=True, eq=False)
class NestedSPD(_Matrices):
    """project(X) = WᵀXW and lift(Z) = W Z Wᵀ + P + C + Cᵀ with C = W Z^½ K P^½.

    ``basis`` is W, (*runs, D, d). ``complement`` is P = V B Vᵀ, (D, D) or (*runs, 1, D, D), with V any completion of W
    and B positive definite: VVᵀ, clipped to the bounds, unless given. ``coupling`` is K, (d, D) or (*runs, 1, d, D),
    with K W = 0 and norm < 1: zero unless given.
    The lift is always positive definite. If the space has bounds, K is shortened until the lift respects them.
    """

    basis: Tensor
    space: SPD
    complement: Tensor | None = None
    coupling: Tensor | None = None

    @classmethod
    def at(cls, basis: Tensor, ambient: Space) -> Self:
        return cls(basis, ambient)  # type: ignore[arg-type]

    def project(self, x: Tensor) -> Tensor:
        return sym(self._frame.mT @ x @ self._frame)

    def lift(self, z: Tensor) -> Tensor:
        rest = self._complement
        blocks = sym(self._frame @ z @ self._frame.mT + rest)
        if self.coupling is None:
            return blocks
        values, vectors = linalg.eigh(rest)
        root = linalg.spectral(values.clamp(min=0).sqrt(), vectors)
        cross = self._frame @ linalg.sqrtm(z) @ self.coupling @ root
        return self._within_bounds(lambda t: blocks + t[..., None, None] * (cross + cross.mT), blocks)

    def lift_near(self, z: Tensor, x: Tensor) -> Tensor:
        """The lift with the complement and the coupling of x."""
        if self.basis.shape[-1] == self.space.n:
            return self.lift(z)
        rest = linalg.completion(self._frame)
        b, inside = sym(rest.mT @ x @ rest), self.project(x)
        k = linalg.inverse_sqrtm(inside) @ (self._frame.mT @ x @ rest) @ linalg.inverse_sqrtm(b)
        return replace(self, complement=sym(rest @ b @ rest.mT), coupling=k @ rest.mT).lift(z)

    @property
    def _complement(self) -> Tensor:
        if self.complement is not None:
            return self.complement
        low, high = self.space.eigenvalues or (1.0, 1.0)
        rest = linalg.completion(self._frame)
        return min(max(1.0, low), high) * rest @ rest.mT

    def fit_lift(self, x: Tensor, *, max_iterations: int = 1000) -> Self:
        """The lift nearest to matrices x (*runs, n, D, D) in the sense of the paper's eq. 1.

        B and K are free parameters: B runs over SPD matrices within the bounds, K = (1 + MMᵀ)^{−½} M over all M. The
        constraint WᵀV = 0 of the paper is not needed, since any V will do. Start: the mean of the data's own B and M.
        """
        d, size = self.basis.shape[-1], self.space.n - self.basis.shape[-1]
        if size == 0:
            return self
        rest, frame = replace(self.space, n=size), linalg.completion(self._frame)
        chart, turn = rest.chart, torch.cat([self._frame, frame], -1)
        both = ManifoldProduct(chart.flat, Euclidean(d * size))
        turned = (turn.mT @ x @ turn).reshape(-1, *x.shape[-3:])

        def loss(p: Tensor, turned: Tensor) -> Tensor:
            u, m = both.split(p.unsqueeze(-2))
            b, beyond = chart.point(u)
            lifted = _block(turned[..., :d, :d], b, _contraction(m.unflatten(-1, (d, size))))
            return self.space.sq_dist(turned, lifted).mean(-1) + beyond.squeeze(-1)

        own, couplings = _own_parameters(turned, d, rest)
        start = both.join([chart.coordinates(own), couplings])
        found = lbfgs(loss, both, start, data=(turned,), tolerance=1e-8, max_iterations=max_iterations).point
        runs = x.shape[:-3]
        u, m = both.split(found.reshape(*runs, 1, -1) if runs else found.flatten())
        b = rest.project(chart.point(u)[0])
        coupling = _contraction(m.unflatten(-1, (d, size))) @ frame.mT
        return replace(self, complement=sym(frame @ b @ frame.mT), coupling=coupling)


@dataclass(frozen=True, eq=False)
class NestedLogSPD(_Matrices):
    """project(X) = exp(Wᵀ log(X) W) and lift(Z) = exp(W log(Z) Wᵀ + H): exact nesting for the log-Euclidean metric.

    ``basis`` is W, (*runs, D, d). ``offset`` is H, (D, D) or (*runs, 1, D, D), symmetric without a block WᵀHW: zero,
    clipped to the bounds, unless given. If the space has bounds, H is moved towards the default
    until the lift respects them.
    """

    basis: Tensor
    space: SPD
    offset: Tensor | None = None

    @classmethod
    def at(cls, basis: Tensor, ambient: Space) -> Self:
        return cls(basis, ambient)  # type: ignore[arg-type]

    def project(self, x: Tensor) -> Tensor:
        return self.project_log(linalg.logm(x))

    def project_log(self, log: Tensor) -> Tensor:
        """The projection of a matrix whose logarithm is known."""
        return linalg.expm(sym(self._frame.mT @ log @ self._frame))

    def lift(self, z: Tensor) -> Tensor:
        inside, default = sym(self._frame @ linalg.logm(z) @ self._frame.mT), self._default
        away = torch.zeros_like(default) if self.offset is None else self.offset - default
        return self._within_bounds(lambda t: linalg.expm(inside + default + t[..., None, None] * away), inside)

    @property
    def _default(self) -> Tensor:
        low, high = self.space.eigenvalues or (1.0, 1.0)
        rest = linalg.completion(self._frame)
        value = torch.tensor(min(max(1.0, low), high), dtype=rest.dtype)
        return value.log().to(rest) * rest @ rest.mT

    def lift_near(self, z: Tensor, x: Tensor) -> Tensor:
        """The lift with the offset of x."""
        return replace(self, offset=self._outside(linalg.logm(x))).lift(z)

    def fit_lift(self, x: Tensor, *, max_iterations: int = 1000) -> Self:
        """The lift nearest to matrices x (*runs, n, D, D) in the log-Euclidean metric: H is the mean of the data's."""
        offset = self._outside(linalg.logm(x).mean(-3, keepdim=True))
        return replace(self, offset=offset.squeeze(-3) if x.ndim == 3 else offset)

    def _outside(self, log: Tensor) -> Tensor:
        inside = self._frame @ self._frame.mT
        return sym(log - inside @ log @ inside)


def _contraction(m: Tensor) -> Tensor:
    """(1 + MMᵀ)^{−½} M, which runs over all matrices of norm < 1."""
    eye = torch.eye(m.shape[-2], dtype=m.dtype, device=m.device)
    return linalg.inverse_sqrtm(eye + m @ m.mT) @ m


def _block(z: Tensor, b: Tensor, k: Tensor) -> Tensor:
    """[z, z^½ k b^½; ·, b], positive definite for |k| < 1."""
    cross = linalg.sqrtm(z) @ k @ linalg.sqrtm(b)
    z, b = (part.expand(*cross.shape[:-2], -1, -1) for part in (z, b))
    upper, lower = torch.cat([z, cross], -1), torch.cat([cross.mT, b], -1)
    return torch.cat([upper, lower], -2)


def _own_parameters(x: Tensor, d: int, rest: SPD) -> tuple[Tensor, Tensor]:
    """Means over matrices (…, n, D, D) of their own B and of M = (1 − KKᵀ)^{−½} K, where K = Z^{−½} C B^{−½}."""
    upper, lower = x[..., :d, :], x[..., d:, :]
    z, c, b = upper[..., :d], upper[..., d:], lower[..., d:]
    k = linalg.inverse_sqrtm(z) @ c @ linalg.inverse_sqrtm(b)
    eye = torch.eye(d, dtype=x.dtype, device=x.device)
    m = linalg.inverse_sqrtm((1 + 1e-6) * eye - k @ k.mT) @ k
    mean = linalg.expm(linalg.logm(b).mean(-3))
    return rest.project(mean), m.mean(-3).flatten(-2)
