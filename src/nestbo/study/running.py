"""Running: ask, evaluate, tell, and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal, Self

from nestbo.errors import ArgumentError, TrialError, shown
from nestbo.evaluation import Evaluation, Outcome
from nestbo.history import History, Trial
from nestbo.manifolds.base import check_size
from nestbo.parallel import Desk, Driver, Executor, Pool
from nestbo.progress import Reporter, reporter
from nestbo.study.asking import Asking
from nestbo.study.record import Objective
from nestbo.study.telling import Telling


class Running(Asking, Telling):
    """The part of a study that evaluates an objective."""

    def run(
        self,
        f: Objective,
        n: int,
        *,
        numpy: bool = False,
        on_error: Literal["record", "raise"] = "record",
        progress: bool | Reporter = True,
        executor: Executor | Callable[[int], Executor] | None = None,
        workers: int | None = None,
        timeout: float | None = None,
    ) -> Self:
        """``n`` further evaluations of ``f``: nothing but ask and tell.

        A trial left behind by a run that was killed or interrupted is evaluated first. ``f`` gets one point, as a
        tensor or, with ``numpy``, as an array, and returns a number or an ``Observation``; what it raises is recorded
        as a failure unless ``on_error="raise"``. Ctrl-C ends the run and keeps everything told; the interrupted trials
        stay pending, and the next run evaluates them first.

        ``executor`` evaluates on up to ``workers`` at a time, each getting a new point as soon as it is free: one of
        ``concurrent.futures`` or a class of it, which is then made anew when a worker's death breaks it. A trial whose
        worker died is handed out again. An evaluation that takes more than ``timeout`` seconds is ended and has failed;
        with a timeout, each runs in a forked process of its own.
        """
        self._check_open()
        n = check_size("The number of evaluations", n, least=0)
        if on_error not in ("record", "raise"):
            raise ArgumentError(f'on_error is "record" or "raise", got {shown(on_error)}.')
        evaluation, report, best = Evaluation(f, numpy, timeout), reporter(progress), self.best

        def each(done: Trial, outcome: Outcome) -> None:
            nonlocal best
            best = History((done,) if best is None else (best, done), self.noise, self.direction).best
            report.advanced(done, best)
            if on_error == "raise" and outcome.error is not None:
                raise outcome.error

        with report.watching(n):
            try:
                pool = Pool(executor, workers)
                self._within_a_call(lambda call: Driver(self._desk(call, report), evaluation, pool).run(n, each))
            except KeyboardInterrupt:
                report.interrupted()
        return self

    def _desk(self, call: str, report: Reporter) -> Desk:
        return Desk(partial(self._next, call), self._record, self._lose, report.waiting)

    def _next(self, call: str) -> Trial:
        """A trial that an interrupted run left behind, or a new one."""
        orphan = self._store.take_orphan(call)
        return self._ask(1, call, running=True)[0] if orphan is None else self._waiting(orphan)

    def _record(self, trial: Trial, outcome: Outcome) -> Trial:
        """Tell an outcome, unless the objective itself, or another process, was first."""
        try:
            return self.tell(trial.index, outcome.value, failed=outcome.failed)
        except TrialError:
            return self._find(trial.index)
        except ArgumentError as error:
            return self.tell(trial.index, failed=str(error)[:500])

    def _lose(self, trial: Trial, why: str) -> Trial:
        """Note that the worker of a trial died; the trial still waits for a value."""
        noted = replace(trial, told=replace(trial.told, lost=(*trial.told.lost, why)))
        self._store.note(noted)
        return noted
