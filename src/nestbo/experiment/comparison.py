"""What the results of several problems say together: wins and losses, ranks, shares of problems solved.

Medians are arithmetic, on the regret; pairs are of the same seed; problems count alike, however many trials they have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nestbo.experiment.results import Array, Results, Series
from nestbo.experiment.statistics import direction, holm, lower, paired
from nestbo.experiment.trials import INITIAL, ORACLE

ALPHA = 0.05  # level of all tests


@dataclass(frozen=True)
class Contest:
    """One method against another over the problems that both have: those won, level and lost.

    A problem is won or lost where the paired test says so at the level of 5 %, corrected after Holm for the problems of
    the contest. ``lower`` counts pairs of trials in which the hero has the smaller regret, of all ``pairs``.
    """

    label: str
    wins: int
    ties: int
    losses: int
    lower: int
    pairs: int


def fewest(problems: int) -> int:
    """Pairs of trials below which no problem can be won or lost: their smallest p, 2/2ⁿ, is too large after Holm."""
    return 1 + math.ceil(math.log2(problems / ALPHA))


def contests(found: Results, hero: str) -> list[Contest]:
    """The hero against each other method."""
    labels = dict.fromkeys(label for methods in found.values() for label in methods if label not in (hero, ORACLE))
    return [made for label in labels if (made := _contest(found, hero, label)) is not None]


def _contest(found: Results, hero: str, label: str) -> Contest | None:
    pairs = [(methods[label], methods[hero]) for methods in found.values() if {label, hero} <= set(methods)]
    if not pairs:
        return None
    tests = [paired(one, other) for one, other in pairs]
    corrected = holm([1.0 if p is None else p for p in tests])
    signs = [direction(*pair) if p <= ALPHA else 0 for pair, p in zip(pairs, corrected, strict=True)]
    lows, counts = zip(*(lower(*pair) for pair in pairs), strict=True)
    return Contest(label, signs.count(1), signs.count(0), signs.count(-1), sum(lows), sum(counts))


@dataclass(frozen=True)
class Ranks:
    """Mean ranks of methods over problems; two of them differ where they are more than ``difference`` apart.

    ``difference`` is Nemenyi's critical one at 5 % (Demšar 2006); ``p`` is Friedman's, that all methods are alike.
    """

    means: Mapping[str, float]
    problems: int
    difference: float
    p: float | None


def common(found: Results) -> list[str]:
    """The methods that every problem has, but for the oracle, in their order."""
    labels = dict.fromkeys(label for methods in found.values() for label in methods if label != ORACLE)
    return [label for label in labels if all(label in methods for methods in found.values())]


def ranks(found: Results) -> Ranks:
    """Of the medians of those methods that every problem has, at evaluations that all have; ties share a rank."""
    from scipy.stats import friedmanchisquare, rankdata  # a second to import, which every command would wait for

    labels = common(found)
    medians = np.array([_medians(methods, labels) for methods in found.values()]).reshape(len(found), len(labels))
    ranked = rankdata(medians, axis=1)
    tested = len(labels) >= 3 and len(found) >= 2 and bool(np.ptp(ranked, axis=1).any())
    p = float(friedmanchisquare(*medians.T).pvalue) if tested else None
    means = dict(zip(labels, ranked.mean(0).tolist(), strict=True))
    return Ranks(means, len(found), critical_difference(len(labels), len(found)), p)


def _medians(methods: Mapping[str, Series], labels: Sequence[str]) -> list[float]:
    n = min(methods[label].best.shape[1] for label in labels) - 1 if labels else 0
    return [float(np.median(methods[label].best[:, n])) for label in labels]


def critical_difference(methods: int, problems: int) -> float:
    """Of mean ranks, after Nemenyi: q √(k (k + 1) / 6N), q being the studentised range at 5 % divided by √2."""
    from scipy.stats import studentized_range

    if methods < 2 or problems < 1:
        return math.inf
    q = float(studentized_range.ppf(1 - ALPHA, methods, math.inf)) / math.sqrt(2)
    return q * math.sqrt(methods * (methods + 1) / (6 * problems))


def solved(best: Array, tolerance: float) -> Array:
    """Evaluations (trials,) until the regret (trials, n) was at most a share of that after the initial points; or ∞."""
    start = best[:, min(INITIAL, best.shape[1]) - 1]
    below = best <= tolerance * start[:, None]
    return np.where(below.any(1), below.argmax(1) + 1.0, math.inf)


def profiles(found: Results, tolerance: float) -> dict[str, Array]:
    """For each method of all problems: the share of problems solved after 1, 2, … evaluations (n,).

    A problem counts with the share of its trials that are solved (the data profiles of Moré and Wild 2009, on
    evaluations instead of simplex gradients). Curves end where the shortest trials of the method do.
    """
    curves = {}
    for label in common(found):
        each = [methods[label].best for methods in found.values()]
        length = min(best.shape[1] for best in each)
        at = np.arange(1, length + 1)
        shares = [(solved(best, tolerance)[:, None] <= at).mean(0) for best in each]
        curves[label] = np.mean(shares, axis=0)
    return curves


def ratios(found: Results, tolerance: float) -> dict[str, Array]:
    """For each method: evaluations to solve each problem, relative to the quickest method (problems,); ∞ where never.

    The performance ratios of Dolan and Moré (2002); a problem's evaluations are the median over its trials.
    """
    labels = common(found)
    taken = np.array([[np.median(solved(m[label].best, tolerance)) for label in labels] for m in found.values()])
    if not labels or not found:
        return {}
    least = taken.min(1, keepdims=True)
    relative = np.where(np.isfinite(taken), taken / np.where(np.isfinite(least), least, 1), math.inf)
    return dict(zip(labels, relative.T, strict=True))


def performance(relative: Array, factor: float) -> float:
    """The share of problems that a method solves within a factor of the quickest: ρ(α) of Dolan and Moré."""
    return float(np.mean(relative <= factor))
