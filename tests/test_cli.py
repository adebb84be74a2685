"""The command: what it prints, where, and with which exit code."""

import csv
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import nestbo as nb
from nestbo.cli import app, objective
from nestbo.cli.topics import TOPICS
from nestbo.study.light import Light

TUTORIAL = Path(__file__).parent.parent / "docs" / "tutorial.md"
FUNCTIONS = """
import numpy as np
print("loaded")

def height(x):
    print("evaluating")
    return x[0] + 0.1 * x[1]

def array(x):
    assert isinstance(x, np.ndarray)
    return x[0]

def broken(x):
    raise OSError("no sensor")

def sometimes(x):
    if x[0] > 0:
        raise OSError("no sensor")
    return x[0]

def leaving(x):
    raise SystemExit(3)

constant = 3
"""
PLAIN = {"FORCE_COLOR": None, "GITHUB_ACTIONS": None, "PY_COLORS": None, "COLUMNS": "100"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("f.py").write_text(FUNCTIONS)
    return tmp_path


def invoke(*arguments, code=0, stdin=None, **env):
    result = CliRunner(env={**PLAIN, **env}).invoke(app, [str(a) for a in arguments], input=stdin, prog_name="nestbo")
    assert result.exit_code == code, result.output
    return result


def said(*arguments, code=2):
    """The message about a mistake: one line on stderr, no traceback, nothing on stdout."""
    result = invoke(*arguments, code=code)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) == 1, result.stderr
    return result.stderr


def trials(store):
    return [json.loads(line) for line in invoke("export", store, "--format", "jsonl").stdout.splitlines()]


def data(store):
    return [(row["index"], row["status"], row["value"], row["x"]) for row in trials(store)]


def run(store, budget=3, what="f.py:height", strategy="randomsearch", code=0, **env):
    options = ("--space", "sphere:2", "--strategy", strategy, "--budget", budget, "--store", store)
    return invoke("run", what, *options, code=code, **env)


# run and resume


def test_run_prints_the_best_and_keeps_its_prints_apart():
    result = run("a.db")
    assert re.fullmatch(r"best   \S+ \(trial \d\)\nx      \[.*\]\n", result.stdout)
    assert "loaded" in result.stderr
    assert "evaluating" in result.stderr
    assert "3/3 evaluations" in result.stderr
    study = nb.Study.load("a.db")
    assert len(study.history) == 3
    assert all(trial.value == (trial.x[0] + 0.1 * trial.x[1]).item() for trial in study.history)


def test_run_equals_the_study_in_python():
    run("a.db", 5, strategy="gabo:initial=3")
    study = nb.Study(nb.Sphere(2), nb.GaBO(initial=3)).run(lambda x: x[0] + 0.1 * x[1], 5, progress=False)
    assert data("a.db") == [(t.index, t.status, t.value, t.x.tolist()) for t in study.history]


def test_run_without_a_store_keeps_nothing(folder):
    before = {path.name for path in folder.iterdir()}
    arguments = ("run", "f.py:array", "--numpy", "--space", "sphere:2", "--strategy", "randomsearch", "--budget", 2)
    result = invoke(*arguments, "--json", "--quiet")
    assert set(json.loads(result.stdout)) == {"index", "value", "x"}
    assert result.stderr == "loaded\n"
    assert {path.name for path in folder.iterdir()} - before <= {"__pycache__"}


@pytest.mark.parametrize("what", ["problem:ackley", "problem:ackley:latent_dim=1:seed=7"])
def test_run_a_benchmark_problem(what):
    run("a.db", what=what)
    where = nb.Sphere(2)
    expected = nb.problem("ackley", where, latent_dim=1, seed=7) if "latent" in what else nb.problem("ackley", where)
    for row in trials("a.db"):
        assert row["value"] == expected.objective(torch.tensor(row["x"], dtype=torch.float64)).item()
    invoke("resume", "a.db", "--budget", 4)
    assert len(trials("a.db")) == 4


def test_run_maximises_and_knows_the_noise():
    options = ("--space", "sphere:1", "--strategy", "randomsearch", "--budget", 4, "--store", "a.db")
    result = invoke("run", "f.py:height", *options, "--direction", "maximize", "--noise", 0.01, "--seed", 3, "--json")
    assert json.loads(result.stdout)["value"] == max(row["value"] for row in trials("a.db"))
    study = nb.Study.load("a.db")
    assert (study.direction, study.noise, study.seed) == ("maximize", 0.01, 3)


