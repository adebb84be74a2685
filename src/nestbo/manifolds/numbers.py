"""Numbers as people give them: tensors, sizes, and numbers to be told apart in a message."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeGuard

import torch
from torch import Tensor

from nestbo.errors import ArgumentError, shown

_LARGEST = 2**31 - 1  # a size or a count: no computer holds, or does, more
_PRECISIONS = (torch.float32, torch.float64)  # in which all operations exist


def told_apart(found: Tensor, wanted: float) -> str:
    """A number that was found, with four digits, or as many as tell it from the one that was wanted."""
    texts = [(f"{found.item():.{digits}g}", f"{wanted:.{digits}g}") for digits in (4, 8, 12, 17)]
    return next((text for text, other in texts if text != other), f"{wanted:.4g}")


def as_tensor(x: Any) -> Tensor:
    """A tensor from a tensor, array, number or nested list: in float32 if it has this precision, else in float64."""
    if isinstance(x, str):
        raise ArgumentError(f"Wanted a number or a list of numbers, got {shown(x)}.")
    try:
        x = torch.as_tensor(x, dtype=None if hasattr(x, "dtype") else torch.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ArgumentError(f"Wanted a tensor, array or list of numbers, got {type(x).__name__}: {error}.") from error
    if x.is_complex():
        raise ArgumentError("Wanted real numbers, got complex ones. Pass the real part.")
    return x if x.dtype in _PRECISIONS else x.double()


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether a value is a whole number, Python's or NumPy's; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_size(name: str, value: Any, least: int = 1) -> int:
    """``value`` as Python's int, if it is a whole number of at least ``least``."""
    if not is_whole(value) or value < least:
        raise ArgumentError(f"{name} is a whole number of at least {least}, got {shown(value)}.")
    if value > _LARGEST:
        raise ArgumentError(f"{name} is at most {_LARGEST}, got {shown(value)}.")
    return int(value)
