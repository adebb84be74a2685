"""Batched minimisation on any manifold, with per-element state."""

from nestbo.optimise.batch import Result
from nestbo.optimise.constrained import ConstrainedResult, augmented_lagrangian, exact_penalty
from nestbo.optimise.lbfgs import lbfgs
from nestbo.optimise.trust_region import trust_region

__all__ = ["ConstrainedResult", "Result", "augmented_lagrangian", "exact_penalty", "lbfgs", "trust_region"]