def test_failures_are_recorded_and_the_run_goes_on():
    result = run("a.db", 6, "f.py:sometimes")
    rows = trials("a.db")
    failed = [row for row in rows if row["status"] == "failed"]
    assert 0 < len(failed) < 6
    assert all(row["notes"]["failed"] == "OSError: no sensor" for row in failed)
    assert f"{len(failed)} of 6 evaluations failed; the last: OSError: no sensor" in result.stderr


@pytest.mark.parametrize("name", ["broken", "leaving"])
def test_a_run_without_any_number_fails(name):
    result = run("a.db", 2, f"f.py:{name}", code=1)
    assert result.stdout == ""
    assert "None of 2 evaluations gave a number" in result.stderr
    assert "Traceback" not in result.stderr
    assert len(trials("a.db")) == 2


def test_resume_remembers_and_equals_the_straight_run(folder, monkeypatch):
    run("straight.db", 7, strategy="gabo:initial=3")
    run("a.db", 4, strategy="gabo:initial=3")
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    message = invoke("resume", "../a.db", "--budget", 7).stderr
    assert "Continuing with ../f.py:height, 7 evaluations in all." in message
    monkeypatch.chdir(folder)
    assert data("a.db") == data("straight.db")
    again = invoke("resume", "a.db", "--quiet")
    assert again.stdout == invoke("best", "a.db").stdout
    assert len(data("a.db")) == 7


def test_resume_takes_over_a_study_begun_by_hand():
    invoke("new", "a.db", "--space", "sphere:2", "--strategy", "randomsearch")
    invoke("add", "a.db", "--x", "[0, 0, 1]", "--value", 5)
    assert "remembers no objective" in said("resume", "a.db")
    assert "remembers no budget" in said("resume", "a.db", "f.py:array")
    invoke("resume", "a.db", "f.py:array", "--numpy", "--budget", 3)
    invoke("resume", "a.db", "--budget", 4)
    assert [row["status"] for row in trials("a.db")] == ["told"] * 4


SLOW = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)

def f(x):
    with open("calls", "a") as file:
        file.write("called\\n")
    time.sleep(0.2 if len(open("calls").readlines()) < 4 else 60)
    return x[0]

def quick(x):
    return x[0]
