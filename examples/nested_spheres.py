"""Nested spheres as in figure 1 of the HD-GaBO paper: points of S^2 go along geodesics to a circle, then to S^1."""

import math
import sys

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

import nestbo as nb

BLUE, ORANGE, INK = "#0072B2", "#E69F00", "#333333"
RADIUS = math.radians(65)  # from the axis to the nested circle; 90 degrees would make it a great circle
ELEVATION, AZIMUTH = 24, -40  # of the viewer, in degrees


def mapping() -> nb.nested.NestedSphere:
    """One step of the paper's chain, from S^2 to S^1: an axis, and the angle between it and the nested circle."""
    axis = torch.tensor([0.1, 0.4, 0.9], dtype=torch.float64)
    return nb.nested.NestedSphere.from_axes([axis / axis.norm()], [RADIUS])


def geodesic(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The shortest path from x to y, (steps, 3)."""
    sphere, t = nb.Sphere(2), torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)
    return sphere.exp(x, t * sphere.log(x, y))


def in_front(x: torch.Tensor) -> np.ndarray:
    """Which points of the sphere face the viewer."""
    up, around = math.radians(ELEVATION), math.radians(AZIMUTH)
    viewer = [math.cos(up) * math.cos(around), math.cos(up) * math.sin(around), math.sin(up)]
    return (x @ torch.tensor(viewer, dtype=torch.float64) >= 0).numpy()


def draw_path(axes, path: torch.Tensor, **style) -> None:
    """A line on the sphere, faint where it is behind."""
    front = in_front(path)[:, None]
    for shown, alpha in ((front, 1.0), (~front, 0.25)):
        axes.plot(*np.where(shown, path.numpy(), np.nan).T, alpha=alpha, **style)


def draw_points(axes, x: torch.Tensor, label: str, **style) -> None:
    front = in_front(x)
    axes.scatter(*x[front].T.numpy(), label=label, edgecolors="white", depthshade=False, **style)
    axes.scatter(*x[~front].T.numpy(), alpha=0.35, edgecolors="white", depthshade=False, **style)


def draw_globe(axes) -> None:
    """The sphere as a net of meridians and parallels."""
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 49), np.linspace(0, np.pi, 25))
    shell = np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)
    axes.plot_surface(*shell, color="#EDEDED", alpha=0.3, linewidth=0, shade=False)
    axes.plot_wireframe(*shell, rstride=4, cstride=4, color="#D5D5D5", linewidth=0.5)
    axes.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
    axes.set_box_aspect((1, 1, 1), zoom=1.35)
    axes.view_init(elev=ELEVATION, azim=AZIMUTH)
    axes.set_axis_off()


def draw_nested_circle(axes, nested: nb.nested.NestedSphere, x: torch.Tensor, circle: torch.Tensor) -> None:
    axes.computed_zorder = False  # else the depth decides, and hides the lines inside the sphere
    draw_globe(axes)
    nearest = nested.lift(nested.project(x))
    for start, end in zip(x, nearest, strict=True):
        draw_path(axes, geodesic(start, end), color=INK, linewidth=0.9)
    draw_path(axes, nested.lift(circle), color=BLUE, linewidth=2.2)
    axis = nested.axes()[0].numpy()
    axes.plot(*np.outer(axis, [0, 1.18]), color=INK, linewidth=1.2)
    axes.text(*1.18 * axis, "  axis", ha="left", va="center")
    draw_points(axes, x, "x", color=ORANGE, s=38)
    draw_points(axes, nearest, "lift(project(x))", color=BLUE, s=28)
    axes.set_title("S², and a circle nested in it")


def draw_latent(axes, z: torch.Tensor, circle: torch.Tensor) -> None:
    axes.plot(*circle.T.numpy(), color=BLUE, linewidth=1.4)
    axes.scatter(*z.T.numpy(), color=BLUE, marker="D", edgecolors="white", s=38, zorder=3, label="z = project(x)")
    axes.set(aspect="equal", xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), xlabel="z₁", ylabel="z₂")
    axes.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1], title="S¹, the latent space")
    axes.spines[["top", "right"]].set_visible(False)


def main(path: str = "nested_spheres.png") -> None:
    nested = mapping()
    x = nb.Sphere(2).random(18, rng=torch.Generator().manual_seed(0))
    turn = torch.linspace(0, 2 * math.pi, 361, dtype=torch.float64)
    circle = torch.stack([turn.cos(), turn.sin()], -1)
    with matplotlib.rc_context({"font.size": 9.5, "axes.titlesize": 10, "text.color": INK}):
        figure = Figure(figsize=(8.0, 4.4), layout=ConstrainedLayoutEngine(rect=(0.01, 0.01, 0.98, 0.95)))
        draw_nested_circle(figure.add_subplot(1, 2, 1, projection="3d"), nested, x, circle)
        draw_latent(figure.add_subplot(1, 2, 2), nested.project(x), circle)
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
        figure.savefig(path, dpi=150)
    print(f"Wrote {path}.")


if __name__ == "__main__":
    main(*sys.argv[1:2])
