"""Objectives that misbehave, clocks that jump, and thousands of random operations with kills in between."""

import asyncio
import os
import random
import signal
import sqlite3
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import nestbo as nb

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def bowl(x):
    return float((x**2).sum() + x.flatten()[0])


def quiet(study, f, n, **options):
    return study.run(f, n, progress=False, **options)


def fresh(path=None):
    return nb.Study(nb.Sphere(2), nb.RandomSearch(), seed=3, store=path)


def intact(path):
    raw = sqlite3.connect(path)
    assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    raw.close()


WAYS = [{}, {"executor": ThreadPoolExecutor, "workers": 3}, {"timeout": 60}]


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.zeros(3, 0), "not a number"),
        ("1.5", "not a number"),
        (None, "not a number"),
        (1j, "not a number"),
        (10**400, "not a number"),
        ("x" * 10**6, "not a number"),
        (Unprintable(), "not a number"),
        (float("nan"), "not a finite number"),
        (-float("inf"), "not a finite number"),
    ],
    ids=lambda value: str(type(value).__name__),
)
def test_values_of_the_wrong_type_or_shape_are_failures(value, words, options, tmp_path):
    study = quiet(fresh(tmp_path / "s.db"), lambda x: value, 2, **options)
    assert [trial.status for trial in study.history] == ["failed"] * 2
    assert all(words in trial.told.failed and len(trial.told.failed) < 600 for trial in study.history)
    intact(tmp_path / "s.db")


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("value", [torch.zeros(2), (1.0, 2.0)], ids=lambda value: str(type(value).__name__))
def test_several_values_are_a_mistake_of_the_study(value, options, tmp_path):
    with pytest.raises(nb.ArgumentError, match="one objective, got 2 values"):
        quiet(fresh(tmp_path / "s.db"), lambda x: value, 2, **options)
    intact(tmp_path / "s.db")


class RudeError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class NoException(BaseException):
    pass


