"""What a study is begun with, on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from nestbo.cli import objective
from nestbo.cli.app import opened
from nestbo.cli.records import number
from nestbo.cli.topics import MANIFOLDS, STRATEGIES, completion
from nestbo.errors import ArgumentError
from nestbo.history import Direction
from nestbo.specification import check_known
from nestbo.storage import vacant

if TYPE_CHECKING:
    from nestbo.study import Study

DIRECTIONS = ("minimize", "maximize")

Space = Annotated[
    str,
    typer.Option(
        metavar="SPACE",
        help="Such as sphere:2 or spd:3:eigenvalues=0.001,5; see nestbo list manifolds.",
        autocompletion=completion(MANIFOLDS),
    ),
]
Method = Annotated[
    str | None,
    typer.Option(
        metavar="STRATEGY",
        help="Such as gabo or gabo:kernel=gaussian; see nestbo list strategies. The default suits the space.",
        autocompletion=completion(STRATEGIES),
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Way = Annotated[str, typer.Option(help="minimize or maximize.", metavar="WAY", autocompletion=lambda: list(DIRECTIONS))]
Noise = Annotated[
    str | None,
    typer.Option(metavar="VARIANCE", help="Of the noise of values, or infer if it is not known. Without: no noise."),
]
Allowed = Annotated[
    str | None,
    typer.Option(
        "--constraints", metavar="FILE.py:function", help="Of a point: a number or several, ≥ 0 where it is allowed."
    ),
]


def begun(
    store: str | None,
    where: str,
    method: str | None,
    *,
    seed: int,
    direction: str,
    noise: str | None,
    constraints: str | None = None,
) -> Study:
    """A new study; never one that is there already."""
    from nestbo.manifolds import space
    from nestbo.strategies import strategy
    from nestbo.study import Study

    check_known("direction", direction, DIRECTIONS)
    manifold, chosen = space(where), None if method is None else strategy(method)
    if store is not None and not vacant(Path(store).absolute()):
        raise ArgumentError(f"Wanted a new file, got {store}, which exists. nestbo resume goes on with a study.")
    way = cast(Direction, direction)
    allowed = None if constraints is None else objective.load(constraints, manifold)
    variance: Any = noise if noise in (None, "infer") else number(noise)
    study = Study(manifold, chosen, seed=seed, store=store, direction=way, noise=variance, constraints=allowed)
    if store is not None and constraints is not None:
        study.remember(constraints=objective.anchored(constraints, store))
    return study


def under(store: str, constraints: str | None) -> Study:
    """The study in a file, with the constraints that it was begun with."""
    if constraints is None:
        return opened(store)
    with opened(store) as study:
        allowed = objective.load(constraints, study.space)
    return opened(store, allowed)
