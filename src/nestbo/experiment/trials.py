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
from nestbo.experiment.rivals import method
from nestbo.manifolds import Space, space
from nestbo.manifolds.base import check_size
from nestbo.memory import Memory
from nestbo.problems import Posed, Problem, pose
from nestbo.strategies import GaBO, Runs, Strategy

INITIAL = 5
_SAVE_EVERY = 60.0  # seconds
ORACLE = "oracle"
_RANGE = 1000  # random points that say which values are usual
_NOISE = 1  # which of a seed's streams of random numbers the noise comes from


@dataclass(frozen=True)
class Trials:
    """Trials of a method on a problem, one for each seed; the method is a strategy's text, or "oracle".

    The oracle knows the hidden mapping: it is GaBO on the latent space. ``noise`` is the
    standard deviation of what is observed, in units of the range of values (see ``noises``).
    """

    problem: str
    space: str
    method: str
    seeds: tuple[int, ...]
    latent_dim: int | None = None
    noise: float = 0.0

    def __post_init__(self) -> None:
        check_size("The number of trials", len(self.seeds))

    @property
    def name(self) -> str:
        """A file name."""
        seeds = f"{self.seeds[0]}-{self.seeds[-1]}"
        parts = [self.problem, self.space, f"in{self.latent_dim}", self.method, seeds]
        parts += [f"noise{self.noise:g}"] if self.noise else []
        return "__".join(parts).replace(":", "_").replace(",", "_").replace("=", "") + ".npz"

    def problems(self) -> list[Problem | Posed]:
        """One for each trial, with the projection drawn from its seed."""
        return [pose(self.problem, space(self.space), latent_dim=self.latent_dim, seed=seed) for seed in self.seeds]


@dataclass(frozen=True)
class Progress:
    """Where trials stand: points (trials, n, *point), values (trials, n) as they were observed, memories of each trial.

    ``exact`` (trials, n) are the values without noise. ``seconds`` (n,) are those that the suggestions of all trials
    took together, 0 for the random points.
    """

    x: Tensor
    y: Tensor
    memories: list[list[Memory]]
    seconds: tuple[float, ...]
    exact: Tensor


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
    method, sizes = _method(trials), noises(trials)
    state = _load(path, trials, device) if path.exists() else _begin(trials, where, objective, device, sizes)
    about = _about(trials, device, path) | more
    began = saved = time.monotonic()
    first, step = state.y.shape[1], 0.0
    while state.y.shape[1] < budget and time.monotonic() - began + step < limit:
        state = _advance(trials, method, where, objective, state, sizes)
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
    left = minutes(pace * (budget - done))
    return f"{done}/{budget}, median best {best:.4g}, {pace:.2g} s a step, {left} left"


def minutes(seconds: float) -> str:
    """A duration to read."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _setting(trials: Trials, device: str) -> tuple[Space, Callable[[Tensor], Tensor]]:
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
    return GaBO() if trials.method == ORACLE else method(trials.method)


def noises(trials: Trials) -> tuple[float, ...]:
    """The standard deviation of each trial's noise: a share of the median of random values above the least value."""
    if not trials.noise:
        return (0.0,) * len(trials.seeds)
    rng = torch.Generator().manual_seed(0)
    ranges = [p.objective(p.space.random(_RANGE, rng=rng)).median().item() - p.optimal_value for p in trials.problems()]
    return tuple(trials.noise * width for width in ranges)


def _observed(trials: Trials, index: int, exact: Tensor, sizes: tuple[float, ...]) -> Tensor:
    """Values (trials,) of evaluation ``index`` with their noise, which depends on the seed and the index alone."""
    if not any(sizes):
        return exact
    drawn = [torch.randn((), generator=_rng(seed, index, "cpu", _NOISE), dtype=torch.float64) for seed in trials.seeds]
    return exact + (torch.stack(drawn) * torch.tensor(sizes, dtype=torch.float64)).to(exact.device)


def _begin(
    trials: Trials, where: Space, objective: Callable[[Tensor], Tensor], device: str, sizes: tuple[float, ...]
) -> Progress:
    x = torch.stack([where.random(INITIAL, rng=_rng(seed, 0, "cpu")) for seed in trials.seeds]).to(device)
    exact = torch.stack([objective(point) for point in x.unbind(1)], 1)
    y = torch.stack([_observed(trials, k, column, sizes) for k, column in enumerate(exact.unbind(1))], 1)
    return Progress(x, y, [[Memory() for _ in range(INITIAL)] for _ in trials.seeds], (0.0,) * INITIAL, exact)


def _advance(
    trials: Trials,
    method: Strategy,
    where: Space,
    objective: Callable[[Tensor], Tensor],
    state: Progress,
    sizes: tuple[float, ...],
) -> Progress:
    """One more evaluation of every trial."""
    before, n = time.monotonic(), state.y.shape[1]
    rngs = [_rng(seed, n, state.x.device) for seed in trials.seeds]
    runs = Runs(state.x, state.y, state.x[:, :0], rngs, state.memories, noisy=any(sizes))
    x, memories = method.propose(where, runs)
    exact = objective(x)
    y = torch.cat([state.y, _observed(trials, n, exact, sizes).unsqueeze(1)], 1)
    grown = [[*_lightened(past, new), new] for past, new in zip(state.memories, memories, strict=True)]
    seconds = (*state.seconds, time.monotonic() - before)
    exact = torch.cat([state.exact, exact.unsqueeze(1)], 1)
    return Progress(torch.cat([state.x, x.unsqueeze(1)], 1), y, grown, seconds, exact)


def _lightened(past: list[Memory], new: Memory) -> list[Memory]:
    """Memories without the nested models that a new one replaces: only the last is of use, and bases are large."""
    replaced = [name for name, fit in new.fits.items() if fit.basis]
    return [memory.without(replaced) for memory in past]


def _rng(seed: int, index: int, device: Any, *stream: int) -> torch.Generator:
    state = np.random.SeedSequence([seed, index, *stream]).generate_state(1, np.uint64)[0]
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
        "noise": trials.noise,
        "optimum": [p.optimal_value for p in trials.problems()],
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
    if about["noise"]:
        kept["exact"] = state.exact.cpu().numpy()
    arrays.write(path, about, kept)


def _load(path: Path, trials: Trials, device: str) -> Progress:
    with arrays.opened(path) as file:
        about = arrays.about(file)
        for name, wanted in asdict(trials).items():
            held = about.get(name, 0.0) if name == "noise" else about[name]
            if held != (list(wanted) if name == "seeds" else wanted):
                raise ArgumentError(f"{path} holds trials with {name} {held!r}, got {wanted!r}.")
        if not {"x", "seconds"} <= set(file.files):
            raise ArgumentError(f"{path} is packed. Packed files cannot be resumed: choose another folder.")
        x, y = (torch.from_numpy(file[name]).to(device) for name in ("x", "y"))
        exact = torch.from_numpy(file["exact"]).to(device) if "exact" in file.files else y
        return Progress(x, y, read_memories(file), tuple(file["seconds"].tolist()), exact)


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


def made_by(path: Path) -> str:
    """The digests of nestbo's source that made a file, separated by commas."""
    with arrays.opened(path) as file:
        return str(arrays.about(file)["nestbo"])
