"""Optuna studies over any nestbo manifold.

A point is stored as ordinary float parameters, one for each of its entries, so that storages, workers and dashboards
see nothing unusual. What a strategy wants remembered with a suggestion is a system attribute of the trial.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import BaseTrial, FrozenTrial, Trial, TrialState
from torch import Tensor

from nestbo import history as record
from nestbo import study as own
from nestbo.errors import ArgumentError
from nestbo.history import History
from nestbo.manifolds import MANIFOLDS, SPD, Box, Euclidean, Manifold, Product, Simplex, Torus
from nestbo.strategies import Strategy, Suggestion

_SUGGESTION = "nestbo:suggestion"
_SEEN = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL, TrialState.RUNNING)
_ANYWHERE = 1e10  # a bound for parameters that have none; Optuna wants one
_ROUNDING = 1e-9


class ManifoldSampler(BaseSampler):
    """Suggests points of a space, as ``Study`` does, for ``optuna.create_study(sampler=…)``.

    The objective reads the point with ``suggest(trial, space)``. Points that other workers are evaluating count as
    pending, failed trials as the worst value so far, and pruned ones by their last intermediate value. A suggestion
    depends on the seed, the number of the trial and the trials before it, so that workers may share a seed. Parameters
    outside of the space are drawn at random, and the model does not see them: put them into the space as a ``Box``.
    ``noise`` is the variance of the noise of values, if it is known; ``name`` that of the point among the parameters.

    >>> import optuna
    >>> import nestbo as nb
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=ManifoldSampler(nb.Sphere(2)))
    >>> study.optimize(lambda trial: float(suggest(trial, nb.Sphere(2))[0]), n_trials=8)
    >>> study.best_value < -0.9
    True
    >>> list(study.best_params)
    ['x_0', 'x_1', 'x_2']
    """

    def __init__(
        self,
        space: Manifold,
        strategy: Strategy | None = None,
        *,
        seed: int = 0,
        noise: float | None = None,
        name: str = "x",
    ) -> None:
        with own.Study(space, strategy, seed=seed, noise=noise) as checked:
            self.space, self.strategy, self.noise = checked.space, checked.strategy, checked.noise
        self.seed, self.name = seed, name

    def __str__(self) -> str:
        return f"ManifoldSampler({self.space}, {self.strategy})"

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return dict(distributions(self.space, self.name))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        _check_single(study)
        if self._point(trial) is not None:  # enqueued
            return {}
        suggestion = self._suggest(study, trial)
        found = params(suggestion.x, self.space, self.name)
        kept: dict[str, Any] = {"params": found, "notes": suggestion.notes}
        study._storage.set_trial_system_attr(trial._trial_id, _SUGGESTION, kept)
        return found

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        _check_single(study)
        seed = int(self._seed(trial, zlib.crc32(param_name.encode())).generate_state(1)[0])
        return RandomSampler(seed=seed).sample_independent(study, trial, param_name, param_distribution)

    def _suggest(self, study: Study, trial: FrozenTrial) -> Suggestion:
        """Another suggestion, where a worker got there first that was not seen before."""
        rng = torch.Generator().manual_seed(int(self._seed(trial).generate_state(1, np.uint64)[0]))
        history = self.history(study, trial)
        for _ in range(own.ATTEMPTS):
            (suggestion,) = self.strategy.suggest(self.space, history.to_minimise, 1, rng)
            known, history = {t.index for t in history}, self.history(study, trial)
            if not own.too_near(self.space, [suggestion.x], [t.x for t in history if t.index not in known]):
                break
        return suggestion

    def _seed(self, trial: FrozenTrial, *more: int) -> np.random.SeedSequence:
        return np.random.SeedSequence([self.seed, trial.number, *more])

    def history(self, study: Study, but: FrozenTrial | None = None) -> History:
        """The trials of an Optuna study that have a point, as strategies see them, without the one given."""
        trials = study.get_trials(deepcopy=False, states=_SEEN)
        read = (self._read(trial) for trial in trials if but is None or trial.number != but.number)
        direction = "minimize" if study.direction.name == "MINIMIZE" else "maximize"
        return History(tuple(trial for trial in read if trial is not None), self.noise, direction)  # type: ignore[arg-type]

    def _read(self, trial: FrozenTrial) -> record.Trial | None:
        x, notes = self._point(trial), trial.system_attrs.get(_SUGGESTION, {}).get("notes", {})
        if x is None:
            return None
        if trial.state == TrialState.RUNNING:
            return record.Trial(trial.number, x, notes=notes)
        value = trial.value if trial.state != TrialState.FAIL else None
        if value is None or not math.isfinite(value):
            return record.Trial(trial.number, x, None, "failed", notes)
        return record.Trial(trial.number, x, value, "told", notes)

    def _point(self, trial: FrozenTrial) -> Tensor | None:
        """What the objective has read, or, while it runs, what was enqueued or suggested for it to read."""
        sources = [trial.params]
        if trial.state == TrialState.RUNNING:
            attributes = trial.system_attrs
            sources += [attributes.get("fixed_params", {}), attributes.get(_SUGGESTION, {}).get("params", {})]
        names = _names(self.space, self.name)
        stored = next((source for source in sources if all(key in source for key in names)), None)
        return None if stored is None else _assemble(stored, self.space, self.name)


def suggest(trial: BaseTrial, space: Manifold, name: str = "x") -> Tensor:
    """The point to evaluate, in an objective: any sampler will do, and ``ManifoldSampler`` knows the geometry.

    Samplers that do not suggest numbers off the manifold; the point is then their projection.
    """
    sampler = trial.study.sampler if isinstance(trial, Trial) else None
    if isinstance(sampler, ManifoldSampler) and (sampler.space, sampler.name) != (space, name):
        raise ArgumentError(
            f"The study samples {sampler.name!r} from {sampler.space}, got {name!r} from {space}. Use one for both."
        )
    ranges = distributions(space, name)
    return _assemble({key: trial.suggest_float(key, r.low, r.high) for key, r in ranges.items()}, space, name)


def point(trial: FrozenTrial, space: Manifold, name: str = "x") -> Tensor:
    """The point of a trial, ``study.best_trial`` say."""
    missing = [key for key in _names(space, name) if key not in trial.params]
    if missing:
        raise ArgumentError(f"Trial {trial.number} has no parameter {missing[0]!r} of a point {name!r} of {space}.")
    return _assemble(trial.params, space, name)


def params(x: Any, space: Manifold, name: str = "x") -> dict[str, float]:
    """A point as parameters, for ``study.enqueue_trial`` or ``optuna.trial.create_trial``."""
    x = space.check(x).double()
    if x.shape != space.point_shape:
        raise ArgumentError(f"params takes one point, of shape {space.point_shape}, got {tuple(x.shape)}.")
    low, high = torch.tensor(_ranges(space), dtype=torch.float64).mT.reshape(2, *space.point_shape)
    inside = ((x >= low - _ROUNDING) & (x <= high + _ROUNDING)).all()
    kept = torch.clamp(x if inside else space.project(x), low, high)
    return dict(zip(_names(space, name), kept.reshape(-1).tolist(), strict=True))


def distributions(space: Manifold, name: str = "x") -> dict[str, FloatDistribution]:
    """The parameters of a point: one for each entry, ``x_0``, ``x_1``, … or ``x_0_0``, ``x_0_1``, …."""
    return {
        key: FloatDistribution(low, high) for key, (low, high) in zip(_names(space, name), _ranges(space), strict=True)
    }


def _check_single(study: Study) -> None:
    if len(study.directions) > 1:
        raise ArgumentError(f"ManifoldSampler works with one objective, got {len(study.directions)}.")


def _names(space: Manifold, name: str) -> list[str]:
    """With as many digits as the last one has, so that they sort."""
    axes = [[f"{k:0{len(str(size - 1))}d}" for k in range(size)] for size in space.point_shape]
    return ["_".join((name, *index)) for index in itertools.product(*axes)]


def _ranges(space: Manifold) -> list[tuple[float, float]]:
    """Numbers between which the entries of points lie."""
    size = math.prod(space.point_shape)
    if isinstance(space, Product):
        return [pair for factor in space.factors for pair in _ranges(factor)]
    if isinstance(space, Box):
        return list(zip(space.lower, space.upper, strict=True))
    if isinstance(space, SPD) and space.eigenvalues:
        low, high = space.eigenvalues
        inside, beside = (low, high), (-(high - low) / 2, (high - low) / 2)
        return [inside if i == j else beside for i in range(space.n) for j in range(space.n)]
    if isinstance(space, Torus):
        return [(-math.pi, math.pi)] * size
    if isinstance(space, Simplex):
        return [(0.0, 1.0)] * size
    if isinstance(space, SPD | Euclidean) or type(space) not in MANIFOLDS.values():
        return [(-_ANYWHERE, _ANYWHERE)] * size
    return [(-1.0, 1.0)] * size


def _assemble(stored: Mapping[str, Any], space: Manifold, name: str) -> Tensor:
    flat = torch.tensor([float(stored[key]) for key in _names(space, name)], dtype=torch.float64)
    x = flat.reshape(space.point_shape)
    return x if space.violation(x) <= _ROUNDING else space.project(x)


__all__ = ["ManifoldSampler", "distributions", "params", "point", "suggest"]
