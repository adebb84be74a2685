"""Many workers, some of which die or hang: every trial is told once, and nothing told is lost."""

import _thread
import contextlib
import os
import signal
import subprocess
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import pytest
import torch

import nestbo as nb
from nestbo.parallel import Here
from nestbo.storage.owners import _started

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def bowl(x):
    return float((x**2 * torch.arange(1, x.numel() + 1, dtype=x.dtype).reshape(x.shape)).sum())


def quiet(study, f, n, **options):
    return study.run(f, n, progress=False, **options)


def fresh(path=None, strategy=None):
    return nb.Study(nb.Sphere(2), strategy or nb.RandomSearch(), seed=3, store=path)


def statuses(study):
    return [(trial.index, trial.status) for trial in study.history]


def all_told(study, n):
    assert statuses(study) == [(k, "told") for k in range(n)]
    assert all(trial.value == bowl(trial.x) for trial in study.history)


def losses(study):
    return [trial.index for trial in study.history if trial.told.lost]


class Backwards(Here):
    """Two evaluations at a time, of which the second ends first."""

    def __init__(self):
        self.waiting = None

    def submit(self, fn, *args):
        if self.waiting is None:
            self.waiting = (Future(), fn, args)
            return self.waiting[0]
        first, *call = self.waiting
        self.waiting = None
        second = super().submit(fn, *args)
        first.set_result(call[0](*call[1]))
        return second


# executors


@pytest.mark.parametrize("make", [ThreadPoolExecutor, ProcessPoolExecutor])
@pytest.mark.parametrize("instance", [True, False])
def test_any_executor_evaluates_everything_once(make, instance, tmp_path):
    study = fresh(tmp_path / "s.db")
    executor = make(3) if instance else make
    quiet(study, bowl, 20, executor=executor, workers=3)
    if instance:
        assert executor.submit(abs, -2).result() == 2  # still its owner's
        executor.shutdown()
    all_told(study, 20)
    assert torch.equal(
        study.history.points, quiet(fresh(), bowl, 20).history.points
    )  # random points depend on the index


def test_loky(tmp_path):
    loky = pytest.importorskip("loky")
    study = fresh(tmp_path / "s.db")
    with loky.ProcessPoolExecutor(1) as executor:
        quiet(study, lambda x: bowl(x), 3, executor=executor, workers=1)
    all_told(study, 3)


def test_a_free_worker_gets_a_point_while_others_are_at_work_and_pending_points_count():
    """Four workers that wait for each other: all four points are out at once, and all differ."""
    together, seen = threading.Barrier(4, timeout=30), []

    def f(x):
        seen.append(tuple(x.tolist()))
        together.wait()
        return bowl(x)

    study = fresh(strategy=nb.GaBO(initial=2))
    for x in nb.Sphere(2).random(3, rng=torch.Generator().manual_seed(0)):
        study.add(x, bowl(x))
    quiet(study, f, 4, executor=ThreadPoolExecutor, workers=4)
    points = torch.tensor(seen)
    assert (torch.cdist(points, points) + torch.eye(4) > 1e-3).all()
    assert all(trial.memory.arm is not None for trial in study.history[3:])


def test_eight_workers_lose_nothing_and_double_nothing(tmp_path, request):
    """Full run: 2,000 trials for each of the eight."""
    n = 8 * (2000 if request.config.getoption("--full") else 20)
    study, seen = fresh(tmp_path / "s.db"), []
    quiet(study, lambda x: seen.append(tuple(x.tolist())) or bowl(x), n, executor=ThreadPoolExecutor, workers=8)
    all_told(study, n)
    assert len(seen) == len(set(seen)) == n


def test_one_slow_evaluation_keeps_nobody_waiting():
    release, count = threading.Event(), iter(range(100))

    def f(x):
        if next(count) == 0:
            assert release.wait(30)
        elif len([t for t in study.history if t.status == "told"]) == 8:
            release.set()
        return bowl(x)

    study = fresh()
    quiet(study, f, 10, executor=ThreadPoolExecutor, workers=2)
    all_told(study, 10)


def test_outcomes_may_come_in_any_order():
    study = fresh(strategy=nb.GaBO(initial=2))
    quiet(study, bowl, 8, executor=Backwards(), workers=2)
    all_told(study, 8)


