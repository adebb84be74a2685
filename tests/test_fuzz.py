"""Bad inputs by the thousand: each ends in an error of ours, in one sentence, and leaves the file as it was.

Full run: more than 10,000 bad inputs; otherwise some hundred.
"""

import collections
import json
import os
import shutil
import sqlite3
import sys

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import nestbo as nb
from damage import sign
from nestbo.cli import app
from nestbo.manifolds import MANIFOLDS
from nestbo.problems import PROBLEMS
from nestbo.strategies import STRATEGIES

FULL = "--full" in sys.argv
BAD = collections.Counter()
CODES = (0, 1, 2)


def fuzzed(full, otherwise):
    return settings(
        max_examples=full if FULL else otherwise,
        deadline=None,
        derandomize=not FULL,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        database=None,
    )


def refused(kind, act):
    """Whether an act was refused, which it may be with an error of ours only."""
    try:
        act()
    except nb.NestboError:
        BAD[kind] += 1
        return True
    return False


# specifications

words = st.sampled_from(
    [
        *(*MANIFOLDS, *STRATEGIES, *":(),=:=. -+", "n", "p", "metric", "eigenvalues", "lower", "upper", "kernel"),
        *("latent_dim", "lift", "initial", "outputs", "metric", "exact", "priors", "noise", "matern52", "auto", "full"),
        *("none", "true", "nan", "inf", "-1", "0", "1", "2", "3", "2.5", "1e5", "1e400", "-0.0", "1_0", "٣", "½", "\0"),
        *("9" * 30, "9" * 400, "(sphere:2)", "\ud800", "\n", "0x1", "1e-320"),
    ]
)
specifications = st.one_of(
    st.text(max_size=30),
    st.lists(words, max_size=8).map("".join),
    st.tuples(st.sampled_from([*MANIFOLDS, *STRATEGIES]), st.lists(words, max_size=6).map("".join)).map(":".join),
    st.tuples(st.sampled_from([*MANIFOLDS, *STRATEGIES]), words, words).map(":".join),
)


@fuzzed(4000, 150)
@given(specifications)
def test_specifications(text):
    for read in (nb.space, nb.strategy):
        found = []
        if not refused("specification", lambda: found.append(read(text))):  # noqa: B023
            assert read(found[0].specification) == found[0]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@fuzzed(3000, 100)
@given(anything, anything, st.sampled_from(["add", "tell", "tell by trial", "ask", "run", "study", "space", "load"]))
def test_arguments_from_python(a, b, what):
    study = nb.Study(nb.Sphere(1), nb.RandomSearch())
    trial = study.ask()
    acts = {
        "add": lambda: study.add(a, b),
        "tell": lambda: study.tell(a, b),
        "tell by trial": lambda: study.tell(trial, a),
        "ask": lambda: study.ask(a if not isinstance(a, int) else -1),
        "run": lambda: study.run(a, b),
        "study": lambda: nb.Study(nb.Sphere(1), seed=a, noise=b),
        "space": lambda: nb.Sphere(a),
        "load": lambda: nb.Study.load(a),
    }
    before = [(t.index, t.status, t.value) for t in study.history]
    if refused("argument", acts[what]):
        assert [(t.index, t.status, t.value) for t in study.history] == before


# stores


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    for name, strategy in (("random", nb.RandomSearch()), ("gabo", nb.GaBO(initial=2))):
        with nb.Study(nb.Sphere(2), strategy, store=folder / f"{name}.db") as study:
            study.run(lambda x: float(x[0]) if x[1] > 0 else float("nan"), 6, progress=False)
            study.ask(2)
    return folder


def used(path):
    """Everything that one does with a study."""
    study = nb.Study.load(path)
    try:
        assert all(trial.x.isfinite().all() for trial in study.history)
        _ = (study.best, study.pending, study.times, repr(study))
        for trial in study.pending[:1]:
            study.tell(trial, 1.0)
        study.run(lambda x: float(x[0]), 1, progress=False)
    finally:
        study.close()


