"""The text form of spaces and strategies: ``name:argument:…:key=value``, e.g. ``spd:10:eigenvalues=0.001,5``.

A value is a number, ``none``, ``true``, ``false``, another word, a whole specification in parentheses as in
``product:(sphere:2):(spd:3)``, or a comma-separated tuple of these. Numbers survive the round trip to the last bit,
and reading one runs no code.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from nestbo.errors import ArgumentError, SpecificationError, shown

_DEEPEST = 20
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SAFE = " !#$&'*+-./;<>?@[]^_`{|}~"  # in words of a text form, besides letters and digits
_WORDS = {"none": None, "true": True, "false": False}


class Specified:
    """A frozen dataclass with a text form and a short ``repr``, both read off its fields."""

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional arguments, and those keyword arguments that differ from their defaults."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        positional = tuple(getattr(self, f.name) for f in fields if f.default is dataclasses.MISSING)
        rest = [f for f in fields if f.default is not dataclasses.MISSING]
        return positional, {f.name: getattr(self, f.name) for f in rest if getattr(self, f.name) != f.default}

    @property
    def kind(self) -> str:
        """What it is called."""
        return type(self).__name__

    @property
    def specification(self) -> str:
        """The text form; ``nestbo.space(text)`` reads it back."""
        positional, keywords = self.arguments()
        named = [f"{name}={_write(value)}" for name, value in keywords.items()]
        return ":".join([self.kind.lower(), *map(_write, positional), *named])

    def __repr__(self) -> str:
        positional, keywords = self.arguments()
        parts = [repr(value) for value in positional] + [f"{k}={v!r}" for k, v in keywords.items()]
        return f"{self.kind}({', '.join(parts)})"


def parse(text: str, registry: Mapping[str, type], kind: str) -> Any:
    """Build the object that ``text`` specifies from the classes in ``registry``; ``kind`` names them in messages."""
    if not isinstance(text, str):
        raise SpecificationError(f"Wanted the text form of a {kind}, got {type(text).__name__}. Pass a string.")
    _check_parentheses(text)
    name, *arguments = split(text.strip(), ":")
    check_known(kind, name, registry)
    positional, keywords = [], {}
    for argument in arguments:
        key, *value = (part.strip() for part in split(_unwrapped(argument), "="))
        if not value:
            positional.append(_read(argument, registry, kind))
        elif key in keywords:
            raise SpecificationError(f"Cannot read {text!r} as a {kind}: {key!r} is given twice. Keep one of them.")
        else:
            keywords[key] = _read("=".join(value), registry, kind)
    _check_parts(text, name, arguments, registry)
    _check_settings(name, keywords, registry[name])
    try:
        return registry[name](*positional, **keywords)
    except TypeError as error:
        raise SpecificationError(f"Cannot read {text!r} as a {kind}: {_wanted(name, registry[name], error)}") from error
    except ArgumentError as error:
        raise SpecificationError(f"Cannot read {text!r} as a {kind}: {error}") from error


def _wanted(name: str, maker: Any, error: TypeError) -> str:
    """How a text is written whose arguments are too few or too many."""
    parameters = inspect.signature(maker).parameters.values()
    needed = [one.name for one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    return f"write {':'.join([name, *needed])}." if needed else f"{error}."


def _check_parts(text: str, name: str, arguments: list[str], registry: Mapping[str, type]) -> None:
    """Refuse parts without parentheses, as in product:quaternion:box:0:1, and say how they are written."""
    if not arguments or arguments[0] not in registry:
        return
    parts: list[str] = []
    for argument in arguments:
        if argument in registry or not parts:
            parts.append(argument)
        else:
            parts[-1] += f":{argument}"
    wanted = ":".join([name, *(f"({part})" for part in parts)])
    raise SpecificationError(f"Cannot read {text!r}: each part of a {name} is in parentheses. Write {wanted!r}.")


def _check_settings(name: str, given: Iterable[str], maker: Any) -> None:
    """Refuse settings that are not known, and say which one is near."""
    parameters = inspect.signature(maker).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for setting in given:
        if setting not in parameters:
            near = difflib.get_close_matches(setting, parameters, n=1)
            hint = f"did you mean {near[0]}?" if near else f"{name} takes {', '.join(parameters) or 'none'}."
            raise SpecificationError(f"{name} has an unknown setting {setting}; {hint}")


def check_known(kind: str, name: Any, known: Iterable[str]) -> None:
    """Refuse a name that is not known, and say which one is near."""
    if isinstance(name, str) and name in set(known):
        return
    near = difflib.get_close_matches(name.lower(), known, n=1) if isinstance(name, str) else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    article = "an" if kind[0] in "aeiou" else "a"
    raise SpecificationError(f"Wanted {article} {kind} ({', '.join(sorted(known))}), got {shown(name)}.{hint}")


def _unwrapped(argument: str) -> str:
    """``(name=specification)``, as the factors of a product are written, as ``name=(specification)``."""
    inside = argument.strip()[1:-1]
    name, *rest = split(split(inside, ":")[0], "=")
    if not argument.strip().startswith("(") or not argument.strip().endswith(")") or not rest:
        return argument
    return f"{name}=({inside[len(name) + 1 :]})"


def written(value: str | int | float | bool) -> str:
    """A word or number as a text form holds it: what would be read otherwise is written with %, as in addresses.

    >>> [written(value) for value in ("soft", 3, "3", "none", "a:b")]
    ['soft', '3', '%33', '%6Eone', 'a%3Ab']
    """
    if not isinstance(value, str):
        return _write(value)
    text = quote(value, safe=_SAFE)
    if text != value or _read_one(text) == value:
        return text
    return f"%{ord(value[0]):02X}{text[1:]}"


def _depths(text: str) -> list[int]:
    """How many parentheses are open after each character."""
    return list(itertools.accumulate((character == "(") - (character == ")") for character in text))


def _check_parentheses(text: str) -> None:
    depths = _depths(text)
    if depths and (depths[-1] != 0 or min(depths) < 0):
        raise SpecificationError(f"The parentheses of {text!r} do not match. Write one ) for every (.")
    if max(depths, default=0) > _DEEPEST:
        raise SpecificationError(f"Parentheses nest at most {_DEEPEST} deep, got {max(depths)}. Flatten the text.")


def split(text: str, separator: str) -> list[str]:
    """Split at separators outside parentheses."""
    at = [k for k, depth in enumerate(_depths(text)) if depth == 0 and text[k] == separator]
    return [text[i + 1 : j] for i, j in itertools.pairwise([-1, *at, len(text)])]


def _read(text: str, registry: Mapping[str, type], kind: str) -> Any:
    items = [item.strip() for item in split(text, ",")]
    if len(items) > 1:
        return tuple(_read(item, registry, kind) for item in items if item)
    (text,) = items
    return parse(text[1:-1], registry, kind) if text.startswith("(") and text.endswith(")") else _read_one(text)


def _read_one(text: str) -> int | float | str | None:
    """A number written as Python writes it, one of the known words, or the text itself."""
    if "%" in text:
        return unquote(text)
    if _NUMBER.fullmatch(text):
        return float(text) if set(text) & set(".eE") or len(text) > 300 else int(text)
    return _WORDS.get(text.lower(), text)


def _write(value: Any) -> str:
    if isinstance(value, Specified):
        return f"({value.specification})"
    if isinstance(value, tuple):
        return ",".join(map(_write, value)) + ("," if len(value) == 1 else "")
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
