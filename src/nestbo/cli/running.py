"""``run``, ``resume``, ``new``: studies begun and carried on."""

from __future__ import annotations

import os
from typing import Annotated, cast

import typer

from nestbo.cli import objective
from nestbo.cli.app import Json, Store, app, check_name, completion, opened, put, say
from nestbo.cli.looking import say_best
from nestbo.cli.records import brief, remember, settings
from nestbo.errors import ArgumentError, NestboError
from nestbo.manifolds import MANIFOLDS, space
from nestbo.strategies import STRATEGIES, strategy
from nestbo.study import Direction, Objective, Study

DIRECTIONS = ("minimize", "maximize")

Space = Annotated[
    str,
    typer.Option(
        metavar="SPACE",
        help="Such as sphere:2 or spd:3:eigenvalues=0.001,5; nestbo list manifolds.",
        autocompletion=completion(lambda: MANIFOLDS),
    ),
]
Method = Annotated[
    str | None,
    typer.Option(
        metavar="STRATEGY",
        help="Such as gabo or gabo:kernel=heat; nestbo list strategies. The default suits the space.",
        autocompletion=completion(lambda: STRATEGIES),
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Of all random numbers.")]
Way = Annotated[str, typer.Option(help="minimize or maximize.", metavar="WAY", autocompletion=lambda: list(DIRECTIONS))]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no messages, but for errors.")]
FUNCTION = "FILE.py:function, which takes a tensor and returns a number, or problem:NAME[:latent_dim=5:seed=7]."


@app.command()
def run(
    what: Annotated[str, typer.Argument(metavar="OBJECTIVE", help=FUNCTION)],
    space: Space,
    budget: Annotated[int, typer.Option(min=1, help="Evaluations in all, the initial ones included.")],
    store: Annotated[
        str | None, typer.Option(metavar="STORE", help="The new file; without one, nothing is kept.")
    ] = None,
    strategy: Method = None,
    seed: Seed = 0,
    direction: Way = "minimize",
    numpy: Annotated[bool, typer.Option("--numpy", help="The function takes a NumPy array.")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Begin a study and evaluate a function until the budget is used up.

    What the function raises is recorded as a failed evaluation and the study goes on; what it prints goes to stderr.
    Ctrl-C keeps everything told, and nestbo resume STORE goes on.
    """
    f = _objective(what, space, numpy)
    with _begun(store, space, strategy, seed, direction) as study:
        if store is not None:
            remember(store, objective=objective.anchored(what, store), budget=budget, numpy=numpy)
        _evaluate(study, f, budget, numpy=numpy, quiet=quiet, json=json)


@app.command()
def resume(
    store: Store,
    what: Annotated[str | None, typer.Argument(metavar="[OBJECTIVE]", help=FUNCTION)] = None,
    budget: Annotated[int | None, typer.Option(min=1, help="Evaluations in all, those done included.")] = None,
    numpy: Annotated[bool, typer.Option("--numpy", help="The function takes a NumPy array.")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Go on with a study as if it had never stopped.

    The objective and the budget are those that the store remembers, unless given here. A trial that was asked by a
    process now gone, also by nestbo ask, is evaluated first.
    """
    with opened(store) as study:
        known = settings(store)
        what = what or _remembered(known.get("objective"), store)
        budget = budget or known.get("budget")
        numpy = numpy or bool(known.get("numpy"))
        if budget is None:
            raise ArgumentError(f"{store} remembers no budget, and none was given. Pass --budget, evaluations in all.")
        f = _objective(what, study.space.specification, numpy)
        remember(store, objective=objective.anchored(what, store), budget=budget, numpy=numpy)
        _evaluate(study, f, budget, numpy=numpy, quiet=quiet, json=json)


@app.command()
def new(
    store: Annotated[str, typer.Argument(metavar="STORE", help="The file to make.")],
    space: Space,
    strategy: Method = None,
    seed: Seed = 0,
    direction: Way = "minimize",
) -> None:
    """Begin a study that is evaluated by hand, with ask and tell."""
    with _begun(store, space, strategy, seed, direction) as study:
        say(f"{store} holds a new study of {study.space} with {study.strategy}. nestbo ask {store} gives a point.")


def _begun(store: str | None, where: str, method: str | None, seed: int, direction: str) -> Study:
    """A new study; never one that is there already."""
    check_name("direction", direction, DIRECTIONS)
    manifold, chosen = space(where), None if method is None else strategy(method)
    if store is not None and os.path.exists(store):
        raise ArgumentError(f"Wanted a new file, got {store}, which exists. nestbo resume goes on with a study.")
    return Study(manifold, chosen, seed=seed, store=store, direction=cast(Direction, direction))


def _objective(what: str, where: str, numpy: bool) -> Objective:
    if numpy and what.startswith("problem:"):
        raise ArgumentError(f"--numpy is for functions of your own, got {what}. Leave it out.")
    return objective.load(what, space(where))


def _remembered(text: str | None, store: str) -> str:
    if text is None:
        raise ArgumentError(f"{store} remembers no objective, and none was given. Name one: FILE.py:function.")
    return objective.released(text, store)


def _evaluate(study: Study, f: Objective, budget: int, *, numpy: bool, quiet: bool, json: bool) -> None:
    """Use up the budget and print the best; raise if there is none, or if someone interrupted."""
    study.run(f, max(0, budget - len(study.history.finished)), numpy=numpy, progress=not quiet)
    finished, best = study.history.finished, study.best
    reasons = [str(trial.notes.get("failed")) for trial in finished if trial.status == "failed"]
    if reasons and not quiet:
        say(f"{len(reasons)} of {len(finished)} evaluations failed, the last one by {reasons[-1]}.")
    if best is not None:
        put(brief(best)) if json else say_best(best)
    if len(finished) < budget:
        raise typer.Exit(130)
    if best is None:
        raise NestboError(f"None of {len(finished)} evaluations gave a number. Mend the objective and resume.")