def damaged(folder, name, damage, kind):
    """Use a damaged copy of a store; before it is written to, an error leaves it as it was."""
    path = folder / "copy.db"
    for end in ("", "-wal", "-shm"):
        if os.path.exists(f"{path}{end}"):
            os.remove(f"{path}{end}")
    shutil.copy(folder / f"{name}.db", path)
    damage(path)
    before = path.read_bytes()

    def looked():
        with nb.Study.load(path) as study:
            _ = (study.history, study.best)

    if refused(kind, looked):
        assert path.read_bytes() == before
    else:
        refused(kind, lambda: used(path))


@st.composite
def damages(draw):
    """Bytes overwritten, cut off, or put in between."""
    where, length, what = draw(st.floats(0, 1)), draw(st.integers(1, 200)), draw(st.sampled_from("owzcia"))
    junk = draw(st.binary(min_size=length, max_size=length)) if what in "oia" else b"\0" * length

    def damage(path):
        data = path.read_bytes()
        at = int(where * len(data))
        tail = {"o": data[at + length :], "z": data[at + length :], "w": data[at + 4096 :], "c": b"", "i": data[at:]}
        path.write_bytes(data + junk if what == "a" else data[:at] + (b"" if what in "cw" else junk) + tail[what])

    return damage


@fuzzed(3000, 100)
@given(damages())
def test_damaged_bytes(folder, damage):
    damaged(folder, "random", damage, "bytes")


cells = st.one_of(
    st.none(),
    st.sampled_from(
        [0, -1, 2**63 - 1, -(2**63), 1e308, float("inf"), "", "nan", "{}", "[]", "null", "1", '{"lost": 3}']
    ),
    st.sampled_from(["asked", "told", "failed", "reserved", '"sphere:0"', '"maximize"', "1e999", "NaN", "[" * 2000]),
    st.sampled_from(["constraints", "noise", "violation", "lost", "failed"]).flatmap(
        lambda name: st.sampled_from([f'{{"{name}": {value}}}' for value in ("3", '"a"', "[3]", '["a"]', "null", "{}")])
    ),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=10),
    st.binary(max_size=40),
    anything.map(lambda value: json.dumps(value, default=repr)),
)
columns = st.sampled_from(
    ["number", "status", "x", "told", "memory", "owner", "asked_at", "told_at", "version", "revision"]
)
names = st.sampled_from(["space", "strategy", "seed", "direction", "noise", "nonsense"])


def changed(sql, *values):
    def damage(path):
        store = sqlite3.connect(path)
        store.execute("PRAGMA ignore_check_constraints = ON")
        try:
            store.execute(sql, values)
            sign(store)
            store.commit()
        except (sqlite3.Error, UnicodeEncodeError):
            pass  # what SQLite itself does not take
        finally:
            store.close()

    return damage


@fuzzed(3000, 100)
@given(columns, st.integers(0, 7), cells)
def test_damaged_trials(folder, column, number, cell):
    damaged(folder, "random", changed(f"UPDATE trials SET {column} = ? WHERE number = ?", cell, number), "trials")


@fuzzed(2000, 80)
@given(names, cells)
def test_damaged_settings(folder, name, cell):
    damaged(folder, "gabo", changed("INSERT OR REPLACE INTO settings VALUES (?, ?, x'')", name, cell), "settings")


# the command


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    (folder / "f.py").write_text("def f(x):\n    return x[0]\n")
    (folder / "notes.txt").write_text("no database\n")
    with nb.Study(nb.Sphere(2), nb.RandomSearch(), store=folder / "a.db") as study:
        study.run(lambda x: float(x[0]), 2, progress=False)
        study.ask(2)
    return folder


def content(folder):
    store = sqlite3.connect(folder / "a.db")
    rows = store.execute("SELECT * FROM trials").fetchall(), store.execute("SELECT * FROM settings").fetchall()
    assert store.execute("PRAGMA quick_check").fetchone() == ("ok",)
    store.close()
    return rows


