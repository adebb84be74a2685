"""Running: ask, evaluate, tell, and again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, Self

from nestbo.errors import ArgumentError, NestboError, TrialError, shown
from nestbo.evaluation import Evaluation, Outcome
from nestbo.history import History, Observation, Trial
from nestbo.keywords import by_name
from nestbo.parallel import Desk, Driver, Executor, Pool
from nestbo.progress import Reporter, reporter
from nestbo.study.adding import Adding
from nestbo.study.asking import Asking
from nestbo.study.course import Callback, Course, Goal, Stop
from nestbo.study.journal import LOG
from nestbo.study.judging import Judging
from nestbo.study.mending import Mending
from nestbo.study.record import Objective


class Running(Asking, Adding, Mending, Judging):
    """The part of a study that evaluates an objective."""

    def run(
        self,
        f: Objective,
        n: int | None = None,
        *,
        budget: int | None = None,
        stop: Stop | Sequence[Stop] | None = None,
        callbacks: Sequence[Callback] = (),
        numpy: bool = False,
        on_error: Literal["record", "raise"] = "record",
        progress: bool | Reporter = True,
        executor: Executor | Callable[[int], Executor] | None = None,
        workers: int | None = None,
        timeout: float | None = None,
    ) -> Self:
        """Evaluate ``f`` at one suggestion after the other. This equals a loop of ask and tell.

        Trials of a run that was killed or interrupted come first, then enqueued points. ``stopped`` says what ended the
        run.

        Args:
            f: A function of one point, a tensor, or of keyword arguments with the names of the space. It returns a
                number or an ``Observation``.
            n: The number of further evaluations. Give ``n`` or ``budget``, not both.
            budget: The number of evaluations of the study in all, including those of earlier runs. A script that runs
                again continues up to ``budget`` and stops there.
            stop: A rule of ``nestbo.stop``, or a function of the study and the last trial that returns True or a
                reason, or several of these. They are checked after every evaluation; rules also before the first one.
            callbacks: Functions of the study and a trial, called after every evaluation.
            numpy: Whether ``f`` takes an array instead of a tensor.
            on_error: "record" records an exception of ``f`` as a failure and warns of the first one; "raise" raises it.
            progress: Whether to show progress on stderr, or a reporter of your own.
            executor: An executor of ``concurrent.futures``, or a class of executors. ``run`` replaces an executor of
                the class if it breaks. A trial whose worker died is evaluated again.
            workers: The number of evaluations that ``executor`` makes at a time. Each worker gets a new point as soon
                as it is free.
            timeout: Seconds after which an evaluation is ended and counts as failed. Each evaluation then runs in a
                forked process of its own.

        Returns:
            The study itself.

        Raises:
            KeyboardInterrupt: After Ctrl-C. Everything told is kept. Interrupted trials stay pending, and the next run
                evaluates them first.
            ObjectiveError: If the first six evaluations of a study all fail.
        """
        self._check_open()
        if on_error not in ("record", "raise"):
            raise ArgumentError(f'on_error is "record" or "raise", got {shown(on_error)}.')
        course = Course(self, Goal(n, budget), stop, callbacks)
        evaluation, report = Evaluation(by_name(f, self.space), numpy, timeout), reporter(progress)
        best = None if self.several else self.best

        def each(done: Trial, outcome: Outcome) -> None:
            nonlocal best
            best = self._better(best, done)
            report.advanced(done, best)
            if on_error == "raise" and outcome.error is not None:
                raise outcome.error
            course.ended(done, outcome)

        with report.watching(remaining := course.left()):
            if budget is not None and not remaining:
                report.idle(f"{course.goal.words}: nothing to evaluate. For another objective, choose another store.")
            elif budget is not None and remaining < budget:
                report.idle(f"{budget - remaining} of {budget} evaluations are made, {remaining} are left")
            try:
                pool, left = Pool(executor, workers), course.left
                self._within_a_call(lambda call: Driver(self._desk(call, report), evaluation, pool).run(left, each))
            except KeyboardInterrupt:
                report.interrupted()
                with contextlib.suppress(NestboError):
                    self._set_stopped("interrupted")
                raise
        self._set_stopped(course.reason or course.goal.words)
        LOG.info("The run ended after %d evaluations: %s.", course.made, self.stopped)
        return self

    @property
    def stopped(self) -> str | None:
        """What ended the last run of this study, in words; None if there was no run, or it was killed."""
        found = self.settings.get("stopped")
        return found if isinstance(found, str) else None

    def _set_stopped(self, reason: str) -> None:
        if self.stopped != reason:
            self.remember(stopped=reason)

    def _desk(self, call: str, report: Reporter) -> Desk:
        return Desk(partial(self._next, call), self._record, self._lose, report.waiting)

    def _next(self, call: str) -> Trial:
        """A trial that an interrupted run left behind, or a new one."""
        orphan = self._store.take_orphan(call)
        return self._ask(1, call, running=True)[0] if orphan is None else self._waiting(orphan)

    def _better(self, best: Trial | None, done: Trial) -> Trial | None:
        """The better one of two; none where there are several objectives."""
        both = (done,) if best is None else (best, done)
        return None if self.several else History(both, self.noise, self.direction).best

    def _record(self, trial: Trial, outcome: Outcome) -> Trial:
        """Tell an outcome, unless the objective itself, or another process, was first.

        A wrong number of values is a mistake in the program, and ends the run.
        """
        found = outcome.value.value if isinstance(outcome.value, Observation) else outcome.value
        if found is not None:
            self._values(found, "The study", "Return them as a tuple.")
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
