"""A study at one moment, its models fitted once for all pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from nestbo.history import Trial
from nestbo.study import Study


class Snapshot:
    """What the pictures of a study read, frozen: other processes may go on meanwhile."""

    def __init__(self, study: Study) -> None:
        self._study = study.copy()
        self.space, self.strategy, self.direction = study.space, study.strategy, study.direction
        self.history, self.times = self._study.history, self._study.times

    @cached_property
    def _models(self) -> Mapping[str, Any]:
        return self._study.models()

    @cached_property
    def _standings(self) -> Sequence[Any]:
        return self._study.standings()

    def recommended(self) -> Trial | None:
        """The trial to rely on, where it is another one than the best."""
        found, best = self._study.recommend(), self.history.best
        return None if found is None or best is None or found.index == best.index else found

    def models(self) -> Mapping[str, Any]:
        """The surrogates by name, the leading one first."""
        return self._models

    def standings(self) -> Sequence[Any]:
        """How the arms are doing."""
        return self._standings
