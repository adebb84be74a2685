"""Asking: new trials to evaluate."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, overload

import torch
from torch import Tensor

from nestbo import calls
from nestbo.errors import ArgumentError, ConstraintError, NestboError
from nestbo.history import History, Told, Trial
from nestbo.manifolds import Space
from nestbo.manifolds import fixed as part_of
from nestbo.manifolds.base import check_size
from nestbo.storage import version
from nestbo.strategies import Runs, Suggestion
from nestbo.study.journal import log_suggestions
from nestbo.study.known import Known
from nestbo.study.record import Record
from nestbo.study.settings import checked_note
from nestbo.study.shelf import candidates, chosen
from nestbo.text import printable

T = TypeVar("T")
ATTEMPTS = 3  # to suggest what no one else evaluates
_TOO_NEAR = 1e-2  # of the deviation of random points


class Asking(Record):
    """The part of a study that suggests points."""

    @overload
    def ask(self, *, among: Any = None, fixed: Mapping[str, Any] | None = None) -> Trial: ...
    @overload
    def ask(self, n: int, *, among: Any = None, fixed: Mapping[str, Any] | None = None) -> list[Trial]: ...
    def ask(
        self, n: int | None = None, *, among: Any = None, fixed: Mapping[str, Any] | None = None
    ) -> Trial | list[Trial]:
        """A new trial to evaluate, or a list of different ones. Points that were enqueued come first.

        Args:
            n: The number of trials. Without it, one trial is returned.
            among: Candidates, a tensor (k, *point) or a list of points. The trial is the candidate with the largest
                acquisition value. No candidate is chosen twice, unless values are noisy.
            fixed: Values of some parameters by name, such as ``{"tool": "soft"}``. The other parameters are chosen to
                go with them. Enqueued points wait.

        Returns:
            One trial, or a list of ``n``.
        """
        count = 1 if n is None else check_size("The number of trials to ask for", n)
        trials = self._within_a_call(partial(self._asked_by_hand, count, among, fixed))
        return trials[0] if n is None else trials

    def enqueue(self, x: Any, *, note: str | None = None) -> Trial:
        """Put a point of your own first: the next ``ask`` returns it, or the next ``run`` evaluates it.

        Args:
            x: One point of the space. It has to satisfy the constraints of the study.
            note: A text of your own, kept with the trial.

        Returns:
            The trial, which is pending.
        """
        self._check_open()
        self._check_known("--constraints")
        x, told = self._point("enqueue", x), Told(note=checked_note(note))
        if self.constraints is not None and not self.constraints.allows(x):
            raise ConstraintError("enqueue takes a point that satisfies the constraints. add takes any, with a value.")
        return Trial(self._store.enqueue(x, told), x, told=told, space=self.space)

    def _asked_by_hand(self, n: int, among: Any, fixed: Mapping[str, Any] | None, call: str) -> list[Trial]:
        """Points of the queue, then new ones."""
        self._check_open()
        if fixed is not None and among is not None:
            raise ArgumentError("ask takes among or fixed, got both. Leave out candidates with other values.")
        if fixed is not None:
            return self._ask(n, call, running=False, within=part_of(self.space, fixed))
        if among is not None:
            self._check_known("--constraints")
            return self._ask(n, call, running=False, among=candidates(self.space, among, self.constraints))
        queued = [self._find(index) for index in self._store.take_queued(n)]
        return queued + (self._ask(n - len(queued), call, running=False) if n > len(queued) else [])

    def _within_a_call(self, work: Callable[[str], T]) -> T:
        """Do some work under the name of this call: the trials that it still holds when it breaks off are free again.

        Another interrupt may come before that is written down. For this process they are free all the same, because
        the call has ended; for others, once this process has ended.
        """
        call = calls.begin()
        try:
            return work(call)
        except BaseException:
            with contextlib.suppress(NestboError):  # such as that of a full disk: the first error says more
                self._store.release(call)
            raise
        finally:
            calls.end(call)

    def _ask(
        self, n: int, call: str, running: bool, among: Tensor | None = None, within: Space | None = None
    ) -> list[Trial]:
        """New trials, recorded: from all that is known, and not where another process asked meanwhile."""
        self._check_open()
        self._check_known("--constraints")
        self._say_version()
        indices = self._store.reserve(n, call)
        seen: Known | None = self._renewed()
        rng, left = self._rng(indices[0]), ATTEMPTS
        while seen is not None:
            left -= 1
            history = History(seen.trials, self.noise, self.direction).to_minimise
            found = self._suggested(history, n, rng, among, within or self.space)
            made = zip(indices, found, strict=True)
            trials = [Trial(k, s.x, memory=s.memory, space=self.space) for k, s in made]
            before, seen = seen, self._record_asked(trials, seen, call, running=running, insist=left == 0)
        log_suggestions(trials, before.trials)
        return trials

    def _suggested(
        self, history: History, n: int, rng: torch.Generator, among: Tensor | None, within: Space
    ) -> list[Suggestion]:
        """Points of the space, of a part of it, or of a list."""
        if among is None:
            rules = self.constraints and replace(self.constraints, space=within)
            return self.strategy.suggest(within, history, n, rng, constraints=rules)
        return chosen(self.strategy, self.space, Runs.of(self.space, history, rng, self.constraints), n, among)

    def _record_asked(
        self, trials: list[Trial], seen: Known, call: str, *, running: bool, insist: bool
    ) -> Known | None:
        """Record new trials; if one is near a point that came since, and nobody insists, say what is known instead."""
        while True:
            now = self._renewed()
            came = now.points_beside(seen)
            if not insist and too_near(self.space, [trial.x for trial in trials], came):
                return now
            if self._store.ask(trials, call, running, now.revision):
                return None

    def _say_version(self) -> None:
        """Say, once, that another version of nestbo made the suggestions so far."""
        if self._same_version:
            return
        self._same_version = True
        last = self._store.suggested_by()
        if last != version():
            logging.getLogger("nestbo").warning(
                "%s was last written by %s; nestbo %s goes on with it, and may suggest other points.",
                self._store.path,
                "an earlier nestbo" if last is None else f"nestbo {printable(str(last), keep='')}",
                version(),
            )


def too_near(space: Space, points: list[Tensor], others: list[Tensor]) -> bool:
    """Whether one of some points is as good as one of others."""
    if not others:
        return False
    usual = space.embed(space.random(100, rng=torch.Generator().manual_seed(0))).std(0).norm()
    here, there = (space.embed(torch.stack(each)) for each in (points, others))
    return bool((torch.cdist(here, there) < _TOO_NEAR * usual).any())
