"""The surrogate and the evaluations, as the space allows."""

from __future__ import annotations

from matplotlib.figure import Figure

from nestbo.manifolds import SPD, Manifold, Sphere
from nestbo.plots.circle import circle
from nestbo.plots.geodesics import geodesics
from nestbo.plots.matrices import matrices
from nestbo.plots.sphere import hemispheres
from nestbo.plots.style import words
from nestbo.plots.view import Study, View


def surrogate(study: Study) -> Figure:
    """What the model believes: on S^1 against the angle, on S^2 as a map, on SPD(2) by ellipses, or along geodesics."""
    view = View(study)
    if not view.told:
        return words(view.title, view.nothing)
    if _is(view.space, Sphere, 1):
        return circle(view)
    if _is(view.space, Sphere, 2):
        return hemispheres(view)
    if _is(view.space, SPD, 2):
        return matrices(view)
    return geodesics(view)


def _is(space: Manifold, family: type[Manifold], n: int) -> bool:
    return isinstance(space, family) and getattr(space, "n", None) == n
