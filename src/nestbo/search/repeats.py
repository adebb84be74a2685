"""No point is suggested twice: where a search ends at a known point, the suggestion is another one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from nestbo.manifolds import Space, leaf
from nestbo.memory import Memory
from nestbo.search.mixed import combinations, every
from nestbo.search.runs import Runs

_COINCIDING = 1e-8  # of the typical distance: points count as one below 1e-9, and distances are rounded
_ATTEMPTS = 20  # draws of a random point, after which a set of points counts as exhausted
_LISTED = 1000  # combinations of separate values, of which those that are left are looked up
_FINISHED = "the acquisition function is largest at a known point"
_AT_RANDOM = "at random, as the points that were found are known"


def repeated(space: Space, x: Tensor, runs: Runs) -> Tensor:
    """Which points x (runs, *point) coincide with one that their run has evaluated or asked for, (runs,).

    None counts where values are noisy: evaluated again, a point gives another one.
    """
    if runs.noisy:
        return torch.zeros(len(x), dtype=torch.bool, device=x.device)
    known = torch.cat([runs.record.x, runs.pending], 1)
    return coinciding(space, x.unsqueeze(1), known).any(-1)


def coinciding(space: Space, x: Tensor, y: Tensor) -> Tensor:
    """Which points x and y (…, *point) are one, (…)."""
    near = space.dist(x, y) < _COINCIDING * space.typical_distance
    return near | (x == y).flatten(-len(space.point_shape)).all(-1)


def unrepeated(
    space: Space, x: Tensor, memories: list[Memory], runs: Runs, explore: Callable[[], Tensor]
) -> tuple[Tensor, list[Memory]]:
    """Points x (runs, *point) and memories; in runs that know their point already, what ``explore`` finds instead.

    There the search has finished: an exact value says nothing new when it is evaluated again.
    """
    if not (known := repeated(space, x, runs)).any():
        return x, memories
    x = torch.where(known[(..., *[None] * len(space.point_shape))], space.project(explore()), x)
    pairs = zip(memories, known.tolist(), strict=True)
    memories = [replace(memory, moved=_FINISHED) if again else memory for memory, again in pairs]
    return drawn_again(space, x, memories, runs)


def _left(space: Space, runs: Runs) -> Tensor | None:
    """Of separate values and nothing else, a random point that is not known yet; None where there is no such point."""
    if leaf(space).dim > 0 or runs.allowed is not None:
        return None
    points, found = every(space, runs.pending.new_zeros(math.prod(space.point_shape))), []
    known = torch.cat([runs.record.x, runs.pending], 1).flatten(2)
    for own, rng in zip(known, runs.rngs, strict=True):
        free = points[~(points.unsqueeze(1) == own).all(-1).any(-1)]
        if not len(free):
            return None
        found.append(free[int(torch.randint(len(free), (), generator=rng, device=rng.device))])
    return torch.stack(found).reshape(-1, *space.point_shape)


def drawn_again(space: Space, x: Tensor, memories: list[Memory], runs: Runs) -> tuple[Tensor, list[Memory]]:
    """Points and memories, with random points in place of known ones, as long as there seem to be others."""
    for _ in range(_ATTEMPTS):
        which = repeated(space, x, runs).nonzero().flatten().tolist()
        if not which:
            break
        drawn = _left(space, runs.take(which)) if combinations(space) <= _LISTED else None
        drawn = runs.take(which).random(space) if drawn is None else drawn
        x = x.index_copy(0, torch.tensor(which, device=x.device), drawn)
        memories = [Memory(moved=_AT_RANDOM) if run in which else memory for run, memory in enumerate(memories)]
    return x, memories
