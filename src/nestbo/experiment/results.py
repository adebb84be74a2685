"""Results: files of trials, as they were run or packed small; a folder or an archive of them, merged by cell."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nestbo.errors import ArgumentError, NestboError
from nestbo.experiment import arrays
from nestbo.experiment.suites import Suite
from nestbo.experiment.tasks import Task
from nestbo.experiment.trial_files import read_memories
from nestbo.experiment.trials import INITIAL
from nestbo.files import written
from nestbo.manifolds import space as known_space
from nestbo.manifolds.base import is_whole
from nestbo.problems import HELD_OUT, PROBLEMS
from nestbo.specification import check_known

Array = NDArray[Any]
_ENOUGH = 10  # trials: shorter ones than the tenth longest are left out


@dataclass(frozen=True)
class Record:
    """One file: what it says of its trials, and for each its regret (trials, n) and the arm that suggested (trials, n).

    Regret is what a value, without its noise, lies above the feasible minimum, not yet the least so far; ``seconds``
    (n,) are those of all trials together.
    """

    about: dict[str, Any]
    regret: Array
    arms: Array
    seconds: Array

    def __post_init__(self) -> None:
        """Refuse what is no record: a file may come from anywhere."""
        _check(**self.about)
        trials = (len(self.about["seeds"]), len(self.seconds))
        if self.regret.shape != trials or self.arms.shape != trials:
            raise ValueError(f"{trials} trials and evaluations, but arrays {self.regret.shape} and {self.arms.shape}")

    @classmethod
    def read(cls, path: Path) -> Record:
        """From a file, packed or not."""
        with path.open("rb") as file:
            return cls.load(file, path)

    @classmethod
    def load(cls, file: Any, name: object) -> Record:
        """From an open file, which has a name."""
        with arrays.loaded(file, name) as data:
            about = arrays.about(data)
            if "seconds" not in data.files:
                raise ArgumentError(f"{name} holds no trials that this version of nestbo ran. Run them again.")
            if "regret" in data.files:
                return cls(about, data["regret"].astype(float), data["arms"], data["seconds"])
            arms = np.array([[memory.arm or "" for memory in trial] for trial in read_memories(data)])
            values = data["exact"] if "exact" in data.files else data["y"]
            optima = np.reshape(about["optimum"], (-1, 1))  # one for each trial; earlier files have one for all
            return cls(about, values - optima, arms, data["seconds"])

    @property
    def task(self) -> Task:
        """The problem."""
        found = self.about
        return Task(found["problem"], found["space"], found["latent_dim"], found.get("noise", 0.0))

    @property
    def label(self) -> str:
        """The method's label in its suite; the text of its strategy where it was run in none."""
        return str(self.about.get("label", self.about["method"]))

    @property
    def packed(self) -> dict[str, Array]:
        """Small: regret in single precision, which keeps its digits near 0."""
        small = {"regret": self.regret.astype(np.float32), "seconds": self.seconds.astype(np.float32)}
        return small | {"arms": self.arms}

    def write(self, path: Path) -> None:
        """Packed, into a file."""
        arrays.write(path, self.about, self.packed)


def _check(*, problem: Any, space: Any, latent_dim: Any, method: Any, seeds: Any, device: Any, **more: Any) -> None:
    """Refuse what a file says of its trials, if it is of another kind than what nestbo says there."""
    texts = (problem, space, method, device, more.get("label", ""))
    whole = (0 if latent_dim is None else latent_dim, *seeds)
    if not all(isinstance(text, str) for text in texts) or not all(map(is_whole, whole)):
        raise ValueError("a text or a whole number is none")
    if not isinstance(more.get("noise", 0.0), float | int):
        raise ValueError("the noise is no number")
    try:
        known_space(space)
    except NestboError as error:
        raise ValueError("no space") from error


def records(place: Path) -> Iterator[tuple[str, Record]]:
    """Every file of a folder or of an archive, by name."""
    if place.is_dir():
        for path in sorted(place.glob("*.npz")):
            yield path.name, Record.read(path)
        for path in sorted(place.glob("*.zip")):
            yield from records(path)
    elif zipfile.is_zipfile(place) and place.suffix == ".zip":
        yield from _archived(place)
    else:
        raise ArgumentError(f"Results are a folder of npz files, or a zip file that pack wrote, got {place}.")


def _archived(place: Path) -> list[tuple[str, Record]]:
    with arrays.readable(place), zipfile.ZipFile(place) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".npz"))
        contents = {name: io.BytesIO(archive.read(name)) for name in names}
        return [(Path(name).name, Record.load(file, f"{name} in {place}")) for name, file in contents.items()]


