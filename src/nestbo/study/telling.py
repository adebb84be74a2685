"""Telling: what evaluations gave."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nestbo.errors import ArgumentError, TrialError, shown
from nestbo.evaluation import described, number, numbers
from nestbo.evaluation import values as values_of
from nestbo.history import Observation, Trial
from nestbo.lazy import torch
from nestbo.study.reading import Reading
from nestbo.study.settings import checked_note, positive

if TYPE_CHECKING:
    from torch import Tensor


class Telling(Reading):
    """The part of a study that records values."""

    def tell(
        self,
        trial: Trial | int,
        value: Any = None,
        *,
        failed: str | None = None,
        constraints: Any = None,
        noise: float | None = None,
        note: str | None = None,
    ) -> Trial:
        """Tell the value of a trial, or why it failed. The value is on the disk when this returns.

        Args:
            trial: The trial, or its index.
            value: A number, or an ``Observation``, which holds the other arguments, too. NaN and infinity are recorded
                as failures.
            failed: Why there is no value.
            constraints: Numbers that were measured with the value, each ≥ 0 if its constraint is satisfied. Every trial
                has the same number of them.
            noise: The variance of the noise in the value.
            note: A text of your own, such as "gripper slipped", shown in tables and in the report.

        Returns:
            The trial, told or failed.
        """
        if isinstance(value, Observation):
            value, constraints, noise, note = value.value, value.constraints, value.noise, value.note or note
        self._check_open()
        done = self._outcome(self._waiting(trial), value, failed, constraints, noise, note)
        self._store.tell(done)
        return done

    def _outcome(
        self, trial: Trial, value: Any, failed: str | None, constraints: Any, noise: Any, note: str | None
    ) -> Trial:
        """A trial with what was told of it, checked."""
        if (value is None) == (failed is None):
            raise ArgumentError("tell takes a value or failed='why', got both or neither.")
        values = (
            self._values(value, "tell", "Use failed='why' for an evaluation without one.") if failed is None else ()
        )
        facts = self._facts(constraints, noise) if failed is None else {}
        if facts is None:
            failed = f"the constraints are not all finite numbers: {shown(constraints)}"[:500]
        told = replace(trial.told, **(facts or {}), note=checked_note(note) or trial.told.note)
        return _outcome(replace(trial, told=told), values, failed)

    def _values(self, value: Any, who: str, otherwise: str) -> tuple[float, ...]:
        """A number for each objective."""
        found, count = values_of(value), len(self.objectives)
        if found is not None and len(found) == count:
            return found
        if found is not None and count == 1:
            raise ArgumentError(
                f"This study has one objective, got {len(found)} values: {shown(value)}. A study of several is "
                'Study(space, objectives=("…", "…")).'
            )
        wanted = "a number" if count == 1 else f"{count} numbers, one for each of {', '.join(self.objectives)}"
        raise ArgumentError(f"{who} takes {wanted}, got {shown(value)}. {otherwise}")

    def _facts(self, constraints: Any, noise: Any) -> dict[str, Any] | None:
        """Constraints and noise of an evaluation as fields of ``Told``; None if they are not finite."""
        if noise is not None and self.several:
            raise ArgumentError(
                f"noise goes with the value of a single objective, got {shown(noise)} with {len(self.objectives)}. "
                'Give it for the whole study: Study(space, objectives=…, noise="infer"), or a variance for each.'
            )
        variance = None if noise is None else number(noise)
        if noise is not None and not positive(variance):
            raise ArgumentError(
                f"noise is the variance of the noise in the value, a positive number, got {shown(noise)}."
            )
        values = None if constraints is None else numbers(constraints)
        earlier = next((t.constraints for t in reversed(self._read().trials) if t.status == "told"), values)
        if (values and len(values)) != (earlier and len(earlier)):
            raise ArgumentError(
                f"The trials of this study have {len(earlier or ())} constraints each, got {len(values or ())}. "
                "Tell the same ones with every value."
            )
        if not all(map(math.isfinite, values or ())):
            return None
        return {"noise": variance, "constraints": None if values is None else tuple(values)}

    def _same_trial(self, trial: Trial | int) -> Trial:
        """The trial as it is stored, if it is of this study."""
        index = trial.index if isinstance(trial, Trial) else trial
        found = self._find(index)
        if isinstance(trial, Trial) and not _same(trial.x, found.x):
            raise TrialError(
                f"Trial {index} of this study is another point. Tell the study that asked for it; if x was changed in "
                f"place, tell({index}, value)."
            )
        return found

    def _waiting(self, trial: Trial | int) -> Trial:
        """The trial as it is stored, if it waits for a value."""
        waiting = self._same_trial(trial)
        index = waiting.index
        if waiting.told.discarded:
            raise TrialError(f"Trial {index} was discarded. Use add(x, value) for an observation of its point.")
        if waiting.status != "asked":
            raise TrialError(
                f"Trial {index} was {waiting.status} already. Use correct({index}, value) to fix a "
                "mistake, or add(x, value) for another observation."
            )
        return waiting


def _same(x: Any, y: Tensor) -> bool:
    """Whether what came with a trial is the point y, to the last bit."""
    return isinstance(x, torch.Tensor) and x.shape == y.shape and bool((x.detach().cpu() == y).all())


def _outcome(trial: Trial, values: tuple[float, ...], failed: str | None) -> Trial:
    """The trial, told or failed."""
    if failed is None:
        if all(map(math.isfinite, values)):
            return trial.with_value(*values)
        which = values[0] if len(values) == 1 else values
        failed = f"the value is not a finite number: {shown(which)}"[:500]
    return trial.with_failure(failed if isinstance(failed, str) else described(failed))
