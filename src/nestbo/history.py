"""What has been tried: the only state of an optimisation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, overload

import torch
from torch import Tensor

Status = Literal["asked", "told", "failed"]
Direction = Literal["minimize", "maximize"]
Noise = float | Literal["infer"] | None


@dataclass(frozen=True)
class Observation:
    """What an evaluation gave, where that is more than a number.

    ``constraints`` are one or several numbers, each ≥ 0 where its constraint is satisfied; ``noise`` is the variance of
    the noise in the value.
    """

    value: Any
    constraints: Any = None
    noise: float | None = None


@dataclass(frozen=True)
class Trial:
    """One point, and what became of it."""

    index: int
    x: Tensor
    value: float | None = None
    status: Status = "asked"
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def constraints(self) -> tuple[float, ...] | None:
        """What was told of the constraints, each ≥ 0 where it is satisfied; None if nothing was."""
        told = self.notes.get("constraints")
        return None if told is None else tuple(told)

    @property
    def noise(self) -> float | None:
        """The variance of the noise in the value, where it was told with it."""
        return self.notes.get("noise")

    @property
    def feasible(self) -> bool:
        """Whether no constraint is known to be violated here."""
        return "violation" not in self.notes and all(c >= 0 for c in self.constraints or ())


@dataclass(frozen=True)
class History(Sequence[Trial]):
    """The trials of a study in the order of their indices.

    ``noise`` is the variance of the noise of values, "infer" if they are noisy and it is not known, None if they are
    taken as exact.
    """

    trials: tuple[Trial, ...] = ()
    noise: Noise = None
    direction: Direction = "minimize"

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> History: ...
    def __getitem__(self, index: int | slice) -> Trial | History:
        return self._with(self.trials[index]) if isinstance(index, slice) else self.trials[index]

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    def _with(self, trials: tuple[Trial, ...]) -> History:
        return replace(self, trials=trials)

    @property
    def to_minimise(self) -> History:
        """The same with values whose best is the least, as strategies see it."""
        if self.direction == "minimize":
            return self
        flipped = tuple(replace(t, value=None if t.value is None else -t.value) for t in self)
        return History(flipped, self.noise)

    def add(self, *trials: Trial) -> History:
        """A longer history."""
        return self._with((*self.trials, *trials))

    @property
    def finished(self) -> History:
        """The trials that were told or failed."""
        return self._with(tuple(trial for trial in self if trial.status != "asked"))

    @property
    def pending(self) -> History:
        """The trials that were asked and not yet told."""
        return self._with(tuple(trial for trial in self if trial.status == "asked"))

    @property
    def best(self) -> Trial | None:
        """The told trial with the best value, of those that violate no constraint."""
        told = [trial for trial in self if trial.status == "told" and trial.feasible]
        choose = min if self.direction == "minimize" else max
        return choose(told, key=lambda trial: _number(trial.value)) if told else None

    @property
    def noisy(self) -> bool:
        """Whether values are not to be taken as exact."""
        return self.noise is not None or any(trial.noise is not None for trial in self)

    @property
    def points(self) -> Tensor:
        """Points (n, *point) of all trials here; there must be one."""
        return torch.stack([trial.x for trial in self])

    @property
    def values(self) -> Tensor:
        """Values (n,) of finished trials; a failed one counts as the worst told, and so keeps its place."""
        told = [_number(trial.value) for trial in self if trial.status == "told"]
        worst = (max if self.direction == "minimize" else min)(told, default=0.0)
        return torch.tensor(
            [_number(trial.value) if trial.status == "told" else worst for trial in self], dtype=torch.float64
        )

    @property
    def constraints(self) -> Tensor | None:
        """What was told of the constraints (n, m), the least told where a trial has nothing; None if none has."""
        told = [trial.constraints for trial in self if trial.constraints]
        if not told:
            return None
        least = tuple(map(min, zip(*told, strict=False)))  # those that all have
        rows = [(trial.constraints or least)[: len(least)] for trial in self]
        return torch.tensor(rows, dtype=torch.float64)

    @property
    def variances(self) -> Tensor | None:
        """The variance of the noise of each value (n,), where each has its own; else None.

        A trial told without one has that of the history, or else the mean of those told.
        """
        told = [trial.noise for trial in self if trial.noise is not None]
        if not told:
            return None
        usual = self.noise if isinstance(self.noise, float) else sum(told) / len(told)
        return torch.tensor([usual if t.noise is None else t.noise for t in self], dtype=torch.float64)


def _number(value: float | None) -> float:
    return math.inf if value is None else value
