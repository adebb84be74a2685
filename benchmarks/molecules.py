"""Molecules that the gallery does not have: is a lead on one of its molecules more than chance?

Three amino acids take the place of cysteine (five torsions), four molecules that of uracil (where water binds). Spaces,
coordinates and budgets are those of the gallery. The default of nestbo was fixed before these molecules were run.

python benchmarks/molecules.py --methods nestbo,turbo --seeds 6 --jobs 2 --out benchmarks/results/molecules.jsonl

The file has one line per run; the same command goes on where it was stopped. It prints the table at the end.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from scipy.stats import wilcoxon
from turned import reached

from nestbo.experiment.applications import METHODS
from nestbo.gallery.application import Application
from nestbo.gallery.catalogue import load

# SMILES, and the torsions as in examples/gallery/molecule.py.
AMINO_ACIDS = {
    "serine": ("N[C@@H](CO)C(=O)O", [("H", 0, 1, 4), (0, 1, 4, 5), (1, 4, 6, "H"), (0, 1, 2, 3), (1, 2, 3, "H")]),
    "threonine": (
        "N[C@@H]([C@H](C)O)C(=O)O",
        [("H", 0, 1, 5), (0, 1, 5, 6), (1, 5, 7, "H"), (0, 1, 2, 4), (1, 2, 4, "H")],
    ),
    "asparagine": (
        "N[C@@H](CC(=O)N)C(=O)O",
        [("H", 0, 1, 6), (0, 1, 6, 7), (1, 6, 8, "H"), (0, 1, 2, 3), (1, 2, 3, 4)],
    ),
}
BINDERS = {
    "cytosine": "Nc1cc[nH]c(=O)n1",
    "adenine": "Nc1ncnc2[nH]cnc12",
    "formamide": "NC=O",
    "imidazole": "c1c[nH]cn1",
}
MOLECULES = (*AMINO_ACIDS, *BINDERS)
CLASH = 15.0  # kcal/mol above zero: from there on atoms collide, as in the gallery
DRAWN = 200  # random folds; the energy of the lowest one is the zero
OURS = 1  # the second kind of coordinates of both applications, on which TuRBO does best
LEVEL = 0.01  # kcal/mol: closer values count as equal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="nestbo,turbo")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    methods = given.methods.split(",")
    wanted = [(molecule, name, seed) for seed in range(given.seeds) for molecule in MOLECULES for name in methods]
    known = read(given.out)
    with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        futures = {pool.submit(one, *cell): cell for cell in wanted if cell not in known}
        for future in as_completed(futures):
            molecule, method, seed = futures[future]
            row = {"molecule": molecule, "method": method, "seed": seed, "reached": future.result()}
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)
    print("\n".join(table(read(given.out), methods)))


def read(path: Path) -> dict[tuple[str, str, int], float]:
    """What every run reached, by molecule, method and seed."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {(row["molecule"], row["method"], row["seed"]): row["reached"] for row in rows}


def table(known: dict[tuple[str, str, int], float], methods: list[str]) -> list[str]:
    """Medians by molecule, and how often the first method is ahead of each other one with the same seed."""
    lines = ["| molecule | " + " | ".join(METHODS[name].about for name in methods) + " | seeds |"]
    lines += ["|---|" + "--:|" * (len(methods) + 1)]
    every = sorted({seed for _, _, seed in known})
    for molecule in MOLECULES:
        seeds = [seed for seed in every if all((molecule, name, seed) in known for name in methods)]
        medians = [np.median([known[molecule, name, seed] for seed in seeds]) for name in methods]
        lines += [f"| {molecule} | " + " | ".join(f"{median:.2f}" for median in medians) + f" | {len(seeds)} |"]
    return [*lines, *(compared(known, methods[0], name) for name in methods[1:])]


def compared(known: dict[tuple[str, str, int], float], ours: str, theirs: str) -> str:
    """How often a method is ahead of another one with the same molecule and seed, and Wilcoxon's p."""
    both = [(molecule, seed) for molecule, name, seed in known if name == ours and (molecule, theirs, seed) in known]
    gains = np.array([known[molecule, theirs, seed] - known[molecule, ours, seed] for molecule, seed in both])
    lower, higher = (gains > LEVEL).sum(), (gains < -LEVEL).sum()
    counts = f"{lower} lower, {len(gains) - lower - higher} level, {higher} higher"
    return f"\n{ours} against {theirs}, {len(gains)} pairs: {counts}, p {wilcoxon(gains).pvalue:.2g}"


def one(molecule: str, method: str, seed: int) -> float:
    """What a method reached, in kcal/mol, in a process of its own."""
    torch.set_num_threads(1)
    application = conformer(molecule) if molecule in AMINO_ACIDS else binding(molecule)
    return reached(application, method, application.coordinates[OURS].name, seed)


def conformer(molecule: str) -> Application:
    """The fold of an amino acid, instead of cysteine's."""
    application = load("molecule")  # finds the modules of the examples
    from chemistry import Fold, softened

    smiles, torsions = AMINO_ACIDS[molecule]
    energy, rng = Fold(smiles, torsions), np.random.default_rng(0)
    low = min(energy(rng.uniform(-np.pi, np.pi, len(torsions))) for _ in range(DRAWN))
    return replace(application, objective=lambda angles: softened(energy(angles) - low, above=CLASH))


def binding(molecule: str) -> Application:
    """Where water binds to a molecule, instead of uracil."""
    application = load("water")  # finds the modules of the examples
    from placement import Pair

    return replace(application, objective=Pair(BINDERS[molecule], "O"))


if __name__ == "__main__":
    main()
