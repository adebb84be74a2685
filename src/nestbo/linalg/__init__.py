"""Gradient-safe primitives: the only place where numerical care is taken.

Every function broadcasts over leading axes and has finite first and second derivatives wherever it has a
finite value; where the mathematics has a kink (a norm at zero, an arc at the antipode) the derivative is zero.
"""

from nestbo.linalg.frames import completion, nearest_frame, orthonormal, polar, random_frames
from nestbo.linalg.symmetric import (
    EXP,
    INVERSE_SQRT,
    LOG,
    LOG1P,
    SQRT,
    ScalarFunction,
    clip,
    eigh,
    expm,
    frechet,
    inverse_sqrtm,
    logm,
    matrix_function,
    power_series,
    second_frechet,
    spectral,
    sqrtm,
    sym,
)
from nestbo.linalg.vectors import (
    arc,
    arc_squared,
    arcsinc_root,
    cos_root,
    inner,
    norm,
    safe_sqrt,
    sinc_root,
    unit,
)

__all__ = [
    "EXP",
    "INVERSE_SQRT",
    "LOG",
    "LOG1P",
    "SQRT",
    "ScalarFunction",
    "arc",
    "arc_squared",
    "arcsinc_root",
    "clip",
    "completion",
    "cos_root",
    "eigh",
    "expm",
    "frechet",
    "inner",
    "inverse_sqrtm",
    "logm",
    "matrix_function",
    "nearest_frame",
    "norm",
    "orthonormal",
    "polar",
    "power_series",
    "random_frames",
    "safe_sqrt",
    "second_frechet",
    "sinc_root",
    "spectral",
    "sqrtm",
    "sym",
    "unit",
]
