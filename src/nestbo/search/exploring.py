"""Exploring: what is evaluated next when the search for improvement has finished."""

from __future__ import annotations

import torch
from torch import Tensor

from nestbo.manifolds import SPD, Choice, Manifold, Product, Space
from nestbo.search.feasibility import Reach, log_probability
from nestbo.search.runs import Runs
from nestbo.surrogate import Surrogate

_FIRST = 8  # random points, of which a first one with choices is taken
_DRAWS = 512  # random points, of which the farthest is taken


def spread_out(space: Space, runs: Runs) -> Tensor:
    """A random point for each run, (runs, *point), with which the search begins.

    Where there are choices, it is that of several whose choices differ most from those of known points: the few first
    points then try many of them, between which a model cannot interpolate. Matrices whose axes mean something are
    diagonal.
    """
    if isinstance(space, SPD) and space.aligned:
        return _diagonal(space, runs)
    known = torch.cat([runs.record.x, runs.pending], 1)
    if isinstance(space, Manifold) or not known.shape[1]:
        return runs.random(space)
    drawn = torch.stack([runs.random(space) for _ in range(_FIRST)])
    away = torch.cdist(_choices(space, drawn).transpose(0, 1), _choices(space, known)).amin(-1)
    return drawn[away.argmax(1), torch.arange(drawn.shape[1], device=drawn.device)]


def _diagonal(space: SPD, runs: Runs) -> Tensor:
    """Diagonal matrices with random eigenvalues; a random one instead where constraints forbid the diagonal one."""
    drawn = runs.random(space)
    along = space.along_axes(drawn)
    if runs.allowed is None:
        return along
    allowed = (runs.allowed(along) >= 0).all(-1)
    return torch.where(allowed[..., None, None], along, drawn)


def _choices(space: Space, x: Tensor) -> Tensor:
    """What kernels see of the choices in points (…, *point), (…, k)."""
    if isinstance(space, Choice):
        return space.embed(x)
    if not isinstance(space, Product):
        return x.flatten(-len(space.point_shape))[..., :0]
    return torch.cat([_choices(*pair) for pair in zip(space.factors, space.split(x), strict=True)], -1)


def farthest(space: Space, domain: Space, reach: Reach, rules: list[Surrogate], runs: Runs) -> Tensor:
    """Of random points reached from a domain, allowed ones, that farthest from all known ones, (runs, *point).

    There every model knows least. Its variance would say so, too, but depends on length scales, and those of a model
    that sees no improvement anywhere are often too long. Distances count as much as the constraints with models
    ``rules`` are likely to hold.
    """
    x = reach(domain.random_each(_DRAWS, runs.rngs).unsqueeze(2))
    known = space.embed(torch.cat([runs.record.x, runs.pending], 1))
    drawn = space.embed(x.squeeze(2))
    worth = torch.cdist(drawn.transpose(0, 1), known).amin(-1).T.log() + log_probability(rules, x)
    if runs.allowed is not None:
        worth = torch.where((runs.allowed(x.squeeze(2)) >= 0).all(-1), worth, -torch.inf)
    best = worth.nan_to_num(nan=-torch.inf).argmax(0)
    return x[best, torch.arange(len(best), device=x.device)].squeeze(1)
