"""How long a suggestion takes, where the time goes, and how it grows with the data, the dimension and the trials.

python benchmarks/speed.py                # one thread; prints the table and writes it into docs/performance.md
python benchmarks/speed.py --quick        # smaller counts, prints only

Every case is a history of random points and of points near the best, with the memories of earlier suggestions, as in
the middle of a study; the median of several further suggestions is reported. Fresh fits happen every tenth time and are
part of the mean, which is reported, too.
"""

import argparse
import math
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import torch

import nestbo as nb
from nestbo.memory import Memory
from nestbo.strategies import Runs, learning, single
from nestbo.strategies.single import LIFTS

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
MATRICES = "spd:10:eigenvalues=0.001,5"
TARGETS = {
    ("nested HD-GaBO", "sphere:50", 100): 0.3,
    ("nested HD-GaBO", "sphere:50", 300): 1.0,
    ("nested HD-GaBO", MATRICES, 100): 0.5,
    ("nested HD-GaBO", MATRICES, 300): 1.5,
    ("GaBO", "sphere:50", 300): 0.5,
    ("GaBO", MATRICES, 300): 0.5,
    ("nested HD-GaBO", "sphere:50", 2000): 20.0,
}
STAGES = defaultdict(float)


def timed(stage, f):
    def wrapper(*args, **kwargs):
        started = time.perf_counter()
        try:
            return f(*args, **kwargs)
        finally:
            STAGES[stage] += time.perf_counter() - started

    return wrapper


def watch():
    """Time the stages of a suggestion."""
    for module in (learning, single):
        for name, stage in (("fit", "fit"), ("search", "acquisition")):
            setattr(module, name, timed(stage, getattr(module, name)))
    for name, lift in LIFTS.items():
        LIFTS[name] = timed("lift", lift)


def latent_dim(space):
    return 5 if space.startswith("sphere") else 3


def method(name, space):
    return {
        "GaBO": nb.GaBO(),
        "nested HD-GaBO": nb.HDGaBO(latent_dim(space), metric="isotropic"),
        "HD-GaBO": nb.HDGaBO(),
    }[name]


SPANNED = 9  # coordinates of the great sphere on which HD-GaBO begins; it has no other data


