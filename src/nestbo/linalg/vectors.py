"""Norms, angles and the analytic quotients behind them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

# Power series below, closed forms above: at 0.25 both keep all digits, derivatives included.
_SERIES_BELOW = 0.25


def inner(x: Tensor, y: Tensor, axes: int = 1) -> Tensor:
    """Sum of x·y over the last ``axes`` axes."""
    return (x * y).sum(dim=tuple(range(-axes, 0)))


def safe_sqrt(q: Tensor) -> Tensor:
    """√q for q ≥ 0, with derivative 0 instead of infinity at 0; NaN stays NaN."""
    positive = ~(q <= 0)
    return torch.where(positive, torch.where(positive, q, 1).sqrt(), 0)


def constant(values: tuple[float, ...], like: Tensor) -> Tensor:
    """A vector of numbers with the dtype and device of another tensor, copied there once."""
    return _constant(values, like.dtype, like.device)


@lru_cache(maxsize=256)
def _constant(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=dtype, device=device)


def norm(x: Tensor, axes: int = 1) -> Tensor:
    """Euclidean norm over the last ``axes`` axes, with derivative 0 at 0."""
    return safe_sqrt(inner(x, x, axes))


def unit(x: Tensor) -> Tensor:
    """x / |x| along the last axis, without overflow or underflow; the zero vector becomes the first axis."""
    scale = x.detach().abs().amax(-1, keepdim=True)
    zero = scale == 0
    first = torch.zeros_like(x)
    first[..., 0] = 1
    scaled = torch.where(zero, first, x / torch.where(zero, 1, scale))
    return scaled / inner(scaled, scaled).sqrt().unsqueeze(-1)


def cos_root(q: Tensor) -> Tensor:
    """cos √q, an analytic function of q ≥ 0."""
    return _with_series(q, _COS_SERIES, lambda r: r.sqrt().cos())


def sinc_root(q: Tensor) -> Tensor:
    """sin √q / √q, an analytic function of q ≥ 0."""
    return _with_series(q, _SINC_SERIES, lambda r: r.sqrt().sin() / r.sqrt())


def arcsinc_root(q: Tensor) -> Tensor:
    """arcsin √q / √q, an analytic function of q in [0, 1)."""
    return _with_series(q, _ARCSINC_SERIES, lambda r: torch.atan2(r.sqrt(), safe_sqrt(1 - r)) / r.sqrt())


def arc(x: Tensor, y: Tensor) -> Tensor:
    """Angle between unit vectors, 2·atan2(|x − y|, |x + y|): exact at 0 and at π."""
    return 2 * torch.atan2(norm(x - y), norm(x + y))


def arc_squared(x: Tensor, y: Tensor) -> Tensor:
    """The squared angle between unit vectors, smooth where they coincide (its Hessian there is 2·I).

    With w = |x − y|² / (|x − y|² + |x + y|²) = sin²(θ/2), θ² = 4 w (arcsin √w / √w)².
    """
    apart, together = inner(x - y, x - y), inner(x + y, x + y)
    w = apart / (apart + together)
    near = w < _SERIES_BELOW
    series = 4 * w * arcsinc_root(torch.where(near, w, 0)) ** 2
    apart, together = (safe_sqrt(torch.where(near, 1, square)) for square in (apart, together))
    return torch.where(near, series, 4 * torch.atan2(apart, together) ** 2)


def _with_series(q: Tensor, coefficients: tuple[float, ...], closed: Callable[[Tensor], Tensor]) -> Tensor:
    """The power series for small q, the closed form elsewhere; each sees only arguments that are safe for it."""
    small = q < _SERIES_BELOW
    near = torch.where(small, q, 0)
    series = torch.full_like(q, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        series = series * near + coefficient
    return torch.where(small, series, closed(torch.where(small, 0.5, q)))


_COS_SERIES = tuple((-1) ** k / math.factorial(2 * k) for k in range(9))
_SINC_SERIES = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(9))
_ARCSINC_SERIES = tuple(math.comb(2 * k, k) / (4**k * (2 * k + 1)) for k in range(26))
