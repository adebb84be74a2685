"""Mixed problems: nestbo against Optuna's TPE and GP samplers, BoTorch's mixed optimiser and random search.

    python benchmarks/mixed.py run --results benchmarks/results/mixed --seeds 10 --workers 16
    python benchmarks/mixed.py table --results benchmarks/results/mixed    # writes the table of docs/parameters.md

Every run is one line of a file of its problem and method, so that a later call goes on where an earlier one ended. The
other methods see manifolds by a hand-made encoding: weights as exponential numbers that are normalised, directions and
orientations as normal numbers that are normalised, matrices by the entries of their logarithm, all in [0, 1].
"""

import argparse
import json
import math
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from mixed_problems import PROBLEMS, Problem
from paired import counted, verdict

import nestbo as nb

BUDGET = 60
SEEDS = 10
INITIAL = 10  # random evaluations of BoTorch's method; the samplers of Optuna have as many
_COMBINATIONS = 32  # of separate values, in each of which BoTorch climbs; of more, random ones
_ENOUGH = 5  # runs that have quartiles
_SIGNS = {"win": " ▲", "loss": " ▼", "tie": "", "few": ""}  # of nestbo, beside the other method
PAGE = Path(__file__).parent.parent / "docs" / "parameters.md"
BEGIN, END = "<!-- table of benchmarks/mixed.py -->", "<!-- end of the table -->"
Array = np.ndarray[Any, Any]
Encode = Callable[[nb.Space, Array], Any]


def size(space: nb.Space) -> int:
    """How many numbers in [0, 1] encode a manifold."""
    if isinstance(space, nb.SPD):
        return space.n * (space.n + 1) // 2
    return int(np.prod(space.point_shape))


def decoded(space: nb.Space, u: Array) -> Any:
    """The value of a parameter on a manifold from numbers in [0, 1]."""
    u = np.clip(u, 1e-9, 1 - 1e-9)
    if isinstance(space, nb.Simplex):
        return -np.log(u) / -np.log(u).sum()
    if isinstance(space, nb.SPD):
        low, high = np.log(space.eigenvalues or (1e-3, 1e3))
        log = np.zeros((space.n, space.n))
        log[np.tril_indices(space.n)] = low + (high - low) * u
        beside = log - np.diag(np.diag(log)) - (low + high) / 2 * (np.tril(np.ones_like(log), -1))
        matrix = np.diag(np.diag(log)) + (beside + beside.T) / 2
        values, vectors = np.linalg.eigh(matrix)
        return (vectors * np.exp(np.clip(values, low, high))) @ vectors.T
    normal = np.array([NormalDist().inv_cdf(t) for t in u])
    return normal / np.linalg.norm(normal)


def nestbo(problem: Problem, seed: int) -> list[float]:
    """nestbo with its default method."""
    study = nb.Study(problem.space, seed=seed)
    study.run(problem.cost, BUDGET, progress=False, on_error="raise")
    return [trial.value for trial in study.history]


def random(problem: Problem, seed: int) -> list[float]:
    """Random points."""
    study = nb.Study(problem.space, nb.RandomSearch(), seed=seed)
    study.run(problem.cost, BUDGET, progress=False, on_error="raise")
    return [trial.value for trial in study.history]


def _optuna(problem: Problem, sampler: Any) -> list[float]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")

    def objective(trial: Any) -> float:
        factors = zip(problem.space.names, problem.space.factors, strict=True)
        return problem.cost(**{name: _suggested(trial, name, factor) for name, factor in factors})

    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=BUDGET)
    return [trial.value for trial in study.trials]


def _suggested(trial: Any, name: str, factor: nb.Space) -> Any:
    if isinstance(factor, nb.Integer):
        return trial.suggest_int(name, factor.low, factor.high)
    if isinstance(factor, nb.Choice):
        return trial.suggest_categorical(name, factor.options)
    if isinstance(factor, nb.Levels):
        return factor.options[trial.suggest_int(name, 0, factor.count - 1)]
    if isinstance(factor, nb.Box):
        return trial.suggest_float(name, factor.lower[0], factor.upper[0], log=factor.scale == "log")
    return decoded(factor, np.array([trial.suggest_float(f"{name}_{k}", 0, 1) for k in range(size(factor))]))


