"""The course of a run: how far it goes, who hears of each evaluation, and what ends it."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nestbo.errors import ArgumentError, FailureWarning, ObjectiveError, shown
from nestbo.evaluation import Outcome
from nestbo.history import Trial
from nestbo.manifolds.base import check_size
from nestbo.stop import Progress, Rule
from nestbo.study.judging import Judging
from nestbo.text import printable

if TYPE_CHECKING:
    from nestbo.study.study import Study

Callback = Callable[["Study", Trial], object]
Stop = Rule | Callable[["Study", Trial], bool | str | None]
_ALL_FAILED = 6  # evaluations at the beginning of a study without a value: one more than most initial designs


@dataclass(frozen=True)
class Goal:
    """How many evaluations a run makes: ``n`` further ones, or as many as bring the study to ``budget`` in all."""

    n: int | None
    budget: int | None

    def __post_init__(self) -> None:
        if (self.n is None) == (self.budget is None):
            raise ArgumentError(
                "run takes the number of further evaluations or budget=…, the number in all. "
                f"Give one of the two, got {shown(self.n)} and {shown(self.budget)}."
            )
        if self.n is not None:
            check_size("The number of evaluations", self.n, least=0)
        if self.budget is not None:
            check_size("The budget", self.budget)

    def left(self, made: int, finished: Callable[[], int]) -> int:
        """How many evaluations are left of those, given how many this run has made."""
        if self.n is not None:
            return self.n - made
        assert self.budget is not None
        return max(0, self.budget - finished())

    @property
    def words(self) -> str:
        """What ended a run that reached it."""
        return (
            f"the number of evaluations, {self.n}, is reached"
            if self.budget is None
            else f"the budget of {self.budget} is used up"
        )


class Course:
    """What happens between the evaluations of one run.

    ``left`` says how many more may end, ``ended`` hears of each that has. ``reason`` is what has ended the run.
    """

    def __init__(self, study: Judging, goal: Goal, stop: Stop | Sequence[Stop] | None, callbacks: Any) -> None:
        self.study, self.goal = study, goal
        self.rules = _checked("stop", [stop] if isinstance(stop, Rule) or callable(stop) else stop)
        self.callbacks = _checked("callbacks", callbacks)
        self.started, self.made, self.reason = time.monotonic(), 0, ""
        self.warned, self.valued = False, bool(study._read().front)

    def left(self) -> int:
        """How many evaluations may still end in this run, those under way included."""
        if not self.made and not self.reason:
            self._ask_rules(None)
        return 0 if self.reason else self.goal.left(self.made, lambda: len(self.study._read().finished))

    def ended(self, trial: Trial, outcome: Outcome) -> None:
        """After an evaluation: speak of a failure, call back, and see whether a rule ends the run."""
        self.made += 1
        self.valued = self.valued or trial.status == "told"
        if trial.status == "failed":
            self._speak(trial, outcome)
        for callback in self.callbacks:
            callback(self.study, trial)
        if not self.reason:
            self._ask_rules(trial)

    def _ask_rules(self, trial: Trial | None) -> None:
        now = Progress(self.study._read(), time.monotonic() - self.started, self.study.expected_gain)
        for rule in self.rules:
            if isinstance(rule, Rule):
                found = rule.reason(now)
            else:
                found = None if trial is None else _in_words(rule(self.study, trial), rule)
            if found is not None:
                self.reason = found
                return

    def _speak(self, trial: Trial, outcome: Outcome) -> None:
        """Warn of the first failure; give up where nothing has succeeded for long enough to be a mistake."""
        why = _first_line(str(trial.told.failed))
        if not self.valued and self.made >= _ALL_FAILED:
            raise ObjectiveError(
                f"The first {self.made} evaluations failed, the last one with {why}. Fix the objective, or run again "
                "to continue from here: everything is kept."
            ) from outcome.error
        if not self.warned:
            self.warned = True
            warnings.warn(
                f"Trial {trial.index} failed: {why}. It is recorded as such; later failures of this run are recorded "
                "without a warning.",
                FailureWarning,
                stacklevel=_levels_to_the_caller(),
            )


def _checked(name: str, given: Any) -> list[Any]:
    """A list of functions or rules."""
    found = list(given) if isinstance(given, list | tuple) else [] if given is None else [given]
    for each in found:
        if not (isinstance(each, Rule) or callable(each)) or isinstance(each, type):
            kinds = "rules of nestbo.stop or functions" if name == "stop" else "functions"
            raise ArgumentError(f"{name} takes {kinds} of a study and a trial, got {shown(each)}.")
    return found


def _in_words(found: bool | str | None, rule: Any) -> str | None:
    """What a function says: a text is the reason, and True names the function."""
    if isinstance(found, str):
        return found
    return f"{getattr(rule, '__name__', 'a function')} said so" if found else None


def _levels_to_the_caller() -> int:
    """How far up the code lies that called nestbo: a warning names a line of it, and not one of ours."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "nestbo":
        level, frame = level + 1, frame.f_back
    return level


def _first_line(text: str) -> str:
    return printable((text.splitlines() or [""])[0], keep="")
