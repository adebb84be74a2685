"""Riemannian L-BFGS with vector transport and a weak Wolfe line search."""

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
    Reason,
    Result,
    State,
    check_options,
    initial_state,
    reduced_gradient,
    shortened,
    spread,
    stationarity,
)

_DECREASE, _CURVATURE = 1e-4, 0.9
_SEARCH = 30


def lbfgs(
    f: Function,
    manifold: Manifold,
    start: Any,
    *,
    data: tuple[Tensor, ...] = (),
    memory: int = 10,
    tolerance: float = 1e-6,
    max_iterations: int = 500,
) -> Result:
    """Minimise f from every start in a batch, to a gradient norm of ``tolerance``, with first derivatives only.

    ``f`` and ``data`` are as in ``trust_region``; ``memory`` is the number of past steps that shape the direction. The
    bounds of the space are respected.
    """
    check_options(tolerance=tolerance, max_iterations=max_iterations)
    check_size("memory", memory)
    batch = Batch(f, manifold, start, data)
    problem = _Problem(batch, tolerance)
    x = batch.start
    pairs, weights = x.new_zeros(*x.shape[:2], memory, *x.shape[2:]), x.new_zeros(*x.shape[:2], memory)
    _, value, euclidean = batch.derivatives(x, batch.data)
    state = initial_state(batch, (pairs, pairs.clone(), weights, euclidean, problem.free(x, euclidean)))
    return batch.run(problem.assess(state, x, value, euclidean), problem.step, max_iterations)


