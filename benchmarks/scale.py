"""How long one suggestion takes, and how much memory, in studies with very many evaluations or pending points.

    python benchmarks/scale.py            # all cases, each in a process of its own, on one thread
    python benchmarks/scale.py sphere:5   # those whose name contains a text

``first`` is a suggestion to evaluations that were made elsewhere: all models are fitted anew. ``next`` is the one after
it. ``peak`` is the memory of the process, in which the library alone takes about 350 MB.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import torch

import nestbo as nb

SPACES = ("sphere:5", "sphere:50", "spd:10:eigenvalues=0.001,5")
METHODS = ("gabo", "hdgabo")
EVALUATIONS = (2000, 4000, 10000, 50000)
PENDING = (100, 1000)  # points that are pending, with as many evaluations as in the first number
CASES = [(method, space, n, 0) for n in EVALUATIONS for method in METHODS for space in SPACES]
CASES += [(method, space, *PENDING) for method in METHODS for space in SPACES]


def history(space: nb.Manifold, n: int, pending: int) -> nb.History:
    """Random points, with the squared distance to one of them, bent, as the value."""
    x = space.random(n + pending, rng=torch.Generator().manual_seed(0))
    features = space.embed(x)
    apart = (features - features[0]).square().sum(-1)
    values = (apart + features.sum(-1).sin()).tolist()
    told = [nb.Trial(k, x[k]).with_value(values[k]) for k in range(n)]
    return nb.History((*told, *(nb.Trial(k, x[k]) for k in range(n, n + pending))))


def measure(method: str, space: str, n: int, pending: int) -> str:
    """One line of the table."""
    torch.set_num_threads(1)
    where, strategy = nb.space(space), nb.strategy(method)
    past, seconds = history(where, n, pending), []
    for k in range(2):
        began = time.process_time()
        (found,) = strategy.suggest(where, past, 1, torch.Generator().manual_seed(k))
        seconds.append(time.process_time() - began)
        trial = nb.Trial(len(past), found.x, memory=found.memory)
        past = past.add(trial.with_value(float(where.embed(found.x).sum())))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"| {method} | {space} | {n} | {pending} | {seconds[0]:.1f} s | {seconds[1]:.1f} s | {peak:.0f} MB |"


def main() -> None:
    """The table, line by line."""
    print("| method | space | evaluations | pending | first | next | peak |\n|---|---|---|---|---|---|---|")
    for case in CASES:
        if not all(text in " ".join(map(str, case)) for text in sys.argv[1:]):
            continue
        command = [sys.executable, __file__, "--one", *map(str, case)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(done.stdout.strip() or f"| {' | '.join(map(str, case))} | failed: {done.stderr[-200:]} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(measure(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])))
    else:
        main()
