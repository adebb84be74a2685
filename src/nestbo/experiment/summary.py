"""One table for a whole suite: ranks, wins and losses, problems solved, seconds; and the problems that were lost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nestbo.experiment.comparison import ALPHA, Contest, contests, fewest, profiles, ranks
from nestbo.experiment.figures import TOLERANCES
from nestbo.experiment.names import ABOUT
from nestbo.experiment.results import Results, Series
from nestbo.experiment.statistics import FEWEST, Row, direction, rows, target
from nestbo.experiment.suites import SUITES, Suite
from nestbo.experiment.tables import called, head, heading, line
from nestbo.experiment.tasks import Task
from nestbo.experiment.trials import ORACLE

HEROES = ("hdgabo-auto", "hdgabo", "gabo")  # whose wins are counted: the first of these that half of the problems have
# How the hero stands on a problem.
LOWEST, BETTER, LEVEL, BEHIND, FEW = "lowest", "better in pairs", "level", "behind", "too few trials"


def hero(found: Results) -> str | None:
    """The method that a summary is about."""
    counts = {label: sum(label in methods for methods in found.values()) for label in HEROES}
    return next((label for label in HEROES if found and 2 * counts[label] >= len(found)), None)


def summary(found: Results, suite: Suite | None = None) -> list[str]:
    """Lines: a row for each method, then what the columns mean, then where the hero is level and where it loses."""
    chosen = hero(found)
    if chosen is None:
        return ["Not yet measured."]
    if not {label for methods in found.values() for label in methods} - {chosen, ORACLE}:
        return _alone(found, suite, chosen)
    return [*_table(found, suite, chosen), "", *_said(found), "", *_losses(found, suite, chosen)]


def _alone(found: Results, suite: Suite | None, chosen: str) -> list[str]:
    """The same where there is nothing to compare with."""
    lines = [f"No method but {called(chosen, suite)} has been run on these problems yet.", ""]
    lines += head("problem", "median", "trials", "evaluations")
    for task, methods in found.items():
        one = methods[chosen]
        count, evaluations = one.best.shape
        median = np.median(one.best[:, -1])
        lines.append(line(heading(task), f"{median:.3g}", str(count), str(evaluations)))
    return lines


def judged(found: Results) -> Results:
    """What a summary is made of: the problems that the hero has, without trials that did not come far enough."""
    chosen, whole = hero(complete(found)), complete(found)
    return {task: methods for task, methods in whole.items() if chosen is None or chosen in methods}


def complete(found: Results) -> Results:
    """Only methods that came as far as the longest of their problem: others would be compared too early or too late."""
    longest = {task: max(one.best.shape[1] for one in methods.values()) for task, methods in found.items()}
    return {
        task: {label: one for label, one in methods.items() if one.best.shape[1] == longest[task]}
        for task, methods in found.items()
    }


def _table(found: Results, suite: Suite | None, chosen: str) -> list[str]:
    mean, against = ranks(found).means, {one.label: one for one in contests(found, chosen)}
    shares = [profiles(found, tolerance) for tolerance in TOLERANCES]
    labels = dict.fromkeys(label for methods in found.values() for label in methods)
    words = [f"solved to {100 * tolerance:g} %" for tolerance in TOLERANCES]
    name = called(chosen, suite)
    beside = (f"{name} wins, level, loses", f"{name} ends lower in")
    lines = head("method", "mean rank", *beside, *words, "s per suggestion", "problems", "trials")
    for label in sorted(labels, key=lambda label: mean.get(label, np.inf)):
        one, own = against.get(label), [methods[label] for methods in found.values() if label in methods]
        lines.append(
            line(
                called(label, suite),
                f"{mean[label]:.2f}" if label in mean else "",
                *(("", "") if one is None else _beside(one)),
                *(f"{share[label][-1]:.0%}" if label in share else "" for share in shares),
                f"{np.median([series.pace for series in own]):.2g}",
                str(len(own)),
                _range([len(series.seeds) for series in own]),
            )
        )
    return lines


def _beside(one: Contest) -> tuple[str, str]:
    """How the hero stands beside a method: over problems, and over pairs of trials."""
    return f"{one.wins}, {one.ties}, {one.losses}", f"{one.lower} of {one.pairs} pairs"


def _range(counts: list[int]) -> str:
    return str(counts[0]) if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"


def _said(found: Results) -> list[str]:
    made = ranks(found)
    tested = "" if made.p is None else f" (Friedman's p {made.p:.2g})"
    alike = f"Two that are less than {made.difference:.2f} apart do not differ at 5 % (Nemenyi)."
    return [
        f"Mean ranks are over {made.problems} problems, of the methods that all of them have{tested}.",
        *([alike] if math.isfinite(made.difference) else []),
        "Wins and losses are Wilcoxon's tests, paired by seed, at 5 % after Holm's correction over the problems.",
        f"Of {made.problems} problems, none can be won with fewer than {fewest(made.problems)} pairs of trials: such",
        "problems count as level, and only the pairs say something. A problem is solved",
        "when the regret has fallen to that share of the regret after the initial points; each problem counts with",
        "the share of its trials. Trials that are shorter than the longest of their problem are left out here, and",
        "are among the details.",
    ]


def _losses(found: Results, suite: Suite | None, chosen: str) -> list[str]:
    """The problems where another method than the hero has the lowest median; those where the hero is behind first."""
    made, name = standings(found, chosen), called(chosen, suite)
    counts = Counter(standing.verdict for standing in made.values())
    lines = [f"{name} has the lowest median on {counts[LOWEST]} of {len(made)} problems."]
    if counts[LOWEST] == len(made):
        return lines
    lines += [f"Of the others it is level with the best method on {counts[LEVEL]}, and behind on {counts[BEHIND]}."]
    lines += [f"On {counts[BETTER]} it is better by the paired test, against the medians."] if counts[BETTER] else []
    lines += [f"On {counts[FEW]} the best method has too few trials for a test."] if counts[FEW] else []
    lines += ["", *head("problem", "best method", "its median", name, "p (Holm)", "verdict")]
    for task, one in sorted(made.items(), key=lambda item: item[1].order):
        lines += [_lost(task, one, suite)] if one.verdict != LOWEST else []
        lines += [_lost(task, each, suite) for each in _tested(task, found[task], one)]
    return lines


def _lost(task: Task, one: Standing, suite: Suite | None) -> str:
    """A row of the table."""
    medians = (f"{row.median:.3g}" for row in (one.best, one.own))
    p = "" if one.p is None else f"{one.p:.2g}"
    verdict = f"**{BEHIND}**" if one.verdict == BEHIND else one.verdict
    return line(heading(task), called(one.best.label, suite), *medians, p, verdict)


def _tested(task: Task, methods: Mapping[str, Series], one: Standing) -> list[Standing]:
    """Where the best method has too few trials: how the hero stands beside the best that can be tested."""
    chosen = one.own.label
    enough = {label: each for label, each in methods.items() if len(each.seeds) >= FEWEST}
    if one.verdict != FEW or chosen not in enough:
        return []
    found = _standing(task, enough, chosen)
    return [] if found.verdict == LOWEST else [found]


def overview(found: Mapping[str, Results]) -> list[str]:
    """A row for each suite with a hero: on how many problems it has the lowest median, is level with it, or behind.

    Level includes the problems on which the test finds the hero better, and the medians say the contrary.
    """
    lines = head("comparison", "method", "problems", f"{LOWEST} median", LEVEL, BEHIND, FEW)
    for name, results in found.items():
        chosen = hero(results)
        if chosen is not None:
            counts = Counter(standing.verdict for standing in standings(results, chosen).values())
            level = counts[LEVEL] + counts[BETTER]
            numbers = (len(results), counts[LOWEST], level, counts[BEHIND], counts[FEW])
            lines.append(line(ABOUT[name], called(chosen, SUITES[name]), *map(str, numbers)))
    return lines


@dataclass(frozen=True)
class Standing:
    """The hero's row on a problem beside the row with the lowest median, which may be its own.

    ``worse`` says whether the hero has the larger regret by the ranks of the pairs, which may contradict the medians.
    """

    best: Row
    own: Row
    worse: bool

    @property
    def p(self) -> float | None:
        """That of their difference; None where the hero is the best, or where no test can tell them apart."""
        return self.own.p

    @property
    def verdict(self) -> str:
        """LOWEST, BETTER, LEVEL, BEHIND, or FEW where the best method has too few trials for a test."""
        if self.best.label == self.own.label:
            return LOWEST
        if self.p is None:
            return FEW
        if self.p > ALPHA:
            return LEVEL
        return BEHIND if self.worse else BETTER

    @property
    def order(self) -> float:
        """Sorts the clearest losses first, and untested ones last."""
        return math.inf if self.p is None else self.p


def standings(found: Results, chosen: str) -> dict[Task, Standing]:
    """How a method stands on each problem. The oracle is not compared."""
    return {task: _standing(task, methods, chosen) for task, methods in found.items()}


def _standing(task: Task, methods: Mapping[str, Series], chosen: str) -> Standing:
    compared = {label: one for label, one in methods.items() if label != ORACLE}
    made = {row.label: row for row in rows(compared, target(task.problem))}
    best = min(made.values(), key=lambda row: row.median)
    return Standing(best, made[chosen], direction(methods[chosen], methods[best.label]) > 0)
