"""Products of kernels on products of manifolds."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.kernels.base import ManifoldKernel
from nestbo.manifolds import Product


class ProductKernel(ManifoldKernel):
    """The product of one kernel for each factor of a product space. Each factor has its own length scales.

    At the median of its prior, a single kernel gives two random points the correlation ½. A product of several such
    kernels would give less. So the medians grow with the number of factors: each factor has the correlation
    (½)^{1/factors}, to first order.
    """

    def __init__(self, space: Product, parts: list[ManifoldKernel]) -> None:
        if len(parts) != len(space.factors):
            raise ArgumentError(f"{space} takes {len(space.factors)} kernels, one for each factor, got {len(parts)}.")
        low, high = (torch.cat(bounds) for bounds in zip(*(part.lengthscale_bounds for part in parts), strict=True))
        self._begin(space, low, high)
        self.split = space.split
        self.tolerance = max(part.tolerance for part in parts)
        object.__setattr__(self, "parts", tuple(parts))  # values only: the length scales are this kernel's own
        medians = torch.cat([part.median_lengthscale for part in parts])
        self._centre(torch.clamp(medians * len(parts) ** 0.5, low, high))

    def features(self, x: Tensor) -> list[Any]:
        return [part.features(a) for part, a in zip(self.parts, self.split(x), strict=True)]

    def compare(self, x: list[Any], y: list[Any]) -> Tensor:
        return torch.cat([part.compare(a, b) for part, a, b in zip(self.parts, x, y, strict=True)], -1)

    def correlate(self, statistic: Tensor, lengthscale: Tensor) -> Tensor:
        sizes = [len(part.median_lengthscale) for part in self.parts]
        pieces = zip(self.parts, statistic.split(sizes, -1), lengthscale.split(sizes, -1), strict=True)
        return torch.stack([part.correlate(s, scale) for part, s, scale in pieces]).prod(0)
