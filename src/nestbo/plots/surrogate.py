"""The surrogate and the evaluations, as the space allows."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from nestbo.manifolds import SPD, Space, Sphere
from nestbo.plots.circle import circle
from nestbo.plots.geodesics import geodesics
from nestbo.plots.matrices import matrices
from nestbo.plots.sphere import hemispheres
from nestbo.plots.style import words
from nestbo.plots.view import Study, View

_WHOLE: tuple[tuple[type[Space], int, Callable[[View], Figure]], ...] = (
    (Sphere, 1, circle),
    (Sphere, 2, hemispheres),
    (SPD, 2, matrices),
)


def surrogate(study: Study) -> Figure:
    """What the model believes: on S^1 against the angle, on S^2 as a map, on SPD(2) by ellipses, or along geodesics."""
    view = View(study)
    if not view.told:
        return words(view.title, view.nothing)
    return (picture(view.space) or geodesics)(view)


def picture(space: Space) -> Callable[[View], Figure] | None:
    """What draws all of a space, where it is small enough."""
    return next((draw for family, n, draw in _WHOLE if isinstance(space, family) and getattr(space, "n", 0) == n), None)
