"""Every registered kernel obeys the laws on every space that has it."""

import pytest

from nestbo import (
    SPD,
    ArgumentError,
    Box,
    Euclidean,
    Grassmann,
    Product,
    Quaternion,
    Rotation,
    Simplex,
    Sphere,
    Stiefel,
    Torus,
)
from nestbo.kernels import KERNELS, kernel
from nestbo.testing import KERNEL_LAWS

SPACES = [
    Euclidean(3),
    Box([-1, 0], [1, 5]),
    Sphere(1),
    Sphere(2),
    Sphere(10),
    SPD(3),
    SPD(2, eigenvalues=(1e-3, 5)),
    SPD(3, metric="log-euclidean"),
    Grassmann(5, 2),
    Stiefel(4, 2),
    Rotation(3),
    Quaternion(),
    Torus(2),
    Simplex(3),
    Product(Sphere(2), SPD(2)),
    Product(Product(Sphere(2), Sphere(1)), Sphere(3)),
]


@pytest.mark.parametrize("law", KERNEL_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("space", SPACES, ids=repr)
@pytest.mark.parametrize("name", KERNELS)
def test_law(name, space, law, rng):
    try:
        made = kernel(name, space)
    except ArgumentError as error:
        pytest.skip(str(error))
    law(made, rng)
