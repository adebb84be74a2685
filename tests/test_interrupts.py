"""Ctrl-C in a process that lives on, at every kind of instant: the study goes on, nothing is stranded or doubled."""

import contextlib
import dis
import functools
import gc
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

import nestbo as nb
from nestbo.apart import _descendants
from nestbo.interrupts import held_back, let_through

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


def interrupted(k, work):
    """Ctrl-C at an instant of some work; as in a notebook, the traceback is kept, and with it every frame."""
    try:
        with ControlC(k):
            work()
    except KeyboardInterrupt as error:
        sys.last_value = error


def free(study, path):
    """Nobody holds the file, if there is one, or the lock of the study."""
    with contextlib.closing(sqlite3.connect(path or ":memory:", timeout=0, isolation_level=None)) as other:
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


@pytest.fixture(autouse=True)
def _swallowed(monkeypatch):
    """Python itself drops an interrupt that comes while it destroys an object, and says so."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    yield
    sys.last_value = None
    gc.collect()


@pytest.fixture(scope="module")
def straight():
    """The points of a run that nobody interrupts."""
    return fresh().run(bowl, 4, progress=False).history.points


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
@pytest.mark.usefixtures("nothing_stays")
def test_control_c_at_any_instant_of_a_run_strands_nothing(options, straight, tmp_path, request):
    """Full run: a thousand instants of each kind of run, on files."""
    full = request.config.getoption("--full")
    for k in range(1, 4000, 4 if full else 401 if "timeout" in options else 71):
        path = tmp_path / f"{k}.db" if full else None
        with fresh(path) as study:
            interrupted(k, lambda: study.run(bowl, 3, progress=False, **options))
            free(study, path)
            goes_on(study, 4, straight)


@pytest.fixture
def nothing_stays():
    """What a test starts ends before it does."""
    before = set(_descendants(os.getpid()))
    yield
    assert set(_descendants(os.getpid())) <= before


@pytest.mark.parametrize("step", ["take_orphan", "reserve", "trials", "ask", "tell"])
def test_control_c_after_a_step_and_again_while_things_are_put_in_order(step, straight, monkeypatch):
    """The process lives on, and knows that nobody evaluates what it once began to."""
    study, done = fresh(), getattr(nb.storage.Store, step)

    def twice(store, *arguments, **options):
        done(store, *arguments, **options)
        monkeypatch.setattr(nb.storage.Store, "release", again)
        raise KeyboardInterrupt

    def again(store, *arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(nb.storage.Store, step, twice)
        with contextlib.suppress(KeyboardInterrupt):
            study.run(bowl, 3, progress=False)
    goes_on(study, 4, straight)


def test_a_transaction_that_was_left_open_is_undone(straight):
    study = fresh()
    study.run(bowl, 2, progress=False)
    for look in (lambda: study.best, lambda: study.ask(), study.copy):
        study._store.file.connection.execute("BEGIN IMMEDIATE")
        study._store.file.connection.execute("DELETE FROM trials")
        look()
        assert len(study._store.trials()[0]) >= 2


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
@pytest.mark.usefixtures("nothing_stays")
def test_control_c_from_a_clock_strands_nothing(options, straight, tmp_path, request):
    """As it comes in life, some while the one before is being dealt with. Full run: a thousand of each kind of run."""
    chance, full = random.Random(0), request.config.getoption("--full")
    longest = 0.04 if full or "timeout" in options else 0.008  # seconds, as a run takes
    for k in range(1000 if full else 20):
        path = tmp_path / f"{k}.db" if full else None
        with fresh(path) as study:
            bombarded(chance.uniform(1e-4, longest), lambda: study.run(bowl, 3, progress=False, **options))
            free(study, path)
            goes_on(study, 4, straight)


def test_control_c_at_any_instant_of_ask_and_tell(straight, tmp_path, request):
    """Whoever was interrupted looks at the study: a trial is pending, or told, or was never asked."""
    for k in range(1, 1200, 3 if request.config.getoption("--full") else 151):
        path = tmp_path / f"{k}.db"
        with fresh(path) as study:
            interrupted(k, lambda: study.tell(study.ask(), 1.0))
            free(study, path)
            for trial in study.pending:
                study.tell(trial, 1.0)
            while len(study.history) < 4:
                study.tell(study.ask(), 1.0)
            assert [(trial.index, trial.value) for trial in study.history] == [(k, 1.0) for k in range(4)]
            assert torch.equal(study.history.points, straight)


def test_control_c_at_any_instant_of_the_beginning(straight, tmp_path, request):
    """Whoever was interrupted begins the study again: the file is not half made. Full run: every third instant."""
    for k in range(1, 3000, 3 if request.config.getoption("--full") else 301):
        path = tmp_path / f"{k}.db"
        interrupted(k, functools.partial(fresh, path))
        with fresh(path) as study:
            free(study, path)
            goes_on(study, 4, straight)


def test_control_c_at_any_instant_of_opening_an_older_file(tmp_path, request):
    """Whoever was interrupted opens the file again: it is as it was, or as it is now. Full run: every third instant."""
    for k in range(1, 5000, 3 if request.config.getoption("--full") else 501):
        path = shutil.copy(Path(__file__).parent / "golden" / "schema1-hdgabo.db", tmp_path / f"{k}.db")
        interrupted(k, functools.partial(nb.Study.load, path))
        with nb.Study.load(path) as study:
            free(study, path)
            study.add(study.history[0].x, 0.5)
            assert study.history[-1].value == 0.5


def press():
    signal.raise_signal(signal.SIGINT)


@contextlib.contextmanager
def comes_out():
    """Ctrl-C comes out of the body."""
    try:
        yield
    except KeyboardInterrupt:
        return
    pytest.fail("Ctrl-C never came")


class TestHoldingBack:
    def test_it_comes_after_the_body(self):
        done = []
        with comes_out(), held_back():
            press()
            done.append(1)
        assert done
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_it_comes_after_an_error(self):
        with comes_out(), held_back():
            press()
            raise ValueError
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_who_insists_gets_it_at_once(self):
        done = []
        with comes_out(), held_back(patience=0.01):
            press()
            time.sleep(0.02)
            press()
            done.append(1)
        assert not done

    def test_it_is_let_through_once(self):
        """What clears up after it is not disturbed again."""
        done = []
        with comes_out(), held_back():
            try:
                with let_through():
                    press()
                    done.append("never")
            finally:
                press()
                done.append("cleared up")
        assert done == ["cleared up"]

    def test_what_came_before_is_let_through(self):
        done = []
        with comes_out(), held_back():
            press()
            with let_through():
                done.append(1)
        assert not done

    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    def test_a_process_that_is_forked_meanwhile_has_its_own(self):
        with held_back():
            child = os.fork()
            if child == 0:
                with contextlib.suppress(KeyboardInterrupt):
                    press()
                    os._exit(1)
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0

    def test_other_threads_and_other_handlers_are_left_alone(self):
        with held_back(), ThreadPoolExecutor(1) as executor:
            ours = signal.getsignal(signal.SIGINT)
            executor.submit(lambda: held_back().__enter__()).result()
            assert signal.getsignal(signal.SIGINT) is ours
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            with held_back(), let_through():
                press()
                assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        finally:
            signal.signal(signal.SIGINT, before)


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
