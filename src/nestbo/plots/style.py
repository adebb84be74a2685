"""How pictures look: one palette that colour-blind people can read, one size of text, a light grid."""

from __future__ import annotations

import io
import textwrap
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import FuncNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from nestbo.plots.view import Array, View

# Okabe and Ito's palette.
BLUE, ORANGE, GREEN, RED, GREY, INK = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#8A8A8A", "#333333"

STYLE: dict[str, Any] = {
    "figure.dpi": 110,
    "savefig.dpi": 110,
    "font.size": 9.5,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#B0B0B0",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.7,
    "xtick.color": "#B0B0B0",
    "ytick.color": "#B0B0B0",
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "legend.frameon": False,
    "lines.solid_capstyle": "round",
}

EVALUATED: dict[str, Any] = {"s": 34, "edgecolors": "white", "linewidths": 0.9, "zorder": 4}
HOLLOW: dict[str, Any] = {**EVALUATED, "s": 24, "facecolors": "white", "edgecolors": BLUE}
FAILED: dict[str, Any] = {"s": 34, "marker": "x", "color": INK, "linewidths": 1.4, "zorder": 5}
_DECADES = 100.0  # the ratio of values from which on an axis is logarithmic
_SHARES = np.linspace(0, 1, 33)  # of the colours
_STRICT = 0.05  # the share of colours for equal steps of all values: no two values look alike
BEST: dict[str, Any] = {"s": 190, "marker": "*", "color": RED, "edgecolors": "white", "linewidths": 1.0, "zorder": 6}


class Picture(Figure):
    """A figure that a notebook shows as it is, without ``%matplotlib``."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()


def figure(title: str, width: float = 7.0, height: float = 4.0) -> Figure:
    """An empty figure with a heading."""
    made = Picture(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))
    return entitle(made, title)


def entitle(made: Figure, title: str) -> Figure:
    """The figure with a heading that is as long as it is wide."""
    heading = textwrap.fill(title, int(13 * made.get_figwidth()), break_on_hyphens=False)
    made.suptitle(heading, x=0.012, ha="left", fontsize=10, color=INK)
    return made


def words(title: str, text: str) -> Figure:
    """A figure that says why there is no picture."""
    made = figure(title)
    say(made.add_subplot(), text)
    return made


def say(axes: Any, text: str) -> None:
    """Words in place of a picture."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes, color=INK, fontsize=11)


def scale(view: View, *more: Array) -> ScalarMappable:
    """Colours for the values of a study, and of its model: the darker, the better.

    Half of the colours are spent on equal steps of the value, from the best to three times as far as half of the
    evaluations are, half on equal shares of what is shown: a plateau has colours of its own, and a few very bad values
    do not make all others look alike.
    """
    costs = view.sign * np.concatenate([view.values, *(np.ravel(array) for array in more)])
    colours: Any = colormaps["viridis" if view.sign > 0 else "viridis_r"]
    if not costs.max() > costs.min():
        value, around = float(view.values[0]), 0.5 * max(abs(float(view.values[0])), 1.0)
        return ScalarMappable(Normalize(value - around, value + around), colours)
    knots, shares = _spread(costs, float(np.median(view.sign * view.values)))
    if view.sign < 0:
        knots, shares = -knots[::-1], 1 - shares[::-1]
    ways = (lambda values: np.interp(values, knots, shares), lambda share: np.interp(share, shares, knots))
    return ScalarMappable(FuncNorm(ways, knots[0], knots[-1]), colours)


def _spread(costs: Array, middle: float) -> tuple[Array, Array]:
    """Costs, and the shares of the colours that lie below them, from 0 to 1; both increase strictly."""
    low, high = costs.min(), costs.max()
    far = min(high, low + 3 * (middle - low)) if middle > low else high
    quantiles = np.quantile(costs, _SHARES)
    knots = np.unique(np.concatenate([quantiles, np.linspace(low, far, len(_SHARES)), [high]]))
    even = np.clip((knots - low) / (far - low), 0, 1)
    equal = np.interp(knots, quantiles, _SHARES)
    shares = (even + equal) / 2 + _STRICT * (knots - low) / (high - low)
    return knots, (shares - shares[0]) / (shares[-1] - shares[0])


def value_axis(axes: Any, values: Array, label: str = "value") -> None:
    """A vertical axis for values: linear, or logarithmic where they spread over many powers of ten."""
    spread = float(np.median(np.abs(values - np.median(values))))
    if values.min() > 0 and values.max() > _DECADES * values.min():
        axes.set_yscale("log", nonpositive="clip")
        label += " (log scale)"
    elif spread > 0 and np.ptp(values) > 100 * spread:
        unit = 10.0 ** np.floor(np.log10(spread))
        axes.set_yscale("symlog", linthresh=unit)
        label += f" (log scale beyond ±{unit:g})"
    axes.set_ylabel(label)


def shade(axes: Any, x: Array, y: Array, z: Array, colours: ScalarMappable) -> None:
    """The mean over a region, in bands."""
    options: dict[str, Any] = {"cmap": colours.cmap, "norm": colours.norm, "extend": "both", "zorder": 1}
    axes.contourf(x, y, z, _steps(colours, 37), **options).set_edgecolor("face")
    if np.ptp(z) > 0:
        lines: dict[str, Any] = {"colors": "white", "linewidths": 0.5, "alpha": 0.6, "zorder": 2}
        axes.contour(x, y, z, _steps(colours, 13)[1:-1], **lines)


def _steps(colours: ScalarMappable, count: int) -> Array:
    """Values that are equally far apart in colour."""
    norm: Any = colours.norm
    return np.asarray(norm.inverse(np.linspace(0, 1, count)))


def number(value: float | None) -> str:
    """A value to six digits, with a minus sign."""
    return f"{value:.6g}".replace("-", "−")


def colour_bar(made: Figure, colours: ScalarMappable, axes: Any, **options: Any) -> None:
    """A slim bar beside the axes."""
    options = {"shrink": 0.8, "aspect": 28, "pad": 0.02, "label": "value", **options}
    bar = made.colorbar(colours, ax=axes, **options)
    ticks = _steps(colours, 3 if options.get("orientation") == "horizontal" else 6).tolist()
    bar.set_ticks(ticks, labels=[f"{tick:.3g}".replace("-", "−") for tick in ticks])
    bar.minorticks_off()
    bar.outline.set_visible(False)


def legend(made: Figure, axes: Any) -> None:
    """What the marks mean, in one row below the picture."""
    handles, labels = axes.get_legend_handles_labels()
    found = dict(zip(labels, handles, strict=True))
    made.legend(found.values(), found.keys(), loc="outside lower left", ncols=max(1, len(found)))
