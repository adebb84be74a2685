"""Files that are written whole or not at all, and never over a study."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from nestbo.errors import ArgumentError
from nestbo.storage import is_store


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of ``path`` once it is complete: an error or a kill leaves what was there.

    A symbolic link at ``path`` is replaced, too: nothing is written to where it leads. A study is refused.
    """
    if is_store(path):
        raise ArgumentError(f"{path} is a study or another database, or belongs to one. Write to another file.")
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        with part.open("xb") as file:  # a new file, never one that a link leads to
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.is_file():
            shutil.copymode(path, part)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def written(target: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """The same for what a user names: a link stays, and what it leads to is replaced; a device is written to."""
    path = Path(os.path.realpath(target))
    if path.is_dir():
        raise ArgumentError(f"Wanted a file to write to, got the folder {target}. Name a file in it.")
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
    else:
        with replaced(path) as file:
            yield file
