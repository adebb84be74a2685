"""A study: ask for points, tell values, in one file that survives anything."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Self, overload

import numpy as np
import torch

from nestbo.errors import ArgumentError, StoreError, TrialError
from nestbo.history import Direction, History, Trial
from nestbo.manifolds import Manifold, space
from nestbo.manifolds.base import check_size
from nestbo.progress import Reporter, reporter
from nestbo.storage import Store
from nestbo.strategies import Runs, Standing, Strategy, default_strategy, strategy
from nestbo.surrogate import Surrogate

Objective = Callable[[Any], Any]


class Study:
    """An optimisation in progress. Its only state is its history, kept in ``store`` (a path) or in memory.

    A suggestion is a function of space, strategy, history and seed: a study that was killed and loaded again goes on as
    if nothing had happened. ``noise`` is the variance of the noise of values, if it is known. The default strategy is
    HDGaBO above ten dimensions, GaBO below.

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
        store: str | os.PathLike[str] | None = None,
        direction: Direction = "minimize",
        noise: float | None = None,
    ) -> None:
        _check_settings(space, strategy, seed, direction, noise)
        _check_path(store)
        self.space, self.strategy = space, strategy or default_strategy(space)
        self.strategy.check(space)
        self.seed, self.direction, self.noise = seed, direction, noise
        self._store = Store(store, space.point_shape)
        wanted = {
            "space": space.specification,
            "strategy": self.strategy.specification,
            "seed": seed,
            "direction": direction,
            "noise": noise,
        }
        if self._store.empty:
            self._store.create(wanted)
        _check_same(wanted, self._store.settings(), store)
        self._known: dict[int, Trial] = {}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The study in a file, to go on with."""
        _check_path(path)
        if not os.path.exists(path):
            raise StoreError(f"There is no store at {path}. Check the path, or create a Study with store=….")
        store = Store(path)
        try:
            if store.empty:
                raise StoreError(f"The store {path} holds no study yet. Create one with Study(space, store=…).")
            settings = store.settings()
        finally:
            store.close()
        try:
            where, method = space(settings["space"]), strategy(settings["strategy"])
            kept = {name: settings[name] for name in ("seed", "direction", "noise")}
            return cls(where, method, store=path, **kept)
        except (KeyError, ArgumentError) as error:
            raise StoreError(f"The settings in {path} cannot be read: {error}") from error

    def close(self) -> None:
        """Let go of the file; the study can be loaded again."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Study({self.space}, {self.strategy}, seed={self.seed}, {len(self.history)} trials)"

    @property
    def history(self) -> History:
        """All trials that have a point, in the order of their indices; also those of other processes."""
        history = self._read()
        return replace(history, trials=tuple(replace(trial, x=trial.x.clone()) for trial in history))

    def _read(self) -> History:
        """The history without copies; what is settled is read once."""
        settled = 0
        while settled in self._known and self._known[settled].status in ("told", "failed"):
            settled += 1
        self._known.update((trial.index, trial) for trial in self._store.trials(settled))
        return History(tuple(self._known[k] for k in sorted(self._known)), self.noise, self.direction)

    @property
    def pending(self) -> list[Trial]:
        """Trials asked and not yet told; ``ask`` hands out new points, not these."""
        return list(self.history.pending)

    @property
    def best(self) -> Trial | None:
        """The told trial with the best value."""
        best = self._read().best
        return best and replace(best, x=best.x.clone())

    @property
    def times(self) -> dict[int, tuple[float | None, float | None]]:
        """When each trial was asked and told, in seconds since 1970."""
        return self._store.times()

    def add(self, x: Any, value: float) -> Trial:
        """An observation made elsewhere."""
        x = self.space.check(x).double()
        if x.shape != self.space.point_shape:
            raise ArgumentError(f"add takes one point, of shape {self.space.point_shape}, got {tuple(x.shape)}.")
        number = _number(value)
        if number is None or not math.isfinite(number):
            raise ArgumentError(f"add takes a finite number as the value, got {value!r}.")
        return Trial(self._store.add(x, number), x, number, "told")

    @overload
    def ask(self) -> Trial: ...
    @overload
    def ask(self, n: int) -> list[Trial]: ...
    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """A new trial to evaluate, or a list of ``n`` different ones."""
        if n is not None:
            check_size("The number of trials to ask for", n)
        trials = self._ask(n or 1, running=False)
        return trials[0] if n is None else trials

    def _ask(self, n: int, running: bool) -> list[Trial]:
        indices = self._store.reserve(n)
        try:
            suggestions = self.strategy.suggest(self.space, self._read().to_minimise, n, self._rng(indices[0]))
            trials = [Trial(k, s.x, notes=s.notes) for k, s in zip(indices, suggestions, strict=True)]
            self._store.ask(trials, running)
        except BaseException:
            self._store.release(indices)
            raise
        return trials

    def _rng(self, index: int) -> torch.Generator:
        """Random numbers that depend on the seed and a trial's index alone; trials asked together share the first's."""
        state = np.random.SeedSequence([self.seed, index]).generate_state(1, np.uint64)[0]
        return torch.Generator().manual_seed(int(state))

    def tell(self, trial: Trial | int, value: Any = None, *, failed: str | None = None) -> Trial:
        """The value of an asked trial, or why it failed; it is on the disk when this returns.

        NaN and infinity count as failures and are recorded as such.
        """
        waiting = self._waiting(trial)
        if (value is None) == (failed is None):
            raise ArgumentError("tell takes a value or failed='why', got both or neither.")
        if failed is None and _number(value) is None:
            raise ArgumentError(f"tell takes a number, got {value!r}. Use failed='why' for an evaluation without one.")
        done = _outcome(waiting, value, failed)
        self._store.tell(done)
        return done

    def _waiting(self, trial: Trial | int) -> Trial:
        """The trial as it is stored, if it waits for a value."""
        index = trial.index if isinstance(trial, Trial) else trial
        known = {t.index: t for t in self._read()}
        if not isinstance(index, int) or index not in known:
            raise TrialError(
                f"There is no trial {index!r} in this study. ask() makes one; pending lists the open ones."
            )
        waiting = known[index]
        if isinstance(trial, Trial) and not torch.equal(trial.x, waiting.x):
            raise TrialError(
                f"Trial {index} of this study is another point. Tell the study that asked for it; if x was changed in "
                f"place, tell({index}, value)."
            )
        if waiting.status != "asked":
            raise TrialError(f"Trial {index} was {waiting.status} already. Use add(x, value) for another observation.")
        return waiting

    def run(
        self,
        f: Objective,
        n: int,
        *,
        numpy: bool = False,
        on_error: Literal["record", "raise"] = "record",
        progress: bool | Reporter = True,
    ) -> Study:
        """``n`` further evaluations of ``f``: nothing but ask and tell.

        A trial left behind by a run that was killed or interrupted is evaluated first. ``f`` gets one point, as a
        tensor or, with ``numpy``, as an array; what it raises is recorded as a failure unless ``on_error="raise"``.
        Ctrl-C ends the run and keeps everything told; the interrupted trial stays pending.
        """
        check_size("The number of evaluations", n, least=0)
        if not callable(f):
            raise ArgumentError(f"run takes a function of a point, got {f!r}.")
        if on_error not in ("record", "raise"):
            raise ArgumentError(f'on_error is "record" or "raise", got {on_error!r}.')
        report = reporter(progress)
        with report.watching(n):
            for _ in range(n):
                try:
                    done = self._evaluate(f, self._next(), numpy, on_error)
                except KeyboardInterrupt:
                    report.interrupted()
                    break
                report.advanced(done, self.best)
        return self

    def _next(self) -> Trial:
        """A trial that an interrupted run left behind, or a new one."""
        orphan = self._store.take_orphan()
        return self._ask(1, running=True)[0] if orphan is None else self._waiting(orphan)

    def _evaluate(self, f: Objective, trial: Trial, numpy: bool, on_error: str) -> Trial:
        point = trial.x.clone()
        try:
            value = f(point.numpy() if numpy else point)
        except Exception as error:
            done = self.tell(trial, failed=f"{type(error).__name__}: {error}")
            if on_error == "raise":
                raise
            return done
        except KeyboardInterrupt:
            self._store.abandon(trial.index)
            raise
        if _number(value) is None:
            return self.tell(trial, failed=f"the objective returned {value!r}, not a number"[:500])
        return self.tell(trial, value)

    def models(self) -> dict[str, Surrogate]:
        """The surrogates that the strategy would use now, by name; empty before there are data for one."""
        return self.strategy.models(self.space, self._runs())

    def _runs(self) -> Runs:
        return Runs.of(self.space, self._read().to_minimise, self._rng(len(self._known)))

    def standings(self) -> list[Standing]:
        """How the arms of the strategy are doing: suggestions made, their share of all, and chance of success."""
        return self.strategy.standings(self.space, self._runs())

    def model(self) -> Surrogate:
        """The leading surrogate."""
        models = self.models()
        if not models:
            raise ArgumentError(
                f"{self.strategy} has no model of these {len(self.history)} trials. Tell some values first."
            )
        return next(iter(models.values()))


