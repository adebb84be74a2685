"""GaBO and HD-GaBO: Bayesian optimisation on a manifold, and on small manifolds nested in it.

GaBO is Jaquier, Rozo, Calinon and Bürger 2019, HD-GaBO is Jaquier and Rozo 2020. ``Bayesian`` is the algorithm of both
(the latter's algorithm 1); GaBO and HD-GaBO say which arms take part.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor

from nestbo.acquisition import ACQUISITIONS, OPTIMISERS, constrained, improvement, search
from nestbo.errors import ArgumentError
from nestbo.kernels import KERNELS, ManifoldKernel, kernel
from nestbo.manifolds import Manifold
from nestbo.manifolds.base import check_size
from nestbo.outputs import OUTPUTS, Either, Outputs, Standardise
from nestbo.strategies.arms import (
    ARMS,
    CHOICES,
    EMBEDDED,
    FULL,
    LIFTS,
    LOCAL,
    NEAR,
    WORTH,
    Arm,
    arms_on,
    check_latent_dim,
    exhausted,
    standings,
)
from nestbo.strategies.base import Standing, Strategy, check_choice, due
from nestbo.strategies.exploring import farthest
from nestbo.strategies.feasibility import Reach, constraint_models, constraint_notes, limits, log_chance
from nestbo.strategies.local import START, regions, regions_at_best, search_near
from nestbo.strategies.repeats import unrepeated
from nestbo.strategies.runs import INFERRED, Runs, latest
from nestbo.surrogate import (
    CRITERIA,
    Surrogate,
    fit_nested,
    fit_surrogate,
    previous_parameters,
    steepness,
    worth_of_basis,
)


@dataclass(frozen=True, repr=False, kw_only=True)
class Bayesian(Strategy):
    """Choose an arm, fit its model, maximise an acquisition function on its latent space, lift the point found."""

    kernel: str = "matern52"
    acquisition: str = "logei"
    outputs: str = "standardise"
    optimiser: str = "lbfgs"
    criterion: str = "likelihood"
    priors: bool = True
    initial: int = 5

    def __post_init__(self) -> None:
        check_size("The number of initial points", self.initial)
        choices: dict[str, Collection[str]] = {
            "kernel": KERNELS,
            "acquisition": ACQUISITIONS,
            "outputs": OUTPUTS,
            "optimiser": OPTIMISERS,
            "criterion": CRITERIA,
        }
        for name, known in choices.items():
            check_choice(name, getattr(self, name), known)
        if not isinstance(self.priors, bool):
            raise ArgumentError(f"priors is True or False, got {self.priors!r}.")

    @abstractmethod
    def arms_on(self, space: Manifold) -> list[Arm]:
        """Who may suggest points of this space."""

    def choose(self, arms: list[Arm], runs: Runs) -> list[Arm]:
        """Who does, in each run."""
        return [arms[0]] * len(runs.rngs)

    def check(self, space: Manifold) -> None:
        for arm in [Arm(FULL)] * (self.outputs == "auto") + self.arms_on(space):
            self._kernel(space, arm)

    def propose(self, space: Manifold, runs: Runs) -> tuple[Tensor, list[dict[str, Any]]]:
        if runs.y.shape[1] == 0 or runs.y.shape[1] + runs.pending.shape[1] < self.initial:
            return runs.random(space), [{} for _ in runs.rngs]
        arms = self.choose(self.arms_on(space), runs)
        x, notes = torch.empty_like(runs.x[:, 0]), [dict[str, Any]() for _ in arms]
        kinds = [due(latest(past, arm.model), runs.y.shape[1]) for arm, past in zip(arms, runs.notes, strict=True)]
        # All runs that search one domain, after the same kind of fit, do so together.
        for which in _alike(list(zip((arm.domain for arm in arms), kinds, strict=True))):
            part = runs.take(which)
            point, found = self._suggest(space, [arms[run] for run in which], part)
            found = [{"arm": arms[run].name} | note for run, note in zip(which, found, strict=True)]
            x[which], found = self._unrepeated(space, part, space.project(point), found)
            for run, note in zip(which, found, strict=True):
                notes[run] = note
        return x, notes

    def _unrepeated(
        self, space: Manifold, runs: Runs, x: Tensor, notes: list[dict[str, Any]]
    ) -> tuple[Tensor, list[dict[str, Any]]]:
        """The points found, or others where these are known already."""
        if self.repeats:
            return x, notes
        rules = constraint_models(kernel(self.kernel, space), runs)
        return unrepeated(space, x, notes, runs, partial(farthest, space, space, _same, rules, runs))

    def _suggest(self, space: Manifold, arms: list[Arm], runs: Runs) -> tuple[Tensor, list[dict[str, Any]]]:
        """Fit, maximise, lift."""
        arm = arms[0]
        surrogate = self.model(space, arm, runs)
        notes: list[dict[str, Any]] = [{arm.model: note} for note in surrogate.notes]
        for key in ("steep", f"{WORTH}:{arm.model}"):
            if key in runs.cache:
                notes = [note | {key: found} for note, found in zip(notes, runs.cache[key], strict=True)]
        rules = constraint_models(kernel(self.kernel, space), runs)
        notes = constraint_notes(rules, notes)
        if runs.noisy:
            notes = [note | {INFERRED: found} for note, found in zip(notes, _noise(surrogate), strict=True)]
            runs = replace(runs, posterior=surrogate.gp.moments(surrogate.latent_points)[0])
        if arm.lift in (LOCAL, NEAR):
            x, starts = self._search_near(arm, surrogate, rules, runs)
            return x, [note | {START: start} for note, start in zip(notes, starts.flatten(1).tolist(), strict=True)]
        if arm.nesting is None:
            return self._search(space, self._acquisition(runs, surrogate, rules), runs.x, runs), notes
        if arm.model == FULL:
            x, basis = self._search_embedded(arm, self._acquisition(runs, surrogate, rules), runs)
            return x, [note | {arm.name: b} for note, b in zip(notes, basis.tolist(), strict=True)]
        return self._search_nested(arms, surrogate, rules, runs), notes

    def _search(
        self, latent: Manifold, acquisition: Any, points: Tensor, runs: Runs, reach: Reach | None = None
    ) -> Tensor:
        """Where the acquisition function is largest on the latent space, (runs, *point), from which we reach ours."""
        within, optimiser = limits(runs.allowed, latent, reach or _same), OPTIMISERS[self.optimiser]
        return search(acquisition, latent, points, runs.ranking, runs.rngs, optimiser=optimiser, limits=within)

    def _search_nested(self, arms: list[Arm], surrogate: Surrogate, rules: list[Surrogate], runs: Runs) -> Tensor:
        """Search the latent space and lift; constraints want to know the lift before."""
        lift = self._lift(arms, surrogate, runs) if rules or runs.allowed is not None else None
        acquisition = self._acquisition(runs, surrogate, rules, lift)
        z = self._search(surrogate.mapping.latent, acquisition, surrogate.latent_points, runs, lift)
        return (lift or self._lift(arms, surrogate, runs))(z.unsqueeze(1)).squeeze(1)

    def _search_near(self, arm: Arm, surrogate: Surrogate, rules: list[Surrogate], runs: Runs) -> tuple[Tensor, Tensor]:
        """Where a local model is worth most in a trust region of the latent space, lifted; and where that began."""
        latent = surrogate.mapping.latent
        if arm.lift == NEAR:
            found = regions_at_best(arm.name, runs)
        else:
            found = regions(arm.name, latent, surrogate.latent_points, runs)
        starts, centres, _ = zip(*found, strict=True)
        near = _each(runs.x, centres).unsqueeze(1)
        lift: Reach = lambda z: surrogate.mapping.lift_near(z, near)
        projected = replace(runs.at(surrogate.latent_points, runs.y), pending=surrogate.mapping.project(runs.pending))
        z = search_near(
            latent,
            projected,
            found,
            partial(self._acquisition, rules=rules, reach=lift),
            priors=self.priors,
            optimiser=OPTIMISERS[self.optimiser],
            limits=limits(runs.allowed, latent, lift),
        )
        return lift(z.unsqueeze(1)).squeeze(1), _each(runs.x, starts)

    def _search_embedded(self, arm: Arm, acquisition: Any, runs: Runs) -> tuple[Tensor, Tensor]:
        """Where the full model is worth most on a small embedded space, which is kept while it is of any use."""
        assert arm.nesting is not None
        basis = arm.nesting.bases.random_each(1, runs.rngs)[0]
        for k, (notes, y) in enumerate(zip(runs.notes, runs.scores, strict=True)):
            asked = latest(runs.asked[k], arm.name) if runs.asked else None
            noted = latest(notes, arm.name) if asked is None else asked
            if noted is not None and (asked is not None or not exhausted(arm.name, notes, y)):
                basis[k] = torch.tensor(noted, dtype=basis.dtype)
        section = arm.nesting.at(basis)

        def along(z: Tensor) -> Tensor:
            x = section.lift(z.unflatten(-1, section.latent.point_shape))
            value: Tensor = acquisition(x.flatten(-len(section.ambient.point_shape)))
            return value

        z = self._search(section.latent, along, section.project(runs.x), runs, section.lift)
        return section.lift(z.unsqueeze(1)).squeeze(1), basis

    def _lift(self, arms: list[Arm], surrogate: Surrogate, runs: Runs) -> Reach:
        """Back from the latent space, for each run as its arm does."""
        parts: list[tuple[list[int], Reach]] = []
        for which in _alike([arm.lift for arm in arms]):
            arm = arms[which[0]]
            assert arm.nesting is not None
            mapping = arm.nesting.at(surrogate.mapping.basis[which])
            parts.append((which, LIFTS[arm.lift](mapping, runs.take(which))))
        return partial(_together, parts, len(surrogate.mapping.latent.point_shape))

    def models(self, space: Manifold, runs: Runs) -> dict[str, Surrogate]:
        if not runs.y.shape[1]:
            return {}
        leading = sorted(self.standings(space, runs), key=lambda standing: -standing.score)
        arms = {arm.name: arm for arm in self.arms_on(space)}
        models = {arms[standing.arm].model: arms[standing.arm] for standing in leading}
        found = {name: self.model(space, arm, runs) for name, arm in models.items()}
        rules = constraint_models(kernel(self.kernel, space), runs)
        return found | {f"constraint:{k}": rule for k, rule in enumerate(rules)}

    def standings(self, space: Manifold, runs: Runs) -> list[Standing]:
        return standings(self.arms_on(space), runs.notes[0], runs.scores[0])

    def model(self, space: Manifold, arm: Arm, runs: Runs) -> Surrogate:
        """The surrogate of an arm fitted to each run, warm-started from the notes of its last fit."""
        if arm.model not in runs.cache:
            runs.cache[arm.model] = self._fit(space, arm, runs)
        surrogate: Surrogate = runs.cache[arm.model]
        return surrogate

    def _fit(self, space: Manifold, arm: Arm, runs: Runs) -> Surrogate:
        noted, on_latent, data = runs.noted(arm.model), self._kernel(space, arm), (runs.x, runs.y, runs.rngs)
        fresh = noted is None or any(due(note, runs.y.shape[1]) for note in noted)
        options: dict[str, Any] = {
            "outputs": self._outputs(space, runs),
            "priors": self.priors,
            "noise": runs.noise,
            "criterion": CRITERIA[self.criterion],
        }
        if arm.model == FULL:
            previous = None if fresh or noted is None else previous_parameters(noted)
            return fit_surrogate(on_latent, *data, previous=previous, **options)
        assert arm.nesting is not None
        if not (fresh and Arm(FULL) in self.arms_on(space)):
            return fit_nested(arm.nesting, on_latent, *data, previous=noted, fresh=fresh, **options)
        full = fit_surrogate(kernel(self.kernel, space), *data, **options)
        guess = arm.nesting.active(full.gradients(runs.x))
        nested = fit_nested(arm.nesting, on_latent, *data, previous=noted, fresh=fresh, guess=guess, **options)
        if self.criterion == "likelihood":  # no other one compares models
            runs.cache[f"{WORTH}:{arm.model}"] = worth_of_basis(nested, full, arm.nesting.bases.dim).tolist()
        return nested

    def _outputs(self, space: Manifold, runs: Runs) -> Callable[[Tensor], Outputs]:
        """How values are mapped to the model's units; "auto" compares likelihoods now and then."""
        if self.outputs != "auto" or runs.noise is not None:
            return (Standardise if self.outputs == "auto" else OUTPUTS[self.outputs]).fit
        return partial(Either.fit, steep=self._steep(space, runs).unsqueeze(-1))

    def _steep(self, space: Manifold, runs: Runs) -> Tensor:
        """Whether the values of each run are steep, (runs,): decided anew when their number has doubled."""
        if "steep" not in runs.cache:
            noted, n = runs.noted("steep"), runs.y.shape[1]
            if noted is None or n >= 2 * max(at for _, at in noted):
                found = steepness(kernel(self.kernel, space), runs.x, runs.y, runs.rngs, priors=self.priors)
                noted = [[steep, n] for steep in found.tolist()]
            runs.cache["steep"] = noted
        return torch.tensor([steep for steep, _ in runs.cache["steep"]], device=runs.x.device)

    def _kernel(self, space: Manifold, arm: Arm) -> ManifoldKernel:
        return kernel(self.kernel, space if arm.model == FULL or arm.nesting is None else arm.nesting.compared)

    def _acquisition(
        self, runs: Runs, surrogate: Surrogate, rules: list[Surrogate], reach: Reach | None = None
    ) -> Callable[[Tensor], Tensor]:
        """What is maximised, of points that the model sees, from which we reach the space of the constraints."""
        count, latent = runs.pending.shape[1], surrogate.mapping.latent
        seed = runs.y.shape[1] + count  # one for all runs of a batch, so that a run alone sees the same samples
        pending = surrogate.mapping.project(runs.pending).flatten(-len(latent.point_shape)) if count else None
        feasible, chance = runs.feasible, log_chance(rules, latent, reach or _same)
        gain = improvement(self.acquisition, surrogate.gp, pending, seed, noisy=runs.noisy, feasible=feasible)
        return constrained(gain, chance, feasible)


