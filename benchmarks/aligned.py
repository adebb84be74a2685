"""SPD(…, aligned=True): do suggestions pay that keep the eigenvectors of the best matrix?

python benchmarks/aligned.py        # two functions, 8 seeds, 60 evaluations, some minutes on one core; prints a table

Both functions are of 4 × 4 matrices, and their best matrix is nearly diagonal.
"""

import math

import torch
from scipy.stats import wilcoxon

import nestbo as nb
from nestbo.linalg import logm
from nestbo.strategies import aligned, learning

SPACE = nb.SPD(4, eigenvalues=(0.01, 10.0), scale="log", aligned=True)
SEEDS, BUDGET = 8, 60
COUPLED = 0.1  # deviation of the entries beside the diagonal of the best logarithm


def away(x, seed):
    """The logarithm of x minus that of the best matrix: its diagonal, and the squares of all other entries."""
    rng = torch.Generator().manual_seed(seed)
    coupling = COUPLED * torch.randn(4, 4, generator=rng, dtype=torch.float64)
    middle = torch.rand(4, generator=rng, dtype=torch.float64) * 4 - 3
    rest = logm(x) - torch.diag(middle) - (coupling + coupling.T) / 2
    return rest.diagonal(), (rest - torch.diag(rest.diagonal())).square().sum()


def valley(x, seed):
    """Rosenbrock's valley along the diagonal."""
    along, beside = away(x, 100 + seed)
    u = along / 2 + 1
    return float((10 * (u[1:] - u[:-1] ** 2) ** 2 + (1 - u[:-1]) ** 2).sum() + 5 * beside)


def bumpy(x, seed):
    """A bowl with ripples."""
    along, beside = away(x, 200 + seed)
    return float((along**2 + 2 * (1 - (2 * along).cos())).sum() + 3 * beside)


def reached(function, seed, turn):
    """The best value of a study, with or without turns of the eigenvalues."""
    learning.along_axes = turn
    study = nb.Study(SPACE, seed=seed)
    study.run(lambda x: function(x, seed), BUDGET, progress=False)
    return study.best.value


if __name__ == "__main__":
    torch.set_num_threads(1)
    print("| function | seed | with | without |\n|---|--:|--:|--:|")
    for function in (valley, bumpy):
        ratios = []
        for seed in range(SEEDS):
            kept, free = (reached(function, seed, turn) for turn in (aligned.along_axes, lambda *_: False))
            ratios.append(math.log(kept / free))
            print(f"| {function.__name__} | {seed} | {kept:.3g} | {free:.3g} |", flush=True)
        lower = sum(ratio < 0 for ratio in ratios)
        print(f"{function.__name__}: lower in {lower} of {SEEDS} seeds, p {wilcoxon(ratios).pvalue:.2g}")
