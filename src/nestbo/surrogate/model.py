"""What a fit gives: the models of several runs, and that of one run, as a study shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from nestbo.manifolds import leaf
from nestbo.memory import Fit
from nestbo.nested import NestedMapping
from nestbo.outputs import Outputs
from nestbo.surrogate.gp import GP
from nestbo.surrogate.metric import Learned

_BLUR = 1e-6  # of the variance of the signal, added to what is drawn: its rounding is less


@dataclass(frozen=True)
class Surrogate:
    """Fitted models of the objectives of several runs, with the runs as a leading axis. ``Model`` is a single one.

    ``mapping`` maps points to the latent space, on which the process ``gp`` is defined in the units of the model.
    ``outputs`` maps between these units and the units of the objective. ``fits`` are the starts of the next fits, and
    ``loss`` (*runs) is the minimised loss. With a learned ``metric``, ``gp`` sees latent points after the metric has
    transformed them.
    """

    gp: GP
    outputs: Outputs
    mapping: NestedMapping
    fits: tuple[Fit, ...]
    loss: Tensor
    metric: Learned | None = None

    def see(self, latent: Tensor) -> Tensor:
        """What the kernel sees of latent points (…, *runs, n, *point)."""
        return latent if self.metric is None else self.metric(latent)

    def take(self, which: list[int]) -> Surrogate:
        """The models of some of the runs."""
        return Surrogate(
            self.gp.of_run(which),
            self.outputs.of_run(which),
            self.mapping.of_run(which),
            tuple(self.fits[run] for run in which),
            self.loss[which],
            None if self.metric is None else self.metric.of_run(which),
        )

    def predict(self, x: Tensor, deviations: float = 0.0) -> Tensor:
        """The median prediction at points (…, *runs, q, *point) of the ambient space, moved by standard deviations."""
        mean, variance = self.gp.moments(self.see(self.mapping.project(x)))
        return self.outputs.inverse(mean + deviations * variance.sqrt())

    def gradients(self, x: Tensor) -> Tensor:
        """Tangent gradients of the mean, in the model's units, at points x (*runs, n, *point) of the ambient space."""
        with torch.enable_grad():
            free = x.detach().requires_grad_()
            mean, _ = self.gp.moments(self.see(self.mapping.project(free)))
            (gradient,) = torch.autograd.grad(mean.sum(), free)
        return leaf(self.mapping.ambient).to_tangent(x, gradient)

    def seen(self, x: Tensor) -> Tensor | None:
        """Points (*runs, m, *point) of the ambient space, flat, as the model sees them; None if there are none."""
        count = x.shape[self.gp.z.ndim - 1]
        axes = len(self.gp.kernel.space.point_shape)
        return self.see(self.mapping.project(x)).flatten(-axes) if count else None

    @property
    def noise_near_best(self) -> list[float]:
        """The variance of the noise of values near the best, as the model of each run has it: a finite number."""
        gp, back = self.gp, self.outputs.inverse
        best = gp.z.amin(-1, keepdim=True)
        deviation = (gp.scale * gp.noise).sqrt().unsqueeze(-1)
        variance = (back(best + deviation) - back(best)).square()
        found: list[float] = variance.nan_to_num().squeeze(-1).tolist()
        return found

    @property
    def latent_points(self) -> Tensor:
        """The evaluated points as the model sees them, (*runs, n, *point)."""
        return self.gp.x


@dataclass(frozen=True)
class Model:
    """A fitted model of an objective. ``mapping`` maps points to the latent space, on which ``gp`` is defined.

    It is the model of a single run: the basis of the mapping is one matrix, length scales are (scales,), data (n,
    *point) and (n,). ``outputs`` maps between the units of the model and the units of the objective, and changes the
    sign if a study maximises. ``fit`` is the start of the next fit, and ``loss`` is the minimised loss.
    """

    gp: GP
    outputs: Outputs
    mapping: NestedMapping
    fit: Fit
    loss: float
    metric: Learned | None = None

    @classmethod
    def of(cls, surrogate: Surrogate, run: int = 0) -> Self:
        """One of the runs that a surrogate was fitted to."""
        return cls(
            surrogate.gp.of_run(run),
            surrogate.outputs.of_run(run),
            surrogate.mapping.of_run(run),
            surrogate.fits[run],
            surrogate.loss[run].item(),
            None if surrogate.metric is None else surrogate.metric.of_run(run),
        )

    def predict(self, x: Any, deviations: float = 0.0) -> Tensor:
        """The median prediction at points (…, *point) of the ambient space, moved by standard deviations: (…)."""
        x = self.mapping.ambient.check(x).double()
        mean, variance = self.gp.moments_in_parts(self._seen(self._row(x)))
        return self.outputs.inverse(mean + deviations * variance.sqrt()).reshape(self._batch(x))

    def draws(self, x: Any, count: int, rng: torch.Generator) -> Tensor:
        """Random functions from the posterior of the model, at points x (q, *point) of the ambient space: (count, q).

        The values are drawn jointly. The time grows with the third power of q.
        """
        x = self.mapping.ambient.check(x).double()
        flat = self._seen(x).flatten(1)
        found = self.gp.posterior(flat).distribution
        eye = torch.eye(len(flat), dtype=x.dtype, device=x.device)
        root = torch.linalg.cholesky(found.covariance_matrix + _BLUR * self.gp.scale * eye)
        noise = torch.randn(len(flat), count, generator=rng, dtype=x.dtype)
        return self.outputs.inverse((found.mean.unsqueeze(-1) + root @ noise).mT)

    def gradients(self, x: Any) -> Tensor:
        """Tangent gradients of the mean, in the model's units, at points x (…, *point) of the ambient space."""
        x = self.mapping.ambient.check(x).double()
        with torch.enable_grad():
            free = x.detach().requires_grad_()
            mean, _ = self.gp.moments(self._seen(self._row(free)))
            (gradient,) = torch.autograd.grad(mean.sum(), free)
        return leaf(self.mapping.ambient).to_tangent(x, gradient)

    @property
    def latent_points(self) -> Tensor:
        """The evaluated points as the model sees them, (n, *point)."""
        return self.gp.x

    def _seen(self, x: Tensor) -> Tensor:
        """What the kernel sees of points of the ambient space."""
        latent = self.mapping.project(x)
        return latent if self.metric is None else self.metric(latent)

    def _row(self, x: Tensor) -> Tensor:
        """All points in one row, (q, *point)."""
        return x.reshape(-1, *self.mapping.ambient.point_shape)

    def _batch(self, x: Tensor) -> torch.Size:
        return x.shape[: x.ndim - len(self.mapping.ambient.point_shape)]
