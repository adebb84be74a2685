"""The paper's statements on nested SPD matrices (section 3, appendix C), and the fitted lifts."""

from dataclasses import replace

import pytest
import torch

from nestbo import SPD, linalg
from nestbo.nested import NestedLogSPD, NestedSPD
from nestbo.nested.spd import _contraction

METRICS = ("affine-invariant", "log-euclidean")


def loss(mapping, x):
    return mapping.ambient.sq_dist(x, mapping.lift(mapping.project(x))).mean()


def with_coupling(rng, norm):
    """A mapping SPD(6) → SPD(2) whose K has a given norm."""
    mapping = NestedSPD.random(SPD(6), SPD(2), rng)
    rest = linalg.completion(mapping.basis)
    k = torch.randn(2, 4, generator=rng, dtype=torch.float64)
    b = SPD(4).random(rng=rng)
    return NestedSPD(mapping.basis, SPD(6), rest @ b @ rest.mT, norm * k / torch.linalg.matrix_norm(k, 2) @ rest.mT)


@pytest.mark.parametrize("norm", [0.0, 0.5, 0.99, 0.999999])
def test_the_lift_is_positive_definite_for_every_coupling_of_norm_below_one(norm, rng):
    mapping = with_coupling(rng, norm)
    z = SPD(2).random(50, rng=rng)
    x = mapping.lift(z)
    assert (torch.linalg.eigvalsh(x) > 0).all()
    assert torch.allclose(mapping.project(x), z, atol=1e-12)


def test_a_coupling_of_norm_above_one_would_not_be(rng):
    x = with_coupling(rng, 1.01).lift(SPD(2).random(50, rng=rng))
    assert (torch.linalg.eigvalsh(x)[:, 0] < 0).all()


@pytest.mark.parametrize("metric", METRICS)
def test_the_fitted_lift_attains_the_minimum(metric, rng):
    """Perturbing B or K never helps, and a long general-purpose optimisation finds nothing better."""
    space = SPD(4, metric=metric)
    x = space.random(12, rng=rng)
    fitted = NestedSPD.random(space, SPD(2, metric=metric), rng).fit_lift(x)
    frame, least = linalg.completion(fitted.basis), loss(fitted, x)
    b, k = frame.mT @ fitted.complement @ frame, fitted.coupling @ frame

    def other(b, k):
        return NestedSPD(fitted.basis, space, frame @ b @ frame.mT, k @ frame.mT)

    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(10):
            move = linalg.sym(torch.randn(2, 2, generator=rng, dtype=torch.float64))
            turn = torch.randn(2, 2, generator=rng, dtype=torch.float64)
            moved = loss(other(linalg.expm(linalg.logm(b) + size * move), k + size * turn), x)
            assert moved >= least - 1e-12
    s, m = (torch.randn(2, 2, generator=rng, dtype=torch.float64).requires_grad_() for _ in range(2))
    search = torch.optim.LBFGS([s, m], max_iter=300, line_search_fn="strong_wolfe", tolerance_grad=1e-10)

    def closure():
        search.zero_grad()
        # without the eigen-decomposition of P in lift, which is not differentiable at its zero eigenvalues
        root_z, root_b = linalg.sqrtm(fitted.project(x)), linalg.expm(linalg.sym(s) / 2)
        cross = fitted.basis @ root_z @ _contraction(m) @ root_b @ frame.mT
        rest = frame @ linalg.expm(linalg.sym(s)) @ frame.mT
        lifted = fitted.basis @ fitted.project(x) @ fitted.basis.mT + rest + cross + cross.mT
        value = space.sq_dist(x, linalg.sym(lifted)).mean()
        value.backward()
        return value

    found = search.step(closure), closure()
    assert found[1].item() >= least.item() - 1e-9


def test_the_fitted_log_lift_is_the_mean(rng):
    space = SPD(5, metric="log-euclidean")
    x = space.random(15, rng=rng)
    fitted = NestedLogSPD.random(space, SPD(2, metric="log-euclidean"), rng).fit_lift(x)
    least = loss(fitted, x)
    assert (fitted.basis.mT @ fitted.offset @ fitted.basis).abs().max() < 1e-12
    inside = fitted.basis @ fitted.basis.mT
    for _ in range(20):
        move = linalg.sym(torch.randn(5, 5, generator=rng, dtype=torch.float64))
        moved = NestedLogSPD(fitted.basis, space, fitted.offset + 0.1 * (move - inside @ move @ inside))
        assert loss(moved, x) > least


