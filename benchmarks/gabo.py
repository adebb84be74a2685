"""Every kernel of GaBO on Ackley, against random search, GaBO as published, and plain BoTorch.

python benchmarks/gabo.py run --jobs 2          # resumable: finished jobs are skipped; --time-limit in seconds
python benchmarks/gabo.py table                 # writes docs/gabo.md from benchmarks/results/gabo

All methods of a seed start from the same five random points. Plain BoTorch is what its documentation suggests for a
unit-norm parameter: a box, with the normalisation inside the objective; for matrices, a box of their entries, with the
eigenvalues clipped inside the objective.
"""

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import torch

import nestbo as nb
from nestbo.memory import Memory
from nestbo.strategies import Runs

RESULTS = Path(__file__).parent / "results" / "gabo"
PAGE = Path(__file__).parent.parent / "docs" / "gabo.md"
SEEDS = 10
INITIAL = 5
BOUNDS = "eigenvalues=0.001,5.0"
SPACES = {"sphere:2": 60, "sphere:5": 100, "sphere:20": 100, f"spd:2:{BOUNDS}": 60, f"spd:5:{BOUNDS}": 100}
SPHERE_ONLY = ("heat", "spectral-matern", "geodesic-laplace")
KERNELS = ("gaussian", "matern12", "matern32", "matern52", *SPHERE_ONLY, "geodesic-gaussian")
SUCCESS = 0.1
MARK = "<!-- table -->"


def methods(space: str) -> dict[str, nb.Strategy | None]:
    """Strategies by name; None is plain BoTorch."""
    kernels = [k for k in KERNELS if space.startswith("sphere") or k not in SPHERE_ONLY]
    return {
        "random search": nb.RandomSearch(),
        **{f"GaBO, {k}": nb.GaBO(kernel=k) for k in kernels},
        "GaBO, matern52, bilog": nb.GaBO(kernel="matern52", outputs="bilog"),
        "GaBO.paper": nb.GaBO.paper(),
        "plain BoTorch": None,
    }


def generator(seed: int, trial: int) -> torch.Generator:
    return torch.Generator().manual_seed(1_000_003 * seed + trial)


def run_strategy(strategy: nb.Strategy, problem: nb.Problem, seeds: list[int], budget: int) -> torch.Tensor:
    """Values (seeds, budget) of independent runs, advanced together."""
    space = problem.space
    x = torch.stack([space.random(INITIAL, rng=generator(s, 0)) for s in seeds])
    y, memories = problem.objective(x), [[Memory() for _ in range(INITIAL)] for _ in seeds]
    pending = x[:, :0]
    for trial in range(INITIAL, budget):
        runs = Runs(x, y, pending, [generator(s, trial) for s in seeds], memories)
        point, found = strategy.propose(space, runs)
        memories = [[*past, memory] for past, memory in zip(memories, found, strict=True)]
        x = torch.cat([x, point.unsqueeze(1)], 1)
        y = torch.cat([y, problem.objective(point).unsqueeze(1)], 1)
    return y


def run_botorch(problem: nb.Problem, seed: int, budget: int) -> torch.Tensor:
    """Values (1, budget) of stock BoTorch on a box around the manifold."""
    from botorch import fit_gpytorch_mll
    from botorch.acquisition import LogExpectedImprovement
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Normalize, Standardize
    from botorch.optim import optimize_acqf
    from gpytorch import ExactMarginalLogLikelihood

    space = problem.space
    square = len(space.point_shape) == 2
    upper = torch.triu_indices(*space.point_shape) if square else None
    size = upper.shape[1] if square else space.point_shape[0]
    half = space.eigenvalues[1] if square else 1.0
    low = torch.full((size,), -half, dtype=torch.float64)
    if square:
        low[upper[0] == upper[1]] = 0.0
    box = torch.stack([low, torch.full((size,), half, dtype=torch.float64)])

    def to_space(u: torch.Tensor) -> torch.Tensor:
        if not square:
            return space.project(u)
        m = torch.zeros(*u.shape[:-1], *space.point_shape, dtype=u.dtype)
        m[..., upper[0], upper[1]] = u
        return space.project(m + m.triu(1).mT)

    torch.manual_seed(seed)
    points = space.random(INITIAL, rng=generator(seed, 0))
    u = points[..., upper[0], upper[1]] if square else points
    y = -problem.objective(to_space(u)).unsqueeze(-1)
    for _ in range(INITIAL, budget):
        gp = SingleTaskGP(u, y, input_transform=Normalize(size, bounds=box), outcome_transform=Standardize(1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(gp.likelihood, gp))
        new, _ = optimize_acqf(LogExpectedImprovement(gp, y.max()), box, q=1, num_restarts=8, raw_samples=256)
        u = torch.cat([u, new])
        y = torch.cat([y, -problem.objective(to_space(new)).unsqueeze(-1)])
    return -y.T


def job(space: str, method: str, seeds: list[int], path: str) -> str:
    torch.set_num_threads(1)
    problem, strategy = nb.problem("ackley", nb.space(space)), methods(space)[method]
    started, budget = time.perf_counter(), SPACES[space]
    if strategy is None:
        y = torch.cat([run_botorch(problem, seed, budget) for seed in seeds])
    else:
        y = run_strategy(strategy, problem, seeds, budget)
    seconds = (time.perf_counter() - started) / (len(seeds) * (budget - INITIAL))
    regret = y.cummin(1).values - problem.optimal_value
    record = {"space": space, "method": method, "seeds": seeds, "seconds": round(seconds, 4)}
    record |= {"torch": torch.__version__, "regret": [[float(f"{v:.4g}") for v in row] for row in regret.tolist()]}
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(record))
    return f"{space} | {method} | seeds {seeds[0]}-{seeds[-1]} | {seconds:.3f} s"


