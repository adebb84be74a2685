"""The loop all optimisers share: a batch of independent minimisations, each with its own state and end.

A batch is laid out as (rows, inner, *point). Without per-element data every element is a row of its own; with data,
the first batch axis makes the rows and the others stay inside. Finished rows are taken out and cost nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nestbo.errors import ArgumentError, ShapeError, shown
from nestbo.manifolds.base import Manifold, check_size
from nestbo.optimise.replay import replayed
from nestbo.optimise.state import Reason, State

Function = Callable[..., Tensor]

_COARSEST = 1e18  # of tolerances: torch takes no larger whole number


@dataclass(frozen=True)
class Result:
    """What an optimiser found; everything has the batch shape of the start.

    ``reason`` is an array of words per element: "converged" (the gradient norm is below the tolerance), "stalled" (no
    further decrease at machine precision), "max iterations", "not finite" (no finite value at the start) or
    "infeasible" (the start, or for penalty methods the end, violates a constraint).
    """

    point: Tensor
    value: Tensor
    gradient_norm: Tensor
    iterations: Tensor
    reason: np.ndarray[Any, Any]


# A bound counts as reached at the first relative distance (a clipped eigenvalue comes back with rounding), and as
# worth following at the second.
_TIGHT, NEAR_BOUND = 1e-9, 1e-3


def reduced_gradient(
    manifold: Manifold, x: Tensor, gradient: Tensor
) -> tuple[Callable[[Tensor], Tensor], Tensor, Tensor, Tensor]:
    """How a gradient meets the bounds of its space: (face, free, push, norm).

    Newton-like steps stay in the ``face`` of the bounds that are near and would be crossed, where the gradient is
    ``free``; ``push`` is a short plain descent step in the other directions, which the retraction stops at the bound
    (Bertsekas 1982). ``norm`` vanishes at a constrained minimum. Without bounds, free is the gradient and push is 0.
    """
    if not manifold.bounded:
        return lambda v: v, gradient, torch.zeros_like(gradient), manifold.norm(x, gradient)
    face, norm = manifold.face(x, -gradient, NEAR_BOUND), stationarity(manifold, x, gradient)
    free = face(gradient)
    far_enough = torch.full_like(norm, 10 * NEAR_BOUND * manifold.typical_distance)
    return face, free, shortened(manifold, x, free - gradient, far_enough), norm


def stationarity(manifold: Manifold, x: Tensor, gradient: Tensor) -> Tensor:
    """The norm of a gradient without what presses against the bounds that x has reached."""
    return manifold.norm(x, manifold.face(x, -gradient, _TIGHT)(gradient))


def shortened(manifold: Manifold, x: Tensor, v: Tensor, longest: Tensor) -> Tensor:
    """v, scaled down to length ``longest`` where it is longer."""
    size = manifold.norm(x, v)
    return spread(torch.where(size > longest, longest / size, 1), manifold) * v


def spread(scalar: Tensor, manifold: Manifold) -> Tensor:
    """Give per-element scalars trailing axes that broadcast against points."""
    return scalar[(..., *[None] * len(manifold.point_shape))]


class Batch:
    """A checked start, its layout, and evaluation of the user's function in that layout."""

    def __init__(
        self, f: Function, manifold: Manifold, start: Any, data: tuple[Tensor, ...], gradient: Function | None = None
    ) -> None:
        start = manifold.check(start)
        self.f, self.manifold, self.data, self.gradient = f, manifold, data, gradient
        self.shape = tuple(start.shape[: start.ndim - len(manifold.point_shape)])
        if math.prod(self.shape) == 0:
            raise ArgumentError(f"A batch has at least one start, got an empty one of shape {tuple(start.shape)}.")
        if not all(isinstance(d, Tensor) for d in data):
            came = ", ".join(type(d).__name__ for d in data)
            raise ArgumentError(f"Data are tensors, got {came}. Close over what all elements share.")
        if data and any(not self.shape or d.shape[:1] != self.shape[:1] for d in data):
            came = ", ".join(str(tuple(d.shape)) for d in data)
            raise ShapeError(f"Data begin with the first axis of the batch {self.shape}, got {came}.")
        self.limit = (
            manifold.injectivity_radius
            if math.isfinite(manifold.injectivity_radius)
            else 10 * manifold.typical_distance
        )
        self.inside = self.shape[1:] if data else ()
        self.start = start.detach().reshape(-1, math.prod(self.inside), *manifold.point_shape)

    def evaluate(self, f: Function, x: Tensor, data: tuple[Tensor, ...]) -> Tensor:
        """Call f on (rows, inner, *point) and check what it returns: (rows, inner, …), in the precision of x."""
        batch = (x.shape[0], *self.inside)
        out = f(x.reshape(*batch, *self.manifold.point_shape), *data)
        if not isinstance(out, Tensor) or out.shape[: len(batch)] != batch:
            came = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
            raise ShapeError(
                f"The function maps a batch of points, here {tuple(x.shape)}, to one number each, shape {batch}, "
                f"got {came}. Reduce over the trailing axes of a point only, as in (x**2).sum(-1)."
            )
        return out.reshape(*x.shape[:2], *out.shape[len(batch) :]).to(x.dtype)

    def value(self, x: Tensor, data: tuple[Tensor, ...]) -> Tensor:
        """f without derivatives, (rows, inner)."""
        with torch.no_grad():
            return self._scalar(self.evaluate(self.f, x, data))

    def derivatives(self, x: Tensor, data: tuple[Tensor, ...], graph: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """The leaf, f and its Euclidean gradient there; with ``graph`` the gradient can be differentiated again."""
        if self.gradient is not None:
            return self._given(self.gradient, x, data, graph)
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            value = self._scalar(self.evaluate(self.f, leaf, data))
            if not value.requires_grad:
                return leaf, value, torch.zeros_like(x)
            (gradient,) = torch.autograd.grad(
                value.sum(), leaf, create_graph=graph, allow_unused=True, materialize_grads=True
            )
        return leaf, value.detach(), gradient

    def _given(
        self, gradient: Function, x: Tensor, data: tuple[Tensor, ...], graph: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same with a gradient in closed form, which torch differentiates only if that is wanted."""
        with torch.set_grad_enabled(graph):
            leaf = x.detach().requires_grad_(graph)
            found = self._like(self.evaluate(gradient, leaf, data), x)
        return leaf, self.value(x, data), found

    def closed(self, hessian: Function, x: Tensor, data: tuple[Tensor, ...], v: Tensor) -> Tensor:
        """Products (rows, inner, *point) of a Hessian in closed form with vectors v."""
        with torch.no_grad():
            reshaped = v.reshape(x.shape[0], *self.inside, *self.manifold.point_shape)
            return self._like(self.evaluate(lambda at, *data: hessian(at, reshaped, *data), x, data), x)

    def _like(self, found: Tensor, x: Tensor) -> Tensor:
        if found.shape != x.shape:
            raise ShapeError(
                f"A derivative in closed form has the shape of the points, {self.manifold.point_shape} each, got "
                f"{tuple(found.shape[2:])}."
            )
        return found

    def _scalar(self, value: Tensor) -> Tensor:
        if value.ndim != 2:
            raise ShapeError(
                f"The function gives one number for each point, got numbers of shape {tuple(value.shape[2:])} each. "
                "Sum over them."
            )
        return value

    def run(
        self,
        state: State,
        step: Callable[[State], State],
        max_iterations: int,
        assess: Callable[[State], State] = lambda state: state,
        steady: bool = False,
    ) -> Result:
        """Step until every element has ended; write each row out when it has.

        ``assess`` brings the derivatives of rows that ran out of iterations up to date, where ``step`` does not. A
        ``steady`` function does the same operations at every call, so that a GPU may replay them.
        """
        done = _Output(state)
        end = replayed(step, state, max_iterations) if steady and state.x.is_cuda else None
        state = state if end is None else end
        for _ in range(max_iterations if end is None else 0):
            state = step(state)
            ended = ~state.running.any(1)
            if ended.any():
                done.write(state.rows(ended))
                state = state.rows(~ended)
            if not len(state.index):
                break
        else:
            state = assess(state)
            done.write(state.stop(state.running, Reason.MAX_ITERATIONS))
        return done.result(self.shape, self.manifold)


class _Output:
    """Results, filled in as rows end."""

    def __init__(self, state: State) -> None:
        self.x, self.value, self.norm = state.x.clone(), state.value.clone(), state.norm.clone()
        self.iterations, self.reason = state.iterations.clone(), state.reason.clone()

    def write(self, state: State) -> None:
        for name in ("x", "value", "norm", "iterations", "reason"):
            getattr(self, name)[state.index] = getattr(state, name)

    def result(self, shape: tuple[int, ...], manifold: Manifold) -> Result:
        words = np.array([Reason(code).words for code in self.reason.flatten().tolist()])
        return Result(
            point=self.x.reshape(*shape, *manifold.point_shape),
            value=self.value.reshape(shape),
            gradient_norm=self.norm.reshape(shape),
            iterations=self.iterations.reshape(shape),
            reason=words.reshape(shape),
        )


def initial_state(batch: Batch, memory: tuple[Tensor, ...]) -> State:
    """All rows, at their starts, not yet evaluated."""
    x = batch.start
    blank = x.new_full(x.shape[:2], torch.inf)
    zeros = torch.zeros(x.shape[:2], dtype=torch.long, device=x.device)
    index = torch.arange(len(x), device=x.device)
    return State(index, x, blank, torch.zeros_like(x), blank, zeros, zeros.clone(), batch.data, memory)


def check_options(*, tolerance: float, max_iterations: int) -> None:
    """Refuse stopping rules that have no meaning."""
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance <= _COARSEST:
        raise ArgumentError(f"tolerance is a number from 0 to {_COARSEST:g}, got {shown(tolerance)}.")
    check_size("max_iterations", max_iterations)
