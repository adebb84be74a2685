"""Basins in which a search has come to an end are closed, so that the next searches look elsewhere."""

from __future__ import annotations

import torch
from torch import Tensor

from nestbo.memory import Memory
from nestbo.search import Runs
from nestbo.search.runs import latest
from nestbo.search.sections import Basins
from nestbo.surrogate import Surrogate

_PATIENCE = 2  # suggestions for each dimension after which a basin that has not become noticeably better is closed
_LEAST, _MOST = 10, 30  # of these suggestions
_NOTICEABLE = 0.01  # of the distance from the median to the best value
_EDGE = 0.5  # correlation with the centre at the edge of a closed basin, to the power of how many are closed


def close_basins(model: Surrogate, runs: Runs) -> tuple[Basins | None, list[Memory]]:
    """The basins that are closed now, in which the search of each run has come to an end, and what says so."""
    gp, places, patience = model.gp, [], min(max(_LEAST, _PATIENCE * model.mapping.latent.dim), _MOST)
    correlation = gp.kernel.correlation(gp.x, gp.x, gp.lengthscale).cpu()
    ranking, memories, free = runs.ranking.tolist(), [], []
    for run in range(len(ranking)):
        closed, best, open_places = _closed(correlation[run], ranking[run], runs, run, patience)
        places.append(closed)
        free.append(open_places)
        memories.append(Memory(closed=tuple(runs.index(run, k) for k in closed), best=runs.index(run, best)))
    if not any(places):
        return None, memories
    width = max(map(len, places))
    padded = torch.tensor([[*closed, *[0] * (width - len(closed))] for closed in places], device=runs.x.device)
    real = torch.tensor([[k < len(closed) for k in range(width)] for closed in places], device=runs.x.device)
    each = torch.arange(len(places), device=runs.x.device).unsqueeze(-1)
    counts = torch.tensor([max(1, len(closed)) for closed in places], device=runs.x.device)
    return Basins(
        model, gp.x[each, padded], real, _EDGE ** counts.double(), torch.stack(free).to(runs.x.device)
    ), memories


def _closed(correlation: Tensor, y: list[float], runs: Runs, run: int, patience: int) -> tuple[list[int], int, Tensor]:
    """Places of the centres of closed basins, of the best evaluation outside, and which evaluations are outside."""
    place = {runs.index(run, k): k for k in range(len(y))}
    memories = runs.record.memories[run]
    last = latest(memories, lambda memory: memory if memory.best is not None else None)
    closed = [] if last is None else [place[index] for index in last.closed if index in place]
    free = _outside(correlation, closed)
    best = _best(free, y)
    before = None if last is None or last.best not in place else place[last.best]
    enough = _NOTICEABLE * (sorted(y)[len(y) // 2] - min(y))
    if before is None or y[best] < y[before] - enough:
        return closed, best, free
    waited = sum(memory.best == runs.index(run, before) for memory in memories)
    if waited < patience:
        return closed, before, free
    closed = [*closed, best]
    free = _outside(correlation, closed)
    if not free.any():
        closed, free = [], torch.ones_like(free)
    return closed, _best(free, y), free


def _outside(correlation: Tensor, closed: list[int]) -> Tensor:
    """Which evaluations are outside; basins become wider with each that is closed, until nothing is left outside."""
    if not closed:
        return torch.ones(len(correlation), dtype=torch.bool)
    return (correlation[closed] < _EDGE ** len(closed)).all(0)


def _best(free: Tensor, y: list[float]) -> int:
    places = free.nonzero().flatten().tolist() or range(len(y))
    return min(places, key=y.__getitem__)
