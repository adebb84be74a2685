"""Bounds of eigenvalues: which are allowed, and how random eigenvalues lie between them."""

from __future__ import annotations

import math

from torch import Tensor

from nestbo.errors import ArgumentError, shown
from nestbo.manifolds.box import SCALES, Scale

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


def check_scale(scale: object, bounds: tuple[float, float] | None) -> None:
    """Refuse what is no scale, and a logarithmic one without bounds."""
    if not isinstance(scale, str) or scale not in SCALES:
        raise ArgumentError(f'The scale of SPD is "linear" or "log", got {shown(scale)}.')
    if scale == "log" and bounds is None:
        raise ArgumentError('The scale "log" of SPD needs bounds. Write SPD(3, eigenvalues=(0.01, 10), scale="log").')


def check_aligned(aligned: object, bounds: tuple[float, float] | None) -> None:
    """Refuse what is neither True nor False, and axes without bounds."""
    if not isinstance(aligned, bool):
        raise ArgumentError(f"aligned of SPD is True or False, got {shown(aligned)}.")
    if aligned and bounds is None:
        raise ArgumentError("aligned SPD matrices need bounds. Write SPD(3, eigenvalues=(0.01, 10), aligned=True).")


def spread(t: Tensor, low: float, high: float, scale: Scale) -> Tensor:
    """Eigenvalues between the bounds for numbers t between 0 and 1."""
    if scale == "log":
        return (low * (high / low) ** t).clamp(low, high)
    return low + (high - low) * t


def log_variance(low: float, high: float, scale: Scale) -> float:
    """The variance of the logarithm of a random eigenvalue; of narrow bounds by a series, as differences cancel."""
    if scale == "log":
        return math.log1p((high - low) / low) ** 2 / 12
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
