"""Points as parameters of Optuna: one float for each entry, to the last bit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import torch
from optuna.distributions import FloatDistribution
from optuna.trial import FrozenTrial
from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.manifolds import MANIFOLDS, SPD, Box, Euclidean, Finite, Product, Simplex, Space, Torus

_ANYWHERE = 1e10  # a bound for parameters that have none; Optuna wants one
_ROUNDING = 1e-9  # relative to the bounds; on a manifold, how far off counts as on it


def point(trial: FrozenTrial, space: Space, name: str = "x") -> Tensor:
    """The point of a trial, such as ``study.best_trial``."""
    for key in _names(space, name):
        if key not in trial.params:
            raise ArgumentError(f"Trial {trial.number} has no parameter {key!r} of a point {name!r} of {space}.")
        if not isinstance(trial.distributions[key], FloatDistribution):
            raise ArgumentError(
                f"{key!r} of trial {trial.number} is {trial.params[key]!r}, no float of a point {name!r} of {space}."
            )
    return assembled(trial.params, space, name)


def params(x: Any, space: Space, name: str = "x") -> dict[str, float]:
    """A point as parameters, for ``study.enqueue_trial`` or ``optuna.trial.create_trial``."""
    x = space.check(x).double()
    if x.shape != space.point_shape:
        raise ArgumentError(f"params takes one point, of shape {space.point_shape}, got {tuple(x.shape)}.")
    low, high = torch.tensor(_ranges(space), dtype=torch.float64).mT.reshape(2, *space.point_shape)
    kept = x if _within(x, low, high) else space.project(x)
    if not _within(kept, low, high):
        raise ArgumentError(
            f"Parameters of a point of {space} lie between {low.min():g} and {high.max():g} in Optuna, got "
            f"{kept.min():g} to {kept.max():g}. Choose another unit."
        )
    return dict(zip(_names(space, name), torch.clamp(kept, low, high).reshape(-1).tolist(), strict=True))


def _within(x: Tensor, low: Tensor, high: Tensor) -> bool:
    slack = _ROUNDING * (1 + torch.maximum(low.abs(), high.abs()))
    return bool(((x >= low - slack) & (x <= high + slack)).all())


def distributions(space: Space, name: str = "x") -> dict[str, FloatDistribution]:
    """The parameters of a point: one for each entry, ``x_0``, ``x_1``, … or ``x_0_0``, ``x_0_1``, …."""
    return {
        key: FloatDistribution(low, high) for key, (low, high) in zip(_names(space, name), _ranges(space), strict=True)
    }


def _names(space: Space, name: str) -> list[str]:
    """By the names of the space, or with as many digits as the last one has, so that they sort."""
    if space.names is not None:
        return [f"{name}_{label}" for label in space.labels]
    axes = [_numbered(size) for size in space.point_shape]
    return ["_".join((name, *index)) for index in itertools.product(*axes)]


def _numbered(count: int) -> list[str]:
    digits = len(str(count - 1))
    return [f"{k:0{digits}d}" for k in range(count)]


def _ranges(space: Space) -> list[tuple[float, float]]:
    """Numbers between which the entries of points lie."""
    size = math.prod(space.point_shape)
    if isinstance(space, Product):
        return [pair for factor in space.factors for pair in _ranges(factor)]
    if isinstance(space, Finite):
        return [(float(space.range[0]), float(space.range[1]))]
    if isinstance(space, Box):
        return list(zip(space.lower, space.upper, strict=True))
    if isinstance(space, SPD) and space.eigenvalues:
        low, high = space.eigenvalues
        inside, beside = (low, high), (-(high - low) / 2, (high - low) / 2)
        return [inside if i == j else beside for i in range(space.n) for j in range(space.n)]
    if isinstance(space, Torus):
        return [(-math.pi, math.pi)] * size
    if isinstance(space, Simplex):
        return [(0.0, 1.0)] * size
    if isinstance(space, SPD | Euclidean) or type(space) not in MANIFOLDS.values():
        return [(-_ANYWHERE, _ANYWHERE)] * size
    return [(-1.0, 1.0)] * size


def assembled(stored: Mapping[str, Any], space: Space, name: str) -> Tensor:
    """The point of parameters; where they are off the space, its nearest one."""
    x = entries(stored, space, name)
    return x if space.violation(x) <= _ROUNDING else space.project(x)


def entries(stored: Mapping[str, Any], space: Space, name: str) -> Tensor:
    """The parameters in the shape of a point, on the space or not."""
    flat = torch.tensor([float(stored[key]) for key in _names(space, name)], dtype=torch.float64)
    return flat.reshape(space.point_shape)
