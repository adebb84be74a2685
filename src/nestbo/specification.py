"""The text form of spaces and strategies: ``name:argument:…:key=value``, e.g. ``spd:10:eigenvalues=0.001,5``.

A value is a number, ``none``, a word, a comma-separated tuple of these, or a whole specification in parentheses:
``product:(sphere:2):(spd:3)``. Numbers survive the round trip to the last bit, and reading one runs no code.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from nestbo.errors import ArgumentError, SpecificationError


class Specified:
    """A frozen dataclass with a text form and a short ``repr``, both read off its fields."""

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional arguments, and those keyword arguments that differ from their defaults."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        positional = tuple(getattr(self, f.name) for f in fields if f.default is dataclasses.MISSING)
        rest = [f for f in fields if f.default is not dataclasses.MISSING]
        return positional, {f.name: getattr(self, f.name) for f in rest if getattr(self, f.name) != f.default}

    @property
    def specification(self) -> str:
        """The text form; ``nestbo.space(text)`` reads it back."""
        positional, keywords = self.arguments()
        parts = [_write(value) for value in positional] + [f"{k}={_write(v)}" for k, v in keywords.items()]
        return ":".join([type(self).__name__.lower(), *parts])

    def __repr__(self) -> str:
        positional, keywords = self.arguments()
        parts = [repr(value) for value in positional] + [f"{k}={v!r}" for k, v in keywords.items()]
        return f"{type(self).__name__}({', '.join(parts)})"


def parse(text: str, registry: Mapping[str, type], kind: str) -> Any:
    """Build the object that ``text`` specifies from the classes in ``registry``; ``kind`` names them in messages."""
    if not isinstance(text, str):
        raise SpecificationError(f"Wanted the text form of a {kind}, got {type(text).__name__}. Pass a string.")
    name, *arguments = _split(text.strip(), ":")
    if name not in registry:
        known = ", ".join(sorted(registry))
        raise SpecificationError(f"Wanted a {kind} ({known}), got {name!r}.{_nearest(name, registry)}")
    positional, keywords = [], {}
    for argument in arguments:
        key, *value = _split(argument, "=")
        if value:
            keywords[key.strip()] = _read("=".join(value), registry, kind)
        else:
            positional.append(_read(argument, registry, kind))
    try:
        return registry[name](*positional, **keywords)
    except TypeError as error:
        raise SpecificationError(f"Cannot read {text!r} as a {kind}: {error}.") from error
    except ArgumentError as error:
        raise SpecificationError(f"Cannot read {text!r} as a {kind}: {error}") from error


def _nearest(name: str, known: Mapping[str, type]) -> str:
    close = difflib.get_close_matches(name.lower(), known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _split(text: str, separator: str) -> list[str]:
    """Split at separators outside parentheses."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
        if character == separator and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    if depth != 0:
        raise SpecificationError(f"The parentheses of {text!r} do not match. Write one ) for every (.")
    return [*parts, current]


def _read(text: str, registry: Mapping[str, type], kind: str) -> Any:
    text = text.strip()
    if text.startswith("(") and text.endswith(")"):
        return parse(text[1:-1], registry, kind)
    items = _split(text, ",")
    return _read_one(text) if len(items) == 1 else tuple(_read(item, registry, kind) for item in items if item.strip())


def _read_one(text: str) -> int | float | str | None:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return None if text.lower() == "none" else text


def _write(value: Any) -> str:
    if isinstance(value, Specified):
        return f"({value.specification})"
    if isinstance(value, tuple):
        return ",".join(map(_write, value)) + ("," if len(value) == 1 else "")
    return "none" if value is None else str(value)
