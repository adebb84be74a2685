"""Whether one method is better than another on the same seeds: Wilcoxon's signed-rank test."""

from collections import Counter
from collections.abc import Mapping
from statistics import median

from nestbo.experiment.statistics import FEWEST

LEVEL = 0.05


def verdict(own: Mapping[int, float], other: Mapping[int, float], smaller: bool) -> str:
    """A "win", "loss" or "tie" of values by seed, the ``smaller`` or the larger are better; "few" seeds say nothing."""
    seeds = sorted(own.keys() & other.keys())
    if len(seeds) < FEWEST:
        return "few"
    gains = [(other[seed] - own[seed]) * (1 if smaller else -1) for seed in seeds]
    if not any(gains):
        return "tie"
    from scipy.stats import wilcoxon  # which takes a second to import

    if wilcoxon(gains).pvalue >= LEVEL:
        return "tie"
    return "win" if median(gains) > 0 else "loss"


def counted(verdicts: Mapping[str, str]) -> str:
    """Verdicts by problem in words, the losses by name."""
    number = Counter(verdicts.values())
    lost = ", ".join(problem for problem, found in verdicts.items() if found == "loss")
    parts = [
        f"{number['win']} wins",
        f"{number['tie']} ties",
        f"{number['loss']} losses" + (f" ({lost})" if lost else ""),
    ]
    parts += [f"{number['few']} problems with fewer than {FEWEST} common seeds"] if number["few"] else []
    return ", ".join(parts)
