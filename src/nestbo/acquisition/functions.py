"""What is maximised to find the next point."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from nestbo.interrupts import load
from nestbo.surrogate import GP

if TYPE_CHECKING:  # half a second to import, so imported when first used
    from botorch.acquisition import AcquisitionFunction

_LATE = (  # what acquisition functions import below, or when they are first evaluated
    "botorch.acquisition.analytic",
    "botorch.acquisition.logei",
    "botorch.acquisition.monte_carlo",
    "botorch.acquisition.objective",
    "botorch.sampling.normal",
    "torch.fx.experimental.symbolic_shapes",
)
_CONFIDENCE = 4.0  # β of the upper confidence bound
_SAMPLES = 128
_BASELINE = 12  # evaluated points that may be the best of noisy ones
_JOINTLY = 64  # pending points whose values are sampled together with that of a candidate
_BELIEVED = 1000  # of more pending points, those that a process is conditioned on


class Question(NamedTuple):
    """What an acquisition function is asked about: a process, the best value, points under evaluation.

    ``best`` (*runs) is in the model's units, ``pending`` (*runs, m, size) are as the model sees them, ``seed`` fixes
    the samples, and ``among`` (*runs, n) says which evaluations may be the best of noisy ones; None for all.
    """

    gp: GP
    best: Tensor
    pending: Tensor | None
    seed: int
    among: Tensor | None = None


Build = Callable[[Question], "AcquisitionFunction"]


def log_expected_improvement(asked: Question) -> AcquisitionFunction:
    """LogEI (Ament et al. 2023): the logarithm of the expected improvement, which has a gradient even if it is tiny."""
    from botorch.acquisition import LogExpectedImprovement, qLogExpectedImprovement

    if asked.pending is None:
        return LogExpectedImprovement(asked.gp, best_f=asked.best.unsqueeze(-1), maximize=False)
    return qLogExpectedImprovement(asked.gp, -asked.best, **_jointly_with(asked.pending, asked.seed))


def expected_improvement(asked: Question) -> AcquisitionFunction:
    """Expected improvement, as in the paper."""
    from botorch.acquisition import ExpectedImprovement, qExpectedImprovement
    from botorch.exceptions.warnings import NumericsWarning

    with warnings.catch_warnings():  # BoTorch advises LogEI, our default; who asks for this one wants the paper's
        warnings.simplefilter("ignore", NumericsWarning)
        if asked.pending is None:
            return ExpectedImprovement(asked.gp, best_f=asked.best.unsqueeze(-1), maximize=False)
        return qExpectedImprovement(asked.gp, -asked.best, **_jointly_with(asked.pending, asked.seed))


def confidence_bound(asked: Question) -> AcquisitionFunction:
    """The optimistic bound, mean less two standard deviations."""
    from botorch.acquisition import UpperConfidenceBound, qUpperConfidenceBound

    if asked.pending is None:
        return UpperConfidenceBound(asked.gp, beta=_CONFIDENCE, maximize=False)
    return qUpperConfidenceBound(asked.gp, _CONFIDENCE, **_jointly_with(asked.pending, asked.seed))


def noisy_log_expected_improvement(asked: Question) -> AcquisitionFunction:
    """LogNEI: the improvement over the least of the unknown true values at evaluated and pending points.

    Of the evaluated points, only those with the best posterior mean are used.
    """
    from botorch.acquisition import qLogNoisyExpectedImprovement

    baseline = _leading(asked.gp, asked.among)
    options = _jointly_with(baseline if asked.pending is None else asked.pending, asked.seed)
    options["X_pending"] = asked.pending
    return qLogNoisyExpectedImprovement(asked.gp, baseline, prune_baseline=False, cache_root=False, **options)


def _leading(gp: GP, among: Tensor | None) -> Tensor:
    """The evaluated points with the best posterior mean, flat (*runs, k, size)."""
    mean, _ = gp.moments(gp.x)
    mean = mean if among is None else torch.where(among, mean, torch.inf)
    leading = mean.argsort(-1)[..., :_BASELINE]
    # Where there are fewer, the first fills up: it changes no minimum.
    leading = torch.where(mean.gather(-1, leading).isfinite(), leading, leading[..., :1]).unsqueeze(-1)
    flat = gp.x.flatten(gp.z.ndim)
    return flat.gather(-2, leading.expand(*leading.shape[:-1], flat.shape[-1]))


def _jointly_with(pending: Tensor, seed: int) -> dict[str, Any]:
    """What makes an acquisition function that maximises a batch one that minimises, given points under evaluation."""
    from botorch.acquisition.objective import GenericMCObjective
    from botorch.sampling import SobolQMCNormalSampler

    return {
        "sampler": SobolQMCNormalSampler(torch.Size([_SAMPLES]), seed=seed),
        "objective": GenericMCObjective(lambda samples, X=None: -samples[..., 0]),  # noqa: N803
        "X_pending": pending,
    }


ACQUISITIONS: dict[str, Build] = {
    "logei": log_expected_improvement,
    "lognei": noisy_log_expected_improvement,
    "ei": expected_improvement,
    "ucb": confidence_bound,
}


def improvement(
    name: str, gp: GP, pending: Tensor | None, seed: int, *, noisy: bool = False, feasible: Tensor | None = None
) -> Callable[[Tensor], Tensor]:
    """The acquisition function of a name, as the evaluations want it.

    Where values are ``noisy``, "logei" is "lognei". Where only some evaluations are ``feasible`` (runs, n), the best is
    one of these, if there are any, and "ei" is "logei", whose maximum is at the same point. Samples of the values at
    pending points are drawn as long as there are few of these; of many the expected values are believed.
    """
    load(*_LATE)
    if pending is not None and pending.shape[-2] > _JOINTLY:
        gp, feasible, pending = _believed(gp, pending, feasible)
    name = "logei" if name == "ei" and feasible is not None else name
    name = "lognei" if name == "logei" and noisy else name
    among = None if feasible is None else feasible | ~feasible.any(-1, keepdim=True)
    best = (gp.z if among is None else torch.where(among, gp.z, torch.inf)).amin(-1)
    found: Callable[[Tensor], Tensor] = ACQUISITIONS[name](Question(gp, best, pending, seed, among))
    return found


def _believed(gp: GP, pending: Tensor, feasible: Tensor | None) -> tuple[GP, Tensor | None, None]:
    """A process that takes its own expectations at pending points, the newest of very many, for evaluations there."""
    points = pending[..., -_BELIEVED:, :].unflatten(-1, gp.kernel.space.point_shape)
    if feasible is not None:
        feasible = torch.cat([feasible, torch.ones_like(pending[..., -_BELIEVED:, 0], dtype=torch.bool)], -1)
    return gp.given(points), feasible, None


def constrained(
    gain: Callable[[Tensor], Tensor], log_chance: Callable[[Tensor], Tensor] | None, feasible: Tensor | None
) -> Callable[[Tensor], Tensor]:
    """The logarithm of constrained EI (Gardner et al. 2014): of the improvement, and of the chance that it counts.

    As long as no evaluation is ``feasible`` (runs, n), only the chance counts.
    """
    if log_chance is None or feasible is None:
        return gain
    some = feasible.any(-1)
    return lambda x: torch.where(some, gain(x), 0) + log_chance(x)
