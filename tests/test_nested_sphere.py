"""The paper's statements on nested spheres (section 3, appendix B), and the fitted lift."""

import math

import pytest
import torch

import nestbo as nb
from nestbo.nested import NestedSphere

LARGE, SMALL = 9, 3


def rotation_to_pole(v):
    """R ∈ SO(k+1) in the plane of v and the north pole with R v = pole (Jung et al. 2012), from its definition."""
    pole = torch.eye(len(v), dtype=v.dtype)[-1]
    angle = torch.arccos(v[-1])
    c = v - v[-1] * pole
    c = c / c.norm()
    plane = torch.outer(pole, c) - torch.outer(c, pole)
    both = torch.outer(pole, pole) + torch.outer(c, c)
    return torch.eye(len(v), dtype=v.dtype) + torch.sin(angle) * plane + (torch.cos(angle) - 1) * both


def project_in_steps(x, axes, radii):
    """The paper's m_D ∘ …: the nearest point of the subsphere, turned and rescaled, one dimension at a time."""
    for v, r in zip(axes, radii, strict=True):
        distance = torch.arccos((x @ v).clamp(-1, 1))
        nearest = (math.sin(r) * x + torch.sin(distance - r)[:, None] * v) / torch.sin(distance)[:, None]
        x = (nearest @ rotation_to_pole(v).T)[:, :-1] / math.sin(r)
    return x


def lift_in_steps(z, axes, radii):
    for v, r in reversed(list(zip(axes, radii, strict=True))):
        z = torch.cat([math.sin(r) * z, torch.full_like(z[:, :1], math.cos(r))], -1) @ rotation_to_pole(v)
    return z


@pytest.fixture
def parameters(rng):
    axes = [nb.Sphere(k).random(rng=rng) for k in range(LARGE, SMALL, -1)]
    radii = (0.5 + torch.rand(len(axes), generator=rng, dtype=torch.float64)).tolist()
    return axes, radii


def test_the_chain_collapses_to_one_matrix_and_one_vector(parameters, rng):
    mapping = NestedSphere.from_axes(*parameters)
    x, z = nb.Sphere(LARGE).random(20, rng=rng), nb.Sphere(SMALL).random(20, rng=rng)
    assert torch.allclose(mapping.project(x), project_in_steps(x, *parameters), atol=1e-10)
    assert torch.allclose(mapping.lift(z), lift_in_steps(z, *parameters), atol=1e-12)
    assert mapping.scale.item() == pytest.approx(math.prod(map(math.sin, parameters[1])), rel=1e-12)


def test_latent_distances_do_not_depend_on_the_radii(parameters, rng):
    axes, radii = parameters
    x, latent = nb.Sphere(LARGE).random(12, rng=rng), nb.Sphere(SMALL)
    tables = []
    for change in (1.0, 0.3):
        z = NestedSphere.from_axes(axes, [change * r for r in radii]).project(x)
        tables.append(latent.pairwise_dist(z, z))
    assert torch.allclose(*tables, atol=1e-12)


def test_latent_distances_do_not_depend_on_the_basis_of_the_span(rng):
    mapping = NestedSphere.random(nb.Sphere(LARGE), nb.Sphere(SMALL), rng)
    turned = NestedSphere(mapping.basis @ nb.linalg.random_frames(SMALL + 1, SMALL + 1, rng=rng))
    x, latent = nb.Sphere(LARGE).random(12, rng=rng), nb.Sphere(SMALL)
    tables = [latent.pairwise_dist(m.project(x), m.project(x)) for m in (mapping, turned)]
    assert torch.allclose(*tables, atol=1e-12)


def test_axes_and_radii_read_a_mapping_back(rng):
    x = nb.Sphere(LARGE).random(20, rng=rng)
    mapping = NestedSphere.random(nb.Sphere(LARGE), nb.Sphere(SMALL), rng).fit_lift(x)
    again = NestedSphere.from_axes(mapping.axes(), mapping.radii())
    assert [len(v) for v in mapping.axes()] == list(range(LARGE + 1, SMALL + 1, -1))
    assert all(0 < r <= math.pi / 2 for r in mapping.radii())
    assert torch.allclose(again.lift(again.project(x)), mapping.lift(mapping.project(x)), atol=1e-10)


def loss(mapping, x):
    return nb.Sphere(LARGE).sq_dist(x, mapping.lift(mapping.project(x))).sum()


@pytest.mark.parametrize("spread", [0.1, 0.5, 10.0])
def test_the_fitted_lift_attains_the_minimum(spread, rng):
    """Perturbing it never helps, and a long general-purpose optimisation finds nothing better."""
    sphere = nb.Sphere(LARGE)
    centre = sphere.random(rng=rng)
    x = sphere.project(centre + spread * torch.randn(30, LARGE + 1, generator=rng, dtype=torch.float64) / 3)
    mapping = NestedSphere.random(sphere, nb.Sphere(SMALL), rng)
    fitted = mapping.fit_lift(x)
    least = loss(fitted, x)
    assert fitted.scale >= 0.1 - 1e-12
    assert (fitted.offset @ fitted.basis).abs().max() < 1e-12
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(20):
            h = fitted._outside(fitted.offset + size * torch.randn(LARGE + 1, generator=rng, dtype=torch.float64))
            if h.norm() < math.sqrt(0.99):
                assert loss(NestedSphere(fitted.basis, h), x) >= least - 1e-10
    free = torch.zeros(LARGE + 1, dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([free], max_iter=200, line_search_fn="strong_wolfe")

    def offset():
        h = fitted._outside(free)
        return h / (1 + h.norm() ** 2).sqrt() * math.sqrt(0.99)

    def closure():
        search.zero_grad()
        value = loss(NestedSphere(fitted.basis, offset()), x)
        value.backward()
        return value

    search.step(closure)
    assert loss(NestedSphere(fitted.basis, offset().detach()), x) >= least - 1e-7


def test_round_trip_of_every_fitted_lift(rng):
    for n in (1, 2, 50):
        mapping = NestedSphere.random(nb.Sphere(50), nb.Sphere(5), rng).fit_lift(nb.Sphere(50).random(n, rng=rng))
        z = nb.Sphere(5).random(20, rng=rng)
        assert torch.allclose(mapping.project(mapping.lift(z)), z, atol=1e-13)
        nb.Sphere(50).check(mapping.lift(z), 1e-12)
