"""Applications with real components: examples to run, to read, and to begin one's own with.

``nestbo example`` lists them. An example is one file that declares an ``Application``; ``load`` gives it by its name.
"""

from nestbo.gallery.application import Application, Coordinates, needs
from nestbo.gallery.catalogue import CATALOGUE, Entry, copy, entry, load

__all__ = ["CATALOGUE", "Application", "Coordinates", "Entry", "copy", "draw", "entry", "load", "needs"]


def __getattr__(name: str) -> object:
    """Pictures need matplotlib, which is imported when the first one is drawn."""
    if name == "draw":
        from nestbo.gallery.pictures import draw

        return draw
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
