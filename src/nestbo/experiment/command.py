"""The command: ``python -m nestbo.experiment`` and ``nestbo bench``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from nestbo.errors import NestboError
from nestbo.experiment.names import ABOUT, APPLICATIONS
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
        code = _done(given)
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
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for add in _COMMANDS:
        add(commands)
    return parser


def _add_list(commands: Commands) -> None:
    parser = commands.add_parser("list", help="list the suites, or the problems and methods of one")
    parser.add_argument("suite", nargs="?", choices=ABOUT, metavar="SUITE", help="list its problems and methods")


def _list() -> None:
    width = 2 + max(map(len, ABOUT))
    for name, about in ABOUT.items():
        say(f"{name:{width}}{about}")


def _done(given: argparse.Namespace) -> int | None:
    """Do what was asked for. All but the list of suites waits for torch."""
    if given.command == "list" and given.suite is None:
        _list()
        return 0
    from nestbo.experiment.doing import COMMANDS

    return COMMANDS[given.command](given)


def _add_run(commands: Commands) -> None:
    parser = commands.add_parser("run", help="run a suite, or continue it")
    parser.add_argument(
        "--suite", default="paper", choices=ABOUT, metavar="SUITE", help="a suite, see list; by default paper"
    )
    parser.add_argument("--methods", default="all", help="labels, separated by commas")
    parser.add_argument("--problems", default="all", help="names or parts of them, separated by commas")
    parser.add_argument("--jobs", type=_count, default=1, help="number of processes")
    parser.add_argument(
        "--together", action="store_true", help="advance all problems of a space as one batch, which suits a GPU"
    )
    parser.add_argument("--chunk", type=_count, help="trials in one file, and in one process; all of them by default")
    _add_common(parser, trials=30, budget=None)


def _add_one(commands: Commands) -> None:
    parser = commands.add_parser("one", help="run one method on one problem")
    parser.add_argument("problem", help='such as "ackley"')
    parser.add_argument("space", help='such as "sphere:50"')
    parser.add_argument("method", help='a strategy such as "hdgabo:latent_dim=5", or "oracle"')
    parser.add_argument("--latent-dim", type=_count, help="the size of the hidden latent space")
    _add_common(parser, trials=10)


def _add_common(parser: argparse.ArgumentParser, trials: int, budget: int | None = 305) -> None:
    parser.add_argument("--trials", type=_count, default=trials, help="number of trials, each with a seed of its own")
    parser.add_argument("--first", type=_seed, default=0, help="the first seed")
    parser.add_argument("--budget", type=_count, default=budget, help=_BUDGET)
    parser.add_argument("--out", type=Path, required=True, help="the folder of the results")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", type=_count, default=1, help="threads of each process")
    parser.add_argument("--limit", type=float, default=float("inf"), help="stop after this many seconds")


def _add_table(commands: Commands) -> None:
    parser = commands.add_parser("table", help="print medians, ranks, intervals, successes and times in Markdown")
    _add_places(parser, gallery=True)
    parser.add_argument("--target", type=float, help="the regret that counts as a success")


def _add_figures(commands: Commands) -> None:
    parser = commands.add_parser(
        "figures", help="draw regret along the evaluations and at their end, one picture per space"
    )
    _add_places(parser)
    parser.add_argument("-o", "--out", type=Path, default=Path("figures"), help="the folder of the pictures")


def _add_report(commands: Commands) -> None:
    parser = commands.add_parser("report", help="write tables and figures between the marks of a page")
    parser.add_argument("places", type=Path, nargs="+", metavar="DIR", help=_PLACES)
    parser.add_argument("-o", "--out", type=Path, required=True, help="the page, such as docs/results.md")


def _add_places(parser: argparse.ArgumentParser, gallery: bool = False) -> None:
    suites = [name for name in ABOUT if gallery or name != APPLICATIONS]
    parser.add_argument("places", type=Path, nargs="+", metavar="DIR", help=_PLACES)
    parser.add_argument(
        "--suite", choices=suites, metavar="SUITE", help="show only the results of this suite; by default everything"
    )


def _add_pack(commands: Commands) -> None:
    parser = commands.add_parser("pack", help="pack values and times of a folder into one small archive")
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True, help="a zip file")


def _add_unpack(commands: Commands) -> None:
    parser = commands.add_parser(
        "unpack", help="unpack an archive into a folder, except where the folder has longer runs"
    )
    parser.add_argument("archive", type=Path, help="a zip file, or a folder of results to make small")
    parser.add_argument("-o", "--out", type=Path, required=True, help="the folder")


def _add_collect(commands: Commands) -> None:
    parser = commands.add_parser("collect", help="collect values and times of folders in one small archive per problem")
    parser.add_argument("places", type=Path, nargs="+", metavar="DIR", help=_PLACES)
    parser.add_argument("-o", "--out", type=Path, required=True, help="the folder of the archives")
    parser.add_argument("--replace", action="store_true", help="replace files of the same name, even by shorter trials")


def _add_evidence(commands: Commands) -> None:
    parser = commands.add_parser("evidence", help="run all comparisons of the documentation, and write its pages")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the runs, which a later call continues")
    parser.add_argument("--archive", type=Path, default=_ARCHIVE, help="one file per problem")
    parser.add_argument("--pages", type=Path, help="the folder of the documentation whose pages are written anew")
    parser.add_argument("--suites", default="all", help="names, separated by commas")
    parser.add_argument("--trials", type=_count, help="number of trials, if fewer than in the documentation")
    parser.add_argument("--jobs", type=_count, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--device", default="cpu", help="cpu or cuda; rivals always run on the CPU")
    parser.add_argument("--plan", action="store_true", help="only print how long it takes")
    parser.add_argument("--one-version", action="store_true", help="run again what another version of nestbo began")


def _count(text: str) -> int:
    return _whole(text, 1)


def _seed(text: str) -> int:
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    from nestbo.manifolds.base import check_size

    try:
        return check_size("it", int(text), least)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"wanted a whole number of at least {least}, got {text[:80]!r}") from error


def say(line: str) -> None:
    """Write a line of a result to stdout."""
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
