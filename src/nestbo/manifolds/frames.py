"""What the two manifolds of n×p matrices with orthonormal columns share."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError
from nestbo.manifolds.base import Manifold, check_size, told_apart


class Frames(Manifold):
    """Matrices with orthonormal columns, as points themselves (Stiefel) or for their span (Grassmann)."""

    n: int
    p: int

    def __post_init__(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "n", check_size(f"The number of rows of {name}", self.n, least=2))
        object.__setattr__(self, "p", check_size(f"The number of columns of {name}", self.p))
        if self.p >= self.n:
            raise ArgumentError(f"{name}(n, p) needs p < n, got n = {self.n} and p = {self.p}. Choose fewer columns.")

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.n, self.p)

    @property
    def euclidean_metric(self) -> bool:
        return True

    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        return linalg.random_frames(*batch, self.n, self.p, rng=rng)

    def random_each(self, count: int, rngs: list[torch.Generator]) -> Tensor:
        """The numbers are drawn one run after the other, the frames made together."""
        kind: dict[str, Any] = {"dtype": torch.float64, "device": rngs[0].device}
        drawn = [torch.randn(count, self.n, self.p, generator=rng, **kind) for rng in rngs]
        return linalg.orthonormal(torch.stack(drawn, 1))

    def project(self, x: Tensor) -> Tensor:
        return linalg.nearest_frame(x)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return linalg.inner(u, v, axes=2)

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """[x v] exp([a −s; 1 a]) [1; 0] exp(−a) with a = xᵀv, s = vᵀv (Edelman, Arias and Smith 1998, eq. 2.42)."""
        a, s = x.mT @ v, v.mT @ v
        eye = torch.eye(self.p, dtype=x.dtype, device=x.device).expand_as(a)
        block = torch.cat([torch.cat([a, -s], -1), torch.cat([eye, a], -1)], -2)
        turn = torch.linalg.matrix_exp(block)[..., : self.p] @ torch.linalg.matrix_exp(-a)
        return torch.cat(torch.broadcast_tensors(x, v), -1) @ turn

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        """The polar factor of x + v."""
        return linalg.polar(x + v)

    def violation(self, x: Tensor) -> Tensor:
        eye = torch.eye(self.p, dtype=x.dtype, device=x.device)
        return (x.mT @ x - eye).abs().amax((-1, -2))

    def fault(self, x: Tensor) -> str:
        return fault_of_frame(x)

    def _shape_hint(self, shape: tuple[int, ...]) -> str:
        n, p = shape[-2:] if len(shape) >= 2 else (0, 0)
        return f" For {n}×{p} matrices use {type(self).__name__}({n}, {p})." if n > p > 0 else ""


def fault_of_frame(x: Tensor) -> str:
    """Which two columns of a matrix are not orthonormal, or which one."""
    gram = x.mT @ x
    astray = (gram - torch.eye(len(gram), dtype=x.dtype)).abs()
    i, j = divmod(int(astray.argmax()), len(gram))
    if i == j:
        return f"its column {i} has the norm {told_apart(gram[i, i].sqrt(), 1)}, it must be 1"
    return f"its columns {i} and {j} have the inner product {gram[i, j]:.4g}, it must be 0"
