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
    """What is fitted: what a model sees of a point, and how its parameters are chosen.

    ``kernel`` lives on the space itself or, with a ``nesting``, on the latent space, whose basis is then learned.
    ``outputs`` makes the map from values to the model's units, ``criterion`` is what a fit minimises, and ``priors``
    makes it maximum a posteriori instead of maximum likelihood. With a ``metric`` the kernel lives on what the metric
    makes of points of that space, and the metric is learned, too.
    """

    kernel: ManifoldKernel
    nesting: Nesting | None = None
    outputs: Callable[[Tensor], Outputs] = Standardise.fit
    priors: bool = True
    criterion: Criterion = negative_log_likelihood
    metric: Metric | None = None


class Effort(Enum):
    """How much a fit does: nothing where it is known already, a few steps from the one before, or a search anew."""

    NONE = 0
    FEW_STEPS = 1
    ANEW = 2


@dataclass(frozen=True)
class Data:
    """What a model is fitted to: x (runs, n, *point), y (runs, n) with n ≥ 1, and one generator per run.

    ``noise`` is the variance of the noise in y, if it is known, or that of each value (runs, n); a map of the outputs
    that is not linear has no use for it. ``chosen_of`` says of how many evaluations these were chosen; None if they are
    all there are.
    """

    x: Tensor
    y: Tensor
    rngs: list[torch.Generator]
    noise: float | Tensor | None = None
    chosen_of: int | None = None
