"""Pages of the documentation: what lies between their marks is written from files of results.

======================================= ==================================================================
``<!-- overview: NAME, NAME, … -->``    a row for each suite: on how many problems HD-GaBO is the best
``<!-- summary: NAME -->``              one table, one picture of profiles, and where another method is the best
``<!-- results: NAME -->``              all numbers and curves of a suite
======================================= ==================================================================

Each mark ends with ``<!-- end -->``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from nestbo.errors import ArgumentError
from nestbo.experiment.results import results
from nestbo.experiment.suites import SUITES
from nestbo.experiment.tables import tables
from nestbo.files import written

_BLOCK = re.compile(r"(<!-- (results|summary|overview): ([-\w]+(?:, [-\w]+)*) -->\n).*?(<!-- end -->)", re.DOTALL)

_REGRET = "Regret along the evaluations, and at their end"
_CURVES = (
    "*Regret is the distance of the best value so far to the known minimum. Left: its median over the trials, with a "
    "band between the quartiles. Right: where the trials ended. Further down, and further left, is better.*"
)
_SHARES = "*How many trials have come so far, as a mean over the problems. Further up, and further left, is better.*"


def report(places: Sequence[Path], page: Path) -> list[str]:
    """Write what a page holds between its marks; returns the suites that were written, each once."""
    text = page.read_text(encoding="utf-8", errors="surrogateescape")
    marks = [(kind, shown) for _, kind, shown, _ in _BLOCK.findall(text)]
    names = list(dict.fromkeys(name for kind, shown in marks for name in _suites(kind, shown)))
    if not names or not set(names) <= set(SUITES):
        raise ArgumentError(
            f"{page} has no marks of suites ({', '.join(SUITES)}): <!-- results: paper --> <!-- end -->. "
            "Other marks are summary and overview."
        )
    made = {mark: _KINDS[mark[0]](places, mark[1], page.parent / "pictures") for mark in marks}
    with written(page) as file:
        filled = _BLOCK.sub(lambda m: m[1] + made[m[2], m[3]] + m[4], text)
        file.write(filled.encode("utf-8", "surrogateescape"))
    return names


def _suites(kind: str, shown: str) -> list[str]:
    """The suites that a mark names: an overview may have several."""
    return shown.split(", ") if kind == "overview" else [shown]


def _details(places: Iterable[Path], name: str, pictures: Path) -> str:
    from nestbo.experiment.figures import figures

    suite = SUITES[name]
    found = results(places, suite)
    drawn = figures(found, pictures, suite, prefix=f"{name}-") if found else []
    shown = [f"![{_REGRET}]({path.parent.name}/{path.name})\n\n{_CURVES}\n" for path in drawn]
    return "\n".join(["", *shown, *tables(found, suite), "", ""])


def _summary(places: Iterable[Path], name: str, pictures: Path) -> str:
    from nestbo.experiment.figures import profile
    from nestbo.experiment.summary import hero, judged, summary

    suite = SUITES[name]
    found = judged(results(places, suite))
    shown = []
    if hero(found) is not None:
        path = profile(found, pictures / f"{name}-profile.png", suite)
        shown = [f"![Share of problems solved along the evaluations]({path.parent.name}/{path.name})\n\n{_SHARES}\n"]
    return "\n".join(["", *shown, *summary(found, suite), "", ""])


def _overview(places: Iterable[Path], names: str, pictures: Path) -> str:
    from nestbo.experiment.summary import judged, overview

    found = {name: judged(results(places, SUITES[name])) for name in _suites("overview", names)}
    return "\n".join(["", *overview(found), "", ""])


_KINDS = {"results": _details, "summary": _summary, "overview": _overview}
