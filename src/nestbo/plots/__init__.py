"""Pictures and numbers of a study: ``summarise`` gives the numbers, ``draw`` a matplotlib figure.

Nothing here touches pyplot or needs a display. A new picture is one function of a study, registered in ``DRAWINGS``.
"""

from __future__ import annotations

from collections.abc import Callable

import matplotlib
from matplotlib.figure import Figure

from nestbo.plots.arms import arms
from nestbo.plots.best import best
from nestbo.plots.convergence import convergence
from nestbo.plots.latent import latent
from nestbo.plots.predictions import predictions
from nestbo.plots.reconstruction import reconstruction
from nestbo.plots.style import STYLE
from nestbo.plots.subspace import subspace
from nestbo.plots.summary import summarise
from nestbo.plots.surrogate import surrogate
from nestbo.plots.view import Study
from nestbo.specification import check_known

DRAWINGS: dict[str, Callable[[Study], Figure]] = {
    "convergence": convergence,
    "best": best,
    "surrogate": surrogate,
    "predictions": predictions,
    "latent": latent,
    "subspace": subspace,
    "reconstruction": reconstruction,
    "arms": arms,
}


def draw(study: Study, kind: str = "convergence") -> Figure:
    """A figure of a study, to show or to save: ``draw(study, "surrogate").savefig("surrogate.png")``.

    A study that has too little to show gives a figure that says so in words.
    """
    check_known("kind of picture", kind, DRAWINGS)
    with matplotlib.rc_context(STYLE):
        return DRAWINGS[kind](study)


__all__ = ["DRAWINGS", "draw", "summarise"]
