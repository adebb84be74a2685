"""Coordinates that are tied together: small boxes and tori inside large ones, and when they grow.

The coordinates of a large box are put into a few groups at random. All coordinates of a group move together, each in its
own direction: up, or down. So the search has as many dimensions as there are groups. When it stalls, every group is cut
in two, and nothing is lost: a point whose groups move together has parts that move together. The idea is that of
Papenmeier, Nardi and Poloczek 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.manifolds import Box, Space, Torus
from nestbo.memory import Memory
from nestbo.nested import Identity, NestedMapping
from nestbo.search import Runs
from nestbo.search.runs import successes
from nestbo.strategies.great_spheres import NOTICEABLE, STALL, Outlook, Span

TIED = (Box, Torus)
FIRST = 5  # random points of a small box before there is a model of it: as many as of the whole
_WHOLE = 20  # coordinates up to which a space is searched as a whole
_GROUPS = 8  # at first


@dataclass(frozen=True, eq=False)
class Tied(NestedMapping):
    """Points whose coordinates move in groups: ``basis`` (*runs, coordinates, groups) has 1 or −1 where one belongs."""

    basis: Tensor
    space: Box | Torus

    @property
    def ambient(self) -> Space:
        return self.space

    @property
    def latent(self) -> Space:
        count = self.basis.shape[-1]
        return Torus(count) if isinstance(self.space, Torus) else Box((0.0,) * count, (1.0,) * count)

    @classmethod
    def at(cls, basis: Tensor, ambient: Space) -> Self:
        if not isinstance(ambient, Box | Torus):
            raise ArgumentError(f"Coordinates of a Box or of a Torus are tied, got {ambient}.")
        return cls(basis, ambient)

    @classmethod
    def random(cls, ambient: Space, latent: Space, rng: torch.Generator) -> Self:
        return cls.at(grouped(ambient.dim, latent.dim, rng), ambient)

    def project(self, x: Tensor) -> Tensor:
        if isinstance(self.space, Torus):
            return self.latent.project(x @ self._first)
        return (1 + (2 * self.space.unit(x) - 1) @ self._first) / 2

    @property
    def _first(self) -> Tensor:
        """The basis with the first coordinate of each group only."""
        place = self.basis.abs().cumsum(-2)
        return torch.where(place == 1, self.basis, 0)

    def lift(self, z: Tensor) -> Tensor:
        if isinstance(self.space, Torus):
            return self.space.project(z @ self.basis.mT)
        return self.space.at((1 + (2 * z - 1) @ self.basis.mT) / 2)

    def lift_near(self, z: Tensor, x: Tensor) -> Tensor:
        return self.lift(z)

    def fit_lift(self, x: Tensor, *, max_iterations: int = 1000) -> Self:
        return self


def grouped(coordinates: int, groups: int, rng: torch.Generator) -> Tensor:
    """A basis (coordinates, groups): a random order of the coordinates, cut into even parts, and random directions.

    From generators in the same state, the parts of more groups are parts of fewer ones.
    """
    order = torch.randperm(coordinates, generator=rng)
    directions = 2.0 * torch.randint(2, (coordinates,), generator=rng) - 1
    basis = torch.zeros(coordinates, groups, dtype=torch.float64)
    basis[order, torch.arange(coordinates) * groups // coordinates] = directions.double()
    return basis


def spans(space: Space, latent_dim: Any, runs: Runs) -> list[Span]:
    """How many groups each run has next; as many as there are coordinates, where it searches the whole space."""
    if latent_dim is None or space.dim <= _WHOLE:
        return [Span(space.dim)] * len(runs.rngs)
    record = runs.record
    pairs = zip(record.memories, record.scores, strict=True)
    return [Span(_grown(memories, values, space.dim)) for memories, values in pairs]


def _grown(memories: list[Memory], values: list[float], most: int) -> int:
    """The number of groups after all stalls."""
    groups, quiet = _GROUPS, 0
    for memory, much in zip(memories, successes(values, NOTICEABLE), strict=True):
        quiet = 0 if much else quiet + (memory.arm is not None)
        if quiet == STALL:
            groups, quiet = min(most, 2 * groups), 0
    return groups


def outlook(space: Box | Torus, groups: int, runs: Runs) -> Outlook:
    """The small space of so many groups, in each run its own, or the space itself."""
    if groups == space.dim:
        return Outlook(space, Identity(space), "full", [Memory() for _ in runs.rngs])
    seeds = [_seed(runs, run) for run in range(len(runs.rngs))]
    bases = [grouped(space.dim, groups, torch.Generator().manual_seed(seed)) for seed in seeds]
    mapping = Tied(torch.stack(bases).to(runs.x), space)
    return Outlook(mapping.latent, mapping, f"tied:{groups}", [Memory(frame=seed) for seed in seeds])


def _seed(runs: Runs, run: int) -> int:
    """That of the groups of a run, drawn when it is first needed."""
    asked = runs.asked[run] if runs.asked else []
    known = (memory.frame for memory in (*runs.record.memories[run], *asked) if memory.frame is not None)
    seed = next(known, None)
    drawn = torch.randint(2**53, (), generator=runs.rngs[run], device=runs.rngs[run].device) if seed is None else seed
    return int(drawn)
