"""What the results of a problem say: one row of numbers for each method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nestbo.experiment.results import Array, Series
from nestbo.experiment.trials import ORACLE

TARGETS = {"ackley": 0.1, "rosenbrock": 1.0, "styblinski-tang": 10.0, "product-of-sines": 10.0}
_TARGET = 0.1  # of other problems
_FLOOR = 1e-10  # regret below which differences are rounding
_RESAMPLES = 2000


@dataclass(frozen=True)
class Row:
    """A method on a problem, at the end of its trials.

    ``interval`` is that of the median, with a confidence of 95 %; ``rank`` counts from 1, and the oracle has none;
    ``success`` is the share of trials below the target, ``reached`` the median of the evaluations this took, None where
    fewer than half came so far; ``p`` is that of a signed-rank test against the best method, None for that one, for the
    oracle and where fewer than six trials are paired.
    """

    label: str
    trials: int
    evaluations: int
    median: float
    quartiles: tuple[float, float]
    interval: tuple[float, float]
    rank: int | None
    success: float
    reached: float | None
    pace: float
    p: float | None


def target(problem: str) -> float:
    """The regret that counts as a success on a problem."""
    return TARGETS.get(problem, _TARGET)


def rows(methods: Mapping[str, Series], goal: float) -> list[Row]:
    """One for each method, in their order."""
    medians = {label: float(np.median(one.best[:, -1])) for label, one in methods.items()}
    ranked = sorted(median for label, median in medians.items() if label != ORACLE)
    first = next((label for label in methods if ranked and medians[label] == ranked[0] and label != ORACLE), None)
    made = []
    for label, one in methods.items():
        rank = None if label == ORACLE else ranked.index(medians[label]) + 1
        compared = first is not None and label not in (first, ORACLE)
        made.append(_row(label, one, goal, rank, paired(one, methods[str(first)]) if compared else None))
    return made


def _row(label: str, one: Series, goal: float, rank: int | None, p: float | None) -> Row:
    end, (trials, evaluations) = one.best[:, -1], one.best.shape
    low, middle, high = map(float, np.quantile(end, [0.25, 0.5, 0.75]))
    spread, success, taken = interval(end), float(np.mean(end <= goal)), reached(one.best, goal)
    return Row(label, trials, evaluations, middle, (low, high), spread, rank, success, taken, one.pace, p)


def interval(values: Array) -> tuple[float, float]:
    """Where the median of values (n,) lies, by the bootstrap, with a confidence of 95 %."""
    drawn = np.random.default_rng(0).choice(values, (_RESAMPLES, len(values)))
    low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975])
    return float(low), float(high)


def reached(best: Array, goal: float) -> float | None:
    """The median over trials of the evaluations until the regret (trials, n) was below a goal."""
    below = best <= goal
    count = np.median(np.where(below.any(1), below.argmax(1) + 1, np.inf))
    return float(count) if np.isfinite(count) else None


def paired(one: Series, other: Series) -> float | None:
    """p of Wilcoxon's signed-rank test of the logarithms of regret, seed by seed, at evaluations that both have."""
    from scipy.stats import wilcoxon  # a second to import, which every command would wait for

    seeds = [seed for seed in one.seeds if seed in other.seeds]
    if len(seeds) < 6:
        return None
    n = min(one.best.shape[1], other.best.shape[1]) - 1
    a, b = (np.array([s.best[s.seeds.index(seed), n] for seed in seeds]) for s in (one, other))
    difference = np.log10(np.maximum(a, _FLOOR)) - np.log10(np.maximum(b, _FLOOR))
    return float(wilcoxon(difference).pvalue) if np.any(difference) else 1.0
