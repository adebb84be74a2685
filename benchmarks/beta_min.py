"""The bounds β_min of the geodesic Gaussian, by experiment: the measured part of ``nestbo/kernels/beta_table.py``.

python benchmarks/beta_min.py       (about a minute on one core)
"""

import torch

import nestbo as nb
from nestbo.kernels import beta_min
from nestbo.kernels.beta_table import BETA_MIN

FAMILIES = {"sphere": (nb.Sphere, 500), "spd": (nb.SPD, 100)}
TOLERANCE = 1e-6


def main() -> None:
    torch.set_num_threads(1)
    for family, (build, n) in FAMILIES.items():
        print(family, {size: beta_min(build(size), n, TOLERANCE) for size in BETA_MIN[family]}, flush=True)


if __name__ == "__main__":
    main()
