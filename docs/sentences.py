"""Sentences that are too long to understand at first reading, in README, CONTRIBUTING and the pages of docs.

python docs/sentences.py

prints each of them with its page and line. The exit status is 1 if there is one.

A sentence ends with a full stop, a question mark or an exclamation mark. Cells of tables, items of lists and paragraphs
end sentences as well. Code and addresses of links do not count.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LIMIT = 35  # words; beyond, readers begin again
ROOT = Path(__file__).resolve().parent.parent
NAMES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md")
_HIDDEN = re.compile(r"^```.*?^```|<!--.*?-->|^(?: {4}|\t)\S.*?$|(?<=\])\([^)\s]*\)", re.DOTALL | re.MULTILINE)
_BREAK = re.compile(r"\n\s*\n|^\s*(?:[-*]|\d+\.) |\||^#.*$", re.MULTILINE)
_END = re.compile(r"(?<=[.?!])(?<!\bal\.)(?<![Ee]q\.)[\"”*_)]*\s+")  # but for "et al." and "eq."
_WORD = re.compile(r"\w")


class Sentence(NamedTuple):
    """A sentence and the line on which its paragraph begins."""

    line: int
    text: str

    @property
    def words(self) -> int:
        """Strings between spaces that have a letter or a digit."""
        return sum(bool(_WORD.search(part)) for part in self.text.split())


def sentences(page: str) -> Iterator[Sentence]:
    """All sentences of a page in Markdown."""
    page = _HIDDEN.sub(lambda found: "\n" * found[0].count("\n"), page)
    start = 0
    for found in [*_BREAK.finditer(page), None]:
        paragraph = page[start : found.start() if found else len(page)]
        line = 1 + page.count("\n", 0, start + len(paragraph) - len(paragraph.lstrip()))
        yield from (Sentence(line, " ".join(text.split())) for text in _END.split(paragraph) if _WORD.search(text))
        start = found.end() if found else start


def pages() -> list[Path]:
    """The pages that are read."""
    return [path for name in NAMES for path in sorted(ROOT.glob(name))]


def main() -> int:
    """Print what is too long; 1 if something has to be changed."""
    long = [(path, one) for path in pages() for one in sentences(path.read_text("utf-8")) if one.words > LIMIT]
    for path, one in long:
        print(f"{path.relative_to(ROOT)}:{one.line}: {one.words} words: {one.text}")
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main())