def _outcome(trial: Trial, value: Any, failed: str | None) -> Trial:
    """The trial, told or failed."""
    if failed is None:
        number = _number(value)
        if number is not None and math.isfinite(number):
            return replace(trial, value=number, status="told")
        failed = f"the value is not a finite number: {value!r}"[:500]
    return replace(trial, value=None, status="failed", notes={**trial.notes, "failed": str(failed)})


def _number(value: Any) -> float | None:
    """A float from a number, a 0-d tensor or an array of one element; None from anything else."""
    if isinstance(value, str | bytes | bool):
        return None
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None


def _check_settings(space: Any, strategy: Any, seed: Any, direction: Any, noise: Any) -> None:
    if not isinstance(space, Manifold):
        raise ArgumentError(
            f'A study needs a space such as Sphere(2), got {space!r}. nestbo.space("sphere:2") reads a text.'
        )
    if strategy is not None and not isinstance(strategy, Strategy):
        raise ArgumentError(f"The strategy is one such as GaBO(), got {strategy!r}.")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ArgumentError(f"The seed is a whole number of at least 0, got {seed!r}.")
    if direction not in ("minimize", "maximize"):
        raise ArgumentError(f'The direction is "minimize" or "maximize", got {direction!r}.')
    if noise is not None and (
        isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 < noise < math.inf
    ):
        raise ArgumentError(f"noise is a positive variance, or None to infer it, got {noise!r}.")


def _check_path(path: Any) -> None:
    if path is not None and not (isinstance(path, str | os.PathLike) and "\0" not in os.fspath(path)):
        raise ArgumentError(f"A store is a path such as 'robot.db', got {path!r}.")


def _check_same(wanted: dict[str, Any], stored: dict[str, Any], path: Any) -> None:
    """Refuse to continue a study with other settings than it was begun with."""
    for name, value in wanted.items():
        if stored.get(name) != value:
            raise ArgumentError(
                f"{path} holds a study with {name} {stored.get(name)!r}, got {value!r}. Study.load(path) continues it."
            )
