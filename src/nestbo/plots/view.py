"""What pictures read of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nestbo.history import History, Trial
from nestbo.manifolds import Space

Array = NDArray[np.float64]
WIDTH = 1.959963984540054  # standard deviations on either side of a 95 % interval


class Study(Protocol):
    """The part of a study that is read here."""

    @property
    def space(self) -> Space: ...
    @property
    def strategy(self) -> Any: ...
    @property
    def direction(self) -> str | tuple[str, ...]: ...
    @property
    def history(self) -> History: ...
    @property
    def times(self) -> Mapping[int, tuple[float | None, float | None]]: ...
    def models(self) -> Mapping[str, Any]: ...
    def standings(self) -> Sequence[Any]: ...
    def recommend(self) -> Trial | None: ...


def objective_names(study: Study) -> tuple[str, ...]:
    """What the objectives of a study are called; "value" where there is one that has no name."""
    names: tuple[str, ...] = getattr(study, "objectives", ("value",))
    return names


_LONG = 60  # characters of a space in a title


class View:
    """A study at one moment, in the objective's own units and direction.

    ``where`` is what titles call the space, ``letter`` what labels call its points.
    """

    def __init__(self, study: Study, where: str = "", letter: str = "x") -> None:
        self.study, self.space = study, study.space
        self.where, self.letter = where or called(study.space), letter
        self.sign = 1.0 if study.direction == "minimize" else -1.0
        self.history = study.history
        self.finished = self.history.finished
        self.told = [trial for trial in self.finished if trial.status == "told"]
        self.failed = [trial for trial in self.finished if trial.status == "failed"]

    @property
    def values(self) -> Array:
        """The told values (n,)."""
        return np.array([trial.value for trial in self.told], dtype=float)

    @property
    def best(self) -> Trial:
        """The told trial with the best value, of those that violate no constraint, if there are any."""
        allowed = [trial for trial in self.told if trial.feasible] or self.told
        values = np.array([trial.value for trial in allowed], dtype=float)
        return allowed[int(np.argmin(self.sign * values))]

    @property
    def infeasible(self) -> list[Trial]:
        """The told trials that violate a constraint."""
        return [trial for trial in self.told if not trial.feasible]

    @property
    def best_so_far(self) -> list[float | None]:
        """For each finished trial the best value up to it that violates no constraint; None before the first."""
        curve: list[float | None] = []
        for trial in self.finished:
            known = [value for value in (trial.value if trial.feasible else None, *curve[-1:]) if value is not None]
            curve.append(min(known, key=lambda value: self.sign * value) if known else None)
        return curve

    @property
    def improved(self) -> list[Trial]:
        """The told trials that were better than all before them."""
        bests = [None, *self.best_so_far]
        return [t for t, before, after in zip(self.finished, bests, bests[1:], strict=False) if before != after]

    @cached_property
    def models(self) -> Mapping[str, Any]:
        """The surrogates by name, the leading one first."""
        return self.study.models() if self.told else {}

    @property
    def model(self) -> Any:
        """The leading surrogate, or None."""
        return next(iter(self.models.values()), None)

    @property
    def standings(self) -> Sequence[Any]:
        """How the strategy's arms are doing; none before there are values."""
        return self.study.standings() if self.told else ()

    def points(self, trials: list[Trial]) -> Tensor:
        """Points (n, *point), also of none."""
        return torch.stack([t.x for t in trials]) if trials else torch.zeros(0, *self.space.point_shape).double()

    def predict(self, x: Tensor, deviations: float = 0.0) -> Array:
        """The model's median at points (q, *point), moved by deviations; (q,)."""
        with torch.no_grad():
            moved = self.model.predict(x, self.sign * deviations)
        return np.asarray(self.sign * moved.numpy())

    @property
    def title(self) -> str:
        """Which study this is, in one line."""
        counts = [f"{len(self.finished)} evaluation{'s' * (len(self.finished) != 1)}"]
        counts += [f"{len(self.failed)} failed"] * bool(self.failed)
        counts += [f"{len(self.infeasible)} infeasible"] * bool(self.infeasible)
        counts += [f"{len(self.history.pending)} pending"] * bool(self.history.pending)
        method = str(self.study.strategy).replace("()", "", 1)
        return f"{method} on {self.where}: {', '.join(counts)}"

    @property
    def nothing(self) -> str:
        """Why there is nothing to draw."""
        if self.failed:
            return f"All {len(self.failed)} evaluations failed.\nThe trials say why."
        return "No values yet.\nTell some, or let Study.run evaluate the objective."

    @property
    def modelless(self) -> str:
        """Why there are evaluations and no model."""
        return f"{self.study.strategy} fits no model: only the evaluations are shown"


def called(space: Space) -> str:
    """A space in a title: what it is, or, where that is long and its parameters have names, these."""
    text = str(space)
    return text if len(text) <= _LONG or space.names is None else ", ".join(space.names)
