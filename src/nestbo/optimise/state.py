"""The state of a batch of minimisations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor


class Reason(IntEnum):
    """Why a minimisation ended."""

    RUNNING = 0
    CONVERGED = 1
    STALLED = 2
    MAX_ITERATIONS = 3
    NOT_FINITE = 4
    INFEASIBLE = 5

    @property
    def words(self) -> str:
        """The reason as results report it."""
        return _WORDS[self]


_WORDS = {
    Reason.RUNNING: "running",
    Reason.CONVERGED: "converged",
    Reason.STALLED: "stalled",
    Reason.MAX_ITERATIONS: "max iterations",
    Reason.NOT_FINITE: "not finite",
    Reason.INFEASIBLE: "infeasible",
}


@dataclass(frozen=True)
class State:
    """The unfinished rows of a batch; every tensor starts with the axis of rows."""

    index: Tensor
    x: Tensor
    value: Tensor
    gradient: Tensor
    norm: Tensor
    reason: Tensor
    iterations: Tensor
    data: tuple[Tensor, ...]
    memory: tuple[Tensor, ...] = ()

    def map(self, f: Callable[[Tensor], Tensor]) -> State:
        """The same function of every tensor."""
        part: dict[str, Any] = {
            name: tuple(map(f, value)) if isinstance(value, tuple) else f(value) for name, value in self._fields.items()
        }
        return State(**part)

    @property
    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def rows(self, keep: Tensor) -> State:
        """Only some of the rows."""
        return self.map(lambda tensor: tensor[keep])

    def overwrite(self, other: State) -> None:
        """Write the numbers of another state of the same shape over those of this one."""
        old, new = (
            [tensor for value in state._fields.values() for tensor in (value if isinstance(value, tuple) else [value])]
            for state in (self, other)
        )
        for own, their in zip(old, new, strict=True):
            if own is not their:
                own.copy_(their)

    def change(self, **changes: Any) -> State:
        """A copy with some fields replaced."""
        return dataclasses.replace(self, **changes)

    @property
    def running(self) -> Tensor:
        """Which elements go on, (rows, inner)."""
        return self.reason == Reason.RUNNING

    def stop(self, which: Tensor, reason: Reason) -> State:
        """End the running elements among ``which``."""
        return self.change(reason=torch.where(which & self.running, reason, self.reason))
