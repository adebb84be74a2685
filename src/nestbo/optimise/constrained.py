"""Constrained minimisation on manifolds: augmented Lagrangian and exact penalty (Liu and Boumal 2019).

Constraints are g(x) ≥ 0 and h(x) = 0. Both methods minimise a smooth merit function with L-BFGS, again and again,
each element of the batch with its own multipliers and penalty, and tighten these between the rounds.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.manifolds.base import Manifold
from nestbo.optimise.batch import Batch, Function, Result, check_options, initial_state
from nestbo.optimise.lbfgs import lbfgs
from nestbo.optimise.state import Reason, State

Parameters = tuple[Tensor, ...]

_FIRST_ACCURACY = 1e-2
_INNER = 300  # L-BFGS iterations in a round


@dataclass(frozen=True)
class ConstrainedResult(Result):
    """A result with the largest violation of a constraint at its point."""

    violation: Tensor


def augmented_lagrangian(
    f: Function,
    manifold: Manifold,
    start: Any,
    *,
    inequalities: Function | None = None,
    equalities: Function | None = None,
    tolerance: float = 1e-6,
    max_rounds: int = 50,
) -> ConstrainedResult:
    """Minimise f subject to inequalities g(x) ≥ 0 and equalities h(x) = 0, both to within ``tolerance``.

    Each constraint maps points (*batch, *point) to (*batch) or (*batch, m). The start need not be feasible.
    """
    problem = _Problem(Batch(f, manifold, start, ()), inequalities, equalities, _AugmentedLagrangian(), tolerance)
    return problem.solve(max_rounds)


def exact_penalty(
    f: Function,
    manifold: Manifold,
    start: Any,
    *,
    inequalities: Function | None = None,
    equalities: Function | None = None,
    tolerance: float = 1e-6,
    max_rounds: int = 50,
) -> ConstrainedResult:
    """Like ``augmented_lagrangian``, with a smoothed ℓ₁ penalty of finite weight instead of multipliers."""
    problem = _Problem(Batch(f, manifold, start, ()), inequalities, equalities, _ExactPenalty(), tolerance)
    return problem.solve(max_rounds)


class _Method(ABC):
    """A merit function f + penalty(g, h; parameters) and the rule by which its parameters tighten."""

    @abstractmethod
    def begin(self, g: Tensor, h: Tensor) -> Parameters:
        """Parameters of the first round, each (n, …)."""

    @abstractmethod
    def penalty(self, g: Tensor, h: Tensor, *parameters: Tensor) -> Tensor:
        """What is added to f, (n,)."""

    @abstractmethod
    def tighten(self, g: Tensor, h: Tensor, *parameters: Tensor) -> Parameters:
        """Parameters of the next round."""

    @abstractmethod
    def residual(self, g: Tensor, h: Tensor, *parameters: Tensor) -> Tensor:
        """How far a minimiser of the merit function is from one of the problem: 0 at a solution, (n,)."""


class _AugmentedLagrangian(_Method):
    """½ρ Σ (h + γ/ρ)² + ½ρ Σ max(0, λ/ρ − g)²; parameters λ, γ, ρ and the last round's violation."""

    grow, enough, largest = 1 / 0.3, 0.25, 1e8

    def begin(self, g: Tensor, h: Tensor) -> Parameters:
        weight = torch.ones_like(g[:, 0]) if g.shape[1] else torch.ones_like(h[:, 0])
        return torch.zeros_like(g), torch.zeros_like(h), weight, torch.full_like(weight, math.inf)

    def penalty(self, g: Tensor, h: Tensor, *parameters: Tensor) -> Tensor:
        lam, gamma, weight, _ = parameters
        rho = weight.unsqueeze(-1)
        equal, less = h + gamma / rho, (lam / rho - g).clamp(min=0)
        return weight / 2 * ((equal**2).sum(-1) + (less**2).sum(-1))

    def tighten(self, g: Tensor, h: Tensor, *parameters: Tensor) -> Parameters:
        lam, gamma, weight, before = parameters
        rho, sigma = weight.unsqueeze(-1), self.residual(g, h, *parameters)
        lam = (lam - rho * g).clamp(0, self.largest)
        gamma = (gamma + rho * h).clamp(-self.largest, self.largest)
        weight = torch.where(sigma <= self.enough * before, weight, (self.grow * weight).clamp(max=self.largest))
        return lam, gamma, weight, sigma

    def residual(self, g: Tensor, h: Tensor, *parameters: Tensor) -> Tensor:
        """The violation, and the slack of a constraint whose multiplier pushes all the same."""
        lam, _, weight, _ = parameters
        slack = torch.maximum(-g, -lam / weight.unsqueeze(-1))
        return torch.cat([h.abs(), slack.abs()], -1).amax(-1)


