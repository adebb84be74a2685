"""The idea of nested manifolds in one drawing: project to a small sphere, model there, lift the next point.

The drawing shows S^2 and a circle. HD-GaBO does the same with S^50 and S^5, which nobody can draw.
"""

import math
import sys

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from nested_spheres import AZIMUTH, BLUE, ELEVATION, INK, draw_path, draw_points, geodesic, in_front, mapping

import nestbo as nb

RED = "#D55E00"
EVALUATIONS = 7


def objective(angle: torch.Tensor) -> torch.Tensor:
    """Something to minimise along the circle, two valleys of different depth."""
    return 0.9 * torch.cos(2 * angle + 0.4) + 0.5 * torch.sin(angle - 0.6)


def angle_of(z: torch.Tensor) -> torch.Tensor:
    """Of points of the circle, in radians from −π to π."""
    return torch.atan2(z[..., 1], z[..., 0])


def circle_at(angle: torch.Tensor) -> torch.Tensor:
    """Points of the circle."""
    return torch.stack([angle.cos(), angle.sin()], -1)


def draw_sphere(axes, nested: nb.nested.NestedSphere, x: torch.Tensor, chosen: torch.Tensor) -> None:
    """The sphere, coloured by the objective; evaluated points go to the circle, and the next point comes from it."""
    axes.computed_zorder = False  # else the depth decides, and hides the lines inside the sphere
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 181), np.linspace(0, np.pi, 91))
    shell = np.stack([np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)])
    values = objective(angle_of(nested.project(torch.from_numpy(shell).movedim(0, -1)))).numpy()
    low, high = values.min(), values.max()
    shades = matplotlib.colormaps["viridis"]((values - low) / (high - low))
    shades = 0.45 * shades + 0.55  # paler
    shades[..., 3] = in_front(torch.from_numpy(shell).movedim(0, -1))  # else the back shines through
    axes.plot_surface(*shell, facecolors=shades, rstride=1, cstride=1, linewidth=0, antialiased=False, shade=False)
    for start, end in zip(x, nested.lift(nested.project(x)), strict=True):
        draw_path(axes, geodesic(start, end), color=INK, linewidth=1.0)
    ring = torch.linspace(0, 2 * math.pi, 361, dtype=torch.float64)
    draw_path(axes, nested.lift(circle_at(ring)), color=BLUE, linewidth=2.6)
    draw_points(axes, x, "evaluated point", color=INK, s=44)
    draw_points(axes, chosen, "next point", color=RED, marker="*", s=260)
    axes.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
    axes.set_box_aspect((1, 1, 1), zoom=1.4)
    axes.view_init(elev=ELEVATION, azim=AZIMUTH)
    axes.set_axis_off()
    axes.set_title("The space: the value (colour) changes\nalong the blue circle, and nowhere else")


def draw_model(axes, study: nb.Study, chosen: torch.Tensor) -> None:
    """What the model on the circle believes, and where it wants the next value."""
    turn = torch.linspace(-math.pi, math.pi, 361, dtype=torch.float64)
    with torch.no_grad():
        low, mean, high = (study.model().predict(circle_at(turn), deviations) for deviations in (-2, 0, 2))
    told = torch.stack([trial.x for trial in study.history])
    axes.plot(turn, objective(turn), color="#B0B0B0", linestyle="--", label="objective (unknown)")
    axes.plot(turn, mean, color=BLUE, label="model")
    axes.fill_between(turn, low, high, color=BLUE, alpha=0.15, linewidth=0)
    axes.scatter(angle_of(told), objective(angle_of(told)), color=INK, s=44, edgecolors="white", zorder=3)
    at = angle_of(chosen)
    axes.scatter(at, mean[(turn - at).abs().argmin()], color=RED, marker="*", s=260, edgecolors="white", zorder=4)
    axes.set(xlim=(-math.pi, math.pi), xticks=[-math.pi, 0, math.pi], yticks=[])
    axes.set_xticklabels(["−180°", "0°", "180°"])
    axes.set_title("The latent space: a model on the circle\nneeds few evaluations")
    axes.set(xlabel="position on the circle", ylabel="value")
    axes.spines[["top", "right"]].set_visible(False)


def draw_arrow(figure: Figure, word: str, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    """From one panel to the other."""
    figure.add_artist(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=18, color=colour, linewidth=2))
    figure.text((start[0] + end[0]) / 2, start[1] + 0.03, word, ha="center")


def main(path: str = "idea.png") -> None:
    nested = mapping()
    x = nb.Sphere(2).random(EVALUATIONS, rng=torch.Generator().manual_seed(11))
    study = nb.Study(nb.Sphere(1), nb.GaBO(initial=1, metric="isotropic"), seed=0)
    for z in nested.project(x):
        study.add(z, float(objective(angle_of(z))))
    z = study.ask().x
    with matplotlib.rc_context({"font.size": 10, "axes.titlesize": 10.5, "text.color": INK}):
        figure = Figure(figsize=(9.0, 4.2))
        sphere = figure.add_axes((0.0, 0.1, 0.44, 0.76), projection="3d")
        draw_sphere(sphere, nested, x, nested.lift(z[None]))
        model = figure.add_axes((0.63, 0.22, 0.35, 0.62))
        draw_model(model, study, z)
        draw_arrow(figure, "project", (0.46, 0.62), (0.57, 0.62), BLUE)
        draw_arrow(figure, "lift", (0.57, 0.42), (0.46, 0.42), RED)
        figure.legend(loc="lower center", ncols=4, frameon=False)
        figure.savefig(path, dpi=110)
    print(f"Wrote {path}.")


if __name__ == "__main__":
    main(*sys.argv[1:2])