def tpe(problem: Problem, seed: int) -> list[float]:
    """Optuna's TPE sampler, as it comes."""
    import optuna

    return _optuna(problem, optuna.samplers.TPESampler(seed=seed))


def optuna_gp(problem: Problem, seed: int) -> list[float]:
    """Optuna's GP sampler, as it comes."""
    import optuna

    return _optuna(problem, optuna.samplers.GPSampler(seed=seed))


class Encoding:
    """A space as a cube: separate values that have an order on a line, choices one-hot, manifolds by ``decoded``."""

    def __init__(self, space: Any) -> None:
        self.space, self.columns, start = space, [], 0
        for factor in space.factors:
            width = factor.count if isinstance(factor, nb.Choice) else size(factor)
            self.columns.append(range(start, start + width))
            start += width
        self.width = start

    @property
    def separate(self) -> list[tuple[range, nb.Space]]:
        pairs = zip(self.columns, self.space.factors, strict=True)
        return [(at, factor) for at, factor in pairs if isinstance(factor, nb.Integer | nb.Choice | nb.Levels)]

    def combinations(self, rng: np.random.Generator) -> list[dict[int, float]]:
        """Some or all combinations of separate values, as fixed features."""
        counts = [factor.count for _, factor in self.separate]
        total = math.prod(counts)
        which = range(total) if total <= _COMBINATIONS else rng.choice(total, _COMBINATIONS, replace=False)
        return [self._features(np.unravel_index(int(k), counts)) for k in which] if counts else [{}]

    def _features(self, places: Any) -> dict[int, float]:
        found: dict[int, float] = {}
        for (at, factor), place in zip(self.separate, places, strict=True):
            if isinstance(factor, nb.Choice):
                found |= {column: float(k == place) for k, column in enumerate(at)}
            else:
                found[at[0]] = float(place) / (factor.count - 1)
        return found

    def random(self, rng: np.random.Generator) -> Array:
        u = rng.random(self.width)
        counts = [factor.count for _, factor in self.separate]
        for column, value in self._features([int(rng.integers(count)) for count in counts]).items():
            u[column] = value
        return u

    def parameters(self, u: Array) -> dict[str, Any]:
        triples = zip(self.space.names, self.space.factors, self.columns, strict=True)
        return {name: _read(factor, u[list(at)]) for name, factor, at in triples}


def _read(factor: Any, u: Array) -> Any:
    if isinstance(factor, nb.Choice):
        return factor.options[int(np.argmax(u))]
    if isinstance(factor, nb.Levels):
        return factor.options[round(float(u[0]) * (factor.count - 1))]
    if isinstance(factor, nb.Integer):
        return factor.low + round(float(u[0]) * (factor.high - factor.low))
    if isinstance(factor, nb.Box):
        return factor.at(torch.tensor(u)).item()
    return decoded(factor, u)


def botorch_mixed(problem: Problem, seed: int) -> list[float]:
    """BoTorch's SingleTaskGP and LogEI with ``optimize_acqf_mixed`` on the hand-made encoding."""
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf_mixed
    from gpytorch.mlls import ExactMarginalLogLikelihood

    warnings.simplefilter("ignore")
    torch.manual_seed(seed)
    encoding, rng = Encoding(problem.space), np.random.default_rng(seed)
    u = [encoding.random(rng) for _ in range(INITIAL)]
    y = [problem.cost(**encoding.parameters(each)) for each in u]
    bounds = torch.stack([torch.zeros(encoding.width), torch.ones(encoding.width)]).double()
    while len(y) < BUDGET:
        values = torch.tensor(y, dtype=torch.float64).unsqueeze(-1)
        model = SingleTaskGP(torch.tensor(np.stack(u)), -values)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        gain = LogExpectedImprovement(model, best_f=-values.min())
        options = {"num_restarts": 2, "raw_samples": 32, "fixed_features_list": encoding.combinations(rng)}
        found, _ = optimize_acqf_mixed(gain, bounds, q=1, **options)
        u.append(found.squeeze(0).numpy())
        y.append(problem.cost(**encoding.parameters(u[-1])))
    return y


