"""Write the golden values of other people's kernels that the tests compare ours with.

python -m venv golden && golden/bin/pip install geometric_kernels==1.0.1
golden/bin/python benchmarks/golden.py        (a minute on one core; neither nestbo nor torch is needed)

``tests/golden/sphere_kernels.json`` holds heat and Matérn-5/2 correlations on spheres by geometric_kernels, at the
angles where its series has converged: doubling the number of levels changes them by less than ``CONVERGED``.
"""

import json
from pathlib import Path

import numpy as np
from geometric_kernels.kernels import MaternKarhunenLoeveKernel
from geometric_kernels.spaces import Hypersphere

LEVELS = 120
CONVERGED = 1e-6
DIMENSIONS = (2, 3, 5, 10)
LENGTHSCALES = (0.2, 0.4, 0.8, 1.6)
ANGLES = (0.0, 1e-3, 0.03, 0.1, 0.3, 0.7, 1.1, 1.6, 2.2, 2.8, 3.1, np.pi)
SMOOTHNESS = {"heat": np.inf, "spectral-matern": 2.5}
TARGET = Path(__file__).parent.parent / "tests" / "golden" / "sphere_kernels.json"


def correlations(kernel: MaternKarhunenLoeveKernel, dim: int, smoothness: float, lengthscale: float) -> np.ndarray:
    """k(x, y) / k(x, x) for y at each of the angles from x."""
    points = np.zeros((len(ANGLES), dim + 1))
    points[:, 0], points[:, 1] = np.cos(ANGLES), np.sin(ANGLES)
    row = kernel.K({"nu": np.array([smoothness]), "lengthscale": np.array([lengthscale])}, points[:1], points)[0]
    return row / row[0]


def entries(dim: int) -> list[dict[str, object]]:
    coarse, fine = (MaternKarhunenLoeveKernel(Hypersphere(dim=dim), levels) for levels in (LEVELS // 2, LEVELS))
    rows: list[dict[str, object]] = []
    for name, smoothness in SMOOTHNESS.items():
        for lengthscale in LENGTHSCALES:
            value = correlations(fine, dim, smoothness, lengthscale)
            change = np.abs(value - correlations(coarse, dim, smoothness, lengthscale))
            kept = [(a, k) for a, k, c in zip(ANGLES, value, change, strict=True) if c < CONVERGED]
            angles, values = ([float(entry) for entry in column] for column in zip(*kept, strict=True))
            rows.append(
                {"kernel": name, "dim": dim, "lengthscale": lengthscale, "angles": angles, "correlations": values}
            )
            print(name, dim, lengthscale, f"{len(kept)} of {len(ANGLES)} angles", flush=True)
    return rows


def main() -> None:
    rows = [row for dim in DIMENSIONS for row in entries(dim)]
    source = {"package": "geometric_kernels 1.0.1", "levels": LEVELS, "converged": CONVERGED}
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(f'{{"source": {json.dumps(source)},\n "entries": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
