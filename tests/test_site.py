"""The documentation holds together: names, links, equations, messages; it builds, where mkdocs is installed."""

import ast
import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nestbo

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def named(text):
    """What a dotted name stands for: the longest module in it, and attributes of that."""
    parts = text.split(".")
    for length in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            thing = getattr(thing, part)
        return thing
    raise ModuleNotFoundError(text)


def prose(page):
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page):
    """Of its headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_links_lead_to_pages_and_headings():
    links = [
        (page, link) for page in PAGES for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)) if "://" not in link
    ]
    assert len(links) > 60
    broken = []
    for page, link in links:
        target, _, anchor = link.partition("#")
        file = page.parent / target if target else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append((page.name, link))
    assert broken == []


def test_pictures_say_in_words_what_they_show():
    pictures = [(page.name, alt) for page in PAGES for alt in re.findall(r"!\[([^\]]*)\]\(", prose(page))]
    assert pictures
    assert [name for name, alt in pictures if len(alt) < 10] == []


def test_the_navigation_names_pages_that_exist():
    pages = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(pages) == len(set(pages)) > 20
    assert [page for page in pages if not (DOCS / page).exists() and not (ROOT / page).exists()] == []


# the paper


def test_every_name_beside_the_paper_exists():
    names = re.findall(r"`(nestbo\.[\w.]+)`", prose(DOCS / "paper.md"))
    assert len(names) > 40
    for name in names:
        named(name)


def test_every_equation_and_algorithm_of_the_paper_has_a_line():
    tables = "\n".join(line for line in prose(DOCS / "paper.md").splitlines() if line.startswith("|"))
    equations = set()
    for first, _, last in re.findall(r"[Ee]qs?\. (\d+)((?:–| and )(\d+))?", tables):
        equations |= set(range(int(first), int(last or first) + 1))
    assert equations >= set(range(1, 20))
    assert {int(number) for number in re.findall(r"Algorithm (\d)", tables)} == {1, 2, 3, 4}


# the reference


def test_the_reference_names_things_that_exist_and_all_that_is_public():
    text = "".join(page.read_text() for page in sorted((DOCS / "reference").glob("*.md")))
    names = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    things = [named(name) for name in names]
    for name in nestbo.__all__:
        thing = getattr(nestbo, name)
        exception = inspect.isclass(thing) and issubclass(thing, Exception)  # those come with their module
        assert inspect.ismodule(thing) or exception or thing in things or sys.modules[thing.__module__] in things, (
            f"docs/reference lacks {name}"
        )


# errors


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("hooks", DOCS / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["hooks"] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    yield module
    del sys.modules["hooks"]


def test_every_exception_has_a_remedy(hooks):
    tables = [
        line.split("|")[1].strip(" `") for line in prose(DOCS / "errors.md").splitlines() if line.startswith("| `")
    ]
    assert set(hooks.errors()) <= set(tables)


def test_every_message_is_on_the_page(hooks):
    """As many as a plain search finds raised, none of them empty, each with its exception as a heading."""
    found = hooks.messages()
    pattern = re.compile(rf"raise (?:\w+\.)?({'|'.join(hooks.errors())})\(")
    sources = [path.read_text() for path in sorted(hooks.SOURCE.rglob("*.py"))]
    raised = sum(len(pattern.findall(text)) for text in sources)
    assert raised > 100
    calls = [call for text in sources for call in hooks.raised(ast.parse(text))]
    assert sum(getattr(call.func, "id", "") in hooks.errors() for call in calls) == raised
    assert [message for message in found if len(message.text.replace("…", "").split()) < 3] == []
    page = hooks.on_page_markdown((DOCS / "errors.md").read_text())
    assert hooks.MARK not in page
    for message in found:
        assert f"### {message.error}" in page
        assert hooks._plain(message.text) in page


def test_messages_are_read_from_every_form(hooks):
    text = """
def why(n):
    if n:
        return f"Port {n} is busy."
    return "No port."

def f(x):
    raise ArgumentError(why(x))
    raise ShapeError("a" if x else f"b {x}")
    raise KeyError("not ours")
"""
    tree = ast.parse(text)
    found = [hooks.texts(call.args[0], tree) for call in hooks.raised(tree)]
    assert [sorted(texts) for texts in found] == [["No port.", "Port … is busy."], ["a", "b …"], ["not ours"]]


# the site


def test_the_dialog_of_the_search_has_a_name(hooks):
    page = f"<div {hooks.DIALOG}>"
    assert hooks.on_post_page(page) == f'<div {hooks.DIALOG} aria-label="Search">'


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path, request):
    if not request.config.getoption("--full"):
        pytest.skip("takes long: --full, or make docs")
    pytest.importorskip("mkdocstrings", reason="needs the packages of nestbo[docs]; make docs does the same")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = [path.read_text() for path in (tmp_path / "site").glob("*.html")]
    assert len(pages) > 20
    loaded = [a for page in pages for a in re.findall(r'<(?:script|img|link|iframe)[^>]+(?:src|href)="([^"]+)"', page)]
    assert loaded
    assert [address for address in loaded if address.startswith(("http:", "https:", "//"))] == []
