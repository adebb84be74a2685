"""The record of a study: opened, read, copied and closed."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.random import SeedSequence
from torch import Tensor

from nestbo.constraints import Constraints
from nestbo.errors import ArgumentError, ConstraintError, OffManifoldError, StoreError, TrialError, shown
from nestbo.history import Directions, History, Noise, Trial
from nestbo.manifolds import Space, space
from nestbo.manifolds.base import is_whole
from nestbo.storage import Store, Times, missing
from nestbo.strategies import Strategy, default_strategy, strategy
from nestbo.study.known import Known
from nestbo.study.settings import (
    check_path,
    check_same,
    check_settings,
    check_several,
    directed,
    noise_of,
    objective_names,
)

Objective = Callable[[Any], Any]
_ROUNDING = 1e-9  # of a constraint that another machine computes
_OFF = 1e-3  # of a stored point: far more than rounding on another machine, far less than damage


class Record:
    """The part of a study that keeps its file and reads its trials."""

    def __init__(
        self,
        space: Space,
        strategy: Strategy | None = None,
        *,
        seed: int = 0,
        store: str | os.PathLike[str] | Store | None = None,
        objectives: Sequence[str] | None = None,
        direction: Directions = "minimize",
        noise: Noise = None,
        constraints: Objective | None = None,
    ) -> None:
        check_settings(space, strategy, seed)
        check_path(store)
        self.objectives = objective_names(objectives)
        count = len(self.objectives)
        self.space, self.strategy = space, strategy or default_strategy(space, several=count > 1)
        self.strategy.check(space)
        if count > 1:
            check_several(self.strategy)
        self.seed, self.direction, self.noise = int(seed), directed(direction, count), noise_of(noise, count)
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
            "direction": _listed(self.direction),
            "noise": _listed(self.noise),
            "constraints": constrained,
            "objectives": list(self.objectives) if self.several else None,
        }
        if store.empty:
            store.create(wanted)
        stored = store.settings()
        self._constrained = bool(stored.get("constraints"))
        check_same(wanted | {"constraints": self._constrained}, stored, store.path)
        self._known, self._times = Known(), dict[int, Times]()
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
        check_path(path, needed=True)
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
        return cls(where, method, store=store, constraints=constraints, objectives=settings.get("objectives"), **kept)

    @property
    def several(self) -> bool:
        """Whether there are several objectives."""
        return len(self.objectives) > 1

    def copy(self) -> Self:
        """The study as it is now, in memory: to look at while others go on with the file."""
        made = copy.copy(self)
        made._times = dict(self._times)
        if self._kept is None:
            made._store = self._store.copy()
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the study as it is now to another file, a new one, also while others go on with this one."""
        check_path(path, needed=True)
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

    @property
    def path(self) -> Path | None:
        """The file that keeps the study; None if it is in memory."""
        return None if self._store.path is None else Path(self._store.path)

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

    def _renewed(self) -> Known:
        """What is known by now, or was when the study was closed."""
        known = self._known
        if self._kept is not None:
            return known
        trials, times, revision = self._store.trials(known.revision)
        if revision > known.revision:
            self._check_points(trials)
            trials = [replace(trial, space=self.space) for trial in trials]
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

    def _find(self, index: Any) -> Trial:
        """The trial of an index, as it is stored; the search begins with the last."""
        trials = reversed(self._read().trials) if is_whole(index) else ()
        found = next((trial for trial in trials if trial.index == index), None)
        if found is None:
            raise TrialError(
                f"There is no trial {shown(index)} in this study. ask() makes one; pending lists the open ones."
            )
        return found

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

    def _check_known(self, option: str) -> None:
        """Refuse what wants the constraints of this study where they were not given."""
        if self._constrained and self.constraints is None:
            raise ConstraintError(
                "This study has constraints, which its file does not keep. Give them: Study.load(path, constraints=…), "
                f"or {option} on the command line."
            )

    def _point(self, taker: str, x: Any) -> Tensor:
        """One point of the space, as a user gave it."""
        found = self.space.point(x) if isinstance(x, Mapping) else self.space.check(x).double()
        if found.shape != self.space.point_shape:
            raise ArgumentError(
                f"{taker} takes one point, of shape {self.space.point_shape}, got {tuple(found.shape)}."
            )
        return found

    def _rng(self, index: int) -> torch.Generator:
        """Random numbers that depend on the seed and a trial's index alone; trials asked together share the first's."""
        state = SeedSequence([self.seed, index]).generate_state(1, np.uint64)[0]
        return torch.Generator().manual_seed(int(state))


def _listed(setting: Any) -> Any:
    """A setting as JSON has it."""
    return list(setting) if isinstance(setting, tuple) else setting
