"""How a law says that it is broken."""

from __future__ import annotations

import torch
from torch import Tensor


def require(holds: bool | Tensor, sentence: str) -> None:
    """Raise ``AssertionError`` with the sentence unless everything holds."""
    if not bool(torch.as_tensor(holds).all()):
        raise AssertionError(sentence)


def close(a: Tensor, b: Tensor, sentence: str, tolerance: float = 1e-8) -> None:
    """Require that two tensors agree to within an absolute tolerance; NaN agrees with nothing."""
    error = (a - b).abs().max().item()
    require(bool(error <= tolerance), f"{sentence} (off by {error:.2e})")
