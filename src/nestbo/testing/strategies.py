"""The laws of methods. Each takes a strategy, a space and a generator; none needs more than a few evaluations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from nestbo.constraints import Constraints
from nestbo.history import History, Trial
from nestbo.linalg import norm
from nestbo.manifolds import Box, Product, Space
from nestbo.memory import Memory
from nestbo.strategies import Runs, Strategy, Suggestion, strategy
from nestbo.testing.assertions import close, require

COINCIDING = 1e-9  # of the typical distance: points that are nearer are one
ROUNDING = 1e-6  # of coordinates as kernels see them: a search ends where an acquisition function is flat to rounding


def told(x: Tensor, values: Tensor) -> History:
    """A history of evaluated points."""
    return History(tuple(Trial(k, x[k]).with_value(value) for k, value in enumerate(values.tolist())))


def _seeded(trial: int) -> torch.Generator:
    return torch.Generator().manual_seed(1000 + trial)


def _objective(space: Space, x: Tensor) -> Tensor:
    """A smooth function of points: the squared distance, as kernels see it, to the vector of ones, bent a little."""
    e = space.embed(x)
    return (e - 1).square().sum(-1) + e.sum(-1).sin()


def _evaluated(space: Space, rng: torch.Generator, count: int = 7) -> History:
    x = space.random(count, rng=rng)
    return told(x, _objective(space, x))


def _check(method: Strategy, space: Space, suggestions: list[Suggestion], count: int, case: str) -> None:
    """The right number of different points of the space."""
    require(len(suggestions) == count, f"{method}, {case}: wanted {count} suggestions, got {len(suggestions)}")
    points = torch.stack([suggestion.x for suggestion in suggestions])
    space.check(points, 1e-9)
    apart = torch.cdist(points.flatten(1), points.flatten(1)) + torch.eye(count, dtype=points.dtype)
    require(apart > 1e-9, f"{method}, {case}: two suggestions coincide")


def suggestions_are_distinct_points_of_the_space(method: Strategy, space: Space, rng: torch.Generator) -> None:
    """From nothing, from a few evaluations, and while others are pending; pending points are not asked again."""
    _check(method, space, method.suggest(space, History(), 3, rng), 3, "an empty history")
    history = _evaluated(space, rng)
    suggestions = method.suggest(space, history, 3, rng)
    _check(method, space, suggestions, 3, "a history")
    asked = history.add(*(Trial(7 + k, s.x, memory=s.memory) for k, s in enumerate(suggestions)))
    pending = [Suggestion(trial.x) for trial in asked.pending]
    _check(method, space, [*pending, *method.suggest(space, asked, 1, rng)], 4, "pending points")


def suggestions_are_reproduced_by_their_seed(method: Strategy, space: Space, rng: torch.Generator) -> None:
    """Equal generators give equal suggestions to the last bit, and torch's own random state is left alone."""
    history = _evaluated(space, rng)
    before = torch.get_rng_state()
    first, second = (method.suggest(space, history, 2, _seeded(7)) for _ in range(2))
    require(torch.equal(before, torch.get_rng_state()), f"{method}: the global random state has changed")
    for a, b in zip(first, second, strict=True):
        require(torch.equal(a.x, b.x), f"{method}: the same seed gave two different suggestions")
        require(a.memory == b.memory, f"{method}: the same seed gave two different memories")


def odd_data_are_survived(method: Strategy, space: Space, rng: torch.Generator) -> None:
    """Constant, repeated, failed, huge and tiny values all lead to a suggestion."""
    history = _evaluated(space, rng)
    x, y = history.points, history.values
    failed = tuple(t.with_failure() if t.index % 3 == 1 else t for t in history)
    cases = {
        "constant values": told(x, torch.full_like(y, 3.0)),
        "one point many times": told(x[:1].expand_as(x), y),
        "one trial many times": told(x[:1].expand_as(x), y[:1].expand_as(y)),
        "some failed": History(failed),
        "all failed": History(tuple(t.with_failure() for t in history)),
        "huge values": told(x, 1e300 * y),
        "one huge value": told(x, torch.cat([y[:-1], torch.full_like(y[-1:], 1e300)])),
        "tiny values": told(x, 1e-300 * y),
    }
    for case, data in cases.items():
        _check(method, space, method.suggest(space, data, 1, _seeded(7)), 1, case)


def a_resumed_run_is_the_straight_run(method: Strategy, space: Space, rng: torch.Generator) -> None:
    """Trial k depends on the history before it and on its own seed alone, wherever the run was interrupted."""
    straight = _continued(method, space, History(), 8)
    for cut in (4, 6):  # among the first points, and after a fit
        resumed = _continued(method, space, History(tuple(straight.trials[:cut])), 8)
        require(torch.equal(resumed.points, straight.points), f"{method}: resuming after {cut} trials changes the run")


def _continued(method: Strategy, space: Space, history: History, length: int) -> History:
    while len(history) < length:
        (suggestion,) = method.suggest(space, history, 1, _seeded(len(history)))
        value = _objective(space, suggestion.x).item()
        history = history.add(Trial(len(history), suggestion.x, memory=suggestion.memory).with_value(value))
    return history