"""


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_an_interrupted_run_exits_with_130_and_is_resumed():
    Path("slow.py").write_text(SLOW)
    command = [sys.executable, "-m", "nestbo", "run", "slow.py:f", "--space", "sphere:2", "--budget", "6"]
    command += ["--strategy", "gabo:initial=3", "--store", "a.db", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    ) as process:
        wait_for(lambda: Path("calls").exists() and len(Path("calls").read_text().splitlines()) == 4)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "interrupted; everything told is kept" in stderr
    assert "Traceback" not in stderr
    assert json.loads(stdout)["value"] == min(row["value"] for row in trials("a.db")[:3])
    assert [row["status"] for row in trials("a.db")] == ["told"] * 3 + ["asked"]
    invoke("resume", "a.db", "slow.py:quick")
    run("straight.db", 6, "slow.py:quick", "gabo:initial=3")
    assert data("a.db") == data("straight.db")


@pytest.mark.parametrize("arguments", [("ask", "a.db"), ("list", "kernels")])
def test_ctrl_c_anywhere_is_130(arguments, monkeypatch):
    run("a.db")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("nestbo.cli.evaluations.put", interrupt)
    monkeypatch.setattr("nestbo.cli.looking.check_known", interrupt)
    assert "Interrupted" in said(*arguments, code=130)


# what is wrong, and with which words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "f.py:heigt"], "Did you mean 'height'?"),
        (["run", "f.py:constant"], "f.py has no function"),
        (["run", "f.py"], "FILE.py:function or problem:NAME, got 'f.py'"),
        (["run", "g.py:height"], "there is no file g.py"),
        (["run", "problem:akley"], "Did you mean 'ackley'?"),
        (["run", "problem:ackley:latent_dim=9:seed=1"], "from 1 to 2, got 9"),
        (["run", "problem:ackley:nonsense=9"], "nonsense"),
        (["run", "problem:ackley", "--numpy"], "--numpy is for functions of your own"),
        (["run", "f.py:height", "--space", "spere:2"], "Did you mean 'sphere'?"),
        (["run", "f.py:height", "--space", "sphere:0"], "got 0"),
        (["run", "f.py:height", "--strategy", "gambo"], "Did you mean 'gabo'?"),
        (["run", "f.py:height", "--strategy", "gabo:kernel=mattern52"], "matern52"),
        (["run", "f.py:height", "--direction", "maximise"], "Did you mean 'maximize'?"),
        (["run", "f.py:height", "--noise", "-1"], "positive variance"),
        (["run", "f.py:height", "--budget", "0"], "--budget"),
        (["run", "f.py:height", "--budget", "many"], "--budget"),
        (["run", "f.py:height", "--seed", "-1"], "--seed"),
        (["run", "f.py:height", "--store", "f.py"], "exists. nestbo resume"),
        (["run", "f.py:height", "--bugdet", "3"], "--budget"),
    ],
)
def test_mistakes_of_run(arguments, words):
    options = {"--space": "sphere:2", "--budget": "2"}
    given = [part for pair in options.items() if pair[0] not in arguments for part in pair]
    result = invoke(*arguments, *given, "--quiet", code=2)
    message = result.stderr.removeprefix("loaded\n")
    assert words in message
    assert len(message.splitlines()) == 1, message
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["shwo", "a.db"], "'show'"),
        (["show"], "STORE"),
        (["show", "b.db"], "no study at b.db"),
        (["show", "a.db", "--jsn"], "--json"),
        (["export", "a.db", "--format", "cvs"], "Did you mean 'csv'?"),
        (["list", "manifold"], "Did you mean 'manifolds'?"),
        (["plot", "a.db", "--kind", "convergense", "-o", "a.png"], "Did you mean 'convergence'?"),
        (["plot", "a.db", "-o", "a.pgn"], "pgn"),
        (["ask", "a.db", "-n", "0"], "-n"),
        (["tell", "a.db", "0", "1"], "told already"),
        (["tell", "a.db", "9", "1"], "no trial 9"),
        (["tell", "a.db", "0"], "INDEX VALUE"),
        (["tell", "a.db", "0", "1", "--failed", "why"], "INDEX VALUE"),
        (["tell", "a.db", "0", "1", "--json", "{}"], "Keep one"),
        (["tell", "a.db", "0", "1,5"], "got '1,5'"),
        (["tell", "a.db", "zero", "1.5"], "got 'zero'"),
        (["tell", "a.db", "--json", "{index: 0}"], "Wanted JSON"),
        (["tell", "a.db", "--json", "3"], "JSON objects"),
        (["tell", "a.db", "--json", '{"index": 0}'], "failed"),
        (["tell", "a.db", "--json", '{"index": true, "value": 1}'], "index"),
        (["tell", "a.db", "--json", '{"index": 0, "value": "1"}'], "value"),
        (["tell", "a.db", "--json", '{"index": 0, "value": 1, "failed": "why"}'], "value"),
        (["tell", "a.db", "--json", '[{"index": 1, "value": 1}, {"index": 0, "value": 1}]'], "told already"),
        (["tell", "a.db", "--json", '[{"index": 1, "value": 1}, {"index": 1, "value": 2}]'], "several"),
        (
            ["add", "a.db", "--json", '[{"x": [0, 0, 1], "value": 1}, {"x": [0, 0, 2], "value": 1}]'],
            "its norm is 2, it must be 1",
        ),
        (["add", "a.db", "--x", "[0, 0, 1]"], "--value"),
        (["add", "a.db", "--x", "[0, 0, 2]", "--value", "1"], "its norm is 2, it must be 1"),
        (["add", "a.db", "--x", "[0, 1]", "--value", "1"], "Sphere(2)"),
        (["add", "a.db", "--x", "here", "--value", "1"], "Wanted JSON"),
        (["add", "a.db", "--x", "[0, 0, 1]", "--value", "nan"], "finite"),
        (["add", "a.db", "--json", '{"x": [0, 0, 1]}'], "add takes a number"),
        (["add", "a.db", "--json", '{"value": 1}'], "Wanted"),
        (["new", "a.db", "--space", "sphere:2"], "exists. nestbo resume"),
        (["resume", "a.db", "f.py:nothing", "--budget", "5"], "Check the name"),
    ],
)
def test_mistakes_elsewhere(arguments, words):
    run("a.db", 1)
    invoke("ask", "a.db")
    before = data("a.db")
    result = invoke(*arguments, code=2)
    message = result.stderr.removeprefix("loaded\n")
    assert words in message
    assert len(message.splitlines()) == 1, message
    assert result.stdout == ""
    assert data("a.db") == before


@pytest.mark.parametrize(
    ("text", "words"),
    [("x = (", "SyntaxError"), ("\nimport nonsense_that_is_not", "line 2"), ("raise SystemExit(1)", "SystemExit")],
)
def test_a_file_that_does_not_load_fails_with_a_sentence(text, words):
    Path("bad.py").write_text(text)
    message = said("run", "bad.py:f", "--space", "sphere:2", "--budget", "2", "--store", "a.db", code=1)
    assert words in message
    assert not Path("a.db").exists()


def test_a_foreign_file_fails_with_a_sentence():
    assert "another kind of file" in said("show", "f.py", code=1)
    assert Path("f.py").read_text() == FUNCTIONS


def test_a_folder_that_is_not_there_fails_with_a_sentence():
    run("a.db")
    assert "nowhere" in said("export", "a.db", "-o", "nowhere/a.csv", code=1)
    assert "nowhere" in said("new", "nowhere/b.db", "--space", "sphere:2", code=1)


def test_an_error_that_nobody_foresaw_is_a_sentence_unless_asked_for(monkeypatch):
    run("a.db")

    def fail(*_, **__):
        raise RuntimeError("the unforeseen")

    monkeypatch.setattr("nestbo.study.Study.ask", fail)
    assert "RuntimeError: the unforeseen" in said("ask", "a.db", code=1)
    result = CliRunner().invoke(app, ["--traceback", "ask", "a.db"])
    assert isinstance(result.exception, RuntimeError)


# by hand


def test_ask_and_tell_by_hand():
    message = invoke("new", "lab.db", "--space", "spd:2:eigenvalues=0.1,10", "--strategy", "gabo:initial=2").stderr
    assert "nestbo ask lab.db" in message
    asked = [json.loads(line) for line in invoke("ask", "lab.db", "-n", 3).stdout.splitlines()]
    assert [set(line) for line in asked] == [{"index", "x"}] * 3
    assert invoke("ask", "lab.db", "--pending").stdout.splitlines() == [json.dumps(line) for line in asked]
    assert "Best: -0.0015 (trial 0)" in invoke("tell", "lab.db", 0, "-1.5e-3").stderr
    assert "the motor stalled" in invoke("tell", "lab.db", 1, "--failed", "the motor stalled").stderr
    assert "not a finite number" in invoke("tell", "lab.db", 2, "-inf").stderr
    assert [row["status"] for row in trials("lab.db")] == ["told", "failed", "failed"]
    assert json.loads(invoke("ask", "lab.db").stdout)["index"] == 3


@pytest.mark.parametrize("several", [json.dumps, lambda rows: "\n".join(map(json.dumps, rows))])
def test_tell_reads_json_from_a_pipe(several):
    invoke("new", "lab.db", "--space", "sphere:2", "--strategy", "randomsearch")
    rows = [json.loads(line) for line in invoke("ask", "lab.db", "-n", 3).stdout.splitlines()]
    answers = [{**rows[2], "value": 2}, {**rows[0], "value": -0.5}, {**rows[1], "failed": "it broke"}]
    invoke("tell", "lab.db", "--json", "-", stdin=several(answers))
    assert [row["value"] for row in trials("lab.db")] == [-0.5, None, 2.0]


def test_numbers_survive_the_round_trip_to_the_last_bit():
    value = 0.1 + 0.2 + 1e-17
    invoke("new", "a.db", "--space", "sphere:3", "--strategy", "randomsearch")
    asked = json.loads(invoke("ask", "a.db").stdout)
    invoke("tell", "a.db", asked["index"], repr(value))
    invoke("new", "b.db", "--space", "sphere:3", "--strategy", "randomsearch")
    (row,) = trials("a.db")
    invoke("add", "b.db", "--x", json.dumps(row["x"]), "--value", repr(row["value"]))
    invoke("add", "b.db", "--json", "-", stdin=invoke("export", "a.db", "--format", "jsonl").stdout)
    invoke("export", "a.db", "--format", "csv", "-o", "a.csv")
    (line,) = csv.DictReader(io.StringIO(Path("a.csv").read_text()))
    for trial in [*nb.Study.load("a.db").history, *nb.Study.load("b.db").history]:
        assert trial.value == value == float(line["value"])
        assert trial.x.tolist() == asked["x"] == [float(line[f"x{k}"]) for k in range(4)]


# looking


def test_show_and_best():
    run("a.db", 3, "f.py:sometimes")
    invoke("ask", "a.db")
    facts = json.loads(invoke("show", "a.db", "--json").stdout)
    assert facts["trials"] == trials("a.db")
    assert facts["best"] == json.loads(invoke("best", "a.db", "--json").stdout)
    assert (facts["space"], facts["budget"], facts["objective"]) == ("sphere:2", 3, "f.py:sometimes")
    assert sum(facts["counts"].values()) == 4
    assert facts["counts"]["asked"] == 1
    text = invoke("show", "a.db").stdout
    assert "OSError: no sensor" in text
    assert f"{facts['best']['value']!r} (trial {facts['best']['index']})" in text


def test_show_and_best_before_anything_is_told():
    invoke("new", "a.db", "--space", "sphere:40")
    assert "none yet" in invoke("show", "a.db").stdout
    assert json.loads(invoke("show", "a.db", "--json").stdout)["best"] is None
    assert "nestbo tell" in said("best", "a.db", code=1)
    invoke("ask", "a.db")
    assert "…]" in invoke("show", "a.db").stdout


def test_show_says_that_a_study_has_constraints_and_which_seed():
    nb.Study(nb.Sphere(2), nb.RandomSearch(), store="a.db", constraints=lambda x: x[0]).close()
    lines = invoke("show", "a.db").stdout.splitlines()
    assert "constraints yes" in lines
    assert "seed      0" in lines


def test_export_of_matrices_has_a_column_for_each_entry():
    invoke("new", "a.db", "--space", "spd:2", "--strategy", "randomsearch")
    invoke("ask", "a.db", "-n", 2)
    invoke("tell", "a.db", 0, "--failed", 'broken, "badly"')
    header, first, second = csv.reader(io.StringIO(invoke("export", "a.db").stdout))
    assert ",".join(header) == "index,status,value,failed,asked_at,told_at,x0_0,x0_1,x1_0,x1_1"
    assert first[:4] == ["0", "failed", "", 'broken, "badly"']
    assert second[:4] == ["1", "asked", "", ""]
    assert second[5] == ""


@pytest.mark.parametrize("kind", ["convergence", "surrogate"])
def test_plot(kind):
    run("a.db", 4, strategy="gabo:initial=2")
    assert "Wrote a.png" in invoke("plot", "a.db", "--kind", kind, "-o", "a.png", "--title", "Polishing").stderr
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("topic", "registry"),
    [
        ("manifolds", nb.manifolds.MANIFOLDS | nb.manifolds.FINITE),
        ("kernels", nb.kernels.KERNELS),
        ("strategies", nb.strategies.STRATEGIES),
        ("problems", nb.problems.PROBLEMS),
        ("plots", nb.plots.DRAWINGS),
    ],
)
def test_list(topic, registry):
    """The table that the command reads has what is registered, and an example of each that works."""
    lines = invoke("list", topic).stdout.splitlines()
    assert sorted(line.split()[0] for line in lines) == sorted(registry)
    assert all(len(line.split()) > 2 for line in lines)
    entries = json.loads(invoke("list", topic, "--json").stdout)
    assert entries.keys() == registry.keys()
    readers = {"manifolds": nb.space, "strategies": nb.strategy, "kernels": nb.strategy}
    for name, entry in entries.items():
        assert name in entry["example"]
        if topic in readers:
            readers[topic](entry["example"])
        if topic == "problems":
            objective.load(entry["example"], nb.Sphere(6))


def test_list_without_a_topic_lists_all():
    printed = invoke("list").stdout.splitlines()
    assert [line for line in printed if line.endswith(":")] == [f"{topic}:" for topic in TOPICS]
    assert json.loads(invoke("list", "--json").stdout).keys() == TOPICS.keys()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--space", "sphere:2", "--strategy", "gabo:inital=3"), "unknown setting inital; did you mean initial?"),
        (("--space", "sphere:2:dim=3"), "sphere has an unknown setting dim; sphere takes n."),
        (("--space", "product:quaternion:box:0:1"), "Write 'product:(quaternion):(box:0:1)'."),
        (("--space", "product:sphere:2"), "Write 'product:(sphere:2)'."),
    ],
)
def test_a_mistake_in_a_text_form_gets_the_text_that_works(arguments, words):
    assert words in invoke("new", "a.db", *arguments, code=2).stderr


def test_the_help_shows_no_type_beside_a_flag():
    for command in ((), ("show",), ("run",)):
        assert "bool" not in invoke(*command, "--help").stdout


def test_a_reader_that_has_seen_enough_ends_the_command_quietly():
    text = f"{shlex.quote(sys.executable)} -m nestbo bench list | true"
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")


def test_one_thing_is_counted_in_the_singular():
    assert (
        "None of 1 evaluation gave" in invoke("run", "f.py:broken", "--space", "sphere:2", "--budget", 1, code=1).stderr
    )
    run("a.db", 1)
    assert invoke("copy", "a.db", "b.db").stderr == "Copied a.db to b.db, 1 trial.\n"


def test_the_help_of_plot_lists_the_kinds():
    text = " ".join(invoke("plot", "--help", COLUMNS="200").stdout.split())
    assert all(kind in text for kind in nb.plots.DRAWINGS)


WITHOUT = """
import sys
from nestbo.cli import main
try:
    main()
