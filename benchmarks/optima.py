"""Search the optima of every benchmark function on the tabulated spaces and rewrite their table.

python benchmarks/optima.py        (some minutes on one core)
"""

import json
from pathlib import Path

import torch

import nestbo
from nestbo.problems.functions import PROBLEMS
from nestbo.problems.search import TABULATED, find_optimum


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for space in TABULATED:
        for name, function in PROBLEMS.items():
            value, t, attained = find_optimum(function, space)
            row = {"problem": name, "space": space.specification, "value": value, "attained": attained}
            rows.append(json.dumps(row | {"coordinates": t}))
            print(name, space, value, "attained" if attained else "approached", flush=True)
    path = Path(nestbo.__file__).parent / "problems" / "optima.json"
    path.write_text("[\n" + ",\n".join(rows) + "\n]\n")


if __name__ == "__main__":
    main()
