"""How a point is evaluated: here, on a worker, or in a process of its own that can be ended."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from nestbo.apart import apart
from nestbo.errors import ArgumentError, ObjectiveError, shown
from nestbo.history import Observation
from nestbo.interrupts import let_through
from nestbo.lazy import torch

if TYPE_CHECKING:
    import numpy as np

_BORN = os.getpid()
_LONGEST = 2e6  # seconds that a system waits for a pipe: 23 days


@dataclass(frozen=True)
class Outcome:
    """A value, or several, or why there is none; of an error, its text leaves the process."""

    value: float | tuple[float, ...] | Observation | None = None
    failed: str | None = None
    error: BaseException | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Outcome, (self.value, self.failed, self.error and ObjectiveError(self.failed))


@dataclass(frozen=True)
class Evaluation:
    """How a point is evaluated, wherever that is: ``f`` gets a copy, as a tensor or an array."""

    f: Callable[[Any], Any]
    numpy: bool = False
    timeout: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.f):
            raise ArgumentError(f"run takes a function of a point, got {shown(self.f)}.")
        seconds = self.timeout
        if seconds is None:
            return
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= _LONGEST:
            raise ArgumentError(
                f"timeout is None or a positive number of seconds up to {_LONGEST:g}, got {shown(seconds)}."
            )
        if not hasattr(os, "fork"):
            raise ArgumentError("timeout needs a system whose processes can fork, such as Linux. Leave it out.")

    def __call__(self, x: np.ndarray[Any, Any], name: str = "") -> Outcome:
        """What becomes of a point; the name tells calls apart, for dask answers equal ones alike."""
        if os.getpid() != _BORN:
            torch.set_num_threads(1)  # the threads of OpenMP do not survive a fork, and would be waited for
        with let_through():
            return self._here(x) if self.timeout is None else self._apart(x, self.timeout)

    def _here(self, x: np.ndarray[Any, Any]) -> Outcome:
        process = os.getpid()
        try:
            value = self.f(x.copy() if self.numpy else torch.from_numpy(x.copy()))
            found = values(value.value if isinstance(value, Observation) else value)
            if found is None:
                outcome = Outcome(None, f"the objective returned {shown(value)}, not a number")
            else:
                outcome = Outcome(observed(found, value))
        except KeyboardInterrupt:
            raise
        except SystemExit as error:
            outcome = Outcome(None, f"the objective called exit({shown(error.code)})", error)
        except BaseException as error:  # also what is no Exception, such as asyncio.CancelledError
            outcome = Outcome(None, described(error), error)
        if os.getpid() != process:
            os._exit(1)  # the objective forked, and this is the copy: there is one driver only
        return outcome

    def _apart(self, x: np.ndarray[Any, Any], seconds: float) -> Outcome:
        """The same in a process of its own, which is killed, with all that it started, when the time is up."""
        try:
            return apart(lambda: self._here(x), seconds)
        except TimeoutError:
            return Outcome(None, f"no value within {seconds:g} s; the evaluation was ended")


def number(value: Any) -> float | None:
    """A float from a number, a 0-d tensor or an array of one element; None from anything else."""
    try:
        plain = value.item() if hasattr(value, "item") else value
        return None if isinstance(plain, str | bytes | bytearray | bool) else float(plain)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None


def values(value: Any) -> tuple[float, ...] | None:
    """Floats from a number, or from a tuple, list, array or tensor of at least two; None from anything else."""
    single = number(value)
    if single is not None:
        return (single,)
    several = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(several, list | tuple) or len(several) < 2:
        return None
    found = tuple(number(each) for each in several)
    return None if None in found else cast(tuple[float, ...], found)


def observed(found: tuple[float, ...], value: Any) -> float | tuple[float, ...] | Observation:
    """What was returned with a value, or with several, in plain numbers that can leave the process."""
    plain = found[0] if len(found) == 1 else found
    if not isinstance(value, Observation):
        return plain
    constraints, noise = value.constraints, number(value.noise)
    listed = None if constraints is None else numbers(constraints)
    return Observation(plain, listed, value.noise if noise is None else noise, value.note)


def numbers(values: Any) -> list[float]:
    """Floats from a number, or from a list, tuple, array or tensor of them."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    found = [number(value) for value in (values if isinstance(values, list | tuple) else [values])]
    if not found or None in found:
        raise ArgumentError(f"constraints are numbers, ≥ 0 where they are satisfied, got {shown(values)}.")
    return [value for value in found if value is not None]


def described(error: Any) -> str:
    """An error in words, not too many; or another thing that is given in place of one."""
    if not isinstance(error, BaseException):
        return shown(error)
    try:
        return f"{type(error).__name__}: {error}"[:500]
    except Exception:  # of its own __str__
        return type(error).__name__
