"""Reading: the file of a study, and the trials in it, without the space that the points are of."""

from __future__ import annotations

import contextlib
import copy
import os
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any, Self

from nestbo.errors import ArgumentError, StoreError, TrialError, shown
from nestbo.history import Directions, History, Noise, Trial
from nestbo.storage import Store, Times, missing
from nestbo.study.known import Known
from nestbo.study.layout import HIDDEN
from nestbo.study.settings import check_path


class Reading:
    """The part of a study that reads its file. It needs no tensors, so that the command line answers at once."""

    objectives: tuple[str, ...]
    direction: Directions
    noise: Noise
    _store: Store

    def _open(self) -> None:
        """Begin with nothing known."""
        self._known, self._times = Known(), dict[int, Times]()
        self._kept: dict[str, Any] | None = None  # the settings of a study that is closed

    def _own(self, trial: Trial) -> Trial:
        """The trial with a point of its own, for a user who may change it."""
        return replace(trial, x=trial.x.clone())

    def _checked(self, trials: list[Trial]) -> list[Trial]:
        """Trials as they were read, unless their points cannot be those of the study."""
        return trials

    @property
    def several(self) -> bool:
        """Whether there are several objectives."""
        return len(self.objectives) > 1

    def copy(self) -> Self:
        """A copy of the study in memory, to look at while others continue with the file."""
        made = copy.copy(self)
        made._times = dict(self._times)
        if self._kept is None:
            made._store = self._store.copy()
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Copy the study to another file, also while it is in use.

        Args:
            path: The new file.
        """
        check_path(path, needed=True)
        if os.path.lexists(path) or not missing(Path(path).absolute()):
            raise ArgumentError(f"Wanted a new file to copy to, got {path}, which exists. Choose another path.")
        self._check_open()
        self._store.save(Path(path))

    def close(self) -> None:
        """Close the file. The study can still be read. Load it again to continue it."""
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
            raise StoreError(f"This study is closed: it can be read, but not continued. {again}.")

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
        """The settings of the study, and those that ``remember`` has added."""
        found = self._store.settings() if self._kept is None else self._kept
        return {name: value for name, value in found.items() if name not in HIDDEN}

    def remember(self, **settings: Any) -> None:
        """Keep further settings in the store, for the program that runs the study.

        Args:
            **settings: JSON values, by name.
        """
        self._check_open()
        for name, value in settings.items():
            self._store.set(name, value)

    @property
    def history(self) -> History:
        """All trials in the order of their indices, including those of other processes."""
        history = self._read()
        return replace(history, trials=tuple(map(self._own, history)))

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
            trials = self._checked(trials)
            self._times.update(times)
            known = self._known = known.with_changes(trials, revision)  # one assignment: threads may read at once
        return known

    def _find(self, index: Any) -> Trial:
        """The trial of an index, as it is stored; the search begins with the last."""
        whole = isinstance(index, Integral) and not isinstance(index, bool)
        trials = reversed(self._read().trials) if whole else ()
        found = next((trial for trial in trials if trial.index == index), None)
        if found is None:
            raise TrialError(
                f"There is no trial {shown(index)} in this study. ask() makes one; pending lists the open ones."
            )
        return found

    @property
    def pending(self) -> list[Trial]:
        """The trials that were asked for and not yet told. ``ask`` returns new points, not these."""
        return list(self.history.pending)

    @property
    def best(self) -> Trial | None:
        """The feasible trial with the best value."""
        best = self._read().best
        return best and self._own(best)

    @property
    def front(self) -> list[Trial]:
        """The feasible trials that no other feasible trial dominates.

        With one objective, these are the best trial and all trials that are as good.
        """
        return list(map(self._own, self._read().front))

    @property
    def times(self) -> dict[int, Times]:
        """When each trial was asked and told, in seconds since 1970."""
        self._renewed()
        return dict(self._times)
