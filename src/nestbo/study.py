"""A study: ask for points, tell values, in one file that survives anything."""

from __future__ import annotations

import contextlib
import copy
import logging
import math
import os
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, overload

import numpy as np
import torch
from numpy.random import SeedSequence
from torch import Tensor

from nestbo import calls
from nestbo.constraints import Constraints
from nestbo.errors import (
    ArgumentError,
    ConstraintError,
    NestboError,
    OffManifoldError,
    StoreError,
    TrialError,
    shown,
)
from nestbo.evaluation import Evaluation, Outcome, described, number, numbers
from nestbo.history import Direction, History, Noise, Observation, Told, Trial
from nestbo.manifolds import Manifold, space
from nestbo.manifolds.base import check_size, is_whole
from nestbo.parallel import Desk, Driver, Executor, Pool
from nestbo.progress import Reporter, reporter
from nestbo.storage import Store, Times, missing, version
from nestbo.strategies import GaBO, Runs, Standing, Strategy, default_strategy, strategy
from nestbo.surrogate import Model
from nestbo.text import printable

Objective = Callable[[Any], Any]
T = TypeVar("T")
_ROUNDING = 1e-9  # of a constraint that another machine computes
ATTEMPTS = 3  # to suggest what no one else evaluates
_TOO_NEAR = 1e-2  # of the deviation of random points
_OFF = 1e-3  # of a stored point: far more than rounding on another machine, far less than damage


@dataclass(frozen=True)
class _Known:
    """The trials that a study has read from its store, in the order of their indices, up to a revision."""

    trials: tuple[Trial, ...] = ()
    revision: int = -1

    def with_changes(self, changed: list[Trial], revision: int) -> _Known:
        """The same with what was written since."""
        trials = list(self.trials)
        for trial in changed if trials else ():
            at = bisect_left(trials, trial.index, key=lambda known: known.index)
            same = at < len(trials) and trials[at].index == trial.index
            trials[at : at + same] = [trial]
        return _Known(tuple(trials or changed), revision)

    def points_beside(self, former: _Known) -> list[Tensor]:
        """The points that were not known before."""
        if self is former:
            return []
        known = {trial.index for trial in former.trials}
        return [trial.x for trial in self.trials if trial.index not in known]


