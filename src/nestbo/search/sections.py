"""What a suggestion is looked for in, and how: one search for every method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from nestbo.acquisition import Optimiser, candidates, constrained, improvement
from nestbo.manifolds import Manifold, Space, leaf
from nestbo.search.feasibility import limits, log_chance
from nestbo.search.mixed import Climb, over_separate_values
from nestbo.search.runs import Runs
from nestbo.surrogate import Surrogate

Map = Callable[[Tensor], Tensor]
_FEW = 10  # dimensions: one step in more of them costs more, so there are fewer
_RESTARTS, _FEWER = 8, 4  # of climbs in few and in many dimensions
_PENALTY = 100.0  # at the centre of a closed basin


def same(x: Tensor) -> Tensor:
    """The identity."""
    return x


@dataclass(frozen=True)
class Basins:
    """Closed basins of a model: where its correlation with one of the centres is at least that at their edge.

    ``centres`` (runs, c, *point) are as the kernel sees them, ``real`` (runs, c) says which of them are there, ``edge``
    (runs,) is the correlation at the edge of each run's, and ``free`` (runs, n) says which evaluations are outside.
    """

    model: Surrogate
    centres: Tensor
    real: Tensor
    edge: Tensor
    free: Tensor

    def keep_out(self, worth: Map, see: Map) -> Map:
        """A function of flat points of a domain with a penalty inside, which is largest at the centres."""
        gp, edge = self.model.gp, self.edge.unsqueeze(-1)

        def outside(z: Tensor) -> Tensor:
            seen = see(z).unflatten(-1, gp.kernel.space.point_shape)
            correlation = gp.kernel.correlation(seen, self.centres, gp.lengthscale).squeeze(-2)
            depth = (correlation - edge).clamp(min=0) / (1 - edge)
            return worth(z) - _PENALTY * torch.where(self.real, depth, 0).square().sum(-1)

        return outside


@dataclass(frozen=True)
class Section:
    """What is searched, and how it hangs together with the space and with a model.

    ============ =====================================================================================================
    domain       the manifold that the search goes over
    reach        from points (…, runs, 1, *point) of the domain to points of the space
    see          from flat points (…, runs, 1, size) of the domain to flat points that the model sees
    starts       where the evaluated points lie in the domain, (runs, n, *point)
    model        the surrogate whose improvement is sought
    told         the evaluations of that model; their values rank the starts
    pending      points under evaluation, flat, as the model sees them (runs, m, size); None if there are none
    basins       closed basins, which are left out; None if there are none
    ============ =====================================================================================================
    """

    domain: Space
    reach: Map
    see: Map
    starts: Tensor
    model: Surrogate
    told: Runs
    pending: Tensor | None
    basins: Basins | None = None


def search(section: Section, rules: list[Surrogate], acquisition: str, optimiser: Optimiser) -> Tensor:
    """The point of the space, one for each run, whose evaluation promises most: (runs, *point).

    ``rules`` are models of observed constraints on the space; those known in advance are limits of the domain.
    """
    told, basins = section.told, section.basins
    count = 0 if section.pending is None else section.pending.shape[1]
    seed = told.y.shape[1] + count  # one for all runs of a batch, so that a run alone sees the same samples
    among = told.feasible
    if basins is not None:
        among = basins.free if among is None else basins.free & among
    gain = improvement(acquisition, section.model.gp, section.pending, seed, noisy=told.noisy, feasible=among)
    return climb(section, gain, rules, optimiser)


def climb(section: Section, gain: Map, rules: list[Surrogate], optimiser: Optimiser) -> Tensor:
    """The same for any logarithm of a gain, a function of flat points (…, runs, 1, size) as the model sees them."""
    told, domain, basins = section.told, section.domain, section.basins
    ranking = told.ranking if basins is None else torch.where(basins.free, told.ranking, torch.inf)
    chance = log_chance(rules, domain, section.reach)
    worth = constrained(lambda z: gain(section.see(z)), chance, told.feasible)
    within = limits(told.allowed, domain, section.reach)
    pools = candidates(leaf(domain), section.starts, ranking, told.rngs)
    if basins is not None:
        worth = basins.keep_out(worth, section.see)
    ascent = Climb(worth, domain, optimiser, _restarts(domain), within)
    z = ascent(pools)[0] if isinstance(domain, Manifold) else over_separate_values(ascent, pools, told)
    return section.reach(z.unsqueeze(1)).squeeze(1)


def _restarts(domain: Space) -> int:
    return _RESTARTS if domain.dim <= _FEW else _FEWER
