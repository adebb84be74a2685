"""What the axes are worth: methods on an application as it is, and with its sphere turned at random.

A sphere has no preferred axes. A box of coordinates has: its corners, its faces, its first angle. A rival that is ahead
only without the turn owes its lead to the axes.

python benchmarks/turned.py printing "normalised vectors" --methods nestbo,random,tpe,cma,turbo --seeds 24
python benchmarks/turned.py gust "hyperspherical angles" --methods tpe,cma --seeds 6
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

import numpy as np
import torch
from scipy.stats import special_ortho_group

from nestbo.experiment.applications import METHODS, Evaluations, OnSpace
from nestbo.gallery.application import Application
from nestbo.gallery.catalogue import load
from nestbo.manifolds import Sphere

TURN = 1000  # added to a seed: the turn has random numbers of its own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("application", help="one on a sphere, such as printing")
    parser.add_argument("coordinates", help='such as "normalised vectors"')
    parser.add_argument("--methods", default="tpe,cma")
    parser.add_argument("--seeds", type=int, default=12)
    given = parser.parse_args()
    torch.set_num_threads(1)
    application = load(given.application)
    print("| method | as the example has it | turned at random | turned, quartiles | seeds |\n|---|--:|--:|--:|--:|")
    for name in given.methods.split(","):
        plain = [reached(application, name, given.coordinates, seed) for seed in range(given.seeds)]
        loose = [reached(turned(application, seed), name, given.coordinates, seed) for seed in range(given.seeds)]
        low, middle, high = np.quantile(loose, [0.25, 0.5, 0.75])
        medians = f"{np.median(plain):.4g} | {middle:.4g} | {low:.4g}, {high:.4g}"
        print(f"| {METHODS[name].about} | {medians} | {given.seeds} |", flush=True)


def turned(application: Application, seed: int) -> Application:
    """The same with other axes, drawn at random."""
    if not isinstance(application.space, Sphere) or application.truth is not None:
        sys.exit(f"Wanted an application on a sphere without noise, such as printing, got {application.name}.")
    turn = special_ortho_group.rvs(application.space.point_shape[0], random_state=TURN + seed)
    return replace(application, objective=lambda x: application.objective(turn @ x))


def reached(application: Application, name: str, coordinates: str, seed: int) -> float:
    """The value of the point that a method recommends, or the lowest one that it found."""
    made, method = Evaluations(application, application.budget), METHODS[name]
    if isinstance(method, OnSpace):
        chosen = method.run(made, seed)
    else:
        chosen = method.run(made, next(one for one in application.coordinates if one.name == coordinates), seed)
    return made.true(made.best if chosen is None else chosen)


if __name__ == "__main__":
    main()