METHODS = {"nestbo": nestbo, "botorch": botorch_mixed, "optuna-gp": optuna_gp, "tpe": tpe, "random": random}


def work(task: tuple[str, str, int, str]) -> str:
    """One run, written as a line of the file of its problem and method."""
    problem, method, seed, folder = task
    torch.set_num_threads(1)
    began = time.monotonic()
    values = METHODS[method](PROBLEMS[problem], seed)
    line = {"seed": seed, "seconds": round(time.monotonic() - began, 1), "values": values}
    with open(Path(folder) / f"{problem}-{method}.jsonl", "a") as file:
        file.write(json.dumps(line) + "\n")
    return f"{problem} {method} {seed}: {min(values):.6g} in {line['seconds']:.0f} s"


def lines(folder: str, problem: str, method: str) -> list[dict[str, Any]]:
    """The runs that a folder has, in the order of their seeds."""
    path = Path(folder) / f"{problem}-{method}.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return sorted(found, key=lambda run: run["seed"])


def run(folder: str, seeds: int, workers: int, only: list[str], methods: list[str]) -> None:
    """All runs that a folder has not, in several processes."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    wanted = [(p, m, s, folder) for s in range(seeds) for p in only for m in methods]
    have = {(p, m): {run["seed"] for run in lines(folder, p, m)} for p in only for m in methods}
    tasks = [task for task in wanted if task[2] not in have[task[:2]]]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for said in pool.imap_unordered(work, tasks):
            print(said, flush=True)


def _ends(folder: str, problem: str) -> dict[str, dict[int, float]]:
    """The best value of every run of a problem, by method and seed."""
    found = {m: {run["seed"]: min(run["values"]) for run in lines(folder, problem, m)} for m in METHODS}
    return {method: runs for method, runs in found.items() if runs}


def _cell(found: dict[int, float] | None, least: float, said: str) -> str:
    if found is None:
        return "not run"
    values = np.array(list(found.values())) - least
    count = "" if len(found) == SEEDS else f", n = {len(found)}"
    if len(found) < _ENOUGH:
        return f"{np.median(values):.3g} (n = {len(found)})"
    text = "{:.3g} ({:.3g} to {:.3g}{})".format(*np.quantile(values, (0.5, 0.25, 0.75)), count)
    return text + _SIGNS[said]


def table(folder: str) -> None:
    """Write the table of the page: median and quartiles of the best value, less the best of all runs of a problem.

    Signs and counts say where nestbo wins or loses by a signed-rank test over the common seeds.
    """
    rows = [f"| problem | {' | '.join(METHODS)} |", f"|---|{'---|' * len(METHODS)}"]
    against: dict[str, dict[str, str]] = {method: {} for method in METHODS if method != "nestbo"}
    for problem in PROBLEMS:
        if not (ends := _ends(folder, problem)):
            continue
        least = min(value for runs in ends.values() for value in runs.values())
        said = {method: verdict(ends.get("nestbo", {}), ends.get(method, {}), smaller=True) for method in against}
        for method, found in said.items():
            against[method][problem] = found
        cells = [_cell(ends.get(method), least, said.get(method, "few")) for method in METHODS]
        rows.append(f"| {problem} | {' | '.join(cells)} |")
    counts = [f"- against {method}: {counted(found)}" for method, found in against.items()]
    text = "\n".join([*rows, "", "nestbo, by signed-rank tests:", "", *counts])
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}")
    print(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--results", default="benchmarks/results/mixed")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    options = parser.parse_args()
    if options.what == "table":
        table(options.results)
    else:
        run(options.results, options.seeds, options.workers, options.problems, options.methods)


if __name__ == "__main__":
    main()
