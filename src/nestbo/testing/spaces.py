"""The laws of all spaces, with or without tangent vectors."""

from __future__ import annotations

from collections.abc import Callable

import torch

from nestbo.manifolds import Finite, Manifold, Space, space
from nestbo.testing.assertions import close, require


def points_lie_in_it(where: Space, rng: torch.Generator) -> None:
    """Random and projected points pass the check, and projecting changes nothing the second time."""
    x = where.random(4, 3, rng=rng)
    require(x.shape == (4, 3, *where.point_shape), f"{where}: random points have the wrong shape {tuple(x.shape)}")
    where.check(x, 1e-10)
    close(where.project(x), x, f"{where}: project moves a point of the space")
    where.check(where.project(3 * torch.randn(x.shape, generator=rng, dtype=x.dtype)), 1e-10)
    alone = [where.random(3, rng=torch.Generator().manual_seed(seed)) for seed in range(2)]
    together = where.random_each(3, [torch.Generator().manual_seed(seed) for seed in range(2)])
    close(together, torch.stack(alone, 1), f"{where}: random points of several runs are not those of each")


def distances_are_those_of_a_metric(where: Space, rng: torch.Generator) -> None:
    """They are symmetric, 0 from a point to itself, and obey the triangle inequality; pairs agree with single ones.

    Manifolds have a law of their own: some of their distances are computed between near points only.
    """
    if isinstance(where, Manifold):
        return
    x, y, z = where.random(3, 20, rng=rng)
    there = where.dist(x, y)
    close(there, where.dist(y, x), f"{where}: dist is not symmetric")
    require(where.dist(x, x) == 0, f"{where}: dist(x, x) is not exactly 0")
    require(where.dist(x, z) <= there + where.dist(y, z) + 1e-9, f"{where}: the triangle inequality fails")
    close(where.pairwise_dist(x, y).diagonal(), there, f"{where}: pairwise_dist disagrees with dist")


def embeddings_tell_points_apart(where: Space, rng: torch.Generator) -> None:
    """A batch is embedded as its points are, one by one, and different points at different places."""
    x, y = where.random(2, 10, rng=rng)
    close(where.embed(x), torch.stack([where.embed(point) for point in x]), f"{where}: embed of a batch")
    apart = (where.embed(x) - where.embed(y)).norm(dim=-1)
    require((apart > 1e-12) == (x != y).flatten(1).any(-1), f"{where}: embed confuses points")


def values_are_rounded_first(where: Space, rng: torch.Generator) -> None:
    """Between two separate values a kernel sees the nearest one, and a search steps to values that exist."""
    if not isinstance(where, Finite):
        return
    x = where.random(10, rng=rng)
    close(where.embed(x + 0.4), where.embed(x), f"{where}: embed sees a value that does not exist")
    where.check(where.steps(x), 1e-12)
    require(where.count == len(where.points), f"{where}: there are not as many values as it says")


def values_read_back(where: Space, rng: torch.Generator) -> None:
    """What a person would write of a point is read as the same point; tables have one label for each cell."""
    for x in where.random(5, rng=rng):
        close(where.point(where.parameters(x)), x, f"{where}: {where.parameters(x)} reads back otherwise")
        require(len(where.cells(x)) == len(where.labels), f"{where}: a table has cells without a label")
    require(len(set(where.labels)) == len(where.labels), f"{where}: two entries have one label")


def text_forms_read_back(where: Space, rng: torch.Generator) -> None:
    """The text form of a registered space gives the same space back, with its names."""
    del rng
    again = space(where.specification)
    require(again == where, f"{where}: {where.specification!r} reads back otherwise")
    require(again.labels == where.labels, f"{where}: {where.specification!r} loses names")


SPACE_LAWS: tuple[Callable[[Space, torch.Generator], None], ...] = (
    points_lie_in_it,
    distances_are_those_of_a_metric,
    embeddings_tell_points_apart,
    values_are_rounded_first,
    values_read_back,
    text_forms_read_back,
)
