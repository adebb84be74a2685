"""Radial profiles: correlations as functions of q = (distance / length scale)², smooth at q = 0."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nestbo.linalg import safe_sqrt


def gaussian(q: Tensor) -> Tensor:
    """exp(−q/2)."""
    return (-q / 2).exp()


def matern12(q: Tensor) -> Tensor:
    """exp(−√q)."""
    return (-safe_sqrt(q)).exp()


def matern32(q: Tensor) -> Tensor:
    """(1 + √(3q)) exp(−√(3q))."""
    return _matern(3 * q, 1)


def matern52(q: Tensor) -> Tensor:
    """(1 + √(5q) + 5q/3) exp(−√(5q))."""
    return _matern(5 * q, 2) / 3


class _Matern(torch.autograd.Function):
    """g₀ = e^{−a}, g₁ = (1 + a) e^{−a}, g₂ = (3 + 3a + a²) e^{−a} as functions of s = a², where g_k′ = −½ g_{k−1}.

    Going through a = √s would lose the curvature at s = 0, where a search started at an observed point looks.
    """

    @staticmethod
    def forward(ctx: Any, s: Tensor, order: int) -> Tensor:
        ctx.save_for_backward(s)
        ctx.order = order
        a = s.sqrt()
        polynomial = 1 + a if order == 1 else 3 + 3 * a + s
        return polynomial * (-a).exp()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        (s,) = ctx.saved_tensors
        return -upstream * _matern(s, ctx.order - 1) / 2, None


def _matern(s: Tensor, order: int) -> Tensor:
    if order == 0:
        return (-safe_sqrt(s)).exp()
    value: Tensor = _Matern.apply(s, order)  # type: ignore[no-untyped-call]
    return value