def jobs() -> list[tuple[str, str, list[int], str]]:
    """Long jobs first; plain BoTorch one seed at a time, others five seeds together."""
    listed = []
    for space in sorted(SPACES, key=lambda s: -SPACES[s]):
        for method, strategy in methods(space).items():
            width = 1 if strategy is None else 5
            blocks = [list(range(s, s + width)) for s in range(0, SEEDS, width)]
            for block in blocks:
                slug = f"{space}__{method}__{block[0]}".replace(":", "-").replace(" ", "-").replace(",", "")
                listed.append((space, method, block, str(RESULTS / f"{slug}.json")))
    return listed


def run(count: int, limit: float, only: str) -> None:
    deadline = time.time() + limit
    todo = [j for j in jobs() if not Path(j[3]).exists() and only in f"{j[0]} {j[1]}"]
    print(f"{len(todo)} jobs", flush=True)
    pool = ProcessPoolExecutor(count)
    futures = [pool.submit(job, *j) for j in todo]
    try:
        for done in as_completed(futures, timeout=max(1.0, deadline - time.time())):
            print(done.result(), flush=True)
    except TimeoutError:
        print("time is up; run again to go on", flush=True)
    for process in list(pool._processes.values()):
        process.kill()
    os._exit(0)


def collected() -> dict[tuple[str, str], list[dict]]:
    """The stored records by space and method."""
    groups: dict[tuple[str, str], list[dict]] = {}
    for path in sorted(RESULTS.glob("*.json")):
        record = json.loads(path.read_text())
        groups.setdefault((record["space"], record["method"]), []).append(record)
    return groups


def row(method: str, records: list[dict]) -> tuple[float, str]:
    """A line of the table, and the median by which lines are sorted."""
    final = torch.tensor([run[-1] for record in records for run in record["regret"]], dtype=torch.float64)
    low, mid, high = torch.quantile(final, torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)).tolist()
    share, seconds = (final < SUCCESS).double().mean().item(), sum(r["seconds"] for r in records) / len(records)
    torches = "/".join(sorted({record["torch"].split("+")[0] for record in records}))
    cells = (method, len(final), f"{mid:.3g}", f"{low:.3g}, {high:.3g}", f"{share:.0%}", f"{seconds:.2f}", torches)
    return mid, "| " + " | ".join(map(str, cells)) + " |"


def table() -> None:
    """Everything after the mark on the page is written anew."""
    groups = collected()
    lines = [PAGE.read_text().split(MARK)[0].rstrip(), "", MARK, ""]
    for space, budget in SPACES.items():
        lines += [f"### Ackley on `{space}`, {budget} evaluations", ""]
        lines += [f"| method | runs | median | quartiles | below {SUCCESS} | s per suggestion | torch |"]
        lines += ["|---|--:|--:|--:|--:|--:|--:|"]
        rows = [row(method, records) for (where, method), records in groups.items() if where == space]
        lines += [line for _, line in sorted(rows)] + [""]
    PAGE.write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["run", "table"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--time-limit", type=float, default=1e9)
    parser.add_argument("--only", default="", help="run only jobs whose space and method contain this")
    options = parser.parse_args()
    table() if options.action == "table" else run(options.jobs, options.time_limit, options.only)
