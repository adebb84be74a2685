"""The methods that applications are compared with: ``METHODS``, where a new one is registered."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from nestbo.experiment.applications.evaluations import Evaluations, SpentError
from nestbo.experiment.rivals import BoTorch, Rival, Turbo
from nestbo.experiment.rivals.base import INITIAL
from nestbo.gallery import Coordinates
from nestbo.manifolds import Box, Space
from nestbo.strategies import GaBO, RandomSearch, Strategy, default_strategy
from nestbo.study import Study

_SEEDS = 10_000  # more than a run has evaluations, so that each has a seed of its own
_SPREAD = 0.3  # the first standard deviation of CMA-ES, of the side of the box
_CENTRAL = (0.2, 0.8)  # where CMA-ES begins, of each side of the box


@dataclass(frozen=True)
class OnSpace:
    """A strategy of nestbo, which works on the space itself."""

    about: str
    strategy: Callable[[Space], Strategy | None]

    def run(self, made: Evaluations, seed: int) -> int | None:
        """Minimise; the index of the recommended trial."""
        application = made.application
        study = Study(application.space, self.strategy(application.space), seed=seed, **application.settings())
        with contextlib.suppress(SpentError):
            study.run(made.observe, made.budget, numpy=True, progress=False, on_error="raise")
        best = study.recommend()
        return None if best is None else best.index


@dataclass(frozen=True)
class InCoordinates:
    """A method for boxes: ``minimise`` takes a function of the unit cube, its size and a seed, until that raises."""

    about: str
    minimise: Callable[[Callable[[Any], float], int, int], None]

    def run(self, made: Evaluations, coordinates: Coordinates, seed: int) -> int | None:
        """Minimise until the evaluations are spent; none of them is recommended in particular."""
        with contextlib.suppress(SpentError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other packages, about their own numbers
            self.minimise(lambda unit: made.told(coordinates.point(np.asarray(unit))), coordinates.size, seed)
        return None


@dataclass(frozen=True)
class OnBox:
    """The default of nestbo on the cube of coordinates: what the manifold is worth, and what a restriction is."""

    about: str

    def run(self, made: Evaluations, coordinates: Coordinates, seed: int) -> int | None:
        """Minimise; the index of the recommended trial."""
        cube = Box([0.0] * coordinates.size, [1.0] * coordinates.size)
        study = Study(cube, seed=seed, **made.application.settings())
        observe = lambda unit: made.observe(coordinates.point(np.asarray(unit)))
        with contextlib.suppress(SpentError):
            study.run(observe, made.budget, numpy=True, progress=False, on_error="raise")
        best = study.recommend()
        return None if best is None else best.index


def _told(rival: Rival, initial: int) -> Callable[[Callable[[Any], float], int, int], None]:
    """A rival that says which point of the cube is next, after so many Sobol points."""

    def minimise(f: Callable[[Any], float], size: int, seed: int) -> None:
        u = torch.quasirandom.SobolEngine(size, scramble=True, seed=seed).draw(initial, dtype=torch.float64)
        y = torch.tensor([f(point) for point in u], dtype=torch.float64)
        while True:
            new = rival.next(u, y, _SEEDS * seed + len(y)).clamp(0, 1)
            value = y.new_tensor([f(new)])
            u, y = torch.cat([u, new[None]]), torch.cat([y, value])

    return minimise


def _cma(f: Callable[[Any], float], size: int, seed: int) -> None:
    """CMA-ES from the package cma, begun again where it stops."""
    import cma

    rng = np.random.default_rng(seed)
    while True:
        options = {"seed": int(rng.integers(1, 2**31)), "verbose": -9, "bounds": [0, 1]}
        search = cma.CMAEvolutionStrategy(rng.uniform(*_CENTRAL, size), _SPREAD, options)
        while not search.stop():
            points = search.ask()
            search.tell(points, [f(point) for point in points])


def _tpe(f: Callable[[Any], float], size: int, seed: int) -> None:
    """Optuna's tree-structured Parzen estimator, the multivariate one."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True))
    while True:
        trial = study.ask()
        study.tell(trial, f(np.array([trial.suggest_float(f"u{k}", 0.0, 1.0) for k in range(size)])))


METHODS: dict[str, OnSpace | OnBox | InCoordinates] = {
    "nestbo": OnSpace("nestbo", default_strategy),
    "nestbo-isotropic": OnSpace("nestbo, no metric", lambda space: GaBO(metric="isotropic")),
    "nestbo-box": OnBox("nestbo, told these coordinates"),
    "botorch": InCoordinates("BoTorch", _told(BoTorch(), 10)),
    "turbo": InCoordinates("TuRBO", _told(Turbo(), INITIAL)),
    "cma": InCoordinates("CMA-ES", _cma),
    "tpe": InCoordinates("Optuna TPE", _tpe),
    "random": OnSpace("random search", lambda space: RandomSearch()),
}
