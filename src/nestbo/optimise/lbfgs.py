"""Riemannian L-BFGS with vector transport.

Every iteration evaluates every element of the batch once: an element whose step decreases f enough takes it, another
one tries a shorter step along the same direction next time. No element waits for the line search of another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nestbo.manifolds.base import Manifold, check_size
from nestbo.optimise.batch import (
    NEAR_BOUND,
    Batch,
    Function,
    Result,
    check_options,
    initial_state,
    reduced_gradient,
    shortened,
    spread,
    stationarity,
)
from nestbo.optimise.state import Reason, State

_DECREASE, _CURVATURE = 1e-4, 0.9
_SHRINK, _GROW = (0.1, 0.5), 2.0
_SHORTEST = 1e-3  # of a direction made from memory, before that is forgotten
_STALLED = 1e-10  # of one that follows the gradient


def lbfgs(
    f: Function,
    manifold: Manifold,
    start: Any,
    *,
    data: tuple[Tensor, ...] = (),
    memory: int = 10,
    tolerance: float = 1e-6,
    max_iterations: int = 500,
    steady: bool = False,
) -> Result:
    """Minimise f from every start in a batch, to a gradient norm of ``tolerance``, with first derivatives only.

    ``f`` and ``data`` are as in ``trust_region``; ``memory`` is the number of past steps that shape the direction. An
    iteration is one evaluation, even if its step is rejected. The bounds of the space are respected. Set ``steady``
    if f does the same operations at every call and keeps nothing in Python: then a GPU replays its iterations.
    """
    check_options(tolerance=tolerance, max_iterations=max_iterations)
    check_size("memory", memory)
    batch = Batch(f, manifold, start, data)
    problem = _Problem(batch, tolerance)
    x = batch.start
    batched, point = x.shape[:2], x.shape[2:]
    pairs, weights = x.new_zeros(*batched, memory, *point), x.new_zeros(*batched, memory)
    _, value, euclidean = batch.derivatives(x, batch.data)
    gradient, free, norm = problem.gradients(x, euclidean)
    state = initial_state(batch, (pairs, pairs.clone(), weights, free, torch.ones_like(value)))
    state = problem.assess(state.change(value=value, gradient=gradient, norm=norm))
    return batch.run(state, problem.step, max_iterations, steady=steady)


@dataclass(frozen=True)
class _Problem:
    batch: Batch
    tolerance: float

    @property
    def manifold(self) -> Manifold:
        return self.batch.manifold

    def assess(self, state: State) -> State:
        """End the elements that have converged, or cannot go on."""
        state = state.stop(~(state.value.isfinite() & state.norm.isfinite()), Reason.NOT_FINITE)
        return state.stop(state.norm <= self.tolerance, Reason.CONVERGED)

    def gradients(self, x: Tensor, euclidean: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The gradient, the same without what presses against bounds that are near, and its norm as a criterion."""
        manifold = self.manifold
        gradient = manifold.gradient(x, euclidean)
        if not manifold.bounded:
            return gradient, gradient, manifold.norm(x, gradient)
        free = manifold.face(x, -gradient, NEAR_BOUND)(gradient)
        return gradient, free, stationarity(manifold, x, gradient)

    def step(self, state: State) -> State:
        """One direction, one trial of a step along it, one memory update for every running element."""
        manifold, x, (*memory, free, length) = self.manifold, state.x, state.memory
        direction, slope = self._direction(state)
        y = manifold.retract(x, spread(length, manifold) * direction)
        _, value, euclidean = self.batch.derivatives(y, state.data)
        gradient, new_free, norm = self.gradients(y, euclidean)
        # A retraction that stops at bounds goes elsewhere than its argument says.
        step = manifold.log(x, y) if manifold.bounded else spread(length, manifold) * direction
        there = torch.cat([step.unsqueeze(2), direction.unsqueeze(2), free.unsqueeze(2), *memory[:2]], 2)
        there = manifold.transport(x.unsqueeze(2), y.unsqueeze(2), there)
        end = manifold.inner(y, new_free, there[:, :, 1])
        # Where values differ by rounding only, a flatter slope is the decrease (Hager and Zhang 2005).
        slack = 100 * torch.finfo(x.dtype).eps * state.value.abs()
        flatter = (value <= state.value + slack) & (end.abs() <= _CURVATURE * slope.abs())
        enough = (value <= state.value + _DECREASE * length * slope) & (value < state.value) | flatter
        moved = state.running & enough & value.isfinite() & norm.isfinite()
        fresh = (memory[2] == 0).all(-1)
        *memory, sound = self._remember(memory, there, y, new_free, moved)
        shrunk = self._shrunk(length, value - state.value, slope)
        useless = ~moved & (shrunk < torch.where(fresh, _STALLED, _SHORTEST))  # forget, and follow the gradient
        longer = moved & ~sound & (end < _CURVATURE * slope)
        length = torch.where(moved | useless, torch.where(longer, _GROW * length, 1), shrunk)
        memory[2] = torch.where(useless.unsqueeze(2), 0, memory[2])
        ahead = spread(moved, manifold)
        state = state.change(
            x=torch.where(ahead, y, x),
            value=torch.where(moved, value, state.value),
            gradient=torch.where(ahead, gradient, state.gradient),
            norm=torch.where(moved, norm, state.norm),
            iterations=state.iterations + state.running,
            memory=(*memory, torch.where(ahead, new_free, free), length),
        )
        return self.assess(state).stop(useless & fresh, Reason.STALLED)

    def _direction(self, state: State) -> tuple[Tensor, Tensor]:
        """−H∇f, kept within bounds and the injectivity radius, and its slope ⟨∇f, d⟩ ≤ 0."""
        manifold, x = self.manifold, state.x
        face, gradient, push, _ = reduced_gradient(manifold, x, state.gradient)
        newton = -face(self._apply_memory(state, gradient))
        slope, steepest = manifold.inner(x, gradient, newton), manifold.inner(x, gradient, gradient)
        poor = ~(slope < -1e-10 * manifold.norm(x, newton) * steepest.sqrt())
        first = poor | (state.memory[2] == 0).all(-1)
        size = manifold.typical_distance if manifold.bounded else math.inf
        longest = torch.where(first, 0.1 * manifold.typical_distance, size).clamp(max=0.5 * manifold.injectivity_radius)
        direction = torch.where(spread(poor, manifold), -gradient, newton) + push
        direction = shortened(manifold, x, direction, longest)
        return direction, manifold.inner(x, gradient, face(direction))

    def _apply_memory(self, state: State, gradient: Tensor) -> Tensor:
        """H g in the compact form of Byrd, Nocedal and Schnabel (1994), newest pairs last.

        With S, Y the pairs, R the upper triangle of SᵀY, D its diagonal and γ the scale of the newest pair,
        H = γ + [S γY] [R⁻ᵀ(D + γYᵀY)R⁻¹, −R⁻ᵀ; −R⁻¹, 0] [S γY]ᵀ. Empty and unusable pairs are zero and drop out.
        """
        manifold, (s, y, weight, *_) = self.manifold, state.memory
        used = weight > 0
        s, y = (torch.where(spread(used, manifold), pair, 0).flip(2) for pair in (s, y))
        products = manifold.pairwise_inner(state.x, torch.cat([s, y], 2), torch.cat([y, gradient.unsqueeze(2)], 2))
        m = s.shape[2]
        cross, square = products[..., :m, :m], products[..., m:, :m]
        along, across = products[..., :m, m:], products[..., m:, m:]
        diagonal = cross.diagonal(dim1=-2, dim2=-1)
        triangle = cross.triu() + torch.diag_embed((~used).flip(2).to(cross))
        begun = used[..., 0]  # there is a newest pair: γ = sᵀy/yᵀy
        ratio = diagonal[..., -1] / torch.where(begun, square[..., -1, -1], 1)
        scale = torch.where(begun, ratio, 1)[..., None, None]
        inner = torch.linalg.solve_triangular(triangle, along, upper=True)  # R⁻¹ Sᵀg
        outer = diagonal.unsqueeze(-1) * inner + scale * (square @ inner - across)
        outer = torch.linalg.solve_triangular(triangle.mT, outer, upper=False)
        weights = torch.cat([outer, -scale * inner], -2)
        combined = weights.mT @ torch.cat([s, y], 2).flatten(3)
        return spread(scale[..., 0, 0], manifold) * gradient + combined.reshape(gradient.shape)

    def _shrunk(self, length: Tensor, rise: Tensor, slope: Tensor) -> Tensor:
        """Where the parabola through both values and the slope is least, between a tenth and half of the length."""
        least, most = _SHRINK
        parabola = -slope * length / (2 * (rise - slope * length))
        return length * parabola.nan_to_num(nan=least).clamp(least, most)

    def _remember(
        self, memory: list[Tensor], there: Tensor, y: Tensor, free: Tensor, moved: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Carry the pairs along where there was a step, and put (s, ∇f(y) − ∇f(x)) in front where it is sound."""
        manifold, count = self.manifold, memory[0].shape[2]
        s, change = there[:, :, 0], free - there[:, :, 2]
        product = manifold.inner(y, s, change)
        sound = moved & (product > 1e-10 * manifold.norm(y, s) * manifold.norm(y, change))
        weight = torch.where(sound, 1 / torch.where(sound, product, 1), 0)

        def put(new: Tensor, past: Tensor, which: Tensor) -> Tensor:
            return torch.where(which, torch.cat([new.unsqueeze(2), past[:, :, :-1]], 2), past)

        carried = there[:, :, 3:].unflatten(2, (2, count))
        moved, take = (spread(which.unsqueeze(2), manifold) for which in (moved, sound))
        steps, changes = (torch.where(moved, carried[:, :, k], memory[k]) for k in range(2))
        weights = put(weight, memory[2], sound.unsqueeze(2))
        return put(s, steps, take), put(change, changes, take), weights, sound
