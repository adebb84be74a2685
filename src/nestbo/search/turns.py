"""Values of a choice that were suggested too seldom have their turn: the best point, with such a value.

A model cannot interpolate between choices. From a few bad evaluations of a value it concludes that the value is bad
everywhere, and the search may never come back to it: a good pad that was tried with two fingers, which hold nothing,
looks like a bad pad. One evaluation where all other parameters are good tells.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from nestbo.manifolds import Choice, Product, Space
from nestbo.search.runs import Runs

_FIRST = 5  # suggestions per value of a choice, after which every value has had its turn; the next when they double


class Turn(NamedTuple):
    """A value of a choice, and where flat points have the place of that choice."""

    column: int
    value: int


def choices_of(space: Space, start: int = 0) -> dict[int, int]:
    """The columns of flat points that are choices, with the number of values; a choice that a user fixed is none."""
    if isinstance(space, Choice):
        return {start: space.count}
    found: dict[int, int] = {}
    for factor in space.factors if isinstance(space, Product) else ():
        found |= choices_of(factor, start)
        start += math.prod(factor.point_shape)
    return found


def exchanged(space: Space, told: Runs) -> tuple[Tensor, Tensor]:
    """The best point of each run with a value whose turn it is, (runs, *point), and which runs have one, (runs,).

    Runs that know that point already have none, and so have those whose evaluations lie in a larger space.
    """
    points = told.best.squeeze(1).clone()
    ready = torch.zeros(len(told.x), dtype=torch.bool, device=told.x.device)
    columns = choices_of(space) if told.x.shape[2:] == space.point_shape else {}
    for run, suggested in enumerate(_suggested(told)) if columns else ():
        if (turn := _turn(columns, suggested)) is not None:
            points[run, turn.column] = turn.value
            known = torch.cat([told.record.x[run], told.pending[run]])
            ready[run] = not (known == points[run]).all(-1).any()
    return points, ready


def _suggested(told: Runs) -> list[Tensor]:
    """The points (n, *point) of each run that a model suggested, with those under evaluation."""
    record, found = told.record, []
    for run, memories in enumerate(record.memories):
        asked = told.asked[run] if told.asked else []
        pairs = [*zip(record.x[run], memories, strict=False), *zip(told.pending[run], asked, strict=False)]
        own = [x for x, memory in pairs if memory.arm is not None]
        found.append(torch.stack(own) if own else record.x[run, :0])
    return found


def _turn(columns: dict[int, int], suggested: Tensor) -> Turn | None:
    """The value that lacks most turns, of all choices; the first of those that lack equally many."""
    lacking: dict[Turn, int] = {}
    for column, count in columns.items():
        due = (len(suggested) // (_FIRST * count)).bit_length()
        had = suggested[:, column].long().bincount(minlength=count).tolist()
        lacking |= {Turn(column, value): due - number for value, number in enumerate(had) if number < due}
    return max(lacking, key=lambda turn: lacking[turn]) if lacking else None
