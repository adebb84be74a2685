"""Tables of results, in Markdown."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import numpy as np

from nestbo.experiment.results import Results, Series
from nestbo.experiment.statistics import Row, rows, target
from nestbo.experiment.suites import Suite
from nestbo.experiment.tasks import Task
from nestbo.manifolds import SPD, Product, Space, Sphere, space
from nestbo.text import printable

_NAMES = {"styblinski-tang": "Styblinski–Tang", "product-of-sines": "Product of sines"}


def tables(found: Results, suite: Suite | None = None, goal: float | None = None) -> list[str]:
    """Lines: medians and ranks of all methods, then all numbers of each problem."""
    if not found:
        return ["Not yet measured."]
    each = {task: rows(methods, target(task.problem) if goal is None else goal) for task, methods in found.items()}
    lines = []
    for matrices in (False, True):
        some = {task: made for task, made in each.items() if task.matrices == matrices}
        lines += [*_medians(some, suite), ""] if some else []
    for task, made in each.items():
        wanted = target(task.problem) if goal is None else goal
        lines += [f"### {harmless(heading(task))}", "", *_numbers(made, suite, wanted), ""]
        lines += [harmless(_made(found[task], suite)), ""]
    return lines[:-1]


def _made(methods: Mapping[str, Series], suite: Suite | None) -> str:
    """Where the rows of a problem were made, and which of them by more than one version of the library."""
    devices = sorted({device for one in methods.values() for device in one.devices})
    mixed = [called(label, suite) for label, one in methods.items() if len(one.versions) > 1]
    more = f" Made by more than one version of the library: {', '.join(mixed)}." if mixed else ""
    return f"Run on {', '.join(devices)}.{more}"


def heading(task: Task) -> str:
    """A problem in words."""
    inside, outside = _shown(task)
    name = _NAMES.get(task.problem, task.problem.replace("-", " ").capitalize())
    noise = f", noise {task.noise:.0%}" if task.noise else ""
    return (f"{name}, {inside} in {outside}" if task.latent_dim else f"{name} on {outside}") + noise


def _shown(task: Task) -> tuple[str, str]:
    """The latent space and the whole one, as people write them."""
    found = space(task.space)
    if isinstance(found, SPD):
        return f"SPD({task.latent_dim})", f"SPD({found.n})"
    if isinstance(found, Sphere):
        return f"S^{task.latent_dim}", f"S^{found.n}"
    return "", " × ".join(map(_named, found.factors if isinstance(found, Product) else [found]))


def _named(factor: Space) -> str:
    if isinstance(factor, Sphere):
        return f"S^{factor.n}"
    return f"{type(factor).__name__}({factor.n if isinstance(factor, SPD) else factor.dim})"


def called(label: str, suite: Suite | None) -> str:
    """A method in words."""
    return label if suite is None or label not in suite.methods else suite.methods[label].about


def _medians(each: dict[Task, list[Row]], suite: Suite | None) -> list[str]:
    """Methods against problems: the median, the rank in brackets, and the mean of the ranks."""
    labels = list(dict.fromkeys(row.label for made in each.values() for row in made))
    if suite is not None:
        labels = [label for label in suite.methods if label in labels]
    lines = head("method", *(heading(task) for task in each), "mean rank")
    for label in labels:
        own = [next((row for row in made if row.label == label), None) for made in each.values()]
        ranks = [row.rank for row in own if row is not None and row.rank is not None]
        mean = f"{np.mean(ranks):.1f}" if ranks else ""
        lines.append(line(called(label, suite), *map(_median, own), mean))
    return lines


def _median(row: Row | None) -> str:
    if row is None:
        return ""
    found = row.clusters
    shown = f"{row.median:.3g}" if found is None else f"{found.share:.0%} below {found.between:.2g}"
    return shown + ("" if row.rank is None else f" ({row.rank})")


def _numbers(made: Sequence[Row], suite: Suite | None, goal: float) -> list[str]:
    """All numbers of a problem, the best method first."""
    words = ("rank", "method", "median", "95 % of the median", "quartiles", f"≤ {goal:g}", f"evaluations to {goal:g}")
    lines = head(*words, "p against the best (Holm)", "s per suggestion", "trials × evaluations")
    for row in sorted(made, key=lambda row: row.median):
        cells = (
            "" if row.rank is None else str(row.rank),
            called(row.label, suite),
            _middle(row),
            f"{row.interval[0]:.3g} to {row.interval[1]:.3g}",
            f"{row.quartiles[0]:.3g}, {row.quartiles[1]:.3g}",
            f"{row.success:.0%} ({row.likely[0]:.0%}, {row.likely[1]:.0%})",
            "" if row.reached is None else f"{row.reached:.0f}",
            "" if row.p is None else f"{row.p:.2g}",
            f"{row.pace:.2g}",
            f"{row.trials} × {row.evaluations}",
        )
        lines.append(line(*cells))
    return lines


def _middle(row: Row) -> str:
    """The median; of two clusters the share of trials in the lower one, since a median may lie between them."""
    if row.clusters is None:
        return f"{row.median:.3g}"
    low, high = row.clusters.likely
    return f"{row.clusters.share:.0%} ({low:.0%}, {high:.0%}) below {row.clusters.between:.2g}"


def head(*cells: str) -> list[str]:
    """The first two lines of a table."""
    return [line(*cells), "|" + "---|" * len(cells)]


def line(*cells: str) -> str:
    """A row of a table."""
    return "| " + " | ".join(map(harmless, cells)) + " |"


def harmless(text: str) -> str:
    """A text from a file for a page: no HTML, no end of a cell or of a line."""
    return html.escape(printable(text, keep=""), quote=False).replace("|", "\\|")