def test_a_search_finds_no_better_log_lift(rng):
    space = SPD(4, metric="log-euclidean")
    x = space.random(15, rng=rng)
    fitted = NestedLogSPD.random(space, SPD(2, metric="log-euclidean"), rng).fit_lift(x)
    free = torch.randn(4, 4, generator=rng, dtype=torch.float64).requires_grad_()
    search = torch.optim.LBFGS([free], max_iter=200, line_search_fn="strong_wolfe", tolerance_grad=1e-10)

    def closure():
        search.zero_grad()
        value = loss(NestedLogSPD(fitted.basis, space, fitted._outside(linalg.sym(free))), x)
        value.backward()
        return value

    search.step(closure)
    assert closure().item() == pytest.approx(loss(fitted, x).item(), abs=1e-7)
    assert closure().item() >= loss(fitted, x).item() - 1e-10


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("family", [NestedSPD, NestedLogSPD])
def test_latent_distances_do_not_depend_on_the_basis_of_the_span(family, metric, rng):
    space, latent = SPD(6, metric=metric), SPD(3, metric=metric)
    mapping = family.random(space, latent, rng)
    turned = family(mapping.basis @ linalg.random_frames(3, 3, rng=rng), space)
    x = space.random(8, rng=rng)
    tables = [latent.pairwise_dist(m.project(x), m.project(x)) for m in (mapping, turned)]
    torch.testing.assert_close(*tables, rtol=0, atol=1e-10)
    lifted = [m.lift_near(m.project(x), x.flip(0)) for m in (mapping, turned)]
    torch.testing.assert_close(*lifted, rtol=0, atol=1e-10)


def test_two_steps_are_one(rng):
    """The paper's steps SPD(D) → … → SPD(d) collapse to one matrix with orthonormal columns."""
    x = SPD(6).random(5, rng=rng)
    first, second = linalg.random_frames(6, 4, rng=rng), linalg.random_frames(4, 2, rng=rng)
    for family in (NestedSPD, NestedLogSPD):
        steps = family(second, SPD(4)).project(family(first, SPD(6)).project(x))
        torch.testing.assert_close(steps, family(first @ second, SPD(6)).project(x), rtol=0, atol=1e-10)


def test_projections_never_lengthen_distances(rng):
    """Both mappings contract, each in its metric: what is far apart below was so above."""
    for family, metric in ((NestedSPD, "affine-invariant"), (NestedLogSPD, "log-euclidean")):
        space, latent = SPD(6, metric=metric), SPD(2, metric=metric)
        mapping, x = family.random(space, latent, rng), space.random(12, rng=rng)
        z = mapping.project(x)
        assert (latent.pairwise_dist(z, z) <= space.pairwise_dist(x, x) + 1e-9).all()


@pytest.mark.parametrize("family", [NestedSPD, NestedLogSPD])
def test_fitted_lifts_keep_the_bounds_and_the_round_trip(family, rng):
    """Of strongly coupled data, so that the fitted coupling must give way near the bounds."""
    space, latent = SPD(4, eigenvalues=(1e-3, 5.0)), SPD(2, eigenvalues=(1e-3, 5.0))
    frames = linalg.random_frames(4, 4, rng=rng)
    values = torch.tensor([1e-3, 0.01, 4.0, 5.0], dtype=torch.float64)
    x = linalg.spectral(values * (1 - 0.1 * torch.rand(20, 4, generator=rng, dtype=torch.float64)), frames)
    fitted = family.random(space, latent, rng).fit_lift(space.project(x))
    corners = linalg.spectral(torch.tensor([1e-3, 5.0], dtype=torch.float64), linalg.random_frames(20, 2, 2, rng=rng))
    z = torch.cat([latent.random(20, rng=rng), latent.project(corners)])
    space.check(fitted.lift(z), 1e-9)
    assert torch.allclose(fitted.project(fitted.lift(z)), z, atol=1e-9)
    unbounded = torch.linalg.eigvalsh(replace(fitted, space=SPD(4)).lift(z))
    assert (unbounded > 5.001).any()


