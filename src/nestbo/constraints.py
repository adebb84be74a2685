"""Known constraints c(x) ≥ 0: what they say of many points at once, and points that satisfy them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from nestbo.errors import ConstraintError, shown
from nestbo.keywords import by_name
from nestbo.manifolds import Manifold, Space, leaf
from nestbo.optimise import lbfgs

_DRAWS = 1024  # random points among which one is looked for
_TOGETHER = 64  # of these, as many at once
_SCALES = (0.5, 0.15, 0.05, 0.015, 0.005)  # of the typical distance: steps from a point that is to be moved
_STARTS = 8  # of a descent into the set
_MARGINS = (0.1, 1e-3, 1e-6)  # how far inside it aims, relative to the violation at its start
_ROUNDS, _OFFSPRING = 100, 32  # of a search without derivatives
_HALVINGS = 40


@dataclass(frozen=True)
class Constraints:
    """A function c of one point, a number or several, each ≥ 0 where the point is allowed; NaN is not allowed.

    ``smooth`` says that torch differentiates it, ``batched`` that it maps over many points at once, ``count`` how many
    numbers it gives: ``of`` finds these out.
    """

    function: Callable[[Any], Any]
    space: Space
    count: int
    smooth: bool = False
    batched: bool = False

    @classmethod
    def of(cls, function: Any, space: Space) -> Constraints:
        """The constraints that a user's function expresses, tried on a few points of the space."""
        if not callable(function):
            raise ConstraintError(
                f"constraints is a function of a point, ≥ 0 where it is allowed, got {shown(function)}."
            )
        function = by_name(function, space)
        points = space.random(3, rng=torch.Generator().manual_seed(0))
        tried = cls(function, space, len(_called(function, points[0])))
        found = tried(points)
        smooth = replace(tried, smooth=all(_has_gradient(function, point) for point in points))
        return replace(smooth, batched=_maps(smooth, points, found))

    def at(self, x: Tensor) -> Tensor:
        """c(x) at one point, (m,)."""
        values = _called(self.function, x if self.smooth else x.detach().clone())
        if len(values) != self.count:
            raise ConstraintError(f"constraints gave {self.count} numbers at one point and {len(values)} at another.")
        return values

    def __call__(self, x: Tensor) -> Tensor:
        """c at points (…, *point), (…, m)."""
        batch, flat = self._flat(x)
        if self.batched:
            return torch.func.vmap(lambda point: _vector(self.function(point)))(flat).unflatten(0, batch)
        return torch.stack([self.at(point) for point in flat]).unflatten(0, batch)

    def _flat(self, x: Tensor) -> tuple[tuple[int, ...], Tensor]:
        batch = x.shape[: x.ndim - len(self.space.point_shape)]
        return batch or (1,), x.reshape(-1, *self.space.point_shape)

    def allows(self, x: Tensor) -> bool:
        """Whether one point satisfies all constraints, exactly."""
        with torch.no_grad():
            return bool((self.at(x) >= 0).all())

    def slack(self, x: Tensor) -> Tensor:
        """The least of c at points (n, *point), (n,): minus the violation where it is negative."""
        with torch.no_grad():
            return self(x).amin(-1).nan_to_num(nan=-math.inf, posinf=math.inf, neginf=-math.inf)

    def random(self, rng: torch.Generator) -> Tensor:
        """A random allowed point: the first among many draws, or else one that is near to the first."""
        first = self.space.random(rng=rng)
        if self.allows(first):
            return first
        for _ in range(_DRAWS // _TOGETHER):
            drawn = self.space.random(_TOGETHER, rng=rng)
            for point in drawn[self.slack(drawn) >= 0]:
                if self.allows(point):
                    return point
        return self.nearest(first, rng)

    def nearest(self, x: Tensor, rng: torch.Generator, known: Tensor | None = None) -> Tensor:
        """An allowed point about as near to x as there is one; ``known`` points (n, *point) help to find it.

        It is the last allowed one on the way to x from the nearest allowed point among known, random and near ones;
        where none of these is allowed, from one that minimising the violation leads to.
        """
        if self.allows(x):
            return x
        pool = torch.cat([x.unsqueeze(0) if known is None else known, self._around(x, rng)])
        slack = self.slack(pool)
        if slack.max() < 0 and self.smooth:
            pool = torch.cat([pool, self._descended(pool, slack)])
            slack = self.slack(pool)
        inside = pool[slack >= 0]
        for point in inside[self.space.dist(inside, x).argsort()]:
            if self.allows(point):
                return self._towards(point, x)
        return self._towards(self._found(pool[slack.argmax()], slack.max().item(), rng), x)

    @property
    def _leaf(self) -> Manifold:
        """Where a point can move while its separate values stay as they are."""
        return leaf(self.space)

    def _around(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Random points, and steps of several sizes from x."""
        near = [self._moved(x, scale, _OFFSPRING, rng) for scale in _SCALES]
        return torch.cat([self.space.random(_DRAWS, rng=rng), *near])

    def _moved(self, x: Tensor, scale: float, count: int, rng: torch.Generator) -> Tensor:
        space = self._leaf
        start = x.expand(count, *space.point_shape)
        return space.project(space.exp(start, scale * space.typical_distance * space.random_tangent(start, rng)))

    def _towards(self, inside: Tensor, x: Tensor) -> Tensor:
        """The last allowed point on the geodesic from an allowed point to x, by bisection."""
        velocity, low, high, found = self._leaf.log(inside, x), 0.0, 1.0, inside
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            point = self.space.project(self._leaf.exp(inside, middle * velocity))
            if point.isfinite().all() and self.allows(point):
                low, found = middle, point
            else:
                high = middle
        return found

    def _descended(self, pool: Tensor, slack: Tensor) -> Tensor:
        """Ends of descents of the violation from the best of a pool, aiming ever less far inside."""
        best = slack.topk(_STARTS)
        start, size = pool[best.indices], -best.values[0].item()

        def outside(margin: float, x: Tensor) -> Tensor:
            return (margin - self(x) / size).clamp(min=0).square().sum(-1)

        losses = [partial(outside, margin) for margin in _MARGINS]
        ends = [lbfgs(loss, self._leaf, start, tolerance=1e-9, max_iterations=100).point for loss in losses]
        return torch.cat(ends)

    def _found(self, best: Tensor, slack: float, rng: torch.Generator) -> Tensor:
        """An allowed point by random steps that lessen the violation, longer after a success, shorter after none."""
        scale = _SCALES[0]
        for _ in range(_ROUNDS):
            tried = self._moved(best, scale, _OFFSPRING, rng)
            found = self.slack(tried)
            better = found.max().item() > slack
            if better:
                best, slack = tried[found.argmax()], found.max().item()
            if slack >= 0 and self.allows(best):
                return best
            scale = min(1.0, 1.5 * scale) if better else scale / 1.5
        raise ConstraintError(
            f"No point of {self.space} was found that satisfies the constraints, among {_DRAWS} random points and in a "
            f"search from the best of them. The smallest violation is {-slack:.6g}, at {_short(best)}. Constraints are "
            "meant as c(x) ≥ 0: check their sign, or relax them."
        )


def _called(function: Callable[[Any], Any], x: Tensor) -> Tensor:
    try:
        found = function(x)
    except Exception as error:
        raise ConstraintError(
            f"constraints takes one point, of shape {tuple(x.shape)}, and raised {type(error).__name__}: {error}."
        ) from error
    return _vector(found)


def _vector(found: Any) -> Tensor:
    """What a function of constraints returned, as a vector in double precision."""
    if isinstance(found, list | tuple) and found:
        return torch.cat([_vector(part) for part in found])
    try:
        values = found if isinstance(found, Tensor) else torch.as_tensor(found)
    except (TypeError, ValueError, RuntimeError):
        values = torch.empty(0)
    if values.dtype == torch.bool or values.is_complex() or values.numel() == 0:
        raise ConstraintError(
            f"constraints gives a number, or several, ≥ 0 where a point is allowed, got {shown(found)}."
        )
    return values.double().reshape(-1)


def _has_gradient(function: Callable[[Any], Any], x: Tensor) -> bool:
    with warnings.catch_warnings(), torch.enable_grad():
        warnings.simplefilter("ignore")  # that a tensor with a gradient became a number
        try:
            return _vector(function(x.clone().requires_grad_())).requires_grad
        except Exception:
            return False


def _maps(constraints: Constraints, x: Tensor, expected: Tensor) -> bool:
    """Whether torch maps the function over points x to what it gives for each."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # where torch can map only slowly
        try:
            found = replace(constraints, batched=True)(x)
        except Exception:
            return False
    return found.shape == expected.shape and torch.allclose(found, expected, rtol=1e-9, atol=1e-12, equal_nan=True)


def _short(x: Tensor, most: int = 6) -> str:
    numbers = ", ".join(f"{number:.4g}" for number in x.flatten()[:most].tolist())
    return f"[{numbers}{', …' if x.numel() > most else ''}]"
