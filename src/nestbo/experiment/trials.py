"""Many trials of one method on one problem, advanced together, in an array file that a later call continues.

A trial's projection, initial points and random numbers depend on its seed alone, so that all methods of a trial start
from the same points; only the oracle draws its own, in the latent space.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.experiment import arrays
from nestbo.manifolds import Manifold, space
from nestbo.manifolds.base import check_size
from nestbo.memory import Memory
from nestbo.problems import Posed, Problem, pose
from nestbo.strategies import HDGaBO, Runs, Strategy, strategy

INITIAL = 5
_SAVE_EVERY = 60.0  # seconds
ORACLE = "oracle"


@dataclass(frozen=True)
class Trials:
    """Trials of a method on a problem, one for each seed; the method is a strategy's text, or "oracle".

    The oracle knows the hidden mapping: it is HD-GaBO on the latent space, with nothing left to nest.
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

    def problems(self) -> list[Problem | Posed]:
        """One for each trial, with the projection drawn from its seed."""
        return [pose(self.problem, space(self.space), latent_dim=self.latent_dim, seed=seed) for seed in self.seeds]


@dataclass(frozen=True)
class Progress:
    """Where trials stand: points (trials, n, *point), values (trials, n), memories of each trial.

    ``seconds`` (n,) are those that the suggestions of all trials took together, 0 for the random points.
    """

    x: Tensor
    y: Tensor
    memories: list[list[Memory]]
    seconds: tuple[float, ...]


def run(
    trials: Trials,
    budget: int,
    path: Path,
    *,
    device: str = "cpu",
    limit: float = float("inf"),
    report: Callable[[str], Any] = lambda line: print(line, flush=True),  # noqa: T201
    stepped: Callable[[], Any] = lambda: None,
    **more: Any,
) -> Progress:
    """Go on until every trial has ``budget`` evaluations or ``limit`` seconds have passed; written as it goes.

    A step that would end after the limit, if it took as long as the one before, is not begun. ``stepped`` is called
    after each; ``more`` is written to the file with what is known about the trials.
    """
    where, objective = _setting(trials, device)
    method = _method(trials)
    state = _load(path, trials, device) if path.exists() else _begin(trials, where, objective, device)
    about = _about(trials, device, path) | more
    began = saved = time.monotonic()
    first, step = state.y.shape[1], 0.0
    while state.y.shape[1] < budget and time.monotonic() - began + step < limit:
        state = _advance(trials, method, where, objective, state)
        step = state.seconds[-1]
        stepped()
        if time.monotonic() - saved > _SAVE_EVERY:
            _save(path, about, state)
            saved = time.monotonic()
            report(f"{path.stem}: {_standing(state, budget, (saved - began) / (state.y.shape[1] - first))}")
    _save(path, about, state)
    return state


def _standing(state: Progress, budget: int, pace: float) -> str:
    """In words, given the seconds that a step has taken."""
    done, best = state.y.shape[1], state.y.amin(1).median().item()
    return f"{done}/{budget}, median best {best:.4g}, {pace:.2g} s a step, {minutes(pace * (budget - done))} left"