def commanded(kind, folder, arguments, stdin=None):
    """A command that is refused says why in one line, changes nothing, and is never surprised."""
    before, here = content(folder), os.getcwd()
    os.chdir(folder)
    try:
        result = CliRunner(env={"COLUMNS": "100"}).invoke(app, arguments, input=stdin, prog_name="nestbo")
    finally:
        os.chdir(here)
    assert result.exit_code in CODES, (arguments, result.exit_code, result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), arguments
    assert "shows where" not in result.stderr, (arguments, result.stderr)
    assert "Traceback" not in result.output, (arguments, result.output)
    if result.exit_code:
        BAD[kind] += 1
        assert result.stderr.strip() or result.stdout.strip(), arguments
        assert content(folder) == before, arguments


texts = st.text(max_size=10).filter(lambda text: "\0" not in text)
values = st.one_of(
    texts,
    st.sampled_from(
        ["a.db", "b.db", "f.py", "notes.txt", ".", "nowhere/c.db", "f.py:f", "f.py:g", "problem:ackley", "-"]
    ),
    st.sampled_from([f"problem:{name}" for name in PROBLEMS] + ["problem:", "problem:ackley:latent_dim=9:seed=x"]),
    st.sampled_from(
        ["0", "1", "2", "-1", "1.5", "-2e-3", "nan", "inf", "1e999", "9" * 400, "sphere:2", "spd:2", "gabo"]
    ),
    st.sampled_from(["minimize", "csv", "jsonl", "manifolds", "convergence", "[0, 0, 1]", '{"index": 2, "value": 1}']),
)
options = st.sampled_from(
    [
        *(
            "--space",
            "--strategy",
            "--seed",
            "--direction",
            "--noise",
            "--json",
            "--failed",
            "--x",
            "--value",
            "--pending",
        ),
        *("--format", "--output", "-o", "-n", "--kind", "--help", "--store", "--quiet", "--numpy", "--nonsense", "--"),
    ]
)
commands = st.sampled_from(["new", "ask", "tell", "add", "show", "best", "export", "list", "run", "resume", "shwo"])


@fuzzed(3000, 100)
@given(commands, st.lists(st.one_of(values, options, st.just("a.db")), max_size=6))
def test_command_lines(bench, command, rest):
    for name in ("b.db", "b.db-wal", "b.db-shm"):
        (bench / name).unlink(missing_ok=True)
    commanded("command line", bench, [command, *rest])


objects = st.dictionaries(
    st.sampled_from(["index", "value", "failed", "x", "nonsense"]),
    st.one_of(
        anything.filter(lambda value: not isinstance(value, bytes)),
        st.sampled_from([0, 1, 4, 99, -1, True, 1.5, "1", [0, 0, 1], [0, 0, 2], [[0, 0, 1]], float("nan"), 10**400]),
    ),
    max_size=4,
).filter(lambda entry: entry.get("index") not in (2, 3))
inputs = st.one_of(
    st.text(max_size=30),
    objects.map(lambda value: json.dumps(value, default=repr)),
    st.lists(objects, max_size=3).map(lambda value: json.dumps(value, default=repr)),
    st.lists(objects, max_size=3).map(lambda value: "\n".join(json.dumps(entry, default=repr) for entry in value)),
    st.sampled_from(
        ["[" * 20_000, "9" * 10_000, '{"index": 1e999}', "NaN", "-", '"', "[]", '{"index":' * 2000, "\ufeff{}"]
    ),
)


@fuzzed(3000, 100)
@given(st.sampled_from(["tell", "add"]), inputs)
def test_json_inputs(bench, command, text):
    commanded("JSON", bench, [command, "a.db", "--json", "-"], stdin=text)


@pytest.mark.skipif(not FULL, reason="of the full run")
def test_there_were_enough_bad_inputs(capsys):
    with capsys.disabled():
        sys.stdout.write(f"\nbad inputs: {dict(BAD)}, {sum(BAD.values())} in all\n")
    assert sum(BAD.values()) >= 10_000
