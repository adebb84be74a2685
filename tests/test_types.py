"""What editors and type checkers see: types, literals, and arguments that are documented one by one."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import nestbo as nb
from nestbo.acquisition import ACQUISITIONS
from nestbo.outputs import OUTPUTS
from nestbo.strategies import gabo, in_coordinates, options
from nestbo.strategies.coordinates import COORDINATES
from nestbo.strategies.single import LIFTS
from nestbo.surrogate import CRITERIA

SOURCE = Path(nb.__file__).parent
USER = Path(__file__).parent / "typed" / "user.py"
SECTION = re.compile(r"^(?:Args|Attributes):\n((?:    .*\n|\n)+)", re.MULTILINE)


def test_the_package_says_that_it_is_typed():
    assert (SOURCE / "py.typed").exists()


@pytest.mark.parametrize(
    ("literal", "known"),
    [
        (options.Acquisition, ACQUISITIONS),
        (options.Climb, gabo._CLIMBS),
        (options.Coordinates, COORDINATES),
        (options.CoordinateClimb, in_coordinates._CLIMBS),
        (options.Criterion, CRITERIA),
        (options.Metric, gabo.METRICS),
        (options.Outputs, (*OUTPUTS, "auto")),
        (options.Lift, LIFTS),
    ],
    ids=lambda each: "" if isinstance(each, dict | tuple) else str(each),
)
def test_literals_name_what_there_is(literal, known):
    assert set(get_args(literal)) == set(known)


def test_a_users_script_has_no_error_in_strict_mode(request, tmp_path):
    """``make check`` does the same with the cache of the package."""
    if not request.config.getoption("--full"):
        pytest.skip("a minute without a cache; --full runs it")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent", "--config-file", "", USER]
    done = subprocess.run(
        [*command, "--cache-dir", tmp_path], env={"MYPYPATH": str(SOURCE.parent)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def described(doc):
    """The arguments that a docstring of Google's style describes."""
    sections = SECTION.findall(f"{doc or ''}\n")
    return {name for section in sections for name in re.findall(r"^    \*{0,2}(\w+): \S", section, re.MULTILINE)}


def arguments(thing):
    return [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]


def undescribed(name):
    """Arguments of a public name, and of its public methods, that no docstring describes; a base class's counts."""
    thing = getattr(nb, name)
    if not inspect.isclass(thing):
        return (
            {name: left}
            if callable(thing) and (left := set(arguments(thing)) - described(inspect.getdoc(thing)))
            else {}
        )
    missing = {}
    if not inspect.isabstract(thing) and not issubclass(thing, BaseException):
        missing[name] = set(arguments(thing)) - described(inspect.getdoc(thing))
    for method, function in inspect.getmembers(thing, lambda each: inspect.isfunction(each) or inspect.ismethod(each)):
        if not method.startswith("_") and function.__module__.startswith("nestbo"):
            docs = [inspect.cleandoc(getattr(base.__dict__.get(method), "__doc__", "") or "") for base in thing.__mro__]
            missing[f"{name}.{method}"] = set(arguments(function)) - set().union(*map(described, docs))
    return {where: left for where, left in missing.items() if left}


@pytest.mark.parametrize("name", nb.__all__)
def test_every_argument_of_a_public_name_is_described(name):
    assert undescribed(name) == {}
