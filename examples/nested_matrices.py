"""Nested matrices as in figure 1 of the HD-GaBO paper: 3×3 matrices, their projections WᵀXW, and the lift of these."""

import sys

import matplotlib
import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.figure import Figure

import nestbo as nb

LARGE = nb.SPD(3, eigenvalues=(0.2, 3.0))
SMALL = nb.SPD(2, eigenvalues=(0.2, 3.0))
ROWS, COLUMNS, CELL = 3, 4, 3.6


def mapping(x: torch.Tensor) -> nb.nested.NestedSPD:
    """A random subspace, with the lift nearest to the matrices."""
    return nb.nested.NestedSPD.random(LARGE, SMALL, torch.Generator().manual_seed(1)).fit_lift(x)


def ellipsoid(x: torch.Tensor) -> np.ndarray:
    """The surface vᵀX⁻¹v = 1, that is X^½ applied to the unit sphere, (3, steps, steps)."""
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 41), np.linspace(0, np.pi, 25))
    ball = np.stack([np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)])
    values, vectors = torch.linalg.eigh(x)
    return np.einsum("ij,jkl->ikl", ((vectors * values.sqrt()) @ vectors.mT).numpy(), ball)


def cone(z: torch.Tensor) -> np.ndarray:
    """2×2 matrices as points ((z₁₁ − z₂₂)/2, z₁₂, (z₁₁ + z₂₂)/2), (3, n): a cone around the last axis."""
    a, b, c = z[:, 0, 0], z[:, 0, 1], z[:, 1, 1]
    return torch.stack([(a - c) / 2, b, (a + c) / 2]).numpy()


def draw_ellipsoids(axes, x: torch.Tensor, colours: np.ndarray) -> None:
    """Side by side, in rows."""
    for k, (matrix, colour) in enumerate(zip(x, colours, strict=True)):
        row, column = divmod(k, COLUMNS)
        offset = np.array([CELL * column, 0.0, -CELL * row])[:, None, None]
        options = {"rcount": 25, "ccount": 41, "linewidth": 0, "antialiased": False}
        axes.plot_surface(*(ellipsoid(matrix) + offset), color=colour, **options)
    half = CELL / 2
    axes.set(xlim=(-half, CELL * COLUMNS - half), ylim=(-half, half), zlim=(half - CELL * ROWS, half))
    axes.set_box_aspect((COLUMNS, 1, ROWS), zoom=1.25)
    axes.view_init(elev=8, azim=-82)
    axes.set_proj_type("ortho")
    axes.set_axis_off()


def draw_cone(axes, z: torch.Tensor, colours: np.ndarray) -> None:
    """The matrices with eigenvalues within bounds, and those given."""
    low, high = SMALL.eigenvalues
    height, turn = np.linspace(low, high, 25), np.linspace(0, 2 * np.pi, 33)[:, None]
    radius = np.minimum(height - low, high - height)
    shell = radius * np.cos(turn), radius * np.sin(turn), height + 0 * turn
    axes.plot_wireframe(*shell, rstride=2, cstride=6, color="#C4C4C4", linewidth=0.6)
    axes.scatter(*cone(z), c=colours, s=60, edgecolors="white", depthshade=False)
    axes.set(xlabel="(z₁₁ − z₂₂)/2", ylabel="z₁₂", zlabel="(z₁₁ + z₂₂)/2")
    axes.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1], zticks=[0, 1, 2, 3])
    axes.tick_params(labelsize=8, pad=0)
    axes.set_box_aspect(None, zoom=0.86)
    for side in (axes.xaxis, axes.yaxis, axes.zaxis):
        side.set_pane_color((1, 1, 1, 0))


def main(path: str = "nested_matrices.png") -> None:
    x = LARGE.random(ROWS * COLUMNS, rng=torch.Generator().manual_seed(0))
    nested = mapping(x)
    z = nested.project(x)
    colours = colormaps["viridis"](np.linspace(0.1, 1, len(x)))
    with matplotlib.rc_context({"font.size": 9.5, "axes.titlesize": 10, "grid.color": "#E6E6E6"}):
        figure = Figure(figsize=(11.0, 3.9), layout="constrained")
        cells = figure.add_gridspec(1, 4, width_ratios=[1, 1, 0.1, 1])  # the third keeps the cone's label off the next
        left, middle, right = (figure.add_subplot(cells[k], projection="3d") for k in (0, 1, 3))
        draw_ellipsoids(left, x, colours)
        draw_cone(middle, z, colours)
        draw_ellipsoids(right, nested.lift(z), colours)
        left.set_title("Matrices X of SPD(3), as ellipsoids")
        middle.set_title("WᵀXW in the cone of SPD(2)")
        right.set_title("Their lift, nearest to all X")
        figure.savefig(path, dpi=150)
    print(f"Wrote {path}.")


if __name__ == "__main__":
    main(*sys.argv[1:2])
