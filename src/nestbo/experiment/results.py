"""Results: files of trials, as they were run or packed small; a folder or an archive of them, merged by cell."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nestbo.errors import ArgumentError
from nestbo.experiment.trials import write

Array = NDArray[Any]


@dataclass(frozen=True)
class Record:
    """One file: what it says of its trials, and for each its regret (trials, n) and the arm that suggested (trials, n).

    Regret is what a value lies above the feasible minimum, not yet the least so far; ``seconds`` (n,) are those of all
    trials together.
    """

    about: dict[str, Any]
    regret: Array
    arms: Array
    seconds: Array

    @classmethod
    def read(cls, file: Any) -> Record:
        """From a path or an open file, packed or not."""
        with np.load(file, allow_pickle=False) as data:
            about = json.loads(str(data["about"]))
            if "regret" in data.files:
                return cls(about, data["regret"].astype(float), data["arms"], data["seconds"])
            notes = json.loads(data["notes"].tobytes())
            arms = np.array([[note.get("arm", "") for note in trial] for trial in notes])
            return cls(about, data["y"] - about["optimum"], arms, data["seconds"])

    def write(self, path: Path) -> None:
        """Small: regret in single precision, which keeps its digits near 0."""
        arrays = {"regret": self.regret.astype(np.float32), "arms": self.arms}
        write(path, self.about, arrays | {"seconds": self.seconds.astype(np.float32)})


def records(place: Path) -> Iterator[tuple[str, Record]]:
    """Every file of a folder or of an archive, by name."""
    if place.is_dir():
        for path in sorted(place.glob("*.npz")):
            yield path.name, Record.read(path)
        for path in sorted(place.glob("*.zip")):
            yield from records(path)
    elif zipfile.is_zipfile(place) and place.suffix == ".zip":
        with zipfile.ZipFile(place) as archive:
            for name in sorted(name for name in archive.namelist() if name.endswith(".npz")):
                yield Path(name).name, Record.read(io.BytesIO(archive.read(name)))
    else:
        raise ArgumentError(f"Results are a folder of npz files, or a zip file that pack wrote, got {place}.")


def pack(place: Path, out: Path) -> int:
    """Write all files of a folder, small, to one archive; returns how many."""
    if out.suffix != ".zip":
        raise ArgumentError(f"An archive is a zip file, got {out}.")
    out.parent.mkdir(parents=True, exist_ok=True)
    found = list(records(place))
    part, single = out.with_suffix(".part"), out.with_suffix(".npz.part")
    with zipfile.ZipFile(part, "w") as archive:
        for name, record in found:
            record.write(single)
            archive.write(single, name)
            single.unlink()
    part.replace(out)
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
