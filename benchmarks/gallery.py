"""The tables of docs/gallery, from what the suite applications left behind.

nestbo bench run --suite applications --trials 10 --jobs 16 --out DIR
python benchmarks/gallery.py DIR --machine "16-core CPU"

With --keep FILE the runs are written to one small file as well (values that methods reached, not every evaluation).
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import asdict
from pathlib import Path

import nestbo
from nestbo.experiment.applications import METHODS, Run, read
from nestbo.experiment.applications.tables import OURS, Row, compared, rows_of, table
from nestbo.experiment.statistics import FEWEST
from nestbo.gallery import CATALOGUE

PAGES = Path(__file__).parent.parent / "docs" / "gallery"
RIVALS = [name for name in METHODS if name not in (OURS, "nestbo-isotropic", "nestbo-box")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", type=Path, nargs="+", help="folders of results, or files that --keep wrote")
    parser.add_argument("--machine", required=True, help='such as "16-core CPU"')
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    runs = read(given.places)
    if given.keep:
        given.keep.write_text("\n".join(json.dumps(asdict(run) | {"values": []}) for run in runs) + "\n")
    for name in CATALOGUE:
        rows = rows_of([run for run in runs if run.application == name])
        if rows:
            put(PAGES / f"{name}.md", f"table {name}", [*table(rows), "", said(rows, name, given.machine)])
    put(PAGES / "index.md", "overview", [*overview(runs), "", counted(runs, given.machine)])


def said(rows: list[Row], name: str, machine: str) -> str:
    """With which command, budget and machine a table was made."""
    command = f"`nestbo bench run --suite applications --problems {name} --out DIR`"
    budget = rows[0].runs[0].budget
    made = f"{budget} evaluations each, one thread per run, nestbo {nestbo.__version__}"
    return f"{command}, {made}. Machine: {machine}."


def overview(runs: list[Run]) -> list[str]:
    """One line per application: the median of nestbo and of each rival on the better one of its coordinates."""
    head = [
        "application",
        "nestbo",
        *(METHODS[name].about for name in RIVALS),
        "nestbo against the best rival",
        "nestbo is worse than",
        "seeds",
    ]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    for name in CATALOGUE:
        rows = rows_of([run for run in runs if run.application == name])
        ours = next((row for row in rows if row.method == OURS), None)
        if ours is not None and any(row.method in RIVALS for row in rows):
            lines.append(f"| [{CATALOGUE[name].about}]({name}.md) | " + " | ".join(line(ours, rows)) + " |")
    return lines


def counted(runs: list[Run], machine: str) -> str:
    """How often nestbo is better than, level with and worse than a rival on one kind of coordinates, in words."""
    verdicts = []
    for name in CATALOGUE:
        rows = rows_of([run for run in runs if run.application == name])
        ours = next((row for row in rows if row.method == OURS), None)
        rivals = [row for row in rows if row.method in RIVALS] if ours else []
        verdicts += [verdict(ours, row) for row in rivals if ours is not None]
    better, level, worse = (verdicts.count(word) for word in ("better", "level", "worse"))
    unknown = len(verdicts) - better - level - worse
    return (
        f"Of {len(verdicts)} comparisons with one rival on one kind of coordinates, nestbo is better in {better}, "
        f"level in {level} and worse in {worse}; {unknown} have too few common seeds. "
        f"One thread per run, nestbo {nestbo.__version__}. Machine: {machine}."
    )


def line(ours: Row, rows: list[Row]) -> list[str]:
    """The cells of one application. Their number follows a median of too few runs for a test, which never leads."""
    rows = sorted(rows, key=lambda row: len(row.runs) < FEWEST)  # of equals the lowest median stays first
    best = [next((row for row in rows if row.method == name), None) for name in RIVALS]
    strongest = next(row for row in rows if row.method in RIVALS)
    leading = ours if ours.median <= strongest.median else strongest
    said = compared(ours, strongest) or "too few seeds to say"
    worse = [METHODS[row.method].about for row in rows if row.method in RIVALS and verdict(ours, row) == "worse"]
    ahead = ", ".join(dict.fromkeys(worse)) or "none"
    return [*(_cell(row, leading) for row in (ours, *best)), said, ahead, str(len(ours.runs))]


def verdict(ours: Row, other: Row) -> str:
    """One word: better, level or worse; nothing where there are too few common seeds."""
    return compared(ours, other).split(" ")[0]


def _cell(row: Row | None, leading: Row) -> str:
    if row is None:
        return "–"
    text = f"{row.median:.4g}"
    if len(row.runs) < FEWEST:
        return f"{text} ({len(row.runs)})"
    return f"**{text}**" if row is leading else text


def put(page: Path, mark: str, lines: list[str]) -> None:
    """Replace what is between a mark and the next end."""
    text = page.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- {re.escape(mark)} -->\n).*?(<!-- end -->)", re.DOTALL)
    page.write_text(pattern.sub(lambda m: m[1] + "\n".join(lines) + "\n\n" + m[2], text), encoding="utf-8")


if __name__ == "__main__":
    main()
