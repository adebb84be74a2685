"""Several objectives: a model of each, and the point from whose values the front is expected to gain most.

What is maximised is the expected gain of hypervolume over what is not quite known, the front of all evaluations, noisy
or not (qLogNEHVI of BoTorch: Daulton, Balandat and Bakshy 2021; Ament et al. 2023). Points under evaluation count as
part of the front, with values that the models expect there.
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
from nestbo.kernels import ManifoldKernel, kernel
from nestbo.manifolds import Space
from nestbo.memory import Memory
from nestbo.outputs import OUTPUTS
from nestbo.search import Runs, Section, constraint_models, farthest, rule_fits, rule_name, same, unrepeated
from nestbo.search.feasibility import log_chance
from nestbo.search.runs import refits, together
from nestbo.search.sections import climb
from nestbo.surrogate import GP, Data, Description, Surrogate, fit

_LATE = (
    "botorch.acquisition.multi_objective.logei",
    "botorch.acquisition.multi_objective.objective",
    "botorch.sampling.normal",
)
_ARM = "front"  # what memories call who made a suggestion
_SAMPLES = {2: 64, 3: 16}  # of the values at the front; for each one the space beyond is cut into boxes
_FEWEST_SAMPLES = 8  # of four objectives and more, where there are many boxes
_BASELINE = 24  # evaluations that may belong to the front of noisy ones
_AT_ONCE = 2**23  # correlations that are held in memory: 64 MB, a few times
_BEYOND = 0.1  # of the range of values: how much worse than the worst one the reference is
_JOINTLY = 32  # points under evaluation whose values are sampled; of more the expected values are believed


def objective_name(k: int) -> str:
    """What the model of the k-th objective is called in memories."""
    return f"objective:{k}"


class Joint(Model):  # type: ignore[misc]
    """Processes of m objectives, the runs of a batch, as one BoTorch model with m independent outputs."""

    def __init__(self, gp: GP) -> None:
        super().__init__()
        self.gp = gp

    @property
    def num_outputs(self) -> int:
        return len(self.gp.z)

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
        found = self.gp.posterior(each, observation_noise=observation_noise).distribution
        posterior = GPyTorchPosterior(MultitaskMultivariateNormal.from_batch_mvn(found, task_dim=-1))
        return posterior if posterior_transform is None else posterior_transform(posterior)


def hypervolume_gain(gp: GP, runs: Runs, pending: Tensor | None) -> Callable[[Tensor], Tensor]:
    """The logarithm of the expected gain of hypervolume, a function of flat points (…, q, size).

    ``gp`` are the processes of the objectives, ``runs`` a single run, and ``pending`` (m, size) points under
    evaluation. The hypervolume is in the units of the models.
    """
    load(*_LATE)
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
    from botorch.acquisition.multi_objective.objective import GenericMCMultiOutputObjective
    from botorch.sampling import SobolQMCNormalSampler

    seed, among = runs.y.shape[1] + (0 if pending is None else len(pending)), _among(runs)
    if pending is not None and len(pending) > _JOINTLY:
        points = pending.unflatten(-1, gp.kernel.space.point_shape)
        gp, pending = gp.given(points.expand(len(gp.z), *points.shape)), None
        among = torch.cat([among, among.new_ones(len(points))])
    outcomes = (gp.moments(gp.x)[0] if runs.noisy else gp.z).mT
    baseline = _baseline(outcomes, among, runs.noisy)
    samples = _SAMPLES.get(len(gp.z), _FEWEST_SAMPLES)
    with _uncompiled():
        gain: Callable[[Tensor], Tensor] = qLogNoisyExpectedHypervolumeImprovement(
            Joint(gp),
            -_reference(outcomes[among]),
            gp.x[0, baseline].flatten(1),
            sampler=SobolQMCNormalSampler(torch.Size([samples]), seed=seed),
            objective=GenericMCMultiOutputObjective(lambda values, X=None: -values),  # noqa: N803
            X_pending=pending,
            cache_root=False,
        )
    correlations = (len(baseline) + 1) * gp.z.numel()  # of one candidate and the front with all evaluations
    return partial(_in_parts, gain, max(1, _AT_ONCE // correlations))


def _in_parts(gain: Callable[[Tensor], Tensor], count: int, x: Tensor) -> Tensor:
    """The gain at points (n, …, q, size), so many at a time as memory allows."""
    return torch.cat([gain(part) for part in x.split(count)])


def _among(runs: Runs) -> Tensor:
    """Which evaluations (n,) may belong to the front: those that succeeded and are feasible, if there are any."""
    told = torch.ones_like(runs.y[0], dtype=torch.bool)
    for kept in (None if runs.failed is None else ~runs.failed[0], None if runs.feasible is None else runs.feasible[0]):
        if kept is not None and (told & kept).any():
            told = told & kept
    return told


def _reference(outcomes: Tensor) -> Tensor:
    """Up to where volume counts, (m,): a little worse than the worst of outcomes (n, m).

    A reference close to the front, as is common, gives its ends no value: the search then never finds them.
    """
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

    def propose(self, space: Space, runs: Runs) -> tuple[Tensor, list[Memory]]:
        """One point for each run, with a memory; one run after the other, for each has boxes of its own."""
        found = [self._suggest(space, runs.take([run])) for run in range(len(runs.rngs))]
        return torch.cat([x for x, _ in found]), [memory for _, memories in found for memory in memories]

    def models(self, space: Space, runs: Runs) -> dict[str, Surrogate]:
        """The model of each objective, and those of observed constraints."""
        on = kernel(self.kernel, space)
        found = self._fit(on, runs.take([0]))
        each = {objective_name(k): found.take([k]) for k in range(len(found.fits))}
        return each | {rule_name(k): rule for k, rule in enumerate(constraint_models(on, runs))}

    def promise(self, space: Space, runs: Runs, x: Tensor) -> Tensor:
        """What is maximised, at points x (n, *point), (n,): the gain, and the chance that observed constraints hold."""
        on = kernel(self.kernel, space)
        model, rules = self._fit(on, runs), constraint_models(on, runs)
        chance = log_chance(rules, space, same)
        with torch.no_grad():
            flat = x.flatten(1)[:, None, None]
            return constrained(_gain(model, runs), chance, runs.feasible)(flat).reshape(len(x))

    def _suggest(self, space: Space, runs: Runs) -> tuple[Tensor, list[Memory]]:
        """The suggestion of a single run."""
        on = kernel(self.kernel, space)
        model, rules = self._fit(on, runs), constraint_models(on, runs)
        section = Section(space, same, same, runs.x, model, _ranked(model, runs), model.seen(runs.pending))
        gain = _gain(model, runs)
        x = space.project(climb(section, gain, rules, OPTIMISERS[self.optimiser]))
        own = {objective_name(k): one for k, one in enumerate(model.fits)}
        memories = [Memory(arm=_ARM, fits=own | rule_fits(rules, 0))]
        return unrepeated(space, x, memories, runs, partial(farthest, space, space, same, rules, runs))

    def _fit(self, on: ManifoldKernel, runs: Runs) -> Surrogate:
        """A model of each objective of a single run, fitted together: the objectives are the runs of a batch."""
        assert runs.outcomes is not None
        y = runs.outcomes[0].mT.contiguous()
        x = runs.x.expand(len(y), *runs.x.shape[1:])
        noise = None if runs.variances is None else y.new_tensor(runs.variances).unsqueeze(-1).expand(y.shape)
        previous, effort = together([refits(runs, objective_name(k))[0] for k in range(len(y))])
        data = Data(x, y, runs.rngs * len(y), noise, runs.data.chosen_of)
        return fit(Description(on, outputs=OUTPUTS[self.outputs].fit, priors=self.priors), data, previous, effort)


def _gain(model: Surrogate, runs: Runs) -> Callable[[Tensor], Tensor]:
    """The gain that models of the objectives of a single run promise."""
    pending = model.seen(runs.pending)
    return hypervolume_gain(model.gp, runs, None if pending is None else pending[0])


def _ranked(model: Surrogate, runs: Runs) -> Runs:
    """The run, ranked by the models where values are noisy."""
    if not runs.noisy:
        return runs
    mean, _ = model.gp.moments(model.gp.x)
    return replace(runs, posterior=ranks(mean.mT).unsqueeze(0))
