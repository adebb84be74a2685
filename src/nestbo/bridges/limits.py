"""The constraints of Optuna's trials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from optuna.trial import FrozenTrial

CONSTRAINTS = "constraints"  # where Optuna keeps a list; those with a name are at "constraints:name"


def constraints_of(trial: FrozenTrial) -> dict[str, float]:
    """The constraints of a trial by name, ≥ 0 where they are satisfied: in Optuna they are ≤ 0 there."""
    listed = enumerate(trial.system_attrs.get(CONSTRAINTS) or ())
    prefix = f"{CONSTRAINTS}:"
    named = {k.removeprefix(prefix): v for k, v in trial.system_attrs.items() if k.startswith(prefix)}
    return {name: -value for name, value in ({str(k): v for k, v in listed} | named).items()}


def least_of(told: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The least finite number told of each constraint, in the order in which they were first told."""
    found: dict[str, float] = {}
    for constraints in told:
        for name in sorted(constraints):
            if math.isfinite(constraints[name]):
                found[name] = min(constraints[name], found.get(name, math.inf))
    return found
