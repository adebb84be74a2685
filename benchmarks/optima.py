"""Search the optima of every benchmark function on the tabulated spaces and rewrite their table.

python benchmarks/optima.py && ruff format src/nestbo/problems/optima.py        (some minutes on one core)
"""

from pathlib import Path

import torch

import nestbo
from nestbo.problems.functions import PROBLEMS
from nestbo.problems.search import TABULATED, search

HEADER = '''"""Optimal values over feasible domains: value, whether it is attained, and coordinates.

Written by ``benchmarks/optima.py``.
"""

OPTIMA: dict[tuple[str, str], tuple[float, bool, tuple[float, ...]]] = {
'''


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for space in TABULATED:
        for name, function in PROBLEMS.items():
            value, t, attained = search(function, space)
            rows.append(f'    ("{name}", "{space.specification}"): ({value!r}, {attained}, {tuple(t)!r}),')
            print(name, space, value, "attained" if attained else "approached", flush=True)
    path = Path(nestbo.__file__).parent / "problems" / "optima.py"
    path.write_text(HEADER + "\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
