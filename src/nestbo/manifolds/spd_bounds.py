"""Bounds of eigenvalues: which are allowed, and how far logarithms spread between them."""

from __future__ import annotations

import math

from nestbo.errors import ArgumentError, shown

_SMALLEST, _LARGEST = 1e-100, 1e100  # bounds whose products and their inverses are numbers
_NARROW = 1.1  # the ratio of bounds below which the variance of logarithms is a series


def checked_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    """Two numbers 0 < low < high, neither tiny nor huge."""
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"Eigenvalue bounds are two numbers (low, high), got {shown(bounds)}.") from None
    if not 0 < low < high < math.inf:
        raise ArgumentError(
            f"Eigenvalue bounds need 0 < low < high < inf, got ({low:g}, {high:g}). Swap or widen them."
        )
    if low < _SMALLEST or high > _LARGEST:
        raise ArgumentError(
            f"Eigenvalue bounds are between {_SMALLEST:g} and {_LARGEST:g}, got ({low:g}, {high:g}). "
            "Choose another unit for the matrices."
        )
    return low, high


def log_variance(low: float, high: float) -> float:
    """The variance of log u for a uniform u between the bounds; of narrow ones by a series, as differences cancel."""
    if high < _NARROW * low:
        h = math.log1p((high - low) / low) / 2
        return h**2 / 3 - h**4 / 15 + 2 * h**6 / 189  # of 1 − (h / sinh h)²
    first = (_log_integral(high) - _log_integral(low)) / (high - low)
    second = (_log_square_integral(high) - _log_square_integral(low)) / (high - low)
    return second - first**2


def _log_integral(u: float) -> float:
    return u * math.log(u) - u


def _log_square_integral(u: float) -> float:
    return u * math.log(u) ** 2 - 2 * u * math.log(u) + 2 * u
