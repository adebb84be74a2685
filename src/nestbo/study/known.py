"""What a study has read from its store."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nestbo.history import Trial

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Known:
    """The trials that a study has read from its store, in the order of their indices, up to a revision."""

    trials: tuple[Trial, ...] = ()
    revision: int = -1

    def with_changes(self, changed: list[Trial], revision: int) -> Known:
        """The same with what was written since."""
        trials = list(self.trials)
        for trial in changed if trials else ():
            at = bisect_left(trials, trial.index, key=lambda known: known.index)
            same = at < len(trials) and trials[at].index == trial.index
            trials[at : at + same] = [trial]
        return Known(tuple(trials or changed), revision)

    def points_beside(self, former: Known) -> list[Tensor]:
        """The points that were not known before."""
        if self is former:
            return []
        known = {trial.index for trial in former.trials}
        return [trial.x for trial in self.trials if trial.index not in known]
