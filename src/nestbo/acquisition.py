"""What is maximised to find the next point, and how."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from nestbo.interrupts import load
from nestbo.manifolds import Manifold
from nestbo.manifolds.base import Chart
from nestbo.optimise import Result, lbfgs, trust_region
from nestbo.optimise.slsqp import slsqp
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
_SCALES = (0.5, 0.15, 0.05, 0.015, 0.005)  # of the typical distance
_INCUMBENTS = 4
_POOL = 256
_JOINTLY = 64  # pending points whose values are sampled together with that of a candidate
_BELIEVED = 1000  # of more pending points, those that a process is conditioned on
_PENALTY = 10.0  # beyond the bounds of a chart
_CHUNK = {"cpu": 2**10, "cuda": 2**16}  # candidates of all runs together that are evaluated at once


class Limits(NamedTuple):
    """Constraints on the domain of a search: c ≥ 0 at points (…, runs, *point), (…, runs, m); ``smooth`` has slopes."""

    values: Callable[[Tensor], Tensor]
    smooth: bool

    def allow(self, x: Tensor) -> Tensor:
        """Which points satisfy all of them, (…, runs)."""
        return (self.values(x.detach()) >= 0).all(-1)


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
    """LogEI (Ament et al. 2023): expected improvement that keeps its gradient where it is tiny."""
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
    """LogNEI: the improvement over the least of the unknown values at points evaluated and pending.

    Of the evaluated points those with the best posterior mean stand for all.
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

    Before any evaluation is ``feasible`` (runs, n) the chance is all there is.
    """
    if log_chance is None or feasible is None:
        return gain
    some = feasible.any(-1)
    return lambda x: torch.where(some, gain(x), 0) + log_chance(x)


class Optimiser(NamedTuple):
    """How a search refines its starts: ``flat`` minimisers work in the flat coordinates of a space that has them."""

    minimise: Callable[..., Result]
    flat: bool = False


def _patient_slsqp(*arguments: Any, **options: Any) -> Result:
    """SLSQP that is given time to converge."""
    return slsqp(*arguments, **options | {"max_iterations": 200, "tolerance": 1e-9})


OPTIMISERS: dict[str, Optimiser] = {
    "lbfgs": Optimiser(partial(lbfgs, steady=True), flat=True),
    "trust-region": Optimiser(trust_region),
    "slsqp": Optimiser(_patient_slsqp),
}
_STOPPING = Optimiser(lbfgs, flat=True)  # at the last step before a limit


def _within(optimiser: Optimiser, limits: Limits | None) -> Optimiser:
    """The optimiser that serves under limits: a trust region slides along those that have slopes."""
    if limits is None:
        return optimiser
    if not limits.smooth:
        return _STOPPING
    slopes = limits.values
    return Optimiser(partial(trust_region, constraints=lambda x, *_: slopes(x), hessian="differences"))


def candidates(space: Manifold, x: Tensor, y: Tensor, rngs: list[torch.Generator], count: int = _POOL) -> list[Tensor]:
    """Starts for the search, from points (runs, n, *point) and values (runs, n): ``count`` global and ``count`` local.

    The global ones are random points, half of them moved along a random geodesic, which reaches corners that uniform
    draws do not (matrices with small eigenvalues). The local ones are steps at several scales from the best points.
    Both are (count, runs, *point).
    """
    best = y.argsort(-1)[:, :_INCUMBENTS]
    places = torch.arange(count, device=x.device)
    runs = torch.arange(len(x), device=x.device)
    centres = x[runs, best[:, places % best.shape[1]].T]
    scales = torch.tensor(_SCALES, dtype=x.dtype, device=x.device).repeat_interleave(best.shape[1])
    drawn = space.random_each(count, rngs)
    half = count // 2
    far = x.new_full((count - half,), 2 * space.typical_distance)
    lengths = torch.cat([far, scales[places % len(scales)] * space.typical_distance]).unsqueeze(-1)
    moved = scattered(space, torch.cat([drawn[half:], centres]), lengths, rngs)
    return [torch.cat([drawn[:half], moved[: count - half]]), moved[count - half :]]


def scattered(space: Manifold, x: Tensor, lengths: Tensor, rngs: list[torch.Generator]) -> Tensor:
    """Points (count, runs, *point) moved by random fractions of lengths (count, runs), in random directions."""
    kind: dict[str, Any] = {"dtype": x.dtype, "device": x.device}
    fractions = torch.stack([torch.rand(len(x), generator=rng, **kind) for rng in rngs], 1)
    noise = torch.stack([torch.randn(x[:, 0].shape, generator=rng, **kind) for rng in rngs], 1)
    direction = space.from_noise(x, noise)
    step = fractions * lengths / space.norm(x, direction)
    return space.project(space.exp(x, step[(..., *[None] * len(space.point_shape))] * direction))


class Terrain(NamedTuple):
    """What is climbed: an acquisition function of flat points (…, runs, 1, size), on a space, within limits.

    ``somewhere`` (runs, size) are points at which it can be computed.
    """

    acquisition: Callable[[Tensor], Tensor]
    space: Manifold
    limits: Limits | None
    somewhere: Tensor

    def unchecked(self, x: Tensor) -> Tensor:
        """The value at points (…, runs, *point)."""
        return self.acquisition(x.flatten(-len(self.space.point_shape)).unsqueeze(-2))

    def value(self, x: Tensor) -> Tensor:
        """NaN where a step went so far that nothing can be computed, instead of an error in a factorisation."""
        valid = self.space.embed(x.detach()).isfinite().all(-1)
        flat = x.flatten(-len(self.space.point_shape))
        found = self.acquisition(torch.where(valid.unsqueeze(-1), flat, self.somewhere).unsqueeze(-2))
        return torch.where(valid, found, torch.nan)

    def judged(self, x: Tensor) -> Tensor:
        """NaN also where a limit is violated."""
        return self.value(x) if self.limits is None else torch.where(self.limits.allow(x), self.value(x), torch.nan)

    @property
    def climbed(self) -> Callable[[Tensor], Tensor]:
        """What a refinement looks at: limits with slopes are the optimiser's business."""
        return self.value if self.limits is None or self.limits.smooth else self.judged