@dataclass(frozen=True)
class _Problem:
    batch: Batch
    tolerance: float

    @property
    def manifold(self) -> Manifold:
        return self.batch.manifold

    def assess(self, state: State, x: Tensor, value: Tensor, euclidean: Tensor) -> State:
        """Take a point and its derivatives into the state; end the elements that have converged."""
        gradient = self.manifold.gradient(x, euclidean)
        norm = stationarity(self.manifold, x, gradient)
        state = state.change(x=x, value=value, gradient=gradient, norm=norm)
        state = state.stop(~(value.isfinite() & norm.isfinite()), Reason.NOT_FINITE)
        return state.stop(norm <= self.tolerance, Reason.CONVERGED)

    def step(self, state: State) -> State:
        """One direction, one line search, one memory update for every running element."""
        direction, slope = self._direction(state)
        length, y, value, euclidean, free = self._search(state, direction, slope)
        moved = state.running & (length > 0)
        stuck = ~moved & (state.memory[2] == 0).all(-1)  # others forget their memory and follow the gradient
        # A retraction that stops at bounds goes elsewhere than its argument says.
        step = self.manifold.log(state.x, y) if self.manifold.bounded else spread(length, self.manifold) * direction
        memory = self._remember(state, step, y, free, moved)
        state = state.change(iterations=state.iterations + state.running, memory=(*memory, euclidean, free))
        return self.assess(state, y, value, euclidean).stop(stuck, Reason.STALLED)

    def _direction(self, state: State) -> tuple[Tensor, Tensor]:
        """−H∇f by the two-loop recursion, kept within bounds and reach, and its slope ⟨∇f, d⟩ ≤ 0."""
        manifold, x = self.manifold, state.x
        face, gradient, push, _ = reduced_gradient(manifold, x, state.gradient)
        newton = -face(self._apply_memory(state, gradient))
        slope, steepest = manifold.inner(x, gradient, newton), manifold.inner(x, gradient, gradient)
        poor = ~(slope < -1e-10 * manifold.norm(x, newton) * steepest.sqrt())
        first = poor | (state.memory[2] == 0).all(-1)
        size = manifold.typical_distance if manifold.bounded else math.inf
        longest = torch.where(first, 0.1 * manifold.typical_distance, size).clamp(max=0.5 * manifold.reach)
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
        newest = square[..., -1, -1]
        scale = torch.where(used[..., 0], diagonal[..., -1] / torch.where(used[..., 0], newest, 1), 1)[..., None, None]
        inner = torch.linalg.solve_triangular(triangle, along, upper=True)  # R⁻¹ Sᵀg
        outer = diagonal.unsqueeze(-1) * inner + scale * (square @ inner - across)
        outer = torch.linalg.solve_triangular(triangle.mT, outer, upper=False)
        weights = torch.cat([outer, -scale * inner], -2)
        combined = weights.mT @ torch.cat([s, y], 2).flatten(3)
        return spread(scale[..., 0, 0], manifold) * gradient + combined.reshape(gradient.shape)

    def _search(self, state: State, direction: Tensor, slope: Tensor) -> tuple[Tensor, ...]:
        """A weak Wolfe step by bisection and doubling, per element: its length, end, value and both gradients there.

        The length is 0 where no decrease was found. Rows whose search is over are not evaluated again.
        """
        manifold = self.manifold
        low, high, length = torch.zeros_like(slope), torch.full_like(slope, math.inf), torch.ones_like(slope)
        furthest = self.batch.limit / manifold.norm(state.x, direction)
        best = (low.clone(), state.x.clone(), state.value.clone(), state.memory[3].clone(), state.memory[4].clone())
        open_ = state.running
        for _ in range(_SEARCH):
            rows = open_.any(1).nonzero().squeeze(1)
            if not len(rows):
                break
            part = state if len(rows) == len(open_) else state.rows(rows)
            enough, steep, *found = self._try(part, direction[rows], slope[rows], length[rows])
            steep &= (length < furthest)[rows] & (found[1] < best[2][rows])
            for kept, new in zip(best, (length[rows], *found), strict=True):
                take = enough & open_[rows]
                kept[rows] = torch.where(spread(take, manifold) if new.ndim > 2 else take, new, kept[rows])
            low[rows] = torch.where(enough, length[rows], low[rows])
            high[rows] = torch.where(enough, high[rows], length[rows])
            open_ = open_.clone()
            open_[rows] &= ~enough | steep
            length = torch.where(open_, torch.where(high.isfinite(), (low + high) / 2, 2 * low), length)
        return best

    def _try(self, state: State, direction: Tensor, slope: Tensor, length: Tensor) -> tuple[Tensor, ...]:
        """Whether a length decreases f enough, whether f still falls steeply there, and what was found there."""
        manifold, x = self.manifold, state.x
        y = manifold.retract(x, spread(length, manifold) * direction)
        _, value, euclidean = self.batch.derivatives(y, state.data)
        free = self.free(y, euclidean)
        end = manifold.inner(y, free, manifold.transport(x, y, direction))
        # Where values differ by rounding only, a flatter slope is the decrease (Hager and Zhang 2005).
        slack = 100 * torch.finfo(x.dtype).eps * state.value.abs()
        flatter = (value <= state.value + slack) & (end.abs() <= _CURVATURE * slope.abs())
        enough = (value <= state.value + _DECREASE * length * slope) & (value < state.value) | flatter
        return enough & value.isfinite(), end < _CURVATURE * slope, y, value, euclidean, free

    def free(self, x: Tensor, euclidean: Tensor) -> Tensor:
        """The gradient without what presses against bounds that are near."""
        gradient = self.manifold.gradient(x, euclidean)
        return self.manifold.face(x, -gradient, NEAR_BOUND)(gradient) if self.manifold.bounded else gradient

    def _remember(
        self, state: State, step: Tensor, y: Tensor, free: Tensor, moved: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Carry the pairs to the new point and put (s, ∇f(y) − ∇f(x)) in front; forget all where nothing moved."""
        manifold = self.manifold
        here, there = state.x.unsqueeze(2), y.unsqueeze(2)
        carried = torch.cat([step.unsqueeze(2), state.memory[4].unsqueeze(2), *state.memory[:2]], 2)
        carried = manifold.transport(here, there, carried)
        s, old = carried[:, :, 0], carried[:, :, 1]
        change = free - old
        kept = state.memory[0].shape[2] - 1
        past_s, past_y = carried[:, :, 2 : 2 + kept], carried[:, :, 3 + kept : 3 + 2 * kept]
        product = manifold.inner(y, s, change)
        sound = moved & (product > 1e-10 * manifold.norm(y, s) * manifold.norm(y, change))
        weight = torch.where(sound, 1 / torch.where(sound, product, 1), 0)
        weights = torch.cat([weight.unsqueeze(2), state.memory[2][..., :kept]], 2) * moved.unsqueeze(2)
        return torch.cat([s.unsqueeze(2), past_s], 2), torch.cat([change.unsqueeze(2), past_y], 2), weights
