"""The figures of a page: pictures by matplotlib, and charts that a browser draws in their place."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from nestbo.plots import DRAWINGS, draw
from nestbo.plots.one import reduced
from nestbo.report.charts import CHARTS, Chart
from nestbo.report.snapshot import Snapshot

_HEAVY = 120_000  # bytes of a drawing; a heavier one becomes a picture of dots
_WIDE = 5.5  # inches; a picture that is wider has another form for narrow screens
_NARROW, _TALL = 4.4, 3.1  # inches of a column of panels, and of one of them
_DOTS = 180  # per inch
_SETTINGS = {"svg.hashsalt": "nestbo"}  # the same study gives the same page


def attempt(work: Callable[[], Any]) -> tuple[Any, str | None]:
    """What some work gives, or why it gives nothing: one broken picture must not cost the whole page."""
    try:
        return work(), None
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def figures(now: Snapshot) -> dict[str, Drawn]:
    """The pictures that say something about this study, by kind."""
    if not now.history.front:
        return {}
    nested, _ = attempt(lambda: any(m.mapping.latent != m.mapping.ambient for m in now.models().values()))
    several, _ = attempt(lambda: len(now.standings()) > 1)
    many = now.history.several
    wanted = {"latent": nested, "subspace": nested, "reconstruction": nested, "arms": several and not many}
    wanted |= {"front": many, "hypervolume": many, "best": not many, "convergence": not many}
    wanted |= {"surrogate": not many, "predictions": not many, "importance": not many and bool(now.models())}
    found = {kind: _figure(now, kind) for kind in DRAWINGS if wanted.get(kind, True)}
    pairs = [(kind, name) for name in now.objectives for kind in ("predictions", "importance")] if many else []
    return found | {f"{kind} {name}": _figure(now, kind, name) for kind, name in pairs}


@dataclass(frozen=True)
class Drawn:
    """A picture as the address of an image that contains it, which can run nothing, or why there is none.

    A wide picture has another one for ``narrow`` screens.
    """

    source: str | None = None
    narrow: str | None = None
    error: str | None = None


def _figure(now: Snapshot, kind: str, objective: str | None = None) -> Drawn:
    found, error = attempt(lambda: _drawn(now, kind, objective))
    return found or Drawn(error=error)


def _drawn(now: Snapshot, kind: str, objective: str | None) -> Drawn:
    figure = draw(now, kind, objective)
    figure.suptitle("")  # the page has its own headings
    wide = _address(figure)
    return Drawn(wide, None if kind in CHARTS or figure.get_figwidth() <= _WIDE else _address(_stacked(figure)))


def _stacked(figure: Figure) -> Figure:
    """The figure with panels that lay side by side one below the other."""
    panels = [axes for axes in figure.axes if axes.get_subplotspec() is not None]
    grid = figure.add_gridspec(len(panels), 1)
    for k, axes in enumerate(panels):
        axes.set_subplotspec(grid[k])
    for legend in figure.legends:
        legend.set_ncols(2)
    figure.set_size_inches(_NARROW, 0.4 + _TALL * len(panels))
    return figure


def _address(figure: Figure) -> str:
    with matplotlib.rc_context(_SETTINGS):
        drawing = _saved(figure, format="svg", metadata={"Date": None, "Creator": None})
    if len(drawing) <= _HEAVY:
        return f"data:image/svg+xml;base64,{base64.b64encode(drawing).decode()}"
    return f"data:image/png;base64,{base64.b64encode(_saved(figure, format='png', dpi=_DOTS)).decode()}"


def _saved(figure: Figure, **options: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, **options)
    return file.getvalue()


def charts(now: Snapshot) -> dict[str, Chart]:
    """The charts that say something about this study, by kind; one that cannot be made is left to its picture."""
    if not now.history.front:
        return {}
    made = {kind: attempt(partial(CHARTS[kind], now))[0] for kind in _of(now)}
    for name in now.objectives if now.history.several else ():
        made[f"predictions {name}"] = attempt(partial(CHARTS["predictions"], reduced(now, name)))[0]
    return {kind: chart for kind, chart in made.items() if chart is not None}


def _of(now: Snapshot) -> tuple[str, ...]:
    """The charts of one objective, or of several."""
    several = ("front", "hypervolume", "timeline")
    return several if now.history.several else tuple(kind for kind in CHARTS if kind not in several[:2])
