"""Random search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from nestbo.history import History
from nestbo.manifolds import Manifold
from nestbo.strategies.base import Runs, Strategy, Suggestion


@dataclass(frozen=True, repr=False)
class RandomSearch(Strategy):
    """Independent random points of the space."""

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls()]

    def propose(self, space: Manifold, runs: Runs) -> tuple[Tensor, list[dict[str, Any]]]:
        return torch.stack([space.random(rng=rng) for rng in runs.rngs]), [{} for _ in runs.rngs]

    def suggest(self, space: Manifold, history: History, n: int, rng: torch.Generator) -> list[Suggestion]:
        return [Suggestion(space.random(rng=rng)) for _ in range(n)]
