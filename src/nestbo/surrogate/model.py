"""What is fitted, to what, and what comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor

from nestbo.kernels import ManifoldKernel
from nestbo.memory import Fit
from nestbo.nested import NestedMapping, Nesting
from nestbo.outputs import Outputs, Standardise
from nestbo.surrogate.gp import GP
from nestbo.surrogate.likelihood import Criterion, negative_log_likelihood


@dataclass(frozen=True)
class Model:
    """The description of a surrogate: what it sees of a point, and how its parameters are chosen.

    ``kernel`` lives on the space itself or, with a ``nesting``, on the latent space, whose basis is then learned.
    ``outputs`` makes the map from values to the model's units, ``criterion`` is what a fit minimises, and ``priors``
    makes it maximum a posteriori instead of maximum likelihood.
    """

    kernel: ManifoldKernel
    nesting: Nesting | None = None
    outputs: Callable[[Tensor], Outputs] = Standardise.fit
    priors: bool = True
    criterion: Criterion = negative_log_likelihood


class Effort(Enum):
    """How much a fit does: nothing where it is known already, a few steps from the one before, or a search anew."""

    NONE = 0
    FEW_STEPS = 1
    ANEW = 2


@dataclass(frozen=True)
class Data:
    """What a model is fitted to: x (runs, n, *point), y (runs, n) with n ≥ 1, and one generator per run.

    ``noise`` is the variance of the noise in y, if it is known, or that of each value (runs, n); a map of the outputs
    that is not linear has no use for it.
    """

    x: Tensor
    y: Tensor
    rngs: list[torch.Generator]
    noise: float | Tensor | None = None


@dataclass(frozen=True)
class Surrogate:
    """A fitted model of an objective: ``mapping`` leads to the latent space, where ``gp`` lives in the model's units.

    ``outputs`` is the map between these units and the objective's, ``fits`` are where the next fit of each run starts,
    and ``loss`` (*runs) is what the fit has minimised.
    """

    gp: GP
    outputs: Outputs
    mapping: NestedMapping
    fits: tuple[Fit, ...]
    loss: Tensor

    def predict(self, x: Tensor, deviations: float = 0.0) -> Tensor:
        """The median prediction at points (…, *runs, q, *point) of the ambient space, moved by standard deviations."""
        mean, variance = self.gp.moments(self.mapping.project(x))
        return self.outputs.inverse(mean + deviations * variance.sqrt())

    def gradients(self, x: Tensor) -> Tensor:
        """Tangent gradients of the mean, in the model's units, at points x (*runs, n, *point) of the ambient space."""
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            mean, _ = self.gp.moments(self.mapping.project(leaf))
            (gradient,) = torch.autograd.grad(mean.sum(), leaf)
        return self.mapping.ambient.to_tangent(x, gradient)

    def seen(self, x: Tensor) -> Tensor | None:
        """Points (*runs, m, *point) of the ambient space, flat, as the model sees them; None if there are none."""
        axes = len(self.mapping.latent.point_shape)
        return self.mapping.project(x).flatten(-axes) if x.shape[self.gp.z.ndim - 1] else None

    @property
    def latent_points(self) -> Tensor:
        """The evaluated points as the model sees them, (*runs, n, *point)."""
        return self.gp.x
