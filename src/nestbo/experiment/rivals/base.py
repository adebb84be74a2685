"""What rivals share: they see a cube, the points of a run in it and their values, and say which point is next."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from nestbo.experiment.rivals.charts import Cube, natural, tangent
from nestbo.manifolds import Space
from nestbo.memory import Memory
from nestbo.search.runs import Runs
from nestbo.strategies.base import Strategy, check_choice

CHARTS = ("natural", "tangent")
INITIAL = 5  # points that are drawn at random


@dataclass(frozen=True, repr=False, kw_only=True)
class Rival(Strategy):
    """A method for boxes, on a chart of the space; runs of a batch are served one after the other, on the CPU.

    The tangent chart is that at the best of the initial points.
    """

    chart: str = "natural"

    def __post_init__(self) -> None:
        check_choice("chart", self.chart, CHARTS)

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls()]

    @abstractmethod
    def next(self, u: Tensor, y: Tensor, seed: int) -> Tensor:
        """The next point (size,) of the cube after points u (n, size) with values y (n,)."""

    @property
    def repeats(self) -> bool:
        return True

    def check(self, space: Space) -> None:
        self._cube(space, space.random(1, rng=torch.Generator().manual_seed(0)), torch.zeros(1))

    def propose(self, space: Space, runs: Runs) -> tuple[Tensor, list[Memory]]:
        if not runs.begun(INITIAL):
            return runs.random(space), [Memory() for _ in runs.rngs]
        each = zip(runs.x.cpu(), runs.y.cpu(), runs.rngs, strict=True)
        x = torch.stack([self._one(space, x, y, rng) for x, y, rng in each]).to(runs.x.device)
        return x, [Memory() for _ in runs.rngs]

    def _one(self, space: Space, x: Tensor, y: Tensor, rng: torch.Generator) -> Tensor:
        cube = self._cube(space, x[:INITIAL], y[:INITIAL])
        found = self.next(cube.coordinates(x), y, rng.initial_seed() % 2**32)
        return space.project(cube.point(found.clamp(0, 1)))

    def _cube(self, space: Space, x: Tensor, y: Tensor) -> Cube:
        return natural(space) if self.chart == "natural" else tangent(space, x[y.argmin()])