def test_no_more_at_a_time_than_workers():
    running, most, lock = 0, 0, threading.Lock()

    def f(x):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1
        return 1.0

    quiet(fresh(), f, 12, executor=ThreadPoolExecutor(8), workers=3)
    assert most <= 3


# mistakes of the objective, elsewhere


def divide(x):
    return 1 / 0


def returns_a_function(x):
    return lambda: x


def leaves(x):
    raise SystemExit(3)


@pytest.mark.parametrize("options", [{}, {"executor": ProcessPoolExecutor, "workers": 1}, {"timeout": 30}], ids=str)
@pytest.mark.parametrize(
    ("f", "words"),
    [(divide, "ZeroDivisionError"), (returns_a_function, "not a number"), (leaves, "exit(3)")],
)
def test_mistakes_are_recorded_wherever_they_happen(f, words, options):
    study = quiet(fresh(), f, 2, **options)
    assert [t.status for t in study.history] == ["failed"] * 2
    assert all(words in t.told.failed for t in study.history)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"executor": ThreadPoolExecutor, "workers": 2}, ZeroDivisionError),
        ({"executor": ProcessPoolExecutor, "workers": 2}, nb.ObjectiveError),
        ({"timeout": 30}, nb.ObjectiveError),
    ],
)
def test_errors_can_be_raised_from_elsewhere(options, error):
    study = fresh()
    with pytest.raises(error, match="division"):
        quiet(study, divide, 5, on_error="raise", **options)
    assert "failed" in [trial.status for trial in study.history]


def test_what_cannot_be_sent_ends_the_run_with_a_sentence():
    study = fresh()
    with pytest.raises(nb.NestboError, match="cannot be sent to a worker"):
        quiet(study, lambda x: 1.0, 5, executor=ProcessPoolExecutor, workers=2)
    quiet(study, bowl, 3)
    all_told(study, 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": 2}, "go together"),
        ({"executor": ThreadPoolExecutor}, "go together"),
        ({"executor": ThreadPoolExecutor, "workers": 0}, "at least 1"),
        ({"executor": "threads", "workers": 2}, "concurrent.futures"),
        ({"executor": lambda n: n, "workers": 2}, "concurrent.futures"),
        ({"timeout": 0}, "positive number"),
        ({"timeout": float("inf")}, "positive number"),
        ({"timeout": True}, "positive number"),
        ({"timeout": float("nan")}, "positive number"),
        ({"timeout": "1 s"}, "positive number"),
    ],
)
def test_mistakes_are_explained(options, words):
    study = fresh()
    with pytest.raises(nb.ArgumentError, match=words):
        quiet(study, bowl, 1, **options)
    assert len(study.history) == 0


# workers that die


def dies_once(marker, x):
    """Kills its process the first time it sees a point of the upper half."""
    if x[2] > 0:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return bowl(x)
        os.kill(os.getpid(), signal.SIGKILL)
    return bowl(x)


def dies_above(x):
    if x[2] > 0.5:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.02)
    return bowl(x)


def test_a_dead_worker_loses_a_trial_which_is_handed_out_again(tmp_path):
    study = fresh(tmp_path / "s.db")
    quiet(study, partial(dies_once, tmp_path / "died"), 12, executor=ProcessPoolExecutor, workers=3)
    all_told(study, 12)
    assert losses(study)
    assert torch.equal(study.history.points, quiet(fresh(), bowl, 12).history.points)


def test_a_broken_executor_that_is_not_ours_ends_the_run_and_the_next_goes_on(tmp_path):
    study = fresh(tmp_path / "s.db")
    with ProcessPoolExecutor(2) as executor, pytest.raises(nb.NestboError, match="takes no more") as caught:
        quiet(study, partial(dies_once, tmp_path / "died"), 12, executor=executor, workers=2)
    assert "\n" not in str(caught.value)
    kept = [trial for trial in study.history if trial.status == "told"]
    lost = losses(study)
    assert lost
    with ProcessPoolExecutor(2) as executor:
        quiet(study, bowl, 12 - len(kept), executor=executor, workers=2)
    all_told(study, 12)
    assert losses(study) == lost


