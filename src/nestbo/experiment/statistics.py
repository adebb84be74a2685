"""What the results of a problem say: one row of numbers for each method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nestbo.experiment.results import Array, Series
from nestbo.experiment.trials import ORACLE

TARGETS = {
    "ackley": 0.1,
    "rosenbrock": 1.0,
    "styblinski-tang": 10.0,
    "product-of-sines": 10.0,
    "schwefel": 500.0,  # about four of its twenty coordinates in the second-best valley
    "phases": 1.0,
    "rayleigh-quotient": 0.01,
    "portfolio": 0.01,
    "registration": 0.01,
    "thomson": 0.01,
}
_TARGET = 0.1  # of other problems
_FLOOR = 1e-10  # regret below which differences are rounding
_RESAMPLES = 2000
FEWEST = 6  # pairs for a signed-rank test: with fewer, no result is rarer than one in twenty
_CLUSTERED = 10  # trials below which nothing is said about clusters
_EITHER = 0.3  # share of trials on either side of a gap: then the median may lie in neither cluster
_GAP = 1.0  # decades


@dataclass(frozen=True)
class Clusters:
    """Two groups of trials: a regret between them, the share of trials below it, and where that share lies.

    A median of such trials lies in one group or between both, and says less than the share.
    """

    between: float
    share: float
    likely: tuple[float, float]


@dataclass(frozen=True)
class Row:
    """A method on a problem, at the end of its trials.

    ``interval`` is that of the median, with a confidence of 95 %; ``rank`` counts from 1, and the oracle has none;
    ``success`` is the share of trials below the target, ``likely`` where that share lies with a confidence of 95 %,
    ``reached`` the median of the evaluations this took, None where fewer than half came so far; ``p`` is that of a
    signed-rank test against the best method, corrected after Holm for the methods of the problem, None for the best,
    for the oracle and where fewer than six trials are paired; ``clusters`` are two groups of trials far apart, None
    where there is one.
    """

    label: str
    trials: int
    evaluations: int
    median: float
    quartiles: tuple[float, float]
    interval: tuple[float, float]
    rank: int | None
    success: float
    likely: tuple[float, float]
    reached: float | None
    pace: float
    p: float | None
    clusters: Clusters | None


def target(problem: str) -> float:
    """The regret that counts as a success on a problem."""
    return TARGETS.get(problem, _TARGET)


def rows(methods: Mapping[str, Series], goal: float) -> list[Row]:
    """One for each method, in their order."""
    medians = {label: float(np.median(one.best[:, -1])) for label, one in methods.items()}
    ranked = sorted(median for label, median in medians.items() if label != ORACLE)
    first = next((label for label in methods if ranked and medians[label] == ranked[0] and label != ORACLE), None)
    others = [label for label in methods if first is not None and label not in (first, ORACLE)]
    tested = {label: p for label in others if (p := paired(methods[label], methods[str(first)])) is not None}
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    made = []
    for label, one in methods.items():
        rank = None if label == ORACLE else ranked.index(medians[label]) + 1
        made.append(_row(label, one, goal, rank, corrected.get(label)))
    return made


def _row(label: str, one: Series, goal: float, rank: int | None, p: float | None) -> Row:
    end, (trials, evaluations) = one.best[:, -1], one.best.shape
    low, middle, high = map(float, np.quantile(end, [0.25, 0.5, 0.75]))
    spread, count, taken = interval(end), int((end <= goal).sum()), reached(one.best, goal)
    likely, success = wilson(count, trials), count / trials
    return Row(
        label, trials, evaluations, middle, (low, high), spread, rank, success, likely, taken, one.pace, p, parted(end)
    )


def interval(values: Array) -> tuple[float, float]:
    """Where the median of values (n,) lies, by the percentile bootstrap, with a confidence of 95 %."""
    from scipy.stats import bootstrap  # a second to import, which every command would wait for

    if len(values) < 2:
        return float(values[0]), float(values[0])
    drawn = {"n_resamples": _RESAMPLES, "method": "percentile", "random_state": np.random.default_rng(0)}
    low, high = bootstrap((values,), np.median, **drawn).confidence_interval
    return float(low), float(high)


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Where a share of successes lies, after Wilson, with a confidence of 95 %."""
    from scipy.stats import binomtest

    low, high = binomtest(successes, trials).proportion_ci(method="wilson")
    return float(low), float(high)


def holm(values: Sequence[float]) -> list[float]:
    """p-values of a family of tests, corrected after Holm (1979): each is compared with the level as it is."""
    order = sorted(range(len(values)), key=lambda k: values[k])
    corrected, least = [1.0] * len(values), 0.0
    for position, k in enumerate(order):
        least = max(least, min(1.0, (len(values) - position) * values[k]))
        corrected[k] = least
    return corrected


def parted(values: Array) -> Clusters | None:
    """Two clusters of regrets (n,), if the widest gap between them on a logarithmic scale is wide.

    The gap is a factor of ten at least, and three tenths of at least ten trials lie on either side of it.
    """
    if len(values) < _CLUSTERED:
        return None
    logs = np.sort(np.log10(np.maximum(values, _FLOOR)))
    margin = math.ceil(len(logs) * _EITHER)
    gaps = np.diff(logs)[margin - 1 : len(logs) - margin]
    k = int(gaps.argmax()) + margin - 1
    if gaps.max() < _GAP:
        return None
    middle, below = (logs[k] + logs[k + 1]) / 2, k + 1
    return Clusters(float(10**middle), below / len(logs), wilson(below, len(logs)))


def reached(best: Array, goal: float) -> float | None:
    """The median over trials of the evaluations until the regret (trials, n) was below a goal."""
    below = best <= goal
    count = np.median(np.where(below.any(1), below.argmax(1) + 1, np.inf))
    return float(count) if np.isfinite(count) else None


def paired(one: Series, other: Series) -> float | None:
    """p of Wilcoxon's signed-rank test of the logarithms of regret, seed by seed, at evaluations that both have."""
    from scipy.stats import wilcoxon  # a second to import, which every command would wait for

    difference = _differences(one, other)
    if len(difference) < FEWEST:
        return None
    return float(wilcoxon(difference).pvalue) if np.any(difference) else 1.0


def direction(one: Series, other: Series) -> int:
    """Which has the larger regret by the same ranks: 1 for the first, -1 for the other, 0 for none.

    The ranks of a test may say the contrary of the medians, where trials lie in two clusters.
    """
    from scipy.stats import rankdata

    difference = _differences(one, other)
    difference = difference[difference != 0]
    return int(np.sign(np.sum(np.sign(difference) * rankdata(np.abs(difference)))))


def lower(one: Series, other: Series) -> tuple[int, int]:
    """In how many pairs of trials the other one has the smaller regret, and how many pairs there are."""
    difference = _differences(one, other)
    return int((difference > 0).sum()), len(difference)


def _differences(one: Series, other: Series) -> Array:
    """Of the logarithms of regret, for each seed that both have."""
    seeds = [seed for seed in one.seeds if seed in other.seeds]
    n = min(one.best.shape[1], other.best.shape[1]) - 1
    a, b = (np.array([s.best[s.seeds.index(seed), n] for seed in seeds]) for s in (one, other))
    return np.asarray(np.log10(np.maximum(a, _FLOOR)) - np.log10(np.maximum(b, _FLOOR)))
