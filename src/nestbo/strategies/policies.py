"""Policies: which arm makes the next suggestion. ``POLICIES`` is where a new one is registered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
import torch

from nestbo.errors import ArgumentError, shown
from nestbo.manifolds.base import check_size
from nestbo.search.runs import Runs, successes
from nestbo.specification import Specified
from nestbo.strategies.arms import Arm, Embedded, Full
from nestbo.strategies.base import Standing


@dataclass(frozen=True)
class Record:
    """How one run went so far, as a policy sees it.

    ``arms`` are the names of who suggested each evaluation, None for random and added points; ``values`` are as arms
    are judged by; ``turn`` is the number of the next suggestion; ``worth`` is that of each nested model when last
    compared with the full one; ``constrained`` says that constraints are told with the values.
    """

    arms: Sequence[str | None]
    values: Sequence[float]
    turn: int
    worth: Mapping[str, float] = field(default_factory=dict)
    constrained: bool = False

    @classmethod
    def each(cls, runs: Runs) -> list[Record]:
        """One for each run."""
        constrained, turn = runs.constraints is not None, runs.y.shape[1] + runs.pending.shape[1]
        found = []
        for memories, values in zip(runs.memories, runs.scores, strict=True):
            worth = {name: worth for memory in memories for name, worth in memory.worth.items()}
            found.append(cls([memory.arm for memory in memories], values, turn, worth, constrained))
        return found

    def counts(self, arm: str, decay: float) -> tuple[float, float]:
        """Successes and failures of an arm, by its name, the older ones counting less by a factor at each new one."""
        good = bad = 0.0
        for name, success in zip(self.arms, successes(self.values), strict=True):
            if name == arm:
                good, bad = decay * good + success, decay * bad + (not success)
        return good, bad


class Policy(Specified, ABC):
    """A rule that says who is next. Its constants are its fields, so that the text form of a strategy has them."""

    @abstractmethod
    def choose(self, arms: Sequence[Arm], record: Record, rng: torch.Generator) -> Arm:
        """One of the arms."""


@dataclass(frozen=True, repr=False)
class Success(Policy):
    """Thompson sampling: each arm draws from Beta(1 + successes, 1 + failures), the largest draw suggests.

    ``decay`` makes an arm's earlier suggestions count less at each new one; its value is the prototype's.
    """

    decay: float = 0.93

    def __post_init__(self) -> None:
        _check_share("decay", self.decay)

    def choose(self, arms: Sequence[Arm], record: Record, rng: torch.Generator) -> Arm:
        draw = np.random.default_rng(int(torch.randint(2**62, (), generator=rng, device=rng.device)))
        counts = [record.counts(arm.name, self.decay) for arm in arms]
        return arms[int(np.argmax([draw.beta(1 + good, 1 + bad) for good, bad in counts]))]


@dataclass(frozen=True, repr=False)
class InTurn(Policy):
    """One after the other."""

    def choose(self, arms: Sequence[Arm], record: Record, rng: torch.Generator) -> Arm:
        return arms[record.turn % len(arms)]


@dataclass(frozen=True, repr=False)
class Balanced(Policy):
    """Mostly by success, now and then a scout, whom neither a learned subspace nor a local minimum can mislead.

    Scouts are arms that say so and, next to nested models without embedded spaces or told constraints, the full model.

    ================================================== ===========================================================
    situation                                          who is next
    ================================================== ===========================================================
    no nested model is worth its parameters            the full model; once in ``seldom`` turns another by success
    the best value stands still, no embedded spaces    scouts in turn; once in ``seldom`` turns another by success
    embedded spaces, and the others have no luck       by success; every ``often``-th time a scout
    otherwise                                          by success; once in ``seldom`` turns a scout
    ================================================== ===========================================================

    ``luck`` is a usual chance of success; the best value stands still when in ``window`` evaluations it has moved by
    less than ``hardly`` of its distance to the median. The values were chosen on the paper's problems.
    """

    decay: float = 0.93
    luck: float = 0.15
    window: int = 25
    hardly: float = 0.003
    seldom: int = 8
    often: int = 2

    def __post_init__(self) -> None:
        for name in ("decay", "luck", "hardly"):
            _check_share(name, getattr(self, name))
        check_size("window", self.window)
        for name in ("seldom", "often"):
            check_size(name, getattr(self, name), least=2)  # once in one turn leaves none to the others

    def choose(self, arms: Sequence[Arm], record: Record, rng: torch.Generator) -> Arm:
        embedded = any(isinstance(arm, Embedded) for arm in arms)
        learned = any(arm.kind.nesting is not None and not arm.scout for arm in arms)
        full_scouts = learned and not embedded and not record.constrained
        scouts = [arm for arm in arms if arm.scout or (full_scouts and isinstance(arm, Full))]
        others = [arm for arm in arms if arm not in scouts]
        by_success = Success(self.decay)
        if not scouts or not others:
            return by_success.choose(arms, record, rng)

        luck = max(chance(*record.counts(arm.name, self.decay)) for arm in others)
        period = self.often if embedded and luck < self.luck else self.seldom
        rare = record.turn % period == 1
        worth = [record.worth.get(arm.kind.name) for arm in others]
        if full_scouts and all(found is not None and found < 0 for found in worth):
            return by_success.choose(others, record, rng) if rare else scouts[0]
        still = not embedded and stalled(record.values, self.window, self.hardly)
        scout_is_next = rare != still
        return scouts[record.turn // period % len(scouts)] if scout_is_next else by_success.choose(others, record, rng)


def _check_share(name: str, value: Any) -> None:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise ArgumentError(f"{name} is a number between 0 and 1, got {shown(value)}.")


def stalled(y: Sequence[float], window: int = Balanced.window, hardly: float = Balanced.hardly) -> bool:
    """Whether the best value has hardly moved for a while, compared with how far most values are from it."""
    if len(y) <= window:
        return False
    best, before, usual = min(y), min(y[:-window]), sorted(y)[len(y) // 2]
    return before - best < hardly * (usual - best)


def chance(good: float, bad: float) -> float:
    """The expected chance of success after so many successes and failures."""
    return (1 + good) / (2 + good + bad)


def standings(names: Sequence[str], record: Record) -> list[Standing]:
    """How the arms of one run, or the models that compete, have done so far."""
    made = [name for name in record.arms if name is not None]
    counts = [made.count(name) for name in names]
    scores = [chance(*record.counts(name, Success.decay)) for name in names]
    return [
        Standing(name, count, count / max(1, len(made)), score)
        for name, count, score in zip(names, counts, scores, strict=True)
    ]


POLICIES: dict[str, type[Policy]] = {"balanced": Balanced, "success": Success, "inturn": InTurn}
_SPELT = {"in-turn": "inturn"}


def policy(found: Policy | str) -> Policy:
    """The policy itself, or the one of a name, with its usual constants."""
    if isinstance(found, Policy):
        return found
    name = _SPELT.get(found, found) if isinstance(found, str) else None
    if name not in POLICIES:
        raise ArgumentError(f"choice is one of balanced, success, in-turn, got {shown(found)}.")
    return POLICIES[name]()
