"""What has been tried: the only state of an optimisation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, overload

from nestbo.errors import ArgumentError
from nestbo.fronts import non_dominated
from nestbo.history.trial import Trial

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from nestbo.lazy import torch

Direction = Literal["minimize", "maximize"]
Directions = Direction | tuple[Direction, ...]  # of one objective, or of each of several
Noise = float | tuple[float, ...] | Literal["infer"] | None


@dataclass(frozen=True)
class History(Sequence[Trial]):
    """The trials of a study in the order of their indices.

    Args:
        trials: The trials.
        noise: The variance of the noise in the values; "infer" if it is not known; None for exact values. For several
            objectives, one for each or one for all.
        direction: "minimize" or "maximize"; for several objectives, one for each.
    """

    trials: tuple[Trial, ...] = ()
    noise: Noise = None
    direction: Directions = "minimize"

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
        """The same history with values to minimise, as strategies see it."""
        if "maximize" not in self.directions:
            return self
        flipped = tuple(replace(t, told=replace(t.told, values=self._signed(t))) for t in self)
        down: Direction = "minimize"
        return History(flipped, self.noise, (down,) * len(self.directions) if self.several else down)

    @property
    def several(self) -> bool:
        """Whether there are several objectives."""
        return isinstance(self.direction, tuple)

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The direction of each objective."""
        return self.direction if isinstance(self.direction, tuple) else (self.direction,)

    def _signed(self, trial: Trial) -> tuple[float, ...]:
        """The values of a trial with signs by which the least is the best."""
        pairs = zip(trial.values, self.directions, strict=False)
        return tuple(y if direction == "minimize" else -y for y, direction in pairs)

    def add(self, *trials: Trial) -> History:
        """A longer history.

        Args:
            *trials: The trials to append.
        """
        return self._with((*self.trials, *trials))

    @property
    def finished(self) -> History:
        """The trials that were told or failed, without those that were discarded."""
        return self._with(tuple(trial for trial in self if trial.state in ("told", "failed")))

    @property
    def pending(self) -> History:
        """The trials that were asked and not yet told, without those that were discarded."""
        return self._with(tuple(trial for trial in self if trial.state == "asked"))

    @property
    def best(self) -> Trial | None:
        """The feasible trial with the best value."""
        self.check_one("best trial")
        told = self._feasible
        choose = min if self.direction == "minimize" else max
        return choose(told, key=lambda trial: _number(trial.value)) if told else None

    @property
    def front(self) -> History:
        """The feasible trials that no other feasible trial dominates.

        A trial dominates another one if it is better in at least one objective and worse in none. With one objective,
        the front has the best trial and all trials that are as good.
        """
        told = self._feasible
        if not told or not self.several:
            least = min(map(self._signed, told), default=())
            return self._with(tuple(trial for trial in told if self._signed(trial) == least))
        outcomes = torch.tensor([self._signed(trial) for trial in told], dtype=torch.float64)
        kept = zip(told, non_dominated(outcomes).tolist(), strict=True)
        return self._with(tuple(trial for trial, first in kept if first))

    @property
    def _feasible(self) -> list[Trial]:
        return [trial for trial in self if trial.state == "told" and trial.feasible]

    def check_one(self, wanted: str) -> None:
        """Raise an error if there are several objectives.

        Args:
            wanted: What is wanted, in words.
        """
        if self.several:
            raise ArgumentError(
                f"Several objectives have no {wanted}. front has the trials that nothing dominates; choose one."
            )

    @property
    def noisy(self) -> bool:
        """Whether values are noisy."""
        return self.noise is not None or any(trial.noise is not None for trial in self.finished)

    @property
    def points(self) -> Tensor:
        """Points (n, *point) of all trials here; there must be one."""
        return torch.stack([trial.x for trial in self])

    @property
    def values(self) -> Tensor:
        """Values (n,) of finished trials; a failed trial counts as the worst told value."""
        self.check_one("single value")
        told = [_number(trial.value) for trial in self if trial.status == "told"]
        worst = (max if self.direction == "minimize" else min)(told, default=0.0)
        return torch.tensor(
            [_number(trial.value) if trial.status == "told" else worst for trial in self], dtype=torch.float64
        )

    @property
    def outcomes(self) -> Tensor:
        """Values (n, m) of the objectives of finished trials; a failed trial counts as the worst told value of each."""
        worst = self.worst
        return torch.tensor([t.values if t.status == "told" else worst for t in self], dtype=torch.float64)

    @property
    def worst(self) -> tuple[float, ...]:
        """The worst told value of each objective; zeros before there is one."""
        columns = zip(*(trial.values for trial in self if trial.state == "told"), strict=True)
        pairs = zip(columns, self.directions, strict=False)
        found = tuple(max(column) if way == "minimize" else min(column) for column, way in pairs)
        return found or (0.0,) * len(self.directions)

    @property
    def signs(self) -> Tensor:
        """The sign of each objective, (m,): a value times its sign is to be minimised."""
        return torch.tensor([1.0 if way == "minimize" else -1.0 for way in self.directions], dtype=torch.float64)

    @property
    def constraints(self) -> Tensor | None:
        """The told constraints (n, m), with the least told number for a trial without any; None if no trial has any."""
        told = [trial.constraints for trial in self if trial.constraints]
        if not told:
            return None
        least = tuple(map(min, zip(*told, strict=False)))  # those that all have
        rows = [(trial.constraints or least)[: len(least)] for trial in self]
        return torch.tensor(rows, dtype=torch.float64)

    @property
    def variances(self) -> Tensor | None:
        """The variance of the noise of each value (n,), if any was told with a value; else None.

        A trial without its own variance gets the variance of the history, or the mean of the told variances.
        """
        told = [trial.noise for trial in self if trial.noise is not None]
        if not told:
            return None
        usual = self.noise if isinstance(self.noise, float) else sum(told) / len(told)
        return torch.tensor([usual if t.noise is None else t.noise for t in self], dtype=torch.float64)


def _number(value: float | None) -> float:
    return math.inf if value is None else value
