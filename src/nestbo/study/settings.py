"""The settings of a study, checked at the door."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from nestbo.errors import ArgumentError, shown
from nestbo.evaluation import number
from nestbo.manifolds import Manifold
from nestbo.manifolds.base import is_whole
from nestbo.storage import Store
from nestbo.strategies import Strategy, strategy


def check_settings(space: Any, strategy: Any, seed: Any, direction: Any, noise: Any) -> None:
    """Refuse settings of another kind than a study takes."""
    if not isinstance(space, Manifold):
        raise ArgumentError(
            f'A study needs a space such as Sphere(2), got {shown(space)}. nestbo.space("sphere:2") reads a text.'
        )
    if strategy is not None and not isinstance(strategy, Strategy):
        raise ArgumentError(f"The strategy is one such as GaBO(), got {shown(strategy)}.")
    if not is_whole(seed) or not 0 <= seed < 2**64:
        raise ArgumentError(f"The seed is a whole number from 0 to 2^64 − 1, got {shown(seed)}.")
    if direction not in ("minimize", "maximize"):
        raise ArgumentError(f'The direction is "minimize" or "maximize", got {shown(direction)}.')
    if noise is not None and noise != "infer" and not positive(noise):
        raise ArgumentError(f'noise is a positive variance, "infer", or None for exact values, got {shown(noise)}.')


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
            f"A store is a file, which keeps a study, got {text!r}, which keeps nothing. Leave store out for a study "
            "in memory."
        )


def _as_written_today(name: str, stored: Any) -> Any:
    """A setting in today's spelling: an earlier version may have written the same strategy otherwise."""
    try:
        return strategy(stored).specification if name == "strategy" else stored
    except ArgumentError:
        return stored


def check_same(wanted: dict[str, Any], stored: dict[str, Any], path: Any) -> None:
    """Refuse to continue a study with other settings than it was begun with."""
    for name, value in wanted.items():
        found = bool(stored.get(name)) if isinstance(value, bool) else _as_written_today(name, stored.get(name))
        if found != value:
            raise ArgumentError(
                f"{path} holds a study with {name} {shown(found)}, got {shown(value)}. Study.load(path) continues it."
            )


def checked_note(note: Any) -> str | None:
    """A user's note, if it is a text."""
    if note is not None and not isinstance(note, str):
        raise ArgumentError(f"note is a text, got {shown(note)}.")
    return note
