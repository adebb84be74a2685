"""How often a value lies in the interval that a model predicted before the value was known.

nestbo bench run --suite few-dimensions --methods hdgabo-auto --problems sphere-3,box-6 --trials 10 --out DIR
python benchmarks/calibration.py DIR

compares, on the same suggestions, the model that led when a suggestion was made with the isotropic model beside it.
Of a calibrated model 95 % of the values lie inside.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from nestbo.experiment import arrays
from nestbo.experiment.trials import read_memories

ISOTROPIC = "full:0"  # the name of the isotropic model of the whole space
WIDTH = 1.96  # deviations on each side that hold 95 % of a normal distribution
PHASES = ((5, 25), (25, 55), (55, 105), (105, 205))  # evaluations


def inside(forecast: tuple[float, float, float], y: float) -> bool:
    """Whether a value lies within so many deviations; those below and above the middle differ."""
    low, middle, high = forecast
    side = high - middle if y > middle else middle - low
    return bool(abs(y - middle) <= WIDTH * side)


def shares(path: Path) -> list[str]:
    """The cells of one file: for each phase the share of the leading model, and that of the isotropic one."""
    with arrays.opened(path) as file:
        values, trials = file["y"], read_memories(file)
    cells = []
    for first, last in PHASES:
        told = [
            (memory, y)
            for memories, row in zip(trials, values.tolist(), strict=True)
            for memory, y in zip(memories[first:last], row[first:last], strict=True)
            if memory.forecast
        ]
        leading = [inside(memory.forecast[memory.arm], y) for memory, y in told if memory.arm]
        isotropic = [inside(memory.forecast[ISOTROPIC], y) for memory, y in told]
        cells.append(f"{np.mean(leading):.0%}, {np.mean(isotropic):.0%}" if told else "–")
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with files that nestbo bench run left there, not packed")
    phases = " | ".join(f"{first} to {last}" for first, last in PHASES)
    print(f"| the leading model, the isotropic one | {phases} |")
    print("|---" * (1 + len(PHASES)) + "|")
    for path in sorted(parser.parse_args().folder.glob("*.npz")):
        print(f"| {path.name.split('__')[0]} | {' | '.join(shares(path))} |")


if __name__ == "__main__":
    main()
