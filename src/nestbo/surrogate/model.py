"""The fitted model of one run, as a study shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from nestbo.nested import NestedMapping
from nestbo.outputs import Outputs
from nestbo.surrogate.fit import Surrogate
from nestbo.surrogate.gp import GP


@dataclass(frozen=True)
class Model:
    """A fitted model of an objective: ``mapping`` leads to the latent space, where ``gp`` lives in the model's units.

    It is that of a single run: the basis of the mapping is one matrix, length scales are (scales,), data (n, *point)
    and (n,). ``outputs`` is the map between the model's units and the objective's, negated where a study maximises;
    ``notes`` are what the next fit wants to know, and ``loss`` is what the fit has minimised.
    """

    gp: GP
    outputs: Outputs
    mapping: NestedMapping
    notes: dict[str, Any]
    loss: float

    @classmethod
    def of(cls, surrogate: Surrogate, run: int = 0) -> Self:
        """One of the runs that a surrogate was fitted to."""
        return cls(
            surrogate.gp.of_run(run),
            surrogate.outputs.of_run(run),
            surrogate.mapping.of_run(run),
            surrogate.notes[run],
            surrogate.loss[run].item(),
        )

    def predict(self, x: Any, deviations: float = 0.0) -> Tensor:
        """The median prediction at points (…, *point) of the ambient space, moved by standard deviations: (…)."""
        x = self.mapping.ambient.check(x).double()
        mean, variance = self.gp.moments(self.mapping.project(self._row(x)))
        return self.outputs.inverse(mean + deviations * variance.sqrt()).reshape(self._batch(x))

    def gradients(self, x: Any) -> Tensor:
        """Tangent gradients of the mean, in the model's units, at points x (…, *point) of the ambient space."""
        x = self.mapping.ambient.check(x).double()
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            mean, _ = self.gp.moments(self.mapping.project(self._row(leaf)))
            (gradient,) = torch.autograd.grad(mean.sum(), leaf)
        return self.mapping.ambient.to_tangent(x, gradient)

    @property
    def latent_points(self) -> Tensor:
        """The evaluated points as the model sees them, (n, *point)."""
        return self.gp.x

    def _row(self, x: Tensor) -> Tensor:
        """All points in one row, (q, *point)."""
        return x.reshape(-1, *self.mapping.ambient.point_shape)

    def _batch(self, x: Tensor) -> torch.Size:
        return x.shape[: x.ndim - len(self.mapping.ambient.point_shape)]
