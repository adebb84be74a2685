"""A trial as a row of the file: text and bytes with a checksum, and back, refusing what nestbo cannot have written."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from importlib import metadata
from itertools import product
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

from nestbo.history import Told, Trial
from nestbo.memory import Memory

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import Tensor

    Array = np.ndarray[Any, Any]
else:
    from nestbo.lazy import numpy as np
    from nestbo.lazy import torch

UNREADABLE = (ValueError, TypeError, RecursionError, OverflowError)
_DIGEST = 8  # bytes: one damaged row in 10^19 goes unnoticed


@cache
def version() -> str:
    """The version of nestbo that runs here."""
    try:
        return metadata.version("nestbo")
    except metadata.PackageNotFoundError:
        return "unknown"


class Row(NamedTuple):
    """A row of the table of trials, without its checksum."""

    number: int
    status: str
    x: bytes | None = None
    told: str = "{}"
    memory: str = "{}"
    owner: str | None = None
    asked_at: float | None = None
    told_at: float | None = None
    version: str | None = None
    revision: int = 0


COLUMNS = ", ".join(Row._fields)


def checksum(values: tuple[Any, ...]) -> bytes:
    """A digest of values and their types; ``ascii`` writes each in one way, on every version of Python."""
    return hashlib.blake2b(ascii(values).encode(), digest_size=_DIGEST).digest()


def checked(number: Any, *rest: Any) -> Row:
    """A row as it came from the file, with its checksum last, if the two agree."""
    *values, found = rest
    row = Row(number, *values)
    if found != checksum(tuple(row)):
        raise ValueError("its checksum is another one")
    check_kinds(row)
    return row


def check_kinds(row: Row) -> None:
    """Refuse a row that nestbo cannot have written, whatever its checksum is."""
    if tuple(map(type, row)) not in _KINDS:
        raise ValueError(f"its columns are {', '.join(type(value).__name__ for value in row)}")
    if row.number < 0:
        raise ValueError("its number is negative")


_TEXT, _TIME = (str, NoneType), (float, NoneType)
_KINDS = set(product((int,), (str,), (bytes, NoneType), (str,), (str,), _TEXT, _TIME, _TIME, _TEXT, (int,)))


def pack(x: Tensor) -> bytes:
    """A point as eight-byte floats, so that nothing is rounded."""
    return x.detach().cpu().numpy().astype("<f8").tobytes()


def tensor(values: Array) -> Tensor:
    """A point as the library has it."""
    return torch.from_numpy(values)


def trial_of(row: Row, shape: tuple[int, ...], point_of: Callable[[Array], Any] = tensor) -> Trial:
    """The trial of a row that has a point, which ``point_of`` makes of its numbers."""
    point = np.frombuffer(row.x or b"", dtype="<f8").astype(np.float64).reshape(shape)
    told, memory = read_told(row.told), Memory.of(json.loads(row.memory))
    if row.status not in ("asked", "told", "failed") or bool(told.values) != (row.status == "told"):
        raise ValueError(f"it is {row.status!r} with the values {told.values}"[:200])
    return Trial(row.number, point_of(point), row.status, told, memory)  # type: ignore[arg-type]


def write_told(told: Told) -> str:
    """What was told as JSON: the facts that differ from those of a trial about which nothing was told."""
    facts = {field.name: getattr(told, field.name) for field in fields(told)}
    return json.dumps({name: fact for name, fact in facts.items() if fact != getattr(_NOTHING, name)})


def read_told(text: str) -> Told:
    """What was told, from JSON."""
    if text == "{}":
        return _NOTHING
    facts = json.loads(text)
    if not isinstance(facts, dict) or not facts.keys() <= _FACTS.keys():
        raise ValueError(f"what was told of it is {text[:80]}")
    return Told(**{name: _FACTS[name](fact) for name, fact in facts.items()})


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise ValueError(f"it has {str(value)[:80]} in place of a number")
    return float(value)


def _finite(value: Any) -> float:
    if not math.isfinite(_number(value)):
        raise ValueError(f"it has {value} in place of a finite number")
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"it has {str(value)[:80]} in place of a text")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"it has {str(value)[:80]} in place of true or false")
    return value


def _each(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Lists of what ``read`` reads."""

    def read_all(values: Any) -> tuple[Any, ...]:
        if not isinstance(values, list):
            raise ValueError(f"it has {str(values)[:80]} in place of a list")
        return tuple(map(read, values))

    return read_all


_NOTHING = Told()
_FACTS: dict[str, Callable[[Any], Any]] = {
    "values": _each(_finite),
    "constraints": _each(_finite),
    "noise": _finite,
    "failed": _text,
    "violation": _number,
    "lost": _each(_text),
    "note": _text,
    "discarded": _flag,
    "corrected": _each(_each(_finite)),
}
