"""Many workers: wall time, what the regret costs, and trials per second.

python benchmarks/parallel.py time        an objective that sleeps, with 1, 4 and 8 workers
python benchmarks/parallel.py regret      the same number of evaluations with 1, 4 and 8 under way at a time
python benchmarks/parallel.py throughput  eight workers, 16,000 trials that cost nothing, into one file
python benchmarks/parallel.py large       a file with 10,000 trials: time to open and read, and memory
"""

import argparse
import heapq
import random
import resource
import statistics
import tempfile
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import torch

import nestbo as nb

WORKERS = (1, 4, 8)


class Simulated(Executor):
    """Evaluations of random length on ``workers``, in simulated time: the one that is to end first has ended."""

    def __init__(self, workers, total, seed):
        self.workers, self.left, self.chance, self.now = workers, total, random.Random(seed), 0.0
        self.running = []

    def submit(self, call, *arguments):
        future = Future()
        end = self.now + self.chance.uniform(0.5, 1.5)
        heapq.heappush(self.running, (end, self.left, future, call, arguments))
        self.left -= 1
        while self.running and (len(self.running) == self.workers or not self.left):
            self.now, _, first, call, arguments = heapq.heappop(self.running)
            first.set_result(call(*arguments))
        return future


def sleeping(seconds, x):
    time.sleep(seconds)
    return float(x[0])


def cheap(x):
    return float(x[0])


def measure_time(seconds=2.0, n=40):
    """Seconds for n evaluations that sleep, and how many times faster than one worker."""
    for strategy in (nb.RandomSearch(), nb.GaBO()):
        alone = None
        for workers in WORKERS:
            study = nb.Study(nb.Sphere(5), strategy, seed=0)
            start = time.perf_counter()
            study.run(partial(sleeping, seconds), n, executor=ThreadPoolExecutor, workers=workers, progress=False)
            took = time.perf_counter() - start
            alone = alone or took
            print(f"{strategy!r:16} {workers} workers: {took:6.1f} s, {alone / took:.2f} times faster", flush=True)


def measure_regret(seeds=5, n=60):
    """The median over seeds of the distance to the optimum, after some numbers of evaluations."""
    for problem in (nb.problem("ackley", nb.Sphere(5)), nb.problem("rosenbrock", nb.Sphere(5))):
        for workers in WORKERS:
            runs = []
            for seed in range(seeds):
                study = nb.Study(problem.space, nb.GaBO(), seed=seed)
                executor = Simulated(workers, n, seed)
                study.run(problem.objective, n, executor=executor, workers=workers, progress=False)
                runs.append(torch.cummin(study.history.values, 0).values - problem.optimal_value)
            median = torch.stack(runs).median(0).values
            shown = ", ".join(f"{median[k - 1]:.3g} after {k}" for k in (n // 3, 2 * n // 3, n))
            print(f"{problem.name} on {problem.space}, {workers} workers: {shown}", flush=True)


def measure_throughput(workers=8, each=2000):
    """Trials per second, and whether each was told once."""
    for make in (ThreadPoolExecutor, ProcessPoolExecutor):
        with tempfile.TemporaryDirectory() as folder:
            study = nb.Study(nb.Sphere(2), nb.RandomSearch(), store=Path(folder) / "s.db")
            start = time.perf_counter()
            study.run(cheap, workers * each, executor=make, workers=workers, progress=False)
            took = time.perf_counter() - start
            indices = [trial.index for trial in study.history if trial.status == "told"]
            right = indices == list(range(workers * each))
            print(f"{make.__name__}: {workers * each / took:.0f} trials/s, {'all told once' if right else 'WRONG'}")
            study.close()


def measure_large(n=10_000, reads=100):
    """Open and read a large file; grow it; see the memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.db"
        with nb.Study(nb.Sphere(20), nb.RandomSearch(), store=path) as study:
            study.run(cheap, n, progress=False)
        opening, reading = [], []
        for _ in range(3):
            start = time.perf_counter()
            study = nb.Study.load(path)
            opening.append(time.perf_counter() - start)
            assert len(study.history) == n
            reading.append(time.perf_counter() - start)
            study.close()
        print(f"{n} trials: opened in {statistics.median(opening):.3f} s, opened and read in {min(reading):.3f} s")
        study, sizes = nb.Study.load(path), []
        for _ in range(4):
            for _ in range(reads):
                study.tell(study.ask(), 1.0)
                assert study.best is not None
            sizes.append(memory())
        print(f"memory after every {reads} trials more: {', '.join(f'{size:.1f}' for size in sizes)} MiB")


def memory():
    """Resident memory in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    measures = {name.removeprefix("measure_"): f for name, f in list(globals().items()) if name.startswith("measure_")}
    parser.add_argument("what", choices=measures)
    torch.set_num_threads(1)
    measures[parser.parse_args().what]()
