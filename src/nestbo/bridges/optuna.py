"""Optuna studies over any nestbo manifold.

A point is stored as ordinary float parameters, one for each of its entries, so that storages, workers and dashboards
see nothing unusual. Two system attributes of a trial are nestbo's: what a strategy wants remembered with a suggestion,
and the space of the point, by which trials of another space are told apart.
"""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study, StudyDirection
from optuna.trial import BaseTrial, FrozenTrial, Trial, TrialState
from torch import Tensor

from nestbo import history as record
from nestbo import study as own
from nestbo.bridges import beside
from nestbo.bridges.limits import CONSTRAINTS, constraints_of, least_of
from nestbo.bridges.parameters import assembled, distributions, entries, params, point
from nestbo.errors import ArgumentError
from nestbo.evaluation import numbers
from nestbo.history import Direction, History
from nestbo.manifolds import Space, as_written_today
from nestbo.memory import Memory
from nestbo.strategies import Strategy, Suggestion, default_strategy

_SUGGESTION = "nestbo:suggestion"
_SPACE = "nestbo:space:"  # of the point whose name follows
_SEEN = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL, TrialState.RUNNING)
_WAYS: dict[StudyDirection, Direction] = {
    StudyDirection.MINIMIZE: "minimize",
    StudyDirection.MAXIMIZE: "maximize",
    StudyDirection.NOT_SET: "minimize",
}
_TOLERANCE = 1e-6  # how far a point may lie off its space, as in ``Space.check``


