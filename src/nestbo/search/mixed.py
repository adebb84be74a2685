"""Searches over spaces in which some values are separate: whole numbers, choices, and products of these with manifolds.

A climb moves what can be moved and leaves separate values as they are. Where these have few combinations, there is a
climb in each. Where there are many, climbs and steps from value to value take turns, as in BoTorch's
``optimize_acqf_mixed`` and ``optimize_acqf_mixed_alternating``, which know boxes only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from nestbo.acquisition import Limits, Optimiser, maximise
from nestbo.manifolds import Finite, Product, Space, leaf
from nestbo.search.runs import Runs
from nestbo.search.turns import exchanged

_FEW = 32  # combinations, in each of which there is a climb
_CLIMBS = 16  # at least so many in all
_CANDIDATES = 2048  # for all combinations together
_LISTED = 4096  # combinations of nothing but separate values, up to which all are compared
_ROUNDS = 4  # of steps and climbs
_STEPS = 8  # in a row, from value to value
_STARTS = 16  # from which these are made
_KNOWN = 1e6  # what a point that was evaluated already is worth less, in units of logarithms and of deviations


@dataclass(frozen=True)
class Climb:
    """How an acquisition function of flat points (…, runs, 1, size) is climbed on a domain."""

    worth: Callable[[Tensor], Tensor]
    domain: Space
    optimiser: Optimiser
    restarts: int
    limits: Limits | None = None

    def __call__(self, pools: list[Tensor], restarts: int | None = None) -> tuple[Tensor, Tensor]:
        """The best point that climbs from the best of some pools (count, runs, *point) lead to, and its worth."""
        found = self.restarts if restarts is None else restarts
        where, how = leaf(self.domain), self.optimiser
        return maximise(self.worth, where, pools, optimiser=how, restarts=found, limits=self.limits)

    def values(self, z: Tensor) -> Tensor:
        """The worth of points (…, runs, *point) as they are; −∞ beyond a limit."""
        with torch.no_grad():
            flat = z.flatten(-len(self.domain.point_shape))
            found = self.worth(flat.unsqueeze(-2)).nan_to_num(nan=-torch.inf)
            return found if self.limits is None else torch.where(self.limits.allow(z), found, -torch.inf)


def over_separate_values(climb: Climb, pools: list[Tensor], told: Runs) -> Tensor:
    """The best point of a domain with separate values, one for each run, (runs, *point).

    In runs in which it is a neglected value's turn, the point is one with this value.
    """
    points, ready = exchanged(climb.domain, told)
    if not ready.any():
        return _searched(climb, pools, told)
    if climb.limits is not None:
        ready &= climb.limits.allow(points)
    axes = [None] * len(climb.domain.point_shape)
    return torch.where(ready[(..., *axes)], points, _searched(climb, pools, told))


def _searched(climb: Climb, pools: list[Tensor], told: Runs) -> Tensor:
    """The same by the acquisition function alone."""
    domain, count = climb.domain, combinations(climb.domain)
    if leaf(domain).dim == 0:
        return _listed(_new_only(climb, told), pools)
    if count <= _FEW:
        return climb(_in_each(domain, torch.cat(pools)), max(_CLIMBS // count, 1) * count)[0]
    return _in_turn(climb, pools)


def combinations(space: Space) -> int:
    """How many combinations of separate values there are; 1 where there are no such values."""
    if isinstance(space, Product):
        return math.prod(map(combinations, space.factors))
    return space.count if isinstance(space, Finite) else 1


def every(space: Space, like: Tensor) -> Tensor:
    """A point (like.shape[-1],) with each combination of separate values in place of its own, (combinations, size)."""
    if isinstance(space, Finite):
        return space.points.to(like)
    if not isinstance(space, Product) or combinations(space) == 1:
        return like.unsqueeze(0)
    parts = [every(factor, part.flatten()) for factor, part in zip(space.factors, space.split(like), strict=True)]
    places = torch.cartesian_prod(*(torch.arange(len(part), device=like.device) for part in parts))
    places = places.reshape(-1, len(parts))
    return torch.cat([part[places[:, k]] for k, part in enumerate(parts)], -1)


def _in_each(domain: Space, pool: Tensor) -> list[Tensor]:
    """Pools of starts (count, runs, size), one for each combination of separate values."""
    enough = max(_CANDIDATES // combinations(domain), _CLIMBS)
    pool = pool[:: max(len(pool) // enough, 1)]
    mark = torch.full_like(pool[0, 0], torch.nan)  # what moves in the domain keeps its place in a point
    return [torch.where(values.isnan(), pool, values) for values in every(domain, mark)]


def _in_turn(climb: Climb, pools: list[Tensor]) -> Tensor:
    """Steps from value to value and climbs, one after the other, as long as they lead up."""
    pool = torch.cat(pools)
    best = climb.values(pool).topk(min(_STARTS, len(pool)), dim=0).indices
    each = torch.arange(pool.shape[1], device=pool.device)
    z, worth = climb([_stepped(climb, pool[best, each])])
    for _ in range(_ROUNDS):
        further, gain = climb([_stepped(climb, z.unsqueeze(0))], 1)
        better = gain > worth
        if not better.any():
            break
        z = torch.where(better[(..., *[None] * len(climb.domain.point_shape))], further, z)
        worth = torch.where(better, gain, worth)
    return z


def _stepped(climb: Climb, z: Tensor) -> Tensor:
    """Points (count, runs, *point) after steps of one separate value at a time, each to the best neighbour."""
    worth = climb.values(z)
    for _ in range(_STEPS):
        around = neighbours(climb.domain, z)
        gain, which = climb.values(around).max(0)
        better = gain > worth
        if not better.any():
            break
        wider = (..., *[None] * (z.ndim - 2))
        index = which[wider].expand(z.shape).unsqueeze(0)
        z = torch.where(better[wider], around.gather(0, index).squeeze(0), z)
        worth = torch.where(better, gain, worth)
    return z


def neighbours(space: Space, z: Tensor) -> Tensor:
    """Points (m, …, *point) that differ from z (…, *point) in one separate value."""
    if isinstance(space, Finite):
        return space.steps(z)
    if not isinstance(space, Product):
        return z.unsqueeze(0)[:0]
    parts, found = space.split(z), []
    for k, (factor, part) in enumerate(zip(space.factors, parts, strict=True)):
        for changed in neighbours(factor, part):
            found.append(space.join([*parts[:k], changed, *parts[k + 1 :]]))
    return torch.stack(found) if found else z.unsqueeze(0)[:0]


def _listed(climb: Climb, pools: list[Tensor]) -> Tensor:
    """The best combination of nothing but separate values: of all, or of those that steps from some lead to."""
    pool = torch.cat(pools)
    runs = torch.arange(pool.shape[1], device=pool.device)
    if combinations(climb.domain) <= _LISTED:
        listed = every(climb.domain, pool[0, 0])
        pool = listed.unsqueeze(1).expand(-1, *pool.shape[1:])
    else:
        best = climb.values(pool).topk(_STARTS, dim=0).indices
        pool = _stepped(climb, pool[best, runs])
    return pool[climb.values(pool).argmax(0), runs]


def _new_only(climb: Climb, told: Runs) -> Climb:
    """The same climb, in which points that are known already come last, unless values are noisy."""
    if told.noisy:
        return climb
    known = torch.cat([told.record.x, told.pending], 1).flatten(2)  # (runs, n, size)

    def worth(z: Tensor) -> Tensor:
        again = (z == known).all(-1).any(-1)
        return climb.worth(z) - _KNOWN * again.to(z)

    return replace(climb, worth=worth)