def pack(place: Path, out: Path) -> int:
    """Write all files of a folder, small, to one archive; returns how many."""
    if out.suffix != ".zip":
        raise ArgumentError(f"An archive is a zip file, got {out}.")
    out.parent.mkdir(parents=True, exist_ok=True)
    found = list(records(place))
    with written(out) as file, zipfile.ZipFile(file, "w") as archive:
        for name, record in found:
            with archive.open(name, "w") as member:
                arrays.save(member, record.about, record.packed)
    return len(found)


def unpack(place: Path, out: Path) -> int:
    """Write all files of an archive or a folder, small, to a folder, unless it has longer ones; returns how many."""
    count = 0
    for name, record in records(place):
        there = out / name
        if not there.exists() or len(Record.read(there).seconds) < len(record.seconds):
            record.write(there)
            count += 1
    return count


def collect(places: Iterable[Path], out: Path, replace: bool = False) -> list[Path]:
    """Write all files of some folders or archives, small, to one archive per problem; returns the archives.

    What an archive has is kept, unless a file of the same name has longer trials. With ``replace``, any file of the
    same name takes its place.
    """
    groups: dict[str, dict[str, Record]] = {}
    for place in [*places, *([out] if out.is_dir() else [])]:
        for name, record in records(place):
            check_known("problem", record.task.problem, {**PROBLEMS, **HELD_OUT})
            group = groups.setdefault(record.task.key, {})
            known = group.get(name)
            older = replace and place == out  # the places that were named come first
            if known is None or (not older and len(known.seconds) < len(record.seconds)):
                group[name] = record
    out.mkdir(parents=True, exist_ok=True)
    return [_archive(group, out / f"{key}.zip") for key, group in sorted(groups.items())]


def _archive(group: dict[str, Record], path: Path) -> Path:
    """One archive; members have the date zero, so that equal results make equal files."""
    with written(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, record in sorted(group.items()):
            made = io.BytesIO()
            arrays.save(made, record.about, record.packed)
            archive.writestr(zipfile.ZipInfo(name), made.getvalue())
    return path


@dataclass(frozen=True)
class Series:
    """All trials of a method on a problem: the least regret so far (trials, n), by seed.

    ``pace`` is the seconds that one suggestion took for one trial, on ``devices``; ``versions`` are digests of the
    source of nestbo that made the trials.
    """

    seeds: tuple[int, ...]
    best: Array
    pace: float
    devices: tuple[str, ...]
    versions: tuple[str, ...] = ()


def series(parts: list[Record], budget: int | None = None) -> Series:
    """The records of one method on one problem as one, up to a budget; of a seed that is there twice, the longer trial.

    Trials that did not come as far as the tenth longest (the shortest, if there are fewer than ten) are left out, and
    the others end where that one does.
    """
    trials: dict[int, Array] = {}
    for part in parts:
        for seed, regret in zip(part.about["seeds"], part.regret, strict=True):
            if len(regret) > len(trials.get(seed, ())):
                trials[seed] = regret
    length = sorted(map(len, trials.values()), reverse=True)[:_ENOUGH][-1]
    length = length if budget is None else min(length, budget)
    kept = {seed: regret for seed, regret in sorted(trials.items()) if len(regret) >= length}
    best = np.stack([np.minimum.accumulate(regret[:length]) for regret in kept.values()])
    spent = sum(float(part.seconds.sum()) for part in parts)
    made = sum((len(part.seconds) - INITIAL) * len(part.regret) for part in parts)
    devices = tuple(sorted({part.about["device"] for part in parts}))
    versions = {version for part in parts for version in str(part.about.get("nestbo", "")).split(", ") if version}
    return Series(tuple(kept), best, spent / max(1, made), devices, tuple(sorted(versions)))


Results = dict[Task, dict[str, Series]]


def results(places: Iterable[Path], suite: Suite | None = None) -> Results:
    """All results of some folders or archives by problem and label, in the order of a suite, and only what is in it."""
    groups: dict[Task, dict[str, list[Record]]] = {}
    for place in places:
        for _, record in records(place):
            if suite is None or _belongs(record, suite):
                groups.setdefault(record.task, {}).setdefault(record.label, []).append(record)
    tasks = list(groups) if suite is None else [task for task in suite.tasks if task in groups]
    budget = None if suite is None else suite.budget
    return {
        task: {label: series(groups[task][label], budget) for label in _ordered(groups[task], suite)} for task in tasks
    }


def _belongs(record: Record, suite: Suite) -> bool:
    """Whether a suite has this problem, and this method under this label; a method that is gone has its label only."""
    method = suite.methods.get(record.label)
    if method is None or record.task not in suite.tasks:
        return False
    return method.text(record.task) in (None, record.about["method"])


def _ordered(labels: Iterable[str], suite: Suite | None) -> list[str]:
    return list(labels) if suite is None else [label for label in suite.methods if label in set(labels)]
