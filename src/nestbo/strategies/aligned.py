"""Matrices whose axes mean something: every second suggestion changes the eigenvalues of the best one alone.

Matrices with the same eigenvectors are a flat surface of n dimensions in the n(n + 1)/2 of all of them. A search that
begins with diagonal matrices goes on among them in this way, and leaves them when others promise more. The turns
coincide with those of the maps of values: suggestions that are free see logarithms of the worse half.
"""

from __future__ import annotations

import math
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

    def matrix(logarithms: Tensor) -> Tensor:
        return linalg.spectral(logarithms.exp(), vectors)

    turned = vectors.mT @ section.starts @ vectors
    values = torch.diagonal(turned, dim1=-2, dim2=-1).clamp(low, high)
    return replace(
        section,
        domain=Box([math.log(low)] * near.shape[-1], [math.log(high)] * near.shape[-1]),
        reach=lambda logarithms: section.reach(matrix(logarithms)),
        see=lambda logarithms: section.see(matrix(logarithms).flatten(-2)),
        starts=values.log(),
    )
