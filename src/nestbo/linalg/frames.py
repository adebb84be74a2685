"""Matrices with orthonormal columns."""

from __future__ import annotations

import torch
from torch import Tensor

from nestbo.linalg.symmetric import inverse_sqrtm
from nestbo.linalg.vectors import unit


def orthonormal(a: Tensor) -> Tensor:
    """The Q factor of a thin QR with a positive diagonal of R: a continuous orthonormal basis of the columns."""
    if a.is_cuda:
        return _gram_schmidt(a)
    q, r = torch.linalg.qr(a)
    diagonal = r.diagonal(dim1=-2, dim2=-1)
    return q * torch.where(diagonal < 0, -1, 1).to(q).unsqueeze(-2)


def _gram_schmidt(a: Tensor) -> Tensor:
    """The same, column by column for all matrices at once; a GPU's QR takes one matrix after the other.

    Subtracting what earlier columns explain twice is enough to lose no digits (Giraud et al. 2005).
    """
    columns: list[Tensor] = []
    for column in a.unbind(-1):
        for _ in range(2 if columns else 0):
            basis = torch.stack(columns, -1)
            column = column - (basis @ (basis.mT @ column.unsqueeze(-1))).squeeze(-1)
        columns.append(unit(column))
    return torch.stack(columns, -1)


def completion(frame: Tensor) -> Tensor:
    """Orthonormal columns spanning the complement of a frame (…, n, p): shape (…, n, n − p)."""
    return torch.linalg.qr(frame, mode="complete").Q[..., frame.shape[-1] :]


def random_frames(*shape: int, rng: torch.Generator) -> Tensor:
    """Haar-distributed matrices with orthonormal columns; shape (*batch, n, p), p ≤ n, in float64."""
    return orthonormal(torch.randn(*shape, generator=rng, dtype=torch.float64, device=rng.device))


def polar(a: Tensor) -> Tensor:
    """The polar factor a (aᵀa)^{-½} of matrices of full column rank, twice differentiable."""
    return a @ inverse_sqrtm(a.mT @ a)


def nearest_frame(a: Tensor) -> Tensor:
    """The polar factor of any matrix; one that is not finite gives NaN and leaves the others alone."""
    u, vh, finite = _singular_vectors(a)
    return torch.where(finite, u @ vh, torch.nan)


def nearest_rotation(a: Tensor) -> Tensor:
    """The orthogonal matrix of determinant 1 nearest to any square one; NaN for one that is not finite."""
    u, vh, finite = _singular_vectors(a)
    sign = torch.where(torch.linalg.det(u @ vh) < 0, -1, 1).to(u)
    turned = sign[..., None, None] * u[..., -1:]  # the direction that counts least
    return torch.where(finite, torch.cat([u[..., :-1], turned], -1) @ vh, torch.nan)


def _singular_vectors(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Left and right ones, and which matrices are finite; for the others, those of the identity."""
    finite = a.isfinite().all(-1).all(-1)[..., None, None]
    eye = torch.eye(a.shape[-2], a.shape[-1], dtype=a.dtype, device=a.device)
    u, _, vh = torch.linalg.svd(torch.where(finite, a, eye), full_matrices=False)
    return u, vh, finite
