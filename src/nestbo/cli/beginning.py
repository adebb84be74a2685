"""What a study is begun with, on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nestbo.cli import objective
from nestbo.cli.app import opened
from nestbo.cli.records import number
from nestbo.cli.topics import MANIFOLDS, STRATEGIES, completion
from nestbo.errors import ArgumentError
from nestbo.specification import check_known
from nestbo.storage import vacant

if TYPE_CHECKING:
    from nestbo.study import Study

DIRECTIONS = ("minimize", "maximize")

_SPACE: Any = typer.Option(
    metavar="SPACE",
    help="Where the points live, such as sphere:2 or spd:3:eigenvalues=0.001,5; see nestbo list manifolds.",
    autocompletion=completion(MANIFOLDS),
)
Space = Annotated[str, _SPACE]
SpaceOrNone = Annotated[str | None, _SPACE]
Method = Annotated[
    str | None,
    typer.Option(
        metavar="STRATEGY",
        help="How points are chosen, such as gabo:kernel=gaussian; see nestbo list strategies. By default it suits the "
        "space.",
        autocompletion=completion(STRATEGIES),
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Objectives = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Names of several objectives, such as error,energy. By default there is one, called value.",
    ),
]
Way = Annotated[
    str,
    typer.Option(
        help="minimize or maximize. For several objectives: one for all, or one for each, such as minimize,maximize.",
        metavar="WAY",
        autocompletion=lambda: list(DIRECTIONS),
    ),
]
Noise = Annotated[
    str | None,
    typer.Option(
        metavar="VARIANCE",
        help="Variance of the noise in the values, or infer to estimate it. For several objectives, such as 0.1,0.2. "
        "By default values are exact.",
    ),
]
Allowed = Annotated[
    str | None,
    typer.Option(
        "--constraints",
        metavar="FILE.py:function",
        help="A function of a point that returns one or more numbers, all ≥ 0 where the point is allowed.",
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
    objectives: str | None = None,
    constraints: str | None = None,
) -> Study:
    """A new study; never one that is there already."""
    from nestbo.manifolds import space
    from nestbo.strategies import strategy
    from nestbo.study import Study

    ways, names = direction.split(","), None if objectives is None else objectives.split(",")
    for way in ways:
        check_known("direction", way, DIRECTIONS)
    manifold, chosen = space(where), None if method is None else strategy(method)
    if store is not None and not vacant(Path(store).absolute()):
        raise ArgumentError(f"Wanted a new file, but {store} exists. nestbo resume continues a study.")
    allowed = None if constraints is None else objective.load(constraints, manifold)
    variances: Any = noise if noise is None or noise == "infer" else [number(part) for part in noise.split(",")]
    settings: dict[str, Any] = {
        "objectives": names,
        "direction": ways[0] if len(ways) == 1 else ways,
        "noise": variances[0] if isinstance(variances, list) and len(variances) == 1 else variances,
    }
    study = Study(manifold, chosen, seed=seed, store=store, constraints=allowed, **settings)
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
