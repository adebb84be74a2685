"""Ctrl-C in a process that lives on, at every kind of instant: the study goes on, nothing is stranded or doubled."""

import contextlib
import dis
import functools
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

import nestbo as nb

# A file that was opened, and interrupted before its ``with``, is closed by nobody.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

SOURCES = str(Path(nb.__file__).parent), str(Path(threading.__file__).parent)
FOREIGN = str(Path(torch.__file__).parents[1])  # site-packages lies below the standard library


def bowl(x):
    return float((x**2 * torch.arange(1, x.numel() + 1, dtype=x.dtype).reshape(x.shape)).sum())


def fresh(path=None):
    return nb.Study(nb.Sphere(2), nb.RandomSearch(), seed=3, store=path)


class ControlC:
    """Ctrl-C at the k-th instant at which Python would hear of it: at the start of a function, after a call, in a loop.

    Looks at the code of nestbo and of the standard library. It asks whatever handles the signal, as Python would.
    """

    def __init__(self, k):
        self.left = k

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.enter)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)

    def enter(self, frame, event, arg):
        name = frame.f_code.co_filename
        if not name.startswith(SOURCES) or name.startswith(FOREIGN):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        instants, previous = heard(frame.f_code), frame.f_lasti

        def step(frame, event, arg):
            nonlocal previous
            if event == "opcode":
                if (previous, frame.f_lasti) in instants:
                    self.instant(frame)
                previous = frame.f_lasti
            return step

        return step

    def instant(self, frame):
        self.left -= 1
        if self.left == 0:
            sys.settrace(None)
            signal.getsignal(signal.SIGINT)(signal.SIGINT, frame)


@functools.cache
def heard(code):
    """After which steps of some code, and before which others, Python hears of signals.

    It raises what it hears as if the first of the two had: so both have to lie within the same ``try`` or ``with``.
    """
    steps, guards = list(dis.get_instructions(code)), dis.Bytecode(code).exception_entries

    def guarded(offset):
        return next((guard.target for guard in guards if guard.start <= offset < guard.end), None)

    firsts = [step.offset for step in steps if step.opname.startswith(("CALL", "RESUME", "JUMP_BACKWARD"))]
    return {(a, step.offset) for a in firsts for step in steps if guarded(a) == guarded(step.offset)}


@contextlib.contextmanager
def interrupted(k):
    """Ctrl-C at an instant of the body; as in a notebook, the traceback is kept, and with it every frame."""
    try:
        with ControlC(k):
            yield
    except KeyboardInterrupt as error:
        sys.last_value = error


def free(study, path):
    """Nobody holds the file or the lock of the study."""
    with contextlib.closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    seen = []
    thread = threading.Thread(target=lambda: seen.append(len(study.history)), daemon=True)
    thread.start()
    thread.join(10)
    assert seen


def goes_on(study, n, straight):
    """The next run takes up what was left: in the end each index was told once, with the value of its point."""
    told = sum(trial.status == "told" for trial in study.history)
    study.run(bowl, n - told, progress=False)
    assert [(trial.index, trial.status) for trial in study.history] == [(k, "told") for k in range(n)]
    assert [trial.value for trial in study.history] == [bowl(trial.x) for trial in study.history]
    assert torch.equal(study.history.points, straight)


WAYS = {"serial": {}, "threads": {"executor": ThreadPoolExecutor, "workers": 2}, "timeout": {"timeout": 60}}


@pytest.fixture(scope="module")
def straight():
    """The points of a run that nobody interrupts."""
    return fresh().run(bowl, 4, progress=False).history.points


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_control_c_at_any_instant_of_a_run_strands_nothing(options, straight, tmp_path, request):
    """Full run: a thousand instants of each kind of run."""
    for k in range(1, 4000, 4 if request.config.getoption("--full") else 151):
        path = tmp_path / f"{k}.db"
        with fresh(path) as study:
            with interrupted(k):
                study.run(bowl, 3, progress=False, **options)
            free(study, path)
            goes_on(study, 4, straight)
    childless()


def childless():
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


class Impatience:
    """Ctrl-C from a clock: after some seconds, and twice more, soon after each other."""

    def __init__(self, delay):
        self.delay, self.left = delay, 3

    def __call__(self, number, frame):
        if self.left:
            self.left -= 1
            signal.getsignal(signal.SIGINT)(signal.SIGINT, frame)

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, self)
        signal.setitimer(signal.ITIMER_REAL, self.delay, 0.001)

    def __exit__(self, *_):
        self.left = 0
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)


def bombarded(delay, work):
    """Do some work under fire."""
    impatience = Impatience(delay)
    try:
        with impatience:
            work()
    except KeyboardInterrupt as error:
        sys.last_value = error
        impatience.__exit__()  # which an interrupt may have ended


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_control_c_from_a_clock_strands_nothing(options, straight, tmp_path, request):
    """As it comes in life, some while the one before is being dealt with. Full run: a thousand of each kind of run."""
    chance, path = random.Random(0), tmp_path / "s.db"
    for _ in range(1000 if request.config.getoption("--full") else 25):
        with fresh(path) as study:
            bombarded(chance.uniform(1e-4, 0.04), lambda: study.run(bowl, 3, progress=False, **options))
            free(study, path)
            goes_on(study, 4, straight)
        path.unlink()
    childless()


@pytest.mark.parametrize("k", range(1, 1200, 61))
def test_control_c_at_any_instant_of_ask_and_tell(k, straight, tmp_path):
    """Whoever was interrupted looks at the study: a trial is pending, or told, or was never asked."""
    path = tmp_path / "s.db"
    with fresh(path) as study:
        with interrupted(k):
            study.tell(study.ask(), 1.0)
        free(study, path)
        for trial in study.pending:
            study.tell(trial, 1.0)
        while len(study.history) < 4:
            study.tell(study.ask(), 1.0)
        assert [(trial.index, trial.value) for trial in study.history] == [(k, 1.0) for k in range(4)]
        assert torch.equal(study.history.points, straight)


IMPORTS = """
import importlib.abc, signal, sys
import nestbo as nb
from nestbo.progress import Bar

class Watch(importlib.abc.MetaPathFinder):
    '''Hears of imports; the first of some module is interrupted.'''

    def find_spec(self, name, path, target=None):
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler and name != "rich._emoji_codes":
            unguarded.append(name)
        if name == victim:
            signal.raise_signal(signal.SIGINT)

def ask(strategy, **settings):
    study = nb.Study(nb.Sphere(3), strategy, **settings)
    for k in range(3):
        study.tell(study.ask(), float(k))
    study.run(lambda x: float(x[0]), 1, progress=Bar())
    return len(study.history)

unguarded, interrupts = [], 0
sys.meta_path.insert(0, Watch())
for victim in ("sympy.functions", "rich.live", ""):
    try:
        assert ask(nb.GaBO(initial=2)) == 4
    except KeyboardInterrupt:
        interrupts += 1
for settings in ({"noise": "infer"}, {"constraints": lambda x: x[..., 0] + 0.9}):
    assert ask(nb.GaBO(initial=2), **settings) == 4
assert ask(nb.HDGaBO(initial=2, latent_dim=2)) == ask(nb.RandomSearch()) == 4
print(interrupts, *unguarded)
"""


def test_control_c_while_modules_are_imported_breaks_nothing():
    """No import of an ask, or of a run, can be cut in two: each is guarded, and the next ask finds all of it."""
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2"]
