"""What is evaluated: a function in a Python file, or a registered benchmark problem."""

from __future__ import annotations

import contextlib
import difflib
import functools
import os
import sys
import traceback
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from nestbo.errors import ArgumentError, NestboError
from nestbo.specification import parse

if TYPE_CHECKING:
    from nestbo.manifolds import Space

_PROBLEM = "problem:"


def load(text: str, space: Space) -> Callable[[Any], Any]:
    """The objective that ``FILE.py:function`` or ``problem:NAME`` names."""
    if text.startswith(_PROBLEM):
        return _benchmark(text.removeprefix(_PROBLEM), space)
    file, colon, name = text.rpartition(":")
    if not (colon and file and name):
        raise ArgumentError(f"Wanted an objective as FILE.py:function or problem:NAME, got {text!r}. Name a function.")
    if not os.path.isfile(file):
        raise ArgumentError(f"Wanted an objective as FILE.py:function, got {text!r}, but there is no file {file}.")
    return _guarded(_function(_module(Path(file)), name, file))


def anchored(text: str, store: str) -> str:
    """The objective as a store remembers it: its file seen from the folder of the store, so that both can move."""
    if text.startswith(_PROBLEM):
        return text
    file, _, name = text.rpartition(":")
    return f"{Path(os.path.relpath(file, Path(store).parent)).as_posix()}:{name}"


def released(text: str, store: str) -> str:
    """A remembered objective, seen from here."""
    return text if text.startswith(_PROBLEM) else os.path.relpath(Path(store).parent / text)


def _benchmark(text: str, space: Space) -> Callable[[Any], Any]:
    from nestbo.problems import PROBLEMS, problem

    known: dict[str, Any] = {name: functools.partial(problem, name, space) for name in PROBLEMS}
    return parse(text, known, "problem").objective


def _module(path: Path) -> ModuleType:
    """The file as a module; like a script, it finds what lies beside it."""
    sys.path.insert(0, str(path.resolve().parent))
    module = ModuleType(path.stem)
    sys.modules.setdefault(path.stem, module)  # where dataclasses look for it
    try:
        with contextlib.redirect_stdout(sys.stderr):
            SourceFileLoader(path.stem, str(path)).exec_module(module)
    except (Exception, SystemExit) as error:
        raise NestboError(f"{path} raised {_described(error, str(path))}. Fix the file and try again.") from error
    return module


def _described(error: BaseException, file: str) -> str:
    """An error and the line of the user's file that it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    return f"{type(error).__name__}: {error}" + (f" (line {line})" if line else "")


def _function(module: ModuleType, name: str, file: str) -> Callable[[Any], Any]:
    known = [key for key, thing in vars(module).items() if callable(thing) and not key.startswith("_")]
    if not callable(getattr(module, name, None)):
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else "Check the name."
        raise ArgumentError(f"{file} has no function {name!r}. {hint}")
    return getattr(module, name)


def _guarded(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function with its prints on stderr; a call of exit is a failure like any other."""

    @functools.wraps(f)
    def guarded(*arguments: Any, **named: Any) -> Any:
        try:
            with contextlib.redirect_stdout(sys.stderr):
                return f(*arguments, **named)
        except SystemExit as error:
            raise RuntimeError(f"the objective called exit({error.code!r})") from error

    return guarded
