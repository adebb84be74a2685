"""SIR-BO: a subspace that sliced inverse regression finds in the evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from nestbo.errors import ArgumentError, shown
from nestbo.linalg import inverse_sqrtm, orthonormal
from nestbo.manifolds.base import check_size
from nestbo.manifolds.euclidean import Cuboid
from nestbo.search.runs import Runs
from nestbo.strategies.coordinates import Vectors
from nestbo.strategies.in_coordinates import InCoordinates, Reduction
from nestbo.strategies.options import Within

DOMAINS = ("subspace", "space")
_SLICES = 10
_TIE = 1e-6


@dataclass(frozen=True, repr=False)
class SIRBO(InCoordinates):
    """Learn a few directions from the evaluations so far, and model the values along them (Zhang, Li and Su 2019).

    The model sees z = Bᵀx, with orthonormal directions B that are computed again for each suggestion.

    Args:
        latent_dim: The number of directions.
        within: "subspace" maximises the acquisition function over z, whose preimage of least norm, B z, is projected to
            the space; "space" maximises it over the space itself.
        coordinates: "matrix" for the entries of a point, or "cholesky" for the factors of SPD matrices.
        acquisition: The acquisition function: "ei", "logei", "lognei" or "ucb".
        initial: The number of random points at the beginning.
        optimiser: The optimiser of the acquisition function: "lbfgs" or "slsqp".
    """

    latent_dim: int
    within: Within = "subspace"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size("latent_dim", self.latent_dim)
        if self.within not in DOMAINS:
            raise ArgumentError(f"within is one of {', '.join(DOMAINS)}, got {shown(self.within)}.")

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(2), cls(2, "space", coordinates="cholesky")]

    def reduction(self, on: Vectors, runs: Runs) -> Reduction:
        v = on.coordinates(runs.x)
        basis = directions(v, runs.y, self.latent_dim)
        if self.within == "space":
            return Reduction(on.space, lambda x: x, lambda v: v @ basis, runs.x)
        domain = Cuboid((-on.radius,) * self.latent_dim, (on.radius,) * self.latent_dim)
        known = domain.project(v @ basis)
        return Reduction(domain, lambda z: on.point(z @ basis.mT), lambda v: v @ basis, known)


def directions(v: Tensor, y: Tensor, count: int) -> Tensor:
    """Orthonormal directions (…, size, count) along which y (…, n) varies with v (…, n, size), by Li (1991).

    Order by y, cut into slices, whiten v, and take the leading eigenvectors of the covariance of the means of slices.
    The covariance that whitens is shrunk towards a multiple of the identity, by size/(size + n), since n may be less
    than size. Where the slices say nothing, as when there are fewer of them than directions, principal ones stand in.
    """
    n, size = v.shape[-2:]
    centred = v - v.mean(-2, keepdim=True)
    covariance = centred.mT @ centred / n
    variance = covariance.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    variance = torch.where(variance > 0, variance, 1)
    identity = torch.eye(size, dtype=v.dtype, device=v.device)
    whiten = inverse_sqrtm((n * covariance + size * variance * identity) / (n + size))
    order = y.argsort(dim=-1, stable=True)
    means = _slices(n, count, v) @ centred.gather(-2, order.unsqueeze(-1).expand_as(v))
    between = whiten @ (means.mT @ means + _TIE * covariance) @ whiten
    leading = torch.linalg.eigh(between).eigenvectors.flip(-1)[..., :count]
    largest = leading.gather(-2, leading.abs().argmax(-2, keepdim=True))
    return orthonormal(whiten @ (leading * largest.sign()))


def _slices(n: int, count: int, like: Tensor) -> Tensor:
    """(slices, n): sums over ordered points that give each slice's mean, times the root of its share."""
    number = max(2, min(n // 2, max(_SLICES, count + 1)))
    member = torch.arange(number).unsqueeze(-1) == torch.arange(n) * number // n
    sizes = member.sum(-1, keepdim=True).clamp(min=1)
    return (member / (sizes * n).sqrt()).to(like)
