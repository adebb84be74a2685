"""Several objectives at once: which outcomes nothing dominates, in which order the others follow, and what they cover.

Everywhere here the least of every objective is the best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nestbo.interrupts import load

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from nestbo.lazy import torch

_FRONTS = 20  # that are told apart
_LATE = ("botorch.utils.multi_objective.box_decompositions.dominated", "botorch.utils.multi_objective.pareto")


def non_dominated(y: Tensor) -> Tensor:
    """Which outcomes y (…, n, m) no other one dominates, (…, n); equal ones count all."""
    load(*_LATE)
    from botorch.utils.multi_objective.pareto import is_non_dominated

    found: Tensor = is_non_dominated(y, maximize=False, deduplicate=False)
    return found


def ranks(y: Tensor) -> Tensor:
    """To which front each outcome y (n, m) belongs, (n,): 0 for the first, 1 for the first of the others, and so on.

    After so many fronts all others have the next rank: nobody asks how bad they are.
    """
    found, left = y.new_full((len(y),), _FRONTS), torch.arange(len(y), device=y.device)
    for rank in range(_FRONTS):
        if not len(left):
            break
        first = non_dominated(y[left])
        found[left[first]] = rank
        left = left[~first]
    return found


def hypervolume(y: Tensor, reference: Tensor) -> float:
    """The volume of what outcomes y (n, m) dominate and that dominates the reference (m,)."""
    load(*_LATE)
    from botorch.utils.multi_objective.box_decompositions.dominated import DominatedPartitioning

    inside = y[(y < reference).all(-1)]
    if not len(inside):
        return 0.0
    return float(DominatedPartitioning(ref_point=-reference, Y=-inside).compute_hypervolume())
