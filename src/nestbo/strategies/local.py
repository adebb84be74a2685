"""Local searches: trust regions around other points than the best one, whose basins may be deeper, and around that.

The regions are those of TuRBO (Eriksson et al. 2019), reduced to what the notes of a run can tell: no state is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from nestbo.acquisition import Limits, maximise, scattered
from nestbo.kernels import kernel
from nestbo.manifolds import Manifold
from nestbo.optimise import Result
from nestbo.strategies.base import successes
from nestbo.strategies.runs import Runs
from nestbo.surrogate import Surrogate, fit_surrogate, median_parameters

START = "start"  # in the notes: the point that a region began at
_KERNEL = "gaussian"  # near a minimum most functions are smooth
_LARGEST, _FIRST, _LEAST = 0.6, 0.25, 0.03  # radii, of the typical distance
_LEAST_AT_BEST = 0.005  # precision counts there
_GROWTH, _SHRINKAGE = 1.6, 0.75
_AWAY, _NEAR = 0.3, 0.1  # of the typical distance: from known points to where a region begins, and where it ends
_PROGRESS = 0.05  # of the distance to the best value: less is no success
_LEADS = 0.003  # of the distance of most values to the best: less is no better point
_POINTS = 20  # of the local model, and three for each dimension
_STARTS = 256
_PENALTY = 100.0  # outside


class Region(NamedTuple):
    """A trust region of one run: the places of the evaluation it began at and of its best one, its relative radius."""

    start: int
    centre: int
    radius: float


def regions(arm: str, latent: Manifold, z: Tensor, runs: Runs) -> list[Region]:
    """Where the searches of an arm go on, for runs with latent points z (runs, n, *point)."""
    points = latent.embed(z).cpu() / latent.typical_distance
    return [_region(arm, runs.take([k]), points[k]) for k in range(len(points))]


def regions_at_best(arm: str, runs: Runs) -> list[Region]:
    """Those at the best points: widened by successes of the arm, narrowed by its failures, in the end anew."""
    return [_at_best(arm, runs.take([k])) for k in range(len(runs.rngs))]


def _at_best(arm: str, run: Runs) -> Region:
    best, size = _best(_sound(run), run.ranking[0].tolist()), _FIRST
    for note, success in zip(run.notes[0], successes(run.scores[0]), strict=True):
        if note.get("arm") == arm:
            size = _resized(size, success)
            size = _FIRST if size < _LEAST_AT_BEST else size
    return Region(best, best, size)


def _region(arm: str, run: Runs, points: Tensor) -> Region:
    """That of one run: the last one, or, where that has shrunk to nothing or come back to a point that is known, a new.

    A new one begins at an evaluated point away from all known ones, at the best such, the next time at any; and every
    third time at the best point, as long as that leads to better ones.
    """
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
    away = (points.unsqueeze(1) - points[known + [places[0] for places in tried]]).norm(dim=-1).amin(-1)
    sound = _sound(run)
    enough = min(_AWAY, float(away[sound].max()))
    free = [k for k in sound if away[k] >= enough]
    drawn = free[int(torch.randint(len(free), (), generator=run.rngs[0], device=run.rngs[0].device))]
    best = _best(sound, y)
    useful = _leading(tried, run.scores[0]) and all(best != places[0] for places in tried)
    start = (_best(free, y), drawn, best if useful else drawn)[len(tried) % 3]
    return Region(start, start, _FIRST)


def _leading(tried: list[list[int]], y: list[float]) -> bool:
    """Whether the last region that began at the best point of its time, if any did, has led to a better one."""
    at_best = [places for places in tried if places[1:] and y[places[0]] <= min(y[: places[1]])]
    enough = _LEADS * (sorted(y)[len(y) // 2] - min(y))
    return not at_best or y[at_best[-1][0]] - min(y[k] for k in at_best[-1]) > enough


def _tried(arm: str, run: Runs) -> list[list[int]]:
    """The places of the evaluations of each region, where it began first; the newest region last."""
    place = {tuple(x): k for k, x in enumerate(run.x[0].flatten(1).tolist())}
    found: dict[int, list[int]] = {}
    for k, note in enumerate([*run.notes[0], *(note for asked in run.asked for note in asked)]):
        start = place.get(tuple(note.get(START, ()))) if note.get("arm") == arm else None
        if start is not None:
            told = [k] if k < run.y.shape[1] else []
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
    sound = torch.ones(run.y.shape[1], dtype=torch.bool) if run.feasible is None else run.feasible[0].cpu()
    if run.failed is not None:
        sound = sound & ~run.failed[0].cpu()
    return sound.nonzero().flatten().tolist() or list(range(run.y.shape[1]))


def _best(places: Iterable[int], y: list[float]) -> int:
    return min(places, key=y.__getitem__)


def search_near(
    latent: Manifold,
    runs: Runs,
    found: list[Region],
    acquisition: Callable[[Runs, Surrogate], Callable[[Tensor], Tensor]],
    *,
    priors: bool,
    optimiser: Callable[..., Result],
    limits: Limits | None = None,
) -> Tensor:
    """Where a model of the points around a region's centre is worth most there, (runs, *point), on the latent space."""
    x, y, each = runs.x, runs.y, torch.arange(len(runs.x), device=runs.x.device)
    features, centre = latent.embed(x), torch.tensor([region.centre for region in found], device=x.device)
    middle = features[each, centre].unsqueeze(1)
    count = min(y.shape[1], _POINTS + 3 * latent.dim)
    around = (features - middle).norm(dim=-1).topk(count, largest=False).indices.T
    near = runs.at(x[each, around].transpose(0, 1), y[each, around].T, around.T)
    smooth = kernel(_KERNEL, latent)
    usual = median_parameters(smooth).expand(len(x), -1)  # few points, few parameters: a few steps from there will do
    model = fit_surrogate(smooth, near.x, near.y, runs.rngs, previous=usual, priors=priors, noise=near.noise)
    worth = acquisition(near, model)
    radii = torch.tensor([region.radius for region in found], dtype=x.dtype, device=x.device)
    size = latent.typical_distance * radii

    def inside(z: Tensor) -> Tensor:
        away = (latent.embed(z.unflatten(-1, latent.point_shape)) - middle).norm(dim=-1).squeeze(-1)
        return worth(z) - _PENALTY * (away / size - 1).clamp(min=0).square()

    starts = scattered(latent, x[each, centre].expand(_STARTS, *x[:, 0].shape), size.expand(_STARTS, -1), runs.rngs)
    return maximise(inside, latent, [starts], optimiser=optimiser, restarts=4, limits=limits)[0]