class ManifoldSampler(BaseSampler):
    """A sampler that suggests points of a space, as ``Study`` does, for ``optuna.create_study(sampler=…)``.

    The objective reads the point with ``suggest(trial, space)``. Points that other workers are evaluating count as
    pending, failed trials as the worst value so far, and pruned ones by their last intermediate value. Constraints of
    trials are observed constraints; ``constraints_func`` gives them as it does in Optuna's samplers, numbers ≤ 0 where
    they are satisfied. A suggestion depends on the seed, the number of the trial and the trials before it, so that
    workers may share a seed. In a study with several directions, it suggests points that extend the front, by GaBO
    unless another strategy is given. Parameters that the objective reads beside the point, with ``trial.suggest_int``
    and the like, are suggested jointly with the point as soon as a trial with them has ended. Parameters that only some
    trials have are drawn at random, and the model does not see them. Trials of another space are ignored, with a
    warning. ``noise`` is the variance of the noise in the values, if it is known; ``name`` is the name of the point
    among the parameters.

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
        space: Space,
        strategy: Strategy | None = None,
        *,
        seed: int = 0,
        noise: float | None = None,
        name: str = "x",
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
    ) -> None:
        if not (constraints_func is None or callable(constraints_func)):
            raise ArgumentError(f"constraints_func is a function of a trial, got {constraints_func!r}.")
        with own.Study(space, strategy, seed=seed, noise=noise) as checked:
            self.space, self.strategy = checked.space, checked.strategy
            self.seed, self.noise = checked.seed, checked.noise
        self._chosen = strategy is not None
        self.name, self.constraints_func = name, constraints_func
        self._parameters = distributions(space, name)
        self._warned = False

    def __str__(self) -> str:
        return f"ManifoldSampler({self.space}, {self.strategy})"

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        trials = study.get_trials(deepcopy=False, states=_SEEN)
        return self._parameters | beside.found(trials, self._parameters)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        self._check_count(study)
        enqueued = _some(trial.system_attrs.get("fixed_params", {}), self._parameters)
        if len(enqueued) == len(self._parameters) or not _some(search_space, self._parameters):
            return {}
        self._check_whole(search_space)
        wanted = beside.chosen(search_space, tuple(self._parameters))
        joint = beside.possible(self.space, wanted, self.strategy)
        suggestion = self._suggest(study, trial, joint)
        point, others = joint.apart(suggestion.x)
        found = params(point, self.space, self.name) | others
        # What the strategy remembers is of its own point, and not of one that was enqueued in part.
        kept: dict[str, Any] = {"params": found | enqueued, "memory": {} if enqueued else suggestion.memory.json}
        if joint.beside:
            kept["among"] = joint.whole.specification
        study._storage.set_trial_system_attr(trial._trial_id, _SUGGESTION, kept)
        study._storage.set_trial_system_attr(trial._trial_id, _SPACE + self.name, self.space.specification)
        return found

    def _check_whole(self, search_space: Mapping[str, BaseDistribution]) -> None:
        """Refuse to suggest a part of a point."""
        missing = [key for key in self._parameters if key not in search_space]
        if missing:
            raise ArgumentError(
                f"ManifoldSampler suggests whole points of {self.space}, but {missing[0]!r} is fixed, by a "
                "PartialFixedSampler say. Fix parameters beside the point only, or search a space without that part."
            )

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        seed = int(self._seed(trial, zlib.crc32(param_name.encode())).generate_state(1)[0])
        return RandomSampler(seed=seed).sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Keep what ``constraints_func`` says of a trial that has a value, in the place where Optuna keeps it."""
        if self.constraints_func is None or state not in (TrialState.COMPLETE, TrialState.PRUNED):
            return
        found = numbers(self.constraints_func(trial))
        if any(map(math.isnan, found)):
            raise ArgumentError(f"constraints_func gives numbers, ≤ 0 where they are satisfied, got {found}.")
        study._storage.set_trial_system_attr(trial._trial_id, CONSTRAINTS, found)

    def _suggest(self, study: Study, trial: FrozenTrial, joint: beside.Joint) -> Suggestion:
        """Another suggestion, where a worker got there first that was not seen before."""
        rng = torch.Generator().manual_seed(int(self._seed(trial).generate_state(1, np.uint64)[0]))
        history, whole = self.history(study, trial, joint), joint.whole
        method = joint.strategy(self._strategy(history.several))
        for _ in range(own.ATTEMPTS):
            (suggestion,) = method.suggest(whole, history.to_minimise, 1, rng)
            known, history = {t.index for t in history}, self.history(study, trial, joint)
            if not own.too_near(whole, [suggestion.x], [t.x for t in history if t.index not in known]):
                break
        return suggestion

    def _strategy(self, several: bool) -> Strategy:
        """The strategy given, or the default one for as many objectives."""
        return self.strategy if self._chosen or not several else default_strategy(self.space, several=True)

    def _check_count(self, study: Study) -> None:
        """Refuse what works with one objective only, before anything is evaluated."""
        if len(study.directions) < 2:
            return
        if not self._strategy(several=True).several:
            raise ArgumentError(
                f"{self.strategy} works with one objective, got {len(study.directions)} directions. Leave the strategy "
                "out, or take GaBO() or RandomSearch()."
            )
        if self.noise is not None:
            raise ArgumentError(f"noise is the variance of a single objective, got {len(study.directions)} directions.")

    def _seed(self, trial: FrozenTrial, *more: int) -> np.random.SeedSequence:
        return np.random.SeedSequence([self.seed, trial.number, *more])

    def history(self, study: Study, but: FrozenTrial | None = None, joint: beside.Joint | None = None) -> History:
        """The trials of an Optuna study that have a point, as strategies see them, without the one given.

        ``joint`` says which parameters beside the point belong to it; trials without these are left out.
        """
        joint = beside.Joint(self.space, {}) if joint is None else joint
        trials = [t for t in study.get_trials(deepcopy=False, states=_SEEN) if but is None or t.number != but.number]
        stored = {t.number: found for t in trials if (found := self._stored(t)) is not None}
        ours = [t for t in trials if t.number in stored and self._is_ours(t, stored[t.number])]
        self._warn(sum(t.number in stored or self._is_of_other(t) for t in trials) - len(ours))
        ours = [trial for trial in ours if joint.known(stored[trial.number])]
        least = least_of(constraints_of(trial) for trial in ours)
        read = tuple(self._read(trial, stored[trial.number], least, joint) for trial in ours)
        ways = tuple(_WAYS[direction] for direction in study.directions)
        return History(read, self.noise, ways if len(ways) > 1 else ways[0])

    def _read(
        self, trial: FrozenTrial, stored: Mapping[str, Any], least: dict[str, float], joint: beside.Joint
    ) -> record.Trial:
        """A trial as strategies see it; a constraint that it does not name is the least told, as in ``History``."""
        kept, whole = trial.system_attrs.get(_SUGGESTION, {}), joint.whole
        x = joint.packed(assembled(stored, self.space, self.name), stored)
        among = as_written_today(kept.get("among", self.space.specification))
        same = among == whole.specification  # else its fits are of another model
        memory = Memory.of(kept.get("memory", kept.get("notes", {}))) if same else Memory()
        asked = record.Trial(trial.number, x, memory=memory, space=whole)
        if trial.state == TrialState.RUNNING:
            return asked
        values = (trial.values or ()) if trial.state != TrialState.FAIL else ()
        constraints = constraints_of(trial)
        if not values or not all(map(math.isfinite, (*values, *constraints.values()))):
            return asked.with_failure()
        return asked.with_value(*values, constraints=tuple((least | constraints).values()) if constraints else None)

    def _stored(self, trial: FrozenTrial) -> Mapping[str, Any] | None:
        """The parameters that the objective has read, or, while it runs, that were enqueued or suggested for it."""
        sources = [trial.params]
        if trial.state == TrialState.RUNNING:
            attributes = trial.system_attrs
            sources += [attributes.get("fixed_params", {}), attributes.get(_SUGGESTION, {}).get("params", {})]
        return next((source for source in sources if all(key in source for key in self._parameters)), None)

    def _is_of_other(self, trial: FrozenTrial) -> bool:
        """Whether the trial says that its point is of another space."""
        own = self.space.specification
        return as_written_today(trial.system_attrs.get(_SPACE + self.name, own)) != own

    def _is_ours(self, trial: FrozenTrial, stored: Mapping[str, Any]) -> bool:
        """Whether parameters with the right names are a point of this space: the trial says so, or it lies there."""
        if not all(_is_finite(stored[key]) for key in self._parameters):
            return False
        if _SPACE + self.name in trial.system_attrs:
            return not self._is_of_other(trial)
        if stored is not trial.params:
            return True  # enqueued, for an objective that will read them from this space
        same = all(trial.distributions[key] == wanted for key, wanted in self._parameters.items())
        return same and bool(self.space.violation(entries(stored, self.space, self.name)) <= _TOLERANCE)

    def _warn(self, count: int) -> None:
        """Say once that trials are left out."""
        if count and not self._warned:
            self._warned = True
            warnings.warn(
                f"{count} trials of this study have parameters {next(iter(self._parameters))!r}, … that are not points "
                f"of {self.space}; they are ignored. Give each space its own name: ManifoldSampler(…, name=…) "
                "and suggest(trial, space, name).",
                stacklevel=2,
            )


