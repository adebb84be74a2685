"""Two objectives with known fronts: nestbo against Optuna's NSGA-II and Gaussian processes, and stock BoTorch.

python benchmarks/objectives.py run --jobs 2     # resumable: finished runs are skipped; --time-limit in seconds
python benchmarks/objectives.py table            # writes the table of docs/objectives.md

Every method evaluates sixty points, ten of them random in the beginning where it lets one say so. nestbo works on the
space. The others work on a chart, which is what people write who have no manifolds: a box around the unit vectors or
around the entries of the matrices, from which the objective takes the nearest point of the space.
"""

import argparse
import json
import math
import os
import statistics
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from paired import counted, verdict
from torch import Tensor

import nestbo as nb
from nestbo.fronts import hypervolume

RESULTS = Path(__file__).parent / "results" / "objectives.jsonl"
PAGE = Path(__file__).parent.parent / "docs" / "objectives.md"
MARK = "<!-- table -->"
SEEDS, BUDGET, INITIAL = 10, 60, 10
CHECKPOINTS = (20, 40, 60)
NAMES = ("first", "second")


@dataclass(frozen=True)
class Problem:
    """Two objectives to minimise on a space, and outcomes (n, 2) close together on their front."""

    space: nb.Manifold
    objectives: Callable[[Tensor], Tensor]
    front: Tensor

    @property
    def reference(self) -> Tensor:
        """A tenth of the front's extent worse than its worst values."""
        low, high = self.front.amin(0), self.front.amax(0)
        return high + 0.1 * (high - low)

    def share(self, outcomes: Tensor) -> float:
        """The hypervolume of outcomes (n, 2), relative to that of the front."""
        return hypervolume(outcomes, self.reference) / self.whole

    @cached_property
    def whole(self) -> float:
        """The hypervolume of the front, by stairs."""
        first, second = self.front[self.front[:, 0].argsort()].unbind(-1)
        right = torch.cat([first[1:], self.reference[:1]])
        return float(((right - first) * (self.reference[1] - second)).sum())


def two_targets(space: nb.Manifold, seed: int) -> Problem:
    """Squared distances to two random points. The front is on the geodesic between them: d₁ + d₂ ≥ d."""
    first, second = space.random(2, rng=torch.Generator().manual_seed(seed))
    way = torch.linspace(0, 1, 2001, dtype=torch.float64)
    ends = space.dist(first, second) ** 2
    both = lambda x: torch.stack([space.dist(x, first) ** 2, space.dist(x, second) ** 2], -1)
    return Problem(space, both, ends * torch.stack([way**2, (1 - way) ** 2], -1))


def two_forms(seed: int) -> Problem:
    """Two quadratic forms on S^5, whose joint range is convex (Brickman 1961), so that the front minimises sums."""
    drawn = torch.randn(2, 6, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    forms = (drawn + drawn.mT) / 2
    weight = torch.linspace(0, 1, 4001, dtype=torch.float64)[1:-1, None, None]
    least = torch.linalg.eigh(weight * forms[0] + (1 - weight) * forms[1]).eigenvectors[..., 0]
    both = lambda x: torch.einsum("...i,kij,...j->...k", x, forms, x)
    return Problem(nb.Sphere(5), both, both(least))


def dtlz2(seed: int) -> Problem:
    """DTLZ2 of Deb et al. (2002) with two objectives in six dimensions. The front is a quarter of the unit circle."""
    centre = 0.3 + 0.4 * torch.rand(5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)

    def both(x: Tensor) -> Tensor:
        angle, away = math.pi / 2 * x[..., 0], 1 + (x[..., 1:] - centre).square().sum(-1)
        return torch.stack([away * angle.cos(), away * angle.sin()], -1)

    angle = torch.linspace(0, math.pi / 2, 2001, dtype=torch.float64)
    return Problem(nb.Box([0.0] * 6, [1.0] * 6), both, torch.stack([angle.cos(), angle.sin()], -1))


PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "two directions, S^5": lambda seed: two_targets(nb.Sphere(5), seed),
    "two quadratic forms, S^5": two_forms,
    "two matrices, SPD(3)": lambda seed: two_targets(nb.SPD(3, eigenvalues=(0.1, 5.0)), seed),
    "two poses, Quaternion × Box(3)": lambda seed: two_targets(
        nb.Product(nb.Quaternion(), nb.Box([0.0] * 3, [1.0] * 3)), seed
    ),
    "DTLZ2, Box(6)": dtlz2,
}


