"""The flow of a suggestion, as docs/concepts.md shows it."""

import sys

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

BLUE, ORANGE, GREEN, INK = "#0072B2", "#E69F00", "#009E73", "#333333"
TOP = [  # what it is, what it does, and the colour of where it lives
    ("history", "points and values\nso far", ORANGE),
    ("mapping", "project the points\nto the latent space", BLUE),
    ("surrogate", "Gaussian process\nof the objective", BLUE),
    ("acquisition", "how much is a point\nworth evaluating?", BLUE),
]
BOTTOM = [
    ("objective", "your experiment:\nthe value", GREEN),
    ("lift", "back to a point\nof the space", ORANGE),
    ("candidate", "the best latent point,\nby Riemannian search", BLUE),
]
WIDTH, HEIGHT, STEP = 2.35, 1.15, 2.95


def box(axes, x: float, y: float, name: str, text: str, colour: str) -> None:
    patch = FancyBboxPatch((x, y), WIDTH, HEIGHT, boxstyle="round,pad=0.02,rounding_size=0.12")
    patch.set(facecolor=(colour, 0.12), edgecolor=colour, linewidth=1.6)
    axes.add_patch(patch)
    axes.text(x + WIDTH / 2, y + 0.85, name, ha="center", va="center", fontweight="bold", color=INK)
    axes.text(x + WIDTH / 2, y + 0.38, text, ha="center", va="center", fontsize=8.5, color=INK)


def arrow(axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=14, linewidth=1.4, color=INK))


def main(path: str = "flow.png") -> None:
    with matplotlib.rc_context({"font.size": 10}):
        figure = Figure(figsize=(9.2, 3.7), layout="constrained")
        axes = figure.add_subplot()
        for k, item in enumerate(TOP):
            box(axes, STEP * k, 2.2, *item)
        for k, item in enumerate(BOTTOM):
            box(axes, STEP * (k + 0.5), 0.0, *item)
        for k in range(3):
            arrow(axes, (STEP * k + WIDTH, 2.2 + HEIGHT / 2), (STEP * (k + 1), 2.2 + HEIGHT / 2))
        for k in range(2):
            arrow(axes, (STEP * (k + 1.5), HEIGHT / 2), (STEP * (k + 0.5) + WIDTH, HEIGHT / 2))
        arrow(axes, (STEP * 3 + WIDTH / 2, 2.2), (STEP * 2.5 + 0.75 * WIDTH, HEIGHT))
        arrow(axes, (STEP * 0.5 + 0.25 * WIDTH, HEIGHT), (WIDTH / 2, 2.2))
        for x, text, colour in (
            (0.0, "in the space", ORANGE),
            (2.6, "in the latent space", BLUE),
            (6.2, "yours", GREEN),
        ):
            axes.text(x, 3.75, f"■ {text}", color=colour, fontsize=9)
        axes.set(xlim=(-0.1, STEP * 3 + WIDTH + 0.1), ylim=(-0.15, 4.0), aspect="equal")
        axes.set_axis_off()
        figure.savefig(path, dpi=120)
    print(f"Wrote {path}.")


if __name__ == "__main__":
    main(*sys.argv[1:2])
