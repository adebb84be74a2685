"""Fitting the surrogate on a space itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nestbo.kernels import ManifoldKernel
from nestbo.manifolds import Box, Manifold
from nestbo.nested import Identity, NestedMapping
from nestbo.optimise import lbfgs
from nestbo.outputs import Log, Outputs, Standardise
from nestbo.surrogate.gp import GP, gram_root
from nestbo.surrogate.likelihood import (
    NOISE_PRIOR,
    Criterion,
    best_mean,
    best_scale,
    negative_log_likelihood,
    noisy_gram,
    scale_prior,
)

_NOISE = (1e-6, 1.0)  # the variance of noise relative to that of the signal
_MOST_NOISE = 1e3  # of known noise; more would contradict the values
_STARTS = 4
_FIT_POINTS = 500
_CLEARLY = 0.2  # in nats per observation
_FIT_ITERATIONS = 40
_WARM_ITERATIONS = 10  # one more evaluation changes little
_FIT_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Surrogate:
    """A fitted model of the objective of each of several runs, a batch axis in front of all; ``Model`` is one of them.

    ``mapping`` leads to the latent space, where ``gp`` lives in the model's units.
    ``outputs`` is the map between these units and the objective's, ``notes`` are what the next fit wants to know, and
    ``loss`` (*runs) is what the fit has minimised.
    """

    gp: GP
    outputs: Outputs
    mapping: NestedMapping
    notes: tuple[dict[str, Any], ...]
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

    @property
    def latent_points(self) -> Tensor:
        """The evaluated points as the model sees them, (*runs, n, *point)."""
        return self.gp.x


def fit_surrogate(
    kernel: ManifoldKernel,
    x: Tensor,
    y: Tensor,
    rngs: list[torch.Generator],
    *,
    outputs: Callable[[Tensor], Outputs] = Standardise.fit,
    priors: bool = True,
    previous: Tensor | None = None,
    noise: float | Tensor | None = None,
    criterion: Criterion = negative_log_likelihood,
) -> Surrogate:
    """Fit length scales, noise, mean and scale to x (runs, n, *point), y (runs, n), n ≥ 1, one generator per run.

    With ``priors`` the fit is maximum a posteriori, else maximum likelihood, best of several starts: the prior's
    median and random ones; or a few steps from ``previous`` parameters (runs, scales + 1). It does not fail: where
    nothing finite was found, the prior's median stands in, shortened until the Gram matrix is positive definite, and
    the note says so. ``noise`` is the variance of the noise in y, if it is known, or that of each value (runs, n); a
    map of the outputs that is not linear has no use for it.
    """
    transform, z, known = targets(kernel, y, outputs, noise)
    box = parameter_box(kernel, bool(known))
    starts = _starts(kernel, box, rngs, previous)
    seen, values, *weights = representative(x, z, *known[1:])
    statistic = kernel.statistic(seen, seen)

    def loss(parameters: Tensor, statistic: Tensor, z: Tensor, *known: Tensor) -> Tensor:
        return criterion(kernel, parameters, statistic.unsqueeze(1), z.unsqueeze(1), priors, *known)

    data = (statistic, values, *known[:1], *(each.unsqueeze(1) for each in weights))
    parameters, value = best_of(loss, box, starts, data, warm=previous is not None)
    parameters = shortened(kernel, parameters, x, known)
    gp = condition(kernel, x, z, parameters, priors, known)
    notes = tuple(
        note_of(p, v, values.shape[1], y.shape[1]) for p, v in zip(parameters.tolist(), value.tolist(), strict=True)
    )
    return Surrogate(gp, transform, Identity(kernel.space), notes, value)


def steepness(kernel: ManifoldKernel, x: Tensor, y: Tensor, rngs: list[torch.Generator], **options: Any) -> Tensor:
    """Whether the values of each run are clearly likelier after the logarithm than as they are, (runs,)."""
    x, y, *_ = representative(x, y)
    fits = [fit_surrogate(kernel, x, y, rngs, outputs=map_.fit, **options) for map_ in (Standardise, Log)]
    plain, log = (fit.loss - fit.outputs.log_slope(y).sum(-1) for fit in fits)
    return (plain - log > _CLEARLY * y.shape[-1]) & (y.amax(-1) > y.amin(-1))


def targets(
    kernel: ManifoldKernel, y: Tensor, outputs: Callable[[Tensor], Outputs], noise: float | Tensor | None
) -> tuple[Outputs, Tensor, tuple[Tensor, ...]]:
    """The map of the outputs, y in the model's units, and what is known of its noise there.

    That is nothing, the variance (runs, 1), or the mean variance and each one relative to it (runs, n).
    """
    transform = outputs(y)
    known = None if noise is None else transform.noise(noise)
    if known is None:
        return transform, transform.forward(y), ()
    # Less than this is lost in the rounding of the Gram matrix anyway.
    known = known.clamp(100 * max(_NOISE[0], kernel.tolerance), _MOST_NOISE)
    mean = known.mean(-1, keepdim=True)
    return transform, transform.forward(y), (mean, known / mean) if isinstance(noise, Tensor) else (known,)


def representative(x: Tensor, z: Tensor, *more: Tensor) -> tuple[Tensor, ...]:
    """What a fit looks at: all points and values, or of very many the best and an even choice of the others.

    ``more`` are other numbers of each, (runs, n).
    """
    if z.shape[1] <= _FIT_POINTS:
        return x, z, *more
    order = z.argsort(-1)
    half = _FIT_POINTS // 2
    spread = torch.linspace(half, z.shape[1] - 1, _FIT_POINTS - half, device=z.device).long()
    which = torch.cat([order[:, :half], order[:, spread]], 1)
    runs = torch.arange(len(z), device=z.device).unsqueeze(-1)
    return tuple(part[runs, which] for part in (x, z, *more))


def best_of(
    loss: Callable[..., Tensor], manifold: Manifold, starts: Tensor, data: tuple[Tensor, ...], *, warm: bool
) -> tuple[Tensor, Tensor]:
    """Descend from starts (runs, count, *point) and take the best of each run; the first start if none is finite."""
    iterations = _WARM_ITERATIONS if warm else _FIT_ITERATIONS
    found = lbfgs(loss, manifold, starts, data=data, tolerance=_FIT_TOLERANCE, max_iterations=iterations, steady=True)
    value = found.value.nan_to_num(nan=math.inf)
    runs, chosen = torch.arange(len(starts), device=starts.device), value.argmin(1)
    finite = value[runs, chosen].isfinite()
    return torch.where(finite.unsqueeze(-1), found.point[runs, chosen], starts[:, 0]), value[runs, chosen]


def note_of(parameters: list[float], value: float, seen: int, n: int) -> dict[str, Any]:
    """What the next fit wants to know, whether this one failed, and how many data it saw, if not all."""
    note: dict[str, Any] = {"parameters": parameters, "evaluations": n} | ({} if seen == n else {"fitted_to": seen})
    return note if math.isfinite(value) else {**note, "fallback": "the fit failed; its first start stands in"}


def previous_parameters(notes: list[dict[str, Any]]) -> Tensor:
    """The fitted parameters (runs, scales + 1) in the notes of each run."""
    return torch.tensor([note["parameters"] for note in notes], dtype=torch.float64)


def median_parameters(kernel: ManifoldKernel) -> Tensor:
    """The median of the prior of (log length scales, log relative noise)."""
    return torch.cat([kernel.median_lengthscale.log(), torch.tensor([NOISE_PRIOR[0]], dtype=torch.float64)])


def parameter_box(kernel: ManifoldKernel, known: bool) -> Box:
    """Bounds of (log length scales, log relative noise); with known noise the latter sets the signal's scale."""
    low, high = kernel.lengthscale_bounds
    least, most = max(_NOISE[0], kernel.tolerance), _MOST_NOISE if known else _NOISE[1]
    return Box(
        [*low.log().tolist(), math.log(least)],  # type: ignore[arg-type]
        [*high.log().tolist(), math.log(most)],  # type: ignore[arg-type]
    )


