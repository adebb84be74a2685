"""Search the least values of held-out problems that have no closed form, and rewrite their table.

python benchmarks/best_known.py                      (some minutes on one core)
python benchmarks/best_known.py neural-network       (only these; the other rows stay)
"""

import json
import sys
from pathlib import Path

import torch

import nestbo
from nestbo import SPD, Manifold, Simplex, Sphere
from nestbo.optimise import lbfgs
from nestbo.problems import HELD_OUT, Posed

PATH = Path(nestbo.__file__).parent / "problems" / "best_known.json"
STARTS, ITERATIONS = 2000, 1000
BATCH = 500  # starts refined together
SEARCHED: dict[str, tuple[Manifold, ...]] = {
    "neural-network": (Sphere(5), SPD(3, eigenvalues=(1e-3, 5.0))),
    "dixon-price": (SPD(4, eigenvalues=(1e-3, 5.0)),),
    "von-mises-fisher": (Sphere(20),),
    "portfolio": (Simplex(30),),
}


def best(posed: Posed, starts: int = STARTS) -> tuple[float, torch.Tensor]:
    """The least value of many refined random starts, and where it is."""
    rng = torch.Generator().manual_seed(0)
    found = []
    for _ in range(max(1, starts // BATCH)):
        start = posed.space.random(min(starts, BATCH), rng=rng)
        result = lbfgs(posed.objective, posed.space, start, tolerance=1e-10, max_iterations=ITERATIONS)
        points = posed.space.project(result.point)
        values = posed.objective(points)
        k = int(values.argmin())
        found.append((values[k].item(), points[k]))
    return min(found, key=lambda pair: pair[0])


def main() -> None:
    torch.set_num_threads(1)
    names = sys.argv[1:] or list(SEARCHED)
    rows = [row for row in json.loads(PATH.read_text()) if row["problem"] not in names]
    for name in names:
        for space in SEARCHED[name]:
            value, point = best(HELD_OUT[name](space, None, 0))
            how = f"{STARTS} random starts, Riemannian L-BFGS of up to {ITERATIONS} iterations"
            row = {"problem": name, "space": space.specification, "value": value}
            rows.append(row | {"point": point.flatten().tolist(), "how": how})
            print(name, space, value, flush=True)
    PATH.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


if __name__ == "__main__":
    main()
