"""Cells of a suite, in as many processes as are wanted, until they are done or time is up."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import torch

from nestbo.errors import ArgumentError
from nestbo.experiment.suites import Cell
from nestbo.experiment.trials import INITIAL, evaluated, minutes
from nestbo.experiment.trials import run as run_trials

_REPORT_EVERY = 60.0  # seconds
_counter: Any = None  # in a worker: the evaluations that all of them have made


def run(
    cells: Sequence[Cell],
    budget: int,
    out: Path,
    *,
    device: str = "cpu",
    jobs: int = 1,
    threads: int = 1,
    limit: float = float("inf"),
    report: Callable[[str], Any] = lambda line: print(line, flush=True),  # noqa: T201
) -> list[str]:
    """Bring every cell to ``budget`` evaluations; what is there is gone on from. Returns what went wrong, a line each.

    Cells start in their order, ``jobs`` at a time, each in one process; none begins a step after ``limit`` seconds.
    """
    deadline = time.time() + limit
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ArgumentError(f"There is no {device} here: torch {torch.__version__} finds no GPU. Use --device cpu.")
    todo = [cell for cell in cells if evaluated(out / cell.name) < budget]
    steps = _left(todo, budget, out)
    report(f"{len(todo)} of {len(cells)} cells to run, {steps} steps")
    spawn = multiprocessing.get_context("spawn")
    count = spawn.Value("q", 0)
    with ProcessPoolExecutor(jobs, spawn, _begin, (count, threads)) as pool:
        futures = {pool.submit(_run, cell, budget, out / cell.name, device, deadline): cell for cell in todo}
        _watch(list(futures), steps, count, report)
    left = _left(todo, budget, out)
    report(f"{left} steps left; the same command goes on" if left else "done")
    return [f"{cell.name}: {future.exception()!r}" for future, cell in futures.items() if future.exception()]


def _left(cells: Sequence[Cell], budget: int, out: Path) -> int:
    """Steps that cells still need."""
    return sum(max(0, budget - max(evaluated(out / cell.name), INITIAL)) for cell in cells)


def _watch(futures: list[Future[None]], steps: int, count: Any, report: Callable[[str], Any]) -> None:
    """Say now and then how far all have come."""
    began, waiting = time.monotonic(), set(futures)
    while waiting:
        _, waiting = wait(waiting, _REPORT_EVERY)
        done, passed = count.value, time.monotonic() - began
        left = f", {minutes(passed / done * (steps - done))} left at this pace" if done else ""
        complete = len(futures) - len(waiting)
        report(f"{complete}/{len(futures)} cells, {done}/{steps} steps, {minutes(passed)}{left}")


def _begin(count: Any, threads: int) -> None:
    """In each worker, at its start: it ends with its parent, however that ends."""
    global _counter
    _counter = count
    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _stepped() -> None:
    with _counter.get_lock():
        _counter.value += 1


def _run(cell: Cell, budget: int, path: Path, device: str, deadline: float) -> None:
    """In a worker: one cell."""
    left = deadline - time.time()
    if left > 0:
        run_trials(cell.trials, budget, path, device=device, limit=left, stepped=_stepped, label=cell.label)