def minutes(seconds: float) -> str:
    """A duration to read."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _setting(trials: Trials, device: str) -> tuple[Manifold, Callable[[Tensor], Tensor]]:
    """The space that the method sees, and the objective at points (trials, *point) of it."""
    problems = [p.to(device) for p in trials.problems()]

    def objective(x: Tensor) -> Tensor:
        return torch.stack([p.objective(point) for p, point in zip(problems, x, strict=True)])

    if trials.method != ORACLE:
        return problems[0].space, objective

    def lifted(z: Tensor) -> Tensor:
        return objective(torch.stack([p.mapping.lift(point) for p, point in zip(problems, z, strict=True)]))

    return problems[0].mapping.latent, lifted


def _method(trials: Trials) -> Strategy:
    return HDGaBO(trials.latent_dim) if trials.method == ORACLE else strategy(trials.method)


def _begin(trials: Trials, where: Manifold, objective: Callable[[Tensor], Tensor], device: str) -> Progress:
    x = torch.stack([where.random(INITIAL, rng=_rng(seed, 0, "cpu")) for seed in trials.seeds]).to(device)
    y = torch.stack([objective(point) for point in x.unbind(1)], 1)
    return Progress(x, y, [[Memory() for _ in range(INITIAL)] for _ in trials.seeds], (0.0,) * INITIAL)


def _advance(
    trials: Trials, method: Strategy, where: Manifold, objective: Callable[[Tensor], Tensor], state: Progress
) -> Progress:
    """One more evaluation of every trial."""
    before = time.monotonic()
    rngs = [_rng(seed, state.y.shape[1], state.x.device) for seed in trials.seeds]
    x, memories = method.propose(where, Runs(state.x, state.y, state.x[:, :0], rngs, state.memories))
    y = torch.cat([state.y, objective(x).unsqueeze(1)], 1)
    grown = [[*_lightened(past, new), new] for past, new in zip(state.memories, memories, strict=True)]
    seconds = (*state.seconds, time.monotonic() - before)
    return Progress(torch.cat([state.x, x.unsqueeze(1)], 1), y, grown, seconds)


def _lightened(past: list[Memory], new: Memory) -> list[Memory]:
    """Memories without the nested models that a new one replaces: only the last is of use, and bases are large."""
    replaced = [name for name, fit in new.fits.items() if fit.basis]
    return [memory.without(replaced) for memory in past]


def _rng(seed: int, index: int, device: Any) -> torch.Generator:
    state = np.random.SeedSequence([seed, index]).generate_state(1, np.uint64)[0]
    return torch.Generator(device=device).manual_seed(int(state))


def source() -> str:
    """Which nestbo this is: the beginning of a digest of its source."""
    folder = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _about(trials: Trials, device: str, path: Path) -> dict[str, Any]:
    """What the file says of its trials; what differs from earlier sittings is told of all."""
    about: dict[str, Any] = {
        "problem": trials.problem,
        "space": trials.space,
        "latent_dim": trials.latent_dim,
        "method": trials.method,
        "seeds": trials.seeds,
        "optimum": trials.problems()[0].optimal_value,
        "nestbo": source(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else "cpu",
    }
    if path.exists():
        with arrays.opened(path) as file:
            former = arrays.about(file)
            for key in ("nestbo", "torch", "python", "device"):
                about[key] = ", ".join(dict.fromkeys([*former[key].split(", "), about[key]]))
    return about


def _save(path: Path, about: dict[str, Any], state: Progress) -> None:
    kept = {
        "x": state.x.cpu().numpy(),
        "y": state.y.cpu().numpy(),
        "seconds": np.array(state.seconds),
        "memories": np.frombuffer(_written(state.memories), np.uint8),
    }
    arrays.write(path, about, kept)


def _load(path: Path, trials: Trials, device: str) -> Progress:
    with arrays.opened(path) as file:
        about = arrays.about(file)
        for name, wanted in asdict(trials).items():
            if about[name] != (list(wanted) if name == "seeds" else wanted):
                raise ArgumentError(f"{path} holds trials with {name} {about[name]!r}, got {wanted!r}.")
        if not {"x", "seconds"} <= set(file.files):
            raise ArgumentError(f"{path} has no points to go on from: it was packed. Choose another folder.")
        x, y = (torch.from_numpy(file[name]).to(device) for name in ("x", "y"))
        return Progress(x, y, read_memories(file), tuple(file["seconds"].tolist()))


def _written(memories: list[list[Memory]]) -> bytes:
    return json.dumps([[memory.json for memory in trial] for trial in memories]).encode()


def read_memories(file: Any) -> list[list[Memory]]:
    """Those in a file of trials; nestbo 0.1 called them notes."""
    name = "memories" if "memories" in file.files else "notes"
    return [[Memory.of(found) for found in trial] for trial in json.loads(file[name].tobytes())]


def evaluated(path: Path) -> int:
    """How many evaluations of each trial a file holds; 0 where there is none."""
    if not path.exists():
        return 0
    with arrays.opened(path) as file:
        return len(file["seconds"])
