"""Many trials of one method on one problem, advanced together, in an array file that a later call continues.

    python -m nestbo.experiment ackley sphere:50 hdgabo:latent_dim=5 --latent-dim 5 --trials 10 --budget 255 --out DIR

It needs neither typer nor rich, and runs on a GPU with ``--device cuda``. A trial's projection, initial points and
random numbers depend on its seed alone, so that all methods of a trial start from the same points; only the oracle
draws its own, in the latent space.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.manifolds import Manifold, space
from nestbo.manifolds.base import check_size
from nestbo.nested import Identity
from nestbo.problems import Problem, problem
from nestbo.strategies import GaBO, Runs, Strategy, strategy

INITIAL = 5
_SAVE_EVERY = 60.0  # seconds
ORACLE = "oracle"


@dataclass(frozen=True)
class Trials:
    """Trials of a method on a problem, one for each seed; the method is a strategy's text, or "oracle".

    The oracle knows the hidden mapping: it is GaBO on the latent space.
    """

    problem: str
    space: str
    method: str
    seeds: tuple[int, ...]
    latent_dim: int | None = None

    def __post_init__(self) -> None:
        check_size("The number of trials", len(self.seeds))

    @property
    def name(self) -> str:
        """A file name."""
        parts = (self.problem, self.space, f"in{self.latent_dim}", self.method, f"{self.seeds[0]}-{self.seeds[-1]}")
        return "__".join(parts).replace(":", "_").replace(",", "_").replace("=", "") + ".npz"

    def problems(self) -> list[Problem]:
        """One for each trial, with the projection drawn from its seed."""
        return [problem(self.problem, space(self.space), latent_dim=self.latent_dim, seed=seed) for seed in self.seeds]


@dataclass(frozen=True)
class Progress:
    """Where trials stand: points (trials, n, *point), values (trials, n), notes per trial, seconds spent."""

    x: Tensor
    y: Tensor
    notes: list[list[dict[str, Any]]]
    seconds: float = 0.0


def run(
    trials: Trials,
    budget: int,
    path: Path,
    *,
    device: str = "cpu",
    limit: float = float("inf"),
    report: Callable[[str], Any] = lambda line: sys.stdout.write(line + "\n"),
) -> Progress:
    """Go on until every trial has ``budget`` evaluations or ``limit`` seconds have passed; written as it goes."""
    where, objective = _setting(trials, device)
    method = _method(trials)
    state = _load(path, trials, device) if path.exists() else _begin(trials, where, objective, device)
    started = saved = time.monotonic()
    while state.y.shape[1] < budget and time.monotonic() - started < limit:
        before = time.monotonic()
        state = _advance(trials, method, where, objective, state)
        state = replace(state, seconds=state.seconds + time.monotonic() - before)
        if time.monotonic() - saved > _SAVE_EVERY:
            _save(path, trials, state, device)
            saved = time.monotonic()
            report(f"{path.stem}: {state.y.shape[1]}/{budget}, median best {state.y.amin(1).median():.4g}")
    _save(path, trials, state, device)
    return state


def _setting(trials: Trials, device: str) -> tuple[Manifold, Callable[[Tensor], Tensor]]:
    """The space that the method sees, and the objective at points (trials, *point) of it."""
    problems = [_moved(p, device) for p in trials.problems()]

    def objective(x: Tensor) -> Tensor:
        return torch.stack([p.objective(point) for p, point in zip(problems, x, strict=True)])

    if trials.method != ORACLE:
        return problems[0].space, objective

    def lifted(z: Tensor) -> Tensor:
        return objective(torch.stack([p.mapping.lift(point) for p, point in zip(problems, z, strict=True)]))

    return problems[0].mapping.latent, lifted


def _moved(hidden: Problem, device: str) -> Problem:
    """The same problem with its mapping on the device."""
    if isinstance(hidden.mapping, Identity):
        return hidden
    return replace(hidden, mapping=hidden.mapping.at(hidden.mapping.basis.to(device), hidden.space))


def _method(trials: Trials) -> Strategy:
    return GaBO(outputs="auto") if trials.method == ORACLE else strategy(trials.method)


def _begin(trials: Trials, where: Manifold, objective: Callable[[Tensor], Tensor], device: str) -> Progress:
    x = torch.stack([where.random(INITIAL, rng=_rng(seed, 0, "cpu")) for seed in trials.seeds]).to(device)
    y = torch.stack([objective(point) for point in x.unbind(1)], 1)
    return Progress(x, y, [[{} for _ in range(INITIAL)] for _ in trials.seeds])


def _advance(
    trials: Trials, method: Strategy, where: Manifold, objective: Callable[[Tensor], Tensor], state: Progress
) -> Progress:
    """One more evaluation of every trial."""
    rngs = [_rng(seed, state.y.shape[1], state.x.device) for seed in trials.seeds]
    x, notes = method.propose(where, Runs(state.x, state.y, state.x[:, :0], rngs, state.notes))
    grown = [[*past, note] for past, note in zip(state.notes, notes, strict=True)]
    y = torch.cat([state.y, objective(x).unsqueeze(1)], 1)
    return replace(state, x=torch.cat([state.x, x.unsqueeze(1)], 1), y=y, notes=grown)


def _rng(seed: int, index: int, device: Any) -> torch.Generator:
    state = np.random.SeedSequence([seed, index]).generate_state(1, np.uint64)[0]
    return torch.Generator(device=device).manual_seed(int(state))


def _save(path: Path, trials: Trials, state: Progress, device: str) -> None:
    """One file, replaced at once, so that a kill leaves the old or the new one."""
    about = {
        "problem": trials.problem,
        "space": trials.space,
        "latent_dim": trials.latent_dim,
        "method": trials.method,
        "seeds": trials.seeds,
        "seconds": round(state.seconds, 2),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else "cpu",
    }
    part = path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    with part.open("wb") as file:
        np.savez_compressed(
            file,
            about=json.dumps(about),
            x=state.x.cpu().numpy(),
            y=state.y.cpu().numpy(),
            notes=json.dumps(state.notes),
        )
    os.replace(part, path)


def _load(path: Path, trials: Trials, device: str) -> Progress:
    with np.load(path, allow_pickle=False) as file:
        about = json.loads(str(file["about"]))
        for name, wanted in asdict(trials).items():
            if about[name] != (list(wanted) if name == "seeds" else wanted):
                raise ArgumentError(f"{path} holds trials with {name} {about[name]!r}, got {wanted!r}.")
        x, y = (torch.from_numpy(file[name]).to(device) for name in ("x", "y"))
        return Progress(x, y, json.loads(str(file["notes"])), json.loads(str(file["about"]))["seconds"])


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m nestbo.experiment", description=__doc__.split("\n")[0])
    parser.add_argument("problem")
    parser.add_argument("space")
    parser.add_argument("method", help='a strategy such as "gabo", or "oracle"')
    parser.add_argument("--latent-dim", type=int)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--budget", type=int, default=305, help="evaluations of each trial, the initial 5 included")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds")
    given = parser.parse_args(arguments)
    torch.set_num_threads(given.threads)
    seeds = tuple(range(given.first, given.first + given.trials))
    try:
        trials = Trials(given.problem, given.space, given.method, seeds, given.latent_dim)
        state = run(trials, given.budget, given.out / trials.name, device=given.device, limit=given.limit)
    except ArgumentError as error:
        parser.error(str(error))
    best = state.y.amin(1)
    low, middle, high = best.quantile(torch.tensor([0.25, 0.5, 0.75], dtype=best.dtype, device=best.device)).tolist()
    summary = f"after {state.y.shape[1]} evaluations, median {middle:.4g} ({low:.4g}, {high:.4g})"
    sys.stdout.write(f"{trials.method}: {summary}\n")


if __name__ == "__main__":
    main()
