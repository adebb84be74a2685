"""Local searches: trust regions around other points than the best one, whose basins may be deeper, and around that.

The regions are those of TuRBO (Eriksson et al. 2019), reduced to what the memories of a run can tell: no state is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nestbo.kernels import kernel
from nestbo.manifolds import Space
from nestbo.memory import Fit
from nestbo.search.runs import Runs, successes
from nestbo.surrogate import Description, Surrogate, fit, median_parameters

_KERNEL = "gaussian"  # near a minimum most functions are smooth
_LARGEST, _FIRST, _LEAST = 0.6, 0.25, 0.03  # radii, of the typical distance
_LEAST_AT_BEST = 0.005  # precision counts there
_GROWTH, _SHRINKAGE = 1.6, 0.75
_AWAY, _NEAR = 0.3, 0.1  # of the typical distance: from known points to where a region begins, and where it ends
_PROGRESS = 0.05  # of the distance to the best value: less is no success
_LEADS = 0.003  # of the distance of most values to the best: less is no better point
_AT_ONCE = 1000  # points whose differences to all known ones are held in memory
_POINTS = 20  # of the local model, and three for each dimension


class Region(NamedTuple):
    """A trust region of one run: the places of the evaluation it began at and of its best one, its relative radius."""

    start: int
    centre: int
    radius: float


def regions(arm: str, latent: Space, z: Tensor, runs: Runs) -> list[Region]:
    """Where the searches of an arm go on, for runs with latent points z (runs, n, *point)."""
    points = latent.embed(z).cpu() / latent.typical_distance
    return [_region(arm, runs.take([k]), points[k]) for k in range(len(points))]


def regions_at_best(arm: str, runs: Runs) -> list[Region]:
    """Those at the best points: widened by successes of the arm, narrowed by its failures, in the end anew."""
    return [_at_best(arm, runs.take([k])) for k in range(len(runs.rngs))]


def _at_best(arm: str, run: Runs) -> Region:
    best, size = _best(_sound(run), run.ranking[0].tolist()), _FIRST
    for memory, success in zip(run.memories[0], successes(run.scores[0]), strict=True):
        if memory.arm == arm:
            size = _resized(size, success)
            size = _FIRST if size < _LEAST_AT_BEST else size
    return Region(best, best, size)


def _region(arm: str, run: Runs, points: Tensor) -> Region:
    """Continue the newest region unless it is too small or has returned to a known better point; then start another."""
    y, tried = run.ranking[0].tolist(), _tried(arm, run)
    others = set(range(len(y))).difference(*tried[-1:])
    known = [_best(places, y) for places in (others, *tried[:-1]) if places]
    if tried:
        centre, size = _best(tried[-1], y), _radius(tried[-1], y)
        better = [k for k in known if k != centre and y[k] <= y[centre]]
        back = any((points[k] - points[centre]).norm() < _NEAR for k in better)
        if size >= _LEAST and not back:
            return Region(tried[-1][0], centre, size)
        known.append(centre)
    start = _start(tried, known, run, points)
    return Region(start, start, _FIRST)


def _start(tried: list[list[int]], known: list[int], run: Runs, points: Tensor) -> int:
    """The evaluation at which another region begins; the three kinds of starts take turns.

    ============ ==========================================================================
    first        the best evaluation away from all known ones
    second       any evaluation away from all known ones
    third        the best of all, as long as beginning there leads to better points; else any
    ============ ==========================================================================
    """
    y, sound = run.ranking[0].tolist(), _sound(run)
    known = known + [places[0] for places in tried]
    away = torch.cat([(part.unsqueeze(1) - points[known]).norm(dim=-1).amin(-1) for part in points.split(_AT_ONCE)])
    enough = min(_AWAY, float(away[sound].max()))
    free = [k for k in sound if away[k] >= enough]
    drawn = free[int(torch.randint(len(free), (), generator=run.rngs[0], device=run.rngs[0].device))]
    best = _best(sound, y)
    useful = _leading(tried, run.scores[0]) and all(best != places[0] for places in tried)
    return (_best(free, y), drawn, best if useful else drawn)[len(tried) % 3]


def _leading(tried: list[list[int]], y: list[float]) -> bool:
    """Whether the last region that began at the best point of its time, if any did, has led to a better one."""
    best = np.minimum.accumulate(y)
    at_best = [places for places in tried if places[1:] and y[places[0]] <= best[places[1] - 1]]
    enough = _LEADS * (sorted(y)[len(y) // 2] - min(y))
    return not at_best or y[at_best[-1][0]] - min(y[k] for k in at_best[-1]) > enough


def _tried(arm: str, run: Runs) -> list[list[int]]:
    """The places of the evaluations of each region, where it began first; the newest region last."""
    n = run.y.shape[1]
    place = {run.index(0, k): k for k in range(n)}
    found: dict[int, list[int]] = {}
    for k, memory in enumerate([*run.memories[0], *(memory for asked in run.asked for memory in asked)]):
        start = place.get(memory.start) if memory.arm == arm and memory.start is not None else None
        if start is not None:
            told = [k] if k < n else []
            found[start] = found.pop(start, [start]) + told
    return list(found.values())


def _radius(places: list[int], y: list[float]) -> float:
    """Widened by successes, which go a part of the way to the best value that is known by now, narrowed by failures."""
    best, size = places[0], _FIRST
    for k in places[1:]:
        success = y[k] < y[best] - _PROGRESS * (y[best] - min(y))
        size = _resized(size, success)
        best = _best((best, k), y)
    return size


def _resized(size: float, success: bool) -> float:
    return min(_LARGEST, _GROWTH * size) if success else _SHRINKAGE * size


def _sound(run: Runs) -> list[int]:
    """The places of evaluations that neither failed nor violate a constraint; of all, if there are none."""
    sound = torch.ones_like(run.y[0], dtype=torch.bool)
    if run.feasible is not None:
        sound = sound & run.feasible[0]
    if run.failed is not None:
        sound = sound & ~run.failed[0]
    places: list[int] = sound.nonzero().flatten().tolist()
    return places or list(range(len(sound)))


def _best(places: Iterable[int], y: list[float]) -> int:
    return min(places, key=y.__getitem__)


def local_model(latent: Space, z: Tensor, centre: Tensor, runs: Runs, priors: bool) -> tuple[Surrogate, Runs]:
    """A model of the evaluations z (runs, n, *point) nearest to a centre (runs, *point), and these evaluations."""
    features, each = latent.embed(z), torch.arange(len(z), device=z.device)
    distances = (features - latent.embed(centre).unsqueeze(1)).norm(dim=-1)
    count = min(z.shape[1], _POINTS + 3 * latent.dim)
    around = distances.topk(count, largest=False).indices.T
    near = runs.at(z[each, around].transpose(0, 1), runs.y[each, around].T, around.T)
    smooth = kernel(_KERNEL, latent)
    usual = Fit(tuple(median_parameters(smooth).tolist()), count)  # few points: a few steps from there will do
    return fit(Description(smooth, priors=priors), near.data, [usual] * len(z)), near
