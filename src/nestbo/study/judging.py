"""Judging: the models of a study, and the trial to rely on."""

from __future__ import annotations

from dataclasses import replace

import torch

from nestbo.errors import ArgumentError
from nestbo.history import Trial
from nestbo.strategies import GaBO, Runs, Standing, Strategy
from nestbo.study.record import Record
from nestbo.surrogate import Model


class Judging(Record):
    """The part of a study that models what was told."""

    def recommend(self) -> Trial | None:
        """The told trial to rely on: where values are noisy, that with the best posterior mean; else the best."""
        history = self._read()
        told = [trial for trial in history if trial.status == "told" and trial.feasible]
        if not told or not history.noisy:
            return self.best
        models = self.models() or self._models(GaBO())
        model = models.get("full", next(iter(models.values())))
        mean = model.predict(torch.stack([trial.x for trial in told]))
        found = told[int(mean.argmin())]
        return replace(found, x=found.x.clone())

    def models(self) -> dict[str, Model]:
        """The surrogates that the strategy would use now, by name; empty before there are data for one."""
        return self._models(self.strategy)

    def _models(self, strategy: Strategy) -> dict[str, Model]:
        """Those of a strategy: a study is the only run of the batch that a strategy works on."""
        return {name: Model.of(found) for name, found in strategy.models(self.space, self._runs()).items()}

    def _runs(self) -> Runs:
        history = self._read()
        return Runs.of(self.space, history.to_minimise, self._rng(len(history)), self.constraints)

    def standings(self) -> list[Standing]:
        """How the arms of the strategy are doing: suggestions made, their share of all, and chance of success."""
        return self.strategy.standings(self.space, self._runs())

    def model(self) -> Model:
        """The leading surrogate."""
        models = self.models()
        if not models:
            raise ArgumentError(
                f"{self.strategy} has no model of these {len(self.history)} trials. Tell some values first."
            )
        return next(iter(models.values()))
