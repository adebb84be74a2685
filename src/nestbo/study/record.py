"""The record of a study: begun or opened, with the space that its points are of."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.random import SeedSequence
from torch import Tensor

from nestbo.constraints import Constraints
from nestbo.errors import ArgumentError, ConstraintError, OffManifoldError, StoreError
from nestbo.history import Directions, Noise, Trial
from nestbo.manifolds import Choice, Integer, Levels, Manifold, Product, Space, space
from nestbo.storage import Store
from nestbo.strategies import Strategy, default_strategy, stored_strategy
from nestbo.study.layout import PARTS, SHAPE, Part
from nestbo.study.reading import Reading
from nestbo.study.settings import (
    check_path,
    check_same,
    check_settings,
    check_several,
    directed,
    noise_of,
    objective_names,
)

Objective = Callable[[Any], Any]
_ROUNDING = 1e-9  # of a constraint that another machine computes
_OFF = 1e-3  # of a stored point: far more than rounding on another machine, far less than damage


class Record(Reading):
    """The part of a study that knows its space, its strategy and its constraints."""

    def __init__(
        self,
        space: Space,
        strategy: Strategy | None = None,
        *,
        seed: int = 0,
        store: str | os.PathLike[str] | Store | None = None,
        objectives: Sequence[str] | None = None,
        direction: Directions = "minimize",
        noise: Noise = None,
        constraints: Objective | None = None,
    ) -> None:
        check_settings(space, strategy, seed)
        check_path(store)
        self.objectives = objective_names(objectives)
        count = len(self.objectives)
        self.space, self.strategy = space, strategy or default_strategy(space, several=count > 1)
        self.strategy.check(space)
        if count > 1:
            check_several(self.strategy)
        self.seed, self.direction, self.noise = int(seed), directed(direction, count), noise_of(noise, count)
        self.constraints = None if constraints is None else Constraints.of(constraints, space)
        self._store = store if isinstance(store, Store) else Store(store)
        try:
            self._begin(constraints is not None)
        except BaseException:
            self._store.close()
            raise

    def _begin(self, constrained: bool) -> None:
        """Take up what the store holds, or begin in it."""
        store = self._store
        store.shape = self.space.point_shape
        wanted = {
            "space": self.space.specification,
            "strategy": self.strategy.specification,
            "seed": self.seed,
            "objectives": list(self.objectives) if self.several else None,
            "direction": _listed(self.direction),
            "noise": _listed(self.noise),
            "constraints": constrained,
        }
        if store.empty:
            store.create(wanted | _shape_without(self.space))
        stored = store.settings()
        self._constrained = bool(stored.get("constraints"))
        check_same(wanted | {"constraints": self._constrained}, stored, store.path)
        self._open()
        self._same_version = store.path is None  # or it was said
        self._check_constraints()

    def _check_constraints(self) -> None:
        """Refuse constraints that points asked under them violate: they must be others."""
        if self.constraints is None:
            return
        if not self._constrained:
            raise ConstraintError("This study was begun without constraints. To use constraints, begin a new study.")
        for trial in self._read():
            if trial.told.violation is None and self.constraints.slack(trial.x.unsqueeze(0)) < -_ROUNDING:
                raise ConstraintError(
                    f"Trial {trial.index} was asked under the constraints of this study, and violates those given. "
                    "Give the same function as before."
                )

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, constraints: Objective | None = None) -> Self:
        """Open the study in a file to continue it.

        Args:
            path: The file.
            constraints: The constraints that the study was begun with, if any.
        """
        check_path(path, needed=True)
        if not os.path.exists(path):
            raise StoreError(f"There is no store at {path}. Check the path, or create a Study with store=….")
        store = Store(path if os.path.getsize(path) else None)  # an empty file stays one
        try:
            if store.empty:
                raise StoreError(f"The store {path} holds no study yet. Create one with Study(space, store=…).")
            return cls._resumed(store, constraints)
        except ConstraintError:
            raise
        except (KeyError, ArgumentError) as error:
            store.close()
            raise StoreError(f"The settings in {path} cannot be read: {error}") from error
        except BaseException:
            store.close()
            raise

    @classmethod
    def _resumed(cls, store: Store, constraints: Objective | None) -> Self:
        """The study that a store holds."""
        settings = store.settings()
        where, method = space(settings["space"]), stored_strategy(settings["strategy"])
        kept = {name: settings[name] for name in ("seed", "direction", "noise")}
        return cls(where, method, store=store, constraints=constraints, objectives=settings.get("objectives"), **kept)

    def _checked(self, trials: list[Trial]) -> list[Trial]:
        """Trials with their space, unless a point lies outside: then the file is damaged, or of a stranger."""
        try:
            if trials:
                self.space.check(torch.stack([trial.x for trial in trials]), _OFF)
        except OffManifoldError as error:
            raise StoreError(f"The points in {self._store.path} are damaged: {error} Restore a copy.") from error
        return [replace(trial, space=self.space) for trial in trials]

    def _check_known(self, option: str) -> None:
        """Refuse what wants the constraints of this study where they were not given."""
        if self._constrained and self.constraints is None:
            raise ConstraintError(
                "This study has constraints, which its file does not keep. Give them: Study.load(path, constraints=…), "
                f"or {option} on the command line."
            )

    def _point(self, taker: str, x: Any) -> Tensor:
        """One point of the space, as a user gave it."""
        found = self.space.point(x) if isinstance(x, Mapping) else self.space.check(x).double()
        if found.shape != self.space.point_shape:
            raise ArgumentError(
                f"{taker} takes one point, of shape {self.space.point_shape}, got {tuple(found.shape)}."
            )
        return found

    def _rng(self, index: int) -> torch.Generator:
        """Random numbers that depend on the seed and a trial's index alone; trials asked together share the first's."""
        state = SeedSequence([self.seed, index]).generate_state(1, np.uint64)[0]
        return torch.Generator().manual_seed(int(state))


def _shape_without(space: Space) -> dict[str, Any]:
    """A setting for those who read points without the space; none where only the space can tell what a point is."""
    if isinstance(space, Manifold) and space.names is None:
        return {SHAPE: list(space.point_shape)}
    if not isinstance(space, Product) or space.titles is None:
        return {}
    parts = [_part(name, factor) for name, factor in zip(space.titles, space.factors, strict=True)]
    return {PARTS: [part.written for part in parts if part is not None]} if all(parts) else {}


def _part(name: str, space: Space) -> Part | None:
    """How a parameter is read without its space; None where it is made of others."""
    if isinstance(space, Choice | Levels):
        return Part(name, (1,), options=space.options)
    if isinstance(space, Integer):
        return Part(name, (1,), whole=True)
    simple = isinstance(space, Manifold) and not isinstance(space, Product) and space.names is None
    return Part(name, space.point_shape) if simple else None


def _listed(setting: Any) -> Any:
    """A setting as JSON has it."""
    return list(setting) if isinstance(setting, tuple) else setting
