"""HD-GaBO against GaBO, random search, HD-GaBO as published, and the oracle that knows the hidden space.

python benchmarks/hdgabo.py run --out DIR     # resumable: continues every file that is there; --time-limit in seconds
python benchmarks/hdgabo.py pack --out DIR    # values and arms of all trials into benchmarks/results/hdgabo
python benchmarks/hdgabo.py table             # writes the table of docs/hdgabo.md, and its figure

Ten trials of 5 random points and 250 iterations on each problem, all methods of a trial from the same points. The
oracle is GaBO on the latent space, which it is given.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

import nestbo as nb
from nestbo.experiment import ORACLE, Trials
from nestbo.experiment import run as run_trials

RESULTS = Path(__file__).parent / "results" / "hdgabo"
PAGE = Path(__file__).parent.parent / "docs" / "hdgabo.md"
MATRICES = "spd:10:eigenvalues=0.001,5"
PROBLEMS = [("ackley", "sphere:50", 5), ("rosenbrock", MATRICES, 3), ("styblinski-tang", MATRICES, 3)]
BUDGET, TRIALS = 255, 10
METHODS = ("random search", "GaBO", "HD-GaBO, paper", "HD-GaBO", "HD-GaBO, auto", "oracle")
SUCCESS = 0.1
MARK = "<!-- table -->"


def method(name, latent_dim):
    return {
        "random search": nb.RandomSearch().specification,
        "GaBO": nb.GaBO().specification,
        "HD-GaBO, paper": nb.HDGaBO.paper(latent_dim).specification,
        "HD-GaBO": nb.HDGaBO(latent_dim).specification,
        "HD-GaBO, auto": nb.HDGaBO().specification,
        "oracle": ORACLE,
    }[name]


def run(out, limit, only):
    deadline = time.monotonic() + limit
    for name in METHODS:
        for problem, space, latent_dim in PROBLEMS:
            trials = Trials(problem, space, method(name, latent_dim), tuple(range(TRIALS)), latent_dim)
            left = deadline - time.monotonic()
            if left > 0 and only in f"{problem} {space} {name}":
                run_trials(trials, BUDGET, out / trials.name, limit=left)


def pack(out):
    """Only what the table needs: a few hundred kB instead of many MB."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for path in sorted(out.glob("*.npz")):
        with np.load(path, allow_pickle=False) as file:
            arms = [[note.get("arm", "") for note in run] for run in json.loads(file["notes"].tobytes())]
            np.savez_compressed(RESULTS / path.name, about=file["about"], y=file["y"], arms=np.array(arms))


def load():
    """Values (trials, BUDGET), seconds and arms by problem, space and method."""
    found = {}
    names = {(p, s, method(m, d)): m for p, s, d in PROBLEMS for m in METHODS}
    for path in sorted(RESULTS.glob("*.npz")):
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            name = names.get((about["problem"], about["space"], about["method"]))
            if name:
                found.setdefault((about["problem"], about["space"], name), []).append((about, file["y"], file["arms"]))
    return found


def table():
    found, lines = (
        load(),
        [
            "| problem | method | median | quartiles | below 0.1 | trials | evaluations |",
            "|---|---|---|---|---|---|---|",
        ],
    )
    for problem, space, latent_dim in PROBLEMS:
        optimum = nb.problem(problem, nb.space(space), latent_dim=latent_dim, seed=0).optimal_value
        for name in METHODS:
            parts = found.get((problem, space, name))
            if parts is None:
                continue
            regret = np.concatenate([y[:, :BUDGET].min(1) for _, y, _ in parts]) - optimum
            low, middle, high = np.quantile(regret, [0.25, 0.5, 0.75])
            share = f"{np.mean(regret < SUCCESS):.0%}"
            count = f"{len(regret)} | {min(y.shape[1] for _, y, _ in parts)}"
            lines.append(f"| {problem} | {name} | {middle:.3g} | {low:.3g}, {high:.3g} | {share} | {count} |")
    before, mark, after = PAGE.read_text().partition(MARK)
    _, end, rest = after.partition("<!-- end -->")
    PAGE.write_text(before + mark + "\n" + "\n".join(lines) + "\n" + end + rest)
    figure(found)


def figure(found):
    import matplotlib
    from matplotlib.figure import Figure

    from nestbo.plots.style import STYLE

    with matplotlib.rc_context(STYLE):
        page = Figure(figsize=(10, 3), layout="constrained")
        axes = page.subplots(1, len(PROBLEMS))
        for axis, (problem, space, d) in zip(axes, PROBLEMS, strict=True):
            optimum = nb.problem(problem, nb.space(space), latent_dim=d, seed=0).optimal_value
            for name in METHODS:
                if parts := found.get((problem, space, name)):
                    length = min([BUDGET, *(y.shape[1] for _, y, _ in parts)])
                    best = np.minimum.accumulate(np.concatenate([y[:, :length] for _, y, _ in parts]), 1) - optimum
                    low, middle, high = np.quantile(best, [0.25, 0.5, 0.75], axis=0)
                    (line,) = axis.plot(middle, label=name, color=f"C{METHODS.index(name)}")
                    axis.fill_between(range(length), low, high, color=line.get_color(), alpha=0.15, linewidth=0)
            axis.set(yscale="log", title=f"{problem}, {space.split(':eig')[0]}", xlabel="evaluations")
        axes[0].set_ylabel("regret")
        page.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(METHODS))
        page.savefig(PAGE.parent / "pictures" / "hdgabo.png", dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("run", "pack", "table"))
    parser.add_argument("--out", type=Path, default=Path("hdgabo-runs"))
    parser.add_argument("--time-limit", type=float, default=float("inf"))
    parser.add_argument("--only", default="", help="a part of a problem's or a method's name")
    given = parser.parse_args()
    if given.what == "run":
        run(given.out, given.time_limit, given.only)
    elif given.what == "pack":
        pack(given.out)
    else:
        table()


if __name__ == "__main__":
    main()
