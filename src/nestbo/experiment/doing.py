"""What each command of ``nestbo bench`` does with its arguments: ``COMMANDS``, by name."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import torch

from nestbo.errors import ArgumentError
from nestbo.experiment import applications
from nestbo.experiment.command import say
from nestbo.experiment.names import APPLICATIONS
from nestbo.experiment.pages import report
from nestbo.experiment.results import collect, pack, results, unpack
from nestbo.experiment.runner import run as run_cells
from nestbo.experiment.suites import SUITES, Suite, suite
from nestbo.experiment.tables import tables
from nestbo.experiment.trial_files import run
from nestbo.experiment.trials import Trials
from nestbo.gallery import CATALOGUE
from nestbo.text import printable


def _list(given: Namespace) -> None:
    if given.suite == APPLICATIONS:
        _list_applications()
    else:
        _list_suite(suite(given.suite))


def _list_suite(found: Suite) -> None:
    say("problems: " + ", ".join(task.key for task in found.tasks))
    for label, method in found.methods.items():
        texts = dict.fromkeys(text for task in found.tasks if (text := method.text(task)) is not None)
        say(f"{label:17} {method.about}: {' | '.join(texts) or 'an earlier version; only its results are kept'}")


def _list_applications() -> None:
    say("problems: " + ", ".join(CATALOGUE))
    for label, rival in applications.METHODS.items():
        say(f"{label:17} {rival.about}")


def _run(given: Namespace) -> int:
    seeds = range(given.first, given.first + given.trials)
    options: dict[str, Any] = {"jobs": given.jobs, "threads": given.threads, "limit": given.limit}
    if given.suite == APPLICATIONS:
        if given.together:
            raise ArgumentError("Applications run one after the other. Leave out --together, and use --jobs.")
        wanted = applications.cells(given.problems, given.methods, seeds)
        wrong = applications.run(wanted, given.out, budget=given.budget, **options)
    else:
        chosen = suite(given.suite)
        cells = chosen.cells(given.methods, given.problems, seeds=seeds, chunk=given.chunk)
        options |= {"device": given.device, "together": given.together}
        wrong = run_cells(cells, given.budget or chosen.budget, given.out, **options)
    for line in wrong:
        sys.stderr.write(printable(line) + "\n")
    return int(bool(wrong))


def _one(given: Namespace) -> None:
    torch.set_num_threads(given.threads)
    seeds = tuple(range(given.first, given.first + given.trials))
    trials = Trials(given.problem, given.space, given.method, seeds, given.latent_dim)
    state = run(trials, given.budget, given.out / trials.name, device=given.device, limit=given.limit)
    best = state.y.amin(1)
    quarters = torch.tensor([0.25, 0.5, 0.75], dtype=best.dtype, device=best.device)
    low, middle, high = best.quantile(quarters).tolist()
    say(f"{trials.method}: after {state.y.shape[1]} evaluations, median {middle:.4g} ({low:.4g}, {high:.4g})")


def _table(given: Namespace) -> None:
    if given.suite == APPLICATIONS:
        found = applications.tables(applications.read(given.places))
    else:
        chosen = None if given.suite is None else suite(given.suite)
        found = tables(results(given.places, chosen), chosen, given.target)
    for line in found:
        say(line)


def _figures(given: Namespace) -> None:
    from nestbo.experiment.figures import figures

    chosen = None if given.suite is None else suite(given.suite)
    for path in figures(results(given.places, chosen), given.out, chosen):
        say(str(path))


def _report(given: Namespace) -> None:
    say(f"{given.out}: {', '.join(report(given.places, given.out))}")


def _pack(given: Namespace) -> None:
    say(f"{pack(given.folder, given.out)} files in {given.out}")


def _unpack(given: Namespace) -> None:
    say(f"{unpack(given.archive, given.out)} files in {given.out}")


def _collect(given: Namespace) -> None:
    say(f"{len(collect(given.places, given.out, given.replace))} archives in {given.out}")


def _evidence(given: Namespace) -> int:
    from nestbo.experiment import evidence

    chosen = SUITES if given.suites == "all" else {name: suite(name) for name in given.suites.split(",")}
    parts = [part for part in evidence.PARTS if part.suite in chosen]
    if given.plan:
        known = evidence.paces([given.archive, given.out])
        for text in evidence.plan(parts, given.out, known, given.jobs, given.trials):
            say(text)
        return 0
    options: dict[str, Any] = {"jobs": given.jobs, "device": given.device, "trials": given.trials}
    options["one_version"] = given.one_version
    wrong = evidence.make(given.out, given.archive, parts=parts, say=say, **options)
    if given.pages is not None:
        earlier = given.archive.parent / "paper"  # methods that only earlier versions ran
        evidence.pages(given.pages, [given.archive, *([earlier] if earlier.is_dir() else [])], say)
    for text in wrong:
        sys.stderr.write(printable(text) + "\n")
    return int(bool(wrong))


COMMANDS: dict[str, Callable[[Namespace], int | None]] = {
    "list": _list,
    "run": _run,
    "one": _one,
    "table": _table,
    "figures": _figures,
    "report": _report,
    "pack": _pack,
    "unpack": _unpack,
    "collect": _collect,
    "evidence": _evidence,
}