class Chart:
    """A box, and the point of the space that the objective makes of a point u (…, size) of the box."""

    def __init__(self, space: nb.Manifold) -> None:
        self.space = space
        factors = space.factors if isinstance(space, nb.Product) else (space,)
        self.sizes = [len(self._bounds(factor)[0]) for factor in factors]
        self.box = torch.cat([self._bounds(factor) for factor in factors], 1)
        self.factors = factors

    @staticmethod
    def _bounds(factor: nb.Manifold) -> Tensor:
        if isinstance(factor, nb.Box):
            return torch.tensor([factor.lower, factor.upper], dtype=torch.float64)
        if not isinstance(factor, nb.SPD):
            return torch.tensor([[-1.0], [1.0]], dtype=torch.float64).expand(2, math.prod(factor.point_shape))
        low, high = factor.eigenvalues
        half, (rows, columns) = (high - low) / 2, torch.triu_indices(factor.n, factor.n)
        inside = rows == columns
        return torch.stack([torch.where(inside, low, -half), torch.where(inside, high, half)]).double()

    def point(self, u: Tensor) -> Tensor:
        """The nearest point of the space, (…, *point)."""
        parts = zip(self.factors, u.split(self.sizes, -1), strict=True)
        found = [self._placed(factor, part) for factor, part in parts]
        return self.space.join(found) if isinstance(self.space, nb.Product) else found[0]

    @staticmethod
    def _placed(factor: nb.Manifold, u: Tensor) -> Tensor:
        if not isinstance(factor, nb.SPD):
            return factor.project(u.reshape(*u.shape[:-1], *factor.point_shape))
        rows, columns = torch.triu_indices(factor.n, factor.n)
        matrix = torch.zeros(*u.shape[:-1], factor.n, factor.n, dtype=u.dtype)
        matrix[..., rows, columns] = u
        return factor.project(matrix + matrix.triu(1).mT)


def run_nestbo(strategy: nb.Strategy, problem: Problem, seed: int) -> Tensor:
    """Outcomes (budget, 2) of a study."""
    study = nb.Study(problem.space, strategy, objectives=NAMES, seed=seed)
    study.run(lambda x: problem.objectives(x).tolist(), BUDGET, progress=False)
    return study.history.outcomes


def run_optuna(sampler: str, problem: Problem, seed: int) -> Tensor:
    """Outcomes of a study of Optuna."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    chart = Chart(problem.space)
    options = {"population_size": INITIAL} if sampler == "NSGAIISampler" else {"n_startup_trials": INITIAL}
    study = optuna.create_study(
        directions=["minimize"] * 2, sampler=getattr(optuna.samplers, sampler)(seed=seed, **options)
    )

    def objective(trial: optuna.Trial) -> tuple[float, ...]:
        u = [trial.suggest_float(f"u{k}", *chart.box[:, k].tolist()) for k in range(chart.box.shape[1])]
        return tuple(problem.objectives(chart.point(torch.tensor(u, dtype=torch.float64))).tolist())

    study.optimize(objective, n_trials=BUDGET)
    return torch.tensor([trial.values for trial in study.trials], dtype=torch.float64)


def run_botorch(problem: Problem, seed: int) -> Tensor:
    """Outcomes of BoTorch as its tutorial has it: qLogNEHVI on a SingleTaskGP for each objective."""
    from botorch import fit_gpytorch_mll
    from botorch.acquisition.multi_objective import logei
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import Normalize, Standardize
    from botorch.optim import optimize_acqf
    from botorch.sampling import SobolQMCNormalSampler
    from botorch.utils.multi_objective.hypervolume import infer_reference_point
    from botorch.utils.multi_objective.pareto import is_non_dominated
    from gpytorch.mlls import SumMarginalLogLikelihood

    logei._load_attempted = True  # without it, all processes would wait for one compiler
    torch.manual_seed(seed)
    chart = Chart(problem.space)
    low, high = chart.box
    u = low + (high - low) * torch.rand(INITIAL, len(low), dtype=torch.float64)
    y = -problem.objectives(chart.point(u))
    for trial in range(INITIAL, BUDGET):
        parts = [
            SingleTaskGP(
                u,
                y[:, k : k + 1],
                input_transform=Normalize(len(low), bounds=chart.box),
                outcome_transform=Standardize(1),
            )
            for k in range(2)
        ]
        model = ModelListGP(*parts)
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        acquisition = qLogNoisyExpectedHypervolumeImprovement(
            model,
            infer_reference_point(y[is_non_dominated(y)]),
            u,
            sampler=SobolQMCNormalSampler(torch.Size([128]), seed=trial),
            prune_baseline=True,
        )
        new, _ = optimize_acqf(acquisition, chart.box, q=1, num_restarts=8, raw_samples=256)
        u, y = torch.cat([u, new]), torch.cat([y, -problem.objectives(chart.point(new))])
    return -y


METHODS: dict[str, Callable[[Problem, int], Tensor]] = {
    "nestbo": lambda problem, seed: run_nestbo(nb.GaBO(initial=INITIAL), problem, seed),
    "BoTorch on a chart": run_botorch,
    "Optuna GP on a chart": lambda problem, seed: run_optuna("GPSampler", problem, seed),
    "Optuna NSGA-II on a chart": lambda problem, seed: run_optuna("NSGAIISampler", problem, seed),
    "random points of the space": lambda problem, seed: run_nestbo(nb.RandomSearch(), problem, seed),
}


def job(problem: str, method: str, seed: int) -> dict[str, object]:
    """One run: the share of the hypervolume after every evaluation, and the seconds it took."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    made, started = PROBLEMS[problem](seed), time.perf_counter()
    outcomes = METHODS[method](made, seed)
    seconds = time.perf_counter() - started
    shares = [round(made.share(outcomes[: k + 1]), 5) for k in range(len(outcomes))]
    return {"problem": problem, "method": method, "seed": seed, "seconds": round(seconds, 2), "shares": shares}