@dataclass(frozen=True, repr=False, kw_only=True)
class GaBO(Bayesian):
    """Fit a Gaussian process on the manifold, maximise an acquisition function there, evaluate, repeat.

    The first ``initial`` points are random. ``kernel``, ``acquisition``, ``outputs`` and ``optimiser`` are names from
    the registries of these; ``priors`` makes the fit maximum a posteriori instead of maximum likelihood.

    >>> import torch
    >>> from nestbo import History, Sphere
    >>> suggestion = GaBO().suggest(Sphere(2), History(), 1, torch.Generator().manual_seed(0))[0]
    >>> tuple(suggestion.x.shape)
    (3,)
    """

    @classmethod
    def paper(cls) -> Self:
        """As in the paper: geodesic Gaussian kernel, maximum likelihood, expected improvement, trust regions."""
        return cls(kernel="geodesic-gaussian", acquisition="ei", optimiser="trust-region", priors=False)

    @property
    def repeats(self) -> bool:
        return self == self.paper()

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(), cls.paper(), cls(kernel="gaussian", acquisition="ucb", outputs="bilog")]

    def arms_on(self, space: Manifold) -> list[Arm]:
        return [Arm(FULL)]


@dataclass(frozen=True, repr=False)
class HDGaBO(Bayesian):
    """Learn a small manifold nested in the space together with the model, and search there.

    ``latent_dim`` is that of the nested space: d of S^d, d of d×d matrices, for a product a tuple with None for a
    factor to leave whole, or "auto", which lets several compete. ``arms`` compete, too: "full" is GaBO on the space
    itself; "fitted", "incumbent" and "random" search the nested space and differ in the lift; "embedded" searches a
    random small sphere in the space, and another one when that is exhausted; "local", where there is no such sphere,
    searches trust regions of the nested space, one after the other, around other points than the best; and around the
    best one where ``latent_dim`` is that of the space. ``choice`` says who is next. ``exact`` takes distances of
    projected SPD matrices, the paper approximates them.

    >>> import nestbo as nb
    >>> study = nb.Study(nb.Sphere(20), nb.HDGaBO(latent_dim=2), seed=0)
    >>> hidden = nb.problem("ackley", nb.Sphere(20), latent_dim=2, seed=0)
    >>> _ = study.run(hidden.objective, 8, progress=False)
    >>> sorted(study.models())
    ['full', 'nested:2']
    """

    latent_dim: Any = "auto"
    arms: tuple[str, ...] = (FULL, "incumbent", EMBEDDED, LOCAL)
    choice: str = "balanced"
    exact: bool = True
    outputs: str = field(default="auto", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_latent_dim(self.latent_dim)
        check_choice("choice", self.choice, CHOICES)
        if not isinstance(self.arms, tuple) or not self.arms:
            raise ArgumentError(f"arms is a tuple of names ({', '.join(ARMS)}), got {self.arms!r}.")
        for name in self.arms:
            check_choice("An arm", name, ARMS)
        if len(set(self.arms)) < len(self.arms):
            raise ArgumentError(f"Each of arms is named once, got {self.arms!r}.")
        if not isinstance(self.exact, bool):
            raise ArgumentError(f"exact is True or False, got {self.exact!r}.")

    @classmethod
    def paper(cls, latent_dim: Any) -> Self:
        """As in the paper: one nested model, geodesic Gaussian kernel, approximate SPD distances, EI, fitted lift."""
        settings: dict[str, Any] = {"kernel": "geodesic-gaussian", "acquisition": "ei", "optimiser": "trust-region"}
        return cls(latent_dim, ("fitted",), exact=False, outputs="standardise", priors=False, **settings)

    @property
    def repeats(self) -> bool:
        return self == self.paper(self.latent_dim)

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(), cls(1), cls.paper(1), cls(1, ("random",), "in-turn", criterion="leave-one-out")]

    def arms_on(self, space: Manifold) -> list[Arm]:
        return arms_on(space, self.latent_dim, self.arms, logarithmic=not self.exact)

    def choose(self, arms: list[Arm], runs: Runs) -> list[Arm]:
        names, rule = [arm.name for arm in arms], CHOICES[self.choice]
        each = zip(runs.notes, runs.scores, runs.rngs, strict=True)
        under_way, constrained = runs.pending.shape[1], runs.constraints is not None
        return [arms[rule(names, notes, y, rng, under_way, constrained)] for notes, y, rng in each]


