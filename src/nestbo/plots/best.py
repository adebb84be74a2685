"""The best point, in its own geometry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import CenteredNorm
from matplotlib.figure import Figure
from torch import Tensor

from nestbo.manifolds import SPD, Grassmann, Product, Quaternion, Rotation, Space, Sphere, Torus
from nestbo.plots.sliders import draw_rows, rows, slides
from nestbo.plots.style import BLUE, GREEN, GREY, INK, RED, figure, number, words
from nestbo.plots.view import Array, Study, View

_MOST = 8  # panels; a product of more factors shows the first ones
_LONG = 40  # characters of a space in a title
_MANY = 8  # lines that want a wider panel
_TURN = np.linspace(0, 2 * np.pi, 121)


@dataclass(frozen=True)
class Panel:
    """How a point of some space is drawn: on plain axes or in three dimensions, so many inches wide."""

    draw: Callable[[Any, Space, Array], None]
    projection: str | None = None
    width: float = 3.4


def best(study: Study) -> Figure:
    """The best point: a direction as an arrow, a matrix as an ellipse or by its entries, a product by its factors.

    Where values are noisy, it is the recommended point.
    """
    view = View(study)
    if not view.told:
        return words(view.title, view.nothing)
    trial = (study.recommend() if view.history.noisy else None) or view.best
    parts = _parts(view.space, trial.x)
    sliding = [part for part in parts if slides(part.space)]
    still = [part for part in parts if not slides(part.space)]
    lines = [Shown.of_lines(sliding)] if sliding else []
    shown = [*map(Shown.of, still[: _MOST - len(lines)]), *lines]
    widths = [each.panel.width for each in shown]
    found = f"recommended: trial {trial.index}" if view.history.noisy else f"best {number(trial.value)}"
    found += "" if view.history.noisy else f" (trial {trial.index})"
    made = figure(f"{view.title}; {found}", max(5.0, sum(widths)), 3.9)
    cells = made.add_gridspec(1, len(shown), width_ratios=widths)
    left = f" (of {len(parts)} parts)" if len(still) > _MOST - len(lines) else ""
    for k, each in enumerate(shown):
        axes = made.add_subplot(cells[k], projection=each.panel.projection)
        each.draw(axes)
        axes.set_title(each.title + (left if k == len(shown) - 1 else ""))
    return made


class Part(NamedTuple):
    """A factor of a space, what it and its numbers are called, and the part of a point there."""

    name: str | None
    labels: list[str]
    space: Space
    x: Tensor


@dataclass(frozen=True)
class Shown:
    """What one panel shows."""

    title: str
    panel: Panel
    draw: Callable[[Any], None]

    @classmethod
    def of(cls, part: Part) -> Shown:
        """A part by itself."""
        chosen, text = panel(part.space), str(part.space)
        title = part.name or (text if len(text) < _LONG else part.space.kind)
        return cls(title, chosen, lambda axes: chosen.draw(axes, part.space, part.x.numpy()))

    @classmethod
    def of_lines(cls, parts: list[Part]) -> Shown:
        """Numbers and choices together, one line for each."""
        found = [row for part in parts for row in rows(part.space, part.x, part.labels)]
        text = str(parts[0].space)
        title = parts[0].name or text if len(parts) == 1 and len(text) < _LONG else "numbers and choices"
        chosen = Panel(lambda *_: None, width=3.4 if len(found) < _MANY else 4.6)
        return cls(title, chosen, lambda axes: draw_rows(axes, found))


def _parts(space: Space, x: Tensor, name: str | None = None, labels: Sequence[str] = ()) -> list[Part]:
    """A point, taken apart if its space is a product, also one of products."""
    labels = list(labels) or [label if space.names else f"x{label}" for label in space.labels]
    if not isinstance(space, Product):
        return [Part(name, labels, space, x)]
    found, begin = [], 0
    names = space.titles or (None,) * len(space.factors)
    for title, factor, y in zip(names, space.factors, space.split(x), strict=True):
        end = begin + len(factor.labels)
        found += _parts(factor, y, title, labels[begin:end])
        begin = end
    return found


def panel(space: Space) -> Panel:
    """What draws a point of a space; its numbers, where there is nothing better."""
    for family, fits, chosen in _PANELS:
        if isinstance(space, family) and fits(space):
            return chosen
    rows = space.point_shape[0] if space.point_shape else 1
    return Panel(_entries) if len(space.point_shape) == 2 else Panel(_bars, width=min(9.0, 2.2 + 0.16 * rows))


def _arrow_in_circle(axes: Any, space: Space, x: Array) -> None:
    axes.plot(np.cos(_TURN), np.sin(_TURN), color=GREY, linewidth=1)
    axes.annotate("", x, (0, 0), arrowprops={"arrowstyle": "-|>", "color": RED, "linewidth": 2, "shrinkA": 0})
    angle = np.degrees(np.arctan2(x[1], x[0]))
    axes.text(0, -1.45, f"{angle:.1f} degrees", ha="center", color=INK)
    axes.set(xlim=(-1.25, 1.25), ylim=(-1.6, 1.25), aspect="equal")
    axes.set_axis_off()


def _dials(axes: Any, space: Space, x: Array) -> None:
    """Each angle as the hand of a dial."""
    for k, angle in enumerate(x):
        centre = np.array([2.7 * k, 0.0])
        axes.plot(centre[0] + np.cos(_TURN), np.sin(_TURN), color=GREY, linewidth=1)
        end = centre + np.array([np.cos(angle), np.sin(angle)])
        axes.annotate("", end, centre, arrowprops={"arrowstyle": "-|>", "color": RED, "linewidth": 2, "shrinkA": 0})
        axes.text(centre[0], -1.4, f"{np.degrees(angle):.1f}°", ha="center", color=INK, fontsize=8.5)
    axes.set(xlim=(-1.35, 2.7 * len(x) - 1.35), ylim=(-1.7, 1.35), aspect="equal")
    axes.set_axis_off()


def _frame(axes: Any, space: Space, x: Array) -> None:
    """Where a rotation takes the axes."""
    axes.plot_wireframe(*_ball(13), rstride=10, cstride=2, color="#DDDDDD", linewidth=0.5)
    _axes_of_space(axes, 1.25)
    for k, (colour, name) in enumerate(((RED, "Rx₁"), (GREEN, "Rx₂"), (BLUE, "Rx₃"))):
        axes.quiver(0, 0, 0, *x[:, k], color=colour, linewidth=2.2, arrow_length_ratio=0.14)
        axes.text(*(1.12 * x[:, k]), name, color=colour, ha="center", va="center", fontsize=8.5)
    axes.set_box_aspect((1, 1, 1), zoom=1.4)
    axes.set_axis_off()


def _turned(axes: Any, space: Space, x: Array) -> None:
    """The rotation of a unit quaternion, its real part first, by where it takes the axes."""
    w, a, b, c = x
    cross = np.array([[0, -c, b], [c, 0, -a], [-b, a, 0]])
    _frame(axes, space, np.eye(3) + 2 * w * cross + 2 * cross @ cross)
    said = "the axes, turned (real part first)"
    axes.text2D(0.5, -0.02, said, transform=axes.transAxes, ha="center", fontsize=8.5)


def _arrow_in_globe(axes: Any, space: Space, x: Array) -> None:
    """The direction, its shadow on the equator, and the axes."""
    axes.plot_wireframe(*_ball(13), rstride=10, cstride=2, color="#C9C9C9", linewidth=0.5)
    shadow = np.array([x[0], x[1], 0])
    for start, end in ((0 * x, shadow), (shadow, x)):
        axes.plot(*np.stack([start, end], -1), color=GREY, linewidth=1, linestyle=":")
    _axes_of_space(axes, 1.25)
    axes.quiver(0, 0, 0, *x, color=RED, linewidth=2.2, arrow_length_ratio=0.14)
    axes.set_box_aspect((1, 1, 1), zoom=1.4)
    axes.set_axis_off()


def _ball(steps: int) -> Array:
    """The unit sphere, (3, around, steps)."""
    height, around = np.linspace(0, np.pi, steps), np.ones_like(_TURN)
    circles = [np.outer(turn, np.sin(height)) for turn in (np.cos(_TURN), np.sin(_TURN))]
    return np.stack([*circles, np.outer(around, np.cos(height))])


def _axes_of_space(axes: Any, length: float) -> None:
    for k, name in enumerate(("x₁", "x₂", "x₃")):
        end = length * np.eye(3)[k]
        axes.plot(*np.stack([0 * end, end], -1), color=INK, linewidth=0.7)
        axes.text(*(1.1 * end), name, color=INK, ha="center", va="center", fontsize=8.5)


def _ellipse(axes: Any, space: Space, x: Array) -> None:
    """{v: vᵀX⁻¹v = 1}, with its semi-axes, the roots of the eigenvalues."""
    values, vectors = np.linalg.eigh(x)
    arms = vectors * np.sqrt(np.clip(values, 0, None))
    outline = arms @ np.stack([np.cos(_TURN), np.sin(_TURN)])
    axes.fill(*outline, facecolor=(BLUE, 0.18), edgecolor=BLUE, linewidth=1.8)
    for arm, value in zip(arms.T, values, strict=True):
        axes.plot([0, arm[0]], [0, arm[1]], color=RED, linewidth=1.4)
        axes.annotate(f"λ = {value:.3g}", arm, (4, 4), textcoords="offset points", fontsize=8.5, color=INK)
    reach = 1.15 * np.abs(outline).max()
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="v₁", ylabel="v₂")


def _ellipsoid(axes: Any, space: Space, x: Array) -> None:
    values, vectors = np.linalg.eigh(x)
    arms = vectors * np.sqrt(np.clip(values, 0, None))
    shell = np.einsum("ij,jkl->ikl", arms, _ball(25))
    axes.plot_wireframe(*shell, rstride=10, cstride=3, color=BLUE, linewidth=0.6, alpha=0.7)
    for arm in arms.T:
        axes.plot(*np.stack([0 * arm, arm], -1), color=RED, linewidth=1.6)
    reach = np.abs(shell).max()
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(-reach, reach))
    _axes_of_space(axes, 1.2 * reach)
    listed = ", ".join(f"{value:.3g}" for value in values[::-1])
    axes.text2D(0.5, -0.02, f"λ = {listed}", transform=axes.transAxes, ha="center")
    axes.set_box_aspect((1, 1, 1), zoom=1.25)
    axes.set_axis_off()


def _entries(axes: Any, space: Space, x: Array) -> None:
    """A matrix, its entries as colours and, where there is room, as numbers."""
    matrix = x @ x.T if isinstance(space, Grassmann) else x
    shown = axes.imshow(matrix, cmap="RdBu_r", norm=CenteredNorm(halfrange=float(np.abs(matrix).max()) or 1.0))
    if max(matrix.shape) > 6:
        axes.figure.colorbar(shown, ax=axes, label="entry", shrink=0.7, aspect=20, pad=0.03).outline.set_visible(False)
    else:
        dark = 0.6 * np.abs(matrix).max()
        for (i, j), value in np.ndenumerate(matrix):
            axes.text(j, i, f"{value:.2g}", ha="center", va="center", fontsize=8.5,
                      color="white" if abs(value) > dark else INK)  # fmt: skip
    rows, columns = (range(n) for n in matrix.shape)
    axes.set(xticks=columns, yticks=rows, xticklabels=[k + 1 for k in columns], yticklabels=[k + 1 for k in rows])
    axes.tick_params(length=0, labelsize=7.5)
    axes.grid(visible=False)
    axes.set_xlabel(_said_of(space, x))


def _said_of(space: Space, x: Array) -> str:
    if isinstance(space, Grassmann):
        return "the projection onto the subspace, XXᵀ"
    if isinstance(space, SPD):
        values = np.linalg.eigvalsh(x)
        return f"eigenvalues {values[0]:.3g} to {values[-1]:.3g}"
    return ""


def _bars(axes: Any, space: Space, x: Array) -> None:
    """The coordinates, one bar each."""
    flat = np.ravel(x)
    axes.bar(range(1, len(flat) + 1), flat, color=BLUE, width=0.7)
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel="coordinate", ylabel="x")


_PANELS: tuple[tuple[type[Space], Callable[[Any], bool], Panel], ...] = (
    (Sphere, lambda space: space.n == 1, Panel(_arrow_in_circle)),
    (Sphere, lambda space: space.n == 2, Panel(_arrow_in_globe, "3d")),
    (SPD, lambda space: space.n == 2, Panel(_ellipse)),
    (SPD, lambda space: space.n == 3, Panel(_ellipsoid, "3d")),
    (Rotation, lambda space: True, Panel(_frame, "3d")),
    (Quaternion, lambda space: True, Panel(_turned, "3d")),
    (Torus, lambda space: space.n <= 6, Panel(_dials, width=4.6)),
)
