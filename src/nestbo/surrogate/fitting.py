"""Fitting a surrogate: one function, for a model of the space itself and for one of a space nested in it."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from nestbo.kernels import ManifoldKernel
from nestbo.manifolds import Manifold
from nestbo.memory import Fit
from nestbo.optimise import lbfgs
from nestbo.surrogate.description import Data, Description, Effort
from nestbo.surrogate.gp import GP
from nestbo.surrogate.likelihood import best_mean, best_scale, noisy_gram, scale_prior
from nestbo.surrogate.model import Surrogate
from nestbo.surrogate.targets import Targets
from nestbo.surrogate.varied import Nested, Warped, Whole

Varied = Whole | Nested | Warped

_LOG = logging.getLogger("nestbo")
_FIT_POINTS = 500  # more cost time and change little
_FEW_FIT_POINTS = 250  # where evaluations are so many that a model is given only some
_FIT_ITERATIONS = 40
_WARM_ITERATIONS = 10  # one more evaluation changes little
_FIT_TOLERANCE = 1e-3


def fit(
    model: Description,
    data: Data,
    previous: Sequence[Fit] | None = None,
    effort: Effort = Effort.FEW_STEPS,
    *,
    guess: Tensor | None = None,
) -> Surrogate:
    """Fit a model to the data of each run: length scales, noise, mean and scale, and with a nesting the basis.

    A fit takes a few steps from the ``previous`` fit of each run. Without a previous fit, or for a new search, it takes
    many steps from several starts; a ``guess`` of the basis is one of the starts. A fit does not fail. If it finds
    nothing finite, its first start is used, with shorter length scales if the Gram matrix needs them, and the fit
    is marked as failed.
    """
    targets = Targets.of(model, data)
    varied = _varied(model, targets.known, guess)
    if effort is Effort.NONE and previous is not None:
        basis, known = varied.known(previous, data.x.device)
        _, gp = _process(varied, basis, known, data, targets)  # data may be others than those of the fit
        return _surrogate(varied, gp, targets, basis, tuple(previous), torch.zeros_like(data.y[:, 0]))
    warm = previous is not None and effort is Effort.FEW_STEPS
    starts = varied.starts(data.rngs, previous, warm)
    seen, inputs = _inputs(varied, data, targets)
    point, value = _best_of(varied, starts, inputs, warm)
    basis, parameters = varied.split(point)
    parameters, gp = _process(varied, basis, parameters, data, targets)
    fits = _fits(parameters, basis, value, seen, data)
    return _surrogate(varied, gp, targets, basis, fits, value)


def _process(varied: Varied, basis: Tensor, parameters: Tensor, data: Data, targets: Targets) -> tuple[Tensor, GP]:
    """Parameters at which the Gram matrix is positive definite, and the process with them."""
    x, kernel = _seen(varied, basis, data.x), varied.model.kernel
    statistic = kernel.statistic(x, x)
    parameters = made_definite(kernel, parameters, statistic, targets)
    return parameters, condition(varied.model, x, statistic, parameters, targets)


def _surrogate(
    varied: Varied, gp: GP, targets: Targets, basis: Tensor, fits: tuple[Fit, ...], loss: Tensor
) -> Surrogate:
    return Surrogate(gp, targets.outputs, varied.mapping(basis), fits, loss, varied.learned(basis))


def _varied(model: Description, known_noise: bool, guess: Tensor | None) -> Varied:
    if model.metric is not None:
        return Warped(model, known_noise, guess)
    return Whole(model, known_noise) if model.nesting is None else Nested(model, known_noise, guess)


def _seen(varied: Varied, basis: Tensor, x: Tensor) -> Tensor:
    """What the kernel sees of points."""
    latent, learned = varied.mapping(basis).project(x), varied.learned(basis)
    return latent if learned is None else learned(latent)


def _inputs(varied: Varied, data: Data, targets: Targets) -> tuple[int, tuple[Tensor, ...]]:
    """How many evaluations a fit looks at, and what its loss is given of them."""
    weights = [] if targets.weights is None else [targets.weights]
    x, z, *weights = representative(_most(data), varied.prepare(data.x), targets.z, *weights)
    noise = [] if targets.noise is None else [targets.noise]
    return z.shape[1], (varied.compare(x), z, *noise, *(each.unsqueeze(1) for each in weights))


def _fits(parameters: Tensor, basis: Tensor, value: Tensor, seen: int, data: Data) -> tuple[Fit, ...]:
    """Where the next fit of each run starts."""
    rows = zip(parameters.tolist(), basis.flatten(1).tolist(), value.tolist(), strict=True)
    given = data.y.shape[1]
    n = given if data.chosen_of is None else data.chosen_of
    fit = partial(Fit, seen=None if seen == n else seen, given=None if given == n else given)
    return tuple(fit(tuple(p), n, tuple(b), failed=not math.isfinite(v)) for p, b, v in rows)


def _most(data: Data) -> int:
    """How many evaluations a fit looks at, at most."""
    return _FIT_POINTS if data.chosen_of is None else _FEW_FIT_POINTS


def representative(count: int, x: Tensor, z: Tensor, *more: Tensor) -> tuple[Tensor, ...]:
    """What a fit looks at: all points and values, or ``count`` of more: the best and an even choice of the others.

    ``more`` are other numbers of each, (runs, n).
    """
    if z.shape[1] <= count:
        return x, z, *more
    order = z.argsort(-1)
    half = count // 2
    evenly = torch.linspace(half, z.shape[1] - 1, count - half, device=z.device).long()
    which = torch.cat([order[:, :half], order[:, evenly]], 1)
    runs = torch.arange(len(z), device=z.device).unsqueeze(-1)
    return tuple(part[runs, which] for part in (x, z, *more))


def _best_of(varied: Varied, starts: Tensor, inputs: tuple[Tensor, ...], warm: bool) -> tuple[Tensor, Tensor]:
    """Descend from starts (runs, count, *point) and take the best of each run; the first start if none is finite."""
    manifold: Manifold = varied.manifold
    iterations = _WARM_ITERATIONS if warm else _FIT_ITERATIONS
    descend = partial(lbfgs, tolerance=_FIT_TOLERANCE, max_iterations=iterations, steady=True)
    found = descend(varied.loss, manifold, starts, data=inputs)
    value = found.value.nan_to_num(nan=math.inf)
    best = torch.arange(len(starts), device=starts.device), value.argmin(1)
    least, point = value[best], found.point[best]
    return torch.where(least.isfinite().unsqueeze(-1), point, starts[:, 0]), least


def made_definite(kernel: ManifoldKernel, parameters: Tensor, statistic: Tensor, targets: Targets) -> Tensor:
    """Halve the length scales of those runs whose Gram matrix is not positive definite until it is."""
    least = kernel.lengthscale_bounds[0].log().to(parameters)
    while (broken := _broken(kernel, parameters, statistic, targets)).any():
        _LOG.info("A Gram matrix is not positive definite: its length scales are halved.")
        shorter = torch.maximum(parameters[..., :-1] - math.log(2), least)
        if (shorter == parameters[..., :-1])[broken].all():
            break
        shorter = torch.where(broken.unsqueeze(-1), shorter, parameters[..., :-1])
        parameters = torch.cat([shorter, parameters[..., -1:]], -1)
    return parameters


def _broken(kernel: ManifoldKernel, parameters: Tensor, statistic: Tensor, targets: Targets) -> Tensor:
    """Which runs have a Gram matrix without a Cholesky factor."""
    gram = noisy_gram(kernel, parameters, statistic, targets.weights)
    return torch.linalg.cholesky_ex(gram).info != 0


def condition(model: Description, x: Tensor, statistic: Tensor, parameters: Tensor, targets: Targets) -> GP:
    """The process with these parameters, given latent points x, the statistic of all pairs of them, and values."""
    root = torch.linalg.cholesky(noisy_gram(model.kernel, parameters, statistic, targets.weights))
    mean, residual = best_mean(root, targets.z)
    lengthscale, noise = parameters[..., :-1].exp(), parameters[..., -1].exp()
    best = best_scale(residual.square().sum(-1), *scale_prior(targets.z, model.priors))
    scale = best if targets.noise is None else targets.noise.squeeze(-1) / noise
    return GP(model.kernel, x, targets.z, lengthscale, mean, scale, noise, root)
