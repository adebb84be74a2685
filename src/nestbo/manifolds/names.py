"""Names of parameters, and points as people write them."""

from __future__ import annotations

import difflib
import keyword
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from nestbo.errors import ArgumentError, shown


def check_names(names: Iterable[Any]) -> tuple[str, ...]:
    """Names of parameters: each a word that Python takes for one, and no two alike."""
    found = tuple(names)
    for name in found:
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentError(
                f"The name of a parameter is one word of letters, digits and _, such as force, got {shown(name)}."
            )
        if keyword.iskeyword(name):
            raise ArgumentError(f"{name!r} is a word of Python and cannot name a parameter. Write {name}_ instead.")
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise ArgumentError(f"Each parameter has a name of its own, got {twice!r} twice. Rename one of them.")
    return found


def check_given(given: Mapping[str, Any], wanted: Collection[str], *, some: bool = False) -> None:
    """Refuse parameters under names that a space has not, and, unless ``some`` will do, missing ones."""
    for name in given:
        if name not in wanted:
            near = difflib.get_close_matches(str(name), wanted, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ArgumentError(f"There is no parameter {shown(name)}; there are {', '.join(wanted)}.{hint}")
    missing = [name for name in wanted if name not in given]
    if missing and not some:
        raise ArgumentError(f"The parameter {missing[0]!r} is missing. Give all of {', '.join(wanted)}.")
