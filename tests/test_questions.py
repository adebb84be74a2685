"""``nestbo new`` on a terminal asks for what it needs, and on a pipe it does not."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import nestbo as nb
from nestbo.cli import questions
from nestbo.cli.questions import KINDS, Answers, answers

ALL = {  # what is answered after the kind: its text form
    "1": (["0", "40"], "box:0:40"),
    "2": (["0", "1e-6", "1"], "box:1e-06:1:scale=log"),
    "3": (["1.5", "1", "8"], "integer:1:8"),
    "4": (["soft", "soft,soft", "so:ft,b", "soft, hard"], "choice:soft,hard"),
    "5": ([], "sphere:2"),
    "6": ([], "quaternion"),
    "7": (["1", "3"], "simplex:2"),
    "8": ([], "torus:1"),
    "9": (["3", "-1", "0.1", "0.05", "5"], "spd:3:eigenvalues=0.1,5"),
}


@pytest.fixture
def typed(monkeypatch):
    """Answers in place of a keyboard; every one of them has to be used."""
    queue = []
    monkeypatch.setattr(questions.typer, "prompt", lambda *_, **__: queue.pop(0))
    monkeypatch.setattr(questions.typer, "confirm", lambda *_, **__: queue.pop(0) == "y")
    yield queue.extend
    assert queue == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_becomes_a_space_and_mistakes_are_asked_again(kind, typed):
    more, form = ALL[kind]
    typed(["taken.db", "s.db", "", "2nd", "if", "part", "x", kind, *more, "part", "", "n", "zero", "0", "12", "y"])
    found = answers(lambda path: path != "taken.db")
    assert found == Answers("s.db", f"product:(part={form})", "minimize", 12, None)
    assert nb.space(found.space).names == ("part",)


def test_the_command_without_questions_is_the_same(typed):
    typed(["my study.db", "a", "1", "0", "1", "b", "5", "", "y", "20", "n"])
    found = answers(lambda path: True)
    assert found.command == (
        "nestbo new 'my study.db' --space 'product:(a=box:0:1):(b=sphere:2)' --budget 20 --direction maximize "
        "--noise infer"
    )


def test_on_a_terminal_new_asks_and_makes_the_study(tmp_path):
    ours, theirs = pty.openpty()
    os.write(ours, b"s.db\nforce\n1\n0\n40\n\nn\n20\ny\n")
    command = [sys.executable, "-m", "nestbo", "new"]
    done = subprocess.run(command, stdin=theirs, capture_output=True, text=True, cwd=tmp_path, timeout=100)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    assert "nestbo new s.db --space 'product:(force=box:0:40)' --budget 20" in done.stderr
    with nb.Study.load(tmp_path / "s.db") as study:
        assert (study.space, study.settings["budget"]) == (nb.Product(force=nb.Box(0, 40)), 20)


@pytest.mark.parametrize(("arguments", "missing"), [([], "STORE"), (["s.db"], "--space SPACE")])
def test_on_a_pipe_new_says_what_is_missing(arguments, missing, tmp_path):
    command = [sys.executable, "-m", "nestbo", "new", *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=tmp_path, timeout=100)
    assert (done.returncode, done.stderr.startswith(f"{missing} is missing.")) == (2, True)
    assert list(Path(tmp_path).iterdir()) == []
