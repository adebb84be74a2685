"""Regret of any strategy on hidden or bare problems, many trials at once, on a GPU where there is one.

    python benchmarks/metric.py --space sphere:50 --latent 5 --method hdgabo:metric=auto ackley rosenbrock levy

Prints the medians of the regret after 25, 55, 105, 155, 205 and 305 evaluations, the quartiles at the end, and the
share of trials below 0.1 and below 1. Seeds and initial points are those of ``nestbo bench``.
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch

from nestbo.experiment.trials import Trials, run

LOOKS = (25, 55, 105, 155, 205, 305)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="+")
    parser.add_argument("--space", required=True)
    parser.add_argument("--latent", type=int, help="size of the hidden manifold; left out, the problem is bare")
    parser.add_argument("--method", default="hdgabo:metric=auto")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--budget", type=int, default=305)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for name in options.problems:
        trials = Trials(name, options.space, options.method, tuple(range(options.trials)), options.latent)
        report(trials, options.budget, device)


def report(trials: Trials, budget: int, device: str) -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        state = run(trials, budget, Path(folder) / trials.name, device=device)
    optima = torch.tensor([p.optimal_value for p in trials.problems()], dtype=torch.float64)
    regret = state.y.cummin(1).values.cpu() - optima.unsqueeze(-1)
    medians = [f"{regret[:, n - 1].median():.3g}" for n in LOOKS if n <= budget]
    low, high = (f"{regret[:, -1].quantile(q):.3g}" for q in (0.25, 0.75))
    below = [f"{(regret[:, -1] < bound).double().mean():.0%}" for bound in (0.1, 1.0)]
    print(trials.problem, *medians, f"quartiles {low}, {high}; below 0.1, 1: {', '.join(below)}", end="; ")
    print(f"{time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
