"""A study without its space: for commands that show what a file holds, or tell values, and wait for no tensors."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from nestbo.errors import ArgumentError, StoreError
from nestbo.history import Trial
from nestbo.lazy import numpy
from nestbo.storage import Store
from nestbo.study.layout import Numbers, Parts, layout
from nestbo.study.mending import Mending
from nestbo.study.settings import directed, noise_of, objective_names

if TYPE_CHECKING:  # which needs torch
    from nestbo.study.judging import Recommendation

_NEEDED = ("space", "strategy", "seed", "direction", "noise")


class Light(Mending):
    """The study in a file; its points are NumPy arrays. They are not compared with the space, as those of Study are."""

    def __init__(self, store: Store, settings: dict[str, Any], space: Numbers | Parts) -> None:
        self._store, self.space = store, space
        store.shape = space.point_shape
        self.objectives = objective_names(None)
        self.direction, self.noise = directed(settings["direction"], 1), noise_of(settings["noise"], 1)
        self._open()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self | None:
        """The study in a file; None where only ``Study`` can read it, or can say why it cannot be read."""
        if not os.path.getsize(path):
            return None
        store = Store(path, point_of=lambda values: values)
        try:
            settings = {} if store.empty else store.settings()
            with contextlib.suppress(ArgumentError):
                found = layout(settings) if _simple(settings) else None
                if found is not None:
                    return cls(store, settings, found)
        except BaseException:
            store.close()
            raise
        store.close()
        return None

    def _own(self, trial: Trial) -> Trial:
        named: Any = self.space if isinstance(self.space, Parts) else None
        return replace(trial, space=named)

    def _checked(self, trials: list[Trial]) -> list[Trial]:
        if not all(numpy.isfinite(trial.x).all() for trial in trials):
            raise StoreError(f"The points in {self._store.path} are damaged: one is not finite. Restore a copy.")
        return trials

    def recommendation(self) -> Recommendation | None:
        """The told trial to rely on where values are noisy, for which a model is fitted; None for exact values."""
        from nestbo.study.study import Study

        assert self._store.path is not None
        with Study.load(self._store.path) as study:
            return study.recommendation()


def _simple(settings: dict[str, Any]) -> bool:
    """Whether a study has one objective and all of its settings."""
    return all(name in settings for name in _NEEDED) and settings.get("objectives") is None
