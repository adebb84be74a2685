"""Mending: mistakes of people, corrected and kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nestbo.errors import TrialError
from nestbo.history import Observation, Told, Trial
from nestbo.study.settings import checked_note
from nestbo.study.telling import Telling


class Mending(Telling):
    """The part of a study that changes what was told."""

    def correct(
        self,
        trial: Trial | int,
        value: Any = None,
        *,
        failed: str | None = None,
        constraints: Any = None,
        noise: float | None = None,
        note: str | None = None,
    ) -> Trial:
        """Replace the value of a trial that was told or failed. The file keeps the earlier value.

        Earlier suggestions do not change. The next suggestion is made as if the right value had been told at first.

        Args:
            trial: The trial, or its index.
            value: The right value, as for ``tell``.
            failed: Why there is no value.
            constraints: As for ``tell``; without them, the earlier ones stay.
            noise: As for ``tell``; without it, the earlier variance stays.
            note: A text of your own; without it, the earlier note stays. A note alone keeps the value.

        Returns:
            The trial as it is now. ``told.corrected`` are its earlier values, oldest first.
        """
        if isinstance(value, Observation):
            value, constraints, noise, note = value.value, value.constraints, value.noise, value.note or note
        before = self._kept_trial(trial)
        if before.status == "asked":
            raise TrialError(f"Trial {before.index} waits for a value. tell({before.index}, value) gives it one.")
        told = before.told
        if note is not None and all(given is None for given in (value, failed, constraints, noise)):
            return self._revised(before, replace(told, note=checked_note(note)))
        earlier = replace(told, failed=None, corrected=(*told.corrected, told.values))
        constraints = told.constraints if constraints is None else constraints
        noise = told.noise if noise is None else noise
        mended = self._outcome(replace(before, told=earlier), value, failed, constraints, noise, note)
        self._store.revise(mended, told)
        return mended

    def discard(self, trial: Trial | int, *, note: str | None = None) -> Trial:
        """Exclude a trial: its value was a mistake, or nobody will ever evaluate it.

        The trial stays in the file and in ``history``. It is no longer pending, does not count towards the budget, and
        has no influence on suggestions or on the best value.

        Args:
            trial: The trial, or its index.
            note: A text of your own, which says why.

        Returns:
            The trial as it is now, with ``told.discarded``.
        """
        before = self._kept_trial(trial)
        note = checked_note(note) or before.told.note
        return self._revised(before, replace(before.told, discarded=True, note=note))

    def _revised(self, before: Trial, told: Told) -> Trial:
        """The trial with other words about it, in the file as well."""
        revised = replace(before, told=told)
        self._store.revise(revised, before.told)
        return revised

    def _kept_trial(self, trial: Trial | int) -> Trial:
        """The trial as it is stored, if it was not discarded."""
        self._check_open()
        found = self._same_trial(trial)
        if found.told.discarded:
            raise TrialError(f"Trial {found.index} was discarded already. Use add(x, value) for another observation.")
        return found
