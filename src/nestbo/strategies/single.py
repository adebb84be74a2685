"""GaBO and HD-GaBO as they were published: one isotropic model, of the space or of a small one nested in it.

This is algorithm 1 of Jaquier and Rozo 2020: fit the model and the mapping to the nested space together, maximise the
acquisition function there, lift the point that it finds back to the space.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from nestbo.acquisition import OPTIMISERS
from nestbo.errors import ArgumentError, shown
from nestbo.kernels import ManifoldKernel, kernel
from nestbo.manifolds import Space
from nestbo.manifolds.base import check_size
from nestbo.memory import Memory
from nestbo.nested import NestedMapping, Nesting
from nestbo.outputs import OUTPUTS
from nestbo.search import Runs, Section, constraint_models, farthest, rule_fits, rule_name, same, search, unrepeated
from nestbo.search.runs import refits, together
from nestbo.strategies.base import alike
from nestbo.strategies.options import Modelling
from nestbo.surrogate import CRITERIA, Description, Surrogate, fit

_LIFT_ITERATIONS = 5  # its start is so good that three settle four digits

Lift = Callable[[Tensor], Tensor]


def fitted(mapping: NestedMapping, runs: Runs) -> Lift:
    """The lift nearest to all evaluated points, as in the paper."""
    return mapping.fit_lift(runs.x, max_iterations=_LIFT_ITERATIONS).lift


def incumbent(mapping: NestedMapping, runs: Runs) -> Lift:
    """The lift near the best point."""
    best = runs.best
    return lambda z: mapping.lift_near(z, best)


LIFTS: dict[str, Callable[[NestedMapping, Runs], Lift]] = {"fitted": fitted, "incumbent": incumbent}


@dataclass(frozen=True)
class Single(Modelling):
    """The settings of a method with one isotropic model, and the method."""

    repeats: bool
    name: str = "full"
    nesting: Nesting | None = None
    lift: str = "incumbent"

    def propose(self, space: Space, runs: Runs) -> tuple[Tensor, list[Memory]]:
        """One point for each run, with a memory."""
        x, memories = torch.empty_like(runs.x[:, 0]), [Memory() for _ in runs.rngs]
        efforts = [(refit.fit is None, refit.effort) for refit in refits(runs, self.name)]
        for which in alike(efforts).values():  # fits that take the same effort from the same kind of start
            x[which], found = self._propose(space, runs.take(which))
            for run, memory in zip(which, found, strict=True):
                memories[run] = memory
        return x, memories

    def _propose(self, space: Space, runs: Runs) -> tuple[Tensor, list[Memory]]:
        """The same for runs whose models are fitted alike."""
        model = self._fit(space, runs)
        rules = constraint_models(kernel(self.kernel, space), runs)
        section = self._section(space, model, _ranked(model, runs))
        x = space.project(search(section, rules, self.acquisition, OPTIMISERS[self.optimiser]))
        noise = model.noise_near_best if runs.noisy else [None] * len(x)
        fits = [{self.name: own} | rule_fits(rules, run) for run, own in enumerate(model.fits)]
        pairs = zip(fits, noise, strict=True)
        memories = [Memory(arm=self.name, fits=own, noise=variance) for own, variance in pairs]
        if self.repeats:
            return x, memories
        return unrepeated(space, x, memories, runs, partial(farthest, space, space, same, rules, runs))

    def _section(self, space: Space, model: Surrogate, runs: Runs) -> Section:
        """What is searched: the nested space, from which a lift leads back, or the space itself."""
        pending = model.seen(runs.pending)
        if self.nesting is None:
            return Section(space, same, same, runs.x, model, runs, pending)
        lift = LIFTS[self.lift](model.mapping, runs)
        return Section(self.nesting.latent, lift, same, model.latent_points, model, runs, pending)

    def _fit(self, space: Space, runs: Runs) -> Surrogate:
        """The model of each run, from where its last fit ended."""
        outputs, criterion = OUTPUTS[self.outputs].fit, CRITERIA[self.criterion]
        model = Description(self._kernel(space), self.nesting, outputs, self.priors, criterion)
        return fit(model, runs.data, *together(refits(runs, self.name)))

    def _kernel(self, space: Space) -> ManifoldKernel:
        return kernel(self.kernel, space if self.nesting is None else self.nesting.compared)

    def check(self, space: Space) -> None:
        """Refuse a kernel that the space does not have."""
        self._kernel(space)

    def models(self, space: Space, runs: Runs) -> dict[str, Surrogate]:
        """The model behind the next suggestion, and those of observed constraints."""
        rules = constraint_models(kernel(self.kernel, space), runs)
        return {self.name: self._fit(space, runs)} | {rule_name(k): rule for k, rule in enumerate(rules)}

    def names(self, space: Space, runs: Runs) -> list[str]:
        """That of the model."""
        return [self.name]


def _ranked(model: Surrogate, runs: Runs) -> Runs:
    """The runs, ranked by the model where values are noisy."""
    if not runs.noisy:
        return runs
    mean, _ = model.gp.moments(model.latent_points)
    if runs.whole is None:
        return replace(runs, posterior=mean)
    all_means, _ = model.gp.moments_in_parts(model.mapping.project(runs.whole.x))
    return replace(runs, posterior=mean, whole=replace(runs.whole, posterior=all_means))


def words(latent_dim: Any) -> str:
    """A latent dimension in the name of a model."""
    sizes = latent_dim if isinstance(latent_dim, tuple) else (latent_dim,)
    return ",".join("none" if size is None else str(size) for size in sizes)


def check_latent_dim(latent_dim: Any) -> None:
    """Refuse what cannot be a latent dimension of any space."""
    if latent_dim == "auto":
        return
    if isinstance(latent_dim, tuple) and latent_dim and "auto" not in latent_dim:
        for size in latent_dim:
            if size is not None:
                check_latent_dim(size)
        return
    if isinstance(latent_dim, str | tuple):
        raise ArgumentError(f'latent_dim is a whole number, "auto", or a tuple for a product, got {shown(latent_dim)}.')
    check_size("latent_dim", latent_dim)
