"""Trials in array files that a later call continues, one file for each problem, method and range of seeds."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nestbo.errors import ArgumentError
from nestbo.experiment import arrays
from nestbo.experiment.trials import Progress, Setting, Trials
from nestbo.memory import Memory

_SAVE_EVERY = 60.0  # seconds


def run(trials: Trials, budget: int, path: Path, **options: Any) -> Progress:
    """Go on with trials of one problem; the options are those of ``run_together``."""
    return run_together({path: trials}, budget, **options)


def run_together(
    parts: Mapping[Path, Trials],
    budget: int,
    *,
    device: str = "cpu",
    limit: float = float("inf"),
    report: Callable[[str], Any] = lambda line: print(line, flush=True),  # noqa: T201
    stepped: Callable[[], Any] = lambda: None,
    **more: Any,
) -> Progress:
    """Go on until every trial has ``budget`` evaluations or ``limit`` seconds have passed; written as it goes.

    The trials have a space and a method in common, and are one batch. A step that would end after the limit, if it took
    as long as the one before, is not begun. ``stepped`` is called after each; ``more`` is written to the files with
    what is known about the trials.
    """
    setting = Setting.of(list(parts.values()), device)
    state = _continued(parts, device) or setting.begin(device)
    about = {path: _about(trials, device, path) | more for path, trials in parts.items()}
    began = saved = time.monotonic()
    first, step = state.y.shape[1], 0.0
    while state.y.shape[1] < budget and time.monotonic() - began + step < limit:
        state = setting.advance(state)
        step = state.seconds[-1]
        stepped()
        if time.monotonic() - saved > _SAVE_EVERY:
            _save(about, state)
            saved = time.monotonic()
            names = ", ".join(path.stem for path in parts)
            report(f"{names}: {_standing(state, budget, (saved - began) / (state.y.shape[1] - first))}")
    _save(about, state)
    return state


def _standing(state: Progress, budget: int, pace: float) -> str:
    """In words, given the seconds that a step has taken."""
    done, best = state.y.shape[1], state.y.amin(1).median().item()
    left = minutes(pace * (budget - done))
    return f"{done}/{budget}, median best {best:.4g}, {pace:.2g} s a step, {left} left"


def minutes(seconds: float) -> str:
    """A duration to read."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _continued(parts: Mapping[Path, Trials], device: str) -> Progress | None:
    """Where the trials were stopped; None if they have not begun."""
    counts = {path: evaluated(path) for path in parts}
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{count} evaluations in {path.name}" for path, count in counts.items())
        raise ArgumentError(
            f"Trials advance together from the same count, got {shown}. Run the shorter ones alone first."
        )
    if not any(counts.values()):
        return None
    return Progress.joined([_load(path, trials, device) for path, trials in parts.items()])


def source() -> str:
    """Which nestbo this is: the beginning of a digest of its source."""
    folder = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _about(trials: Trials, device: str, path: Path) -> dict[str, Any]:
    """What the file says of its trials; it lists every version and device that has advanced them."""
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


def _save(abouts: Mapping[Path, dict[str, Any]], state: Progress) -> None:
    """Each part of the batch into its file."""
    first = 0
    for path, about in abouts.items():
        count = len(about["seeds"])
        _write(path, about, state.rows(first, count))
        first += count


def _write(path: Path, about: dict[str, Any], state: Progress) -> None:
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
