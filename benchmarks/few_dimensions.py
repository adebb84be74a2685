"""How often models that compete are better, level or worse than an isotropic one, along the evaluations.

python benchmarks/few_dimensions.py

reads the suite few-dimensions in benchmarks/results/evidence, and prints a table of docs/hdgabo.md. Two methods differ
on a problem where the signed-rank test of the logarithms of their regret, paired by seed, has p below 5 %.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from scipy.stats import wilcoxon

from nestbo.experiment.results import results
from nestbo.experiment.suites import SUITES
from nestbo.experiment.tables import heading

RESULTS = Path(__file__).parent / "results" / "evidence"
COUNTS = (25, 55, 105, 205)
LEAST = 1e-12  # regret below which nothing differs
ALPHA, MUCH = 0.05, 1.5  # of p, and of a ratio of medians that is worth a name


def compared(ours: np.ndarray, theirs: np.ndarray) -> tuple[str, float]:
    """Better, level or worse, and the ratio of the medians."""
    ratio = float(np.median(ours) / np.median(theirs))
    differences = np.log(np.maximum(ours, LEAST)) - np.log(np.maximum(theirs, LEAST))
    if not differences.any() or wilcoxon(differences).pvalue >= ALPHA:
        return "level", ratio
    return ("better" if np.median(differences) < 0 else "worse"), ratio


def main() -> None:
    every = results([RESULTS], SUITES["few-dimensions"])
    for count in COUNTS:
        found, much = Counter(), []
        for task, methods in every.items():
            pair = [methods[label].best[:10] for label in ("hdgabo-auto", "gabo") if label in methods]
            if len(pair) < 2 or min(best.shape[1] for best in pair) < count:
                continue
            word, ratio = compared(*(best[:, count - 1] for best in pair))
            found[word] += 1
            much += [heading(task)] if ratio > MUCH else []
        print(f"after {count}: {dict(found)}, more than {MUCH} times as large: {', '.join(much)}")


if __name__ == "__main__":
    main()
