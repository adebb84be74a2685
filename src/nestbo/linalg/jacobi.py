"""Eigenvalues of tiny matrices by elementwise operations alone."""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor

_EXTRA_SWEEPS = 2  # beyond n: Jacobi's method converges quadratically


def jacobi(a: Tensor) -> tuple[Tensor, Tensor]:
    """Ascending eigenvalues (…, n) and eigenvectors of symmetric matrices (…, n, n), by cyclic Jacobi rotations."""
    n, batch = a.shape[-1], a.shape[:-2]
    work = a.reshape(-1, n, n).permute(1, 2, 0).clone(memory_format=torch.contiguous_format)  # matrices last
    vectors = torch.eye(n, dtype=a.dtype, device=a.device).unsqueeze(-1).repeat(1, 1, work.shape[-1])
    for _ in range(n + _EXTRA_SWEEPS):
        for p, q in combinations(range(n), 2):
            cosine, sine = _rotation(work[p, p], work[q, q], work[p, q])
            _rotate(work[p], work[q], cosine, sine)
            _rotate(work[:, p], work[:, q], cosine, sine)
            _rotate(vectors[:, p], vectors[:, q], cosine, sine)
    values, order = work.diagonal().sort(-1)
    columns = vectors.permute(2, 0, 1).gather(-1, order.unsqueeze(-2).expand(-1, n, -1))
    return values.reshape(*batch, n), columns.reshape(*batch, n, n)


def _rotation(first: Tensor, second: Tensor, off: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine of the smaller angle that makes [first, off; off, second] diagonal."""
    difference, twice = second - first, 2 * off
    tangent = twice / (difference + torch.hypot(difference, twice).copysign(difference))
    tangent = torch.where(twice == 0, 0, tangent)
    cosine = (1 + tangent.square()).rsqrt()
    return cosine, tangent * cosine


def _rotate(p: Tensor, q: Tensor, cosine: Tensor, sine: Tensor) -> None:
    """(p, q) ← (c p − s q, s p + c q), in place."""
    turned = torch.addcmul(cosine * p, sine, q, value=-1)
    q.mul_(cosine).addcmul_(sine, p)
    p.copy_(turned)
