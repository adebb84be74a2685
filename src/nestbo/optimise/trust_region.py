"""The Riemannian trust region with truncated conjugate gradients (paper, appendix D, algorithms 2 to 4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.linalg import inner
from nestbo.manifolds.base import Manifold
from nestbo.optimise.batch import Batch, Function, Reason, Result, State, check_options, initial_state, spread

Operator = Callable[[Tensor], Tensor]

_ACCEPT = 0.1  # the least ratio of actual to predicted decrease
_LINEAR, _SUPERLINEAR = 0.1, 1.0  # conjugate gradients end at |r| ≤ |r₀|·min(linear, |r₀|^superlinear)
_DIFFERENCE = 2.0**-14  # length of the finite-difference step (Boumal 2015)
_HALVINGS = 40


def trust_region(
    f: Function,
    manifold: Manifold,
    start: Any,
    *,
    constraints: Function | None = None,
    data: tuple[Tensor, ...] = (),
    hessian: Literal["exact", "differences"] = "exact",
    tolerance: float = 1e-6,
    max_iterations: int = 200,
) -> Result:
    """Minimise f from every start in a batch, to a gradient norm of ``tolerance``.

    ``f`` maps points (*batch, *point) to values (*batch), each depending on its own point only; it is called with
    whatever part of the batch is still running. If elements differ in more than their point, ``data`` are tensors
    that begin with the first batch axis and reach ``f(x, *data)`` in step with it. ``constraints`` maps points to
    c(x) ≥ 0, shape (*batch) or (*batch, m); from a feasible start every iterate is feasible. The bounds of the space
    itself are always respected. ``hessian="differences"`` replaces double backward by differences of gradients.
    """
    check_options(tolerance=tolerance, max_iterations=max_iterations)
    if hessian not in ("exact", "differences"):
        raise ArgumentError(f'hessian is "exact" or "differences", got {hessian!r}.')
    batch = Batch(f, manifold, start, data)
    limit = manifold.reach if math.isfinite(manifold.reach) else 100 * manifold.typical_distance
    radius = batch.start.new_full(batch.start.shape[:2], min(limit, manifold.typical_distance) / 8)
    problem = _Problem(batch, constraints, hessian == "exact", tolerance, limit)
    state = initial_state(batch, (radius,))
    if constraints is not None:
        state = state.stop(~problem.feasible(state.x, state.data), Reason.INFEASIBLE)
    return batch.run(state, problem.step, max_iterations)


@dataclass(frozen=True)
class _Problem:
    batch: Batch
    constraints: Function | None
    exact: bool
    tolerance: float
    limit: float

    @property
    def manifold(self) -> Manifold:
        return self.batch.manifold

    def step(self, state: State) -> State:
        """One iteration of algorithm 2 for every running element."""
        manifold, (radius,) = self.manifold, state.memory
        state, hessian = self._derive(state)
        linear = self._linearise(state) if self.constraints else None
        eta, h_eta = truncated_cg(manifold, state.x, state.gradient, hessian, radius, state.running, linear)
        if self.constraints:
            shrink = self._backtrack(state, eta)
            eta, h_eta = spread(shrink, manifold) * eta, spread(shrink, manifold) * h_eta
        candidate = manifold.retract(state.x, eta)
        value = self.batch.value(candidate, state.data)
        predicted = -manifold.inner(state.x, state.gradient + h_eta / 2, eta)
        return self._update(state, candidate, value, predicted, manifold.norm(state.x, eta))

    def _update(self, state: State, candidate: Tensor, value: Tensor, predicted: Tensor, length: Tensor) -> State:
        """Move or stay, and resize the region. Near the end both decreases are rounding, so a little is added to each."""
        (radius,) = state.memory
        slack = 1e3 * torch.finfo(value.dtype).eps * state.value.abs().clamp(min=1)
        ratio = (state.value - value + slack) / (predicted + slack)
        ratio = torch.where(value.isfinite() & (predicted >= 0), ratio, -torch.inf)
        accept = state.running & (ratio > _ACCEPT) & (length > 0)
        smaller = torch.where(length > 0, torch.minimum(radius, length), radius) / 4
        radius = torch.where(ratio < 0.25, smaller, radius)
        grow = (ratio > 0.75) & (length >= 0.99 * radius)
        radius = torch.where(grow, (2 * radius).clamp(max=self.limit), radius)
        moved = state.change(
            x=torch.where(spread(accept, self.manifold), candidate, state.x),
            value=torch.where(accept, value, state.value),
            iterations=state.iterations + state.running,
            memory=(radius,),
        )
        nowhere = (radius < 1e-14 * self.limit) | (length == 0)
        return moved.stop(nowhere & ~accept, Reason.STALLED)

    def _derive(self, state: State) -> tuple[State, Operator]:
        """Value, gradient and Hessian at the current points; end the elements that have converged."""
        manifold = self.manifold
        leaf, value, euclidean = self.batch.derivatives(state.x, state.data, graph=self.exact)
        flat = euclidean.detach()
        gradient = manifold.gradient(state.x, flat)
        face = manifold.face(state.x, -gradient)
        gradient = face(gradient)
        norm = manifold.norm(state.x, gradient)
        state = state.change(value=value, gradient=gradient, norm=norm)
        state = state.stop(~(value.isfinite() & norm.isfinite()), Reason.NOT_FINITE)
        state = state.stop(norm <= self.tolerance, Reason.CONVERGED)

        def exact(v: Tensor) -> Tensor:
            if not euclidean.requires_grad:
                product = torch.zeros_like(v)
            else:
                (product,) = torch.autograd.grad(
                    euclidean, leaf, v, retain_graph=True, allow_unused=True, materialize_grads=True
                )
            return manifold.hessian(state.x, flat, product, v)

        def differences(v: Tensor) -> Tensor:
            length = manifold.norm(state.x, v)
            h = spread(_DIFFERENCE / torch.where(length > 0, length, 1), manifold)
            y = manifold.retract(state.x, h * v)
            _, _, there = self.batch.derivatives(y, state.data)
            change = manifold.transport(y, state.x, manifold.gradient(y, there)) - manifold.gradient(state.x, flat)
            return manifold.to_tangent(state.x, change / h)

        operator = exact if self.exact else differences
        return state, lambda v: face(operator(v))

    def _constraint(self, x: Tensor, data: tuple[Tensor, ...]) -> Tensor:
        """c(x), (rows, inner, m)."""
        assert self.constraints is not None
        c = self.batch.evaluate(self.constraints, x, data)
        return c.unsqueeze(-1) if c.ndim == 2 else c

    def feasible(self, x: Tensor, data: tuple[Tensor, ...]) -> Tensor:
        """Whether every constraint holds, (rows, inner)."""
        with torch.no_grad():
            return (self._constraint(x, data) >= 0).all(-1)

    def _linearise(self, state: State) -> tuple[Tensor, Tensor]:
        """c (rows, inner, m) and its Euclidean derivative, flattened: (rows, inner, m, size)."""
        with torch.enable_grad():
            leaf = state.x.detach().requires_grad_()
            c = self._constraint(leaf, state.data)
            rows = [
                torch.autograd.grad(part.sum(), leaf, retain_graph=True, allow_unused=True, materialize_grads=True)[0]
                for part in c.unbind(-1)
            ]
        return c.detach(), torch.stack(rows, 2).flatten(3)

    def _backtrack(self, state: State, eta: Tensor) -> Tensor:
        """The factor 1, ½, ¼, … by which a step must be cut so that its end is truly feasible; 0 if none is."""
        factor = torch.ones_like(state.value)
        for _ in range(_HALVINGS):
            end = self.manifold.retract(state.x, spread(factor, self.manifold) * eta)
            inside = self.feasible(end, state.data)
            if inside.all():
                return factor
            factor = torch.where(inside, factor, factor / 2)
        return torch.where(inside, factor, 0)


def truncated_cg(
    manifold: Manifold,
    x: Tensor,
    gradient: Tensor,
    hessian: Operator,
    radius: Tensor,
    running: Tensor,
    linear: tuple[Tensor, Tensor] | None,
) -> tuple[Tensor, Tensor]:
    """Minimise ⟨g, η⟩ + ½⟨Hη, η⟩ over |η| ≤ radius (algorithm 3), or until a linearised constraint (algorithm 4).

    Returns η and Hη.
    """
    eta, h_eta = torch.zeros_like(x), torch.zeros_like(x)
    residual, direction = gradient, -gradient
    rr = manifold.inner(x, residual, residual)
    enough = rr.sqrt() * torch.clamp(rr.sqrt() ** _SUPERLINEAR, max=_LINEAR)
    eta_eta, eta_d, d_d = torch.zeros_like(rr), torch.zeros_like(rr), rr
    running = running & (rr > 0)
    for _ in range(manifold.dim + 1):
        if not running.any():
            break
        h_direction = hessian(direction)
        curvature = manifold.inner(x, direction, h_direction)
        alpha = rr / curvature
        outside = (curvature <= 0) | (eta_eta + 2 * alpha * eta_d + alpha**2 * d_d >= radius**2)
        to_edge = (-eta_d + (eta_d**2 + d_d * (radius**2 - eta_eta)).clamp(min=0).sqrt()) / d_d
        length = torch.where(outside, to_edge, alpha)
        if linear is not None:
            to_constraint = _distance_to_constraint(*linear, eta, direction)
            outside = outside | (to_constraint < length)
            length = torch.minimum(length, to_constraint)
        length = torch.where(running & length.isfinite(), length, 0)
        eta, h_eta = eta + spread(length, manifold) * direction, h_eta + spread(length, manifold) * h_direction
        residual = manifold.to_tangent(x, residual + spread(length, manifold) * h_direction)
        rr_next = manifold.inner(x, residual, residual)
        running = running & ~outside & (rr_next.sqrt() > enough)
        beta = torch.where(running, rr_next / rr, 0)
        eta_eta = eta_eta + 2 * length * eta_d + length**2 * d_d
        eta_d = beta * (eta_d + length * d_d)
        d_d, rr = rr_next + beta**2 * d_d, rr_next
        direction = spread(beta, manifold) * direction - residual
    return eta, h_eta


def _distance_to_constraint(c: Tensor, slope: Tensor, eta: Tensor, direction: Tensor) -> Tensor:
    """The largest τ ≥ 0 with c + ∇c·(η + τδ) ≥ 0 in every component, (rows, inner)."""
    here = c + inner(slope, eta.flatten(2).unsqueeze(2))
    change = inner(slope, direction.flatten(2).unsqueeze(2))
    return torch.where(change < 0, here.clamp(min=0) / -change, torch.inf).amin(-1)
