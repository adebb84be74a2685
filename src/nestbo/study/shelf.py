"""The best of a list of candidates, for people who can only make what is on the shelf."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from nestbo.acquisition import constrained, improvement
from nestbo.constraints import Constraints
from nestbo.errors import ArgumentError
from nestbo.manifolds import Space
from nestbo.memory import Memory
from nestbo.search import Runs, rule_name, seen
from nestbo.search.feasibility import log_probability
from nestbo.search.repeats import coinciding
from nestbo.strategies import GaBO, Strategy, Suggestion
from nestbo.surrogate import Surrogate


@runtime_checkable
class Modelling(Protocol):
    """A strategy with random points at the beginning, and an acquisition function after them."""

    initial: int
    acquisition: str


def candidates(space: Space, points: Any, allowed: Constraints | None) -> Tensor:
    """A list or tensor of points, (n, *point), those that constraints known in advance allow."""
    if isinstance(points, list | tuple) and points:
        named = (space.point(x) if isinstance(x, Mapping) else x for x in points)
        points = torch.stack([space.check(x).double() for x in named])
    found = space.check(points).double()
    if found.ndim != len(space.point_shape) + 1:
        raise ArgumentError(f"among takes several points, (n, {str(space.point_shape)[1:]}, got {tuple(found.shape)}.")
    if allowed is not None:
        found = found[[allowed.allows(x) for x in found]]
    if not len(found):
        raise ArgumentError("among takes points that satisfy the constraints, got none. Give others.")
    return found


def chosen(strategy: Strategy, space: Space, runs: Runs, n: int, points: Tensor) -> list[Suggestion]:
    """The ``n`` candidates that promise most, one after the other, each with the earlier ones pending.

    A point that was evaluated or asked for is no candidate unless values are noisy. Before the strategy has a model,
    and for a strategy without one, a random candidate is chosen.
    """
    found: list[Suggestion] = []
    for _ in range(n):
        left = points if runs.noisy else points[~_known(space, points, runs)]
        if not len(left):
            raise ArgumentError(f"All {len(points)} points of among were evaluated or asked for. Give others.")
        worth = promise(strategy, space, runs, left)
        worth = torch.rand(len(left), generator=runs.rngs[0]) if worth is None else worth
        at = int(worth.argmax())
        found.append(Suggestion(left[at]))
        runs = runs.with_pending(left[at : at + 1], [Memory()])
    return found


def promise(strategy: Strategy, space: Space, runs: Runs, points: Tensor) -> Tensor | None:
    """The acquisition function of a strategy at points (n, *point), (n,); None if there is none yet."""
    if not isinstance(strategy, Modelling) or not runs.begun(strategy.initial):
        return None
    if runs.outcomes is not None:
        return strategy.many.promise(space, seen(space, runs), points) if isinstance(strategy, GaBO) else None
    models = strategy.models(space, runs)
    rules = rules_of(models)
    if len(models) == len(rules):
        return None
    model, told = next(iter(models.values())), seen(space, runs)
    seed = told.y.shape[1] + runs.pending.shape[1]
    pending = model.seen(runs.pending)
    gain = improvement(strategy.acquisition, model.gp, pending, seed, noisy=told.noisy, feasible=told.feasible)
    x = points.unsqueeze(1).unsqueeze(1)
    chance = (lambda _: log_probability(rules, x)) if rules else None
    axes = len(model.gp.kernel.space.point_shape)
    with torch.no_grad():
        flat = model.see(model.mapping.project(x)).flatten(-axes)
        return constrained(gain, chance, told.feasible)(flat).reshape(len(points))


def rules_of(models: dict[str, Surrogate]) -> list[Surrogate]:
    """The models of observed constraints, of all models of a strategy."""
    names = (rule_name(k) for k in range(len(models)))
    return [models[name] for name in names if name in models]


def _known(space: Space, points: Tensor, runs: Runs) -> Tensor:
    """Which points (n, *point) were evaluated or asked for, (n,)."""
    known = torch.cat([runs.record.x, runs.pending], 1)
    return coinciding(space, points.unsqueeze(1), known).any(-1)
