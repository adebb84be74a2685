"""One point that was tried, and what was told about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from nestbo.errors import retired
from nestbo.memory import Memory
from nestbo.text import in_notebook

if TYPE_CHECKING:
    from torch import Tensor

    from nestbo.manifolds import Space

Status = Literal["asked", "told", "failed"]
State = Literal["asked", "told", "failed", "discarded"]


@dataclass(frozen=True)
class Observation:
    """The outcome of an evaluation, with constraints, noise or a note beside the value.

    Args:
        value: What was measured.
        constraints: One or several numbers, each ≥ 0 where its constraint is satisfied.
        noise: The variance of the noise in the value.
        note: A text of your own.
    """

    value: Any
    constraints: Any = None
    noise: float | None = None
    note: str | None = None


@dataclass(frozen=True)
class Told:
    """What the user, or the run, told about a trial. The memory of the strategy is kept apart.

    Args:
        values: The value of a told trial, or its several values.
        constraints: Numbers, each ≥ 0 where its constraint is satisfied.
        noise: The variance of the noise in the value.
        failed: Why there is no value.
        violation: By how much an added point violates constraints known in advance.
        lost: A reason for each worker that died during the evaluation.
        note: A text of the user.
        discarded: Whether the trial is to be ignored.
        corrected: Earlier values, oldest first, which later ones replaced.
    """

    values: tuple[float, ...] = ()
    constraints: tuple[float, ...] | None = None
    noise: float | None = None
    failed: str | None = None
    violation: float | None = None
    lost: tuple[str, ...] = ()
    note: str | None = None
    discarded: bool = False
    corrected: tuple[tuple[float, ...], ...] = ()

    def __repr__(self) -> str:
        """Only what was told."""
        told = ((each.name, getattr(self, each.name), each.default) for each in fields(self))
        return f"Told({', '.join(f'{name}={value!r}' for name, value, default in told if value != default)})"


@dataclass(frozen=True)
class Trial:
    """One point, what was told about it, and the memory of the strategy that suggested it.

    Args:
        index: Its number in the study.
        x: The point.
        status: "asked", "told" or "failed".
        told: What was told about it.
        memory: What the strategy remembers. Only the strategy reads it.
        space: The space of the point; studies fill it in.

    >>> import torch
    >>> Trial(0, torch.zeros(2)).with_value(3.5).value
    3.5
    """

    index: int
    x: Tensor
    status: Status = "asked"
    told: Told = Told()
    memory: Memory = field(default=Memory(), repr=False)
    space: Space | None = field(default=None, compare=False, repr=False)

    def with_value(self, *values: float, **facts: Any) -> Trial:
        """The same trial, told.

        Args:
            *values: A value for each objective.
            **facts: More fields of ``Told``.
        """
        return replace(self, status="told", told=replace(self.told, values=values, **facts))

    def with_failure(self, why: str = "") -> Trial:
        """The same trial, failed.

        Args:
            why: Why there is no value.
        """
        return replace(self, status="failed", told=replace(self.told, values=(), failed=why))

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name, as a person would write them; without names, the point is called x."""
        return {"x": self.x.numpy(force=True)} if self.space is None else self.space.parameters(self.x)

    @property
    def value(self) -> float | None:
        """The value, if there is exactly one."""
        return self.told.values[0] if len(self.told.values) == 1 else None

    @property
    def values(self) -> tuple[float, ...]:
        """The value of each objective; empty if nothing was told."""
        return self.told.values

    @property
    def constraints(self) -> tuple[float, ...] | None:
        """The told constraints, each ≥ 0 if it is satisfied; None if none were told."""
        return self.told.constraints

    @property
    def noise(self) -> float | None:
        """The variance of the noise in the value, if it was told with the value."""
        return self.told.noise

    def _repr_html_(self) -> str:
        return in_notebook("trial_html", self)

    @property
    def state(self) -> State:
        """The status of the trial, or "discarded"."""
        return "discarded" if self.told.discarded else self.status

    @property
    def feasible(self) -> bool:
        """Whether no constraint is known to be violated here."""
        return self.told.violation is None and all(c >= 0 for c in self.constraints or ())

    @property
    def notes(self) -> Mapping[str, Any]:
        """The memory and what was told besides the value, in one read-only mapping. A later version will remove it."""
        retired("Trial.notes", "Trial.told and Trial.memory", "0.3")
        return MappingProxyType(noted(self))


def noted(trial: Trial) -> dict[str, Any]:
    """The memory of a trial and what was told besides the value; the latter goes before the former."""
    facts = {name: getattr(trial.told, name) for name in _NOTED}
    said = {name: fact for name, fact in facts.items() if fact not in (None, ())}
    lists = {name: list(fact) if isinstance(fact, tuple) else fact for name, fact in said.items()}
    return {**trial.memory.json, **lists}


_NOTED = ("noise", "constraints", "failed", "lost", "violation")  # what notes had of facts