def test_fitting_never_worsens_the_reconstruction(rng):
    space = SPD(5)
    x = space.random(20, rng=rng)
    mapping = NestedSPD.random(space, SPD(2), rng)
    assert loss(mapping.fit_lift(x), x) <= loss(mapping, x)


def test_the_error_of_the_papers_approximation_is_small_near_the_identity_and_not_far_from_it(rng):
    """log(WᵀXW) ≈ Wᵀ log(X) W: to second order in log X, so that it is good for small logarithms only."""
    basis = linalg.random_frames(10, 3, rng=rng)
    direction = linalg.sym(torch.randn(30, 10, 10, generator=rng, dtype=torch.float64)) / 10
    errors = []
    for size in (0.1, 0.2, 2.0):
        exact = linalg.logm(linalg.sym(basis.mT @ linalg.expm(size * direction) @ basis))
        close = basis.mT @ (size * direction) @ basis
        errors.append((linalg.norm(exact - close, axes=2) / linalg.norm(exact, axes=2)).mean().item())
    assert errors[0] < 0.05
    assert errors[1] / errors[0] == pytest.approx(2.0, rel=0.15)
    assert errors[2] > 0.3


def test_the_papers_approximation_is_exact_where_the_span_is_one_of_eigenvectors(rng):
    frames, values = linalg.random_frames(6, 6, rng=rng), SPD(6).random(rng=rng).diagonal()
    x = linalg.spectral(values, frames)
    exact, close = (family(frames[:, :3], SPD(6)).project(x) for family in (NestedSPD, NestedLogSPD))
    torch.testing.assert_close(exact, close, rtol=0, atol=1e-10)


FAMILIES = pytest.mark.parametrize("family", [NestedSPD, NestedLogSPD])
BOUNDS = (0.5, 5.0)