class _ExactPenalty(_Method):
    """ρ (Σ P(−g) + Σ √(h² + u²)), P linear with a quadratic corner of width u; parameters ρ and u."""

    grow, sharpen, sharpest = 1 / 0.3, 0.3, 1e-7

    def begin(self, g: Tensor, h: Tensor) -> Parameters:
        weight = torch.ones_like(g[:, 0]) if g.shape[1] else torch.ones_like(h[:, 0])
        return weight, torch.full_like(weight, 0.1)

    def penalty(self, g: Tensor, h: Tensor, *parameters: Tensor) -> Tensor:
        weight, width = parameters
        u, over = width.unsqueeze(-1), (-g).clamp(min=0)
        corner = torch.where(over < u, over**2 / (2 * u), over - u / 2)
        return weight * (corner.sum(-1) + (h**2 + u**2).sqrt().sum(-1))

    def tighten(self, g: Tensor, h: Tensor, *parameters: Tensor) -> Parameters:
        weight, width = parameters
        violated = violation(g, h) > 2 * width
        return torch.where(violated, self.grow * weight, weight), (self.sharpen * width).clamp(min=self.sharpest)

    def residual(self, g: Tensor, h: Tensor, *parameters: Tensor) -> Tensor:
        """The violation, once the corner is as sharp as it gets."""
        return torch.where(parameters[1] <= self.sharpest, violation(g, h), math.inf)


@dataclass(frozen=True)
class _Problem:
    batch: Batch
    inequalities: Function | None
    equalities: Function | None
    method: _Method
    tolerance: float

    def solve(self, max_rounds: int) -> ConstrainedResult:
        """Rounds until every element has converged or time is up."""
        check_options(tolerance=self.tolerance, max_iterations=max_rounds)
        if self.inequalities is None and self.equalities is None:
            raise ArgumentError("Wanted inequalities or equalities, got neither. Without any, use lbfgs.")
        x = self.batch.start.squeeze(1)
        accuracy = x.new_full((len(x),), max(_FIRST_ACCURACY, self.tolerance))
        state = initial_state(self.batch, (*self.method.begin(*self.constraints(x)), accuracy))
        result = self.batch.run(state, self.step, max_rounds)
        worst = violation(*self.constraints(result.point.reshape(x.shape))).reshape(self.batch.shape).detach()
        late = (result.reason == Reason.MAX_ITERATIONS.words) & (worst > self.tolerance).cpu().numpy()
        reason = np.where(late, Reason.INFEASIBLE.words, result.reason)
        fields = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
        return ConstrainedResult(**{**fields, "reason": reason}, violation=worst)

    def constraints(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """g and h at points (n, *point), each (n, m) with m = 0 where there are none."""
        rows = x.unsqueeze(1)
        return self._values(self.inequalities, rows), self._values(self.equalities, rows)

    def _values(self, constraint: Function | None, rows: Tensor) -> Tensor:
        if constraint is None:
            return rows.new_zeros(len(rows), 0)
        return self.batch.evaluate(constraint, rows, ()).reshape(len(rows), -1)

    def merit(self, x: Tensor, *parameters: Tensor) -> Tensor:
        value = self.batch.evaluate(self.batch.f, x.unsqueeze(1), ()).squeeze(1)
        return value + self.method.penalty(*self.constraints(x), *parameters)

    def step(self, state: State) -> State:
        """One round: minimise the merit function, then tighten its parameters."""
        *parameters, accuracy = state.memory
        before, goal = state.x.squeeze(1), accuracy[0].item()
        found = lbfgs(
            self.merit, self.batch.manifold, before, data=tuple(parameters), tolerance=goal, max_iterations=_INNER
        )
        g, h = self.constraints(found.point)
        at_rest = (found.point - before).flatten(1).abs().amax(-1) <= self.tolerance
        good = (self.method.residual(g, h, *parameters) <= self.tolerance) & (goal <= self.tolerance)
        state = state.change(
            x=found.point.unsqueeze(1),
            value=self.batch.value(found.point.unsqueeze(1), ()),
            norm=found.gradient_norm.unsqueeze(1),
            iterations=state.iterations + found.iterations.unsqueeze(1),
            memory=(*self.method.tighten(g, h, *parameters), (accuracy / 10).clamp(min=self.tolerance)),
        )
        lost = torch.as_tensor(found.reason == Reason.NOT_FINITE.words, device=before.device)
        state = state.stop(lost.unsqueeze(1), Reason.NOT_FINITE)
        calm = at_rest | (found.gradient_norm <= self.tolerance)
        return state.stop((good & calm).unsqueeze(1), Reason.CONVERGED)


def violation(g: Tensor, h: Tensor) -> Tensor:
    """The largest violation of g ≥ 0 and h = 0 per element, (n,)."""
    return torch.cat([(-g).clamp(min=0), h.abs()], -1).amax(-1)
