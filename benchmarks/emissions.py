"""Cheap or clean, the application with two objectives: nestbo against Optuna's samplers and random search.

python benchmarks/emissions.py run --out DIR --seeds 6   # resumable: finished runs are skipped
python benchmarks/emissions.py table DIR --machine "16-core CPU"

``table`` also takes the file of an earlier --keep, and writes the table of docs/gallery/emissions.md.
"""

import argparse
import json
import math
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from paired import verdict

import nestbo as nb
from nestbo.fronts import hypervolume, non_dominated
from nestbo.gallery import Application
from nestbo.gallery.catalogue import load

PAGE = Path(__file__).parent.parent / "docs" / "gallery" / "emissions.md"
REFERENCE = torch.tensor([100.0, 4.0], dtype=torch.float64)  # €/MWh, decades of g of NOx per MWh: nobody would buy it
POPULATION = 20  # of NSGA-II: four generations within the budget
ABOUT = {
    "nestbo": "nestbo",
    "tpe": "Optuna TPE, softmax of the proportions",
    "nsga": "Optuna NSGA-II, softmax of the proportions",
    "random": "random search",
}
SAID = {"win": "better", "tie": "level", "loss": "worse", "few": "too few seeds to say"}


Observe = Callable[[object], nb.Observation]


class Run(NamedTuple):
    """The allowed outcomes of one run that no other one of its outcomes dominates, and the seconds it took."""

    method: str
    seed: int
    budget: int
    seconds: float
    front: list[list[float]]

    @property
    def volume(self) -> float:
        """The hypervolume."""
        return hypervolume(torch.tensor(self.front, dtype=torch.float64).reshape(-1, 2), REFERENCE)


def made(method: str, seed: int) -> Run:
    """One run of a method."""
    application, outcomes, began = load("emissions"), [], time.perf_counter()

    def observe(x: object) -> nb.Observation:
        found = application.objective(np.asarray(x))
        outcomes.append([*found.value, float(found.constraints[0])])
        return found

    if method in ("nestbo", "random"):
        strategy = nb.RandomSearch() if method == "random" else None
        study = nb.Study(application.space, strategy, seed=seed, **application.settings())
        study.run(observe, application.budget, numpy=True, progress=False)
    else:
        _optuna(method, seed, application, observe)
    return best(method, seed, outcomes, time.perf_counter() - began)


def _optuna(method: str, seed: int, application: Application, observe: Observe) -> None:
    """A sampler of Optuna that knows the constraint, on the coordinates of the field."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    known = {"seed": seed, "constraints_func": lambda trial: trial.user_attrs["amiss"]}
    samplers = optuna.samplers
    sampler = (
        samplers.NSGAIISampler(population_size=POPULATION, **known)
        if method == "nsga"
        else samplers.TPESampler(multivariate=True, **known)
    )
    study, box = optuna.create_study(directions=["minimize"] * 2, sampler=sampler), application.coordinates[0]
    for _ in range(application.budget):
        trial = study.ask()
        unit = np.array([trial.suggest_float(f"u{k}", 0.0, 1.0) for k in range(box.size)])
        found = observe(box.point(unit))
        trial.set_user_attr("amiss", [-float(found.constraints[0])])
        study.tell(trial, list(map(float, found.value)))


def best(method: str, seed: int, outcomes: list[list[float]], seconds: float) -> Run:
    """A run, from all its outcomes with their constraint."""
    allowed = torch.tensor([row[:2] for row in outcomes if row[2] >= 0], dtype=torch.float64).reshape(-1, 2)
    return Run(method, seed, len(outcomes), seconds, allowed[non_dominated(allowed)].tolist())


def run(out: Path, seeds: int) -> None:
    """Run what is missing, seed by seed."""
    out.mkdir(parents=True, exist_ok=True)
    for seed in range(seeds):
        for method in ABOUT:
            path = out / f"emissions__{method}__{seed}.json"
            if not path.exists():
                found = made(method, seed)
                path.write_text(json.dumps(found._asdict()))
                print(method, seed, f"{found.volume:.2f}", f"{found.seconds:.0f} s", flush=True)


def read(place: Path) -> list[Run]:
    """The runs in a folder, or in a file with one on each line."""
    texts = [path.read_text() for path in sorted(place.glob("emissions__*.json"))] if place.is_dir() else None
    return [Run(**json.loads(text)) for text in texts or place.read_text().splitlines()]


def table(runs: list[Run], machine: str) -> list[str]:
    """Lines of Markdown: the share of the hypervolume of all fronts together, the largest median first."""
    everything = torch.tensor([row for run in runs for row in run.front], dtype=torch.float64)
    whole = hypervolume(everything, REFERENCE)
    shares = {name: {run.seed: run.volume / whole for run in runs if run.method == name} for name in ABOUT}
    found = sorted((name for name in ABOUT if shares[name]), key=lambda name: -_median(shares[name]))
    head = "| method | median | worst, best | cleanest below 40 €/MWh, g | nestbo is | s per run | runs |"
    lines = [head, "|---|--:|--:|--:|--:|--:|--:|"]
    for name in found:
        own, each = shares[name], [run for run in runs if run.method == name]
        word = "" if name == "nestbo" else SAID[verdict(shares["nestbo"], own, smaller=False)]
        grams = statistics.median(_cleanest(run) for run in each)
        clean = f"{grams:.3g}" if math.isfinite(grams) else "none"
        seconds = statistics.median(run.seconds for run in each)
        spread = f"{min(own.values()):.3f}, {max(own.values()):.3f}"
        row = (ABOUT[name], f"{_median(own):.3f}", spread, clean, word, f"{seconds:.3g}", str(len(each)))
        lines.append("| " + " | ".join(row) + " |")
    said = f"`python benchmarks/emissions.py run --out DIR`, {runs[0].budget} evaluations each, nestbo {nb.__version__}"
    return [*lines, "", f"{said}. Machine: {machine}."]


def _median(shares: dict[int, float]) -> float:
    return statistics.median(shares.values())


def _cleanest(run: Run) -> float:
    """The least g of NOx per MWh for at most 40 €/MWh; infinite where there is nothing that cheap."""
    return min((10**nox for price, nox in run.front if price <= 40), default=math.inf)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="action", required=True)
    running, writing = kinds.add_parser("run"), kinds.add_parser("table")
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--seeds", type=int, default=6)
    writing.add_argument("place", type=Path)
    writing.add_argument("--machine", required=True)
    writing.add_argument("--keep", type=Path, help="a file for all runs, one on each line")
    given = parser.parse_args()
    if given.action == "run":
        run(given.out, given.seeds)
        return
    runs = read(given.place)
    if given.keep:
        given.keep.write_text("".join(json.dumps(run._asdict()) + "\n" for run in runs))
    pattern = re.compile(r"(<!-- table emissions -->\n).*?(<!-- end -->)", re.DOTALL)
    lines = "\n".join(table(runs, given.machine))
    PAGE.write_text(pattern.sub(lambda found: found[1] + lines + "\n\n" + found[2], PAGE.read_text()))


if __name__ == "__main__":
    main()
