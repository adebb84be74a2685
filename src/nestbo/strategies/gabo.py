"""GaBO and HD-GaBO: Bayesian optimisation on a manifold, and on small manifolds nested in it.

GaBO is Jaquier, Rozo, Calinon and Bürger 2019, HD-GaBO is Jaquier and Rozo 2020. ``Bayesian`` is the algorithm of both
(the latter's algorithm 1): choose an arm, fit its model, lay a section through the space, search there. GaBO and
HD-GaBO say which arms take part.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self, cast

import torch
from torch import Tensor

from nestbo.acquisition import ACQUISITIONS, OPTIMISERS
from nestbo.errors import ArgumentError, shown
from nestbo.kernels import KERNELS, ManifoldKernel, kernel
from nestbo.manifolds import Space
from nestbo.manifolds.base import check_size
from nestbo.memory import Memory
from nestbo.outputs import OUTPUTS, Either
from nestbo.search import (
    Runs,
    constraint_models,
    farthest,
    rule_fits,
    rule_name,
    same,
    search,
    seen,
    spread_out,
    unrepeated,
)
from nestbo.search.runs import latest, refits, together
from nestbo.strategies.arms import ARMS, Arm, Full, Kind, arms_on, check_latent_dim
from nestbo.strategies.base import Standing, Strategy, check_choice
from nestbo.strategies.learning import EXTRINSIC, Learner
from nestbo.strategies.many import Many
from nestbo.strategies.options import Acquisition, Climb, Criterion, LatentDim, Metric, Outputs
from nestbo.strategies.policies import Balanced, Policy, Record, policy, standings
from nestbo.surrogate import CRITERIA, Description, Effort, Surrogate, fit, steepness, worth_of_basis

METRICS = ("isotropic", "diagonal", "full", "auto")
_CLIMBS = ("lbfgs", "trust-region")
_WITHOUT_METRIC = ("arms", "choice", "criterion", "exact", "outputs")  # what a learned metric has no use for


@dataclass(frozen=True)
class Fitted:
    """The models behind one suggestion, and what the next one wants to know of them, for each run.

    ``surrogate`` is that of the arm, None where it needs none; ``rules`` are those of observed constraints. ``steep``
    says whether values are modelled after the logarithm, and since how many evaluations; ``worth`` is that of a learned
    basis. Both are None where they were not asked.
    """

    surrogate: Surrogate | None
    rules: list[Surrogate]
    steep: list[tuple[bool, int]] | None = None
    worth: list[float] | None = None

    def ranked(self, runs: Runs) -> Runs:
        """The runs, ranked by the model where values are noisy."""
        if not runs.noisy or self.surrogate is None:
            return runs
        mean, _ = self.surrogate.gp.moments(self.surrogate.latent_points)
        if runs.whole is None:
            return replace(runs, posterior=mean)
        all_means, _ = self.surrogate.gp.moments_in_parts(self.surrogate.mapping.project(runs.whole.x))
        return replace(runs, posterior=mean, whole=replace(runs.whole, posterior=all_means))

    def remembered(self, arm: Arm, memory: Memory, run: int, noisy: bool) -> Memory:
        """A memory of one run with who suggested, and with the fits behind it."""
        model, name = self.surrogate, arm.kind.name
        own = {} if model is None else {name: model.fits[run]}
        return replace(
            memory,
            arm=arm.name,
            fits=own | rule_fits(self.rules, run),
            steep=None if self.steep is None else self.steep[run],
            worth={} if self.worth is None else {name: self.worth[run]},
            noise=model.noise_near_best[run] if noisy and model is not None else None,
        )


@dataclass(frozen=True, repr=False, kw_only=True)
class Bayesian(Strategy):
    """Choose an arm, fit its model, maximise an acquisition function on its section, reach the space from there."""

    kernel: str = "matern52"
    acquisition: Acquisition = "logei"
    outputs: Outputs = "standardise"
    optimiser: Climb = "lbfgs"
    criterion: Criterion = "likelihood"
    priors: bool = True
    initial: int = 5
    metric: Metric = "auto"

    def __post_init__(self) -> None:
        check_size("The number of initial points", self.initial)
        choices: dict[str, Collection[str]] = {
            "kernel": KERNELS,
            "acquisition": ACQUISITIONS,
            "outputs": OUTPUTS,
            "optimiser": _CLIMBS,
            "criterion": CRITERIA,
            "metric": METRICS,
        }
        for name, known in choices.items():
            check_choice(name, getattr(self, name), known)
        if not isinstance(self.priors, bool):
            raise ArgumentError(f"priors is True or False, got {shown(self.priors)}.")
        if self.metric in ("diagonal", "full"):
            for name in self._described:
                raise ArgumentError(
                    f'metric="{self.metric}" decides about {name} itself, got {getattr(self, name)!r}. Leave it out.'
                )

    @abstractmethod
    def arms_on(self, space: Space) -> tuple[Arm, ...]:
        """Who may suggest points of this space.

        Args:
            space: Where the points lie.
        """

    def choose(self, arms: tuple[Arm, ...], runs: Runs) -> list[Arm]:
        """Who does, in each run.

        Args:
            arms: Who may suggest.
            runs: The data: evaluations, pending points and memories of each run.
        """
        return [arms[0]] * len(runs.rngs)

    @property
    def _described(self) -> list[str]:
        """Settings of a model without a metric that are not the usual ones."""
        own = [name for name in _WITHOUT_METRIC if hasattr(self, name)]
        return [name for name in own if getattr(self, name) != getattr(type(self), name)]

    def learns(self, space: Space) -> bool:
        """Whether a metric is learned: "auto" does where it can, unless another model is described.

        Args:
            space: Where the points lie.
        """
        if self.metric != "auto":
            return self.metric != "isotropic"
        return self.kernel in EXTRINSIC and not self._described and self._learner.serves(space)

    @property
    def _learner(self) -> Learner:
        """Who works where a metric is learned."""
        latent_dim = getattr(self, "latent_dim", None)
        return Learner(self.kernel, self.acquisition, self.optimiser, self.priors, latent_dim, self.metric)

    @property
    def many(self) -> Many:
        """Who works where there are several objectives."""
        return Many(self.kernel, self.outputs, self.optimiser, self.priors)

    def check(self, space: Space) -> None:
        if self.learns(space):
            self._learner.check(space)
        kinds = [Kind()] * (self.outputs == "auto") + [arm.kind for arm in self.arms_on(space)]
        for kind in kinds:
            self._kernel(space, kind)

    def propose(self, space: Space, runs: Runs) -> tuple[Tensor, list[Memory]]:
        if not runs.begun(self.initial):
            return spread_out(space, runs), [Memory() for _ in runs.rngs]
        if runs.outcomes is not None:
            return self.many.propose(space, seen(space, runs))
        if self.learns(space):
            return self._learner.propose(space, seen(space, runs))
        arms = self.choose(self.arms_on(space), runs)
        x, memories = torch.empty_like(runs.x[:, 0]), [Memory() for _ in arms]
        for which in _alike(arms, runs):
            x[which], found = self._suggest(space, arms[which[0]], seen(space, runs.take(which)))
            for run, memory in zip(which, found, strict=True):
                memories[run] = memory
        return x, memories

    def _suggest(self, space: Space, arm: Arm, runs: Runs) -> tuple[Tensor, list[Memory]]:
        """Fit the model of an arm, lay its section through the space, and search there."""
        fitted = self._fitted(space, arm.kind, runs, arm.needs_model(runs.noisy))
        section = arm.section(space, fitted.surrogate, fitted.ranked(runs))
        x = space.project(search(section, fitted.rules, self.acquisition, OPTIMISERS[self.optimiser]))
        own = enumerate(section.memories or [Memory()] * len(runs.rngs))
        memories = [fitted.remembered(arm, memory, run, runs.noisy) for run, memory in own]
        if self.repeats:
            return x, memories
        return unrepeated(space, x, memories, runs, partial(farthest, space, space, same, fitted.rules, runs))

    def _fitted(self, space: Space, kind: Kind, runs: Runs, needed: bool = True) -> Fitted:
        """The model of a kind, if it is needed, and those of observed constraints."""
        on_space = kernel(self.kernel, space)
        if not needed:
            return Fitted(None, constraint_models(on_space, runs))
        steep, outputs = self._steep(space, runs), OUTPUTS[self.outputs].fit
        if steep is not None:
            logarithmic = torch.tensor([[chosen] for chosen, _ in steep], device=runs.x.device)
            outputs = partial(Either.fit, steep=logarithmic)
        model = Description(self._kernel(space, kind), kind.nesting, outputs, self.priors, CRITERIA[self.criterion])
        surrogate, worth = self._fit(space, model, kind, runs)
        return Fitted(surrogate, constraint_models(on_space, runs), steep, worth)

    def _fit(self, space: Space, model: Description, kind: Kind, runs: Runs) -> tuple[Surrogate, list[float] | None]:
        """A model fitted to each run from where its last fit ended, and what its basis, if it has one, is worth.

        A nested model that starts anew next to the full one gets a guess from the gradients of that one, and is
        compared with it.
        """
        previous, effort = together(refits(runs, kind.name))
        if kind.nesting is None or effort is not Effort.ANEW or Full() not in self.arms_on(space):
            return fit(model, runs.data, previous, effort), None
        full = fit(replace(model, kernel=kernel(self.kernel, space), nesting=None), runs.data)
        guess = kind.nesting.active(full.gradients(runs.x))
        nested = fit(model, runs.data, previous, effort, guess=guess)
        comparable = self.criterion == "likelihood"  # no other criterion compares models
        return nested, worth_of_basis(nested, full, kind.nesting.bases.dim).tolist() if comparable else None

    def _kernel(self, space: Space, kind: Kind) -> ManifoldKernel:
        return kernel(self.kernel, space if kind.nesting is None else kind.nesting.compared)

    def _steep(self, space: Space, runs: Runs) -> list[tuple[bool, int]] | None:
        """Whether the values of each run are steep, decided anew when their number has doubled; None if not asked."""
        if self.outputs != "auto" or runs.noise is not None:
            return None
        record, asked = runs.record, runs.asked or [[] for _ in runs.rngs]
        pairs = zip(record.memories, asked, strict=True)
        found = [latest([*told, *more], lambda memory: memory.steep) for told, more in pairs]
        known, n = [steep for steep in found if steep is not None], record.y.shape[1]
        if len(known) == len(found) and n < 2 * max(at for _, at in known):
            return known
        decided = steepness(Description(kernel(self.kernel, space), priors=self.priors), runs.data)
        return [(steep, n) for steep in decided.tolist()]

    def models(self, space: Space, runs: Runs) -> dict[str, Surrogate]:
        if not runs.y.shape[1]:
            return {}
        if runs.outcomes is not None:
            return self.many.models(space, seen(space, runs))
        if self.learns(space):
            return self._learner.models(space, seen(space, runs))
        arms = {arm.name: arm for arm in self.arms_on(space)}
        leading = sorted(self.standings(space, runs), key=lambda standing: -standing.score)
        kinds = dict.fromkeys(arms[standing.arm].kind for standing in leading)
        fitted = {kind.name: self._fitted(space, kind, seen(space, runs)) for kind in kinds}
        models = {name: found.surrogate for name, found in fitted.items() if found.surrogate is not None}
        rules = next(iter(fitted.values())).rules
        return models | {rule_name(k): rule for k, rule in enumerate(rules)}

    def standings(self, space: Space, runs: Runs) -> list[Standing]:
        record = Record.each(runs)[0]
        if self.learns(space):
            return standings(self._learner.names(space, runs), record)
        return standings([arm.name for arm in self.arms_on(space)], record)


@dataclass(frozen=True, repr=False, kw_only=True)
class GaBO(Bayesian):
    """Fit a Gaussian process on the manifold, maximise an acquisition function there, evaluate, repeat.

    Args:
        kernel: A name of ``nestbo.kernels.KERNELS``, such as "matern52" or "gaussian".
        acquisition: "logei", "lognei", "ei" or "ucb"; where values are noisy, "logei" is "lognei".
        outputs: How values are transformed for the model: a name of ``nestbo.outputs.OUTPUTS``, such as "standardise";
            "auto" lets the data choose between values and their logarithm.
        optimiser: How the acquisition function is climbed: "lbfgs" or "trust-region".
        criterion: What a fit minimises: "likelihood" or "leave-one-out".
        priors: Whether a fit is maximum a posteriori instead of maximum likelihood.
        initial: How many random points come first.
        metric: What is learned of the directions that matter: "full", "diagonal" (a length scale for each coordinate),
            "isotropic" for nothing, or "auto", which lets models compete by what they predict.

    >>> import torch
    >>> from nestbo import History, Sphere
    >>> suggestion = GaBO().suggest(Sphere(2), History(), 1, torch.Generator().manual_seed(0))[0]
    >>> tuple(suggestion.x.shape)
    (3,)
    """

    @classmethod
    def paper(cls) -> Self:
        """As in the paper: geodesic Gaussian kernel, maximum likelihood, expected improvement, trust regions."""
        settings: dict[str, Any] = {"kernel": "geodesic-gaussian", "acquisition": "ei", "optimiser": "trust-region"}
        return cls(metric="isotropic", priors=False, **settings)

    @cached_property
    def repeats(self) -> bool:
        return replace(self, metric="isotropic") == self.paper()  # whose kernel allows no other

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(), cls.paper(), cls(kernel="gaussian", acquisition="ucb", outputs="bilog")]

    @property
    def several(self) -> bool:
        return True

    def arms_on(self, space: Space) -> tuple[Arm, ...]:
        return (Full(),)


@dataclass(frozen=True, repr=False)
class HDGaBO(Bayesian):
    """Learn which directions matter together with the model, and search where they do.

    With a metric the search lives on a great sphere that the data span, or on small matrices nested in large ones; see
    ``nestbo.strategies.learning``. Without one (metric="isotropic") arms compete. "full" is GaBO on the space itself;
    "fitted", "incumbent" and "random" search the nested space and differ in the lift; "embedded" searches a random
    small sphere in the space, and another one when that is exhausted; "local", where there is no such sphere, searches
    trust regions of the nested space, one after the other, around other points than the best; and around the best one
    where ``latent_dim`` is that of the space.

    Args:
        latent_dim: The size of the nested space: d of S^d, d of d×d matrices, for a product a tuple with None for a
            factor to leave whole; or "auto", where nobody needs to know it.
        arms: The names of those that compete where no metric is learned.
        choice: The policy that says who is next: a text or a ``Policy``.
        exact: Whether distances of projected SPD matrices are taken as they are; the paper approximates them.
        kernel: A name of ``nestbo.kernels.KERNELS``, such as "matern52" or "gaussian".
        acquisition: "logei", "lognei", "ei" or "ucb"; where values are noisy, "logei" is "lognei".
        outputs: How values are transformed for the model: a name of ``nestbo.outputs.OUTPUTS``, such as "standardise";
            "auto" lets the data choose between values and their logarithm.
        optimiser: How the acquisition function is climbed: "lbfgs" or "trust-region".
        criterion: What a fit minimises: "likelihood" or "leave-one-out".
        priors: Whether a fit is maximum a posteriori instead of maximum likelihood.
        initial: How many random points come first.
        metric: What is learned of the directions that matter: "full", "diagonal" (a length scale for each coordinate),
            "isotropic" for nothing, or "auto", which lets models compete by what they predict.

    >>> import nestbo as nb
    >>> study = nb.Study(nb.Sphere(30), nb.HDGaBO(), seed=0)
    >>> hidden = nb.problem("ackley", nb.Sphere(30), latent_dim=2, seed=0)
    >>> _ = study.run(hidden.objective, 8, progress=False)
    >>> list(study.models())
    ['spanned:8:1']
    """

    latent_dim: LatentDim = "auto"
    arms: tuple[str, ...] = ("full", "incumbent", "embedded", "local")
    choice: Policy | str = Balanced()
    exact: bool = True
    outputs: Outputs = field(default="auto", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_latent_dim(self.latent_dim)
        object.__setattr__(self, "choice", policy(self.choice))
        if not isinstance(self.arms, tuple) or not self.arms:
            raise ArgumentError(f"arms is a tuple of names ({', '.join(ARMS)}), got {shown(self.arms)}.")
        for name in self.arms:
            check_choice("An arm", name, ARMS)
        if len(set(self.arms)) < len(self.arms):
            raise ArgumentError(f"Each of arms is named once, got {shown(self.arms)}.")
        if not isinstance(self.exact, bool):
            raise ArgumentError(f"exact is True or False, got {shown(self.exact)}.")

    @classmethod
    def paper(cls, latent_dim: LatentDim) -> Self:
        """As in the paper: one nested model, geodesic Gaussian kernel, approximate SPD distances, EI, fitted lift.

        Args:
            latent_dim: The size of the nested space, as of HDGaBO.
        """
        settings: dict[str, Any] = {"kernel": "geodesic-gaussian", "acquisition": "ei", "optimiser": "trust-region"}
        settings |= {"outputs": "standardise", "metric": "isotropic"}
        return cls(latent_dim, ("fitted",), exact=False, priors=False, **settings)

    @cached_property
    def repeats(self) -> bool:
        return replace(self, metric="isotropic") == self.paper(self.latent_dim)  # whose kernel allows no other

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(), cls.paper(1), cls(1, ("random",), "in-turn", criterion="leave-one-out")]

    def arms_on(self, space: Space) -> tuple[Arm, ...]:
        return arms_on(space, self.latent_dim, self.arms, logarithmic=not self.exact, priors=self.priors)

    def choose(self, arms: tuple[Arm, ...], runs: Runs) -> list[Arm]:
        rule = cast(Policy, self.choice)  # see __post_init__
        return [rule.choose(arms, record, rng) for record, rng in zip(Record.each(runs), runs.rngs, strict=True)]


def _alike(arms: list[Arm], runs: Runs) -> list[list[int]]:
    """Runs that do the same: those with one arm, after the same kind of fit, make a batch."""
    models = {name: refits(runs, name) for name in {arm.kind.name for arm in arms}}
    next_fits = [models[arm.kind.name][run] for run, arm in enumerate(arms)]
    keys = [(arm, fit is None, effort) for arm, (fit, effort) in zip(arms, next_fits, strict=True)]
    return [[run for run, key in enumerate(keys) if key == first] for first in dict.fromkeys(keys)]
