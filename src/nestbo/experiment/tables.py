"""Tables of results, in Markdown, and the pages that hold them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from nestbo.errors import ArgumentError
from nestbo.experiment.results import Results, results
from nestbo.experiment.statistics import Row, rows, target
from nestbo.experiment.suites import SUITES, Suite, Task
from nestbo.files import written
from nestbo.manifolds import SPD, Manifold, Product, Sphere, space
from nestbo.text import printable

_BLOCK = re.compile(r"(<!-- results: ([-\w]+) -->\n).*?(<!-- end -->)", re.DOTALL)

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
        devices = sorted({device for one in found[task].values() for device in one.devices})
        lines += [
            f"### {_harmless(heading(task))}",
            "",
            *_numbers(made, suite, wanted),
            "",
            f"Run on {_harmless(', '.join(devices))}.",
            "",
        ]
    return lines[:-1]


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


def _named(factor: Manifold) -> str:
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
    lines = _head("method", *(heading(task) for task in each), "mean rank")
    for label in labels:
        own = [next((row for row in made if row.label == label), None) for made in each.values()]
        ranks = [row.rank for row in own if row is not None and row.rank is not None]
        mean = f"{np.mean(ranks):.1f}" if ranks else ""
        lines.append(_line(called(label, suite), *map(_median, own), mean))
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
    lines = _head(*words, "p against the best (Holm)", "s per suggestion", "trials × evaluations")
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
        lines.append(_line(*cells))
    return lines


def _middle(row: Row) -> str:
    """The median; of two clusters the share of trials in the lower one, since a median may lie between them."""
    if row.clusters is None:
        return f"{row.median:.3g}"
    low, high = row.clusters.likely
    return f"{row.clusters.share:.0%} ({low:.0%}, {high:.0%}) below {row.clusters.between:.2g}"


def _head(*cells: str) -> list[str]:
    return [_line(*cells), "|" + "---|" * len(cells)]


def _line(*cells: str) -> str:
    return "| " + " | ".join(map(_harmless, cells)) + " |"


def _harmless(text: str) -> str:
    """A text from a file for a page: no HTML, no end of a cell or of a line."""
    return html.escape(printable(text, keep=""), quote=False).replace("|", "\\|")


def report(places: Sequence[Path], page: Path) -> list[str]:
    """Write tables and figures of each suite between its marks on a page; returns the suites that were written.

    The marks are ``<!-- results: NAME -->`` and ``<!-- end -->``.
    """
    text = page.read_text(encoding="utf-8", errors="surrogateescape")
    names = [name for _, name, _ in _BLOCK.findall(text)]
    if not names or not set(names) <= set(SUITES):
        raise ArgumentError(
            f"{page} has no marks of suites ({', '.join(SUITES)}): <!-- results: paper --> <!-- end -->."
        )
    blocks = {name: _block(places, name, page.parent / "pictures") for name in names}
    with written(page) as file:
        file.write(_BLOCK.sub(lambda m: m[1] + blocks[m[2]] + m[3], text).encode("utf-8", "surrogateescape"))
    return names


def _block(places: Iterable[Path], name: str, pictures: Path) -> str:
    from nestbo.experiment.figures import figures

    suite = SUITES[name]
    found = results(places, suite)
    drawn = figures(found, pictures, suite, prefix=f"{name}-") if found else []
    shown = [f"![Regret along the evaluations, and at their end]({path.parent.name}/{path.name})\n" for path in drawn]
    return "\n".join(["", *shown, *tables(found, suite), "", ""])
