"""Do the data tell whether something is nested? What a basis is worth, with latent structure and without.

    python benchmarks/evidence.py

Prints a table of docs/hdgabo.md: how much likelier than the full model, in nats, the nested one makes the values of
GaBO's first n evaluations (medians and extremes over seeds), and what its basis costs by BIC.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import torch

import nestbo as nb
from nestbo.experiment.trials import Trials, run
from nestbo.kernels import kernel
from nestbo.nested import Nesting, smaller
from nestbo.surrogate import Data, Description, fit, worth_of_basis

SEEDS = tuple(range(6))
COUNTS = (20, 40, 80, 150)
LATENT = 3
CASES = [
    *[(name, 10, LATENT) for name in ("rosenbrock", "styblinski-tang", "product-of-sines")],
    *[("ackley", size, None) for size in (5, 10)],
]


def gains(x: torch.Tensor, y: torch.Tensor, nesting: Nesting) -> torch.Tensor:
    """In nats, for each run, before the basis is paid for."""
    rngs = [torch.Generator().manual_seed(seed) for seed in SEEDS]
    data = Data(x, y, rngs)
    full = fit(Description(kernel("matern52", nesting.ambient)), data)
    guess = nesting.active(full.gradients(x))
    nested = fit(Description(kernel("matern52", nesting.compared), nesting), data, guess=guess)
    return worth_of_basis(nested, full, 0)


def main() -> None:
    print("| function | " + " | ".join(f"n = {n}" for n in COUNTS) + " |\n|---|" + "---|" * len(COUNTS))
    for name, size, latent_dim in CASES:
        space = nb.space(f"spd:{size}:eigenvalues=0.001,5")
        nesting = Nesting(space, smaller(space, LATENT))
        with tempfile.TemporaryDirectory() as folder:
            trials = Trials(name, space.specification, "gabo", SEEDS, latent_dim)
            state = run(trials, max(COUNTS), Path(folder) / "runs.npz", report=lambda line: None)
        cells = []
        for n in COUNTS:
            gain = gains(state.x[:, :n], state.y[:, :n], nesting)
            cost = nesting.bases.dim / 2 * math.log(n)
            cells.append(f"{gain.median():.0f} ({gain.min():.0f}, {gain.max():.0f}); {cost:.0f}")
        hidden = f"SPD({latent_dim}) in SPD({size})" if latent_dim else f"SPD({size}) itself"
        print(f"| {name}, {hidden} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
