"""How an acquisition function is maximised: from the best of many starts, on the manifold or in its chart."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nestbo.manifolds import Manifold
from nestbo.manifolds.base import Chart
from nestbo.optimise import Result, lbfgs, trust_region
from nestbo.optimise.slsqp import slsqp

_PENALTY = 10.0  # beyond the bounds of a chart
_CHUNK = {"cpu": 2**10, "cuda": 2**16}  # candidates of all runs together that are evaluated at once


class Limits(NamedTuple):
    """Constraints on the domain of a search: c ≥ 0 at points (…, runs, *point), (…, runs, m); ``smooth`` has slopes."""

    values: Callable[[Tensor], Tensor]
    smooth: bool

    def allow(self, x: Tensor) -> Tensor:
        """Which points satisfy all of them, (…, runs)."""
        return (self.values(x.detach()) >= 0).all(-1)


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
