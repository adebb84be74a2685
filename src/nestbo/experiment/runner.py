"""Cells of a suite, in as many processes as are wanted, until they are done or time is up."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any

import torch

from nestbo.errors import ArgumentError
from nestbo.experiment.suites import Cell
from nestbo.experiment.threads import workers
from nestbo.experiment.trial_files import evaluated, minutes, run_together
from nestbo.experiment.trials import INITIAL

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
    together: bool = False,
    report: Callable[[str], Any] = lambda line: print(line, flush=True),  # noqa: T201
) -> list[str]:
    """Bring every cell to ``budget`` evaluations; what is there is gone on from. Returns what went wrong, a line each.

    Cells start in their order, ``jobs`` at a time, each in one process; none begins a step after ``limit`` seconds.
    With ``together``, the problems of one space are one batch in one process for each method: a GPU advances them in
    less time than one after the other.
    """
    deadline = time.time() + limit
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ArgumentError(f"There is no {device} here: torch {torch.__version__} finds no GPU. Use --device cpu.")
    todo = [cell for cell in cells if evaluated(out / cell.name) < budget]
    steps = _left(todo, budget, out)
    report(f"{len(todo)} of {len(cells)} cells to run, {steps} steps")
    spawn = multiprocessing.get_context("spawn")
    count = spawn.Value("q", 0)
    batches = _batches(todo, out) if together else [[cell] for cell in todo]
    with workers(threads), ProcessPoolExecutor(jobs, spawn, _begin, (count, threads)) as pool:
        futures = {pool.submit(_run, batch, budget, out, device, deadline): batch for batch in batches}
        _watch(list(futures), steps, count, report)
    left = _left(todo, budget, out)
    report(f"{left} steps left; the same command goes on" if left else "done")
    failed = [(future.exception(), batch) for future, batch in futures.items() if future.exception()]
    return [f"{', '.join(cell.name for cell in batch)}: {error!r}" for error, batch in failed]


def _batches(cells: Sequence[Cell], out: Path) -> list[list[Cell]]:
    """Cells that differ in their problems or seeds alone and have come equally far."""
    found: dict[Any, list[Cell]] = {}
    for cell in cells:
        trials, count = cell.trials, evaluated(out / cell.name)
        alike = (cell.label, trials.method, trials.space, trials.latent_dim, trials.noise > 0, count)
        found.setdefault(alike, []).append(cell)
    return list(found.values())


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
        report(f"{complete}/{len(futures)} batches, {done}/{steps} steps, {minutes(passed)}{left}")


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


def _stepped(count: int) -> None:
    with _counter.get_lock():
        _counter.value += count


def _run(batch: Sequence[Cell], budget: int, out: Path, device: str, deadline: float) -> None:
    """In a worker: one cell, or several together."""
    left = deadline - time.time()
    if left > 0:
        parts, stepped = {out / cell.name: cell.trials for cell in batch}, partial(_stepped, len(batch))
        run_together(parts, budget, device=device, limit=left, stepped=stepped, label=batch[0].label)
