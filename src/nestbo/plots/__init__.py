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
from nestbo.plots.front import front, hypervolume
from nestbo.plots.importance import importance as _importance
from nestbo.plots.latent import latent
from nestbo.plots.one import reduced
from nestbo.plots.predictions import predictions
from nestbo.plots.reconstruction import reconstruction
from nestbo.plots.style import STYLE, entitle
from nestbo.plots.subspace import subspace
from nestbo.plots.summary import summarise
from nestbo.plots.surrogate import surrogate
from nestbo.plots.view import Study
from nestbo.specification import check_known

DRAWINGS: dict[str, Callable[[Study], Figure]] = {
    "convergence": convergence,
    "front": front,
    "hypervolume": hypervolume,
    "best": best,
    "surrogate": surrogate,
    "predictions": predictions,
    "latent": latent,
    "subspace": subspace,
    "reconstruction": reconstruction,
    "arms": arms,
    "importance": _importance,
}


OF_ALL = ("front", "hypervolume")  # objectives; other pictures are of one


def draw(study: Study, kind: str = "convergence", objective: str | None = None, *, title: str | None = None) -> Figure:
    """A figure of a study, to show or to save: ``draw(study, "surrogate").savefig("surrogate.png")``.

    A study that has too little to show gives a figure that says so in words.

    Args:
        study: The study.
        kind: The kind of picture, such as "convergence"; ``nestbo list plots`` prints all kinds.
        objective: The name of the objective to draw, if the study has several. The default is the first one. The
            pictures "front" and "hypervolume" show all objectives.
        title: A title of your own. It can say what the study cannot know, such as the problem and its minimum.
    """
    check_known("kind of picture", kind, DRAWINGS)
    with matplotlib.rc_context(STYLE):
        made = DRAWINGS[kind](study if kind in OF_ALL else reduced(study, objective))
        return made if title is None else entitle(made, title)


def importance(study: Study, objective: str | None = None) -> Figure:
    """A figure of the parts of the space and the directions that the objective depends on, with intervals.

    Args:
        study: The study.
        objective: The name of the objective to draw, if the study has several. The default is the first one.
    """
    return draw(study, "importance", objective)


__all__ = ["DRAWINGS", "OF_ALL", "draw", "importance", "summarise"]
