"""RPM-BO (Nguyen and Tran 2024, arXiv 2412.16554) where the objective is known to depend on a small sphere.

A first Gaussian process learns the map to the small sphere. A second one sees a random projection of what the map
gives, and is searched.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError
from nestbo.experiment.rivals.base import Rival
from nestbo.experiment.rivals.posterior import Marginal, Posterior
from nestbo.experiment.rivals.stock import fitted, maximised
from nestbo.manifolds import Euclidean, ManifoldProduct, Space, Sphere, Stiefel
from nestbo.manifolds.base import check_size
from nestbo.optimise import lbfgs

_ROOM = 5  # dimensions of the random projection beyond those of the small sphere: the authors take 15 for S^10
_STARTS, _STEPS = 4, 50  # of the fit of the map
_LEAST_BETA, _SHAPE, _RATE = 0.21, 2.0, 0.15  # of β, and of its gamma prior: the authors'
_LEAST_NOISE = 1e-6  # relative to the signal


@dataclass(frozen=True, repr=False, kw_only=True)
class RPM(Rival):
    """RPM-BO on the vectors of a sphere's natural chart. It is told the dimension of the small sphere, ``sphere``.

    With the map h and a matrix A of d + 5 random orthonormal rows, which is the same in all steps, the second process
    sees A h(x). Its LogEI at A h(Aᵀz) is maximised over z, and h(Aᵀz) is the next point.
    """

    sphere: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size("sphere", self.sphere)

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(sphere=1)]

    def check(self, space: Space) -> None:
        if not isinstance(space, Sphere) or self.chart != "natural" or self.sphere >= space.n:
            wanted = f"a sphere of more than {self.sphere} dimensions and its natural chart"
            raise ArgumentError(f"RPM-BO needs {wanted}, got {space} and the {self.chart} chart.")

    def next(self, u: Tensor, y: Tensor, seed: int) -> Tensor:
        from botorch.acquisition import LogExpectedImprovement
        from botorch.utils.sampling import manual_seed

        x, z = 2 * u - 1, (y - y.mean()) / y.std().clamp(min=1e-12)
        to_sphere = learned(x, z, self.sphere, torch.Generator().manual_seed(seed))
        rows = _random_rows(x, min(self.sphere + _ROOM, x.shape[-1] - 1))
        corner = torch.full((len(rows),), math.sqrt(len(rows)), dtype=x.dtype)
        with manual_seed(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that begin again: BoTorch goes on by itself
            model = _Through(fitted("gp", _in_cube(to_sphere.image(x) @ rows.mT), -y), to_sphere, rows)
            found = maximised(LogExpectedImprovement(model, best_f=(-y).max()), len(rows), -corner, corner)
        return _in_cube(linalg.unit(to_sphere.image(found.unsqueeze(0) @ rows)))[0]


@dataclass(frozen=True)
class Map:
    """h(x) = W(c + n(Wᵀx − c)) with n(v) = v/|v|: to the unit sphere around Wc in the span of W.

    W (…, size, d + 1) is orthonormal, and c (…, 1, d + 1). The authors' sphere has a radius, too, which a kernel of
    distances cannot tell from β.
    """

    basis: Tensor
    centre: Tensor

    def directions(self, x: Tensor) -> Tensor:
        """n(Wᵀx − c) (…, n, d + 1) of vectors x (n, size)."""
        return linalg.unit(x @ self.basis - self.centre)

    def image(self, x: Tensor) -> Tensor:
        """h(x) (…, n, size)."""
        return (self.centre + self.directions(x)) @ self.basis.mT


def learned(x: Tensor, z: Tensor, d: int, rng: torch.Generator) -> Map:
    """The map to a sphere S^d with the largest posterior density, given standardised values z (n,) at x (n, size).

    The process on the sphere has the kernel exp(−β|h(x) − h(x′)|²), a relative noise, and the best scale for both.
    """
    parts = ManifoldProduct(Stiefel(x.shape[-1], d + 1), Euclidean(d + 3))

    def loss(point: Tensor) -> Tensor:
        basis, others = parts.split(point)
        beta, noise = _LEAST_BETA + others[..., -2].exp(), _LEAST_NOISE + others[..., -1].exp()
        directions = Map(basis, others[..., None, : d + 1]).directions(x)
        square, half_log_determinant = _whitened(directions, beta, noise, z)
        prior = (_SHAPE - 1) * beta.log() - _RATE * beta
        return len(z) / 2 * square.log() + half_log_determinant - prior

    found = lbfgs(loss, parts, parts.random(_STARTS, rng=rng), max_iterations=_STEPS)
    basis, others = parts.split(found.point[found.value.nan_to_num(nan=math.inf).argmin()])
    return Map(basis, others[None, : d + 1])


def _whitened(directions: Tensor, beta: Tensor, noise: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """zᵀK⁻¹z and ½ log |K| (…) with K = exp(−β|n − n′|²) + noise·I."""
    apart = (2 - 2 * directions @ directions.mT).clamp(min=0)
    gram = torch.exp(-beta[..., None, None] * apart)
    root, _ = torch.linalg.cholesky_ex(gram + torch.diag_embed(noise.unsqueeze(-1).expand(gram.shape[:-1])))
    white = torch.linalg.solve_triangular(root, z.unsqueeze(-1), upper=False)
    return white.square().sum((-2, -1)), root.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class _Through(torch.nn.Module):
    """The second process at A h(Aᵀz), as BoTorch's analytic acquisition functions want it."""

    num_outputs = 1

    def __init__(self, model: Any, to_sphere: Map, rows: Tensor) -> None:
        super().__init__()
        self.inner, self.to_sphere, self.rows = Posterior(model), to_sphere, rows

    def posterior(self, X: Tensor, posterior_transform: None = None) -> Marginal:  # noqa: N803 (BoTorch calls it X)
        """The marginal distributions at z = X (b, 1, d + 5)."""
        return self.inner.posterior(_in_cube(self.to_sphere.image(X @ self.rows) @ self.rows.mT))


def _random_rows(x: Tensor, count: int) -> Tensor:
    """Orthonormal rows (count, size), drawn from the first point of a trial, so that all its steps have the same."""
    seed = int.from_bytes(x[0].numpy().tobytes()[:8], "little") % 2**63
    return Stiefel(x.shape[-1], count).random(rng=torch.Generator().manual_seed(seed)).mT


def _in_cube(v: Tensor) -> Tensor:
    return (v + 1) / 2
