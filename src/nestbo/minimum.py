"""Minimising a function in one call."""

from __future__ import annotations

import os
from dataclasses import dataclass

from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.history import History, Noise
from nestbo.manifolds import Manifold
from nestbo.manifolds.base import check_size
from nestbo.strategies import Strategy
from nestbo.study import Objective, Study


@dataclass(frozen=True)
class Minimum:
    """What ``minimize`` found, with the names that scipy's users expect, too."""

    x: Tensor
    value: float
    history: History
    message: str
    success: bool

    @property
    def fun(self) -> float:
        """The value, as scipy calls it."""
        return self.value

    @property
    def nfev(self) -> int:
        """The number of evaluations; one that was interrupted does not count."""
        return len(self.history.finished)


def minimize(
    f: Objective,
    space: Manifold,
    *,
    budget: int,
    strategy: Strategy | None = None,
    constraints: Objective | None = None,
    noise: Noise = None,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    progress: bool = False,
    numpy: bool = False,
) -> Minimum:
    """Minimise an expensive function over a space with ``budget`` evaluations in all, the initial ones included.

    ``constraints``, ``noise`` and what ``f`` may return are as in a ``Study``. Where values are noisy, the result is
    the trial that the study recommends.

    >>> import nestbo as nb
    >>> result = nb.minimize(lambda x: float(x[0]), nb.Sphere(2), budget=15, seed=0)
    >>> result.value < -0.99  # the minimum is -1
    True
    """
    budget = check_size("The budget", budget)
    study = Study(space, strategy, seed=seed, store=store, constraints=constraints, noise=noise)
    study.run(f, max(0, budget - len(study.history.finished)), progress=progress, numpy=numpy)
    best, history = study.recommend(), study.history
    if best is None or best.value is None:
        failures = ", ".join({t.told.failed or "infeasible" for t in history})
        wanted = "satisfied the constraints" if any(t.status == "told" for t in history) else "gave a number"
        raise ArgumentError(f"None of {len(history)} evaluations {wanted}: {failures}.")
    complete = len(history.finished) >= budget
    message = "The budget is used up." if complete else f"Interrupted after {len(history.finished)} evaluations."
    return Minimum(best.x, best.value, history, message, complete)