def test_who_kills_every_worker_fails_alone():
    """Innocent trials that were under way in the same pool are evaluated all the same."""
    study = quiet(fresh(), dies_above, 12, executor=ProcessPoolExecutor, workers=3)
    deadly = [trial.index for trial in study.history if trial.x[2] > 0.5]
    assert deadly
    assert [t.index for t in study.history if t.status == "failed"] == deadly
    assert all("died 3 times" in study.history[k].told.failed for k in deadly)
    assert all(t.value == bowl(t.x) for t in study.history if t.status == "told")


class Poison:
    """An objective that workers cannot receive."""

    def __call__(self, x):
        return 1.0

    def __reduce__(self):
        return os._exit, (1,)


def test_workers_that_cannot_receive_the_objective_end_the_run():
    study = fresh()
    with pytest.raises(nb.NestboError, match="before they evaluate anything"):
        quiet(study, Poison(), 5, executor=ProcessPoolExecutor, workers=2)
    assert {t.status for t in study.history} == {"asked"}
    quiet(study, bowl, 5, executor=ProcessPoolExecutor, workers=2)
    all_told(study, 5)


# time


def hangs_above(x):
    while x[2] > 0:
        time.sleep(60)
    return bowl(x)


def starts_another(path, x, hangs=True, daemon=False):
    """A process of its own session, or a daemon: of a parent that has ended."""
    if daemon and os.fork():
        os.wait()
    else:
        process = subprocess.Popen(["sleep", "60"], start_new_session=True)
        (path / str(process.pid)).touch()
    if daemon and os.getpid() != os.getpgid(0):
        os._exit(0)
    if hangs:
        time.sleep(60)
    return 1.0


@pytest.mark.parametrize(
    "options", [{}, *({"executor": e, "workers": 4} for e in (ThreadPoolExecutor, ProcessPoolExecutor))], ids=str
)
def test_an_evaluation_that_hangs_is_ended_and_has_failed(options, tmp_path):
    study = fresh(tmp_path / "s.db")
    quiet(study, hangs_above, 6, timeout=0.3, **options)
    failed = [trial.index for trial in study.history if trial.status == "failed"]
    assert failed == [trial.index for trial in study.history if trial.x[2] > 0]
    assert 0 < len(failed) < 6
    assert all("within 0.3 s" in study.history[k].told.failed for k in failed)
    assert all(t.value == bowl(t.x) for t in study.history if t.status == "told")


@pytest.mark.parametrize("hangs", [True, False])
@pytest.mark.parametrize("daemon", [True, False])
def test_what_it_started_is_ended_too(hangs, daemon, tmp_path):
    """Also what began a session of its own, and what has lost its parent; also if the evaluation ends in time."""
    quiet(fresh(), partial(starts_another, tmp_path, hangs=hangs, daemon=daemon), 1, timeout=1.0 if hangs else 30.0)
    (started,) = (int(path.name) for path in tmp_path.iterdir())
    end = time.monotonic() + 10
    while _started(started) not in ("", "zombie"):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_process_that_dies_before_its_time_is_up_is_lost():
    study = quiet(fresh(), dies_above, 10, timeout=30)
    deadly = [trial.index for trial in study.history if trial.x[2] > 0.5]
    assert [t.index for t in study.history if t.status == "failed"] == deadly
    assert losses(study) == deadly


def dies(x):
    os.kill(os.getpid(), signal.SIGKILL)


def dies_before_its_child(x):
    if os.fork() == 0:
        time.sleep(60)
    dies(x)


@pytest.mark.parametrize("f", [dies, dies_before_its_child])
def test_a_death_is_not_blamed_on_the_clock(f, monkeypatch):
    """Although another process, forked at the same time, holds the end of the pipe open."""
    fork, siblings = os.fork, []

    def beside_a_sibling():
        siblings.append(fork())
        if siblings[-1] == 0:
            time.sleep(60)
            os._exit(0)
        return fork()

    with monkeypatch.context() as patch:
        patch.setattr(os, "fork", beside_a_sibling)
        study = quiet(fresh(), f, 1, timeout=5)
    for sibling in siblings:
        os.kill(sibling, signal.SIGKILL)
        os.waitpid(sibling, 0)
    assert "died 3 times" in study.history[0].told.failed


