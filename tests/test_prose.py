"""README, docs and docstrings are executed: what they say, happens."""

import doctest
import importlib
import importlib.util
import pkgutil
import re
from pathlib import Path

import pytest

import nestbo
from nestbo.kernels import KERNELS
from nestbo.manifolds import MANIFOLDS
from nestbo.nested import MAPPINGS
from nestbo.strategies import STRATEGIES
from nestbo.strategies.single import LIFTS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
EDGES = ("cli", "plots", "__main__")  # need packages of their own; they have tests of their own
MODULES = [m.name for m in pkgutil.walk_packages(nestbo.__path__, "nestbo.") if m.name.split(".")[1] not in EDGES]


@pytest.fixture
def registries():
    """A page may register things of its own; the next one starts afresh."""
    kept = [(registry, dict(registry)) for registry in (MANIFOLDS, MAPPINGS, KERNELS, LIFTS, STRATEGIES)]
    yield
    for registry, before in kept:
        registry.clear()
        registry.update(before)


@pytest.fixture
def uncompiled(monkeypatch):
    """BoTorch compiles no kernel, which takes a minute on a new machine and changes no result."""
    monkeypatch.setattr("botorch.acquisition.multi_objective.logei._load_attempted", True, raising=False)


@pytest.mark.usefixtures("registries", "uncompiled")
@pytest.mark.parametrize("page", [p for p in PAGES if BLOCK.search(p.read_text())], ids=lambda p: p.name)
def test_code_on_pages_runs(page, tmp_path, monkeypatch, capsys):
    """The blocks of a page run in order, in one namespace; a comment after a print says what it prints."""
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for code in BLOCK.findall(page.read_text()):
        exec(compile(code, str(page), "exec"), namespace)
        expected = re.findall(r"^ *print\(.*?\)  # (.+)$", code, re.MULTILINE)
        printed = capsys.readouterr().out.splitlines()
        assert [line for line in expected if line not in printed] == []


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_run(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_the_public_names_have_examples():
    """What a newcomer calls first shows how."""
    first = (nestbo.Study, nestbo.minimize, nestbo.space, nestbo.problem, nestbo.optimise.trust_region, nestbo.GaBO)
    assert [f.__name__ for f in first if ">>>" not in (f.__doc__ or "")] == []


def test_long_sentences_are_found_with_their_words_and_line():
    spec = importlib.util.spec_from_file_location("sentences", ROOT / "docs" / "sentences.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = """# A heading without an end

Three short words. As Li et al. write, [seven](words.md#there) `count` here!

| a cell | another one. And a third |
|---|---|

```python
many = "words that are code and do not count"
```

1. an item
2. another item
"""
    found = [(one.line, one.words) for one in module.sentences(page)]
    assert found == [(3, 3), (3, 8), (5, 2), (5, 2), (5, 3), (12, 2), (13, 2)]


def test_every_promise_is_held_by_a_test_that_exists():
    tests = "".join(path.read_text() for path in (ROOT / "tests").glob("test_*.py"))
    named = re.findall(r"`(?:\w+\.py::)?((?:test_|Test)\w+)`", (ROOT / "docs" / "promises.md").read_text())
    assert len(named) > 20
    assert [name for name in named if not re.search(rf"^ *(def|class) {name}\b", tests, re.MULTILINE)] == []
