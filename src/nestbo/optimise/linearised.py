"""Constraints c(x) ≥ 0 as a trust region sees them: linearised at its centre, and restored at its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.linalg import inner
from nestbo.manifolds.base import Manifold
from nestbo.optimise.batch import Batch, Function, spread
from nestbo.optimise.state import State

_ACTIVE = 1e-6  # a constraint is active at this distance, relative to the size of the space
_RESTORATIONS, _HALVINGS = 3, 40


def constraint_values(batch: Batch, constraints: Function, x: Tensor, data: tuple[Tensor, ...]) -> Tensor:
    """c(x), (rows, inner, m)."""
    c = batch.evaluate(constraints, x, data)
    return c.unsqueeze(-1) if c.ndim == 2 else c


@dataclass(frozen=True)
class Linearised:
    """c (…, m), its Euclidean derivatives, ``slopes`` (…, m, size), and Riemannian ones, ``normals`` (…, m, *point)."""

    manifold: Manifold
    value: Callable[[Tensor], Tensor]
    x: Tensor
    c: Tensor
    slopes: Tensor
    normals: Tensor

    @classmethod
    def at(cls, batch: Batch, constraints: Function, state: State) -> Linearised:
        """The constraints around the current points."""

        def value(x: Tensor) -> Tensor:
            return constraint_values(batch, constraints, x, state.data)

        with torch.enable_grad():
            leaf = state.x.detach().requires_grad_()
            c = value(leaf)
            if not c.requires_grad:
                raise ArgumentError("Constraints are differentiable by torch, got values without a gradient.")
            gradients = [
                torch.autograd.grad(part.sum(), leaf, retain_graph=True, allow_unused=True, materialize_grads=True)[0]
                for part in c.unbind(-1)
            ]
        euclidean = torch.stack(gradients, 2)
        normals = batch.manifold.gradient(state.x.unsqueeze(2), euclidean)
        return cls(batch.manifold, value, state.x, c.detach(), euclidean.flatten(3), normals)

    def along(self, v: Tensor) -> Tensor:
        """∇c · v, (…, m)."""
        return inner(self.slopes, v.flatten(2).unsqueeze(2))

    def distance(self, eta: Tensor, direction: Tensor) -> Tensor:
        """The largest τ ≥ 0 with c + ∇c·(η + τδ) ≥ 0 in every component (algorithm 4)."""
        here, change = self.c + self.along(eta), self.along(direction)
        # On an active constraint the direction lies in its face: what is left of the change is rounding.
        leaving = change < -1e-10 * self._sizes * self.manifold.norm(self.x, direction).unsqueeze(-1)
        return torch.where(leaving, here.clamp(min=0) / -change, torch.inf).amin(-1)

    @property
    def _gram(self) -> Tensor:
        """⟨∇c_i, ∇c_j⟩, (…, m, m)."""
        return self.slopes @ self.normals.flatten(3).mT

    @property
    def _sizes(self) -> Tensor:
        return self._gram.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt()

    def _multipliers(self, which: Tensor, right: Tensor) -> Tensor:
        """Solve Gram·λ = right over a subset of the constraints; λ is 0 on the others."""
        both = which.unsqueeze(-1) & which.unsqueeze(-2)
        ridge = torch.diag_embed(torch.where(which, 1e-14 * self._sizes**2 + 1e-300, 1.0))
        system = torch.where(both, self._gram, 0) + ridge
        solution: Tensor = torch.linalg.solve_ex(system, torch.where(which, right, 0).unsqueeze(-1)).result
        return solution.squeeze(-1)

    def _combine(self, multipliers: Tensor) -> Tensor:
        """Σ λ_i ∇c_i."""
        return (spread(multipliers, self.manifold) * self.normals).sum(2)

    def face(self, descent: Tensor) -> Callable[[Tensor], Tensor]:
        """Projection onto the directions along those active constraints that ``descent`` presses against."""
        active = self.c <= _ACTIVE * self.manifold.typical_distance * self._sizes
        push = self.along(descent)
        for _ in range(self.c.shape[-1]):
            active = active & (self._multipliers(active, push) < 0)
        return lambda v: v - self._combine(self._multipliers(active, self.along(v)))

    def restore(self, eta: Tensor) -> tuple[Tensor, Tensor]:
        """A feasible end near retract(x, t·η), the largest t in 1, ½, ¼, … that has one, and t (0 if none has)."""
        factor = torch.ones_like(self.c[..., 0])
        for _ in range(_HALVINGS):
            end, inside = self._pull_back(self.manifold.retract(self.x, spread(factor, self.manifold) * eta))
            if inside.all():
                break
            factor = torch.where(inside, factor, factor / 2)
        factor = torch.where(inside, factor, 0)
        return torch.where(spread(inside, self.manifold), end, self.x), factor

    def _pull_back(self, end: Tensor) -> tuple[Tensor, Tensor]:
        """Correct a slightly infeasible end along the normals; say which ends are feasible."""
        for _ in range(_RESTORATIONS):
            c = self.value(end)
            if (c >= 0).all():
                break
            missing = 1.01 * (-c).clamp(min=0) + 1e-15 * self._sizes
            lift = self._combine(self._multipliers(c < 0, missing))
            end = self.manifold.retract(end, self.manifold.transport(self.x, end, lift))
        return end, (self.value(end) >= 0).all(-1)
