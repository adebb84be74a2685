"""Models that compete: each predicts every value before it is known, and the best predictor suggests next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from nestbo.manifolds import Space, released
from nestbo.nested import Nesting
from nestbo.search import Runs
from nestbo.search.runs import successes
from nestbo.strategies.base import Standing
from nestbo.surrogate import Metric, Sight, Surrogate

STRENGTHS = (0.25, 1.0)  # of full metrics: one that hardly moves, one that may lose a direction
_DECAY = 0.9  # of what earlier predictions count, at each later one
_FADING = 0.93  # the same of successes
_WORST = -50.0  # nats that one prediction can cost


class Kind(NamedTuple):
    """Which model: on the space that is searched or on one nested in it, with a metric of some strength or none."""

    name: str
    nesting: Nesting | None = None
    strength: float = 0.0
    diagonal: bool = False

    def metric(self, place: Space) -> Metric | None:
        """The metric to be learned on what is searched; None for the isotropic model."""
        latent = place if self.nesting is None else self.nesting.latent
        return Metric(Sight(released(latent)), self.strength, self.diagonal) if self.strength else None


@cache
def kinds_on(place: Space, name: str, metric: str) -> tuple[Kind, ...]:
    """The models that compete on what is searched as a whole; the isotropic one first, which ties go to."""
    isotropic, diagonal = Kind(f"{name}:0"), Kind(f"{name}:diagonal", strength=1.0, diagonal=True)
    full = [Kind(f"{name}:{strength:g}", strength=strength) for strength in STRENGTHS]
    wanted = {"auto": (isotropic, diagonal, *full), "diagonal": (diagonal,), "full": full[-1:]}[metric]
    metrics = {kind: found for kind in wanted if (found := kind.metric(place)) is not None and found.size}
    if metric == "auto":  # where no coordinates are mixed, a full metric is a diagonal one
        metrics = {kind: found for kind, found in metrics.items() if kind.diagonal or found.mixed}
    return tuple(kind for kind in wanted if kind is isotropic or kind in metrics) or (isotropic,)


def scores(runs: Runs, kinds: tuple[Kind, ...]) -> Tensor:
    """How well each model has predicted values before they were known, in nats, (runs, kinds)."""
    found = torch.zeros(len(runs.rngs), len(kinds), dtype=torch.float64)
    record = runs.record
    for run, (memories, values) in enumerate(zip(record.memories, record.y.tolist(), strict=True)):
        for memory, y in zip(memories, values, strict=True):
            if memory.forecast:
                news = [_log_density(memory.forecast.get(kind.name), y) for kind in kinds]
                found[run] = _DECAY * found[run] + torch.tensor(news, dtype=torch.float64)
    return found


def _log_density(forecast: tuple[float, float, float] | None, y: float) -> float:
    """Of a normal distribution with a deviation on each side of its middle, up to a constant."""
    if forecast is None:
        return 0.0
    low, middle, high = forecast
    side = max(high - middle if y > middle else middle - low, 1e-300)
    return max(_WORST, -(((y - middle) / side) ** 2) / 2 - math.log(max(high - low, 1e-300)))


def forecast(model: Surrogate, x: Tensor) -> list[tuple[float, float, float]]:
    """For one point x (runs, 1, *point) of each run: the value that a model expects, one deviation below and above."""
    mean, variance = model.gp.moments(model.see(model.mapping.project(x)))
    deviation = (variance + (model.gp.scale * model.gp.noise).unsqueeze(-1)).sqrt()
    each = [model.outputs.inverse(mean + side * deviation).squeeze(-1).tolist() for side in (-1, 0, 1)]
    return list(zip(*each, strict=True))


def standings(names: Sequence[str], runs: Runs) -> list[Standing]:
    """How the models that compete in the first run have done: by their suggestions, the older ones counting less."""
    record = runs.record
    made = [
        (memory.arm, success) for memory, success in zip(record.memories[0], successes(record.scores[0]), strict=True)
    ]
    count = sum(arm is not None for arm, _ in made)
    found = []
    for name in names:
        own = [success for arm, success in made if arm == name]
        found.append(Standing(name, len(own), len(own) / max(1, count), _chance(own)))
    return found


def _chance(lucky: Sequence[bool]) -> float:
    """The expected chance of success after these successes and failures, a priori one half."""
    good = bad = 0.0
    for success in lucky:
        good, bad = _FADING * good + success, _FADING * bad + (not success)
    return (1 + good) / (2 + good + bad)
