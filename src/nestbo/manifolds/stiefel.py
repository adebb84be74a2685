"""Orthonormal frames."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.linalg import sym
from nestbo.manifolds.frames import Frames

_SHOTS = 100


@dataclass(frozen=True, repr=False)
class Stiefel(Frames):
    """St(n, p): n×p matrices with orthonormal columns, p < n, with the metric of the surrounding R^{n×p}.

    The logarithm has no closed form. It is found by shooting, which reaches every point within a distance of 1.5 and
    many farther ones. If shooting does not arrive, ``log`` and the distances are NaN. Optimisers and kernels do not
    need the logarithm.

    Args:
        n: The number of rows.
        p: The number of columns.
    """

    n: int
    p: int

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(2, 1), cls(4, 3), cls(6, 2)]

    @property
    def dim(self) -> int:
        return self.n * self.p - self.p * (self.p + 1) // 2

    @property
    def typical_distance(self) -> float:
        return math.sqrt(self.p) * math.pi / 2

    @property
    def injectivity_radius(self) -> float:
        return 1.5

    def to_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        return v - x @ sym(x.mT @ v)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        v = self.to_tangent(x, y - x)
        tolerance = 100 * torch.finfo(x.dtype).eps
        for _ in range(_SHOTS):
            z = self.exp(x, v)
            miss = y - z
            v = v + self.to_tangent(x, self.to_tangent(z, miss))
            if (linalg.norm(miss, axes=2) < tolerance).all():
                break
        arrived = linalg.norm(miss, axes=2) < 100 * tolerance
        return torch.where(arrived[..., None, None], v, torch.nan)

    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        v = self.log(x, y)
        return linalg.inner(v, v, axes=2)

    def embed(self, x: Tensor) -> Tensor:
        return x.flatten(-2)

    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        return self.to_tangent(x, product - v @ sym(x.mT @ gradient))
