"""What a method is: frozen configuration that turns a history into suggestions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import torch
from torch import Tensor

from nestbo.constraints import Constraints
from nestbo.errors import ArgumentError, shown
from nestbo.history import History
from nestbo.manifolds import Space, released
from nestbo.memory import Memory
from nestbo.search import Runs, drawn_again
from nestbo.specification import Specified
from nestbo.surrogate import Surrogate

_SATISFIED = "to satisfy the constraints"
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True)
class Suggestion:
    """A point to evaluate, and the memory of the method.

    Args:
        x: The point.
        memory: What the method remembers for later suggestions.
    """

    x: Tensor
    memory: Memory = Memory()

    def __post_init__(self) -> None:
        check_memory(self.memory)


@dataclass(frozen=True)
class Standing:
    """How well one of several competing models does.

    Args:
        arm: The name of the model.
        suggestions: The number of its suggestions.
        share: Their share of all suggestions.
        score: Its chance of success.
    """

    arm: str
    suggestions: int
    share: float
    score: float


class Strategy(Specified, ABC):
    """A method of choosing points. It keeps no state: a suggestion is a function of space, history and generator."""

    @classmethod
    @abstractmethod
    def samples(cls) -> list[Self]:
        """A few configurations on which the laws are tested."""

    @abstractmethod
    def propose(self, space: Space, runs: Runs) -> tuple[Tensor, list[Memory]]:
        """One point for each run, (runs, *point), with a memory: the core, in which runs are a batch axis.

        Args:
            space: The space of the points.
            runs: The data: evaluations, pending points and memories of each run.
        """

    @property
    def repeats(self) -> bool:
        """Whether a known point may be suggested again. Methods as published do so."""
        return False

    @property
    def several(self) -> bool:
        """Whether the method works with several objectives."""
        return False

    def check(self, space: Space) -> None:
        """Raise an error if the method cannot work on this space, before anything is evaluated.

        Args:
            space: The space of the points.
        """

    def models(self, space: Space, runs: Runs) -> dict[str, Surrogate]:
        """The surrogates behind the next suggestion by name, the leading one first; empty for a method without models.

        Args:
            space: The space of the points.
            runs: The data: evaluations, pending points and memories of each run.
        """
        return {}

    def standings(self, space: Space, runs: Runs) -> list[Standing]:
        """How the competing models of a method do in the first run; empty for a method without competing models.

        Args:
            space: The space of the points.
            runs: The data: evaluations, pending points and memories of each run.
        """
        return []

    def suggest(
        self,
        space: Space,
        history: History,
        n: int,
        rng: torch.Generator,
        *,
        constraints: Constraints | None = None,
    ) -> list[Suggestion]:
        """``n`` different points to evaluate next, all allowed. Each is chosen with the earlier ones pending.

        Args:
            space: The space of the points.
            history: All trials so far, with values to minimise.
            n: The number of points.
            rng: The generator of random numbers.
            constraints: Constraints known in advance, if there are any.
        """
        runs, suggestions = Runs.of(space, history, rng, constraints), []
        for _ in range(n):
            x, memories = self.propose(space, runs)
            check_memory(memories[0] if isinstance(memories, list | tuple) and memories else memories)
            if constraints is not None and not constraints.allows(x[0]):
                known = runs.x[0] if released(space) is space else space.project(runs.x[0])
                x = constraints.nearest(x[0], rng, known).unsqueeze(0)
                memories = [replace(memories[0], moved=_SATISFIED)]
            if not self.repeats:
                x, memories = drawn_again(space, x, memories, runs)
            suggestions.append(Suggestion(x[0], memories[0]))
            runs = runs.with_pending(x, memories)
        return suggestions


def alike(each: Sequence[_Key]) -> dict[_Key, list[int]]:
    """The places at which each value stands: runs that have the same make a batch."""
    return {key: [run for run, own in enumerate(each) if own == key] for key in dict.fromkeys(each)}


def check_memory(found: Any) -> None:
    """Refuse anything but a memory, such as a dict, from a method of a user."""
    if not isinstance(found, Memory):
        raise ArgumentError(
            f"The memory of a suggestion is a nestbo.Memory, got {shown(found)}. "
            "Return Memory() for nothing, Memory(own={…}) for JSON values of your own."
        )


def check_choice(name: str, value: Any, known: Collection[str]) -> None:
    """Refuse a name that is not known."""
    if not isinstance(value, str) or value not in known:
        raise ArgumentError(f"{name} is one of {', '.join(known)}, got {shown(value)}.")
