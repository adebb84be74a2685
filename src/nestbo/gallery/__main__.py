"""``python -m nestbo.gallery``: run examples at a small budget, each in its own process, and draw their pictures."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from nestbo.gallery.catalogue import CATALOGUE, entry, load
from nestbo.study import Study


def main() -> None:
    """Run the examples that the command line names; those whose packages are missing are named, not run."""
    given = _parser().parse_args()
    names = given.names or list(CATALOGUE)
    if given.here:
        run(names[0], given.budget, given.seed, given.out)
        return
    wrong = [name for name in names if not _apart(name, given)]
    if wrong:
        sys.exit(f"not done: {', '.join(wrong)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m nestbo.gallery", description=__doc__)
    parser.add_argument("names", nargs="*", help="examples; all of them by default")
    parser.add_argument("--budget", type=int, default=20, help="evaluations of each; 0 is the example's own number")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("demo/gallery"), help="the folder of studies and pictures")
    parser.add_argument("--here", action="store_true", help="run one example, in this process")
    return parser


def _apart(name: str, given: argparse.Namespace) -> bool:
    """One example in a process of its own; False if it failed or its packages are missing."""
    missing = entry(name).missing
    if missing:
        _say(f"{name}: pip install {' '.join(missing)}, or pip install 'nestbo[gallery]'")
        return False
    options = ["--budget", str(given.budget), "--seed", str(given.seed), "--out", str(given.out)]
    return subprocess.run([sys.executable, "-m", "nestbo.gallery", "--here", name, *options]).returncode == 0


def run(name: str, budget: int, seed: int, out: Path) -> None:
    """Run one example, or go on with it; write its study, its picture and its thumbnail."""
    from nestbo.gallery.pictures import chosen, draw, thumbnail

    began, application = time.perf_counter(), load(name)
    out.mkdir(parents=True, exist_ok=True)
    with Study(application.space, seed=seed, store=out / f"{name}.db", **application.settings()) as study:
        study.run(application.objective, budget=budget or application.budget, progress=False, numpy=True)
        draw(application, study).savefig(out / f"{name}.png", dpi=80)
        shown = chosen(study)
        if shown is not None:
            thumbnail(application, study).savefig(out / f"{name}-small.png", dpi=50)
        best = "nothing allowed was found" if shown is None else f"{application.value} {shown.values[0]:.5g}"
        seconds = time.perf_counter() - began
        _say(f"{name}: {best} after {len(study.history)} evaluations, {seconds:.0f} s, {out / name}.png")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
