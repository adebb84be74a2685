"""Gradient-safe primitives: the only place where numerical care is taken.

Every function broadcasts over leading axes and has finite first and second derivatives wherever it has a
finite value; where the mathematics has a kink (a norm at zero, an arc at the antipode) the derivative is zero.
"""

from nestbo.linalg.frames import completion, nearest_frame, nearest_rotation, orthonormal, polar, random_frames
from nestbo.linalg.scalar import EXP, INVERSE_SQRT, LOG, LOG1P, SQRT, ScalarFunction, clip, power_series
from nestbo.linalg.symmetric import (
    eigh,
    expm,
    frechet,
    inverse_sqrtm,
    logm,
    matrix_function,
    second_frechet,
    spectral,
    sqrtm,
    sum_of_squared_logs,
    sym,
)
from nestbo.linalg.vectors import (
    arc,
    arc_squared,
    arcsinc_root,
    constant,
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
    "constant",
    "cos_root",
    "eigh",
    "expm",
    "frechet",
    "inner",
    "inverse_sqrtm",
    "logm",
    "matrix_function",
    "nearest_frame",
    "nearest_rotation",
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
    "sum_of_squared_logs",
    "sym",
    "unit",
]
