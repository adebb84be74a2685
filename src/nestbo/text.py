"""Text that may come from anywhere, a stranger's file say, made harmless where people or programs read it."""

from __future__ import annotations

import importlib
import itertools
import json
import math
from typing import Any

_JOINERS = "\u200c\u200d"  # between letters of some scripts, and between parts of one picture
_FORMULA = ("=", "+", "-", "−", "@", "＝", "＋", "－", "＠")


def printable(text: str, keep: str = "\n") -> str:
    """The text with an escape such as ``\\x1b`` for what a terminal would obey, or cannot write.

    These are control characters, characters that turn the direction of writing, and halves of surrogate pairs.

    >>> printable("red: \\x1b[31m")
    'red: \\\\x1b[31m'
    """
    if text.isprintable():
        return text
    kept = _JOINERS + keep
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)


def counted(count: int, noun: str) -> str:
    """A number of things, in the singular where there is one.

    >>> counted(1, "evaluation"), counted(3, "evaluation")
    ('1 evaluation', '3 evaluations')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def cell(text: str) -> str:
    """A text for a spreadsheet: an apostrophe in front of one that begins like a formula keeps it a text.

    >>> cell("=1+1")
    "'=1+1"
    """
    text = printable(text)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def dumps(value: Any) -> str:
    """A line of JSON that every reader takes, floats to the last bit; NaN and infinities, which JSON lacks, as texts.

    >>> dumps({"noise": float("inf")})
    '{"noise": "Infinity"}'
    """
    text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def _plain(value: Any) -> Any:
    """The same without numbers that JSON lacks."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    return value


def in_notebook(maker: str, thing: Any) -> str:
    """A thing as HTML, made by a function of ``nestbo.notebook``, which stands above what it shows and draws."""
    return str(getattr(importlib.import_module("nestbo.notebook"), maker)(thing))


def entry_labels(shape: tuple[int, ...]) -> tuple[str, ...]:
    """What tells the entries of a point apart: 0, 1, … or 0_0, 0_1, …."""
    return tuple("_".join(map(str, at)) for at in itertools.product(*map(range, shape)))


def labelled(name: str, labels: tuple[str, ...]) -> tuple[str, ...]:
    """The labels of the entries of a parameter: its name alone where there is only one."""
    return (name,) if len(labels) == 1 else tuple(f"{name}_{label}" for label in labels)