def raise_(error):
    raise error


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize(
    "error",
    [
        RudeError(),
        RecursionError(),
        MemoryError(),
        StopIteration(),
        SystemExit("bye"),
        OSError("é\0\ud800\n" * 1000),
        asyncio.CancelledError(),
        GeneratorExit(),
        NoException(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_of_any_kind_are_failures(error, options, tmp_path):
    study = quiet(fresh(tmp_path / "s.db"), lambda x: raise_(error), 2, **options)
    assert [trial.status for trial in study.history] == ["failed"] * 2
    with nb.Study.load(tmp_path / "s.db") as again:
        assert [trial.told for trial in again.history] == [trial.told for trial in study.history]


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_prints_are_left_alone(options, capfd):
    quiet(fresh(), lambda x: sys.stdout.write("evaluating\n"), 3, **options)
    assert capfd.readouterr().out == "evaluating\n" * 3


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("numpy", [False, True])
def test_changing_the_argument_changes_nothing(numpy, options):
    def f(x):
        value = x[0] + 0
        x *= float("nan")
        return value

    study = quiet(fresh(), f, 3, numpy=numpy, **options)
    assert all(trial.value == trial.x[0] for trial in study.history)


@pytest.mark.parametrize("options", [{}, {"timeout": 60}], ids=str)
def test_a_fork_that_comes_back_is_ended(options, tmp_path):
    """An objective that forks and forgets to end the child: the child does not become a second driver."""
    log = tmp_path / "log"

    def f(x):
        os.fork()
        with log.open("a") as file:
            file.write("evaluated\n")
        return bowl(x)

    study = quiet(fresh(tmp_path / "s.db"), f, 3, **options)
    assert [(trial.index, trial.status) for trial in study.history] == [(k, "told") for k in range(3)]
    end = time.monotonic() + 20
    while log.read_text().count("evaluated") < 6 and not options:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert len(study.history) == 3
    intact(tmp_path / "s.db")


@pytest.mark.parametrize("options", WAYS[:2], ids=str)
class TestTheStudyFromWithin:
    """An objective may use the study that evaluates it."""

    def test_looking_and_asking(self, options, tmp_path):
        study = fresh(tmp_path / "s.db")

        def f(x):
            inner = study.ask()
            study.tell(inner, bowl(inner.x))
            return bowl(x) + 0 * len(study.history) + (0 if study.best else 1)

        quiet(study, f, 6, **options)
        assert [trial.index for trial in study.history] == list(range(12))
        assert all(trial.status == "told" and trial.value == bowl(trial.x) for trial in study.history)

    def test_running(self, options, tmp_path):
        study, deep = fresh(tmp_path / "s.db"), []

        def f(x):
            if not deep:
                deep.append(1)
                quiet(study, bowl, 4)
            return bowl(x)

        quiet(study, f, 3, **options)
        assert [(trial.index, trial.status) for trial in study.history] == [(k, "told") for k in range(7)]

    def test_telling_its_own_trial(self, options, tmp_path):
        study = fresh(tmp_path / "s.db")

        def f(x):
            (mine,) = (trial for trial in study.pending if torch.equal(trial.x, x))
            study.tell(mine, 7.0)
            return 1.0

        quiet(study, f, 4, **options)
        assert [trial.value for trial in study.history] == [7.0] * 4

    def test_closing(self, options, tmp_path):
        study = fresh(tmp_path / "s.db")
        with pytest.raises(nb.StoreError, match="closed"):
            quiet(study, lambda x: study.close() or 1.0, 4, **options)
        with nb.Study.load(tmp_path / "s.db") as again:
            assert len(again.history) <= 4
        intact(tmp_path / "s.db")


@pytest.mark.parametrize("clock", [lambda: 0.0, lambda: -1e9, lambda: 1e300, lambda: float("inf"), time.time])
def test_clocks_may_jump(clock, tmp_path, monkeypatch):
    """Times are for the reader only: whatever the clock says, the study goes on, and is shown."""
    from typer.testing import CliRunner

    from nestbo.cli import app

    path = tmp_path / "s.db"
    straight = quiet(fresh(), bowl, 8).history
    with fresh(path) as study:
        quiet(study, bowl, 3)
        monkeypatch.setattr(time, "time", clock)
        quiet(study, bowl, 3)
        monkeypatch.undo()
    with nb.Study.load(path) as study:
        quiet(study, bowl, 2)
        assert torch.equal(study.history.points, straight.points)
        assert len(study.times) == 8
    for arguments in (
        ["show", path],
        ["show", path, "--json"],
        ["export", path],
        ["export", path, "--format", "jsonl"],
    ):
        assert CliRunner().invoke(app, list(map(str, arguments))).exit_code == 0


KILLS = []


class Chaos:
    """Random operations on a file; ``log`` hears of everything that was acknowledged."""

    def __init__(self, path, seed, log):
        self.path, self.chance, self.log, self.study = path, random.Random(seed), log, nb.Study.load(path)

    def ask(self):
        for trial in self.study.ask(self.chance.randint(1, 3)):
            self.log("asked", trial.index, "")

    def tell(self):
        waiting = self.study.pending
        if not waiting:
            return
        trial, value = self.chance.choice(waiting), self.chance.uniform(-1e300, 1e300)
        try:
            self.study.tell(trial, value)
        except nb.TrialError:
            return  # another process was first
        self.log("told", trial.index, value)

    def fail(self):
        trial = self.study.ask()
        try:
            self.study.tell(trial, failed="on purpose")
        except nb.TrialError:
            return
        self.log("failed", trial.index, "")

    def add(self):
        x = self.study.space.random(rng=torch.Generator().manual_seed(self.chance.randrange(2**30)))
        self.log("told", self.study.add(x, 0.25).index, 0.25)

    def run(self):
        report = nb.progress.Reporter()
        report.advanced = lambda done, best: self.log(done.status, done.index, done.value)
        options = self.chance.choice([{}, {"executor": ThreadPoolExecutor, "workers": 2}])
        self.study.run(bowl, self.chance.randint(1, 4), progress=report, **options)

    def reopen(self):
        self.study.close()
        self.study = nb.Study.load(self.path)

    def look(self):
        indices = [trial.index for trial in self.study.history]
        assert indices == sorted(set(indices))
        self.log("looked", 0, "")

    def go(self):
        while True:
            self.chance.choice(
                [self.ask, self.tell, self.tell, self.fail, self.add, self.run, self.reopen, self.look]
            )()


def chaotic(path, seed, writer):
    pid = os.fork()
    if pid == 0:
        try:
            Chaos(path, seed, lambda what, index, value: os.write(writer, f"{what} {index} {value!r}\n".encode())).go()
        except BaseException as error:
            os.write(writer, f"error 0 {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(1)
    return pid


@pytest.mark.parametrize("seed", range(25))
def test_random_operations_of_three_processes_with_kills(seed, tmp_path, request):
    """Whatever was acknowledged is there afterwards, in an intact file. Full run: at least 10,000 operations."""
    if seed and not request.config.getoption("--full"):
        pytest.skip("in the full run")
    path, chance, lines, kills = tmp_path / "s.db", random.Random(seed), [], 0
    with nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path):
        pass
    while len(lines) < 400:
        reader, writer = os.pipe()
        children = [chaotic(path, chance.randrange(2**30), writer) for _ in range(3)]
        os.close(writer)
        for pid in children:
            time.sleep(chance.uniform(0, 0.25))
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            kills += 1
        with os.fdopen(reader) as log:
            lines += log.read().splitlines()
        intact(path)
    said = [line.split(" ", 2) for line in lines]
    assert not [line for line in lines if line.startswith("error")]
    with nb.Study.load(path) as study:
        kept = {trial.index: trial for trial in study.history}
        told = {(int(index), float(value)) for what, index, value in said if what == "told"}
        assert len({index for index, _ in told}) == len(told)  # none told two values
        assert all(kept[index].value == value for index, value in told)
        assert all(kept[int(index)].status == "failed" for what, index, _ in said if what == "failed")
        assert all(int(index) in kept for what, index, _ in said if what == "asked")
        quiet(study, bowl, 5)
        study.space.check(study.history.points)
    assert kills >= 3
    KILLS.append(kills)


def test_there_were_enough_kills(request, capsys):
    """Together with those of other files: 250 while a study runs, 400 while it is begun, 100 each of two more kinds."""
    if not request.config.getoption("--full"):
        pytest.skip("of the full run")
    with capsys.disabled():
        sys.stdout.write(f"\nkills amid random operations: {sum(KILLS)}\n")
    assert sum(KILLS) >= 150
