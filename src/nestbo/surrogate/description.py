"""What is fitted, and to what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor

from nestbo.kernels import ManifoldKernel
from nestbo.nested import Nesting
from nestbo.outputs import Outputs, Standardise
from nestbo.surrogate.likelihood import Criterion, negative_log_likelihood
from nestbo.surrogate.metric import Metric


@dataclass(frozen=True)
class Description:
    """Which model is fitted: how it sees a point, and how its parameters are chosen.

    The ``kernel`` is defined on the space itself. With a ``nesting``, it is defined on the latent space, and the basis
    is learned. ``outputs`` makes the map from values to the units of the model. ``criterion`` is what a fit minimises.
    With ``priors``, a fit is maximum a posteriori instead of maximum likelihood. With a ``metric``, the kernel sees
    points after the metric has transformed them, and the metric is learned, too.
    """

    kernel: ManifoldKernel
    nesting: Nesting | None = None
    outputs: Callable[[Tensor], Outputs] = Standardise.fit
    priors: bool = True
    criterion: Criterion = negative_log_likelihood
    metric: Metric | None = None


class Effort(Enum):
    """How much a fit does: nothing if it is known already, a few steps from the last fit, or a new search."""

    NONE = 0
    FEW_STEPS = 1
    ANEW = 2


@dataclass(frozen=True)
class Data:
    """The data of a fit: x (runs, n, *point), y (runs, n) with n ≥ 1, and one generator per run.

    ``noise`` is the variance of the noise in y, or the variance of each value (runs, n), if it is known. Maps of the
    outputs that are not linear ignore it. If the data are a selection, ``chosen_of`` is the number of all evaluations;
    otherwise it is None.
    """

    x: Tensor
    y: Tensor
    rngs: list[torch.Generator]
    noise: float | Tensor | None = None
    chosen_of: int | None = None
