"""How much the front of a study of several objectives dominates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from nestbo.errors import ArgumentError, shown
from nestbo.evaluation import values
from nestbo.fronts import hypervolume
from nestbo.study.record import Record


class Fronts(Record):
    """The part of a study that compares trials by several objectives."""

    def hypervolume(self, reference: Sequence[float] | None = None) -> float:
        """The volume between the front and a reference point; a larger volume is better.

        Args:
            reference: A value for each objective that every useful trial beats. Without it, the worst told value of
                each objective; then volumes of different studies cannot be compared.
        """
        history = self._read()
        if not self.several:
            raise ArgumentError("The hypervolume needs several objectives, and this study has one. Use best.")
        bound = torch.tensor(self._reference(reference), dtype=torch.float64)
        front, signs = history.front, history.signs
        return hypervolume(signs * front.outcomes, signs * bound) if front else 0.0

    def _reference(self, reference: Any) -> tuple[float, ...]:
        """The reference given, or the worst told values."""
        if reference is None:
            return self._read().worst
        found = values(reference)
        if found is None or len(found) != len(self.objectives) or not all(map(math.isfinite, found)):
            raise ArgumentError(
                f"The reference is a finite number for each of {', '.join(self.objectives)}, got {shown(reference)}."
            )
        return found
