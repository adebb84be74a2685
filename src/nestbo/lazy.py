"""Torch and NumPy, imported when they are first used: what only stores and shows texts does not wait for them.

A module that takes ``torch`` from here uses it inside functions only. Its annotations are texts, so that ``Tensor`` is
imported for type checkers alone.
"""

from __future__ import annotations

import sys
from typing import Any

from nestbo.interrupts import load


class Lazy:
    """Stands in for a module of this name, which is imported when the first attribute is wanted."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        load(self._name)
        return getattr(sys.modules[self._name], attribute)


torch: Any = Lazy("torch")
numpy: Any = Lazy("numpy")
