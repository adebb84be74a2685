"""A study of three Optuna workers, and a picture of it in optuna-dashboard.

python examples/optuna_dashboard.py [picture.png] needs optuna, optuna-dashboard and chromium.
"""

import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import optuna
from scipy.spatial.transform import Rotation

import nestbo as nb
from nestbo.optuna import ManifoldSampler, suggest

SPACE = nb.Product(nb.Quaternion(), nb.Box(0.0, 1.0))
BEST = Rotation.from_euler("xyz", [20, -50, 110], degrees=True)
PORT = 8899


def defects(trial):
    orientation, speed = SPACE.split(suggest(trial, SPACE))
    time.sleep(0.5)
    return (Rotation.from_quat(orientation.numpy()) * BEST.inv()).magnitude() ** 2 + (float(speed[0]) - 0.6) ** 2


def work(storage, trials):
    study = optuna.create_study(
        study_name="print", storage=storage, sampler=ManifoldSampler(SPACE), load_if_exists=True
    )
    study.optimize(defects, n_trials=trials)


def photograph(storage, picture, folder):
    page = f"http://127.0.0.1:{PORT}/dashboard/studies/1"
    dashboard = subprocess.Popen(["optuna-dashboard", "--port", str(PORT), storage])
    try:
        for _ in range(60):
            try:
                urllib.request.urlopen(page).close()
                break
            except OSError:
                time.sleep(0.5)
        size = ["--window-size=1400,1100", "--hide-scrollbars", "--virtual-time-budget=20000"]
        chromium = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/browser"]
        subprocess.run([*chromium, *size, f"--screenshot={picture}", page], check=True)
    finally:
        dashboard.terminate()
        dashboard.wait()


def main(picture="docs/pictures/optuna-dashboard.png"):
    missing = [command for command in ("optuna-dashboard", "chromium") if shutil.which(command) is None]
    if missing:
        sys.exit(f"Needs {' and '.join(missing)}, found none. Install what is missing.")
    with tempfile.TemporaryDirectory() as folder:
        storage = f"sqlite:///{folder}/print.db"
        optuna.create_study(study_name="print", storage=storage)
        workers = [subprocess.Popen([sys.executable, __file__, "--work", storage]) for _ in range(3)]
        if any(worker.wait() for worker in workers):
            sys.exit("A worker failed.")
        photograph(storage, Path(picture).resolve(), folder)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], 10)
    else:
        main(*sys.argv[1:])
