"""How much of an acquisition function SLSQP finds, as in the paper, and the batched optimiser that replaces it.

python benchmarks/slsqp.py     # writes the table of docs/baselines.md

Histories of Euclidean BO on three problems, five seeds each; from the same pools of candidates, the same starts are
refined by both, and the best value found of the logarithm of expected improvement is compared.
"""

import time
from pathlib import Path

import numpy as np
import torch

import nestbo as nb
from nestbo.acquisition import ACQUISITIONS, OPTIMISERS, Question, candidates, maximise
from nestbo.strategies import EuclideanBO, Runs
from nestbo.strategies.coordinates import vectors
from nestbo.strategies.in_coordinates import fit_vectors, unit_of

PAGE = Path(__file__).parent.parent / "docs" / "baselines.md"
MARK, END = "<!-- table: slsqp -->", "<!-- end -->"
MATRICES = "spd:10:eigenvalues=0.001,5"
PROBLEMS = [
    ("ackley", "sphere:50", 5, "matrix"),
    ("rosenbrock", MATRICES, 3, "matrix"),
    ("rosenbrock", MATRICES, 3, "cholesky"),
]
METHODS = [("slsqp", 200), ("lbfgs", 25), ("lbfgs", 100)]
HEADS = ("ours, 25 iterations", "ours, 100 iterations", "SLSQP, s", "ours, 25, s", "ours, 100, s")
SEEDS, EVALUATIONS, POOL, RESTARTS = 5, 30, 256, 4


def history(name, space, latent_dim, coordinates, seed):
    """Of one run of Euclidean BO."""
    hidden = nb.problem(name, space, latent_dim=latent_dim, seed=seed)
    study = nb.Study(space, EuclideanBO(coordinates=coordinates), seed=seed)
    study.run(hidden.objective, EVALUATIONS, progress=False)
    return Runs.of(space, study.history, torch.Generator().manual_seed(seed))


def found(space, coordinates, runs):
    """The value and the seconds of each optimiser."""
    on = vectors(space, coordinates)
    inputs = on.coordinates(runs.x)
    unit = unit_of(inputs)
    gp = fit_vectors(inputs / unit, runs).gp
    gain = ACQUISITIONS["logei"](Question(gp, gp.z.amin(-1), None, 0))
    pools = candidates(space, runs.x, runs.y, runs.rngs, POOL)

    def worth(z):
        return gain(on.coordinates(z.unflatten(-1, space.point_shape)) / unit)

    made = {}
    for optimiser, iterations in METHODS:
        began = time.perf_counter()
        options = {"optimiser": OPTIMISERS[optimiser], "max_iterations": iterations, "restarts": RESTARTS}
        _, value = maximise(worth, space, pools, **options)
        made[optimiser, iterations] = value.item(), time.perf_counter() - began
    return made


def cells(made):
    """Of a row: how far ours are ahead of SLSQP, and the seconds of all."""
    for method in METHODS[1:]:
        ahead = np.array([one[method][0] - one[METHODS[0]][0] for one in made])
        yield f"{np.median(ahead):+.1g} ({ahead.min():+.1g} to {ahead.max():+.1g})"
    for method in METHODS:
        yield f"{np.median([one[method][1] for one in made]):.2f}"


def main():
    torch.set_num_threads(1)
    lines = [f"| problem | coordinates | {' | '.join(HEADS)} |", "|---|---|" + "--:|" * len(HEADS)]
    for name, text, latent_dim, coordinates in PROBLEMS:
        space = nb.space(text)
        made = [found(space, coordinates, history(name, space, latent_dim, coordinates, seed)) for seed in range(SEEDS)]
        lines.append("| " + " | ".join([f"{name}, `{text.split(':eig')[0]}`", coordinates, *cells(made)]) + " |")
        print(lines[-1], flush=True)
    before, mark, after = PAGE.read_text().partition(MARK)
    PAGE.write_text(before + mark + "\n" + "\n".join(lines) + "\n" + END + after.partition(END)[2])


if __name__ == "__main__":
    main()