def history(space, n, trials, spanned=False):
    """Points (trials, n, *point), half of them near one point, and the values of a hidden function.

    Points that are ``spanned`` lie on a great sphere, as those of HD-GaBO do.
    """
    where, rng = nb.space(space), torch.Generator().manual_seed(0)
    hidden = nb.problem("rosenbrock", where, latent_dim=latent_dim(space), seed=0)
    centre = where.random(trials, 1, rng=rng).expand(trials, n - n // 2, *where.point_shape)
    near = where.project(where.exp(centre, 0.3 * where.random_tangent(centre, rng)))
    x = torch.cat([where.random(trials, n // 2, rng=rng), near], 1)
    if spanned:
        x[..., SPANNED:] = 0
        x = where.project(x)
    return where, hidden.objective, x, hidden.objective(x)


def measure(name, space, n, *, trials=1, repeats=12):
    """Seconds per suggestion of all trials together (median, mean), and the shares of the stages."""
    where, objective, x, y = history(space, n, trials, name == "HD-GaBO" and space.startswith("sphere"))
    strategy, memories, seconds = method(name, space), [[Memory()] * n for _ in range(trials)], []
    for k in range(repeats + 1):
        if k == 1:
            STAGES.clear()
        rngs = [torch.Generator().manual_seed(1000 * t + k) for t in range(trials)]
        started = time.perf_counter()
        point, found = strategy.propose(where, Runs(x, y, x[:, :0], rngs, memories))
        seconds.append(time.perf_counter() - started)
        x, y = torch.cat([x, point.unsqueeze(1)], 1), torch.cat([y, objective(point).unsqueeze(1)], 1)
        memories = [[*past, memory] for past, memory in zip(memories, found, strict=True)]
    total = sum(seconds[1:])
    shares = {stage: spent / total for stage, spent in STAGES.items()}
    return statistics.median(seconds[1:]), total / repeats, shares


def import_time():
    """Seconds of importing nestbo beyond torch, gpytorch and botorch."""
    code = (
        "import time, torch, gpytorch, botorch; t = time.perf_counter(); import nestbo; print(time.perf_counter() - t)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)]
    return statistics.median(float(run.stdout) for run in runs)


def memory():
    """Resident MB of a process with a study of 300 trials that has made a suggestion."""
    code = (
        "import torch, nestbo as nb; s = nb.Study(nb.Sphere(50), nb.HDGaBO(5), seed=0); "
        "[s.add(x, float(x[0])) for x in nb.Sphere(50).random(300, rng=torch.Generator().manual_seed(0))]; "
        "s.ask(); print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(run.stdout) / 1024


def exponent(cases):
    """The slope of log seconds over log size between the first and the last case."""
    (a, s), (b, t) = cases[0], cases[-1]
    return math.log(t / s) / math.log(b / a)


def report(quick):
    watch()
    repeats, found, lines = (3 if quick else 12), {}, []
    cases = [
        (name, space, n)
        for space in ("sphere:50", MATRICES)
        for name in ("nested HD-GaBO", "GaBO", "HD-GaBO")
        for n in (100, 300)
    ]
    cases += [("nested HD-GaBO", "sphere:500", 100)] + ([] if quick else [("nested HD-GaBO", "sphere:50", 2000)])
    lines += ["| what | n | target | median | mean | where the time goes |", "|---|---|---|---|---|---|"]
    for name, space, n in cases:
        median, mean, shares = measure(name, space, n, repeats=repeats if n < 1000 else 3)
        found[name, space, n] = median
        target = TARGETS.get((name, space, n))
        if name == "HD-GaBO":  # at most what its parts cost
            target = round(found["nested HD-GaBO", space, n] + found["GaBO", space, n], 2)
        goes = ", ".join(
            f"{stage} {share:.0%}" for stage, share in sorted(shares.items(), key=lambda s: -s[1]) if share > 0.02
        )
        lines.append(
            f"| {name}, {space} | {n} | {f'{target} s' if target else ''} | {median:.2f} s | {mean:.2f} s | {goes} |"
        )
        print(lines[-1], flush=True)
    together = [(b, measure("nested HD-GaBO", "sphere:50", 100, trials=b, repeats=repeats)[0]) for b in (1, 3, 10, 30)]
    data = [(n, found["nested HD-GaBO", "sphere:50", n]) for n in (100, 300)]
    wide = [(d, found["nested HD-GaBO", f"sphere:{d}", 100]) for d in (50, 500)]
    lines += [
        "",
        f"- growth: n^{exponent(data):.2f} between n = 100 and 300, D^{exponent(wide):.2f} between S^50 and S^500 "
        f"({wide[1][1] / wide[0][1]:.1f} times), trials^{exponent(together):.2f} between 1 and 30 advanced together "
        f"({', '.join(f'{b}: {t:.2f} s' for b, t in together)}).",
    ]
    lines += [
        f"- `import nestbo` beyond torch, gpytorch and botorch: {import_time():.2f} s; "
        f"a study of 300 trials on S^50 and its suggestion: {memory():.0f} MB resident in all, "
        f"this benchmark {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB."
    ]
    print("\n".join(lines[-2:]))
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    lines = report(given.quick)
    if not given.quick:
        before, mark, after = PAGE.read_text().partition("<!-- table -->")
        _, end, rest = after.partition("<!-- end -->")
        machine = f"torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}, one thread."
        PAGE.write_text(before + mark + "\n" + "\n".join([machine, "", *lines]) + "\n" + end + rest)


if __name__ == "__main__":
    main()