def maximise(
    acquisition: Callable[[Tensor], Tensor],
    space: Manifold,
    pools: list[Tensor],
    *,
    optimiser: Optimiser = OPTIMISERS["trust-region"],
    restarts: int = 8,
    max_iterations: int = 25,
    limits: Limits | None = None,
) -> tuple[Tensor, Tensor]:
    """The best point of an acquisition function on a manifold, for each of several runs: (runs, *point), (runs,).

    ``acquisition`` takes (…, runs, 1, size) and gives (…, runs). ``pools`` are tensors of candidate starts
    (count, runs, *point); the best of each pool are refined together, and the best found is returned. Under ``limits``
    with slopes the refinement is a trust region that slides along them; one without stops where its next step is out.
    """
    terrain = Terrain(acquisition, space, limits, pools[0][0].flatten(-len(space.point_shape)))
    with torch.no_grad():
        ranked = terrain.unchecked if limits is None else terrain.judged
        starts, worth = _top(pools, ranked, restarts // len(pools))
    ends, worth = _refined(terrain, starts, _height(worth), _within(optimiser, limits), max_iterations)
    runs = torch.arange(starts.shape[1], device=starts.device)
    chosen = worth.argmax(0)
    return ends[chosen, runs], worth[chosen, runs]


def _height(worth: Tensor) -> Tensor:
    """The unit of heights in each run: logarithms are of order 1; plain improvements may be tiny, and look flat."""
    height = torch.where(worth.isfinite(), worth, 0).abs().amax(0).clamp(1e-200, 1.0)
    return torch.where(worth.isfinite().any(0), height, 1.0)


def _refined(
    terrain: Terrain, starts: Tensor, height: Tensor, optimiser: Optimiser, max_iterations: int
) -> tuple[Tensor, Tensor]:
    """Where climbs from starts (count, runs, *point) end, and the heights there; −∞ beyond a limit."""
    space = terrain.space
    chart = space.chart if optimiser.flat else None
    climb = _on_manifold(terrain, height) if chart is None else _on_chart(terrain, height, chart)
    rows = (torch.arange(len(starts), device=starts.device),) if starts.shape[1] > 1 else ()
    where, begin = (space, starts) if chart is None else (chart.flat, chart.coordinates(starts))
    found = optimiser.minimise(climb, where, begin, data=rows, tolerance=1e-4, max_iterations=max_iterations)
    ends = found.point if chart is None else space.project(chart.point(found.point)[0])
    worth = (-found.value * height).nan_to_num(nan=-torch.inf)
    if terrain.limits is not None:
        worth = torch.where(terrain.limits.allow(ends), worth, -torch.inf)
    return ends, worth


def _on_manifold(terrain: Terrain, height: Tensor) -> Callable[..., Tensor]:
    """What is minimised on the space itself."""
    climbed = terrain.climbed
    return lambda x, *_: -climbed(x) / height


def _on_chart(terrain: Terrain, height: Tensor, chart: Chart) -> Callable[..., Tensor]:
    """What is minimised in flat coordinates: beyond the bounds of the chart there is a penalty."""
    climbed = terrain.unchecked if terrain.limits is None else terrain.climbed

    def loss(u: Tensor, *_: Tensor) -> Tensor:
        x, beyond = chart.point(u)
        return _PENALTY * beyond - climbed(x) / height

    return loss


def _top(pools: list[Tensor], value: Callable[[Tensor], Tensor], count: int) -> tuple[Tensor, Tensor]:
    """The best ``count`` of each pool (candidates, runs, *point) in each run, and what they are worth."""
    pool = torch.cat(pools)
    runs = torch.arange(pool.shape[1], device=pool.device)
    chunk = max(1, _CHUNK[pool.device.type] // len(runs))
    worth = torch.cat([value(part) for part in pool.split(chunk)]).nan_to_num(nan=-torch.inf)
    sizes = [len(each) for each in pools]
    best = [part.topk(count, dim=0).indices for part in worth.split(sizes)]
    order = torch.cat([each + sum(sizes[:k]) for k, each in enumerate(best)])
    return pool[order, runs], worth[order, runs]
