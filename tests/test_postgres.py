"""A team with a database server: three processes share an Optuna study in a real PostgreSQL, started here."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import torch

import nestbo as nb
from nestbo.optuna import ManifoldSampler, point, suggest

optuna = pytest.importorskip("optuna")
pytest.importorskip("psycopg")

SPACE = nb.Sphere(2)
WORKER = """
import sys, optuna, nestbo as nb
from nestbo.optuna import ManifoldSampler, suggest

space = nb.Sphere(2)
sampler = ManifoldSampler(space, nb.GaBO(initial=4))
study = optuna.load_study(study_name="arm", storage=sys.argv[1], sampler=sampler)
study.optimize(lambda trial: float(1 - suggest(trial, space)[0]), n_trials=3)
"""


def programs():
    """Where the programs of PostgreSQL are: on the path, or where Debian puts them."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return next((folder for folder in reversed(folders) if (folder / "initdb").exists()), None)


@pytest.fixture
def server(request):
    """The address of a new database. It listens to no network; PostgreSQL refuses to run as root."""
    where = programs()
    if not request.config.getoption("--full"):
        pytest.skip("a long one, three processes and a server; --full runs it")
    if where is None:
        pytest.skip("PostgreSQL is not installed; Debian's package is postgresql")
    as_whom = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        if as_whom:
            shutil.chown(folder, **as_whom)
        options = {**as_whom, "cwd": folder, "check": True, "capture_output": True}
        subprocess.run([where / "initdb", "-D", "data", "-A", "trust", "-U", "postgres", "--no-sync"], **options)
        command = [where / "postgres", "-D", "data", "-k", folder, "-c", "listen_addresses=", "-F"]
        with open(folder / "log", "w") as log:
            running = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, **as_whom)
        with contextlib.ExitStack() as ending:
            ending.callback(running.wait)
            ending.callback(running.terminate)
            address = f"postgresql+psycopg://postgres@/postgres?host={folder}"
            wait_for(folder / ".s.PGSQL.5432", running)
            yield address
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def wait_for(socket, running, seconds=30):
    end = time.monotonic() + seconds
    while not socket.exists():
        assert running.poll() is None, "the server ended"
        assert time.monotonic() < end, "the server did not start"
        time.sleep(0.05)


def test_three_processes_share_a_study_in_a_database(server):
    """What they wrote is complete, distinct and on the manifold, and another process goes on with it."""
    storage = optuna.storages.RDBStorage(server)
    optuna.create_study(study_name="arm", storage=storage)
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, server], stderr=subprocess.PIPE, env=alone) for _ in range(3)
    ]
    ends = [worker.communicate(timeout=250)[1].decode() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0], "\n".join(ends)
    study = optuna.load_study(study_name="arm", storage=storage, sampler=ManifoldSampler(SPACE, nb.GaBO(initial=4)))
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 9
    points = torch.stack([point(trial, SPACE) for trial in study.trials])
    SPACE.check(points)
    assert (torch.cdist(points, points) + torch.eye(9) > 1e-9).all()
    assert [float(1 - x[0]) for x in points] == [trial.value for trial in study.trials]
    assert any(trial.memory.arm is not None for trial in study.sampler.history(study))
    study.optimize(lambda trial: float(1 - suggest(trial, SPACE)[0]), n_trials=1)
    assert len(study.trials) == 10
    storage.engine.dispose()