def records() -> list[dict]:
    """What has been run."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def run(count: int, limit: float, only: str) -> None:
    """Run what is missing, seed by seed, in processes of their own."""
    deadline, done = time.time() + limit, {(r["problem"], r["method"], r["seed"]) for r in records()}
    wanted = [(p, m, s) for s in range(SEEDS) for m in METHODS for p in PROBLEMS]
    todo = [each for each in wanted if each not in done and only in f"{each[0]} {each[1]} {each[2]}"]
    print(f"{len(todo)} runs", flush=True)
    pool = ProcessPoolExecutor(count)
    futures = [pool.submit(job, *each) for each in todo]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    try:
        for future in as_completed(futures, timeout=max(1.0, deadline - time.time())):
            record = future.result()
            with RESULTS.open("a") as file:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            print(
                record["problem"],
                "|",
                record["method"],
                record["seed"],
                record["shares"][-1],
                record["seconds"],
                flush=True,
            )
    except TimeoutError:
        print("time is up; run again to go on", flush=True)
    for process in list(pool._processes.values()):
        process.kill()
    os._exit(0)


def table() -> None:
    """Everything after the mark on the page is written anew."""
    found: dict[tuple[str, str], list[dict]] = {}
    for record in records():
        found.setdefault((record["problem"], record["method"]), []).append(record)
    lines = []
    for problem in PROBLEMS:
        heads = " | ".join(f"after {k}" for k in CHECKPOINTS)
        lines += [f"### {problem}", "", f"| method | seeds | {heads} | quartiles at the end |"]
        lines += ["|---|--:|" + "--:|" * (len(CHECKPOINTS) + 1)]
        rows = [_row(method, found[problem, method]) for method in METHODS if (problem, method) in found]
        lines += [text for _, text in sorted(rows, reverse=True)] + [""]
    lines += ["### nestbo against the others, by signed-rank tests", "", *_counts(found)]
    page = PAGE.read_text().split(MARK)[0] + MARK + "\n\n" + "\n".join(lines)
    PAGE.write_text(page.rstrip() + "\n")
    print("\n".join(lines))


def _counts(found: dict[tuple[str, str], list[dict]]) -> list[str]:
    """Where nestbo has more hypervolume at the end than another method, by problem."""
    ends = {key: {run["seed"]: run["shares"][-1] for run in runs} for key, runs in found.items()}
    said = []
    for method in [method for method in METHODS if method != "nestbo"]:
        each = {p: verdict(ends.get((p, "nestbo"), {}), ends.get((p, method), {}), smaller=False) for p in PROBLEMS}
        said.append(f"- against {method}: {counted(each)}")
    return said


def _row(method: str, runs: list[dict]) -> tuple[float, str]:
    medians = [statistics.median(run["shares"][k - 1] for run in runs) for k in CHECKPOINTS]
    ends = torch.tensor([run["shares"][-1] for run in runs], dtype=torch.float64)
    low, high = torch.quantile(ends, torch.tensor([0.25, 0.75], dtype=torch.float64)).tolist()
    spread = f"{low:.3f}, {high:.3f}" if len(runs) > 3 else "–"
    cells = [method, str(len(runs)), *(f"{m:.3f}" for m in medians), spread]
    return medians[-1], "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["run", "table"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--time-limit", type=float, default=1e9)
    parser.add_argument("--only", default="", help="run only what contains this in problem, method or seed")
    options = parser.parse_args()
    table() if options.action == "table" else run(options.jobs, options.time_limit, options.only)
