"""Seconds per suggestion: the authors' code of 2020, then nestbo on the same data, each in a process of its own.

    python benchmarks/reference/compare.py --checkout GaBOtorch --python reference/bin/python
    python benchmarks/reference/compare.py --data benchmarks/reference/sphere-50.npz --space sphere:50 --latent-dim 5

README.md beside this file says how to install the reference, none of whose code is here. Without a checkout, ``--data``
takes a file that timed.py wrote elsewhere. CPU seconds of one thread.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import nestbo as nb

EXAMPLES = {
    "sphere": "examples/hd_bo_sphere/benchmark_examples/hd_gabo_sphere.py",
    "spd": "examples/hd_bo_spd/benchmark_examples/hd_gabo_spd.py",
}


def run_reference(options: argparse.Namespace, out: Path) -> None:
    """The authors' example with these sizes, under their versions of everything, on one thread."""
    kind, size = options.space.split(":")[:2]
    extra = 1 if kind == "sphere" else 0  # they count the coordinates of a sphere, not its dimension
    example = options.checkout / EXAMPLES[kind]
    sizes = [str(int(size) + extra), str(options.latent_dim + extra), str(options.iterations)]
    command = [str(options.python), str(Path(__file__).parent / "timed.py"), str(example), str(out), *sizes]
    search = os.pathsep.join([str(options.checkout), os.environ.get("PYTHONPATH", "")])
    subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": search})


def seconds(strategy: nb.Strategy, space: nb.Manifold, x: torch.Tensor, y: torch.Tensor) -> float:
    """CPU seconds of one suggestion after these evaluations, with its fit."""
    asked(strategy, space, x, y)  # loads modules
    return asked(strategy, space, x, y)


def asked(strategy: nb.Strategy, space: nb.Manifold, x: torch.Tensor, y: torch.Tensor) -> float:
    """CPU seconds of the first suggestion of a study that knows these evaluations."""
    study = nb.Study(space, strategy, seed=0)
    for point, value in zip(x, y, strict=True):
        study.add(space.project(point), float(value))
    begin = time.process_time()
    study.ask()
    return time.process_time() - begin


def points(space: nb.Manifold, x: np.ndarray) -> torch.Tensor:
    """Their points as nestbo's: matrices come as Mandel's vectors of their entries."""
    found = torch.from_numpy(x)
    if not isinstance(space, nb.SPD):
        return found
    n, matrices = space.n, found.new_zeros(len(found), space.n, space.n)
    start = 0
    for k in range(n):
        part = found[:, start : start + n - k] / (1 if k == 0 else 2**0.5)
        matrices = matrices + torch.diag_embed(part, offset=k)
        start += n - k
    return matrices + matrices.triu(1).mT


def table(data: Path, space: nb.Manifold, latent_dim: int) -> list[str]:
    """A row for each suggestion of the reference, then how much longer all of them took it than nestbo."""
    methods = {"published": nb.HDGaBO.paper(latent_dim), "default": nb.HDGaBO()}
    lines = ["| n | reference (s) | nestbo, published (s) | nestbo, default (s) |", "|--:|--:|--:|--:|"]
    ours: dict[str, list[float]] = {name: [] for name in methods}
    with np.load(data) as arrays:
        theirs = arrays["seconds"].tolist()
        for k, taken in enumerate(theirs):
            x, y = points(space, arrays[f"x{k}"]), torch.from_numpy(arrays[f"y{k}"])
            for name, method in methods.items():
                ours[name].append(seconds(method, space, x, y))
            own = " | ".join(f"{each[-1]:.2f}" for each in ours.values())
            lines.append(f"| {len(y)} | {taken:.1f} | {own} |")
    return [*lines, "", *(f"nestbo, {name}: {_longer(theirs, each)}" for name, each in ours.items())]


def _longer(theirs: list[float], ours: list[float]) -> str:
    ratio = statistics.median(their / our for their, our in zip(theirs, ours, strict=True))
    total = sum(theirs) / sum(ours)
    return f"the reference took {total:.0f} times as long in all, and {ratio:.0f} times as long in the median"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, help="the authors' repository")
    parser.add_argument("--python", type=Path, help="the Python of the reference's environment")
    parser.add_argument("--data", type=Path, help="a file of timed.py, in place of these two")
    parser.add_argument("--space", default="sphere:50", help="sphere:D, or spd:D:eigenvalues=0.001,5")
    parser.add_argument("--latent-dim", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=3, help="of the reference, 10 or 90 s each on S^50")
    options = parser.parse_args()
    if options.data is None and (options.checkout is None or options.python is None):
        parser.error("wanted --checkout and --python, or --data")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        data = options.data or Path(folder) / "reference.npz"
        if options.data is None:
            run_reference(options, data)
        sys.stdout.write("\n".join(table(data, nb.space(options.space), options.latent_dim)) + "\n")


if __name__ == "__main__":
    main()
