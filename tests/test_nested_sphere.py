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


def test_the_fitted_lift_is_best_of_few_data_too(rng):
    """One point is reconstructed exactly where s ≥ 0.1; points in the span of W need no offset."""
    sphere = nb.Sphere(LARGE)
    mapping = NestedSphere.random(sphere, nb.Sphere(SMALL), rng)
    x = mapping.lift_near(nb.Sphere(SMALL).random(1, rng=rng), sphere.random(1, rng=rng))
    assert loss(mapping.fit_lift(x), x) < 1e-20
    inside = mapping.lift(nb.Sphere(SMALL).random(5, rng=rng))
    assert mapping.fit_lift(inside).offset.norm() < 1e-7


class TestLiftNear:
    """The nearest point of the fibre {s W z + h} to x, where there is one with s ≥ 0.1."""

    @pytest.fixture
    def mapping(self, rng):
        return NestedSphere.random(nb.Sphere(LARGE), nb.Sphere(SMALL), rng)

    def scale(self, mapping, x):
        return (x @ mapping.basis).norm(dim=-1)

    def test_a_point_is_its_own_lift(self, mapping, rng):
        x = nb.Sphere(LARGE).random(200, rng=rng)
        x = x[self.scale(mapping, x) >= 0.1]
        torch.testing.assert_close(mapping.lift_near(mapping.project(x), x), x, rtol=0, atol=1e-12)

    def test_one_with_a_small_scale_moves_to_that_of_a_tenth(self, mapping, rng):
        """The offset keeps its direction."""
        h = mapping._outside(nb.Sphere(LARGE).random(20, rng=rng))
        h = h / h.norm(dim=-1, keepdim=True)
        z = nb.Sphere(SMALL).random(20, rng=rng)
        x = 0.02 * z @ mapping.basis.mT + math.sqrt(1 - 0.02**2) * h
        expected = 0.1 * z @ mapping.basis.mT + math.sqrt(0.99) * h
        torch.testing.assert_close(mapping.lift_near(z, x), expected, rtol=0, atol=1e-12)

    def test_nothing_in_the_fibre_is_nearer(self, mapping, rng):
        """Neither random points of it nor those close by."""
        sphere = nb.Sphere(LARGE)
        x, z = sphere.random(200, rng=rng), nb.Sphere(SMALL).random(200, rng=rng)
        near = mapping.lift_near(z, x)
        free = self.scale(mapping, near) > 0.1 + 1e-9
        assert 20 < free.sum() < 180
        x, z, near = x[free], z[free], near[free]
        least = sphere.dist(x, near)
        for size in (10.0, 0.3, 0.01):
            h = mapping._outside(near + size * torch.randn(50, *near.shape, generator=rng, dtype=torch.float64))
            s = (
                self.scale(mapping, near)
                * (min(size, 1) * torch.randn(50, 1, generator=rng, dtype=torch.float64)).exp()
            )
            other = sphere.project(s.unsqueeze(-1) * (z @ mapping.basis.mT) + h)
            torch.testing.assert_close(mapping.project(other), z.expand(50, *z.shape), rtol=0, atol=1e-8)
            assert (sphere.dist(x, other) >= least - 1e-12).all()

    def test_from_the_far_half_the_scale_is_a_tenth(self, mapping, rng):
        x = nb.Sphere(LARGE).random(50, rng=rng)
        near = mapping.lift_near(-mapping.project(x), x)
        torch.testing.assert_close(self.scale(mapping, near), torch.full((50,), 0.1, dtype=torch.float64))
        assert torch.allclose(
            torch.cosine_similarity(mapping._outside(near), mapping._outside(x)), torch.ones(()).double()
        )

    def test_near_a_point_in_the_span_lies_the_span(self, mapping, rng):
        z, other = nb.Sphere(SMALL).random(2, 20, rng=rng)
        flat = mapping.lift(z)
        for x in (mapping.lift(other), flat, -flat):
            torch.testing.assert_close(mapping.lift_near(z, x), flat, rtol=0, atol=1e-12)

    def test_a_point_without_a_projection_does_no_harm(self, mapping, rng):
        """x ⟂ span W."""
        x = nb.Sphere(LARGE).project(mapping._outside(nb.Sphere(LARGE).random(5, rng=rng)))
        z = nb.Sphere(SMALL).random(5, rng=rng)
        near = mapping.lift_near(z, x)
        nb.Sphere(LARGE).check(near, 1e-12)
        torch.testing.assert_close(mapping.project(near), z, rtol=0, atol=1e-12)

    def test_the_offset_of_the_mapping_does_not_matter(self, mapping, rng):
        x, z = nb.Sphere(LARGE).random(5, rng=rng), nb.Sphere(SMALL).random(5, rng=rng)
        assert torch.equal(mapping.fit_lift(x).lift_near(z, x), mapping.lift_near(z, x))

    def test_in_as_many_dimensions_only_the_basis_changes(self, rng):
        sphere = nb.Sphere(SMALL)
        mapping = NestedSphere.random(sphere, sphere, rng)
        x, z = sphere.random(5, rng=rng), sphere.random(5, rng=rng)
        torch.testing.assert_close(mapping.lift_near(z, x), z @ mapping.basis.mT)


@pytest.mark.parametrize("apart", [2e-8, 1e-6, 1e-3])
def test_lifts_near_points_that_almost_lie_in_the_span(apart, rng):
    mapping = NestedSphere.random(nb.Sphere(10), nb.Sphere(3), rng)
    inside = mapping.lift(nb.Sphere(3).random(20, rng=rng))
    x = nb.Sphere(10).exp(inside, apart * nb.Sphere(10).random_tangent(inside, rng))
    z = -mapping.project(x)
    torch.testing.assert_close(mapping.project(mapping.lift_near(z, x)), z, rtol=0, atol=1e-14)


@pytest.mark.parametrize("near", [1e-2, 1e-4, 1e-6])
def test_axes_next_to_the_opposite_pole(near):
    axis = nb.linalg.unit(torch.tensor([near, 0.0, 0.0, -1.0], dtype=torch.float64))
    basis = NestedSphere.from_axes([axis], [1.0]).basis
    torch.testing.assert_close(basis.mT @ basis, torch.eye(3).double(), rtol=0, atol=1e-14)
    assert (basis.mT @ axis).abs().max() < 1e-15 / near
