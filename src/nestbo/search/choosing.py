"""Which evaluations a model sees: all, as long as they are not too many."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from nestbo.manifolds import Space
from nestbo.search.runs import Runs

_MOST = 1000  # evaluations of which a model predicts; its time grows with the third power of their number


def seen(space: Space, runs: Runs) -> Runs:
    """The evaluations that models see: all or, of very many, some, with all of them as ``whole``.

    A quarter are the best, a quarter those nearest to the best one, a quarter the newest, and the rest an even choice
    of the others by their rank. What is counted and remembered still depends on all.
    """
    if runs.y.shape[1] <= _MOST:
        return runs
    away = (space.embed(runs.x) - space.embed(runs.best)).norm(dim=-1)
    which = torch.stack([_chosen(*pair) for pair in zip(runs.ranking, away, strict=True)])
    each = torch.arange(len(which), device=which.device).unsqueeze(-1)
    places = which.tolist()
    return replace(
        runs.at(runs.x[each, which], runs.y[each, which], which),
        memories=[[run[k] for k in own] for run, own in zip(runs.memories, places, strict=True)],
        indices=[[runs.index(run, k) for k in own] for run, own in enumerate(places)],
        whole=runs,
    )


def _chosen(ranking: Tensor, away: Tensor) -> Tensor:
    """The places of the evaluations that are seen, ascending, given their ranks and distances to the best one, (n,)."""
    n, quarter, by_rank = len(ranking), _MOST // 4, ranking.argsort()
    kept = torch.zeros_like(ranking, dtype=torch.bool)
    kept[by_rank[:quarter]] = True
    kept[away.topk(quarter, largest=False).indices] = True
    kept[n - quarter :] = True
    others = by_rank[~kept[by_rank]]
    count = _MOST - int(kept.sum())
    kept[others[torch.arange(count, device=others.device) * len(others) // count]] = True
    return kept.nonzero().flatten()