def a_batch_of_runs_is_its_single_runs(method: Strategy, space: Space, rng: torch.Generator) -> None:
    """Propose for three runs at once what it proposes for the outer ones alone, with points pending or none."""
    x = space.random(3, 7, rng=rng)
    y = _objective(space, x)
    for pending in (x[:, :0], space.random(3, 1, rng=rng)):
        together, _ = method.propose(space, _runs(x, y, pending, range(3)))
        alone = [method.propose(space, _runs(x, y, pending, [k]))[0][0] for k in (0, 2)]
        axes = len(space.point_shape)
        apart = norm(together[[0, 2]] - torch.stack(alone), axes).max()
        close(apart, torch.zeros(()), f"{method}: a run in a batch differs from the run alone", 5e-3)


def _runs(x: Tensor, y: Tensor, pending: Tensor, which: range | list[int]) -> Runs:
    keep = list(which)
    memories = [[Memory()] * x.shape[1] for _ in keep]
    return Runs(x[keep], y[keep], pending[keep], [_seeded(k) for k in keep], memories)


def known_constraints_are_respected(method: Strategy, space: Space, rng: torch.Generator) -> None:
    """Every suggestion is allowed, first ones and later ones, whether torch differentiates the constraint or not."""
    least = space.embed(space.random(200, rng=rng))[:, 0].quantile(0.7).item()
    smooth = Constraints.of(lambda x: space.embed(x)[0] - least, space)
    rough = Constraints.of(lambda x: float(space.embed(x)[0]) - least, space)
    cases = (("a history", _evaluated(space, rng), 1, smooth), ("nothing", History(), 2, rough))
    for case, history, count, constraints in cases:
        suggestions = method.suggest(space, history, count, rng, constraints=constraints)
        _check(method, space, suggestions, count, case)
        for suggestion in suggestions:
            require(constraints.allows(suggestion.x), f"{method}, from {case}: a suggestion violates the constraint")


def observed_constraints_and_noise_are_survived(method: Strategy, space: Space, rng: torch.Generator) -> None:
    """Evaluations that were told with two constraints and the variance of their noise lead to a suggestion."""
    trials = [
        replace(trial, told=replace(trial.told, constraints=(trial.index - 3.0, 1.0), noise=0.1 + trial.index))
        for trial in _evaluated(space, rng)
    ]
    _check(method, space, method.suggest(space, History(tuple(trials)), 1, rng), 1, "constraints and noise")


def known_points_are_not_suggested_again(method: Strategy, space: Space, rng: torch.Generator) -> None:
    """Exact values say all about a point: no suggestion is one that was evaluated or asked for, not even in a corner.

    Published methods may suggest a point again (``repeats``).
    """
    if method.repeats:
        return
    history = told(x := space.random(6, rng=rng), space.embed(x).sum(-1))
    for asked in (1, 1, 2):
        suggestions = method.suggest(space, history, asked, _seeded(len(history)))
        trials = (Trial(k, s.x, memory=s.memory) for k, s in enumerate(suggestions, len(history)))
        history = history.add(*(trial.with_value(space.embed(trial.x).sum(-1).item()) for trial in trials))
    apart = space.pairwise_dist(history.points, history.points) / space.typical_distance
    again = (apart.tril(-1) + torch.ones_like(apart).triu()) < COINCIDING
    require(~again, f"{method}: a point was suggested twice")


def units_of_boxes_change_nothing(method: Strategy, space: Space, rng: torch.Generator) -> None:
    """A box in another unit, a millionth or a million times as wide, leads to the same suggestion, up to rounding."""
    if _measured(space, 2.0) == space:
        return
    x = space.random(7, rng=rng)
    values = _objective(space, x)
    known = method.suggest(space, told(x, values), 1, _seeded(7))[0].x
    for unit in (1e-6, 1e6):
        other = _measured(space, unit)
        history = told(other.project(_converted(space, x, unit)), values)
        again = method.suggest(other, history, 1, _seeded(7))[0].x
        apart = (space.embed(known) - other.embed(again)).abs().max()
        require(apart < ROUNDING, f"{method}: a box measured in units of {unit:g} moves a suggestion by {apart:.1e}")


def _measured(space: Space, unit: float) -> Space:
    """The space with its boxes measured in another unit."""
    if isinstance(space, Product):
        return Product(*(_measured(factor, unit) for factor in space.factors))
    if isinstance(space, Box):
        return replace(space, lower=[unit * a for a in space.lower], upper=[unit * b for b in space.upper])  # type: ignore[arg-type]
    return space


def _converted(space: Space, x: Tensor, unit: float) -> Tensor:
    """Points measured in another unit."""
    if isinstance(space, Product):
        return space.join(_converted(f, part, unit) for f, part in zip(space.factors, space.split(x), strict=True))
    return unit * x if isinstance(space, Box) else x


def specification_round_trips(method: Strategy, space: Space, rng: torch.Generator) -> None:
    """The text form of a registered strategy gives the same strategy back."""
    text = method.specification
    require(strategy(text) == method, f"{method}: {text!r} reads back otherwise")


STRATEGY_LAWS: tuple[Callable[[Strategy, Space, torch.Generator], None], ...] = (
    suggestions_are_distinct_points_of_the_space,
    suggestions_are_reproduced_by_their_seed,
    odd_data_are_survived,
    a_resumed_run_is_the_straight_run,
    a_batch_of_runs_is_its_single_runs,
    known_constraints_are_respected,
    observed_constraints_and_noise_are_survived,
    known_points_are_not_suggested_again,
    units_of_boxes_change_nothing,
    specification_round_trips,
)
