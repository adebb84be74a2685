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
from nestbo.experiment.rivals.stock import fitted, maximised, process
from nestbo.manifolds import Euclidean, ManifoldProduct, Space, Sphere, Stiefel
from nestbo.manifolds.base import check_size
from nestbo.optimise import lbfgs

_ROOM = 5  # dimensions of the random projection beyond those of the small sphere: the authors take 15 for S^10
_DRAWN, _STARTS, _STEPS = 20, 2, 100  # of the fit of the map: random points, those that a descent begins at, its steps
_LEAST_BETA, _SHAPE, _RATE = 0.21, 2.0, 0.15  # of β, and of its gamma prior: the authors'
_LEAST_NOISE = 1e-6  # relative to the signal


@dataclass(frozen=True, repr=False, kw_only=True)
class RPM(Rival):
    """RPM-BO on the vectors of a sphere's natural chart. It is told the dimension d of the small sphere.

    With the map h and a matrix A of d + 5 random orthonormal rows, which is the same in all steps, the second process
    sees A h(x). Its LogEI at A h(Aᵀz) is maximised over z. The next point is the unit vector x with h(x) = h(Aᵀz).
    """

    latent_dim: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size("latent_dim", self.latent_dim)

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(latent_dim=1)]

    def check(self, space: Space) -> None:
        if not isinstance(space, Sphere) or self.chart != "natural" or self.latent_dim >= space.n:
            wanted = f"a sphere of more than {self.latent_dim} dimensions and its natural chart"
            raise ArgumentError(f"RPM-BO needs {wanted}, got {space} and the {self.chart} chart.")

    def next(self, u: Tensor, y: Tensor, seed: int) -> Tensor:
        from botorch.acquisition import LogExpectedImprovement
        from botorch.utils.sampling import manual_seed

        x, z = 2 * u - 1, (y - y.mean()) / y.std().clamp(min=1e-12)
        to_sphere = learned(x, z, self.latent_dim, torch.Generator().manual_seed(seed))
        rows = _random_rows(x, min(self.latent_dim + _ROOM, x.shape[-1] - 1))
        corner = torch.full((len(rows),), math.sqrt(len(rows)), dtype=x.dtype)
        with manual_seed(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that begin again: BoTorch goes on by itself
            model = _Through(fitted(process("gp", _seen(to_sphere, x, rows), -y)), to_sphere, rows)
            found = maximised(LogExpectedImprovement(model, best_f=(-y).max()), len(rows), -corner, corner)
        return _in_cube(to_sphere.point(found.unsqueeze(0) @ rows))[0]


@dataclass(frozen=True)
class Map:
    """h(x) = W(c + n(Wᵀx − c)) with n(v) = v/|v|: to the unit sphere around Wc in the span of W.

    W (…, size, d + 1) is orthonormal. c (…, 1, d + 1) lies in the unit ball, so that each point of the small sphere is
    the image of a unit vector. The authors' sphere has a radius, too, which a kernel of distances cannot tell from β.
    """

    basis: Tensor
    centre: Tensor

    def directions(self, x: Tensor) -> Tensor:
        """n(Wᵀx − c) (…, n, d + 1) of vectors x (n, size)."""
        return linalg.unit(x @ self.basis - self.centre)

    def point(self, x: Tensor) -> Tensor:
        """The unit vectors in the span of W with the same images as x (…, n, size): W(c + t n) with t > 0."""
        n = self.directions(x)
        along = (n * self.centre).sum(-1, keepdim=True)
        room = 1 - self.centre.square().sum(-1, keepdim=True)
        t = (along.square() + room).sqrt() - along
        return (self.centre + t * n) @ self.basis.mT


def learned(x: Tensor, z: Tensor, d: int, rng: torch.Generator) -> Map:
    """The map to a sphere S^d with the largest posterior density, given standardised values z (n,) at x (n, size).

    The process on the sphere has the kernel exp(−β|h(x) − h(x′)|²), a relative noise, and the best scale for both.
    """
    parts = ManifoldProduct(Stiefel(x.shape[-1], d + 1), Euclidean(d + 3))

    def parameters(point: Tensor) -> tuple[Map, Tensor, Tensor]:
        """The map, β (…) and the noise (…)."""
        basis, others = parts.split(point)
        beta, noise = others[..., d + 1 :].exp().unbind(-1)
        return Map(basis, _inside(others[..., None, : d + 1])), _LEAST_BETA + beta, _LEAST_NOISE + noise

    def loss(point: Tensor) -> Tensor:
        to_sphere, beta, noise = parameters(point)
        square, half_log_determinant = _whitened(to_sphere.directions(x), beta, noise, z)
        prior = (_SHAPE - 1) * beta.log() - _RATE * beta
        return len(z) / 2 * square.log() + half_log_determinant - prior

    drawn = parts.random(_DRAWN, rng=rng)
    starts = drawn[_order(loss(drawn))[:_STARTS]]
    found = lbfgs(loss, parts, starts, max_iterations=_STEPS)
    return parameters(found.point[_order(found.value)[0]])[0]


def _order(values: Tensor) -> Tensor:
    """Indices from the least value to the largest; one that is not a number comes last."""
    return values.nan_to_num(nan=math.inf).argsort()


def _inside(v: Tensor) -> Tensor:
    """In the unit ball, for all vectors v (…, d + 1)."""
    return v / (1 + v.square().sum(-1, keepdim=True)).sqrt()


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
        return self.inner.posterior(_seen(self.to_sphere, X @ self.rows, self.rows))


def _seen(to_sphere: Map, x: Tensor, rows: Tensor) -> Tensor:
    """What the second process sees of vectors x (…, n, size): A h(x), moved by A W c, which puts it into the cube."""
    return _in_cube(to_sphere.directions(x) @ to_sphere.basis.mT @ rows.mT)


def _random_rows(x: Tensor, count: int) -> Tensor:
    """Orthonormal rows (count, size), drawn from the first point of a trial, so that all its steps have the same."""
    seed = int.from_bytes(x[0].numpy().tobytes()[:8], "little") % 2**63
    return Stiefel(x.shape[-1], count).random(rng=torch.Generator().manual_seed(seed)).mT


def _in_cube(v: Tensor) -> Tensor:
    """The unit cube instead of entries between −1 and 1."""
    return (v + 1) / 2