class Study:
    """An optimisation in progress. Its only state is its history, kept in ``store`` (a path) or in memory.

    A suggestion is a function of space, strategy, history and seed: a study that was killed and loaded again goes on as
    if nothing had happened. ``noise`` is the variance of the noise of values, or "infer" if they are noisy and it is
    not known; without it they are taken as exact. ``constraints`` is a function of a point, in all components ≥ 0 where
    the point is allowed: every suggestion is. A file does not keep it; give it again on opening. The default strategy
    is HDGaBO above ten dimensions, GaBO below.

    >>> import nestbo as nb
    >>> study = nb.Study(nb.Sphere(2), nb.GaBO(), seed=0)  # store="robot.db" keeps it in a file
    >>> trial = study.ask()
    >>> done = study.tell(trial, 3.2)
    >>> study.best.value
    3.2
    >>> study.pending
    []
    """

    def __init__(
        self,
        space: Manifold,
        strategy: Strategy | None = None,
        *,
        seed: int = 0,
        store: str | os.PathLike[str] | Store | None = None,
        direction: Direction = "minimize",
        noise: Noise = None,
        constraints: Objective | None = None,
    ) -> None:
        _check_settings(space, strategy, seed, direction, noise)
        _check_path(store)
        self.space, self.strategy = space, strategy or default_strategy(space)
        self.strategy.check(space)
        self.seed, self.direction = int(seed), direction
        self.noise: Noise = noise if noise is None or isinstance(noise, str) else number(noise)
        self.constraints = None if constraints is None else Constraints.of(constraints, space)
        self._store = store if isinstance(store, Store) else Store(store)
        try:
            self._begin(constraints is not None)
        except BaseException:
            self._store.close()
            raise

    def _begin(self, constrained: bool) -> None:
        """Take up what the store holds, or begin in it."""
        store = self._store
        store.shape = self.space.point_shape
        wanted = {
            "space": self.space.specification,
            "strategy": self.strategy.specification,
            "seed": self.seed,
            "direction": self.direction,
            "noise": self.noise,
            "constraints": constrained,
        }
        if store.empty:
            store.create(wanted)
        stored = store.settings()
        self._constrained = bool(stored.get("constraints"))
        _check_same(wanted | {"constraints": self._constrained}, stored, store.path)
        self._known, self._times = _Known(), dict[int, Times]()
        self._kept: dict[str, Any] | None = None  # the settings of a study that is closed
        self._same_version = store.path is None  # or it was said
        self._check_constraints()

    def _check_constraints(self) -> None:
        """Refuse constraints that points asked under them violate: they must be others."""
        if self.constraints is None:
            return
        if not self._constrained:
            raise ConstraintError("This study was begun without constraints, got some. Begin another one with them.")
        for trial in self._read():
            if trial.told.violation is None and self.constraints.slack(trial.x.unsqueeze(0)) < -_ROUNDING:
                raise ConstraintError(
                    f"Trial {trial.index} was asked under the constraints of this study, and violates those given. "
                    "Give the same function as before."
                )

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, constraints: Objective | None = None) -> Self:
        """The study in a file, to go on with; ``constraints`` are those that it was begun with."""
        _check_path(path, needed=True)
        if not os.path.exists(path):
            raise StoreError(f"There is no store at {path}. Check the path, or create a Study with store=….")
        store = Store(path if os.path.getsize(path) else None)  # an empty file stays one
        try:
            if store.empty:
                raise StoreError(f"The store {path} holds no study yet. Create one with Study(space, store=…).")
            return cls._resumed(store, constraints)
        except ConstraintError:
            raise
        except (KeyError, ArgumentError) as error:
            store.close()
            raise StoreError(f"The settings in {path} cannot be read: {error}") from error
        except BaseException:
            store.close()
            raise

    @classmethod
    def _resumed(cls, store: Store, constraints: Objective | None) -> Self:
        """The study that a store holds."""
        settings = store.settings()
        where, method = space(settings["space"]), strategy(settings["strategy"])
        kept = {name: settings[name] for name in ("seed", "direction", "noise")}
        return cls(where, method, store=store, constraints=constraints, **kept)

    def copy(self) -> Self:
        """The study as it is now, in memory: to look at while others go on with the file."""
        made = copy.copy(self)
        made._times = dict(self._times)
        if self._kept is None:
            made._store = self._store.copy()
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the study as it is now to another file, a new one, also while others go on with this one."""
        _check_path(path, needed=True)
        if os.path.lexists(path) or not missing(Path(path).absolute()):
            raise ArgumentError(f"Wanted a new file to copy to, got {path}, which exists. Choose another path.")
        self._check_open()
        self._store.save(Path(path))

    def close(self) -> None:
        """Let go of the file. The study can be read as it is now, and be loaded again to go on with it."""
        if self._kept is None:
            with contextlib.suppress(StoreError):  # closing is no time to complain; reading will
                self._renewed()
                self._kept = self._store.settings()
        self._store.close()

    def _check_open(self) -> None:
        """Refuse to go on with a study that is closed."""
        if self._kept is not None:
            path = self._store.path
            again = "Begin another one" if path is None else f"Study.load({str(path)!r}) opens it again"
            raise StoreError(f"This study is closed: it can be read, but not gone on with. {again}.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Study({self.space}, {self.strategy}, seed={self.seed}, {len(self.history)} trials)"

    @property
    def settings(self) -> dict[str, Any]:
        """What the store keeps of how the study was begun, and what ``remember`` put there."""
        return self._store.settings() if self._kept is None else dict(self._kept)

    def remember(self, **settings: Any) -> None:
        """Put further settings into the store, JSON values: what a program that runs the study wants to know again."""
        self._check_open()
        for name, value in settings.items():
            self._store.set(name, value)

    @property
    def history(self) -> History:
        """All trials that have a point, in the order of their indices; also those of other processes."""
        history = self._read()
        return replace(history, trials=tuple(replace(trial, x=trial.x.clone()) for trial in history))

    def _read(self) -> History:
        """The history without copies; what has not changed since the last time is not read again."""
        return History(self._renewed().trials, self.noise, self.direction)

    def _renewed(self) -> _Known:
        """What is known by now, or was when the study was closed."""
        known = self._known
        if self._kept is not None:
            return known
        trials, times, revision = self._store.trials(known.revision)
        if revision > known.revision:
            self._check_points(trials)
            self._times.update(times)
            known = self._known = known.with_changes(trials, revision)  # one assignment: threads may read at once
        return known

    def _check_points(self, trials: list[Trial]) -> None:
        """Refuse points that do not lie in the space: the file is damaged, or of a stranger."""
        try:
            if trials:
                self.space.check(torch.stack([trial.x for trial in trials]), _OFF)
        except OffManifoldError as error:
            raise StoreError(f"The points in {self._store.path} are damaged: {error} Restore a copy.") from error

    @property
    def pending(self) -> list[Trial]:
        """Trials asked and not yet told; ``ask`` hands out new points, not these."""
        return list(self.history.pending)

    @property
    def best(self) -> Trial | None:
        """The told trial with the best value, of those that violate no constraint."""
        best = self._read().best
        return best and replace(best, x=best.x.clone())

    @property
    def times(self) -> dict[int, Times]:
        """When each trial was asked and told, in seconds since 1970."""
        self._renewed()
        return dict(self._times)

    def recommend(self) -> Trial | None:
        """The told trial to rely on: where values are noisy, that with the best posterior mean; else the best."""
        history = self._read()
        told = [trial for trial in history if trial.status == "told" and trial.feasible]
        if not told or not history.noisy:
            return self.best
        models = self.models() or self._models(GaBO())
        model = models.get("full", next(iter(models.values())))
        mean = model.predict(torch.stack([trial.x for trial in told]))
        found = told[int(mean.argmin())]
        return replace(found, x=found.x.clone())

    def add(self, x: Any, value: Any, *, constraints: Any = None, noise: float | None = None) -> Trial:
        """An observation made elsewhere, with what ``tell`` takes; it may violate constraints known in advance."""
        if isinstance(value, Observation):
            value, constraints, noise = value.value, value.constraints, value.noise
        self._check_open()
        self._check_known("--allowed")
        x = self.space.check(x).double()
        if x.shape != self.space.point_shape:
            raise ArgumentError(f"add takes one point, of shape {self.space.point_shape}, got {tuple(x.shape)}.")
        y = number(value)
        if y is None or not math.isfinite(y):
            raise ArgumentError(f"add takes a finite number as the value, got {shown(value)}.")
        facts = self._facts(constraints, noise)
        if facts is None:
            raise ArgumentError(f"add takes finite numbers as constraints, got {shown(constraints)}.")
        if self.constraints is not None and not self.constraints.allows(x):
            facts["violation"] = -min(0.0, self.constraints.slack(x.unsqueeze(0)).item())
        told = Told((y,), **facts)
        return Trial(self._store.add(x, told), x, "told", told)

    def _facts(self, constraints: Any, noise: Any) -> dict[str, Any] | None:
        """Constraints and noise of an evaluation as fields of ``Told``; None if they are not finite."""
        variance = None if noise is None else number(noise)
        if noise is not None and not _positive(variance):
            raise ArgumentError(f"noise is the variance of that in the value, a positive number, got {shown(noise)}.")
        values = None if constraints is None else numbers(constraints)
        earlier = next((t.constraints for t in reversed(self._read().trials) if t.status == "told"), values)
        if (values and len(values)) != (earlier and len(earlier)):
            raise ArgumentError(
                f"The trials of this study have {len(earlier or ())} constraints each, got {len(values or ())}. "
                "Tell the same ones with every value."
            )
        if not all(map(math.isfinite, values or ())):
            return None
        return {"noise": variance, "constraints": None if values is None else tuple(values)}

    @overload
    def ask(self) -> Trial: ...
    @overload
    def ask(self, n: int) -> list[Trial]: ...
    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """A new trial to evaluate, or a list of ``n`` different ones."""
        count = 1 if n is None else check_size("The number of trials to ask for", n)
        trials = self._within_a_call(partial(self._ask, count, running=False))
        return trials[0] if n is None else trials

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

    def _ask(self, n: int, call: str, running: bool) -> list[Trial]:
        """New trials, recorded: from all that is known, and not where another process asked meanwhile."""
        self._check_open()
        self._check_known("--constraints")
        self._say_version()
        indices = self._store.reserve(n, call)
        seen: _Known | None = self._renewed()
        rng, left = self._rng(indices[0]), ATTEMPTS
        while seen is not None:
            left -= 1
            history = History(seen.trials, self.noise, self.direction).to_minimise
            found = self.strategy.suggest(self.space, history, len(indices), rng, constraints=self.constraints)
            trials = [Trial(k, s.x, memory=s.memory) for k, s in zip(indices, found, strict=True)]
            seen = self._record_asked(trials, seen, call, running=running, insist=left == 0)
        return trials

    def _record_asked(
        self, trials: list[Trial], seen: _Known, call: str, *, running: bool, insist: bool
    ) -> _Known | None:
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

    def _check_known(self, option: str) -> None:
        """Refuse what wants the constraints of this study where they were not given."""
        if self._constrained and self.constraints is None:
            raise ConstraintError(
                "This study has constraints, which its file does not keep. Give them: Study.load(path, constraints=…), "
                f"or {option} on the command line."
            )

    def _rng(self, index: int) -> torch.Generator:
        """Random numbers that depend on the seed and a trial's index alone; trials asked together share the first's."""
        state = SeedSequence([self.seed, index]).generate_state(1, np.uint64)[0]
        return torch.Generator().manual_seed(int(state))

    def tell(
        self,
        trial: Trial | int,
        value: Any = None,
        *,
        failed: str | None = None,
        constraints: Any = None,
        noise: float | None = None,
    ) -> Trial:
        """The value of an asked trial, or why it failed; it is on the disk when this returns.

        ``constraints`` are numbers that were found with the value, each ≥ 0 where its constraint is satisfied, and as
        many for every trial; ``noise`` is the variance of that of the value. An ``Observation`` holds all three. NaN
        and infinity count as failures and are recorded as such.
        """
        if isinstance(value, Observation):
            value, constraints, noise = value.value, value.constraints, value.noise
        self._check_open()
        waiting = self._waiting(trial)
        if (value is None) == (failed is None):
            raise ArgumentError("tell takes a value or failed='why', got both or neither.")
        if failed is None and number(value) is None:
            raise ArgumentError(
                f"tell takes a number, got {shown(value)}. Use failed='why' for an evaluation without one."
            )
        facts = self._facts(constraints, noise) if failed is None else {}
        if facts is None:
            failed = f"the constraints are not all finite numbers: {shown(constraints)}"[:500]
        done = _outcome(replace(waiting, told=replace(waiting.told, **(facts or {}))), value, failed)
        self._store.tell(done)
        return done

    def _waiting(self, trial: Trial | int) -> Trial:
        """The trial as it is stored, if it waits for a value."""
        index = trial.index if isinstance(trial, Trial) else trial
        waiting = self._find(index)
        if isinstance(trial, Trial) and not _same(trial.x, waiting.x):
            raise TrialError(
                f"Trial {index} of this study is another point. Tell the study that asked for it; if x was changed in "
                f"place, tell({index}, value)."
            )
        if waiting.status != "asked":
            raise TrialError(f"Trial {index} was {waiting.status} already. Use add(x, value) for another observation.")
        return waiting

    def _find(self, index: Any) -> Trial:
        """The trial of an index, as it is stored; the search begins with the last."""
        trials = reversed(self._read().trials) if is_whole(index) else ()
        found = next((trial for trial in trials if trial.index == index), None)
        if found is None:
            raise TrialError(
                f"There is no trial {shown(index)} in this study. ask() makes one; pending lists the open ones."
            )
        return found

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
    ) -> Study:
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

    def models(self) -> dict[str, Model]:
        """The surrogates that the strategy would use now, by name; empty before there are data for one."""
        return self._models(self.strategy)

    def _models(self, strategy: Strategy) -> dict[str, Model]:
        """Those of a strategy: a study is the only run of the batch that a strategy works on."""
        return {name: Model.of(found) for name, found in strategy.models(self.space, self._runs()).items()}

    def _runs(self) -> Runs:
        history = self._read()
        return Runs.of(self.space, history.to_minimise, self._rng(len(history)), self.constraints)

    def standings(self) -> list[Standing]:
        """How the arms of the strategy are doing: suggestions made, their share of all, and chance of success."""
        return self.strategy.standings(self.space, self._runs())

    def model(self) -> Model:
        """The leading surrogate."""
        models = self.models()
        if not models:
            raise ArgumentError(
                f"{self.strategy} has no model of these {len(self.history)} trials. Tell some values first."
            )
        return next(iter(models.values()))


def too_near(space: Manifold, points: list[Tensor], others: list[Tensor]) -> bool:
    """Whether one of some points is as good as one of others."""
    if not others:
        return False
    usual = space.embed(space.random(100, rng=torch.Generator().manual_seed(0))).std(0).norm()
    here, there = (space.embed(torch.stack(each)) for each in (points, others))
    return bool((torch.cdist(here, there) < _TOO_NEAR * usual).any())


def _same(x: Any, y: Tensor) -> bool:
    """Whether what came with a trial is the point y, to the last bit."""
    return isinstance(x, Tensor) and x.shape == y.shape and bool((x.detach().cpu() == y).all())


def _outcome(trial: Trial, value: Any, failed: str | None) -> Trial:
    """The trial, told or failed."""
    if failed is None:
        y = number(value)
        if y is not None and math.isfinite(y):
            return trial.with_value(y)
        failed = f"the value is not a finite number: {shown(value)}"[:500]
    return trial.with_failure(failed if isinstance(failed, str) else described(failed))


def _check_settings(space: Any, strategy: Any, seed: Any, direction: Any, noise: Any) -> None:
    if not isinstance(space, Manifold):
        raise ArgumentError(
            f'A study needs a space such as Sphere(2), got {shown(space)}. nestbo.space("sphere:2") reads a text.'
        )
    if strategy is not None and not isinstance(strategy, Strategy):
        raise ArgumentError(f"The strategy is one such as GaBO(), got {shown(strategy)}.")
    if not is_whole(seed) or not 0 <= seed < 2**64:
        raise ArgumentError(f"The seed is a whole number from 0 to 2^64 − 1, got {shown(seed)}.")
    if direction not in ("minimize", "maximize"):
        raise ArgumentError(f'The direction is "minimize" or "maximize", got {shown(direction)}.')
    if noise is not None and noise != "infer" and not _positive(noise):
        raise ArgumentError(f'noise is a positive variance, "infer", or None for exact values, got {shown(noise)}.')


def _positive(value: Any) -> bool:
    found = number(value)
    return found is not None and 0 < found < math.inf


def _check_path(path: Any, needed: bool = False) -> None:
    if isinstance(path, Store) and not needed:
        return
    if path is None and not needed:
        return
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise ArgumentError(f"A store is a path such as 'robot.db', got {shown(path)}.")
    if str(Path(text)) == ":memory:":  # a word of SQLite's, and no file
        raise ArgumentError(
            f"A store is a file, which keeps a study, got {text!r}, which keeps nothing. Leave store out for a study "
            "in memory."
        )


def _as_written_today(name: str, stored: Any) -> Any:
    """A setting in today's spelling: an earlier version may have written the same strategy otherwise."""
    try:
        return strategy(stored).specification if name == "strategy" else stored
    except ArgumentError:
        return stored


def _check_same(wanted: dict[str, Any], stored: dict[str, Any], path: Any) -> None:
    """Refuse to continue a study with other settings than it was begun with."""
    for name, value in wanted.items():
        found = bool(stored.get(name)) if isinstance(value, bool) else _as_written_today(name, stored.get(name))
        if found != value:
            raise ArgumentError(
                f"{path} holds a study with {name} {shown(found)}, got {shown(value)}. Study.load(path) continues it."
            )