def suggest(trial: BaseTrial, space: Space, name: str = "x") -> Tensor:
    """The point to evaluate, for use in an objective. Any sampler works, and ``ManifoldSampler`` knows the geometry.

    Other samplers suggest numbers off the manifold; the point is their projection.
    """
    sampler = trial.study.sampler if isinstance(trial, Trial) else None
    if isinstance(sampler, ManifoldSampler) and (sampler.space, sampler.name) != (space, name):
        raise ArgumentError(
            f"The study samples {sampler.name!r} from {sampler.space}, got {name!r} from {space}. Use one for both."
        )
    if isinstance(trial, Trial):
        _mark(trial, space, name)
    stored = {key: _suggested(trial, key, wanted) for key, wanted in distributions(space, name).items()}
    return assembled(stored, space, name)


def _mark(trial: Trial, space: Space, name: str) -> None:
    """Note in a trial of which space its point is; refuse another one than before."""
    key, storage = _SPACE + name, trial.study._storage
    before = storage.get_trial_system_attrs(trial._trial_id).get(key)
    if before is None:
        storage.set_trial_system_attr(trial._trial_id, key, space.specification)
    elif as_written_today(before) != space.specification:
        raise ArgumentError(f"{name!r} of trial {trial.number} is from {before}, got {space}. Use one for both.")


def _suggested(trial: BaseTrial, key: str, wanted: FloatDistribution) -> float:
    try:
        number = trial.suggest_float(key, wanted.low, wanted.high)
    except ArgumentError:
        raise
    except ValueError as error:
        raise ArgumentError(
            f"Optuna has no float for {key!r}, a parameter of the point: {str(error).rstrip('.')}. Give the point a "
            "name that no other parameter has: suggest(trial, space, name) and ManifoldSampler(space, name=name)."
        ) from error
    if not math.isfinite(number):
        raise ArgumentError(f"Parameters of a point are finite, got {number} for {key!r}. Enqueue params(x, space).")
    return number


def _is_finite(number: Any) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)


def _some(stored: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: stored[name] for name in names if name in stored}


__all__ = ["ManifoldSampler", "distributions", "params", "point", "suggest"]
