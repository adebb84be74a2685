"""Who works on a trial, seen from the same process, from another container, and after a boot."""

import ctypes
import os
import random
import signal
import time

import pytest
import torch

import nestbo as nb
from damage import change, raw
from nestbo.storage import owners, presence
from processes import exit_code, forked

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
NEW_PROCESSES = 0x20000000  # Linux's CLONE_NEWPID


def bowl(x):
    return float((x**2 * torch.arange(1, x.numel() + 1, dtype=x.dtype)).sum())


def fresh(path):
    return nb.Study(nb.Sphere(2), nb.RandomSearch(), seed=3, store=path)


def contained(work):
    """Do some work as the first process of a new container; the number by which it is known outside."""
    reader, writer = os.pipe()

    def outside():
        if ctypes.CDLL(None).unshare(NEW_PROCESSES):
            os._exit(2)
        first = forked(work)
        os.write(writer, f"{first}\n".encode())
        os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 0xFF)

    pid = forked(outside)
    os.close(writer)
    with os.fdopen(reader) as said:
        return pid, said.readline()


def may_contain():
    pid, _ = contained(lambda: None)
    return exit_code(pid) == 0


def kill(container):
    """End a container, and see it end."""
    pid, first = container
    os.kill(int(first), signal.SIGKILL)
    exit_code(pid)


containers = pytest.mark.skipif(not may_contain(), reason="makes containers, which takes rights")


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@containers
class TestContainers:
    def test_two_share_a_file_and_evaluate_each_point_once(self, tmp_path):
        """Their processes have the same numbers, and cannot see each other."""
        path, log = tmp_path / "s.db", tmp_path / "log"
        fresh(path).close()

        def evaluate(x):
            with log.open("a") as file:
                file.write(f"{x.tolist()}\n")
            time.sleep(0.01)
            return bowl(x)

        def work():
            with nb.Study.load(path) as study:
                study.run(evaluate, 12, progress=False)

        assert [exit_code(pid) for pid, _ in [contained(work) for _ in range(2)]] == [0, 0]
        lines = log.read_text().splitlines()
        assert (len(lines), len(set(lines))) == (24, 24)
        with nb.Study.load(path) as study:
            assert [(t.index, t.status) for t in study.history] == [(k, "told") for k in range(24)]

    def test_who_was_killed_is_dead_and_who_lives_is_not(self, tmp_path):
        """Seen from outside, and from another container."""
        path = tmp_path / "s.db"
        fresh(path).close()
        ready = tmp_path / "ready"

        def work():
            study = nb.Study.load(path)
            study.run(lambda x: ready.touch() or signal.pause(), 1, progress=False)

        def take():
            with nb.Study.load(path) as study:
                study.run(bowl, 1, progress=False)

        container = contained(work)
        until(ready.exists)
        assert exit_code(contained(take)[0]) == 0
        take()
        with nb.Study.load(path) as study:
            assert [t.status for t in study.history] == ["asked", "told", "told"]
        kill(container)
        assert exit_code(contained(take)[0]) == 0
        with nb.Study.load(path) as study:
            assert [t.status for t in study.history] == ["told"] * 3

    def test_kills_of_containers(self, tmp_path, request):
        """Nothing told is lost, nothing stays behind. Full run: 100 kills, each of one of two."""
        path, chance = tmp_path / "s.db", random.Random(0)
        fresh(path).close()

        def work():
            study = nb.Study.load(path)
            study.run(bowl, 10_000, progress=False)

        for _ in range(50 if request.config.getoption("--full") else 2):
            for container in [contained(work) for _ in range(2)]:
                time.sleep(chance.uniform(0, 0.1))
                kill(container)
        with nb.Study.load(path) as study:
            study.run(bowl, len(study.pending) + 1, progress=False)
            assert [(t.index, t.status) for t in study.history] == [(k, "told") for k in range(len(study.history))]
            assert all(t.value == bowl(t.x) for t in study.history)


class TestPresence:
    def test_a_process_is_present_as_long_as_it_has_the_file_open(self, tmp_path):
        path = tmp_path / "s.db"
        study, (reader, writer), (go, end) = fresh(path), os.pipe(), os.pipe()

        def work():
            other = nb.Study.load(path)
            os.write(writer, owners.process().encode())
            os.read(go, 1)
            other.close()
            os.write(writer, b"closed")
            os.read(go, 1)

        pid = forked(work)
        name = os.read(reader, 1000).decode()
        assert presence.present(study._store.file._key, name)
        os.write(end, b"x")
        assert os.read(reader, 1000) == b"closed"
        assert not presence.present(study._store.file._key, name)
        os.write(end, b"x")
        assert exit_code(pid) == 0
        study.close()

    def test_two_studies_of_one_process_share_the_mark(self, tmp_path):
        first, second = fresh(tmp_path / "s.db"), nb.Study.load(tmp_path / "s.db")
        (descriptor, count) = presence._OPEN[first._store.file._key]
        assert count == 2
        first.close()
        assert os.fstat(descriptor)
        second.close()
        with pytest.raises(OSError, match="Bad file"):
            os.fstat(descriptor)

    def test_a_study_that_nobody_closes_leaves_no_descriptor(self, tmp_path):
        fresh(tmp_path / "s.db").ask()
        assert not [key for key in presence._OPEN if key[2] == os.stat(tmp_path / "s.db").st_ino]

    def test_where_locks_are_not_to_be_had_everybody_is_present(self, tmp_path, monkeypatch):
        monkeypatch.setattr(presence, "fcntl", None)
        with fresh(tmp_path / "s.db") as study:
            study.run(bowl, 2, progress=False)
            assert presence.present(study._store.file._key, "anybody")


class TestJudgement:
    def left(self, path, boot=None, namespace=None):
        """A file with a trial that was being evaluated when its process died, perhaps on another boot."""
        fresh(path).close()
        exit_code(forked(lambda: nb.Study.load(path).run(lambda x: os._exit(0), 1, progress=False)))
        with raw(path) as connection:
            (owner,) = connection.execute("SELECT owner FROM trials").fetchone()
        parts = owner.split("/")
        changed = [boot or parts[0], namespace or parts[1], *parts[2:]]
        change(path, "UPDATE trials SET owner = ?", "/".join(changed))
        return "/".join(changed[:-1])

    @pytest.mark.parametrize("where", [{}, {"boot": "another"}, {"namespace": "1"}], ids=str)
    def test_a_dead_process_is_dead_also_of_another_boot(self, tmp_path, where):
        self.left(tmp_path / "s.db", **where)
        with nb.Study.load(tmp_path / "s.db") as study:
            study.run(bowl, 1, progress=False)
            assert [t.status for t in study.history] == ["told"]

    def test_a_process_of_another_boot_that_has_the_file_open_is_alive(self, tmp_path):
        """Another machine, perhaps."""
        process = self.left(tmp_path / "s.db", boot="another")
        with nb.Study.load(tmp_path / "s.db") as study, open(tmp_path / "s.db", "r+b") as file:
            presence.fcntl.fcntl(file, presence.fcntl.F_OFD_SETLK, presence._lock(presence.fcntl.F_WRLCK, process))
            study.run(bowl, 1, progress=False)
            assert [t.status for t in study.history] == ["asked", "told"]

    @pytest.mark.parametrize("text", ["", "1", "x:y", "a/b/c", "a/b/c/d/e/f", "////", "-1:2", "99999999999999999999:1"])
    def test_what_is_no_owner_is_nobody(self, text):
        assert not owners.alive(text, lambda process: False)
