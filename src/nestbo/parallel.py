"""Evaluations on many workers: a new point as soon as one is free. Only the driver touches the store."""

from __future__ import annotations

import concurrent.futures as futures
import contextlib
import queue
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nestbo.errors import ArgumentError, NestboError, shown
from nestbo.evaluation import Evaluation, Outcome, described
from nestbo.history import Trial
from nestbo.interrupts import held_back
from nestbo.manifolds.base import check_size

Executor = futures.Executor
Future = futures.Future[Outcome]

_LOSSES = 3  # a trial whose worker died so many times has failed; the last time it ran alone
_SILENCE = 10.0  # seconds without an answer after which a run looks whether anybody is there to give one
_WORD = 60.0  # seconds until it says again that nobody is
_BREAKING = 1.0  # seconds within which a broken executor has said so of all its evaluations
_PATIENCE = 2.0  # seconds for which Ctrl-C waits for an executor: most take milliseconds, some wait for a free place


@dataclass(frozen=True)
class Desk:
    """Where a run gets its trials, and says what became of them."""

    next: Callable[[], Trial]
    record: Callable[[Trial, Outcome], Trial]
    lose: Callable[[Trial, str], Trial]
    wait: Callable[[str], None]


class Here(Executor):
    """The present thread as an executor: evaluates while it is asked to."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        future: futures.Future[Any] = futures.Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except futures.BrokenExecutor as error:
            future.set_exception(error)
        return future


class Pool:
    """An executor that is someone else's, or one made by a class such as ProcessPoolExecutor, again when it breaks."""

    def __init__(self, executor: Executor | Callable[[int], Executor] | None, workers: int | None) -> None:
        if (executor is None) != (workers is None):
            raise ArgumentError(
                "executor and workers go together: executor=ProcessPoolExecutor, workers=8, "
                f"got executor {shown(executor)} and workers {shown(workers)}."
            )
        if not (executor is None or isinstance(executor, Executor) or callable(executor)):
            raise ArgumentError(
                f"executor is one of concurrent.futures, or a class of executors, got {shown(executor)}."
            )
        self.workers = 1 if workers is None else check_size("The number of workers", workers)
        self.make = None if executor is None or isinstance(executor, Executor) else executor
        self.executor = Here() if executor is None else executor if isinstance(executor, Executor) else self._made()

    def _made(self) -> Executor:
        assert self.make is not None
        try:
            made = self.make(self.workers)
        except Exception as error:
            raise ArgumentError(
                f"executor makes one of concurrent.futures for {self.workers} workers, and raised {described(error)}. "
                "Pass a class such as ProcessPoolExecutor."
            ) from error
        if not isinstance(made, Executor):
            raise ArgumentError(f"executor makes one of concurrent.futures, got {shown(made)} from {shown(self.make)}.")
        return made

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Future:
        """Send a call to a worker: to one of a new executor, where the one that was made here takes no more."""
        if isinstance(self.executor, Here):
            return self.executor.submit(call, *arguments)
        try:
            return self._sent(call, *arguments)
        except NestboError:
            if self.make is None:
                raise
        self.close(wait=False)
        self.executor = self._made()
        return self._sent(call, *arguments)

    def _sent(self, call: Callable[..., Any], *arguments: Any) -> Future:
        try:
            future = self.executor.submit(call, *arguments)
        except Exception as error:  # broken, shut down, or whatever else it says
            raise NestboError(
                f"The executor takes no more evaluations ({described(error)}). Run again with a new one: "
                "everything told is kept, and lost trials come first. With a class such as ProcessPoolExecutor, run "
                "makes a new executor itself."
            ) from error
        if not isinstance(future, futures.Future):
            raise NestboError(
                f"An executor gives a Future of concurrent.futures, got {shown(future)}. Use another one."
            )
        return future

    def undisturbed(self) -> contextlib.AbstractContextManager[None]:
        """Ctrl-C waits while an executor takes or gives up work; the present thread needs no such care."""
        return contextlib.nullcontext() if isinstance(self.executor, Here) else held_back(_PATIENCE)

    def trouble(self) -> str | None:
        """Why an answer may not come soon, if that is known: of dask, which waits for workers without a word."""
        distributed, client = sys.modules.get("distributed"), getattr(self.executor, "_client", None)
        if distributed is None or not isinstance(client, distributed.Client):
            return None
        try:
            return None if client.nthreads() else "the dask cluster has no workers; start some, or press Ctrl-C"
        except Exception as error:
            return f"the dask cluster does not say whether it has workers ({described(error)})"

    def close(self, wait: bool = True) -> None:
        """End what was made here; without ``wait``, as well as it can be."""
        if self.make is None:
            return
        try:
            self.executor.shutdown(wait=wait, cancel_futures=True)
        except Exception as error:
            if wait:
                raise NestboError(
                    f"The executor does not shut down ({described(error)}). Everything told is kept."
                ) from error


