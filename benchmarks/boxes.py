"""Is one box of several coordinates as good as several boxes of one coordinate?

    python benchmarks/boxes.py run      # resumable: finished parts are skipped
    python benchmarks/boxes.py table    # writes the table of docs/parameters.md

The boxes of one coordinate have a length scale each, and their kernel is a product. One box has, by default, models
with and without a metric, which compete; "one box, diagonal" has one model with a length scale for each coordinate. The
optimum lies elsewhere in every trial, except for Hartmann's function. Trials of a part advance together.
"""

import argparse
import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from paired import verdict
from torch import Tensor

import nestbo as nb
from nestbo.memory import Memory
from nestbo.strategies import Runs

RESULTS = Path(__file__).parent / "results" / "boxes.jsonl"
PAGE = Path(__file__).parent.parent / "docs" / "parameters.md"
BEGIN, END = "<!-- table of benchmarks/boxes.py -->", "<!-- end of the boxes -->"
BUDGET, INITIAL, TRIALS = 60, 5, 8
STRATEGIES = {"one box": nb.GaBO(), "several boxes": nb.GaBO(), "one box, diagonal": nb.GaBO(metric="diagonal")}
_SIGNS = {"win": " ▲", "loss": " ▼", "tie": "", "few": ""}  # of one box, beside the other
_WIDTHS = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
_CENTRES = [
    [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
    [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
    [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
    [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
]  # of Hartmann's function (Dixon and Szegő 1978)


def _rng(*seed: int) -> torch.Generator:
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state))


def dominant(d: Tensor) -> Tensor:
    """One coordinate dominates, and has several minima."""
    return 30 * d[..., 0] ** 2 + 1 - torch.cos(12 * d[..., 0]) + 0.3 * d[..., 1:].square().sum(-1)


def decaying(d: Tensor) -> Tensor:
    """Each coordinate matters a quarter as much as the one before; the first two interact."""
    weights = 4.0 ** -torch.arange(d.shape[-1], dtype=torch.float64)
    return (weights * (8 * d**2 + 0.5 * (1 - torch.cos(9 * d)))).sum(-1) + 3 * (d[..., 0] * d[..., 1]) ** 2


def rosenbrock(d: Tensor) -> Tensor:
    """A curved valley: neighbours interact."""
    z = 1 + 4 * d
    return (z[..., 1:] - z[..., :-1] ** 2).square().sum(-1) + (1 - z[..., :-1]).square().sum(-1) / 100


def levy(d: Tensor) -> Tensor:
    """Many minima; a sum over coordinates that matter alike."""
    w = 1 + 2.5 * d
    inner = (w[..., :-1] - 1) ** 2 * (1 + 10 * torch.sin(math.pi * w[..., :-1] + 1) ** 2)
    last = (w[..., -1] - 1) ** 2 * (1 + torch.sin(2 * math.pi * w[..., -1]) ** 2)
    return torch.sin(math.pi * w[..., 0]) ** 2 + inner.sum(-1) + last


def hartmann(x: Tensor) -> Tensor:
    """Hartmann's function of six coordinates, above its least value."""
    widths, centres = torch.tensor(_WIDTHS, dtype=torch.float64), torch.tensor(_CENTRES, dtype=torch.float64)
    heights = torch.tensor([1, 1.2, 3, 3.2], dtype=torch.float64)
    distances = (widths * (x.unsqueeze(-2) - centres) ** 2).sum(-1)
    return 3.32236801141551 - (heights * torch.exp(-distances)).sum(-1)


class Function:
    """A function of points (trials, …, size) of the unit cube, with one centre for each trial; 0 is its least value."""

    def __init__(self, size: int, of: Callable[[Tensor], Tensor], centred: bool = True) -> None:
        self.size, self.of = size, of
        draw = lambda seed: torch.rand(size, generator=_rng(seed), dtype=torch.float64)
        self.centres = torch.stack([(0.2 + 0.6 * draw(seed)) * centred for seed in range(TRIALS)])

    def __call__(self, x: Tensor) -> Tensor:
        return self.of(x - self.centres.reshape(TRIALS, *[1] * (x.ndim - 2), self.size))


FUNCTIONS = {
    "dominant": Function(6, dominant),
    "decaying": Function(6, decaying),
    "rosenbrock": Function(5, rosenbrock),
    "levy": Function(6, levy),
    "hartmann": Function(6, hartmann, centred=False),
}


def values(name: str, space: str) -> Tensor:
    """All values of one part, (trials, evaluations): five random points, the same for all spaces, then suggestions."""
    f, strategy = FUNCTIONS[name], STRATEGIES[space]
    apart = nb.Product(*(nb.Box(0, 1) for _ in range(f.size)))
    where = apart if space == "several boxes" else nb.Box([0.0] * f.size, [1.0] * f.size)
    x = torch.stack([torch.rand(INITIAL, f.size, generator=_rng(s, 0), dtype=torch.float64) for s in range(TRIALS)])
    y, memories = f(x), [[Memory()] * INITIAL for _ in range(TRIALS)]
    for k in range(INITIAL, BUDGET):
        runs = Runs(x, y, x[:, :0], [_rng(seed, k) for seed in range(TRIALS)], memories)
        found, new = strategy.propose(where, runs)
        x, y = torch.cat([x, found.unsqueeze(1)], 1), torch.cat([y, f(found).unsqueeze(1)], 1)
        memories = [[*past, memory] for past, memory in zip(memories, new, strict=True)]
    return y


def records(path: Path) -> dict[tuple[str, str], dict]:
    """What has been run, by function and space."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {(line["function"], line["space"]): line for line in lines}


def work(name: str, space: str, path: Path) -> str:
    """One part, written as a line."""
    began, found = time.process_time(), values(name, space)
    seconds = round((time.process_time() - began) / TRIALS / (BUDGET - INITIAL), 4)
    best = [[float(f"{value:.4g}") for value in row] for row in found.cummin(1).values.tolist()]
    line = {"function": name, "space": space, "seconds": seconds, "best": best}
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")
    return f"{name}, {space}: {found.amin(1).median():.3g}, {seconds} s a suggestion"


def run(path: Path) -> None:
    """Run the parts that are missing."""
    torch.set_num_threads(1)
    done = records(path)
    for part in [(name, space) for name in FUNCTIONS for space in STRATEGIES]:
        if part in done:
            continue
        print(work(*part, path), flush=True)


def _cell(line: dict, against: dict | None) -> str:
    """Median and quartiles at the end, and whether one box is better or worse by a signed-rank test."""
    ends = np.array(line["best"])[:, -1]
    said = "few" if against is None else verdict(_last(against), _last(line), smaller=True)
    return "{:.2g} ({:.2g} to {:.2g})".format(*np.quantile(ends, (0.5, 0.25, 0.75))) + _SIGNS[said]


def _last(line: dict) -> dict[int, float]:
    return {seed: row[-1] for seed, row in enumerate(line["best"])}


def table(path: Path) -> None:
    """Write the table of the page: the best value after all evaluations, and the seconds of a suggestion."""
    found, rows = records(path), [f"| function | {' | '.join(STRATEGIES)} |", f"|---|{'---|' * len(STRATEGIES)}"]
    for name in FUNCTIONS:
        one = found[name, "one box"]
        cells = [_cell(found[name, space], None if space == "one box" else one) for space in STRATEGIES]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    seconds = [np.median([found[name, space]["seconds"] for name in FUNCTIONS]) for space in STRATEGIES]
    rows.append(f"| *CPU s a suggestion* | {' | '.join(f'{each:.2f}' for each in seconds)} |")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n" + "\n".join(rows) + f"\n\n{END}{rest.partition(END)[2]}")
    print("\n".join(rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    table(options.results) if options.what == "table" else run(options.results)
