"""BoTorch's own ``optimize_acqf`` over any nestbo manifold."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.optim import optimize_acqf as stock_optimize_acqf
from torch import Tensor

from nestbo.manifolds import Manifold, Product, Space, leaf
from nestbo.optimise import Result, lbfgs
from nestbo.search.mixed import neighbours

_ROUNDS, _STEPS = 3, 8  # climbs after the first, and steps from value to value before each of them
# optimize_acqf wants box bounds, which mean nothing on a manifold: no coordinate of a point ever comes near these.
_ANYWHERE = 1e10


def ic_generator(space: Space) -> Callable[..., Tensor]:
    """Initial conditions for ``optimize_acqf(…, ic_generator=…)``: the best of ``raw_samples`` random points.

    The draws come from a generator seeded with ``options={"seed": …}``, or 0.
    """

    def generate(
        acq_function: AcquisitionFunction,
        bounds: Tensor,
        q: int,
        num_restarts: int,
        raw_samples: int | None = None,
        options: dict[str, Any] | None = None,
        **_: Any,
    ) -> Tensor:
        rng = torch.Generator().manual_seed((options or {}).get("seed", 0))
        drawn = space.random(raw_samples or 16 * num_restarts, q, rng=rng).to(bounds.device)
        flat = drawn.flatten(2)
        with torch.no_grad():
            worth = acq_function(flat).nan_to_num(nan=-torch.inf)
        return flat[worth.topk(min(num_restarts, len(flat))).indices]

    return generate


def gen_candidates(
    space: Space, *, optimiser: Callable[..., Result] = lbfgs, max_iterations: int = 100
) -> Callable[..., tuple[Tensor, Tensor]]:
    """Refinement for ``optimize_acqf(…, gen_candidates=…)``: q points are one point of the product of q spaces.

    If a space has separate values, steps from value to value and climbs take turns.
    """

    def generate(
        initial_conditions: Tensor, acquisition_function: AcquisitionFunction, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        q, size = initial_conditions.shape[-2:]
        joint = Product(*[space] * q)
        loss = lambda x: -acquisition_function(x.unflatten(-1, (q, size)))
        climb = partial(optimiser, loss, leaf(joint), tolerance=1e-5, max_iterations=max_iterations)
        found = climb(initial_conditions.flatten(-2))
        point, value = found.point, found.value
        for _round in range(0 if isinstance(joint, Manifold) else _ROUNDS):
            further = climb(_stepped(loss, joint, point))
            better = further.value < value
            point = torch.where(better.unsqueeze(-1), further.point, point)
            value = torch.where(better, further.value, value)
        return point.unflatten(-1, (q, size)), -value

    return generate


def _stepped(loss: Callable[[Tensor], Tensor], joint: Space, x: Tensor) -> Tensor:
    """Points (b, size) after steps of one separate value at a time, each to the best neighbour."""
    each = torch.arange(len(x), device=x.device)
    with torch.no_grad():
        for _ in range(_STEPS):
            around = torch.cat([x.unsqueeze(0), neighbours(joint, x)])
            best = loss(around.flatten(0, 1)).unflatten(0, around.shape[:2]).argmin(0)
            if not best.any():
                break
            x = around[best, each]
    return x


def optimize_acqf(
    acq_function: AcquisitionFunction,
    space: Space,
    *,
    q: int = 1,
    num_restarts: int = 8,
    raw_samples: int = 256,
    sequential: bool = False,
    seed: int = 0,
) -> tuple[Tensor, Tensor]:
    """BoTorch's ``optimize_acqf`` over a manifold: q points flattened to vectors, (q, size), and their value.

    Sequential and joint optimisation of q > 1 both work. ``x.unflatten(-1, space.point_shape)`` restores the points.
    """
    size = Product(space).point_shape[0]
    bounds = torch.tensor([[-_ANYWHERE], [_ANYWHERE]], dtype=torch.float64).expand(2, size)
    points, value = stock_optimize_acqf(
        acq_function,
        bounds,
        q,
        num_restarts,
        raw_samples,
        options={"seed": seed},
        ic_generator=ic_generator(space),
        gen_candidates=gen_candidates(space),
        sequential=sequential,
    )
    return points, value


__all__ = ["gen_candidates", "ic_generator", "optimize_acqf"]
