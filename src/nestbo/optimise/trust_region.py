"""The Riemannian trust region with truncated conjugate gradients (paper, appendix D, algorithms 2 to 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from nestbo.errors import ArgumentError, shown
from nestbo.manifolds.base import Manifold
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
)
from nestbo.optimise.linearised import Linearised, constraint_values
from nestbo.optimise.state import Reason, State

Operator = Callable[[Tensor], Tensor]

_ACCEPT = 0.1  # the least ratio of actual to predicted decrease
_LINEAR, _SUPERLINEAR = 0.1, 1.0  # conjugate gradients end at |r| ≤ |r₀|·min(linear, |r₀|^superlinear)
_IDLE = 10  # steps that promise no more than rounding, before giving up
_DIFFERENCE = 2.0**-14  # length of the finite-difference step (Boumal 2015)


def trust_region(
    f: Function,
    manifold: Manifold,
    start: Any,
    *,
    constraints: Function | None = None,
    data: tuple[Tensor, ...] = (),
    gradient: Function | None = None,
    hessian: Literal["exact", "differences"] | Function = "exact",
    tolerance: float = 1e-6,
    max_iterations: int = 200,
) -> Result:
    """Minimise f from every start in a batch, to a gradient norm of ``tolerance``.

    ``f`` maps points (*batch, *point) to values (*batch). Each value depends on its own point only, because ``f`` is
    called with the part of the batch that is still running. If the elements have further data, ``data`` are tensors
    that begin with the first batch axis, and ``f(x, *data)`` gets the rows that belong to x. ``constraints`` maps
    points to c(x) ≥ 0, shape (*batch) or (*batch, m); from a feasible start every iterate is feasible. The bounds of
    the space are always respected. ``hessian="differences"`` replaces double backward by differences of gradients.

    You can give derivatives in closed form. ``gradient`` maps points to Euclidean gradients (*batch, *point). A
    function ``hessian(x, v, *data)`` returns the product of the Euclidean Hessian with vectors v. With a gradient and
    without such a function, "exact" differentiates the gradient once.

    >>> import torch, nestbo as nb
    >>> starts = nb.Sphere(3).random(8, rng=torch.Generator().manual_seed(0))
    >>> weights = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    >>> result = nb.optimise.trust_region(lambda x: (weights * x**2).sum(-1), nb.Sphere(3), starts)
    >>> [round(v, 9) for v in result.value.tolist()] == [1.0] * 8
    True
    """
    check_options(tolerance=tolerance, max_iterations=max_iterations)
    if not callable(hessian) and hessian not in ("exact", "differences"):
        raise ArgumentError(f'hessian is "exact", "differences" or a function, got {shown(hessian)}.')
    if callable(hessian) and gradient is None:
        raise ArgumentError("A hessian in closed form needs the gradient, too. Pass gradient=.")
    batch = Batch(f, manifold, start, data, gradient)
    radius = batch.start.new_full(batch.start.shape[:2], min(batch.limit, manifold.typical_distance) / 8)
    problem = _Problem(batch, constraints, hessian, tolerance)
    state = initial_state(batch, (radius, torch.zeros_like(radius)))
    if constraints is not None:
        with torch.no_grad():
            feasible = (constraint_values(batch, constraints, state.x, state.data) >= 0).all(-1)
        state = state.stop(~feasible, Reason.INFEASIBLE)
    return batch.run(state, problem.step, max_iterations, problem.assess)


@dataclass(frozen=True)
class _Problem:
    batch: Batch
    constraints: Function | None
    hessian: Literal["exact", "differences"] | Function
    tolerance: float

    @property
    def manifold(self) -> Manifold:
        return self.batch.manifold

    def step(self, state: State) -> State:
        """One iteration of algorithm 2 for every running element."""
        manifold, (radius, _) = self.manifold, state.memory
        linear = self._linearise(state)
        state, hessian, push = self._derive(state, linear)
        eta, h_eta = truncated_cg(manifold, state.x, state.gradient, hessian, radius, state.running, linear)
        step = eta + shortened(manifold, state.x, push, radius)
        if linear is None:
            candidate = manifold.retract(state.x, step)
        else:
            with torch.no_grad():
                candidate, factor = linear.restore(step)
            step, eta, h_eta = (spread(factor, manifold) * v for v in (step, eta, h_eta))
        value = self.batch.value(candidate, state.data)
        predicted = -manifold.inner(state.x, state.gradient + h_eta / 2, eta)
        return self._update(state, candidate, value, predicted, manifold.norm(state.x, step))

    def assess(self, state: State) -> State:
        """Value, gradient and end of every element at its current point."""
        return self._derive(state, self._linearise(state))[0]

    def _linearise(self, state: State) -> Linearised | None:
        return Linearised.at(self.batch, self.constraints, state) if self.constraints else None

    def _update(self, state: State, candidate: Tensor, value: Tensor, predicted: Tensor, length: Tensor) -> State:
        """Move or stay, and resize the region; ``slack`` keeps decreases that are mere rounding from deciding."""
        radius, idle = state.memory
        slack = 1e3 * torch.finfo(value.dtype).eps * state.value.abs().clamp(min=1)
        ratio = (state.value - value + slack) / (predicted + slack)
        ratio = torch.where(value.isfinite() & (predicted >= 0), ratio, -torch.inf)
        accept = state.running & (ratio > _ACCEPT) & (length > 0)
        smaller = torch.where(length > 0, torch.minimum(radius, length), radius) / 4
        radius = torch.where(ratio < 0.25, smaller, radius)
        grow = (ratio > 0.75) & (length >= 0.99 * radius)
        radius = torch.where(grow, (2 * radius).clamp(max=self.batch.limit), radius)
        moved = state.change(
            x=torch.where(spread(accept, self.manifold), candidate, state.x),
            value=torch.where(accept, value, state.value),
            iterations=state.iterations + state.running,
            memory=(radius, torch.where(predicted > slack, 0, idle + 1)),
        )
        nowhere = (radius < 1e-14 * self.batch.limit) | (length == 0)
        return moved.stop(nowhere & ~accept | (idle >= _IDLE), Reason.STALLED)

    def _derive(self, state: State, linear: Linearised | None) -> tuple[State, Operator, Tensor]:
        """Value, gradient, Hessian and push at the current points; end the elements that have converged."""
        manifold = self.manifold
        leaf, value, euclidean = self.batch.derivatives(state.x, state.data, graph=self.hessian == "exact")
        flat = euclidean.detach()
        face, gradient, push, norm = reduced_gradient(manifold, state.x, manifold.gradient(state.x, flat))
        if linear is not None:
            bounds, along = face, linear.face(-gradient)
            face, gradient = lambda v: along(bounds(v)), along(gradient)
            norm = manifold.norm(state.x, gradient)
        state = state.change(value=value, gradient=gradient, norm=norm)
        state = state.stop(~(value.isfinite() & norm.isfinite()), Reason.NOT_FINITE)
        state = state.stop(norm <= self.tolerance, Reason.CONVERGED)

        def exact(v: Tensor) -> Tensor:
            if not euclidean.requires_grad:
                return torch.zeros_like(v)
            (product,) = torch.autograd.grad(
                euclidean, leaf, v, retain_graph=True, allow_unused=True, materialize_grads=True
            )
            return product

        def differences(v: Tensor) -> Tensor:
            length = manifold.norm(state.x, v)
            h = spread(_DIFFERENCE / torch.where(length > 0, length, 1), manifold)
            _, _, there = self.batch.derivatives(manifold.retract(state.x, h * v), state.data)
            return (there - flat) / h

        product, bend = self._product(state, exact, differences), manifold.bend(state.x, flat, NEAR_BOUND)

        def operator(v: Tensor) -> Tensor:
            curved = manifold.hessian(state.x, flat, product(v), v)
            return face(curved + bend(v)) if manifold.bounded else face(curved)

        return state, operator, push

    def _product(self, state: State, exact: Operator, differences: Operator) -> Operator:
        """The Euclidean Hessian times a vector, in one of three ways."""
        if callable(self.hessian):
            return partial(self.batch.closed, self.hessian, state.x, state.data)
        return exact if self.hessian == "exact" else differences


def truncated_cg(
    manifold: Manifold,
    x: Tensor,
    gradient: Tensor,
    hessian: Operator,
    radius: Tensor,
    running: Tensor,
    linear: Linearised | None,
) -> tuple[Tensor, Tensor]:
    """Minimise ⟨g, η⟩ + ½⟨Hη, η⟩ over |η| ≤ radius (algorithm 3), or until a linearised constraint (algorithm 4).

    Returns η and Hη.
    """
    eta, h_eta = torch.zeros_like(x), torch.zeros_like(x)
    residual, direction = gradient, -gradient
    rr = manifold.inner(x, residual, residual)
    enough = rr.sqrt() * torch.clamp(rr.sqrt() ** _SUPERLINEAR, max=_LINEAR)
    eta_eta, eta_d, d_d = torch.zeros_like(rr), torch.zeros_like(rr), rr
    running, edge = running & (rr > 0), radius**2
    for _ in range(manifold.dim + 1):
        if not running.any():
            break
        h_direction = hessian(direction)
        curvature = manifold.inner(x, direction, h_direction)
        alpha = rr / curvature
        outside = (curvature <= 0) | (eta_eta + 2 * alpha * eta_d + alpha**2 * d_d >= edge)
        to_edge = (-eta_d + (eta_d**2 + d_d * (edge - eta_eta)).clamp(min=0).sqrt()) / d_d
        length = torch.where(outside, to_edge, alpha)
        if linear is not None:
            to_constraint = linear.distance(eta, direction)
            outside = outside | (to_constraint < length)
            length = torch.minimum(length, to_constraint)
        length = torch.where(running & length.isfinite(), length, 0)
        far = spread(length, manifold)
        step = far * h_direction
        eta, h_eta = eta + far * direction, h_eta + step
        residual = manifold.to_tangent(x, residual + step)
        rr_next = manifold.inner(x, residual, residual)
        running = running & ~outside & (rr_next.sqrt() > enough)
        beta = torch.where(running, rr_next / rr, 0)
        eta_eta = eta_eta + 2 * length * eta_d + length**2 * d_d
        eta_d = beta * (eta_d + length * d_d)
        d_d, rr = rr_next + beta**2 * d_d, rr_next
        direction = spread(beta, manifold) * direction - residual
    return eta, h_eta
