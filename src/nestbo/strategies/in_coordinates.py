"""What the methods in coordinates share: one Gaussian process on vectors; what they search tells them apart."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from nestbo.acquisition import ACQUISITIONS, OPTIMISERS
from nestbo.errors import ArgumentError
from nestbo.kernels import kernel
from nestbo.manifolds import Euclidean, Space
from nestbo.manifolds.base import check_size
from nestbo.memory import Memory
from nestbo.search import Runs, Section, constraint_models, farthest, rule_fits, search, seen, unrepeated
from nestbo.search.runs import refits, together
from nestbo.strategies.base import Strategy, check_choice
from nestbo.strategies.coordinates import COORDINATES, Vectors, vectors
from nestbo.strategies.options import Acquisition, CoordinateClimb, Coordinates
from nestbo.surrogate import Description, Surrogate, fit

_MODEL = "model"  # in memories
_CLIMBS = ("lbfgs", "slsqp")


@dataclass(frozen=True)
class Reduction:
    """Where a method searches, and what its model sees.

    The search goes over ``domain``, whose points z (…, runs, 1, *point) ``reach`` takes to the space. The model sees
    the coordinates (…, runs, n, size) of points of the space through ``reduce``. ``starts`` (runs, n, *point) are where
    the evaluated points lie in the domain. Since a candidate is judged as ``reduce`` of what ``reach`` makes of it, the
    model is asked about the point that will be evaluated, on the space, not about one that projection then moves.
    """

    domain: Space
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

    coordinates: Coordinates = "matrix"
    acquisition: Acquisition = "ei"
    initial: int = 5
    optimiser: CoordinateClimb = "lbfgs"

    def __post_init__(self) -> None:
        check_size("The number of initial points", self.initial)
        known: dict[str, Any] = {"coordinates": COORDINATES, "acquisition": ACQUISITIONS, "optimiser": _CLIMBS}
        for name, names in known.items():
            check_choice(name, getattr(self, name), names)

    @abstractmethod
    def reduction(self, on: Vectors, runs: Runs) -> Reduction:
        """Where the next point of each run is looked for.

        Args:
            on: The coordinates of the space.
            runs: The data: evaluations, pending points and memories of each run.
        """

    def check(self, space: Space) -> None:
        size, wanted = vectors(space, self.coordinates).size, getattr(self, "latent_dim", 1)
        if wanted > size:
            raise ArgumentError(f"{space} has {size} coordinates, got latent_dim={wanted}. Take at most {size}.")

    def propose(self, space: Space, runs: Runs) -> tuple[Tensor, list[Memory]]:
        if not runs.begun(self.initial):
            return runs.random(space), [Memory() for _ in runs.rngs]
        on, runs = vectors(space, self.coordinates), seen(space, runs)
        return self.searched(on, self.reduction(on, runs), runs, runs)

    def searched(self, on: Vectors, part: Reduction, runs: Runs, known: Runs) -> tuple[Tensor, list[Memory]]:
        """Fit the model, and find where it promises most; at no point that is known.

        Args:
            on: The coordinates of the space.
            part: Where the next point of each run is looked for.
            runs: The evaluations that the model sees.
            known: All evaluations, none of which is suggested again.
        """
        inputs = part.reduce(on.coordinates(runs.x))
        unit = unit_of(inputs)
        surrogate = fit_vectors(inputs / unit, runs)
        rules = constraint_models(kernel("gaussian", on.space), runs)
        if runs.noisy:
            runs = replace(runs, posterior=surrogate.gp.moments(inputs / unit)[0])
        section = _section(on, part, surrogate, unit, runs)
        x = search(section, rules, self.acquisition, OPTIMISERS[self.optimiser])
        fits = [{_MODEL: own} | rule_fits(rules, run) for run, own in enumerate(surrogate.fits)]
        explore = partial(farthest, on.space, part.domain, part.reach, rules, runs)
        return unrepeated(on.space, on.space.project(x), [Memory(fits=each) for each in fits], known, explore)


def _section(on: Vectors, part: Reduction, model: Surrogate, unit: Tensor, runs: Runs) -> Section:
    """The same for the search that all methods share."""

    def see(z: Tensor) -> Tensor:
        x = part.reach(z.unflatten(-1, part.domain.point_shape))
        return part.reduce(on.coordinates(x)) / unit

    pending = part.reduce(on.coordinates(runs.pending)) / unit if runs.pending.shape[1] else None
    return Section(part.domain, part.reach, see, part.starts, model, runs, pending)


def unit_of(inputs: Tensor) -> Tensor:
    """The root mean square deviation of the inputs (runs, n, k) of each run, (runs, 1, 1): their unit; 1 for none."""
    deviation = (inputs - inputs.mean(1, keepdim=True)).square().mean((1, 2), keepdim=True).sqrt()
    size = inputs.abs().amax((1, 2), keepdim=True)
    return torch.where(deviation > 1e-12 * size, deviation, 1)


def fit_vectors(inputs: Tensor, runs: Runs) -> Surrogate:
    """A Gaussian process on vectors (runs, n, k): SE kernel, maximum likelihood, from the last fit now and then."""
    gaussian = kernel("gaussian", Euclidean(inputs.shape[-1]))
    previous, effort = together(refits(runs, _MODEL, shared=False))  # the next suggestion may look at other coordinates
    return fit(Description(gaussian, priors=False), replace(runs.data, x=inputs), previous, effort)