def _alike(keys: Sequence[Hashable]) -> list[list[int]]:
    """The places of equal keys, in the order of their first."""
    return [[k for k, key in enumerate(keys) if key == first] for first in dict.fromkeys(keys)]


def _each(x: Tensor, places: Sequence[int]) -> Tensor:
    """Of points (runs, n, *point) one of each run, (runs, *point)."""
    return torch.stack([points[place] for points, place in zip(x, places, strict=True)])


def _same(x: Tensor) -> Tensor:
    return x


def _together(parts: list[tuple[list[int], Reach]], axes: int, z: Tensor) -> Tensor:
    """Latent points (…, runs, 1, *point) lifted part by part."""
    runs = z.ndim - axes - 2
    if len(parts) == 1:
        return parts[0][1](z)
    lifted = [lift(z.index_select(runs, torch.tensor(which, device=z.device))) for which, lift in parts]
    order = torch.tensor([run for which, _ in parts for run in which], device=z.device).argsort()
    return torch.cat(lifted, runs).index_select(runs, order)


def _noise(surrogate: Surrogate) -> list[float]:
    """The variance of the noise of values near the best, as the model of each run has it: a finite number."""
    gp, back = surrogate.gp, surrogate.outputs.inverse
    best, deviation = gp.z.amin(-1, keepdim=True), (gp.scale * gp.noise).sqrt().unsqueeze(-1)
    found: list[float] = (back(best + deviation) - back(best)).square().nan_to_num().squeeze(-1).tolist()
    return found
