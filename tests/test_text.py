"""What a stranger's file, or a failing objective, says reaches people and programs as harmless text."""

import csv
import io
import json
import logging
import math
import subprocess
import sys
import unicodedata
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import nestbo as nb
from nestbo.cli import app
from nestbo.experiment import main
from nestbo.experiment.results import Record
from nestbo.progress import Bar, Lines, Reporter
from nestbo.report import page
from nestbo.text import cell, dumps, printable

CLEAR = "\x1b[2J\x1b]0;owned\x07"  # clears the screen, and renames the window
TURN = "\u202e"  # from here on to the left
EVIL = f"=cmd|' /C calc'!A0 {CLEAR}\x9b31m\x7f{TURN}\ud800\r\nbest   -999 (trial 7)<script>alert(1)</script>"
LIBRARY = files("nestbo.report").joinpath("vendor/plotly-basic.min.js").read_text(encoding="utf-8")
PLAIN = {"FORCE_COLOR": None, "GITHUB_ACTIONS": None, "PY_COLORS": None, "COLUMNS": "300"}

anything = st.text(st.characters(codec=None, categories=None, exclude_categories=()))
values = st.none() | st.booleans() | st.floats() | anything


def own(page):
    """A page without the library that draws its charts, which is checked by its checksum."""
    return page.replace(LIBRARY, "")


def obeyed(text):
    """The characters of a text that a terminal might obey, or that cannot be written at all."""
    kinds = {c: unicodedata.category(c) for c in set(text) - set("\n\u200c\u200d")}
    return {c for c, kind in kinds.items() if kind in ("Cc", "Cf", "Cs", "Zl", "Zp")}


