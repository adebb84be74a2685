"""The command: ``python -m nestbo.experiment`` and ``nestbo bench``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch

from nestbo.errors import NestboError
from nestbo.experiment import applications
from nestbo.experiment.pages import report
from nestbo.experiment.results import collect, pack, results, unpack
from nestbo.experiment.runner import run as run_cells
from nestbo.experiment.suites import SUITES, suite
from nestbo.experiment.tables import tables
from nestbo.experiment.trials import Trials, run
from nestbo.gallery import CATALOGUE
from nestbo.manifolds.base import check_size
from nestbo.text import printable

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_ARCHIVE = Path("benchmarks/results/evidence")
_PLACES = "folders of results, or archives that pack wrote"
_BUDGET = "evaluations of each trial, the initial 5 included"


def main(arguments: Sequence[str] | None = None, prog: str = "python -m nestbo.experiment") -> None:
    """Run suites, and show what came out."""
    parser = _parser(prog)
    given = parser.parse_args(arguments)
    try:
        code = given.command(given)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough; nothing is left to be written at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except (NestboError, OSError) as error:
        parser.error(str(error))
    if code:
        raise SystemExit(code)


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, description="Compare methods on suites of problems.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in _COMMANDS:
        add(commands)
    return parser


def _add_list(commands: Commands) -> None:
    parser = commands.add_parser("list", help="list suites, their problems and their methods")
    parser.set_defaults(command=_list)


def _list(given: argparse.Namespace) -> None:
    for name, found in SUITES.items():
        _say(f"{name}: {found.about}")
        _say("  problems: " + ", ".join(task.key for task in found.tasks))
        for label, method in found.methods.items():
            texts = dict.fromkeys(text for task in found.tasks if (text := method.text(task)) is not None)
            _say(f"  {label:17} {method.about}: {' | '.join(texts)}")
    _say(f"{applications.SUITE}: {applications.ABOUT}")
    _say("  problems: " + ", ".join(CATALOGUE))
    for label, rival in applications.METHODS.items():
        _say(f"  {label:17} {rival.about}")


def _add_run(commands: Commands) -> None:
    parser = commands.add_parser("run", help="run a suite, or continue it")
    parser.add_argument("--suite", default="paper", choices=[*SUITES, applications.SUITE])
    parser.add_argument("--methods", default="all", help="labels, separated by commas")
    parser.add_argument("--problems", default="all", help="names or parts of them, separated by commas")
    parser.add_argument("--jobs", type=_count, default=1, help="number of processes")
    parser.add_argument("--chunk", type=_count, help="trials in one file, and in one process; all of them by default")
    _add_common(parser, trials=30, budget=None)
    parser.set_defaults(command=_run)


def _run(given: argparse.Namespace) -> int:
    seeds = range(given.first, given.first + given.trials)
    options: dict[str, Any] = {"jobs": given.jobs, "threads": given.threads, "limit": given.limit}
    if given.suite == applications.SUITE:
        wanted = applications.cells(given.problems, given.methods, seeds)
        wrong = applications.run(wanted, given.out, budget=given.budget, **options)
    else:
        chosen = suite(given.suite)
        cells = chosen.cells(given.methods, given.problems, seeds=seeds, chunk=given.chunk)
        wrong = run_cells(cells, given.budget or chosen.budget, given.out, device=given.device, **options)
    for line in wrong:
        sys.stderr.write(printable(line) + "\n")
    return int(bool(wrong))


def _add_one(commands: Commands) -> None:
    parser = commands.add_parser("one", help="run one method on one problem")
    parser.add_argument("problem", help='such as "ackley"')
    parser.add_argument("space", help='such as "sphere:50"')
    parser.add_argument("method", help='a strategy such as "hdgabo:latent_dim=5", or "oracle"')
    parser.add_argument("--latent-dim", type=_count, help="the size of the hidden latent space")
    _add_common(parser, trials=10)
    parser.set_defaults(command=_one)


def _one(given: argparse.Namespace) -> None:
    torch.set_num_threads(given.threads)
    seeds = tuple(range(given.first, given.first + given.trials))
    trials = Trials(given.problem, given.space, given.method, seeds, given.latent_dim)
    state = run(trials, given.budget, given.out / trials.name, device=given.device, limit=given.limit)
    best = state.y.amin(1)
    low, middle, high = best.quantile(torch.tensor([0.25, 0.5, 0.75], dtype=best.dtype, device=best.device)).tolist()
    _say(f"{trials.method}: after {state.y.shape[1]} evaluations, median {middle:.4g} ({low:.4g}, {high:.4g})")


def _add_common(parser: argparse.ArgumentParser, trials: int, budget: int | None = 305) -> None:
    parser.add_argument("--trials", type=_count, default=trials)
    parser.add_argument("--first", type=_seed, default=0, help="the first seed")
    parser.add_argument("--budget", type=_count, default=budget, help=_BUDGET)
    parser.add_argument("--out", type=Path, required=True, help="the folder of the results")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", type=_count, default=1, help="threads of each process")
    parser.add_argument("--limit", type=float, default=float("inf"), help="stop after this many seconds")


def _add_table(commands: Commands) -> None:
    parser = commands.add_parser("table", help="print medians, ranks, intervals, successes and times in Markdown")
    _add_places(parser, more=[applications.SUITE])
    parser.add_argument("--target", type=float, help="the regret that counts as a success")
    parser.set_defaults(command=_table)


def _table(given: argparse.Namespace) -> None:
    if given.suite == applications.SUITE:
        for line in applications.tables(applications.read(given.places)):
            _say(line)
        return
    chosen = None if given.suite is None else suite(given.suite)
    for line in tables(results(given.places, chosen), chosen, given.target):
        _say(line)


def _add_figures(commands: Commands) -> None:
    parser = commands.add_parser(
        "figures", help="draw regret along the evaluations and at their end, one picture per space"
    )
    _add_places(parser)
    parser.add_argument("-o", "--out", type=Path, default=Path("figures"), help="the folder of the pictures")
    parser.set_defaults(command=_figures)


def _figures(given: argparse.Namespace) -> None:
    from nestbo.experiment.figures import figures

    chosen = None if given.suite is None else suite(given.suite)
    for path in figures(results(given.places, chosen), given.out, chosen):
        _say(str(path))


def _add_report(commands: Commands) -> None:
    parser = commands.add_parser("report", help="write tables and figures between the marks of a page")
    parser.add_argument("places", type=Path, nargs="+", metavar="DIR", help=_PLACES)
    parser.add_argument("-o", "--out", type=Path, required=True, help="the page, such as docs/results.md")
    parser.set_defaults(command=lambda given: _say(f"{given.out}: {', '.join(report(given.places, given.out))}"))


def _add_places(parser: argparse.ArgumentParser, more: Sequence[str] = ()) -> None:
    parser.add_argument("places", type=Path, nargs="+", metavar="DIR", help=_PLACES)
    parser.add_argument(
        "--suite", choices=[*SUITES, *more], help="show only the results of this suite; by default everything"
    )


def _add_pack(commands: Commands) -> None:
    parser = commands.add_parser("pack", help="pack values, arms and times of a folder into one small archive")
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True, help="a zip file")
    parser.set_defaults(command=lambda given: _say(f"{pack(given.folder, given.out)} files in {given.out}"))


def _add_unpack(commands: Commands) -> None:
    parser = commands.add_parser(
        "unpack", help="unpack an archive into a folder, except where the folder has longer runs"
    )
    parser.add_argument("archive", type=Path, help="a zip file, or a folder of results to make small")
    parser.add_argument("-o", "--out", type=Path, required=True, help="the folder")
    parser.set_defaults(command=lambda given: _say(f"{unpack(given.archive, given.out)} files in {given.out}"))


def _add_collect(commands: Commands) -> None:
    parser = commands.add_parser(
        "collect", help="collect values, arms and times of folders in one small archive per problem"
    )
    parser.add_argument("places", type=Path, nargs="+", metavar="DIR", help=_PLACES)
    parser.add_argument("-o", "--out", type=Path, required=True, help="the folder of the archives")
    parser.set_defaults(command=lambda given: _say(f"{len(collect(given.places, given.out))} archives in {given.out}"))


def _add_evidence(commands: Commands) -> None:
    parser = commands.add_parser("evidence", help="run all comparisons of the documentation, and write its pages")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the runs, which a later call continues")
    parser.add_argument(
        "--archive", type=Path, default=Path("benchmarks/results/evidence"), help="one file per problem"
    )
    parser.add_argument("--pages", type=Path, help="the folder of the documentation whose pages are written anew")
    parser.add_argument("--suites", default="all", help="names, separated by commas")
    parser.add_argument("--trials", type=_count, help="number of trials, if fewer than in the documentation")
    parser.add_argument("--jobs", type=_count, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--device", default="cpu", help="cpu or cuda; rivals always run on the CPU")
    parser.add_argument("--plan", action="store_true", help="only print how long it takes")
    parser.add_argument("--one-version", action="store_true", help="run again what another version of nestbo began")
    parser.set_defaults(command=_evidence)


def _evidence(given: argparse.Namespace) -> int:
    from nestbo.experiment import evidence

    chosen = SUITES if given.suites == "all" else {name: suite(name) for name in given.suites.split(",")}
    parts = [part for part in evidence.PARTS if part.suite in chosen]
    if given.plan:
        known = evidence.paces([given.archive, given.out])
        for text in evidence.plan(parts, given.out, known, given.jobs, given.trials):
            _say(text)
        return 0
    options: dict[str, Any] = {"jobs": given.jobs, "device": given.device, "trials": given.trials}
    options["one_version"] = given.one_version
    wrong = evidence.make(given.out, given.archive, parts=parts, say=_say, **options)
    if given.pages is not None:
        evidence.pages(given.pages, [given.archive], _say)
    for text in wrong:
        sys.stderr.write(printable(text) + "\n")
    return int(bool(wrong))


def _count(text: str) -> int:
    return _whole(text, 1)


def _seed(text: str) -> int:
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    try:
        return check_size("it", int(text), least)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"wanted a whole number of at least {least}, got {text[:80]!r}") from error


def _say(line: str) -> None:
    sys.stdout.write(printable(line) + "\n")


_COMMANDS = (
    _add_list,
    _add_run,
    _add_one,
    _add_table,
    _add_figures,
    _add_report,
    _add_pack,
    _add_unpack,
    _add_collect,
    _add_evidence,
)
