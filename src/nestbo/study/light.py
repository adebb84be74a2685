"""A study without its space: for commands that show what a file holds, or tell values, and wait for no tensors."""

from __future__ import annotations

import contextlib
import itertools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from nestbo.errors import ArgumentError, StoreError
from nestbo.history import Trial
from nestbo.lazy import numpy
from nestbo.storage import Store
from nestbo.study.mending import Mending
from nestbo.study.reading import SHAPE
from nestbo.study.settings import directed, noise_of, objective_names

if TYPE_CHECKING:  # which needs torch
    from nestbo.study.judging import Recommendation

_NEEDED = ("space", "strategy", "seed", "direction", "noise")


@dataclass(frozen=True)
class Numbers:
    """What is known of a space whose points are read as plain numbers: its parameters have no names."""

    point_shape: tuple[int, ...]
    names: None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """What tells the entries of a point apart: 0, 1, … or 0_0, 0_1, …."""
        return tuple("_".join(map(str, at)) for at in itertools.product(*map(range, self.point_shape)))

    def cells(self, x: Any) -> list[Any]:
        """The entries of a point, in the order of the labels."""
        found: list[Any] = x.flatten().tolist()
        return found


class Light(Mending):
    """The study in a file; its points are NumPy arrays. They are not compared with the space, as those of Study are."""

    def __init__(self, store: Store, settings: dict[str, Any]) -> None:
        self._store, store.shape = store, tuple(settings[SHAPE])
        self.space = Numbers(store.shape)
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
                if _simple(settings):
                    return cls(store, settings)
        except BaseException:
            store.close()
            raise
        store.close()
        return None

    def _own(self, trial: Trial) -> Trial:
        return trial

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
    """Whether a study has one objective, and its file says how points are read."""
    shape = settings.get(SHAPE)
    listed = isinstance(shape, list) and all(type(size) is int and size > 0 for size in shape)
    return listed and all(name in settings for name in _NEEDED) and settings.get("objectives") is None
