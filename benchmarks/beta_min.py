"""The bounds β_min of the geodesic Gaussian, by experiment, beside the published ones.

python benchmarks/beta_min.py       (some minutes on one core)
"""

import torch

import nestbo as nb
from nestbo.kernels import beta_min
from nestbo.kernels.beta_table import BETA_MIN

FAMILIES = {"sphere": (nb.Sphere, 500), "spd": (nb.SPD, 100)}
TOLERANCE = 1e-6


def main() -> None:
    torch.set_num_threads(1)
    print("| space | published | random points | n |\n|---|--:|--:|--:|", flush=True)
    for family, (build, n) in FAMILIES.items():
        for size, published in BETA_MIN[family].items():
            space = build(size)
            print(f"| {space} | {published} | {beta_min(space, n, TOLERANCE)} | {n} |", flush=True)


if __name__ == "__main__":
    main()
