"""Functions that take the parameters of a point by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

import torch

from nestbo.errors import ArgumentError
from nestbo.manifolds import Space

_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class ByName:
    """A function of parameters, as one of a packed point."""

    f: Callable[..., Any]
    space: Space

    def __call__(self, x: Any) -> Any:
        """What the function gives for the parameters of a point."""
        return self.f(**self.space.parameters(torch.as_tensor(x).detach()))


def by_name(f: Any, space: Space) -> Callable[[Any], Any]:
    """A function of a point, from one of a point or of keyword arguments whose names are those of the space."""
    arguments = _arguments(f)
    if arguments == []:
        raise ArgumentError("A function of a space takes a point, got one without arguments. Write def f(x).")
    if space.names is None or arguments is None:
        return f
    takes = {argument.name for argument in arguments if argument.kind in _BY_NAME}
    needed = {argument.name for argument in arguments if argument.default is Parameter.empty and argument.name in takes}
    any_name = any(argument.kind is Parameter.VAR_KEYWORD for argument in arguments)
    if needed <= set(space.names) and (any_name or set(space.names) <= takes):
        return ByName(f, space)
    places = [a for a in arguments if a.kind in _BY_PLACE and a.default is Parameter.empty]
    if len(places) > 1 or any(a.kind is Parameter.KEYWORD_ONLY and a.name in needed for a in arguments):
        raise ArgumentError(
            f"A function of this space takes one point, or {', '.join(space.names)} by name, got one that takes "
            f"{', '.join(argument.name for argument in arguments)}. Use these names, or give other arguments a default."
        )
    return f


def _arguments(f: Any) -> list[Parameter] | None:
    """The arguments of a function; None where they cannot be told."""
    try:
        return list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return None
