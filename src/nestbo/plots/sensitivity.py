"""What an objective depends on, as its model has it: parts of the space, and directions in it.

Parts are the factors of a product, the coordinates of a box and the angles of a torus. Their shares are Sobol's: the
variance of the posterior mean over random points of the space, split into what each part explains alone (first order)
and what is lost without it (total), estimated as Saltelli et al. (2010) recommend. Directions are eigenvectors
of the mean of ∇μ∇μᵀ over the evaluated points, in the coordinates that kernels see.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nestbo.manifolds import Box, Manifold, Product, Space, Torus

_POINTS = 4096  # random points for the shares of the mean: errors are about 0.02
_JOINT = 1024  # points of one draw of the posterior, whose covariance is factorised
_DRAWS = 64
_ENDS = (0.05, 0.95)
_EVALUATED = 200  # points at which gradients are taken, at most
_STEP = 1e-4  # of the typical distance, for differences
_RESAMPLED = 200  # times
_CURVED = 1e-2  # of the largest singular value: steps off the tangent space are smaller, steps along it are not
_MOST_DIRECTIONS = 200  # dimensions of a space in whose every direction a step is made


@dataclass(frozen=True)
class Part:
    """A part of a space: its name, and which entries of a flat point it has."""

    name: str
    entries: tuple[int, ...]


@dataclass(frozen=True)
class Share:
    """A number between 0 and 1, about, and the ends of the interval in which nine of ten models have it."""

    name: str
    value: float
    low: float
    high: float


def parts(space: Space, name: str = "", first: int = 0) -> list[Part]:
    """The parts of a space whose flat points begin at an entry."""
    size = int(torch.Size(space.point_shape).numel())
    if isinstance(space, Product):
        found, at = [], first
        titles = space.titles or [f"{type(factor).__name__} {k}" for k, factor in enumerate(space.factors)]
        for title, factor in zip(titles, space.factors, strict=True):
            found += parts(factor, f"{name} {title}".strip(), at)
            at += int(torch.Size(factor.point_shape).numel())
        return found
    if isinstance(space, Box | Torus) and size > 1:
        own = space.names or [f"{name or 'x'}[{k}]" for k in range(size)]
        return [Part(label, (first + k,)) for k, label in enumerate(own)]
    return [Part(name or str(space), tuple(range(first, first + size)))]


def shares(space: Space, model: Any) -> tuple[list[Share], list[Share]]:
    """The first-order and total shares of the parts of a space, with intervals over draws of the posterior.

    Draws are seen at few points. How much their shares differ from those of the mean at the same points is added to the
    shares of the mean at many points.
    """
    rng, split = torch.Generator().manual_seed(0), parts(space)
    count = max(8, _JOINT // (len(split) + 2))
    with torch.no_grad():
        mean = _sobol(model.predict(_picked(space, split, _POINTS, rng)))
        few = _picked(space, split, count, rng)
        drawn = model.draws(few.flatten(0, 1), _DRAWS, rng).reshape(_DRAWS, len(split) + 2, count)
        away = _sobol(drawn) - _sobol(model.predict(few)).unsqueeze(1)
    ends = torch.quantile(away, torch.tensor(_ENDS, dtype=torch.float64), dim=1).movedim(0, 1)
    ends = (mean.unsqueeze(1) + ends).clamp(0, 1)
    first, total = (
        [Share(part.name, value, low, high) for part, value, low, high in zip(split, *rows, strict=True)]
        for rows in (_rows(mean[order], ends[order]) for order in (0, 1))
    )
    return first, total


def _rows(mean: Tensor, ends: Tensor) -> tuple[list[float], list[float], list[float]]:
    """Values and the ends of their intervals, which contain them."""
    low, high = torch.minimum(ends[0], mean), torch.maximum(ends[1], mean)
    return mean.tolist(), low.tolist(), high.tolist()


def _picked(space: Space, split: list[Part], count: int, rng: torch.Generator) -> Tensor:
    """Random points A, B, and for each part A with that part of B: (parts + 2, count, *point)."""
    a, b = (space.random(count, rng=rng).flatten(1) for _ in range(2))
    rows = [a, b]
    for part in split:
        mixed = a.clone()
        mixed[:, list(part.entries)] = b[:, list(part.entries)]
        rows.append(mixed)
    return torch.stack(rows).reshape(len(rows), count, *space.point_shape)


def _sobol(y: Tensor) -> Tensor:
    """First-order and total shares (2, …, parts) from values (…, parts + 2, count) at what ``_picked`` gives."""
    size = y.abs().amax((-2, -1), keepdim=True)
    y = y / torch.where(size > 0, size, 1)  # squares of huge numbers are none
    y = y - y[..., :2, :].mean((-2, -1), keepdim=True)
    a, b, mixed = y.split([1, 1, y.shape[-2] - 2], -2)
    variance = torch.cat([a, b], -1).var(-1)
    variance = torch.where(variance > 0, variance, 1)
    first = (b * (mixed - a)).mean(-1) / variance
    total = (a - mixed).square().mean(-1) / (2 * variance)
    return torch.stack([first, total]).clamp(0, 1)


def directions(space: Space, model: Any, x: Tensor) -> list[Share]:
    """The share of each direction in the squared slope of the mean at points x (n, *point), steepest first.

    None where the space has no tangent vectors, or too many. The intervals come from points drawn again.
    """
    if not isinstance(space, Manifold) or not 1 < space.dim <= _MOST_DIRECTIONS or len(x) < 2:
        return []
    rng = torch.Generator().manual_seed(0)
    slopes = _slopes(space, model, x[torch.randperm(len(x), generator=rng)[:_EVALUATED]], rng)
    values, vectors = torch.linalg.eigh(slopes.mT @ slopes)
    again = torch.randint(len(slopes), (_RESAMPLED, len(slopes)), generator=rng)
    rotated = slopes @ vectors
    each = rotated.square()[again].sum(1)
    found = _normalised(values.clamp(min=0)).flip(0)
    ends = torch.quantile(_normalised(each), torch.tensor(_ENDS, dtype=torch.float64), dim=0).flip(1)
    columns = zip(vectors.mT.flip(0), *_rows(found, ends), strict=True)
    labels = space.labels if len(space.labels) == len(values) else tuple(map(str, range(len(values))))
    labels = tuple(f"x{label}" for label in labels) if space.names is None else labels
    return [Share(_composition(vector, labels), *numbers) for vector, *numbers in columns][: space.dim]


def _normalised(values: Tensor) -> Tensor:
    total = values.sum(-1, keepdim=True)
    return values / torch.where(total > 0, total, 1)


def _slopes(space: Manifold, model: Any, x: Tensor, rng: torch.Generator) -> Tensor:
    """Gradients (n, k) of the mean, up to a factor, in the coordinates of the embedding, from random differences."""
    steps = 2 * space.dim
    start = x.unsqueeze(1).expand(len(x), steps, *space.point_shape)
    tangents = space.random_tangent(start, rng)
    ends = space.project(space.exp(start, _STEP * space.typical_distance * tangents))
    moved = space.embed(ends) - space.embed(x).unsqueeze(1)
    with torch.no_grad():
        change = model.predict(ends) - model.predict(x).unsqueeze(1)
    size = change.abs().max()
    change = change / torch.where(size > 0, size, 1)  # shares do not depend on it, and squares of huge numbers are none
    return (torch.linalg.pinv(moved, rtol=_CURVED) @ change.unsqueeze(-1)).squeeze(-1)


def _composition(vector: Tensor, labels: tuple[str, ...], most: int = 2) -> str:
    """The largest coordinates of a direction."""
    leading = vector.abs().topk(min(most, len(vector))).indices.tolist()
    return ", ".join(f"{vector[k]:+.2f} {labels[k]}".replace("-", "−") for k in leading)