class TestHarmless:
    @given(anything)
    def test_a_terminal_obeys_nothing(self, text):
        assert not obeyed(printable(text))
        assert "\n" not in printable(text, keep="")
        printable(text).encode()

    @given(anything.filter(str.isprintable))
    def test_what_can_be_shown_stays(self, text):
        assert printable(text) == text

    def test_letters_may_be_joined(self):
        assert printable("می‌خواهم 👩‍🔬") == "می‌خواهم 👩‍🔬"

    @given(anything)
    def test_a_spreadsheet_finds_no_formula(self, text):
        assert cell(text).lstrip()[:1] not in {*"=+-−@＝＋－＠\t\r"} - {""}
        assert not obeyed(cell(text))

    @pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "−1", "＝1", "\n=1"])
    def test_an_apostrophe_or_an_escape_stands_before_it(self, text):
        assert cell(text)[0] in "'\\"

    @given(st.recursive(values, lambda inner: st.lists(inner) | st.dictionaries(anything, inner)))
    def test_json_is_json(self, value):
        def refuse(name):
            raise AssertionError(name)

        text = dumps(value)
        assert not obeyed(text)
        assert "\n" not in text
        text.encode()
        json.loads(text, parse_constant=refuse)

    def test_numbers_that_json_lacks(self):
        assert dumps([math.inf, -math.inf, math.nan, 0.1]) == '["Infinity", "-Infinity", "NaN", 0.1]'

    @given(st.floats(allow_nan=False, allow_infinity=False), anything)
    def test_json_reads_back(self, number, text):
        found = json.loads(dumps({"number": number, "text": text}))
        assert found["number"] == number
        assert found["text"].encode("utf-16", "surrogatepass") == text.encode("utf-16", "surrogatepass")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A study whose every text is hostile."""
    path = tmp_path_factory.mktemp("hostile") / "evil\x1b[2J.db"
    with nb.Study(nb.Sphere(2), nb.GaBO(initial=2), store=path) as study:
        study.ask(4)
        for index in (0, 1):
            study.tell(index, failed=EVIL)
        study.tell(2, 0.5, constraints=[-0.5])
        study.tell(3, 0.25, constraints=[1.5])
        study.remember(objective=f"{CLEAR}.py:f", budget=12, numpy=False, **{f"extra{CLEAR}": f"\ud800{TURN}"})
    return path


def invoke(*arguments, code=0):
    result = CliRunner(env=PLAIN).invoke(app, [str(a) for a in arguments], prog_name="nestbo")
    assert result.exit_code == code, result.output
    return result


class TestOnTheTerminal:
    @pytest.mark.parametrize(
        "arguments",
        [
            ["show"],
            ["show", "--json"],
            ["best"],
            ["best", "--json"],
            ["ask"],
            ["ask", "--pending"],
            ["export"],
            ["export", "-f", "jsonl"],
            ["report", "-o", "-"],
        ],
        ids=" ".join,
    )
    def test_nothing_is_obeyed(self, hostile, arguments):
        command, *rest = arguments
        result = invoke(command, hostile, *rest)
        assert not obeyed(own(result.stdout))
        assert not obeyed(result.stderr)

    @pytest.mark.parametrize("command", ["resume", "tell", "add", "plot"])
    def test_nor_in_messages(self, hostile, command):
        options = {"plot": ["-o", "a.xyz"], "tell": ["0", "1"], "add": ["--x", '"\x1b[2J"', "--value", "1"]}
        result = invoke(command, hostile, *options.get(command, []), code=2)
        assert len(result.stderr.splitlines()) == 1
        assert not obeyed(result.stderr)

    def test_a_reason_cannot_pose_as_a_line_of_its_own(self, tmp_path):
        nb.Study(nb.Sphere(2), nb.RandomSearch(), store=tmp_path / "a.db").ask()
        said = invoke("tell", tmp_path / "a.db", "0", "--failed", "why\nTrial 1: 0.0. Best: 0.0 (trial 1).").stderr
        assert len(said.splitlines()) == 1
        (tmp_path / "f.py").write_text("def f(x):\n    raise ValueError('no sensor\\n1 of 1 went well')")
        said = invoke("resume", tmp_path / "a.db", f"{tmp_path}/f.py:f", "--budget", 2, code=1).stderr
        assert "no sensor\\n1 of 1 went well" in said

    def test_what_is_shown_is_what_it_was(self, hostile):
        assert "=cmd|' /C calc'!A0 \\x1b[2J\\x1b]0;owned\\x07" in invoke("show", hostile).stdout

    def test_a_terminal_without_these_letters(self, hostile):
        command = [sys.executable, "-m", "nestbo", "show", str(hostile)]
        env = {"PYTHONIOENCODING": "ascii", "PATH": "", "PYTHONPATH": ":".join(sys.path)}
        done = subprocess.run(command, capture_output=True, env=env, timeout=120)
        assert (done.returncode, done.stderr) == (0, b"")

    @pytest.mark.parametrize("make", [Reporter, Lines, Bar])
    def test_progress(self, make, capsys):
        reporter = make()
        with reporter.watching(1):
            reporter.waiting(f"[red]{CLEAR}[/nothing]")
        err = capsys.readouterr().err
        assert "[red]" in err
        assert "\x1b[2J" not in err

    def test_the_version_of_a_file(self, tmp_path, caplog):
        with nb.Study(nb.Sphere(2), nb.RandomSearch(), store=tmp_path / "a.db") as study:
            study.remember(nestbo=f"9{CLEAR}\n")
        with caplog.at_level(logging.WARNING), nb.Study.load(tmp_path / "a.db") as study:
            study.ask()
        assert "nestbo 9\\x1b" in caplog.text
        assert "\x1b" not in caplog.text

    @pytest.mark.parametrize("settings", [{"objective": 3, "budget": 5}, {"objective": "f.py:f", "budget": "many"}])
    def test_settings_of_other_kinds(self, settings, tmp_path):
        with nb.Study(nb.Sphere(2), nb.RandomSearch(), store=tmp_path / "a.db") as study:
            study.remember(**settings)
        assert "remembers no" in invoke("resume", tmp_path / "a.db", code=2).stderr


class TestInFiles:
    def test_a_spreadsheet(self, hostile, tmp_path):
        for text in (invoke("export", hostile).stdout, self.written(hostile, tmp_path, "a.csv", "export")):
            rows = list(csv.DictReader(io.StringIO(text)))
            assert rows[0]["failed"].startswith("'=cmd")
            numbers = [value for row in rows for name, value in row.items() if name.startswith(("x", "constraint"))]
            assert [float(value) for value in numbers if value]  # numbers below zero stay numbers
            assert rows[2]["constraint0"] == "-0.5"

    def test_lines_of_json(self, hostile, tmp_path):
        text = self.written(hostile, tmp_path, "a.jsonl", "export", "-f", "jsonl")
        assert json.loads(text.splitlines()[0])["notes"]["failed"] == EVIL

    def test_infinity_is_no_json(self, tmp_path):
        def refuse(name):
            raise AssertionError(name)

        constraints = lambda x: float("inf") if x[0] > 0 else -float("inf")
        with nb.Study(nb.Sphere(1), nb.RandomSearch(), store=tmp_path / "a.db", constraints=constraints) as study:
            study.add([-1.0, 0.0], 1.0)
        for arguments in (["export", "-f", "jsonl"], ["show", "--json"]):
            command, *rest = arguments
            text = invoke(command, tmp_path / "a.db", *rest).stdout
            json.loads(text, parse_constant=refuse)
            assert '"violation": "Infinity"' in text

    def test_a_page(self, hostile, tmp_path):
        text = own(self.written(hostile, tmp_path, "a.html", "report"))
        assert not obeyed(text)
        assert "<script>alert" not in text
        assert "=cmd|&#39; /C calc" in text
        with nb.Study.load(hostile) as study:
            assert not obeyed(own(page(study, name=f"{CLEAR}\ud800", facts={CLEAR: TURN})))

    def test_a_page_again(self, hostile, tmp_path):
        first = self.written(hostile, tmp_path, "a.html", "report")
        assert self.written(hostile, tmp_path, "a.html", "report")[:2000] == first[:2000]

    def written(self, hostile, tmp_path, name, command, *rest):
        invoke(command, hostile, *rest, "-o", tmp_path / name)
        return (tmp_path / name).read_bytes().decode()


class TestResults:
    """Files of benchmark results travel, too."""

    def test_tables(self, tmp_path, capsys):
        about = {"problem": f"ackley{CLEAR}", "space": "sphere:5", "latent_dim": 2, "seeds": [0], "optimum": 0.0}
        about |= {"method": "gabo", "label": f"{CLEAR}| <script>", "device": f"cpu{CLEAR}\n<script>"}
        record = Record(about, np.ones((1, 8)), np.full((1, 8), ""), np.ones(8))
        record.write(tmp_path / "a.npz")
        main(["table", str(tmp_path)])
        said = capsys.readouterr().out
        assert not obeyed(said)
        assert "<script>" not in said
        assert len({line.replace("\\|", "").count("|") for line in said.splitlines() if "median" in line}) == 1
