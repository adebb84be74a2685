"""How often the 95 % interval of a recommendation holds the true value.

    python benchmarks/intervals.py infer 12 24 48
    python benchmarks/intervals.py 0.09 12

Prints rows of docs/noise.md: Ackley's function on S² with noise of standard deviation 0.3, twenty seeds. The first
argument is the noise that the study is told, the others are numbers of evaluations.
"""

from __future__ import annotations

import sys

import torch

import nestbo as nb

SEEDS = range(20)
DEVIATION = 0.3  # of the noise; values of the function lie between 0 and 8
PROBLEM = nb.problem("ackley", nb.Sphere(2))


def intervals(noise: str | float, seed: int, counts: list[int]) -> list[tuple[bool, float]]:
    """For each number of evaluations, whether the interval holds the true value, and its width."""
    rng = torch.Generator().manual_seed(seed)
    study = nb.Study(PROBLEM.space, nb.GaBO(), seed=seed, noise=noise)

    def measured(x: torch.Tensor) -> float:
        return PROBLEM.objective(x).item() + DEVIATION * torch.randn((), generator=rng).item()

    found = []
    for count in counts:
        study.run(measured, budget=count, progress=False)
        made = study.recommendation()
        true = PROBLEM.objective(made.trial.x).item()
        found.append((made.low <= true <= made.high, made.high - made.low))
    return found


def main() -> None:
    torch.set_num_threads(1)
    noise, counts = sys.argv[1], list(map(int, sys.argv[2:]))
    rows = [intervals(noise if noise == "infer" else float(noise), seed, counts) for seed in SEEDS]
    for count, each in zip(counts, zip(*rows, strict=True), strict=True):
        held, widths = zip(*each, strict=True)
        print(f"| `{noise}` | {count} | {sum(held)} of {len(held)} | {torch.tensor(widths).median():.2f} |")


if __name__ == "__main__":
    main()
