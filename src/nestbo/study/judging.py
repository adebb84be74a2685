"""Judging: the models of a study, and the trial to rely on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.history import History, Trial
from nestbo.search.feasibility import log_probability
from nestbo.strategies import GaBO, Runs, Standing, Strategy
from nestbo.strategies.many import objective_name
from nestbo.study.record import Record
from nestbo.study.shelf import Modelling, rules_of
from nestbo.surrogate import Model, Surrogate

_WIDTH = 1.959963984540054  # standard deviations on either side of a 95 % interval
_DEVIATES = torch.linspace(-8, 8, 401, dtype=torch.float64)  # beyond 8 deviations, the normal density is below 1e-14


@dataclass(frozen=True)
class Recommendation:
    """A trial, the value that the model expects there without the noise, and the ends of its 95 % interval."""

    trial: Trial
    mean: float
    low: float
    high: float


class Judging(Record):
    """The part of a study that models what was told."""

    def recommend(self) -> Trial | None:
        """The trial to rely on: the best posterior mean if values are noisy, else the best value."""
        found = self.recommendation()
        return self.best if found is None else found.trial

    def recommendation(self) -> Recommendation | None:
        """The told trial with the best posterior mean, and what the model expects there; None for exact values."""
        history = self._read()
        history.check_one("recommended trial")
        told = [trial for trial in history.finished if trial.status == "told" and trial.feasible]
        if not told or not history.noisy:
            return None
        models = self.models() or self._models(GaBO())
        model = models.get("full", next(iter(models.values())))
        points = torch.stack([trial.x for trial in told])
        at, sign = int(model.predict(points).argmin()), float(history.signs)
        edges = [model.predict(points[at], width).item() for width in (-_WIDTH, 0, _WIDTH)]
        low, mean, high = sorted(sign * edge for edge in edges)
        return Recommendation(replace(told[at], x=told[at].x.clone()), mean, low, high)

    def expected_gain(self) -> float | None:
        """The expected improvement of the next evaluation over the best value, in the units of the objective.

        It is the expected improvement at the point that the strategy would suggest now, by its leading model, times the
        probability that the observed constraints hold there.

        Returns:
            The expected gain, or None as long as the strategy has no model and no value is feasible.
        """
        history, runs = self._read().to_minimise, self._runs()
        best = history.best
        if best is None or not isinstance(self.strategy, Modelling) or not runs.begun(self.strategy.initial):
            return None
        models = self.strategy.models(self.space, runs)
        rules = rules_of(models)
        if len(models) == len(rules):
            return None
        rng = self._rng(len(history))
        (next_one,) = self.strategy.suggest(self.space, history, 1, rng, constraints=self.constraints)
        x, model = next_one.x[None, None], next(iter(models.values()))
        gain = _improvement(model, x, _least(model, history))
        return gain * float(log_probability(rules, x).exp()) if rules else gain

    def models(self) -> dict[str, Model]:
        """The surrogates that the strategy would use now, by name; empty before there are enough data.

        With several objectives, each objective has its own surrogate under its name.
        """
        return self._models(self.strategy)

    def _models(self, strategy: Strategy) -> dict[str, Model]:
        """Those of a strategy: a study is the only run of the batch that a strategy works on."""
        found = strategy.models(self.space, self._runs())
        names = {objective_name(k): name for k, name in enumerate(self.objectives)} if self.several else {}
        return {names.get(name, name): Model.of(model) for name, model in found.items()}

    def _runs(self) -> Runs:
        history = self._read()
        return Runs.of(self.space, history.to_minimise, self._rng(len(history)), self.constraints)

    def standings(self) -> list[Standing]:
        """How well competing models do: their suggestions, the share of all suggestions, and the chance of success."""
        return self.strategy.standings(self.space, self._runs())

    def model(self) -> Model:
        """The leading surrogate."""
        models = self.models()
        if not models:
            raise ArgumentError(
                f"{self.strategy} has no model of these {len(self.history)} trials. Tell some values first."
            )
        return next(iter(models.values()))


def _least(model: Surrogate, history: History) -> float:
    """The best value of a history to be minimised; where values are noisy, the best that a model expects."""
    told = [trial for trial in history.finished if trial.status == "told" and trial.feasible]
    if not history.noisy:
        return min(trial.told.values[0] for trial in told)
    return float(model.predict(torch.stack([trial.x for trial in told]).unsqueeze(0)).min())


def _improvement(model: Surrogate, x: Tensor, least: float) -> float:
    """The expectation of max(least − f(x), 0) at one point x (1, 1, *point), where f is a model's."""
    density = torch.exp(-_DEVIATES.square() / 2)
    with torch.no_grad():
        mean, variance = model.gp.moments(model.see(model.mapping.project(x)))
        values = model.outputs.inverse(mean + _DEVIATES * variance.sqrt())
    return float(((least - values).clamp(min=0) * density).sum() / density.sum())
