"""How often the 95 % interval of a recommendation holds the true value: ``python benchmarks/intervals.py SEEDS``.

Ackley's function on S², with noise of standard deviation 0.3; the variance is told, or inferred.
"""

import sys

import torch

import nestbo as nb

DEVIATION = 0.3  # of the noise; values of the function lie between 0 and 4
COUNTS = (12, 24, 48)  # evaluations
PROBLEM = nb.problem("ackley", nb.Sphere(2))


def covered(noise, seed):
    """For each number of evaluations, whether the interval holds the true value, and its width."""
    rng = torch.Generator().manual_seed(seed)
    study = nb.Study(PROBLEM.space, nb.GaBO(), seed=seed, noise=noise)

    def measured(x):
        return PROBLEM.objective(x).item() + DEVIATION * torch.randn((), generator=rng).item()

    found = []
    for count in COUNTS:
        study.run(measured, budget=count, progress=False)
        made = study.recommendation()
        true = PROBLEM.objective(made.trial.x).item()
        found.append((made.low <= true <= made.high, made.high - made.low))
    return found


def main():
    torch.set_num_threads(1)
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
    print(f"| `noise=` | {' | '.join(f'after {count}' for count in COUNTS)} |")
    print("|---" * (1 + len(COUNTS)) + "|")
    for noise in ("infer", DEVIATION**2):
        rows = [covered(noise, seed) for seed in seeds]
        cells = []
        for each in zip(*rows, strict=True):
            held, widths = zip(*each, strict=True)
            cells.append(f"{sum(held)} of {len(held)}, {torch.tensor(widths).median():.2f} wide")
        print(f"| `{noise!r}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
