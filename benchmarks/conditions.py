"""Constraints and noise: how near the true minimum a study gets under them.

    python benchmarks/conditions.py

Prints the tables of docs/constraints.md and docs/noise.md: medians and extremes over seeds.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch
from torch import Tensor

import nestbo as nb

SEEDS = range(10)
SPACE = nb.Sphere(3)


def bumpy(x: Tensor) -> Tensor:
    """A function with several minima."""
    pole = torch.tensor([0.0, 0.0, 1.0, 0.0], dtype=x.dtype)
    return (x - pole).square().sum(-1) + 0.3 * torch.sin(3 * x).sum(-1)


def allowed(x: Tensor) -> Tensor:
    """Two constraints, both active at the minimum."""
    return torch.stack([x[..., 0] - 0.5, 0.3 - x[..., 2]], -1)


def least() -> float:
    """The constrained minimum, from many starts."""
    drawn = SPACE.random(20_000, rng=torch.Generator().manual_seed(0))
    inside = drawn[(allowed(drawn) >= 0).all(-1)][:200]
    return nb.optimise.trust_region(bumpy, SPACE, inside, constraints=allowed).value.min().item()


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.1e} | {min(values):.1e}, {max(values):.1e}"


def constrained(evaluations: int = 30) -> None:
    """Regret of the best feasible value."""

    def regret(strategy: nb.Strategy, f: Callable[[Tensor], object], known: Callable[[Tensor], object] | None) -> str:
        studies = [nb.Study(SPACE, strategy, seed=seed, constraints=known) for seed in SEEDS]
        found = [study.run(f, evaluations, progress=False).best for study in studies]
        return spread([trial.value - best for trial in found if trial is not None and trial.value is not None])

    best = least()
    observed = lambda x: nb.Observation(bumpy(x), allowed(x))
    print("| constraints | method | median regret | least, largest |\n|---|---|---|---|")
    print("| known, differentiable | GaBO |", regret(nb.GaBO(), bumpy, allowed), "|")
    print("| known, not differentiable | GaBO |", regret(nb.GaBO(), bumpy, lambda x: allowed(x).tolist()), "|")
    print("| observed with the value | GaBO |", regret(nb.GaBO(), observed, None), "|")
    print("| known | random search |", regret(nb.RandomSearch(), bumpy, allowed), "|")


def noisy(evaluations: int = 40, deviation: float = 0.3) -> None:
    """True values, less the minimum of 0, at the points that a study ends with."""
    ackley = nb.problem("ackley", nb.Sphere(2))
    print("| `noise=` | at the best observed | least, largest | at the recommended | least, largest |")
    print("|---|---|---|---|---|")
    for noise in (None, "infer", deviation**2):
        ends = []
        for seed in SEEDS:
            rng = torch.Generator().manual_seed(seed)

            def f(x: Tensor, rng: torch.Generator = rng) -> float:
                return ackley.objective(x).item() + deviation * torch.randn((), generator=rng).item()

            study = nb.Study(nb.Sphere(2), nb.GaBO(), seed=seed, noise=noise).run(f, evaluations, progress=False)
            ends.append([ackley.objective(trial.x).item() for trial in (study.best, study.recommend()) if trial])
        print(f"| {noise!r} |", " | ".join(spread(list(column)) for column in zip(*ends, strict=True)), "|")


if __name__ == "__main__":
    torch.set_num_threads(1)
    constrained()
    noisy()