class Driver:
    """Keeps the workers of a pool busy.

    Ctrl-C may come at any instant but those in which an executor takes or gives up work: it would leave the locks of
    ``concurrent.futures`` held, and workers, then the end of the program, would wait for them for ever. For the same
    reason, evaluations that have ended queue up here, instead of being waited for there.
    """

    def __init__(self, desk: Desk, evaluation: Evaluation, pool: Pool) -> None:
        self.desk, self.evaluation, self.pool = desk, evaluation, pool
        self.flying: dict[Future, Trial] = {}
        self.ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self.lost: deque[Trial] = deque()
        self.answered = False  # whether a worker ever has

    def run(self, left: Callable[[], int], each: Callable[[Trial, Outcome], None]) -> None:
        """Evaluations, as long as some are ``left``; ``each`` hears of them in the order in which they end."""
        try:
            while (count := left()) or self.flying:
                self._fill(count)
                for future in self._wait(self.ended):
                    self._settle(future, each)
        except BaseException:
            self._stop()
            raise
        self.pool.close()

    def _fill(self, left: int) -> None:
        """Give every free worker a trial: one that was lost, or a new one."""
        while len(self.flying) < min(self.pool.workers, left) and not self._quiet():
            trial = self.lost.popleft() if self.lost else self.desk.next()
            with self.pool.undisturbed():
                self._submit(trial)

    def _submit(self, trial: Trial) -> None:
        try:
            future = self.pool.submit(self.evaluation, trial.x.numpy(), uuid.uuid4().hex)
        except Exception:
            self._hear_out()
            raise
        self.flying[future] = trial
        future.add_done_callback(self.ended.put)

    def _hear_out(self) -> None:
        """What a broken executor had under way ends in a moment, with an error that says so."""
        end = time.monotonic() + _BREAKING
        with contextlib.suppress(queue.Empty):
            for _ in self.flying:
                self.ended.get(timeout=max(0.0, end - time.monotonic()))

    def _wait(self, ended: queue.SimpleQueue[Future]) -> list[Future]:
        """All that have ended, as soon as there is one."""
        silent_until = time.monotonic()
        while True:
            with contextlib.suppress(queue.Empty):
                first = ended.get(timeout=_SILENCE)
                return [first, *(ended.get() for _ in range(ended.qsize()))]
            now, trouble = time.monotonic(), self.pool.trouble()
            if trouble is not None and now >= silent_until:
                self.desk.wait(trouble)
                silent_until = now + _WORD

    def _quiet(self) -> bool:
        """Whether a trial that may kill its worker waits until it is alone, or is."""
        return bool(self.flying) and any(map(_dangerous, [*self.flying.values(), *self.lost]))

    def _settle(self, future: Future, each: Callable[[Trial, Outcome], None]) -> None:
        """Record what became of an evaluation, unless it was lost and gets another chance."""
        trial, error = self.flying[future], _error(future)
        if error is None:
            outcome, self.answered = future.result(), True
        elif _is_loss(error):
            del self.flying[future]
            self.lost.append(self.desk.lose(trial, described(error)))
            if _losses(self.lost[-1]) < _LOSSES:
                return
            outcome, trial = self._given_up(error), self.lost.pop()
        else:
            raise _explained(error) from error
        done = self.desk.record(trial, outcome)
        self.flying.pop(future, None)
        each(done, outcome)

    def _given_up(self, error: BaseException) -> Outcome:
        """The outcome of a trial that was lost too often; the end, if workers cannot even receive the objective."""
        if not self.answered and self._error_of(callable, self.evaluation) is not None:
            raise NestboError(
                f"Workers die before they evaluate anything: {described(error)}. Define the objective in a module "
                'that they can import, and start them under if __name__ == "__main__".'
            ) from error
        return Outcome(None, f"its worker died {_LOSSES} times: {described(error)}")

    def _error_of(self, call: Callable[..., Any], *arguments: Any) -> BaseException | None:
        """What a call ends with on a worker."""
        ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
        with self.pool.undisturbed():
            self.pool.submit(call, *arguments).add_done_callback(ended.put)
        (future,) = self._wait(ended)
        return _error(future)

    def _stop(self) -> None:
        """Record what has ended; the rest is left to the next run."""
        with self.pool.undisturbed():
            for future, trial in self.flying.items():
                error = futures.CancelledError() if future.cancel() or not future.done() else _error(future)
                with contextlib.suppress(NestboError):
                    if error is None:
                        self.desk.record(trial, future.result())
                    elif _is_loss(error) and not isinstance(error, futures.CancelledError):
                        self.desk.lose(trial, described(error))
            self.pool.close(wait=False)


def _losses(trial: Trial) -> int:
    return len(trial.told.lost)


def _dangerous(trial: Trial) -> bool:
    """Whether a trial has one chance left."""
    return _losses(trial) >= _LOSSES - 1


def _error(future: Future) -> BaseException | None:
    try:
        return future.exception()
    except futures.CancelledError as error:
        return error


def _is_loss(error: BaseException) -> bool:
    """Whether it says that a worker died; of dask's, without importing it."""
    killed = getattr(sys.modules.get("distributed"), "KilledWorker", futures.BrokenExecutor)
    return isinstance(error, futures.BrokenExecutor | futures.CancelledError | killed)


def _explained(error: BaseException) -> BaseException:
    """What an executor says of its own accord: whatever the objective raises is an outcome."""
    if not isinstance(error, Exception):
        return error
    return NestboError(f"The objective cannot be sent to a worker: {described(error)}. Define it in a module.")
