"""Symmetric positive definite matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError, shown
from nestbo.linalg import sym
from nestbo.manifolds.base import Chart, Manifold, check_size, told_apart
from nestbo.manifolds.box import Scale
from nestbo.manifolds.euclidean import Euclidean
from nestbo.manifolds.spd_bounds import check_aligned, check_scale, checked_bounds, log_variance, spread
from nestbo.manifolds.spd_metrics import METRICS, Metric

# Without bounds, an eigenvalue is positive above this multiple of rounding; projections go well above it.
_POSITIVE = 1.0
_SAFELY_POSITIVE = 1e4
_LARGEST_LOG = 100.0  # in the chart of all matrices
_ROUNDING = 4.0  # roundings of the largest entry for each row, to which eigenvalues are known


@dataclass(frozen=True, repr=False)
class SPD(Manifold):
    """Symmetric positive definite n×n matrices, with or without bounds on their eigenvalues.

    Geodesics may leave the bounds; ``retract`` and ``project`` never do.

    Args:
        n: The number of rows and columns.
        metric: "affine-invariant" or "log-euclidean".
        eigenvalues: The smallest and the largest allowed eigenvalue; None allows all positive eigenvalues.
        scale: How the eigenvalues of random matrices lie between the bounds: evenly on a "linear" or on a "log" scale.
            "log" suits bounds that are several powers of ten apart; "linear" hardly ever draws a small eigenvalue then.
        aligned: Whether the axes mean something, as those of a tool do for its stiffness. GaBO and HD-GaBO then begin
            with diagonal matrices. Where they learn a metric of the whole matrix for a single objective, every second
            suggestion changes the eigenvalues of the best matrix alone.
    """

    n: int
    metric: Literal["affine-invariant", "log-euclidean"] = "affine-invariant"
    eigenvalues: tuple[float, float] | None = None
    scale: Scale = "linear"
    aligned: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_size("The size of SPD matrices", self.n))
        if not isinstance(self.metric, str) or self.metric not in METRICS:
            raise ArgumentError(f"The metric of SPD is one of {', '.join(METRICS)}, got {shown(self.metric)}.")
        if self.eigenvalues is not None:
            object.__setattr__(self, "eigenvalues", checked_bounds(self.eigenvalues))
        check_scale(self.scale, self.eigenvalues)
        check_aligned(self.aligned, self.eigenvalues)

    @classmethod
    def samples(cls) -> list[Self]:
        return [
            cls(1),
            cls(3),
            cls(3, metric="log-euclidean"),
            cls(4, eigenvalues=(1e-3, 5.0)),
            cls(2, metric="log-euclidean", eigenvalues=(0.1, 10.0)),
            cls(3, eigenvalues=(0.01, 10.0), scale="log", aligned=True),
        ]

    @property
    def dim(self) -> int:
        return self.n * (self.n + 1) // 2

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.n, self.n)

    @property
    def typical_distance(self) -> float:
        """√(E d²) = √(2n·var) of two random matrices, var being that of a log-eigenvalue."""
        if self.eigenvalues is None:
            return math.sqrt(2 * self.n)
        return math.sqrt(2 * self.n * log_variance(*self.eigenvalues, self.scale))

    @property
    def injectivity_radius(self) -> float:
        return math.inf

    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        """Haar-random eigenvectors; eigenvalues uniform within the bounds on their scale, log-normal without bounds."""
        return self._composed(*self._draws(*batch, rng=rng))

    def random_each(self, count: int, rngs: list[torch.Generator]) -> Tensor:
        """The numbers are drawn one run after the other, the matrices made together."""
        vectors, values = zip(*(self._draws(count, rng=rng) for rng in rngs), strict=True)
        return self._composed(torch.stack(vectors, 1), torch.stack(values, 1))

    def _draws(self, *batch: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        kind: dict[str, Any] = {"generator": rng, "dtype": torch.float64, "device": rng.device}
        draw = torch.randn if self.eigenvalues is None else torch.rand
        return torch.randn(*batch, self.n, self.n, **kind), draw(*batch, self.n, **kind)

    def _composed(self, vectors: Tensor, values: Tensor) -> Tensor:
        values = values.exp() if self.eigenvalues is None else spread(values, *self.eigenvalues, self.scale)
        x = linalg.spectral(values, linalg.orthonormal(vectors))
        return self._positive(x) if self.scale == "log" and self._wide(x.dtype) else x

    def along_axes(self, x: Tensor) -> Tensor:
        """Diagonal matrices with the eigenvalues of others, in the order of the diagonals of those.

        Args:
            x: Matrices (…, n, n).
        """
        values, _ = linalg.eigh(x)
        order = torch.diagonal(x, dim1=-2, dim2=-1).argsort(-1)
        return torch.diag_embed(torch.empty_like(values).scatter_(-1, order, values))

    def project(self, x: Tensor) -> Tensor:
        a = sym(x) if self.eigenvalues is None else self._within_bounds(sym(x), *self.eigenvalues)
        return self._positive(a) if self._wide(x.dtype) else a

    def _within_bounds(self, a: Tensor, low: float, high: float) -> Tensor:
        values, vectors = linalg.eigh(a.detach())
        inside = ((values >= low) & (values <= high)).all(-1)[..., None, None]
        return torch.where(inside, a, linalg.matrix_function(a, linalg.clip(low, high), (values, vectors)))

    def _positive(self, a: Tensor) -> Tensor:
        """The nearest matrix that rounding leaves positive definite."""
        values, vectors = linalg.eigh(a.detach())
        size = values.abs().amax(-1, keepdim=True)
        size = torch.where(size == 0, 1, size)
        eps = torch.finfo(a.dtype).eps
        least = _POSITIVE if self.eigenvalues is None else _SAFELY_POSITIVE / 2
        inside = (values >= least * eps * size).all(-1)[..., None, None]
        eigen, size = (values / size, vectors), size.unsqueeze(-1)
        clip = linalg.clip(_SAFELY_POSITIVE * eps, math.inf)
        return torch.where(inside, a, size * linalg.matrix_function(a / size, clip, eigen))

    def _wide(self, dtype: torch.dtype) -> bool:
        """Whether there are matrices within the bounds that rounding leaves with negative eigenvalues."""
        low, high = self.eigenvalues or (0.0, 1.0)
        return low < _SAFELY_POSITIVE * torch.finfo(dtype).eps * high

    def violation(self, x: Tensor) -> Tensor:
        """Absolute, beyond the rounding of a matrix of this size."""
        values, _ = linalg.eigh(sym(x))
        size, eps = values.abs().amax(-1), torch.finfo(x.dtype).eps
        low, high = self.eigenvalues or (0.0, math.inf)
        outside = torch.maximum(low - values, values - high).amax(-1)
        apart = (x - x.mT).abs().amax((-1, -2))
        astray = torch.maximum(apart, outside) - _ROUNDING * self.n * eps * size
        if self._wide(x.dtype):  # there is no "slightly" not positive definite
            least = torch.where(size == 0, 1, size) * _POSITIVE * eps
            astray = torch.maximum(astray, 1 - values.amin(-1) / least)
        return astray.clamp(min=0)

    def fault(self, x: Tensor) -> str:
        values = torch.linalg.eigvalsh(sym(x))
        low, high = self.eigenvalues or (0.0, math.inf)
        astray = torch.maximum(low - values, values - high).amax()
        apart = (x - x.mT).abs()
        if apart.amax() > astray.clamp(min=0):
            i, j = divmod(int(apart.argmax()), self.n)
            one, other = x[i, j], x[j, i]
            return f"its entries ({i}, {j}) and ({j}, {i}) are {one:.4g} and {other:.4g}, they must be equal"
        found = f"its eigenvalues lie between {told_apart(values[0], low)} and {told_apart(values[-1], high)}"
        wanted = "be positive, by more than rounding" if self.eigenvalues is None else f"lie within {[low, high]}"
        return f"{found}, they must {wanted}"

    def to_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        return sym(v) + torch.zeros_like(x)

    @property
    def bounded(self) -> bool:
        return self.eigenvalues is not None

    def face(self, x: Tensor, descent: Tensor, slack: float) -> Callable[[Tensor], Tensor]:
        """In the eigenbasis of x, drop the block between eigenvectors that ``descent`` would push past a bound."""
        if self.eigenvalues is None:
            return super().face(x, descent, slack)
        _, vectors, bottom, top = self._reached(x, descent, slack, self.eigenvalues)
        free = ~(_both(top) | _both(bottom))
        return lambda v: sym(vectors @ (free * (vectors.mT @ v @ vectors)) @ vectors.mT)

    def _reached(
        self, x: Tensor, descent: Tensor, slack: float, bounds: tuple[float, float]
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Eigenvalues and vectors, and which of them ``descent`` would push past the lower and the upper bound.

        Among several eigenvalues at one bound, the vectors are those that ``descent`` does not mix.
        """
        values, vectors = linalg.eigh(x)
        low, high = values <= bounds[0] * (1 + slack), values >= bounds[1] * (1 - slack)
        push = vectors.mT @ descent @ vectors
        together = _both(low) | _both(high)
        # Other eigenvectors keep to themselves, told apart by large distinct entries.
        largest = push.abs().amax((-1, -2)).unsqueeze(-1)
        apart = torch.where(low | high, 0, largest * torch.arange(2, self.n + 2, device=x.device))
        _, turn = linalg.eigh(torch.where(together, push, 0) + torch.diag_embed(apart))
        values = (turn.mT @ (values.unsqueeze(-1) * turn)).diagonal(dim1=-2, dim2=-1)
        vectors = vectors @ turn
        push = (vectors.mT @ descent @ vectors).diagonal(dim1=-2, dim2=-1)
        bottom = (values <= bounds[0] * (1 + slack)) & (push < 0)
        return values, vectors, bottom, (values >= bounds[1] * (1 - slack)) & (push > 0)

    def bend(self, x: Tensor, gradient: Tensor, slack: float) -> Callable[[Tensor], Tensor]:
        """Turning a stopped eigenvector costs what its eigenvalue would have gained: −g_ss v_sf d, s stopped, f not.

        The block v_sf raises the stopped eigenvalues by v_sf d v_fs to second order, which the retraction takes away.
        """
        if self.eigenvalues is None:
            return super().bend(x, gradient, slack)
        bounds = self.eigenvalues
        values, vectors, *stopped = self._reached(x, -self.gradient(x, gradient), slack, bounds)
        g = vectors.mT @ sym(gradient) @ vectors
        gains = [self._metric.gain(bound, values, slack).unsqueeze(-2) for bound in bounds]

        def apply(v: Tensor) -> Tensor:
            v, total = vectors.mT @ v @ vectors, torch.zeros_like(v)
            for s, gain in zip(stopped, gains, strict=True):
                inside, across = _both(s), s.unsqueeze(-1) & ~s.unsqueeze(-2)
                total = total - ((inside * g) @ (across * v)) * gain
            return self.gradient(x, vectors @ (total + total.mT) @ vectors.mT)

        return apply

    @property
    def _metric(self) -> Metric:
        return METRICS[self.metric]

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return self._metric.inner(x, u, v)

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        return self._metric.exp(x, v)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        return self._metric.log(x, y)

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        y = self._metric.retract(x, v, self.eigenvalues)
        return y if self.eigenvalues is None else self.project(y)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        return self._metric.transport(x, y, v)

    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        return self._metric.sq_dist(x, y)

    def pairwise_sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        return self._metric.pairwise_sq_dist(x, y)

    def embed(self, x: Tensor) -> Tensor:
        """The matrix logarithm, for both metrics: no straight distance is affine-invariant."""
        return linalg.logm(x).flatten(-2)

    @property
    def chart(self) -> Chart:
        """Logarithms, all entries of them: beyond the bounds the point stays where it left them."""
        low, high = self.eigenvalues or (math.exp(-_LARGEST_LOG), math.exp(_LARGEST_LOG))
        inside = linalg.clip(math.log(low), math.log(high))

        def point(u: Tensor) -> tuple[Tensor, Tensor]:
            a = sym(u.unflatten(-1, self.point_shape))
            values, vectors = linalg.eigh(a.detach())
            clipped = linalg.matrix_function(a, inside, (values, vectors))
            x = linalg.matrix_function(clipped, linalg.EXP, (inside.value(values), vectors))
            return x, (a - clipped).square().sum((-1, -2))

        return Chart(Euclidean(self.n**2), point, lambda x: linalg.logm(x).flatten(-2))

    def gradient(self, x: Tensor, euclidean: Tensor) -> Tensor:
        return self._metric.gradient(x, euclidean)

    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        return self._metric.hessian(x, gradient, product, v)

    def _shape_hint(self, shape: tuple[int, ...]) -> str:
        square = len(shape) >= 2 and shape[-1] == shape[-2] > 0
        return f" For {shape[-1]}×{shape[-1]} matrices use SPD({shape[-1]})." if square else ""


def _both(which: Tensor) -> Tensor:
    """Pairs (…, n, n) of which both are among the marked ones (…, n)."""
    return which.unsqueeze(-1) & which.unsqueeze(-2)