finally:
    print("torch" in sys.modules, file=sys.stderr)
"""


def alone(*arguments, **env):
    """What the command prints in a process of its own, and whether that process imported torch."""
    command = [sys.executable, "-c", WITHOUT, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | env, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.split()[-1] == "True"


@pytest.mark.parametrize(
    "arguments",
    [("--version",), ("--help",), ("run", "--help"), ("list", "manifolds"), ("example",), ("bench", "list")],
    ids=str,
)
def test_what_needs_no_tensors_does_not_wait_for_torch(arguments):
    printed, with_torch = alone(*arguments)
    assert printed
    assert not with_torch


LIGHT = [
    ("tell", "a.db", "0", "1.5"),
    ("tell", "a.db", "--json", '{"index": 1, "value": 3}'),
    ("correct", "a.db", "0", "2.5", "--note", "mistyped"),
    ("discard", "a.db", "1"),
    ("show", "a.db"),
    ("show", "a.db", "--json"),
    ("best", "a.db"),
    ("export", "a.db"),
    ("copy", "a.db", "b.db"),
    ("ask", "a.db", "--pending"),
]


@pytest.mark.parametrize("space", ["sphere:2", "product:(tilt=sphere:2):(tool=choice:soft,hard)"])
def test_commands_that_need_no_model_do_not_wait_for_torch(space):
    """One process does one after the other, and the last one says whether torch was imported."""
    invoke("new", "a.db", "--space", space, "--strategy", "randomsearch")
    invoke("ask", "a.db", "-n", "3")
    each = ";".join(f"app({list(arguments)}, standalone_mode=False)" for arguments in LIGHT)
    text = f"import sys; from nestbo.cli import app; {each}; sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert nb.Study.load("a.db").best.told == nb.Told((2.5,), note="mistyped", corrected=((1.5,),))


@pytest.mark.parametrize(
    ("space", "noise"),
    [
        ("sphere:2", "0.1"),
        ("spd:2:eigenvalues=0.1,5", None),
        ("product:(sphere:2):(box:0:1)", None),
        ("product:(a=sphere:2):(b=box:0:1):(c=integer:-3:8):(d=choice:soft,2,0.5):(e=levels:0.1,0.5):(f=spd:2)", None),
    ],
)
def test_a_study_looks_the_same_with_and_without_its_space(space, noise, monkeypatch):
    invoke("new", "a.db", "--space", space, "--strategy", "randomsearch", *(("--noise", noise) if noise else ()))
    invoke("ask", "a.db", "-n", "4")
    invoke("tell", "a.db", "0", "1.5", "--note", "good")
    invoke("tell", "a.db", "2", "-1e-300")
    invoke("tell", "a.db", "1", "--failed", "no sensor")
    assert Light.load("a.db") is not None
    looks = [("show",), ("show", "--json"), ("best",), ("best", "--json"), ("export",), ("export", "-f", "jsonl")]
    light = [invoke(name, "a.db", *options).output for name, *options in looks]
    monkeypatch.setattr(Light, "load", lambda path: None)
    assert [invoke(name, "a.db", *options).output for name, *options in looks] == light


def test_completion_does_not_wait_for_torch():
    words = {"COMP_WORDS": "nestbo new a.db --space sp", "COMP_CWORD": "4"}
    printed, with_torch = alone(_NESTBO_COMPLETE="complete_bash", **words)
    assert (printed.split(), with_torch) == (["sphere", "spd"], False)


def test_help_names_the_exit_codes():
    text = invoke("--help").stdout
    assert "130" in text
    assert invoke(code=2).output
    assert invoke("--version").stdout.startswith("nestbo ")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("nestbo res", ["resume"]),
        ("nestbo list ker", ["kernels"]),
        ("nestbo new a.db --space sp", ["sphere", "spd"]),
        ("nestbo new a.db --strategy ga", ["gabo"]),
        ("nestbo plot a.db --kind surr", ["surrogate"]),
    ],
)
def test_tab_completion(words, found):
    env = {"_NESTBO_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    assert invoke(**env).stdout.split() == found


def test_a_pipe_gets_no_colours():
    run("a.db")
    command = f"{shlex.quote(sys.executable)} -m nestbo show a.db | cat"
    env = {name: value for name, value in os.environ.items() if name not in PLAIN}
    done = subprocess.run(command, shell=True, capture_output=True, env=env, timeout=100)
    assert done.returncode == 0
    assert done.stderr == b""
    assert b"\x1b" not in done.stdout
    assert done.stdout.startswith(b"store     a.db\n")


# the tutorial

BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ (.*(?:\n> .*)*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def shell(command, folder):
    """A command that needs a shell; ``nestbo`` is this one."""
    shim = folder / "nestbo"
    shim.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m nestbo "$@"\n')
    shim.chmod(0o755)
    env = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=env, timeout=100)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stderr + done.stdout


def words(text):
    """What a page and a machine agree on: the words, without numbers and the lines of progress."""
    lines = [line for line in text.splitlines() if "evaluations, best" not in line]
    return re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "0", " ".join(lines)).split()


def test_the_tutorial_runs(tmp_path):
    commands = [found for block in BLOCK.findall(TUTORIAL.read_text()) for found in COMMAND.findall(block)]
    assert len(commands) > 20
    for command, output in commands:
        command = re.sub("^> ", "", command, flags=re.MULTILINE)
        simple = command.startswith("nestbo ") and not {">", "||"} & set(command.split())
        printed = invoke(*shlex.split(command)[1:]).output if simple else shell(command, tmp_path)
        assert words(printed) == words(output), command


CONSTRAINTS = """
def allowed(x):
    return x[0] - 0.5

