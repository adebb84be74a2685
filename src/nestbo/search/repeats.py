"""No point is suggested twice: where a search ends at a known point, the suggestion is another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from nestbo.manifolds import Manifold
from nestbo.memory import Memory
from nestbo.search.runs import Runs

_COINCIDING = 1e-8  # of the typical distance: points count as one below 1e-9, and distances are rounded
_ATTEMPTS = 20  # draws of a random point, after which a set of points counts as exhausted
_FINISHED = "the acquisition function is largest at a known point"
_AT_RANDOM = "at random, as the points that were found are known"


def repeated(space: Manifold, x: Tensor, runs: Runs) -> Tensor:
    """Which points x (runs, *point) coincide with one that their run has evaluated or asked for, (runs,).

    None counts where values are noisy: evaluated again, a point gives another one.
    """
    if runs.noisy:
        return torch.zeros(len(x), dtype=torch.bool, device=x.device)
    known = torch.cat([runs.record.x, runs.pending], 1)
    return coinciding(space, x.unsqueeze(1), known).any(-1)


def coinciding(space: Manifold, x: Tensor, y: Tensor) -> Tensor:
    """Which points x and y (…, *point) are one, (…)."""
    near = space.dist(x, y) < _COINCIDING * space.typical_distance
    return near | (x == y).flatten(-len(space.point_shape)).all(-1)


def unrepeated(
    space: Manifold, x: Tensor, memories: list[Memory], runs: Runs, explore: Callable[[], Tensor]
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


def drawn_again(space: Manifold, x: Tensor, memories: list[Memory], runs: Runs) -> tuple[Tensor, list[Memory]]:
    """Points and memories, with random points in place of known ones, as long as there seem to be others."""
    for _ in range(_ATTEMPTS):
        which = repeated(space, x, runs).nonzero().flatten().tolist()
        if not which:
            break
        x = x.index_copy(0, torch.tensor(which, device=x.device), runs.take(which).random(space))
        memories = [Memory(moved=_AT_RANDOM) if run in which else memory for run, memory in enumerate(memories)]
    return x, memories