class TestLiftNear:
    """z with all else as x has it."""

    def parts(self, mapping, x):
        """B and K of a matrix."""
        rest = linalg.completion(mapping.basis)
        b = linalg.sym(rest.mT @ x @ rest)
        cross = mapping.basis.mT @ x @ rest
        return b, linalg.inverse_sqrtm(mapping.project(x)) @ cross @ linalg.inverse_sqrtm(b)

    @FAMILIES
    @pytest.mark.parametrize("bounds", [None, BOUNDS])
    def test_a_matrix_is_its_own_lift(self, family, bounds, rng):
        space = SPD(5, eigenvalues=bounds)
        x = space.random(50, rng=rng)
        mapping = family.random(space, SPD(2, eigenvalues=bounds), rng)
        torch.testing.assert_close(mapping.lift_near(mapping.project(x), x), x, rtol=0, atol=1e-10)

    @FAMILIES
    @pytest.mark.parametrize("count", [3, 15, 100])
    def test_one_latent_point_over_many_matrices(self, family, count, rng):
        """Few are searched for the bounds in other steps than many."""
        space = SPD(5, eigenvalues=BOUNDS)
        mapping, x = family.random(space, SPD(2, eigenvalues=BOUNDS), rng), space.random(count, rng=rng)
        z = SPD(2, eigenvalues=BOUNDS).random(rng=rng)
        lifted = mapping.lift_near(z, x)
        space.check(lifted, 1e-9)
        torch.testing.assert_close(mapping.project(lifted), z.expand(count, 2, 2), rtol=0, atol=1e-9)
        each = torch.stack([mapping.lift_near(z, one) for one in x])
        torch.testing.assert_close(lifted, each, rtol=0, atol=1e-6)

    @FAMILIES
    @pytest.mark.parametrize("bound", BOUNDS)
    def test_a_matrix_at_a_bound_is_its_own_lift(self, family, bound, rng):
        """Its eigenvector there lies in the span of W, so that it is at the bound whatever the coupling is."""
        space = SPD(4, eigenvalues=BOUNDS)
        mapping = family.random(space, SPD(2, eigenvalues=BOUNDS), rng)
        first = mapping.basis @ linalg.random_frames(30, 2, 1, rng=rng)
        rest = linalg.completion(first) @ linalg.random_frames(30, 3, 3, rng=rng)
        x = linalg.spectral(torch.tensor([bound, 1, 2, 3], dtype=torch.float64), torch.cat([first, rest], -1))
        torch.testing.assert_close(mapping.lift_near(mapping.project(x), x), x, rtol=0, atol=1e-6)

    def test_complement_and_coupling_are_those_of_the_matrix(self, rng):
        mapping = NestedSPD.random(SPD(5), SPD(2), rng)
        x, z = SPD(5).random(20, rng=rng), SPD(2).random(20, rng=rng)
        found, wanted = self.parts(mapping, mapping.lift_near(z, x)), self.parts(mapping, x)
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-8)

    def test_the_log_lift_is_the_nearest_in_its_metric(self, rng):
        space = SPD(5, metric="log-euclidean")
        mapping = NestedLogSPD.random(space, SPD(2, metric="log-euclidean"), rng)
        x, z = space.random(10, rng=rng), SPD(2).random(10, rng=rng)
        near = mapping.lift_near(z, x)
        least = space.dist(x, near)
        torch.testing.assert_close(least, mapping.latent.dist(z, mapping.project(x)), rtol=0, atol=1e-9)
        for size in (0.01, 1.0):
            move = mapping._outside(linalg.sym(torch.randn(50, 1, 5, 5, generator=rng, dtype=torch.float64)))
            assert (space.dist(x, linalg.expm(linalg.logm(near) + size * move)) >= least - 1e-9).all()

    @FAMILIES
    def test_bounds_shorten_the_coupling_no_further_than_they_must(self, family, rng):
        """Where less than all of x is kept, an eigenvalue has reached a bound."""
        space, latent = SPD(5, eigenvalues=BOUNDS), SPD(2, eigenvalues=BOUNDS)
        free = family.random(SPD(5), SPD(2), rng)
        mapping = family(free.basis, space)
        x, z = space.random(100, rng=rng), latent.random(100, rng=rng)
        near, unbounded = mapping.lift_near(z, x), free.lift_near(z, x)
        values = torch.linalg.eigvalsh(near)
        assert ((values >= BOUNDS[0] - 1e-12) & (values <= BOUNDS[1] + 1e-12)).all()
        shortened = (near - unbounded).abs().amax((-1, -2)) > 1e-6
        assert 5 < shortened.sum() < 95
        room = torch.minimum(values[:, 0] - BOUNDS[0], BOUNDS[1] - values[:, -1])
        assert (room[shortened] < 1e-6).all()

    @FAMILIES
    def test_at_the_corners_of_the_bounds(self, family, rng):
        space, latent = SPD(6, eigenvalues=(1e-3, 5.0)), SPD(2, eigenvalues=(1e-3, 5.0))
        mapping = family.random(space, latent, rng)
        z = linalg.spectral(torch.tensor([1e-3, 5.0], dtype=torch.float64), linalg.random_frames(20, 2, 2, rng=rng))
        extremes = torch.tensor([1e-3, 1e-3, 1e-3, 5.0, 5.0, 5.0], dtype=torch.float64)
        for values in (
            extremes,
            torch.full((6,), 1e-3, dtype=torch.float64),
            torch.full((6,), 5.0, dtype=torch.float64),
        ):
            x = linalg.spectral(values, linalg.random_frames(20, 6, 6, rng=rng))
            near = mapping.lift_near(z, x)
            space.check(near, 1e-9)
            torch.testing.assert_close(mapping.project(near), z, rtol=0, atol=1e-9)

    @FAMILIES
    def test_in_as_many_dimensions_only_the_basis_changes(self, family, rng):
        mapping = family.random(SPD(3), SPD(3), rng)
        x, z = SPD(3).random(4, rng=rng), SPD(3).random(4, rng=rng)
        torch.testing.assert_close(mapping.lift_near(z, x), mapping.basis @ z @ mapping.basis.mT, rtol=0, atol=1e-10)

    def test_what_the_mapping_was_fitted_to_does_not_matter(self, rng):
        for family in (NestedSPD, NestedLogSPD):
            mapping = family.random(SPD(4), SPD(2), rng)
            x, z = SPD(4).random(5, rng=rng), SPD(2).random(5, rng=rng)
            assert torch.equal(mapping.fit_lift(x).lift_near(z, x), mapping.lift_near(z, x))
