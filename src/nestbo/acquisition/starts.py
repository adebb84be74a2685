"""Where the search for the next point starts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nestbo.manifolds import Manifold

_SCALES = (0.5, 0.15, 0.05, 0.015, 0.005)  # of the typical distance
_INCUMBENTS = 4
_POOL = 256


def candidates(space: Manifold, x: Tensor, y: Tensor, rngs: list[torch.Generator], count: int = _POOL) -> list[Tensor]:
    """Starts for the search, from points (runs, n, *point) and values (runs, n): ``count`` global and ``count`` local.

    The global ones are random points, half of them moved along a random geodesic, which reaches corners that uniform
    draws do not (matrices with small eigenvalues). The local ones are steps at several scales from the best points.
    Both are (count, runs, *point).
    """
    best = y.argsort(-1)[:, :_INCUMBENTS]
    places = torch.arange(count, device=x.device)
    runs = torch.arange(len(x), device=x.device)
    centres = x[runs, best[:, places % best.shape[1]].T]
    scales = torch.tensor(_SCALES, dtype=x.dtype, device=x.device).repeat_interleave(best.shape[1])
    drawn = space.random_each(count, rngs)
    half = count // 2
    far = x.new_full((count - half,), 2 * space.typical_distance)
    lengths = torch.cat([far, scales[places % len(scales)] * space.typical_distance]).unsqueeze(-1)
    moved = scattered(space, torch.cat([drawn[half:], centres]), lengths, rngs)
    return [torch.cat([drawn[:half], moved[: count - half]]), moved[count - half :]]


def scattered(space: Manifold, x: Tensor, lengths: Tensor, rngs: list[torch.Generator]) -> Tensor:
    """Points (count, runs, *point) moved by random fractions of lengths (count, runs), in random directions."""
    kind: dict[str, Any] = {"dtype": x.dtype, "device": x.device}
    fractions = torch.stack([torch.rand(len(x), generator=rng, **kind) for rng in rngs], 1)
    noise = torch.stack([torch.randn(x[:, 0].shape, generator=rng, **kind) for rng in rngs], 1)
    direction = space.from_noise(x, noise)
    step = fractions * lengths / space.norm(x, direction)
    return space.project(space.exp(x, step[(..., *[None] * len(space.point_shape))] * direction))
