"""The questions of ``nestbo new`` on a terminal: parameters with their kinds and bounds, direction, budget and noise.

The answers become text forms, the same that the options take.
"""

from __future__ import annotations

import keyword
import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import typer

from nestbo.cli.app import say
from nestbo.cli.records import number
from nestbo.errors import ArgumentError

T = TypeVar("T")
_COMMA, _SPECIAL = ",", ':()=,"'  # separate choices; mean something in a text form


@dataclass(frozen=True)
class Answers:
    """What a person wants, in the words of the options."""

    store: str
    space: str
    direction: str
    budget: int
    noise: str | None

    @property
    def command(self) -> str:
        """The command that does the same without questions."""
        words = ["nestbo", "new", self.store, "--space", self.space, "--budget", str(self.budget)]
        words += ["--direction", self.direction] if self.direction != "minimize" else []
        words += ["--noise", self.noise] if self.noise is not None else []
        return shlex.join(words)


def answers(vacant: Callable[[str], bool]) -> Answers:
    """Ask for everything that a study needs; ``vacant`` says whether a file can be made."""
    say("A new study, step by step. Ctrl-C leaves at any time, and no file is made. A parameter is one of these:")
    for key, (words, _) in KINDS.items():
        say(f"  {key}  {words}")
    store = _asked("File of the study", lambda text: _new(text, vacant), default="study.db")
    parameters: dict[str, str] = {}
    while name := _name(parameters):
        parameters[name] = _kind(name)
    space = "product:" + ":".join(f"({name}={text})" for name, text in parameters.items())
    direction = "maximize" if typer.confirm("Are large values good?", default=False, err=True) else "minimize"
    budget = _asked("How many evaluations can you afford in all?", _count, default="30")
    same = typer.confirm("Does the same point always give the same value?", default=True, err=True)
    return Answers(store, space, direction, budget, None if same else "infer")


def _asked(question: str, read: Callable[[str], T], default: str | None = None) -> T:
    """The answer to a question, asked again until it can be read."""
    while True:
        text = typer.prompt(question, default=default, show_default=bool(default), err=True)
        try:
            return read(str(text).strip())
        except ArgumentError as error:
            say(str(error))


def _new(text: str, vacant: Callable[[str], bool]) -> str:
    if not vacant(text):
        raise ArgumentError(f"{text} exists. Choose another name.")
    return text


def _name(taken: dict[str, str]) -> str:
    """The name of a parameter; empty when there are no more, and never for the first one."""
    more = " (Enter if there are no more)" if taken else ""

    def read(text: str) -> str:
        if (text or not taken) and (not text.isidentifier() or keyword.iskeyword(text)):
            raise ArgumentError(f"A name is one word of letters, digits and _, such as force, got {text!r}.")
        if text in taken:
            raise ArgumentError(f"There is a parameter {text} already. Choose another name.")
        return text

    return _asked(f"Name of parameter {len(taken) + 1}{more}", read, default="" if taken else None)


def _kind(name: str) -> str:
    """The text form of the space of a parameter."""

    def read(text: str) -> Callable[[], str]:
        if text not in KINDS:
            raise ArgumentError(f"Choose a number from 1 to {len(KINDS)}, got {text!r}.")
        return KINDS[text][1]

    return _asked(f"What is {name}? (1 to {len(KINDS)})", read)()


def _interval(form: str, convert: Callable[[str], float], least: float = -math.inf, what: str = "value") -> str:
    """A text form with a lower and an upper bound, above ``least``."""
    low = _asked(f"Lowest {what}", lambda text: _above(least, convert(text)))
    high = _asked(f"Highest {what}", lambda text: _above(low, convert(text)))
    return form.format(low=f"{low:.15g}", high=f"{high:.15g}")


def _above(least: float, found: float) -> float:
    if not least < found < math.inf:
        raise ArgumentError(f"Wanted a number above {least:g}, got {found:g}.")
    return found


def _whole(text: str) -> int:
    found = number(text)
    if not found.is_integer():
        raise ArgumentError(f"Wanted a whole number, got {text}.")
    return int(found)


def _count(text: str) -> int:
    if _whole(text) < 1:
        raise ArgumentError(f"Wanted a whole number of at least 1, got {text}.")
    return _whole(text)


def _words(text: str) -> str:
    """Values of a choice, as its text form has them."""
    found = [part.strip() for part in text.split(_COMMA)]
    different = len(found) >= 2 and len(set(found)) == len(found)
    plain = all(found) and not set("".join(found)) & set(_SPECIAL)
    if not (different and plain):
        raise ArgumentError(f"Wanted two or more different words with commas between them, got {text!r}.")
    return _COMMA.join(found)


def _choice() -> str:
    return f"choice:{_asked('Its values, with commas between them', _words)}"


def _shares() -> str:
    def several(text: str) -> int:
        if _count(text) < 2:
            raise ArgumentError(f"A mixture has at least two components, got {text}.")
        return _count(text)

    return f"simplex:{_asked('How many components?', several) - 1}"


def _matrix() -> str:
    rows = _asked("How many rows?", _count)
    return _interval(f"spd:{rows}:eigenvalues={{low}},{{high}}", number, 0, "eigenvalue")


KINDS: dict[str, tuple[str, Callable[[], str]]] = {
    "1": ("a number between two bounds", lambda: _interval("box:{low}:{high}", number)),
    "2": (
        "a positive number over several powers of ten",
        lambda: _interval("box:{low}:{high}:scale=log", number, 0),
    ),
    "3": ("a whole number", lambda: _interval("integer:{low}:{high}", _whole)),
    "4": ("one of several choices", _choice),
    "5": ("a direction in space", lambda: "sphere:2"),
    "6": ("an orientation in space (a rotation)", lambda: "quaternion"),
    "7": ("proportions of a mixture", _shares),
    "8": ("an angle", lambda: "torus:1"),
    "9": ("a symmetric positive definite matrix, such as a stiffness", _matrix),
}
