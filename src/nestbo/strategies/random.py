"""Random search."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Self

import torch
from torch import Tensor

from nestbo.constraints import Constraints
from nestbo.history import History
from nestbo.manifolds import Space
from nestbo.memory import Memory
from nestbo.search.runs import Runs
from nestbo.strategies.base import Strategy, Suggestion


@dataclass(frozen=True, repr=False)
class RandomSearch(Strategy):
    """Independent random points of the space."""

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls()]

    @property
    def several(self) -> bool:
        return True

    def propose(self, space: Space, runs: Runs) -> tuple[Tensor, list[Memory]]:
        return runs.random(space), [Memory() for _ in runs.rngs]

    def suggest(
        self,
        space: Space,
        history: History,
        n: int,
        rng: torch.Generator,
        *,
        constraints: Constraints | None = None,
    ) -> list[Suggestion]:
        draw = partial(space.random, rng=rng) if constraints is None else partial(constraints.random, rng)
        return [Suggestion(draw()) for _ in range(n)]
