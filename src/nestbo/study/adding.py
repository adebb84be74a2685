"""Adding: observations made elsewhere."""

from __future__ import annotations

import math
from typing import Any

from nestbo.errors import ArgumentError, shown
from nestbo.history import Observation, Told, Trial
from nestbo.study.record import Record
from nestbo.study.settings import checked_note
from nestbo.study.telling import Telling


class Adding(Record, Telling):
    """The part of a study that takes observations of points that it did not suggest."""

    def add(
        self, x: Any, value: Any, *, constraints: Any = None, noise: float | None = None, note: str | None = None
    ) -> Trial:
        """Add an observation made elsewhere. It may violate the constraints of the study.

        Args:
            x: One point of the space.
            value: A finite number, or an ``Observation``.
            constraints: As for ``tell``.
            noise: As for ``tell``.
            note: As for ``tell``.

        Returns:
            The trial, told.
        """
        if isinstance(value, Observation):
            value, constraints, noise, note = value.value, value.constraints, value.noise, value.note or note
        self._check_open()
        self._check_known("--allowed")
        x = self._point("add", x)
        values = self._values(value, "add", "An observation has a finite value.")
        if not all(map(math.isfinite, values)):
            raise ArgumentError(f"add takes a finite number as the value, got {shown(value)}.")
        facts = self._facts(constraints, noise)
        if facts is None:
            raise ArgumentError(f"add takes finite numbers as constraints, got {shown(constraints)}.")
        if self.constraints is not None and not self.constraints.allows(x):
            facts["violation"] = -min(0.0, self.constraints.slack(x.unsqueeze(0)).item())
        told = Told(values, **facts, note=checked_note(note))
        return Trial(self._store.add(x, told), x, "told", told, space=self.space)
