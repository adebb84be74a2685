"""Matrices whose axes mean something: every second suggestion changes the eigenvalues of the best one alone.

Matrices with the same eigenvectors are a flat surface of n dimensions in the n(n + 1)/2 of all of them. A search that
begins with diagonal matrices goes on among them in this way, and leaves them when others promise more.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.manifolds import SPD, Box, Space
from nestbo.search import Runs, Section

_EVERY = 2  # suggestions


def along_axes(domain: Space, runs: Runs) -> bool:
    """Whether it is the turn of the eigenvalues; never where matrices are searched that are nested in larger ones."""
    whole = domain.point_shape == runs.x.shape[2:]
    return isinstance(domain, SPD) and domain.aligned and whole and runs.count % _EVERY == 0


def commuting(section: Section, near: Tensor) -> Section:
    """The part of a section of SPD matrices that has the eigenvectors of the matrices ``near`` (runs, 1, n, n)."""
    low, high = section.domain.eigenvalues  # type: ignore[attr-defined]
    _, vectors = linalg.eigh(near)

    def matrix(values: Tensor) -> Tensor:
        return linalg.spectral(values, vectors)

    turned = vectors.mT @ section.starts @ vectors
    return replace(
        section,
        domain=Box([low] * near.shape[-1], [high] * near.shape[-1], scale="log"),
        reach=lambda values: section.reach(matrix(values)),
        see=lambda values: section.see(matrix(values).flatten(-2)),
        starts=torch.diagonal(turned, dim1=-2, dim2=-1).clamp(low, high),
    )