def observed(x):
    import nestbo
    return nestbo.Observation(x[2], [x[0], 1.0], 0.01)
"""


def test_known_constraints_by_hand_and_in_a_run():
    Path("c.py").write_text(CONSTRAINTS)
    invoke("new", "s.db", "--space", "sphere:2", "--strategy", "randomsearch", "--constraints", "c.py:allowed")
    assert "--constraints" in invoke("ask", "s.db", code=2).stderr
    asked = [
        json.loads(line)
        for line in invoke("ask", "s.db", "-n", 5, "--constraints", "c.py:allowed").stdout.split("\n")[:-1]
    ]
    assert all(trial["x"][0] >= 0.5 for trial in asked)
    invoke("tell", "s.db", 0, 1.5)
    assert "c.py:allowed" in invoke("show", "s.db").stdout
    budget = ("--budget", 6, "--strategy", "randomsearch", "-q")
    outside = ("add", "s.db", "--x", "[0, 0, -1]", "--value", -5)
    assert "--allowed" in invoke(*outside, code=2).stderr
    invoke(*outside, "--allowed", "c.py:allowed")
    assert not nb.Study.load("s.db").history[-1].feasible
    invoke("run", "f.py:height", "--space", "sphere:2", "--store", "r.db", "--constraints", "c.py:allowed", *budget)
    invoke("resume", "r.db", "--budget", 8, "-q")
    assert all(trial.x[0] >= 0.5 for trial in nb.Study.load("r.db").history)
    assert len(nb.Study.load("r.db").history) == 8


def test_observed_constraints_and_noise():
    invoke("new", "s.db", "--space", "sphere:2", "--strategy", "randomsearch")
    invoke("ask", "s.db", "-n", 4)
    invoke("tell", "s.db", 0, 1.5, "--constraints", "-0.5,2", "--noise", 0.1)
    invoke("tell", "s.db", "--json", '{"index": 1, "value": 2.5, "constraints": [0, 1]}')
    invoke("add", "s.db", "--x", "[0, 0, 1]", "--value", 3, "--constraints", "1,1", "--noise", "0.2")
    assert [t.constraints for t in nb.Study.load("s.db").history if t.constraints] == [(-0.5, 2), (0, 1), (1, 1)]
    assert [t.noise for t in nb.Study.load("s.db").history] == [0.1, None, None, None, 0.2]
    best = json.loads(invoke("best", "s.db", "--json").stdout)
    assert best["index"] == 1
    assert best["recommended"]["index"] in (1, 4)
    low, high = best["recommended"]["interval"]
    assert low < best["recommended"]["mean"] < high
    assert f"mean   {best['recommended']['mean']:.6g}, with 95 % between {low:.6g} and {high:.6g}" in (
        invoke("best", "s.db").stdout
    )
    shown = invoke("show", "s.db").stdout
    assert "told, infeasible" in shown
    assert f"recommended, with the posterior mean {best['recommended']['mean']:.6g}" in shown
    rows = list(csv.DictReader(io.StringIO(invoke("export", "s.db").stdout)))
    assert [(row["constraint0"], row["constraint1"]) for row in rows][:3] == [("-0.5", "2.0"), ("0.0", "1.0"), ("", "")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tell", "s.db", 1, 1.0), "2 constraints each"),
        (("tell", "s.db", 1, 1.0, "--constraints", "1;2"), "number"),
        (("tell", "s.db", 1, 1.0, "--constraints", "1,2", "--noise", "-1"), "positive"),
        (
            ("tell", "s.db", "--json", '[{"index": 1, "value": 1, "constraints": [1, 2]}, {"index": 2, "value": 1}]'),
            "same",
        ),
        (("tell", "s.db", "--json", '{"index": 1, "value": 1, "constraints": {}}'), "constraints are numbers"),
        (("tell", "s.db", "--json", '{"index": 1, "value": 1, "noise": "much"}'), "positive"),
        (("add", "s.db", "--x", "[0, 0, 1]", "--value", "1"), "2 constraints each"),
        (("new", "t.db", "--space", "sphere:2", "--noise", "much"), "number"),
        (("new", "t.db", "--space", "sphere:2", "--noise", "-1"), "infer"),
        (("new", "t.db", "--space", "sphere:2", "--constraints", "f.py:constant"), "constant"),
        (("ask", "s.db", "--constraints", "f.py:height"), "constraints"),
    ],
)
def test_mistakes_with_constraints_and_noise_change_nothing(arguments, words):
    invoke("new", "s.db", "--space", "sphere:2", "--strategy", "randomsearch")
    invoke("ask", "s.db", "-n", 4)
    invoke("tell", "s.db", 0, 1.5, "--constraints", "1,2")
    before = nb.Study.load("s.db").history
    assert words in invoke(*arguments, code=2).stderr
    assert [t.status for t in nb.Study.load("s.db").history] == [t.status for t in before]


def test_noise_to_infer_and_an_objective_that_observes_more():
    Path("c.py").write_text(CONSTRAINTS)
    options = ("--space", "sphere:2", "--strategy", "randomsearch", "--noise", "infer", "--budget", 8, "-q", "--json")
    best = json.loads(invoke("run", "c.py:observed", *options, "--store", "s.db").stdout)
    assert "recommended" in best
    assert best["x"][0] >= 0
    assert all(trial.noise == 0.01 for trial in nb.Study.load("s.db").history)


class TestSeveralObjectives:
    def new(self):
        options = ("--objectives", "error,energy", "--direction", "minimize,maximize", "--noise", "0.1,0.2")
        invoke("new", "m.db", "--space", "sphere:2", *options)
        for values in (("3.2", "0.7"), ("1", "0.5"), ("4", "0.1")):
            invoke("ask", "m.db")
            result = invoke("tell", "m.db", *values)
        return result

    def test_tell_front_show_and_export(self):
        assert self.new().stderr == "Trial 2: 4.0, 0.1. Front: trials 0, 1.\n"
        invoke("ask", "m.db", "-n", "2")
        assert invoke("tell", "m.db", "3", "-1", "-2").stderr.startswith("Trial 3: -1.0, -2.0.")
        told = invoke("tell", "m.db", "--json", '{"index": 4, "values": [9, 9]}').stderr
        assert told.startswith("Trial 4: 9.0, 9.0.")
        lines = invoke("front", "m.db", "--json", "--reference", "10,-3")
        assert [json.loads(line)["index"] for line in lines.stdout.splitlines()] == [0, 1, 3, 4]
        assert "hypervolume is" in lines.stderr
        assert "error 3.2, energy 0.7 (trial 0)" in invoke("front", "m.db").stdout
        shown = invoke("show", "m.db").stdout
        assert "trials 0, 1, 3, 4" in shown
        assert "direction minimize error, maximize energy" in shown
        assert "energy" in shown
        assert json.loads(invoke("show", "m.db", "--json").stdout)["front"][0]["values"] == [3.2, 0.7]
        header, first, *_ = invoke("export", "m.db").stdout.splitlines()
        assert header.startswith("index,status,value_error,value_energy,failed")
        assert first.startswith("0,told,3.2,0.7,")
        invoke("add", "m.db", "--x", "[0, 0, 1]", "--value", "2,3")
        assert trials("m.db")[-1]["values"] == [2, 3]

    def test_run_prints_the_front(self):
        Path("two.py").write_text("def both(x):\n    return float(x[0]), float(x[1])\n")
        options = ("--space", "sphere:2", "--budget", "3", "--objectives", "a,b", "--strategy", "randomsearch", "-q")
        result = invoke("run", "two.py:both", *options)
        assert result.stdout.startswith("front  a ")
        assert json.loads(invoke("run", "two.py:both", *options, "--json").stdout.splitlines()[0])["values"]

    def test_mistakes(self):
        self.new()
        invoke("ask", "m.db", "-n", "2")
        before = data("m.db")
        for arguments, words in (
            (("best", "m.db"), "nestbo front"),
            (("tell", "m.db", "1"), "2 values (error, energy)"),
            (("tell", "m.db", "1", "2"), "2 trials are pending"),
            (("tell", "m.db", "--json", '{"index": 3, "value": 1}'), "a value for each of error, energy"),
            (("front", "m.db", "--reference", "1"), "finite number for each"),
        ):
            assert words in invoke(*arguments, code=2).stderr
        assert data("m.db") == before
