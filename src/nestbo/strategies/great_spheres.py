"""Great spheres that the data span, and when they grow.

A function of Wᵀx/|Wᵀx| takes all its values on almost every great sphere of its own dimension or more. So the search on
a large sphere lives on the great sphere that the first evaluations span, completed at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nestbo.manifolds import Manifold, Space, Sphere
from nestbo.memory import Memory
from nestbo.nested import Identity, NestedMapping, NestedSphere, smaller
from nestbo.search import Runs
from nestbo.search.runs import successes

BESIDE = "beside"  # who makes steps beside a great sphere, in memories
_WHOLE = 20  # dimensions up to which a sphere is searched as a whole
_SPANNED, _WIDER = 8, 3  # dimensions of the great sphere at first: so many, or so many more than the latent ones
_STALL = 16  # suggestions without a success before steps beside it, twice as many after each in vain
_NOTICEABLE = 0.01  # of the distance from the median to the best value: what ends a stall
_SURE = 3  # successes in a row that open the whole space: 1 of 24 nested trials had as many by chance (docs/hdgabo.md)
_STEP = 0.05  # radians: far enough for a slope to show, near enough for it to be one
_OFF = 1e-6  # radians from a great sphere


@dataclass(frozen=True)
class Outlook:
    """What is searched in each run: a place, a mapping from the space to it, and what names it in memories."""

    place: Space
    mapping: NestedMapping
    name: str
    memories: list[Memory]

    def seen(self, runs: Runs) -> Runs:
        """The runs as they are there; evaluations beside a great sphere are no data of it."""
        lies = self.mapping.ambient.dist(self.mapping.lift(self.mapping.project(runs.x)), runs.x) < _OFF
        if not lies.all():
            runs = runs.only(lies.all(0).nonzero().flatten().tolist())
        return replace(runs.at(self.mapping.project(runs.x), runs.y), pending=self.mapping.project(runs.pending))


class Span(NamedTuple):
    """What a run searches: a great sphere of some dimension, or the space; and whether a step beside it is due."""

    size: int
    step: int = 0  # +1 or −1 along the first direction beside the great sphere, 0 for none


def spans(space: Space, latent_dim: Any, runs: Runs) -> list[Span]:
    """What each run searches next.

    A function that takes all its values on a small great sphere is found there. For any other the best point of the
    sphere is not the best of all: after a stall two small steps beside the sphere, there and back, tell.

    ============================ ==================================================================================
    neither step is a success    the dimension grows by the direction that was tried; the next stall is twice as long
    one of them is               the dimension grows by that direction, and the next one is tried at once
    three directions in a row    the whole space is searched: nothing is nested here
    one or two, then none        the dimension is doubled, 8 + 1 to 18 or 8 + 2 to 20: the successes may be chance
    ============================ ==================================================================================
    """
    if isinstance(latent_dim, int):
        smaller(space, latent_dim)  # refuses one that does not fit
    if latent_dim is None or not isinstance(space, Sphere) or space.n <= _WHOLE:
        return [Span(space.dim)] * len(runs.rngs)
    least = latent_dim + _WIDER if isinstance(latent_dim, int) else _SPANNED
    record, asked = runs.record, runs.asked or [[] for _ in runs.rngs]
    found = []
    for told, values, under_way in zip(record.memories, record.scores, asked, strict=True):
        stepping = any(memory.arm == BESIDE for memory in under_way)
        span = grown(told, values, min(least, space.n), space.n)
        found.append(Span(span.size) if stepping else span)
    return found


def grown(memories: Sequence[Memory], values: Sequence[float], size: int, most: int) -> Span:
    """The dimension after all stalls, at most that of the space, and the step that is due."""
    quiet, back, won, vain = 0, False, 0, 0
    lucky = zip(memories, successes(values), successes(values, _NOTICEABLE), strict=True)
    for memory, success, much in lucky:
        if memory.arm != BESIDE:
            quiet = 0 if much else quiet + (memory.arm is not None)
        elif success:
            won, back = won + 1, False
            size = size + 1 if won < _SURE else most
        elif not back:
            back = True
        else:
            size, vain = (2 * size, 0) if won else (size + 1, vain + 1)
            quiet, back, won = 0, False, 0
    due = size < most and (back or won > 0 or quiet >= _STALL * 2**vain)
    return Span(min(size, most), (-1 if back else 1) if due else 0)


def outlook(space: Space, size: int, runs: Runs) -> Outlook:
    """The great sphere of some dimension that the first evaluations of each run span, or the space itself."""
    if size == space.dim:
        return Outlook(space, Identity(space), "full", [Memory() for _ in runs.rngs])
    memories = [_spanned(runs, run, size) for run in range(len(runs.rngs))]
    frames = torch.stack([_frame(runs, run, memory, size) for run, memory in enumerate(memories)])
    new = [_known(runs, run) is None for run in range(len(memories))]
    said = [memory if fresh else Memory(frame=memory.frame) for memory, fresh in zip(memories, new, strict=True)]
    return Outlook(Sphere(size), NestedSphere(frames), f"spanned:{size}", said)


def beside(space: Manifold, span: Span, runs: Runs) -> Tensor:
    """A small step from the best point of each run along the next direction of its frame, there or back."""
    wider = span.size + 1
    frames = [_frame(runs, run, _spanned(runs, run, span.size), wider) for run in range(len(runs.rngs))]
    each = torch.arange(len(runs.x), device=runs.x.device)
    best = runs.x[each, runs.ranking.argmin(1)]
    return space.exp(best, span.step * _STEP * space.to_tangent(best, torch.stack(frames)[..., -1]))


def _known(runs: Runs, run: int) -> Memory | None:
    """The memory that says what spans the frame of a run."""
    asked = runs.asked[run] if runs.asked else []
    return next((memory for memory in (*runs.record.memories[run], *asked) if memory.span), None)


def _spanned(runs: Runs, run: int, size: int) -> Memory:
    known = _known(runs, run)
    if known is not None:
        return known
    seed = int(torch.randint(2**53, (), generator=runs.rngs[run], device=runs.rngs[run].device))
    count = min(size + 1, runs.y.shape[1])
    return Memory(frame=seed, span=tuple(runs.index(run, place) for place in range(count)))


def _frame(runs: Runs, run: int, memory: Memory, size: int) -> Tensor:
    """Orthonormal columns (D+1, size+1) of which the first span the first points."""
    record = runs.record
    place = {record.index(run, k): k for k in range(record.y.shape[1])}
    points = record.x[run, [place[index] for index in memory.span if index in place]]
    rng = torch.Generator().manual_seed(memory.frame or 0)
    all_columns = runs.x.shape[-1]  # are drawn, so that the first ones stay the same when the sphere grows
    drawn = torch.randn(all_columns, all_columns, generator=rng, dtype=torch.float64).to(runs.x)
    count = min(len(points), size + 1)
    return torch.linalg.qr(torch.cat([points[:count].mT, drawn[:, count : size + 1]], -1)).Q
