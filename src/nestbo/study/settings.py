"""The settings of a study, checked at the door."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from nestbo.errors import ArgumentError, shown
from nestbo.evaluation import number
from nestbo.history import Directions, Noise
from nestbo.storage import Store

if TYPE_CHECKING:
    from nestbo.strategies import Strategy

ONE = "value"  # what the only objective of a study is called
WAYS = ("minimize", "maximize")


def objective_names(objectives: Any) -> tuple[str, ...]:
    """The names of the objectives of a study."""
    if objectives is None:
        return (ONE,)
    names = tuple(objectives) if isinstance(objectives, list | tuple) else ()
    sound = all(isinstance(name, str) and name.strip() and name.isprintable() for name in names)
    if len(names) < 2 or not sound or len(set(names)) < len(names):
        raise ArgumentError(
            f'objectives names two or more, each once, such as ("error", "energy"), got {shown(objectives)}. Leave it '
            "out for a single one."
        )
    if set(names) & set(WAYS):
        raise ArgumentError(
            f"objectives are names, got {shown(objectives)}. Give each one a name, and say in direction which way it "
            'goes: Study(space, objectives=("error", "strength"), direction=("minimize", "maximize")).'
        )
    return names


def directed(direction: Any, count: int) -> Directions:
    """The direction of the only objective, or that of each of several, which may share one."""
    given: Any = (direction,) * count if isinstance(direction, str) else direction
    if isinstance(given, list | tuple) and len(given) == count and all(way in WAYS for way in given):
        return cast(Directions, tuple(given) if count > 1 else given[0])
    several = f" or {count} of these, one for each objective" if count > 1 else ""
    raise ArgumentError(f'The direction is "minimize" or "maximize"{several}, got {shown(direction)}.')


def noise_of(noise: Any, count: int) -> Noise:
    """The noise of values: None, "infer", or a variance for each objective."""
    if noise is None:
        return None
    if isinstance(noise, str) and noise == "infer":
        return "infer"
    if count == 1 and positive(noise):
        return number(noise)
    if count > 1 and isinstance(noise, list | tuple) and len(noise) == count and all(map(positive, noise)):
        return tuple(cast(float, number(each)) for each in noise)
    wanted = "a positive variance" if count == 1 else f"a tuple of {count} positive variances, one for each objective"
    raise ArgumentError(f'noise is {wanted}, "infer", or None for exact values, got {shown(noise)}.')


def check_several(strategy: Strategy) -> None:
    """Refuse a method that knows one objective only."""
    if not strategy.several:
        raise ArgumentError(
            f"{strategy} works with one objective, got several. Leave the strategy out, or take GaBO() or "
            "RandomSearch()."
        )


def check_settings(space: Any, strategy: Any, seed: Any) -> None:
    """Refuse settings of another kind than a study takes."""
    from nestbo.manifolds import Space
    from nestbo.manifolds.base import is_whole
    from nestbo.strategies import Strategy

    if not isinstance(space, Space):
        raise ArgumentError(
            f'A study needs a space such as Sphere(2), got {shown(space)}. nestbo.space("sphere:2") reads a text, '
            "Product(force=Box(0, 40)) names parameters."
        )
    if strategy is not None and not isinstance(strategy, Strategy):
        raise ArgumentError(f"A strategy is an object such as GaBO(), got {shown(strategy)}.")
    if not is_whole(seed) or not 0 <= seed < 2**64:
        raise ArgumentError(f"The seed is a whole number from 0 to 2^64 − 1, got {shown(seed)}.")


def positive(value: Any) -> bool:
    """Whether a value is a positive finite number."""
    found = number(value)
    return found is not None and 0 < found < math.inf


def check_path(path: Any, needed: bool = False) -> None:
    """Refuse what is no path of a file; None and a store are none either where a path is ``needed``."""
    if isinstance(path, Store) and not needed:
        return
    if path is None and not needed:
        return
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise ArgumentError(f"A store is a path such as 'robot.db', got {shown(path)}.")
    if str(Path(text)) == ":memory:":  # a word of SQLite's, and no file
        raise ArgumentError(
            f"A store is a file that keeps a study, got {text!r}, which keeps nothing. Leave store out for a study "
            "in memory."
        )


def _as_written_today(name: str, stored: Any) -> Any:
    """A setting in today's spelling: an earlier version may have written the same space or strategy otherwise."""
    from nestbo.manifolds import as_written_today
    from nestbo.strategies import stored_strategy

    if name == "space":
        return as_written_today(stored)
    try:
        return stored_strategy(stored).specification if name == "strategy" else stored
    except ArgumentError:
        return stored


def check_same(wanted: dict[str, Any], stored: dict[str, Any], path: Any) -> None:
    """Refuse to continue a study with other settings than it was begun with."""
    for name, value in wanted.items():
        found = bool(stored.get(name)) if isinstance(value, bool) else _as_written_today(name, stored.get(name))
        if found != value:
            raise ArgumentError(
                f"{path} holds a study with {_in_words(name, found)}, got {_in_words(name, value)}. "
                "Study.load(path) continues it; for another study, choose another file."
            )


def _in_words(name: str, value: Any) -> str:
    return "one objective" if name == "objectives" and value is None else f"{name} {shown(value)}"


def checked_note(note: Any) -> str | None:
    """A user's note, if it is a text."""
    if note is not None and not isinstance(note, str):
        raise ArgumentError(f"note is a text, got {shown(note)}.")
    return note
