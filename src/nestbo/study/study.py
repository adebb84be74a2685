"""A study: ask for points, tell values, in one file that survives anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import overload

from nestbo.history import History, Trial
from nestbo.study.fronts import Fronts
from nestbo.study.running import Running
from nestbo.study.tables import Tables
from nestbo.text import in_notebook


class Study(Running, Fronts, Tables):
    """An optimisation in progress. Its only state is its history.

    A suggestion is a function of space, strategy, history and seed. So a study that was killed and loaded again
    continues as if nothing had happened.

    Args:
        space: The space of the points.
        strategy: The method. The default is HDGaBO above ten dimensions, GaBO below and for several objectives.
        seed: The seed of all random choices.
        store: A path of a file that keeps the study; without one it is in memory.
        objectives: The names of several objectives. ``tell`` then takes a value for each, ``front`` has the trials that
            nothing dominates, and suggestions try to extend the front. Leave it out for a single objective.
        direction: "minimize" or "maximize"; for several objectives, one for each.
        noise: The variance of the noise in the values, or "infer" if it is not known. Without it, values are taken as
            exact.
        constraints: A function of a point whose results are all ≥ 0 where the point is allowed. Every suggestion
            satisfies them. A file does not keep the function; give it again when you open the file.

    >>> import nestbo as nb
    >>> study = nb.Study(nb.Sphere(2), nb.GaBO(), seed=0)  # store="robot.db" keeps it in a file
    >>> trial = study.ask()
    >>> done = study.tell(trial, 3.2)
    >>> study.best.value
    3.2
    >>> study.pending
    []
    """

    def __len__(self) -> int:
        """The number of trials, those pending, failed and discarded included."""
        return len(self._read())

    def __iter__(self) -> Iterator[Trial]:
        """All trials in the order of their indices, as ``history`` has them."""
        return iter(self.history)

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> History: ...
    def __getitem__(self, index: int | slice) -> Trial | History:
        """The trial at a place of ``history``, or several."""
        return self.history[index]

    def __bool__(self) -> bool:
        """A study is one, also before its first trial."""
        return True

    def _repr_html_(self) -> str:
        return in_notebook("study_html", self)

    def __repr__(self) -> str:
        return f"Study({self.space}, {self.strategy}, seed={self.seed}, {len(self.history)} trials)"


Study.__init__.__qualname__ = "Study"  # so that Python names what the user called if an argument is unknown