def test_threads_of_openmp_are_not_waited_for_after_a_fork():
    """Torch's threads do not survive a fork; without care, an objective with large tensors would hang."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        large = torch.ones(400, 400, dtype=torch.float64)
        (large @ large).exp()
        study = quiet(fresh(), lambda x: (large @ large).exp().isinf().sum() + x[0], 1, timeout=20)
        assert study.history[0].status == "told"
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


# interruptions


@pytest.mark.parametrize("make", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_control_c_keeps_everything_told_and_leaves_the_rest_to_the_next_run(make, tmp_path):
    study, seen = fresh(tmp_path / "s.db"), []

    class Interrupting(nb.progress.Reporter):
        def advanced(self, done, best):
            seen.append(done.index)
            if len(seen) == 5:
                _thread.interrupt_main()
                time.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        study.run(bowl, 50, executor=make, workers=3, progress=Interrupting())
    told = [trial for trial in study.history if trial.status == "told"]
    assert 5 <= len(told) <= 8
    quiet(study, bowl, 12 - len(told))
    all_told(study, 12)


@pytest.mark.parametrize(
    "options", [{}, {"timeout": 30}, {"executor": ThreadPoolExecutor, "workers": 2, "timeout": 30}], ids=str
)
def test_an_objective_that_is_interrupted_ends_the_run(options):
    def f(x):
        raise KeyboardInterrupt

    study = fresh()
    with pytest.raises(KeyboardInterrupt):
        quiet(study, f, 4, **options)
    assert {t.status for t in study.history} == {"asked"}
    quiet(study, bowl, 3)
    all_told(study, 3)


def test_an_error_of_the_store_leaves_the_pool_behind_and_nothing_half_done(tmp_path, monkeypatch):
    study, count, tell = fresh(tmp_path / "s.db"), iter(range(100)), nb.storage.Store.tell

    def full(store, trial):
        if next(count) == 4:
            raise nb.StoreError("Cannot write to the store: the disk is full.")
        tell(store, trial)

    monkeypatch.setattr(nb.storage.Store, "tell", full)
    with pytest.raises(nb.StoreError, match="full"):
        quiet(study, bowl, 12, executor=ThreadPoolExecutor, workers=3)
    quiet(study, bowl, 12 - sum(t.status == "told" for t in study.history))
    all_told(study, 12)


# a cluster


def waits_once(folder, x):
    """The first time, says on which process it is, and waits there."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
        (folder / str(os.getpid())).touch()
        time.sleep(60)
    return bowl(x)


@pytest.mark.filterwarnings("ignore")  # of dask and its servers
def test_a_dask_worker_is_killed_while_evaluating(tmp_path):
    """A real cluster of worker processes; the trial is noted as lost, handed out again, and nothing told is lost."""
    distributed = pytest.importorskip("distributed")
    import dask

    folder = tmp_path / "waiting"

    def kill():
        while not (found := list(folder.glob("*"))):
            time.sleep(0.02)
        os.kill(int(found[0].name), signal.SIGKILL)

    study, assassin = fresh(tmp_path / "s.db"), threading.Thread(target=kill, daemon=True)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assassin.start()
        quiet(study, partial(waits_once, folder), 15, executor=client.get_executor(), workers=2)
    assassin.join()
    all_told(study, 15)
    (lost,) = losses(study)
    assert "KilledWorker" in study.history[lost].told.lost[0]
    assert torch.equal(study.history.points, quiet(fresh(), bowl, 15).history.points)


@pytest.mark.filterwarnings("ignore")  # of dask and its servers
def test_a_run_says_that_a_cluster_has_no_workers(monkeypatch):
    """After a while, and again; when workers come, it goes on."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(nb.parallel, "_SILENCE", 0.1)
    monkeypatch.setattr(nb.parallel, "_WORD", 0.3)
    words, study = [], fresh()

    class Listening(nb.progress.Reporter):
        def waiting(self, why):
            words.append(why)
            if len(words) == 2:
                cluster.scale(1)

    options = {"n_workers": 0, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        study.run(bowl, 3, executor=client.get_executor(), workers=2, progress=Listening())
    all_told(study, 3)
    assert len(words) >= 2
    assert all("no workers" in why for why in words)


@pytest.mark.parametrize("make", [nb.progress.Reporter, nb.progress.Lines, nb.progress.Bar])
def test_waiting_is_said_whatever_the_reporter(make, capsys):
    report = make()
    with report.watching(1):
        report.waiting("nobody is there")
    assert "waiting: nobody is there" in capsys.readouterr().err
