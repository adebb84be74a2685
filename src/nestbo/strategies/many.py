"""Several objectives: a model of each, and the point from whose values the front is expected to gain most.

What is maximised is the expected gain of hypervolume over what is not quite known, the front of all evaluations, noisy
or not (qLogNEHVI of BoTorch: Daulton, Balandat and Bakshy 2021; Ament et al. 2023). Points under evaluation count as
part of the front, with values that the models expect there. Of three and more objectives, exact values and nothing
under evaluation, the front is known, and qLogEHVI says the same in less time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from gpytorch.distributions import MultitaskMultivariateNormal
from torch import Tensor

from nestbo.acquisition import OPTIMISERS, constrained
from nestbo.fronts import non_dominated, ranks
from nestbo.interrupts import load
from nestbo.kernels import kernel
from nestbo.manifolds import Space
from nestbo.memory import Memory
from nestbo.outputs import OUTPUTS
from nestbo.search import Runs, Section, constraint_models, farthest, rule_fits, rule_name, same, unrepeated
from nestbo.search.feasibility import log_chance
from nestbo.search.runs import refits, together
from nestbo.search.sections import climb
from nestbo.strategies.competing import Kind
from nestbo.surrogate import Data, Description, Surrogate, fit

_LATE = (
    "botorch.acquisition.multi_objective.logei",
    "botorch.acquisition.multi_objective.objective",
    "botorch.sampling.normal",
    "botorch.utils.multi_objective.box_decompositions.non_dominated",
)
_ARM = "front"  # what memories call who made a suggestion
_SAMPLES = {2: 64, 3: 16}  # of the values at the front; for each one the space beyond is cut into boxes
_FEWEST_SAMPLES = 8  # of four objectives and more, where there are many boxes
_BASELINE = 24  # evaluations that may belong to the front of noisy ones
_AT_ONCE = 2**23  # correlations that are held in memory: 64 MB, a few times
_WITHOUT = Kind("isotropic")
_KINDS = {
    "isotropic": _WITHOUT,
    "diagonal": Kind("diagonal", strength=1.0, diagonal=True),
    "full": Kind("full", strength=1.0),
    "auto": _WITHOUT,  # with a diagonal metric as a rival, DTLZ2 on Box(6) ended no better and began slower
}
_BEYOND = 0.1  # of the range of values: how much worse than the worst one the reference is
_FAR = 3  # every so many suggestions, the reference is worse than all values
_JOINTLY = 32  # points under evaluation whose values are sampled; of more the expected values are believed


def objective_name(k: int) -> str:
    """What the model of the k-th objective is called in memories."""
    return f"objective:{k}"


class Joint(Model):  # type: ignore[misc]
    """Models of m objectives, the runs of a batch, as one BoTorch model with m independent outputs.

    It takes flat points of the space. Each objective may see them by a metric of its own.
    """

    def __init__(self, model: Surrogate) -> None:
        super().__init__()
        self.model = model

    @property
    def num_outputs(self) -> int:
        return len(self.model.gp.z)

    @property
    def batch_shape(self) -> torch.Size:
        return torch.Size()

    def posterior(
        self,
        X: Tensor,  # noqa: N803
        output_indices: list[int] | None = None,
        observation_noise: bool = False,
        posterior_transform: Callable[[GPyTorchPosterior], Any] | None = None,
    ) -> Any:
        """The joint posterior at X (…, q, size), of all objectives."""
        each = X.unsqueeze(-3).expand(*X.shape[:-2], self.num_outputs, *X.shape[-2:])
        seen = _flat(self.model, each.unflatten(-1, self.model.mapping.ambient.point_shape))
        found = self.model.gp.posterior(seen, observation_noise=observation_noise).distribution
        posterior = GPyTorchPosterior(MultitaskMultivariateNormal.from_batch_mvn(found, task_dim=-1))
        return posterior if posterior_transform is None else posterior_transform(posterior)


def _flat(model: Surrogate, x: Tensor) -> Tensor:
    """What the models of m objectives see of points (…, m, q, *point), flat."""
    return model.see(x).flatten(-len(model.gp.kernel.space.point_shape))


def hypervolume_gain(model: Surrogate, runs: Runs) -> Callable[[Tensor], Tensor]:
    """The logarithm of the expected gain of hypervolume, a function of flat points (…, q, size) of the space.

    ``model`` holds the models of the objectives, ``runs`` is a single run. Its points under evaluation count as part of
    the front. The hypervolume is in the units of the models.
    """
    load(*_LATE)
    from botorch.acquisition.multi_objective.objective import GenericMCMultiOutputObjective
    from botorch.sampling import SobolQMCNormalSampler

    x, pending, among = runs.x[0], runs.pending[0], _among(runs)
    if len(pending) > _JOINTLY:
        believed = model.see(pending.expand(len(model.gp.z), *pending.shape))
        model = replace(model, gp=model.gp.given(believed))
        x, among = torch.cat([x, pending]), torch.cat([among, among.new_ones(len(pending))])
        pending = pending[:0]
    gp = model.gp
    outcomes = (gp.moments(gp.x)[0] if runs.noisy else gp.z).mT
    baseline, reference = _baseline(outcomes, among, runs.noisy), -_reference(outcomes[among], runs.count)
    known = len(gp.z) > 2 and not runs.noisy and not len(pending)
    samples = _SAMPLES.get(len(gp.z), _FEWEST_SAMPLES)
    options = {
        "sampler": SobolQMCNormalSampler(torch.Size([samples]), seed=runs.count),
        "objective": GenericMCMultiOutputObjective(lambda values, X=None: -values),  # noqa: N803
    }
    if known:
        return _over_known_front(Joint(model), reference, -outcomes[baseline], options)
    options |= {"X_pending": pending.flatten(1) if len(pending) else None, "cache_root": False}
    return _over_uncertain_front(Joint(model), reference, x[baseline].flatten(1), options)


def _over_uncertain_front(
    model: Joint, reference: Tensor, front: Tensor, options: dict[str, Any]
) -> Callable[[Tensor], Tensor]:
    """The gain over the unknown values at points front (n, size); the space beyond is cut for each sample of these."""
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement

    with _uncompiled():
        gain = qLogNoisyExpectedHypervolumeImprovement(model, reference, front, **options)
    correlations = (len(front) + 1) * model.model.gp.z.numel()  # of one candidate and the front with all evaluations
    return partial(_in_parts, gain, max(1, _AT_ONCE // correlations))


def _over_known_front(
    model: Joint, reference: Tensor, front: Tensor, options: dict[str, Any]
) -> Callable[[Tensor], Tensor]:
    """The gain over exact values front (n, m); the space beyond is cut once."""
    from botorch.acquisition.multi_objective.logei import qLogExpectedHypervolumeImprovement
    from botorch.utils.multi_objective.box_decompositions.non_dominated import FastNondominatedPartitioning

    with _uncompiled():
        cut = FastNondominatedPartitioning(reference, front)
        gain = qLogExpectedHypervolumeImprovement(model, reference, cut, **options)
    volumes = options["sampler"].sample_shape.numel() * cut.hypercell_bounds.numel()  # of one candidate
    return partial(_in_parts, gain, max(1, _AT_ONCE // volumes))


def _in_parts(gain: Callable[[Tensor], Tensor], count: int, x: Tensor) -> Tensor:
    """The gain at points (n, …, q, size), so many at a time as memory allows."""
    return torch.cat([gain(part) for part in x.split(count)])


def _among(runs: Runs) -> Tensor:
    """Which evaluations (n,) may belong to the front: those that succeeded and are feasible, if there are any."""
    told = torch.ones_like(runs.y[0], dtype=torch.bool)
    finished = None if runs.failed is None else ~runs.failed
    for kept in (finished, runs.feasible):
        if kept is not None and (told & kept[0]).any():
            told = told & kept[0]
    return told


def _reference(outcomes: Tensor, count: int) -> Tensor:
    """Up to where volume counts, (m,), after so many evaluations with outcomes (n, m).

    It is a little worse than the worst of the front, so that the front is filled and pushed. Now and then it is a
    little worse than all outcomes: a reference close to the front gives what lies beyond its ends no value.
    """
    front = outcomes if count % _FAR == 0 else outcomes[non_dominated(outcomes)]
    worst, best = front.amax(0), front.amin(0)
    if bool((worst > best).all()):
        return worst + _BEYOND * (worst - best)
    worst, best = outcomes.amax(0), outcomes.amin(0)
    return worst + _BEYOND * torch.where(worst > best, worst - best, 1)


def _baseline(outcomes: Tensor, among: Tensor, noisy: bool) -> Tensor:
    """The places of the front of outcomes (n, m); where these are noisy, of all that may belong to it."""
    places = among.nonzero().flatten()
    front = places[non_dominated(outcomes[places])]
    if not noisy:
        return front
    return places[ranks(outcomes[places]).argsort(stable=True)[: max(_BASELINE, len(front))]]


@contextmanager
def _uncompiled() -> Iterator[None]:
    """Keep BoTorch from compiling a kernel when such a function is first made: half a minute, if there is a compiler.

    What it computes without is the same.
    """
    from botorch.acquisition.multi_objective import logei

    attempted = getattr(logei, "_load_attempted", True)
    logei._load_attempted = True
    try:
        yield
    finally:
        logei._load_attempted = attempted


@dataclass(frozen=True)
class Many:
    """The settings of a method for several objectives, and the method."""

    kernel: str
    outputs: str
    optimiser: str
    priors: bool
    metric: str = "isotropic"

    def propose(self, space: Space, runs: Runs) -> tuple[Tensor, list[Memory]]:
        """One point for each run, with a memory; one run after the other, for each has boxes of its own."""
        found = [self._suggest(space, runs.take([run])) for run in range(len(runs.rngs))]
        return torch.cat([x for x, _ in found]), [memory for _, memories in found for memory in memories]

    def models(self, space: Space, runs: Runs) -> dict[str, Surrogate]:
        """The model of each objective, and those of observed constraints."""
        found = self._fit(space, runs.take([0]))
        each = {objective_name(k): found.take([k]) for k in range(len(found.fits))}
        return each | {rule_name(k): rule for k, rule in enumerate(self._rules(space, runs))}

    def promise(self, space: Space, runs: Runs, x: Tensor) -> Tensor:
        """What is maximised, at points x (n, *point), (n,): the gain, and the chance that observed constraints hold."""
        model, rules = self._fit(space, runs), self._rules(space, runs)
        chance = log_chance(rules, space, same)
        with torch.no_grad():
            flat = x.flatten(1)[:, None, None]
            return constrained(hypervolume_gain(model, runs), chance, runs.feasible)(flat).reshape(len(x))

    def _suggest(self, space: Space, runs: Runs) -> tuple[Tensor, list[Memory]]:
        """The suggestion of a single run."""
        model, rules = self._fit(space, runs), self._rules(space, runs)
        section = Section(space, same, same, runs.x, model, _ranked(model, runs), None)
        x = space.project(climb(section, hypervolume_gain(model, runs), rules, OPTIMISERS[self.optimiser]))
        own = {_fit_name(self._kind(space), k): one for k, one in enumerate(model.fits)}
        memories = [Memory(arm=_ARM, fits=own | rule_fits(rules, 0))]
        return unrepeated(space, x, memories, runs, partial(farthest, space, space, same, rules, runs))

    def _rules(self, space: Space, runs: Runs) -> list[Surrogate]:
        return constraint_models(kernel(self.kernel, space), runs)

    def _kind(self, space: Space) -> Kind:
        """Which model: one without a metric where a metric has nothing to learn, such as a diagonal one on a sphere."""
        kind = _KINDS[self.metric]
        metric = kind.metric(space)
        return _WITHOUT if metric is None or not metric.size else kind

    def _fit(self, space: Space, runs: Runs) -> Surrogate:
        """A model of each objective of a single run, fitted together: the objectives are the runs of a batch."""
        assert runs.outcomes is not None
        y = runs.outcomes[0].mT.contiguous()
        x = runs.x.expand(len(y), *runs.x.shape[1:])
        noise = None if runs.variances is None else y.new_tensor(runs.variances).unsqueeze(-1).expand(y.shape)
        kind = self._kind(space)
        previous, effort = together([refits(runs, _fit_name(kind, k))[0] for k in range(len(y))])
        data = Data(x, y, runs.rngs * len(y), noise, runs.data.chosen_of)
        return fit(self._description(space, kind), data, previous, effort)

    def _description(self, space: Space, kind: Kind) -> Description:
        metric = kind.metric(space)
        on = kernel(self.kernel, space if metric is None else metric.sight.seen)
        return Description(on, outputs=OUTPUTS[self.outputs].fit, priors=self.priors, metric=metric)


def _fit_name(kind: Kind, k: int) -> str:
    """What the fit of the model of the k-th objective is called in memories."""
    return objective_name(k) if kind is _WITHOUT else f"{objective_name(k)}:{kind.name}"


def _ranked(model: Surrogate, runs: Runs) -> Runs:
    """The run, ranked by the models where values are noisy."""
    if not runs.noisy:
        return runs
    mean, _ = model.gp.moments(model.gp.x)
    return replace(runs, posterior=ranks(mean.mT).unsqueeze(0))