def _starts(kernel: ManifoldKernel, box: Box, rngs: list[torch.Generator], previous: Tensor | None) -> Tensor:
    """(runs, starts, parameters): the previous fit, or else the prior's median and draws from the prior."""
    if previous is not None:
        return box.project(previous.to(rngs[0].device).unsqueeze(1))
    median = median_parameters(kernel)
    size = len(median)
    draws = torch.stack(
        [torch.randn(_STARTS - 1, size, generator=rng, dtype=torch.float64, device=rng.device) for rng in rngs]
    )
    median = median.to(draws)
    return box.project(torch.cat([median.expand(len(rngs), 1, size), median + draws], 1))


def shortened(kernel: ManifoldKernel, parameters: Tensor, x: Tensor, known: tuple[Tensor, ...]) -> Tensor:
    """Halve the length scales of those runs whose Gram matrix is not positive definite until it is."""
    least, statistic = kernel.lengthscale_bounds[0].log().to(parameters), kernel.statistic(x, x)
    while (broken := torch.linalg.cholesky_ex(noisy_gram(kernel, parameters, statistic, *known[1:])).info != 0).any():
        shorter = torch.maximum(parameters[..., :-1] - math.log(2), least)
        if (shorter == parameters[..., :-1])[broken].all():
            break
        shorter = torch.where(broken.unsqueeze(-1), shorter, parameters[..., :-1])
        parameters = torch.cat([shorter, parameters[..., -1:]], -1)
    return parameters


def condition(
    kernel: ManifoldKernel, x: Tensor, z: Tensor, parameters: Tensor, priors: bool, known: tuple[Tensor, ...]
) -> GP:
    """The process with these parameters, given the data."""
    lengthscale, noise = parameters[..., :-1].exp(), parameters[..., -1].exp()
    root = gram_root(kernel, x, lengthscale, noise, *known[1:])
    mean, residual = best_mean(root, z)
    best = best_scale(residual.square().sum(-1), *scale_prior(z, priors))
    scale = known[0].squeeze(-1) / noise if known else best
    return GP(kernel, x, z, lengthscale, mean, scale, noise, root)
