"""What the methods in coordinates share: one Gaussian process, one search, and a section that tells them apart."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from nestbo.acquisition import ACQUISITIONS, constrained, improvement, search
from nestbo.errors import ArgumentError
from nestbo.kernels import kernel
from nestbo.manifolds import Euclidean, Manifold
from nestbo.manifolds.base import check_size
from nestbo.optimise import Result, lbfgs
from nestbo.optimise.slsqp import slsqp
from nestbo.strategies.base import Strategy, check_choice, due
from nestbo.strategies.coordinates import COORDINATES, Chart, chart
from nestbo.strategies.exploring import farthest
from nestbo.strategies.feasibility import constraint_models, constraint_notes, limits, log_chance
from nestbo.strategies.repeats import unrepeated
from nestbo.strategies.runs import Runs
from nestbo.surrogate import Surrogate, fit_surrogate, previous_parameters

_MODEL = "model"  # in the notes


def patient_slsqp(*arguments: Any, **options: Any) -> Result:
    """SLSQP that is given time to converge."""
    return slsqp(*arguments, **options | {"max_iterations": 200, "tolerance": 1e-9})


OPTIMISERS: dict[str, Callable[..., Result]] = {"lbfgs": lbfgs, "slsqp": patient_slsqp}


@dataclass(frozen=True)
class Section:
    """Where a method searches, and what its model sees.

    The search goes over ``domain``, whose points z (…, runs, 1, *point) ``reach`` takes to the space. The model sees
    the coordinates (…, runs, n, size) of points of the space through ``reduce``. ``starts`` (runs, n, *point) are where
    the evaluated points lie in the domain. Since a candidate is judged as ``reduce`` of what ``reach`` makes of it, the
    model is asked about the point that will be evaluated, on the space, not about one that projection then moves.
    """

    domain: Manifold
    reach: Callable[[Tensor], Tensor]
    reduce: Callable[[Tensor], Tensor]
    starts: Tensor


@dataclass(frozen=True, repr=False, kw_only=True)
class InCoordinates(Strategy):
    """A method that knows the space as vectors only: ambient vectors, entries of matrices or of Cholesky factors.

    As in the comparison of Jaquier and Rozo 2020, section 4: the SE kernel of these vectors, maximum likelihood on
    standardised values, expected improvement. Where they search with SLSQP under the constraints of the space, the
    batched optimiser searches the space itself, which is the same set; ``optimiser="slsqp"`` does as they do, slowly.
    """

    coordinates: str = "matrix"
    acquisition: str = "ei"
    initial: int = 5
    optimiser: str = "lbfgs"

    def __post_init__(self) -> None:
        check_size("The number of initial points", self.initial)
        known: dict[str, Any] = {"coordinates": COORDINATES, "acquisition": ACQUISITIONS, "optimiser": OPTIMISERS}
        for name, names in known.items():
            check_choice(name, getattr(self, name), names)

    @abstractmethod
    def section(self, chart: Chart, runs: Runs) -> Section:
        """Where the next point of each run is looked for."""

    def check(self, space: Manifold) -> None:
        size, wanted = chart(space, self.coordinates).size, getattr(self, "latent_dim", 1)
        if wanted > size:
            raise ArgumentError(f"{space} has {size} coordinates, got latent_dim={wanted}. Take at most {size}.")

    def propose(self, space: Manifold, runs: Runs) -> tuple[Tensor, list[dict[str, Any]]]:
        if runs.y.shape[1] == 0 or runs.y.shape[1] + runs.pending.shape[1] < self.initial:
            return runs.random(space), [{} for _ in runs.rngs]
        on = chart(space, self.coordinates)
        x, notes, explore = self.search(on, self.section(on, runs), runs)
        return unrepeated(space, x, notes, runs, explore)

    def search(
        self, chart: Chart, section: Section, runs: Runs
    ) -> tuple[Tensor, list[dict[str, Any]], Callable[[], Tensor]]:
        """Fit the model, and find where it promises most on the section; and who explores if that is known already."""
        inputs = section.reduce(chart.coordinates(runs.x))
        unit = spread(inputs)
        surrogate = fit(inputs / unit, runs)
        pending = section.reduce(chart.coordinates(runs.pending)) / unit if runs.pending.shape[1] else None
        seed = runs.y.shape[1] + runs.pending.shape[1]  # one for all runs, so that a run alone sees the same samples
        rules = constraint_models(kernel("gaussian", chart.space), runs)
        notes = constraint_notes(rules, [{_MODEL: note} for note in surrogate.notes])
        if runs.noisy:
            runs = replace(runs, posterior=surrogate.gp.moments(inputs / unit)[0])
        gain = improvement(self.acquisition, surrogate.gp, pending, seed, noisy=runs.noisy, feasible=runs.feasible)
        chance = log_chance(rules, section.domain, section.reach)

        def worth(z: Tensor) -> Tensor:
            x = section.reach(z.unflatten(-1, section.domain.point_shape))
            value: Tensor = gain(section.reduce(chart.coordinates(x)) / unit)
            return value

        within, optimiser = limits(runs.allowed, section.domain, section.reach), OPTIMISERS[self.optimiser]
        value = constrained(worth, chance, runs.feasible)
        z = search(value, section.domain, section.starts, runs.ranking, runs.rngs, optimiser=optimiser, limits=within)
        x = section.reach(z.unsqueeze(1)).squeeze(1)
        explore = partial(farthest, chart.space, section.domain, section.reach, rules, runs)
        return chart.space.project(x), notes, explore


def spread(inputs: Tensor) -> Tensor:
    """The root mean square deviation of the inputs (runs, n, k) of each run, (runs, 1, 1): their unit; 1 for none."""
    deviation = (inputs - inputs.mean(1, keepdim=True)).square().mean((1, 2), keepdim=True).sqrt()
    size = inputs.abs().amax((1, 2), keepdim=True)
    return torch.where(deviation > 1e-12 * size, deviation, 1)


def fit(inputs: Tensor, runs: Runs) -> Surrogate:
    """A Gaussian process on vectors (runs, n, k): SE kernel, maximum likelihood, from the last fit now and then."""
    gaussian, noted = kernel("gaussian", Euclidean(inputs.shape[-1])), runs.noted(_MODEL)
    fresh = noted is None or any(due(note, runs.y.shape[1]) for note in noted)
    previous = None if fresh or noted is None else previous_parameters(noted)
    return fit_surrogate(gaussian, inputs, runs.y, runs.rngs, priors=False, previous=previous, noise=runs.noise)
