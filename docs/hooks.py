"""What ``mkdocs build`` does besides: pages from the root of the repository, and the list of all error messages.

Nothing here needs mkdocs; the tests use it without.
"""

from __future__ import annotations

import ast
import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "nestbo"
FROM_ROOT = ("CONTRIBUTING.md", "CHANGELOG.md")
MARK = "<!-- messages -->"
DIALOG = 'data-md-component="search" role="dialog"'  # of the theme, which gives it no name for a screen reader


@dataclass(frozen=True)
class Message:
    """A sentence that nestbo may raise, with … for what depends on the case."""

    error: str
    text: str
    where: str


def version() -> str:
    """Of nestbo, as the package has it."""
    found = re.search(r'^__version__ = "(.+)"$', (SOURCE / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else "of an unknown version"


def on_config(config: Any) -> Any:
    """Each page tells its version; pages that ``nav`` does not name go to its end, under More.

    If mike builds the site, which keeps several versions of it, each page has a menu of versions.
    """
    config["copyright"] = f"nestbo {version()}. In the source of another version, make docs builds its own pages."
    if "MIKE_DOCS_VERSION" in os.environ:
        config["extra"]["version"] = {"provider": "mike"}
    named = str(config["nav"])
    more = [page.name for page in sorted((ROOT / "docs").glob("*.md")) if f"'{page.name}'" not in named]
    if more:
        config["nav"].append({"More": more})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that live beside docs/."""
    from mkdocs.structure.files import File

    for name in FROM_ROOT:
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to those pages, and the messages where they are wanted."""
    for name in FROM_ROOT:
        markdown = markdown.replace(f"](../{name}", f"]({name}")
    return markdown.replace(MARK, listed(messages()))


def on_post_page(output: str, **_: Any) -> str:
    """The dialog of the search has a name."""
    return output.replace(DIALOG, f'{DIALOG} aria-label="Search"')


def errors() -> list[str]:
    """The names of nestbo's exceptions."""
    tree = ast.parse((SOURCE / "errors.py").read_text(encoding="utf-8"))
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


def messages() -> list[Message]:
    """Everything that nestbo raises on purpose, in the order of modules."""
    known, found = set(errors()), []
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        where = path.relative_to(SOURCE.parent).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
        for call in raised(tree):
            name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
            if name in known:
                said = [
                    text for text in texts(call.args[0], tree) if text != "…"
                ]  # what a method of another class says
                found += [Message(name, text, where) for text in said]
    return list(dict.fromkeys(found))


def raised(tree: ast.AST) -> Iterator[ast.Call]:
    """The calls after ``raise``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield node.exc


def texts(node: ast.expr, tree: ast.AST) -> list[str]:
    """The texts that an expression may be: an f-string, either side of a choice, or what a function here returns."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.JoinedStr):
        parts = [texts(v, tree) if isinstance(v, ast.Constant) else ["…"] for v in node.values]
        return ["".join(choice) for choice in itertools.product(*parts)]
    if isinstance(node, ast.IfExp):
        return texts(node.body, tree) + texts(node.orelse, tree)
    if isinstance(node, ast.BinOp):
        return [a + b for a in texts(node.left, tree) for b in texts(node.right, tree)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        returned = [n.value for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.name == node.func.id
                    for n in ast.walk(f) if isinstance(n, ast.Return) and n.value is not None]  # fmt: skip
        return [text for value in returned for text in texts(value, tree)] or ["…"]
    return ["…"]


def listed(found: list[Message]) -> str:
    """The messages as a list, by exception."""
    lines = []
    for error in errors():
        own = [message for message in found if message.error == error]
        if own:
            lines += ["", f"### {error}", ""]
            lines += [f"- {_plain(message.text)} <small>`{message.where}`</small>" for message in own]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """A text that Markdown leaves alone."""
    for sign in "\\`*_{}[]<>#|":
        text = text.replace(sign, f"\\{sign}")
    return text
