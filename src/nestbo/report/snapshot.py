"""A study at one moment, its models fitted once for all pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from nestbo.history import Trial
from nestbo.study import Study
from nestbo.study.judging import Recommendation


class Snapshot:
    """What the pictures of a study read, frozen: other processes may go on meanwhile.

    One that is not ``fitted`` has no models, and takes no time.
    """

    def __init__(self, study: Study, *, fitted: bool = True) -> None:
        self._study, self._fitted = study.copy(), fitted
        self.space, self.strategy, self.direction = study.space, study.strategy, study.direction
        self.history, self.times = self._study.history, self._study.times
        self.objectives = study.objectives

    @cached_property
    def _models(self) -> Mapping[str, Any]:
        return self._study.models() if self._fitted else {}

    @cached_property
    def _standings(self) -> Sequence[Any]:
        return self._study.standings()

    @cached_property
    def recommendation(self) -> Recommendation | None:
        """The trial to rely on and what the model expects there; None where values are exact, or there are none."""
        return None if self.history.several else self._study.recommendation()

    def recommend(self) -> Trial | None:
        """The trial to rely on."""
        found = self.recommendation
        return self.history.best if found is None else found.trial

    def models(self) -> Mapping[str, Any]:
        """The surrogates by name, the leading one first."""
        return self._models

    def standings(self) -> Sequence[Any]:
        """How the arms are doing."""
        return self._standings
