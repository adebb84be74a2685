"""Rivals that bring a package of their own, and the command that runs them with all others.

python benchmarks/rivals.py run --suite rivals --methods cma-es,tpe,optuna-gp --trials 5 --budget 205 --out DIR

CMA-ES is the package ``cma`` (Hansen), TPE and the Gaussian-process sampler are Optuna's. Everything after the file's
name is what ``nestbo bench`` takes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parent.parent
if (ROOT / "src" / "nestbo").is_dir():  # where nestbo is not installed
    sys.path.insert(0, str(ROOT / "src"))

from nestbo.experiment.command import main  # noqa: E402
from nestbo.experiment.rivals import RIVALS, Replayed, Rival  # noqa: E402
from nestbo.strategies.base import check_choice  # noqa: E402

STEP = 0.25  # of CMA-ES in the unit cube: a quarter of its width, as its author advises
DOUBLED = 2  # population of a restart beside that of the search before (Auger and Hansen 2005)
SAMPLERS = ("tpe", "gp")


@dataclass(frozen=True, repr=False, kw_only=True)
class CMAES(Replayed):
    """CMA-ES in the cube from the best initial point; restarts from random points with twice the population."""

    def search(self, f: Callable[[Any], float], start: Any, rng: np.random.Generator) -> None:
        import cma

        population = 4 + int(3 * np.log(len(start)))
        while True:
            seed = int(rng.integers(1, 2**31))
            options = {"bounds": [0, 1], "seed": seed, "popsize": population, "verbose": -9, "verb_log": 0}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of cma, about options
                search = cma.CMAEvolutionStrategy(start, STEP, options)
                while not search.stop():
                    points = search.ask()
                    search.tell(points, [f(point) for point in points])
            start, population = rng.random(len(start)), DOUBLED * population


@dataclass(frozen=True, repr=False, kw_only=True)
class Optuna(Rival):
    """Optuna's TPE or Gaussian-process sampler with its defaults, told of all evaluations."""

    sampler: str = "tpe"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("sampler", self.sampler, SAMPLERS)

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(sampler=sampler) for sampler in SAMPLERS]

    def next(self, u: Tensor, y: Tensor, seed: int) -> Tensor:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        names = [f"u{k}" for k in range(u.shape[-1])]
        cube = dict.fromkeys(names, optuna.distributions.FloatDistribution(0, 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of optuna, about what is experimental
            study = optuna.create_study(sampler=_sampler(self.sampler, seed))
            told = zip(u.tolist(), y.tolist(), strict=True)
            made = [(dict(zip(names, point, strict=True)), value) for point, value in told]
            study.add_trials(
                [optuna.trial.create_trial(params=p, distributions=cube, value=value) for p, value in made]
            )
            trial = study.ask(cube)
        return torch.tensor([trial.params[name] for name in names], dtype=torch.float64)


def _sampler(name: str, seed: int) -> Any:
    import optuna

    if name == "tpe":
        return optuna.samplers.TPESampler(seed=seed)
    return optuna.samplers.GPSampler(seed=seed, deterministic_objective=True)


RIVALS.update(cmaes=CMAES, optuna=Optuna)

if __name__ == "__main__":
    main(prog="python benchmarks/rivals.py")
