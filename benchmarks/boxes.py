"""Is one box of six coordinates as good as six boxes of one coordinate? One coordinate dominates the objective.

    python benchmarks/boxes.py run --seeds 5 --workers 2    # resumable: finished runs are skipped
    python benchmarks/boxes.py table

The six boxes have a length scale each. The one box has one length scale and, by default, models with a metric compete;
"one box, diagonal" has one model with a length scale for each coordinate, and
"one box, isotropic" has no metric.
"""

import argparse
import json
import multiprocessing
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import nestbo as nb

RESULTS = Path(__file__).parent / "results" / "boxes.jsonl"
BUDGET, COORDINATES = 60, 6
BOX = nb.Box([0.0] * COORDINATES, [1.0] * COORDINATES)
SPACES = {
    "one box": (BOX, nb.GaBO()),
    "six boxes": (nb.Product(*(nb.Box(0, 1) for _ in range(COORDINATES))), nb.GaBO()),
    "one box, diagonal": (BOX, nb.GaBO(metric="diagonal")),
    "one box, isotropic": (BOX, nb.GaBO(metric="isotropic")),
}


def cost(x: torch.Tensor, centre: torch.Tensor) -> float:
    """30 d₀² + 1 − cos 12 d₀ + 0.3 Σ dₖ² for d = x − centre: least, 0, at the centre."""
    d = x - centre
    return float(30 * d[0] ** 2 + 1 - torch.cos(12 * d[0]) + 0.3 * d[1:].square().sum())


def work(task: tuple[str, int, str]) -> str:
    """One run, written as a line."""
    name, seed, path = task
    torch.set_num_threads(1)
    space, strategy = SPACES[name]
    centre = 0.2 + 0.6 * torch.rand(COORDINATES, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    began, study = time.monotonic(), nb.Study(space, strategy, seed=seed)
    study.run(lambda x: cost(x, centre), BUDGET, progress=False, on_error="raise")
    values = [trial.value for trial in study.history]
    line = {"space": name, "seed": seed, "seconds": round(time.monotonic() - began, 1), "values": values}
    with open(path, "a") as file:
        file.write(json.dumps(line) + "\n")
    return f"{name} {seed}: {min(values):.3g} in {line['seconds']:.0f} s"


def records(path: Path) -> list[dict]:
    """What has been run."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(path: Path, seeds: int, workers: int) -> None:
    """Run what is missing, seed by seed."""
    done = {(line["space"], line["seed"]) for line in records(path)}
    tasks = [(name, seed, str(path)) for seed in range(seeds) for name in SPACES if (name, seed) not in done]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for said in pool.imap_unordered(work, tasks):
            print(said, flush=True)


def table(path: Path) -> None:
    """Median and quartiles of the best value after 20, 40 and 60 evaluations."""
    print("| space | seeds | after 20 | after 40 | after 60 |\n|---|--:|---|---|---|")
    for name in SPACES:
        values = np.array([line["values"] for line in records(path) if line["space"] == name])
        if not len(values):
            continue
        best = np.minimum.accumulate(values, 1)
        cells = [
            "{:.2g} ({:.2g} to {:.2g})".format(*np.quantile(best[:, k - 1], (0.5, 0.25, 0.75))) for k in (20, 40, 60)
        ]
        print(f"| {name} | {len(values)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    table(options.results) if options.what == "table" else run(options.results, options.seeds, options.workers)
