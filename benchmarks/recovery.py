"""Does the fit find the nested space? Principal angles between learned and true subspace against the number of data.

python benchmarks/recovery.py run --out benchmarks/results/recovery   # resumable: finished cells are skipped
python benchmarks/recovery.py table                                   # writes docs/recovery.md and its figure

A function with a known random mapping (Rosenbrock) is observed at n random points; nothing is optimised. The fits are
the paper's (maximum likelihood from random subspaces), the library's (maximum a posteriori, with a guess from the
gradients of the full-dimensional model, logarithms of values), and leave-one-out from the same starts.
"""

import argparse
import json
import math
import time
from pathlib import Path

import torch

import nestbo as nb
from nestbo.kernels import kernel
from nestbo.nested import Nesting, smaller
from nestbo.outputs import Log
from nestbo.surrogate import CRITERIA, Data, Description, fit

RESULTS = Path(__file__).parent / "results" / "recovery"
PAGE = Path(__file__).parent.parent / "docs" / "recovery.md"
PAIRS = [("sphere:10", 2), ("sphere:50", 5), ("spd:5:eigenvalues=0.001,5", 2), ("spd:10:eigenvalues=0.001,5", 3)]
COUNTS = (20, 50, 100, 200)
SEEDS = range(5)
METHODS = ("chance", "active subspace", "maximum likelihood", "default", "leave-one-out")


def bases(method, nesting, x, y):
    """The learned bases (seeds, rows, columns)."""
    rngs = [torch.Generator().manual_seed(1000 + s) for s in SEEDS]
    if method == "chance":
        return torch.stack([nesting.bases.random(rng=rng) for rng in rngs])
    data = Data(x, y, rngs)
    if method == "maximum likelihood":
        return fit(Description(kernel("gaussian", nesting.latent), nesting, priors=False), data).mapping.basis
    on_space = kernel("matern52", nesting.ambient)
    guess = nesting.active(fit(Description(on_space, outputs=Log.fit), data).gradients(x))
    if method == "active subspace":
        return guess
    criterion = CRITERIA["leave-one-out" if method == "leave-one-out" else "likelihood"]
    on_latent = Description(kernel("matern52", nesting.latent), nesting, Log.fit, criterion=criterion)
    return fit(on_latent, data, guess=guess).mapping.basis


def cell(space, latent_dim, n, method):
    ambient = nb.space(space)
    nesting = Nesting(ambient, smaller(ambient, latent_dim))
    problems = [nb.problem("rosenbrock", ambient, latent_dim=latent_dim, seed=s) for s in SEEDS]
    x = torch.stack([ambient.random(n, rng=torch.Generator().manual_seed(s)) for s in SEEDS])
    y = torch.stack([p.objective(points) for p, points in zip(problems, x, strict=True)])
    started = time.perf_counter()
    found = bases(method, nesting, x, y)
    true = torch.stack([p.mapping.basis for p in problems])
    cosines = torch.linalg.svdvals(true.mT @ found).clamp(max=1)
    return {
        "angles": [[round(math.degrees(a), 2) for a in row] for row in cosines.acos().flip(-1).tolist()],
        "alignment": [round(v, 4) for v in cosines.square().mean(-1).tolist()],
        "seconds": round(time.perf_counter() - started, 2),
        "torch": torch.__version__,
    }


def run(out):
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    for n in COUNTS:
        for space, latent_dim in PAIRS:
            for method in METHODS:
                name = f"{space}_{latent_dim}_{n}_{method}".replace(":", "-").replace(" ", "-").replace(",", "-")
                path = out / f"{name}.json"
                if path.exists():
                    continue
                about = {"space": space, "latent_dim": latent_dim, "n": n, "method": method}
                path.write_text(json.dumps(about | cell(space, latent_dim, n, method)))
                print(path.stem, flush=True)


def table(out):
    cells = [json.loads(path.read_text()) for path in sorted(out.glob("*.json"))]
    found = {(c["space"], c["latent_dim"], c["n"], c["method"]): c for c in cells}
    lines = ["| | method | " + " | ".join(f"n = {n}" for n in COUNTS) + " |", "|---|---|" + "---|" * len(COUNTS)]
    for space, d in PAIRS:
        for method in METHODS:
            row = [found.get((space, d, n, method)) for n in COUNTS]
            texts = ["" if c is None else text(c) for c in row]
            lines.append(f"| {title(space, d)} | {method} | " + " | ".join(texts) + " |")
    before, mark, _ = PAGE.read_text().partition("<!-- table -->")
    PAGE.write_text(before + mark + "\n" + "\n".join(lines) + "\n")
    figure(found)


def title(space, d):
    family, size = space.split(":")[:2]
    return f"S^{size} → S^{d}" if family == "sphere" else f"SPD({size}) → SPD({d})"


def text(c):
    """Median over seeds of the alignment, and of the largest angle."""
    alignment, largest = torch.tensor(c["alignment"]).median(), torch.tensor(c["angles"])[:, 0].median()
    return f"{alignment:.2f}, {largest:.0f}°"


def figure(found):
    import matplotlib
    from matplotlib.figure import Figure

    from nestbo.plots.style import STYLE

    with matplotlib.rc_context(STYLE):
        page = Figure(figsize=(10, 2.8), layout="constrained")
        axes = page.subplots(1, len(PAIRS), sharey=True)
        for axis, (space, d) in zip(axes, PAIRS, strict=True):
            for method in METHODS:
                cells = [(n, found[space, d, n, method]) for n in COUNTS if (space, d, n, method) in found]
                alignments = [torch.tensor(c["alignment"]).median().item() for _, c in cells]
                axis.plot([n for n, _ in cells], alignments, "--" if method == "chance" else "o-", label=method)
            axis.set(xscale="log", title=title(space, d), xlabel="observations", ylim=(0, 1.02))
            axis.set_xticks(COUNTS, list(map(str, COUNTS)))
            axis.minorticks_off()
        axes[0].set_ylabel("alignment")
        page.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(METHODS))
        page.savefig(PAGE.parent / "pictures" / "recovery.png", dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    {"run": run, "table": table}[given.what](given.out)


if __name__ == "__main__":
    main()
