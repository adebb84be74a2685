"""Minimising a function in one call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.history import History, Noise
from nestbo.manifolds import Space
from nestbo.strategies import Strategy
from nestbo.study import Callback, Objective, Stop, Study
from nestbo.text import counted, in_notebook


@dataclass(frozen=True)
class Minimum:
    """The result of ``minimize``. It also has the names that scipy uses.

    Attributes:
        x: The point.
        value: Its value.
        history: All trials.
        message: What ended the run, in words.
        success: Whether the run ended by itself and not by Ctrl-C.
        space: The space of the point.
    """

    x: Tensor
    value: float
    history: History
    message: str
    success: bool
    space: Space | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name, as a person would write them; without names, the point is called x."""
        return {"x": self.x.numpy()} if self.space is None else self.space.parameters(self.x)

    def _repr_html_(self) -> str:
        return in_notebook("minimum_html", self)

    @property
    def fun(self) -> float:
        """The value, as scipy calls it."""
        return self.value

    @property
    def nfev(self) -> int:
        """The number of evaluations, without interrupted ones."""
        return len(self.history.finished)


def minimize(
    f: Objective,
    space: Space,
    *,
    budget: int,
    strategy: Strategy | None = None,
    constraints: Objective | None = None,
    noise: Noise = None,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    stop: Stop | Sequence[Stop] | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = False,
    numpy: bool = False,
) -> Minimum:
    """Minimise an expensive function over a space.

    Args:
        f: A function of one point, a tensor. It returns a number or an ``Observation``.
        space: The space of the points.
        budget: The number of evaluations in all, including the initial ones.
        strategy: The method; HDGaBO above ten dimensions, GaBO below.
        constraints: A function of a point whose results are all ≥ 0 where the point is allowed.
        noise: The variance of the noise in the values, or "infer" if it is not known.
        seed: The seed of all random choices.
        store: A file that keeps the study. If called again with the same file, ``minimize`` continues.
        stop: When to end before the budget is used up, as in ``Study.run``.
        callbacks: Functions of the study and a trial, called after every evaluation.
        progress: Whether to show progress on stderr.
        numpy: Whether ``f`` and ``constraints`` take an array instead of a tensor.

    Returns:
        The best point, or the recommended point if values are noisy. After Ctrl-C, the best point so far.

    >>> import nestbo as nb
    >>> result = nb.minimize(lambda x: float(x[0]), nb.Sphere(2), budget=15, seed=0)
    >>> result.value < -0.99  # the minimum is -1
    True
    """
    study = Study(space, strategy, seed=seed, store=store, constraints=constraints, noise=noise)
    try:
        study.run(f, budget=budget, stop=stop, callbacks=callbacks, progress=progress, numpy=numpy)
        reason = study.stopped
    except KeyboardInterrupt:
        reason = None
    best, history = study.recommend(), study.history
    if best is None or best.value is None:
        failures = ", ".join({t.told.failed or "infeasible" for t in history})
        wanted = "satisfied the constraints" if any(t.status == "told" for t in history) else "gave a number"
        raise ArgumentError(f"None of {counted(len(history), 'evaluation')} {wanted}: {failures}.")
    words = reason or f"interrupted after {counted(len(history.finished), 'evaluation')}"
    sentence = f"{words[0].upper()}{words[1:]}."
    return Minimum(best.x, best.value, history, sentence, reason is not None, space)
