"""A study: ``asking``, ``telling`` and ``running`` are parts of it, on a ``record`` that keeps its file.

Its names are imported when they are first used: ``reading`` and ``telling`` do without torch, for the command line.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nestbo.study.asking import ATTEMPTS, too_near
    from nestbo.study.course import Callback, Stop
    from nestbo.study.record import Objective
    from nestbo.study.study import Study

__all__ = ["ATTEMPTS", "Callback", "Objective", "Stop", "Study", "too_near"]

_HOMES = ("study", "asking", "course", "record")


if not TYPE_CHECKING:

    def __getattr__(name):
        """A public name from the module that defines it."""
        import sys

        from nestbo.interrupts import load

        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        load(*(f"{__name__}.{home}" for home in _HOMES))
        homes = (sys.modules[f"{__name__}.{home}"] for home in _HOMES)
        return next(getattr(home, name) for home in homes if hasattr(home, name))
