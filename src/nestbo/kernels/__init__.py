"""Kernels on manifolds, and ``KERNELS``, where a new one is registered."""

from __future__ import annotations

from typing import Any

from nestbo.kernels.base import ManifoldKernel
from nestbo.kernels.extrinsic import Gaussian, Matern12, Matern32, Matern52
from nestbo.kernels.geodesic import GeodesicGaussian, GeodesicLaplace, beta_min
from nestbo.kernels.product import ProductKernel
from nestbo.kernels.spectral import Heat, SpectralMatern
from nestbo.manifolds import Product, Space, released
from nestbo.specification import check_known

KERNELS: dict[str, type[ManifoldKernel]] = {
    "gaussian": Gaussian,
    "matern12": Matern12,
    "matern32": Matern32,
    "matern52": Matern52,
    "heat": Heat,
    "spectral-matern": SpectralMatern,
    "geodesic-gaussian": GeodesicGaussian,
    "geodesic-laplace": GeodesicLaplace,
}


def kernel(name: str, space: Space, **options: Any) -> ManifoldKernel:
    """The kernel of this name on a space. On a product space, it is a product of kernels, one for each factor."""
    check_known("kernel", name, KERNELS)
    space = released(space)
    if isinstance(space, Product):
        return ProductKernel(space, [kernel(name, factor, **options) for factor in space.factors])
    return KERNELS[name](space, **options)


__all__ = [
    "KERNELS",
    "Gaussian",
    "GeodesicGaussian",
    "GeodesicLaplace",
    "Heat",
    "ManifoldKernel",
    "Matern12",
    "Matern32",
    "Matern52",
    "ProductKernel",
    "SpectralMatern",
    "beta_min",
    "kernel",
]
