"""``run`` and ``resume``: studies of a function that the computer evaluates."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nestbo.cli import objective
from nestbo.cli.app import Json, Store, app, opened, put, say
from nestbo.cli.beginning import Allowed, Method, Noise, Objectives, Seed, Space, Way, begun, under
from nestbo.cli.records import brief, described, described_front, recommendation
from nestbo.errors import ArgumentError, FailureWarning, NestboError
from nestbo.text import counted, printable

if TYPE_CHECKING:
    from nestbo.manifolds import Space as AnySpace
    from nestbo.study import Objective, Study

FUNCTION = "FILE.py:function, which takes a tensor and returns a number, or problem:NAME[:latent_dim=5:seed=7]."
Numpy = Annotated[bool, typer.Option("--numpy", help="The function takes a NumPy array.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only, no progress and no messages.")]


@app.command()
def run(
    what: Annotated[str, typer.Argument(metavar="OBJECTIVE", help=FUNCTION)],
    space: Space,
    budget: Annotated[int, typer.Option(min=1, help="Number of evaluations in all, including the initial ones.")],
    store: Annotated[
        str | None, typer.Option(metavar="STORE", help="The file to create. Without a file, nothing is kept.")
    ] = None,
    strategy: Method = None,
    seed: Seed = 0,
    objectives: Objectives = None,
    direction: Way = "minimize",
    noise: Noise = None,
    constraints: Allowed = None,
    numpy: Numpy = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Begin a study, evaluate a function until the budget is used up, and print the best trial.

    If the function raises an exception, the evaluation is recorded as failed and the study continues. What the function
    prints goes to stderr. Ctrl-C keeps everything told, and nestbo resume STORE continues.
    """
    from nestbo.manifolds import space as manifold

    f = _objective(what, manifold(space), numpy)
    settings: dict[str, Any] = {"seed": seed, "objectives": objectives, "direction": direction, "noise": noise}
    with begun(store, space, strategy, **settings, constraints=constraints) as study:
        if store is not None:
            study.remember(objective=objective.anchored(what, store), budget=budget, numpy=numpy)
        _evaluate(study, f, budget, numpy=numpy, quiet=quiet, json=json)


@app.command()
def resume(
    store: Store,
    what: Annotated[str | None, typer.Argument(metavar="[OBJECTIVE]", help=FUNCTION)] = None,
    budget: Annotated[
        int | None, typer.Option(min=1, help="Number of evaluations in all, including those already done.")
    ] = None,
    constraints: Allowed = None,
    numpy: Numpy = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Continue a study as if it had never stopped.

    The store remembers the objective, the budget and the constraints; you can give others here. Trials that were asked
    for and never told are evaluated first. This command runs the Python files that the store names; nestbo show prints
    their names without running them.
    """
    with under(store, constraints or _constraints(store)) as study:
        known = study.settings
        numpy = numpy or (what is None and bool(known.get("numpy")))
        what = what or _remembered(known.get("objective"), store)
        budget = budget or known.get("budget")
        if type(budget) is not int:
            raise ArgumentError(
                f"{store} remembers no budget, and none was given. Pass --budget, the number of evaluations in all."
            )
        f = _objective(what, study.space, numpy)
        if not quiet:
            say(f"Continuing with {what}, {counted(budget, 'evaluation')} in all.")
        study.remember(objective=objective.anchored(what, store), budget=budget, numpy=numpy)
        _evaluate(study, f, budget, numpy=numpy, quiet=quiet, json=json)


def _constraints(store: str) -> str | None:
    """Those that a store remembers."""
    with opened(store) as study:
        text = study.settings.get("constraints")
    return objective.released(text, store) if isinstance(text, str) else None


def _objective(what: str, where: AnySpace, numpy: bool) -> Objective:
    if numpy and what.startswith("problem:"):
        raise ArgumentError(f"--numpy is for functions of your own, got {what}. Leave it out.")
    return objective.load(what, where)


def _remembered(text: Any, store: str) -> str:
    if not isinstance(text, str):
        raise ArgumentError(f"{store} remembers no objective, and none was given. Name one: FILE.py:function.")
    return objective.released(text, store)


@contextlib.contextmanager
def _warnings_said(quiet: bool) -> Iterator[None]:
    """Say the first failure in the words of the command; nothing to those who want it quiet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if quiet else "always", FailureWarning)
        warnings.showwarning = lambda message, *_: say(str(message))
        yield


def _evaluate(study: Study, f: Objective, budget: int, *, numpy: bool, quiet: bool, json: bool) -> None:
    """Use up the budget and print the best; raise if there is none, or if someone interrupted."""
    with contextlib.suppress(KeyboardInterrupt), _warnings_said(quiet):
        study.run(f, budget=budget, numpy=numpy, progress=not quiet)
    finished, found = study.history.finished, study.front
    count = counted(len(finished), "evaluation")
    reasons = [trial.told.failed for trial in finished if trial.status == "failed"]
    if reasons and not quiet:
        say(f"{len(reasons)} of {count} failed; the last: {printable(str(reasons[-1]), keep='')}")
    if found:
        _print_front(study, json) if study.several else _print_best(study, json)
    if len(finished) < budget:
        raise typer.Exit(130)
    if not found:
        raise NestboError(f"None of {count} gave a number. Fix the objective and try again.")


def _print_best(study: Study, json: bool) -> None:
    best, trust = study.best, study.recommendation() if study.history.noisy else None
    if best is not None:
        put({**brief(best), **recommendation(study)}) if json else typer.echo(described(best, trust))


def _print_front(study: Study, json: bool) -> None:
    for trial in study.front if json else []:
        put(brief(trial))
    if not json:
        typer.echo(described_front(study))
