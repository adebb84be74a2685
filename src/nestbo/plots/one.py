"""One of several objectives, as a study of its own: pictures of models and values are of one objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nestbo.errors import ArgumentError, shown
from nestbo.history import Direction, History, Trial
from nestbo.manifolds import Space
from nestbo.plots.view import Study, objective_names


@dataclass(frozen=True)
class One:
    """A study with the values and the model of one of its objectives."""

    study: Study
    place: int

    @property
    def objectives(self) -> tuple[str, ...]:
        return (objective_names(self.study)[self.place],)

    @property
    def space(self) -> Space:
        return self.study.space

    @property
    def strategy(self) -> Any:
        """The strategy and the objective, for titles."""
        return f"{self.study.strategy} for {self.objectives[0]}"

    @property
    def direction(self) -> Direction:
        return self.study.history.directions[self.place]

    @property
    def times(self) -> Mapping[int, tuple[float | None, float | None]]:
        return self.study.times

    @property
    def history(self) -> History:
        history = self.study.history
        noise = history.noise[self.place] if isinstance(history.noise, tuple) else history.noise
        return History(tuple(self._reduced(trial) for trial in history), noise, self.direction)

    def _reduced(self, trial: Trial) -> Trial:
        return replace(trial, told=replace(trial.told, values=trial.values[self.place : self.place + 1]))

    def models(self) -> Mapping[str, Any]:
        models, (name,) = self.study.models(), self.objectives
        return {name: models[name]} if name in models else {}

    def standings(self) -> Sequence[Any]:
        return ()

    def recommend(self) -> Trial | None:
        return self.history.best


def reduced(study: Study, objective: str | None) -> Study:
    """The study, or what it says of one of several objectives: the one named, or the first."""
    names = objective_names(study)
    if objective is not None and objective not in names:
        raise ArgumentError(f"The objectives of this study are {', '.join(names)}, got {shown(objective)}.")
    if not study.history.several:
        return study
    return One(study, 0 if objective is None else names.index(objective))
