"""Array files: what trials are kept in. Reading one runs no code, whoever wrote it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nestbo.errors import ArgumentError, NestboError
from nestbo.files import replaced


@contextlib.contextmanager
def readable(name: object) -> Iterator[None]:
    """Around the reading of a file: whatever a file that is none of ours makes others say, becomes one sentence."""
    try:
        yield
    except (NestboError, FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as error:  # of numpy, zipfile, zlib, json
        raise ArgumentError(
            f"{name} holds no trials that nestbo wrote, or is damaged ({type(error).__name__}). Remove it, or restore "
            "a copy."
        ) from error


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The arrays of a file."""
    with path.open("rb") as file, loaded(file, path) as arrays:
        yield arrays


@contextlib.contextmanager
def loaded(file: Any, name: object) -> Iterator[Any]:
    """The arrays of an open file, which has a name."""
    with readable(name), np.load(file, allow_pickle=False) as arrays:
        yield arrays


def about(arrays: Any) -> dict[str, Any]:
    """What a file says of its trials."""
    found = json.loads(str(arrays["about"]))
    if not isinstance(found, dict):
        raise ValueError("no mapping")
    return found


def write(path: Path, about: dict[str, Any], arrays: dict[str, Any]) -> None:
    """One file, replaced at once, so that a kill leaves the old or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced(path) as file:
        save(file, about, arrays)


def save(file: Any, about: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Into an open file."""
    np.savez_compressed(file, about=json.dumps(about), **arrays)
