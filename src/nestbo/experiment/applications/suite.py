"""The suite "applications": every method on every application, a process for each seed, resumable."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nestbo.errors import ArgumentError
from nestbo.experiment.applications.evaluations import Evaluations, Run, summary
from nestbo.experiment.applications.methods import METHODS, OnSpace
from nestbo.experiment.threads import workers
from nestbo.gallery.catalogue import CATALOGUE, entry, load
from nestbo.specification import check_known

COORDINATES = 2  # of each application: those of the field, then the numbers of our points
MANIFOLD = "manifold"  # what stands in the place of coordinates for methods that need none


@dataclass(frozen=True)
class Cell:
    """One method on one application with one seed; ``coordinates`` is an index, None for methods of nestbo."""

    application: str
    method: str
    coordinates: int | None
    seed: int

    @property
    def name(self) -> str:
        """Of the file."""
        where = MANIFOLD if self.coordinates is None else str(self.coordinates)
        return f"{self.application}__{self.method}__{where}__{self.seed}.json"


def cells(applications: str, methods: str, seeds: Sequence[int]) -> list[Cell]:
    """All with one objective; names are separated by commas, "all" is all. The first seed of everything comes first."""
    compared = {name: one for name, one in CATALOGUE.items() if one.objectives == 1}
    chosen = _chosen("application", applications, compared)
    return [
        Cell(application, method, coordinates, seed)
        for seed in seeds
        for application in chosen
        for method in _chosen("method", methods, METHODS)
        for coordinates in ((None,) if isinstance(METHODS[method], OnSpace) else range(COORDINATES))
    ]


def _chosen(kind: str, text: str, known: Any) -> list[str]:
    names = list(known) if text == "all" else text.split(",")
    for name in names:
        check_known(kind, name, known)
    return names


def run(
    wanted: Sequence[Cell],
    out: Path,
    *,
    budget: int | None = None,
    jobs: int = 1,
    threads: int = 1,
    limit: float = float("inf"),
    report: Callable[[str], Any] = lambda line: print(line, flush=True),  # noqa: T201
) -> list[str]:
    """Run every cell that has no complete file yet. Returns what went wrong, a line each.

    ``budget`` replaces that of each application. No evaluation begins after ``limit`` seconds; a run that was cut short
    is kept, and is made anew by the next call.
    """
    for name in dict.fromkeys(cell.application for cell in wanted):
        if entry(name).missing:
            raise ArgumentError(f"{name} needs {' '.join(entry(name).missing)}: pip install 'nestbo[gallery]'.")
    deadline = time.time() + limit
    out.mkdir(parents=True, exist_ok=True)
    todo = [cell for cell in wanted if not _complete(out / cell.name)]
    report(f"{len(todo)} of {len(wanted)} runs to make")
    spawn = multiprocessing.get_context("spawn")
    with workers(threads), ProcessPoolExecutor(jobs, spawn, max_tasks_per_child=1) as pool:
        futures = {pool.submit(_run, cell, out, budget, threads, deadline): cell for cell in todo}
        for number, future in enumerate(as_completed(futures)):
            report(f"{number + 1}/{len(todo)} {futures[future].name}: {_outcome(future)}")
    return [f"{cell.name}: {future.exception()!r}" for future, cell in futures.items() if future.exception()]


def _complete(path: Path) -> bool:
    return path.exists() and Run.read(path).complete


def _outcome(future: Future[Run | None]) -> str:
    if future.exception():
        return f"failed, {future.exception()}"
    made = future.result()
    return "no time left" if made is None else f"{made.reached} after {len(made.values)}"


def _run(cell: Cell, out: Path, budget: int | None, threads: int, deadline: float) -> Run | None:
    """In a process of its own: one cell, unless time is up."""
    if time.time() > deadline:
        return None
    torch.set_num_threads(threads)
    application, method = load(cell.application), METHODS[cell.method]
    made = Evaluations(application, budget or application.budget, deadline)
    began, where = time.perf_counter(), MANIFOLD
    if isinstance(method, OnSpace):
        chosen = method.run(made, cell.seed)
    else:
        coordinates = application.coordinates[cell.coordinates or 0]
        chosen, where = method.run(made, coordinates, cell.seed), coordinates.name
    found = summary(made, cell.method, where, cell.seed, time.perf_counter() - began, chosen)
    found.write(out / cell.name)
    return found
