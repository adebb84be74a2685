"""Known values, traps, strangers and errors; the laws that every manifold obeys are tested elsewhere."""

import math
import warnings

import numpy as np
import pymanopt.manifolds
import pytest
import scipy.linalg
import scipy.stats
import torch
from torch.autograd.functional import hessian, jacobian

from nestbo import SPD, Box, Euclidean, Grassmann, Product, Sphere, Stiefel, linalg
from nestbo.errors import ArgumentError, NestboError, OffManifoldError, ShapeError
from nestbo.linalg import sym
from nestbo.manifolds import MANIFOLDS
from nestbo.testing.manifolds import nearby

SAMPLES = [manifold for family in MANIFOLDS.values() for manifold in family.samples()]
samples = pytest.mark.parametrize("manifold", SAMPLES, ids=repr)
both_precisions = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
metrics = pytest.mark.parametrize("metric", ["affine-invariant", "log-euclidean"])


def equal(a, b, tolerance=1e-12):
    torch.testing.assert_close(a, torch.as_tensor(b, dtype=a.dtype), rtol=tolerance, atol=tolerance)


def random(*shape, rng):
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def circle(angle):
    angle = torch.as_tensor(angle, dtype=torch.float64)
    return torch.stack([angle.cos(), angle.sin()], -1)


class TestKnownValues:
    @pytest.mark.parametrize("angle", [0.0, 1e-12, 0.1, 1.0, math.pi / 2, 3.0, math.pi - 1e-9, math.pi])
    def test_distances_on_the_circle_are_angles(self, angle):
        assert Sphere(1).dist(circle(0.7), circle(0.7 + angle)).item() == pytest.approx(angle, abs=1e-15, rel=1e-14)

    def test_the_octant_of_the_sphere_is_a_right_triangle(self):
        corners = torch.eye(3, dtype=torch.float64)
        wanted = math.pi / 2 * (1 - torch.eye(3, dtype=torch.float64))
        equal(Sphere(2).pairwise_dist(corners, corners), wanted)

    @pytest.mark.parametrize("n", [1, 2, 50])
    def test_at_the_antipode_log_chooses_a_shortest_geodesic(self, n, rng):
        sphere = Sphere(n)
        x = torch.cat([sphere.random(5, rng=rng), torch.eye(n + 1, dtype=torch.float64)])
        v = sphere.log(x, -x)
        equal(sphere.norm(x, v), [math.pi] * len(x))
        equal(linalg.inner(x, v), torch.zeros(len(x)))
        equal(sphere.exp(x, v), -x)

    @pytest.mark.parametrize("gap", [1e-15, 1e-12, 1e-8, 1e-4])
    def test_log_keeps_its_direction_next_to_the_antipode_and_next_to_the_point(self, gap):
        x, toward = circle(0.0), circle(math.pi / 2)
        equal(Sphere(1).log(x, circle(math.pi) * 1.0 + 0 * x), math.pi * toward, 1e-15)
        opposite = -math.cos(gap) * x + math.sin(gap) * toward
        equal(Sphere(1).log(x, opposite), (math.pi - gap) * toward)
        near = math.cos(gap) * x + math.sin(gap) * toward
        equal(Sphere(1).log(x, near) / gap, toward)

    def test_a_great_circle_closes(self, rng):
        x = Sphere(4).random(rng=rng)
        v = Sphere(4).random_tangent(x, rng)
        equal(Sphere(4).exp(x, 2 * math.pi * v), x)
        equal(Sphere(4).exp(x, math.pi / 2 * v), v)

    @metrics
    def test_spd_distance_of_diagonal_matrices_is_that_of_their_logarithms(self, metric, rng):
        a, b = random(2, 6, 4, rng=rng).exp()
        wanted = (a.log() - b.log()).norm(dim=-1)
        equal(SPD(4, metric=metric).dist(torch.diag_embed(a), torch.diag_embed(b)), wanted)

    def test_affine_invariant_distance_agrees_with_generalised_eigenvalues(self, rng):
        x, y = SPD(5).random(2, rng=rng)
        wanted = np.linalg.norm(np.log(scipy.linalg.eigh(y.numpy(), x.numpy(), eigvals_only=True)))
        assert SPD(5).dist(x, y).item() == pytest.approx(wanted, rel=1e-12)

    def test_affine_invariance_under_congruence_and_inversion(self, rng):
        spd = SPD(4)
        x, y = spd.random(2, 7, rng=rng)
        a = random(7, 4, 4, rng=rng)
        equal(spd.dist(a @ x @ a.mT, a @ y @ a.mT), spd.dist(x, y), 1e-9)
        equal(spd.dist(torch.linalg.inv(x), torch.linalg.inv(y)), spd.dist(x, y), 1e-10)
        v = linalg.sym(random(7, 4, 4, rng=rng))
        equal(spd.exp(a @ x @ a.mT, a @ v @ a.mT), a @ spd.exp(x, v) @ a.mT, 1e-8)

    def test_log_euclidean_metric_is_flat_in_the_logarithm(self, rng):
        spd = SPD(4, metric="log-euclidean")
        x, y = spd.random(2, 7, rng=rng)
        a, b = (torch.tensor(np.real([scipy.linalg.logm(m) for m in part.numpy()])) for part in (x, y))
        equal(spd.dist(x, y), torch.linalg.matrix_norm(a - b), 1e-10)
        equal(spd.exp(x, spd.log(x, y) / 2), linalg.expm((a + b) / 2), 1e-10)

    def test_both_metrics_agree_where_matrices_commute(self, rng):
        frame = linalg.random_frames(3, 3, rng=rng)
        x, y = linalg.spectral(random(2, 5, 3, rng=rng).exp(), frame)
        equal(SPD(3).dist(x, y), SPD(3, metric="log-euclidean").dist(x, y))
        equal(SPD(3).log(x, y), SPD(3, metric="log-euclidean").log(x, y), 1e-10)

    @pytest.mark.parametrize(("n", "p"), [(2, 1), (5, 2), (5, 4), (9, 3)])
    def test_grassmann_distance_is_the_norm_of_principal_angles(self, n, p, rng):
        x, y = Grassmann(n, p).random(2, 6, rng=rng)
        wanted = [np.linalg.norm(scipy.linalg.subspace_angles(a.numpy(), b.numpy())) for a, b in zip(x, y, strict=True)]
        equal(Grassmann(n, p).dist(x, y), torch.tensor(wanted))

    @pytest.mark.parametrize("angle", [1e-12, 1e-6, 0.3, 1.2, math.pi / 2 - 1e-9, math.pi / 2])
    def test_lines_in_the_plane_are_at_their_angle(self, angle):
        x, y = circle(0.4)[:, None], circle(0.4 + angle)[:, None]
        assert Grassmann(2, 1).dist(x, y).item() == pytest.approx(angle, rel=1e-12)
        assert Grassmann(2, 1).dist(x, -y).item() == pytest.approx(angle, rel=1e-12)

    def test_grassmann_does_not_see_the_basis(self, rng):
        grassmann = Grassmann(7, 3)
        x, y = grassmann.random(2, 4, rng=rng)
        turn, other = linalg.random_frames(2, 4, 3, 3, rng=rng)
        equal(grassmann.dist(x @ turn, y @ other), grassmann.dist(x, y))
        equal(grassmann.log(x, y @ other), grassmann.log(x, y), 1e-10)
        equal(grassmann.log(x @ turn, y), grassmann.log(x, y) @ turn, 1e-10)
        assert grassmann.dist(x, x @ turn).max() < 1e-14

    def test_a_column_of_stiefel_is_a_sphere(self, rng):
        x, v = Sphere(4).random(5, rng=rng), 0.3 * random(5, 5, rng=rng)
        v = Sphere(4).to_tangent(x, v)
        equal(Stiefel(5, 1).exp(x[..., None], v[..., None])[..., 0], Sphere(4).exp(x, v))

    def test_a_product_adds_squared_distances(self, rng):
        product = Product(Sphere(2), SPD(3), Box(0, [1, 2]))
        x, y = product.random(2, 4, rng=rng)
        parts = zip(product.factors, product.split(x), product.split(y), strict=True)
        equal(product.dist(x, y) ** 2, sum(factor.dist(a, b) ** 2 for factor, a, b in parts))
        equal(product.join(product.split(x)), x, 0)

    @pytest.mark.parametrize(
        ("manifold", "dim", "shape"),
        [
            (Sphere(50), 50, (51,)),
            (SPD(10), 55, (10, 10)),
            (Grassmann(51, 6), 270, (51, 6)),
            (Stiefel(4, 3), 6, (4, 3)),
            (Box(0, 1), 1, (1,)),
            (Product(Sphere(2), SPD(3)), 8, (12,)),
        ],
        ids=repr,
    )
    def test_dimensions(self, manifold, dim, shape):
        assert (manifold.dim, manifold.point_shape) == (dim, shape)


class TestSmallestCases:
    def test_one_by_one_matrices_are_the_positive_numbers(self):
        spd, x, y = SPD(1), torch.full((1, 1), 2.0).double(), torch.full((1, 1), 8.0).double()
        assert spd.dist(x, y).item() == pytest.approx(math.log(4))
        equal(spd.exp(x, spd.log(x, y)), y)
        equal(spd.exp(x, x), x * math.e)

    def test_a_product_of_one_is_its_factor(self, rng):
        sphere, product = Sphere(3), Product(Sphere(3))
        x, y = sphere.random(2, 5, rng=rng)
        equal(product.dist(x, y), sphere.dist(x, y))
        equal(product.log(x, y), sphere.log(x, y), 0)
        equal(product.exp(x, product.log(x, y)), y)

    def test_a_point_without_batch_axes(self, rng):
        for manifold in SAMPLES:
            x = manifold.random(rng=rng)
            assert x.shape == manifold.point_shape
            assert manifold.dist(x, x).shape == ()

    def test_an_empty_batch_of_points_stays_empty(self, rng):
        for manifold in SAMPLES:
            x = manifold.random(0, rng=rng)
            assert manifold.dist(x, x).shape == (0,)
            assert manifold.check(x).shape == (0, *manifold.point_shape)


def is_smooth(f, x):
    """f has a finite value, gradient and Hessian at x, in the precision of x."""
    value = f(x)
    assert value.dtype == x.dtype
    assert value.isfinite()
    assert jacobian(f, x).isfinite().all()
    assert hessian(f, x).isfinite().all()


class TestTraps:
    """Value, gradient and Hessian where a formula written down naively gives 0/0."""

    @metrics
    def test_derivatives_of_the_distances_among_points_two_of_which_coincide(self, metric, rng):
        """Each pair may be computed once or twice: gradient and Hessian product are the same."""
        spd = SPD(3, metric=metric)
        x = spd.random(2, 3, rng=rng)
        x[:, 2] = x[:, 0]
        weights, v = torch.randn(2, 3, 3, generator=rng, dtype=x.dtype), spd.random_tangent(x, rng)
        found = []
        for other in (lambda points: points, torch.clone):
            at = x.clone().requires_grad_()
            value = (weights * spd.pairwise_sq_dist(at, other(at))).sum()
            (gradient,) = torch.autograd.grad(value, at, create_graph=True)
            (product,) = torch.autograd.grad((gradient * v).sum(), at)
            found.append((gradient.detach(), product))
        for among, between in zip(*found, strict=True):
            equal(sym(among), sym(between), 1e-8)

    @both_precisions
    @metrics
    def test_spd_distances_at_coincident_and_identity_matrices(self, metric, dtype):
        spd, eye = SPD(3, metric=metric), torch.eye(3, dtype=dtype)
        for x in (eye, 2 * eye, torch.diag(torch.tensor([1, 1, 4], dtype=dtype))):
            is_smooth(lambda x: spd.dist(x, eye), x)
            is_smooth(lambda x: spd.sq_dist(x, eye), x)
        assert spd.dist(eye, eye) == 0
        assert (jacobian(lambda x: spd.dist(x, eye), eye) == 0).all()
        equal(hessian(lambda x: spd.sq_dist(x, eye) / 2, eye).reshape(9, 9), _symmetriser(3), 1e-6)

    @both_precisions
    @pytest.mark.parametrize("n", [1, 2, 50])
    def test_sphere_distances_at_coincident_and_antipodal_points(self, n, dtype, rng):
        sphere = Sphere(n)
        y = sphere.project(sphere.random(rng=rng).to(dtype))
        for x in (y, -y):
            is_smooth(lambda x: sphere.dist(x, y), x)
            is_smooth(lambda x: sphere.sq_dist(x, y), x)
        assert sphere.dist(y, y) == 0
        assert sphere.dist(-y, y).item() == pytest.approx(math.pi, rel=1e-6)

    @both_precisions
    @pytest.mark.parametrize(
        "manifold", [Sphere(1), Sphere(5), SPD(3), SPD(3, metric="log-euclidean"), Box(-1, [1, 1])], ids=repr
    )
    def test_exp_and_log_are_differentiable_at_zero_tangents(self, manifold, dtype, rng):
        x = manifold.project(manifold.random(rng=rng).to(dtype))
        zero = torch.zeros_like(x)
        v = manifold.to_tangent(x, random(*x.shape, rng=rng).to(dtype))
        equal(manifold.exp(x, zero), x, 1e-5)
        equal(manifold.log(x, x), zero, 1e-6)
        pushed = jacobian(lambda t: manifold.exp(x, t * v), torch.zeros((), dtype=dtype))
        equal(pushed, v, 1e-4 if dtype == torch.float32 else 1e-10)
        for f in (lambda x: manifold.log(x, x.detach()).sum(), lambda x: manifold.log(x.detach(), x).sum()):
            assert jacobian(f, x).isfinite().all()
            assert hessian(f, x).isfinite().all()

    @samples
    def test_norms_of_zero_tangents_have_zero_gradient(self, manifold, rng):
        x = manifold.random(rng=rng)
        f = lambda v: manifold.norm(x, v)
        assert f(torch.zeros_like(x)) == 0
        assert (jacobian(f, torch.zeros_like(x)) == 0).all()

    @samples
    def test_distances_are_differentiable_where_points_coincide(self, manifold, rng):
        y = manifold.random(rng=rng)
        assert manifold.dist(y, y) == 0
        assert jacobian(lambda x: manifold.dist(x, y), y).isfinite().all()
        assert hessian(lambda x: manifold.sq_dist(x, y), y).isfinite().all()

    def test_log_at_the_antipode_has_finite_derivatives(self, rng):
        y = Sphere(3).random(rng=rng)
        assert jacobian(lambda x: Sphere(3).log(x, y), -y).isfinite().all()

    @pytest.mark.parametrize("p", [1, 2, 3])
    def test_orthogonal_subspaces_have_finite_distance_gradients(self, p):
        eye = torch.eye(6, dtype=torch.float64)
        x, y, grassmann = eye[:, :p], eye[:, 3 : 3 + p], Grassmann(6, p)
        assert grassmann.dist(x, y).item() == pytest.approx(math.pi / 2 * math.sqrt(p))
        assert jacobian(lambda x: grassmann.dist(x, y), x).isfinite().all()
        assert hessian(lambda x: grassmann.sq_dist(x, y), x).isfinite().all()

    @pytest.mark.parametrize("manifold", [SPD(3), SPD(3, metric="log-euclidean"), Grassmann(5, 2)], ids=repr)
    def test_one_bad_element_leaves_the_others_alone(self, manifold, rng):
        x, y = manifold.random(2, 4, rng=rng)
        wanted = manifold.dist(x, y)
        x[1] = math.nan
        keep = [0, 2, 3]
        equal(manifold.dist(x, y)[keep], wanted[keep])
        equal(manifold.project(x)[keep], x[keep])
        assert manifold.dist(x, y)[1].isnan()

    def test_an_indefinite_matrix_gives_nan_and_leaves_the_others_alone(self, rng):
        x = SPD(3).random(3, rng=rng)
        wanted = SPD(3).dist(x, x.flip(0))
        x[1] = torch.diag(torch.tensor([1.0, 1.0, -1.0]))
        found = SPD(3).dist(x, x.flip(0))
        equal(found[[0, 2]], wanted[[0, 2]])
        assert found[1].isnan()

    def test_projection_of_the_zero_tensor_is_a_point(self):
        for manifold in SAMPLES:
            zero = torch.zeros(manifold.point_shape, dtype=torch.float64)
            manifold.check(manifold.project(zero), 1e-10)


def _symmetriser(n):
    """The matrix of a ↦ (a + aᵀ)/2 in row-major coordinates."""
    eye = torch.eye(n * n, dtype=torch.float64).reshape(n * n, n, n)
    return linalg.sym(eye).reshape(n * n, n * n)


class TestRandom:
    @samples
    def test_draws_come_from_the_generator_alone(self, manifold):
        before = torch.get_rng_state()
        first, second = (manifold.random(3, rng=torch.Generator().manual_seed(5)) for _ in range(2))
        other = manifold.random(3, rng=torch.Generator().manual_seed(6))
        assert torch.equal(first, second)
        assert not torch.equal(first, other)
        assert torch.equal(torch.get_rng_state(), before)
        assert first.dtype == torch.float64

    def test_points_of_the_sphere_are_uniform(self, rng):
        """Uniform means: centred, isotropic, and on S² every coordinate uniform in [−1, 1] (Archimedes)."""
        x = Sphere(2).random(20000, rng=rng)
        assert x.mean(0).abs().max() < 0.02
        assert (x.mT @ x / 20000 - torch.eye(3) / 3).abs().max() < 0.01
        for coordinate in x.mT:
            assert scipy.stats.kstest(coordinate.numpy(), scipy.stats.uniform(-1, 2).cdf).pvalue > 1e-3

    def test_angles_of_the_circle_are_uniform(self, rng):
        x = Sphere(1).random(20000, rng=rng)
        angle = torch.atan2(x[:, 1], x[:, 0]).numpy()
        assert scipy.stats.kstest(angle, scipy.stats.uniform(-math.pi, 2 * math.pi).cdf).pvalue > 1e-3

    @metrics
    def test_eigenvalues_are_uniform_within_their_bounds(self, metric, rng):
        x = SPD(3, metric=metric, eigenvalues=(0.5, 4.0)).random(5000, rng=rng)
        values = torch.linalg.eigvalsh(x)
        assert values.min() >= 0.5 - 1e-12
        assert values.max() <= 4.0 + 1e-12
        uniform = scipy.stats.uniform(0.5, 3.5)
        assert scipy.stats.kstest(values.flatten().numpy(), uniform.cdf).pvalue > 1e-3
        assert (x.mean(0) - 2.25 * torch.eye(3)).abs().max() < 0.06

    def test_eigenvalues_on_a_logarithmic_scale_are_log_uniform(self, rng):
        spd = SPD(3, eigenvalues=(0.01, 10.0), scale="log")
        values = torch.linalg.eigvalsh(spd.random(5000, rng=rng))
        assert (spd.violation(spd.random(100, rng=rng)) <= 0).all()
        uniform = scipy.stats.loguniform(0.01, 10.0)
        assert scipy.stats.kstest(values.flatten().numpy(), uniform.cdf).pvalue > 1e-3

    def test_a_matrix_along_the_axes_keeps_its_eigenvalues_and_the_order_of_its_diagonal(self, rng):
        x = SPD(4).random(50, rng=rng)
        along = SPD(4).along_axes(x)
        assert torch.equal(along, torch.diag_embed(along.diagonal(dim1=-2, dim2=-1)))
        equal(torch.linalg.eigvalsh(along), torch.linalg.eigvalsh(x))
        orders = [torch.diagonal(each, dim1=-2, dim2=-1).argsort(-1) for each in (x, along)]
        assert torch.equal(*orders)

    def test_log_eigenvalues_without_bounds_are_standard_normal(self, rng):
        values = torch.linalg.eigvalsh(SPD(3).random(5000, rng=rng)).log()
        assert scipy.stats.kstest(values.flatten().numpy(), "norm").pvalue > 1e-3

    def test_subspaces_are_isotropic(self, rng):
        x = Grassmann(5, 2).random(20000, rng=rng)
        assert ((x @ x.mT).mean(0) - 0.4 * torch.eye(5)).abs().max() < 0.01

    def test_box_points_are_uniform(self, rng):
        x = Box([-1, 2], [1, 5]).random(20000, rng=rng)
        for coordinate, low, width in zip(x.mT, (-1, 2), (2, 3), strict=True):
            assert scipy.stats.kstest(coordinate.numpy(), scipy.stats.uniform(low, width).cdf).pvalue > 1e-3

    @samples
    def test_random_tangents_are_unit_tangents(self, manifold, rng):
        x = manifold.random(10, rng=rng)
        v = manifold.random_tangent(x, rng)
        equal(manifold.norm(x, v), torch.ones(10))
        equal(manifold.to_tangent(x, v), v)

    @pytest.mark.parametrize("manifold", [m for m in SAMPLES if "Stiefel" not in repr(m)], ids=repr)
    def test_the_typical_distance_is_typical(self, manifold, rng):
        x, y = manifold.random(2, 2000, rng=rng)
        measured = manifold.sq_dist(x, y).mean().sqrt().item()
        assert measured == pytest.approx(manifold.typical_distance, rel=0.35)


class TestBounds:
    @pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e8])
    @pytest.mark.parametrize("manifold", [m for m in SAMPLES if m.bounded], ids=repr)
    def test_retractions_stop_at_the_bounds(self, manifold, size, rng):
        x = manifold.random(50, rng=rng)
        y = manifold.retract(x, size * manifold.random_tangent(x, rng))
        assert y.isfinite().all()
        assert manifold.violation(y).max() < 1e-12

    @pytest.mark.parametrize("size", [1.0, 10.0])
    @pytest.mark.parametrize("manifold", [m for m in SAMPLES if not m.bounded], ids=repr)
    def test_retractions_stay_on_the_manifold_for_long_steps(self, manifold, size, rng):
        x = manifold.random(50, rng=rng)
        manifold.check(manifold.retract(x, size * manifold.random_tangent(x, rng)), 1e-10)

    @metrics
    @pytest.mark.parametrize("bounds", [None, (0.5, 2.0)])
    @pytest.mark.parametrize("size", [0.0, 1.0, 7.0], ids=["zero", "inside", "outside"])
    def test_projection_is_differentiable_at_repeated_eigenvalues(self, metric, bounds, size):
        spd, eye = SPD(3, metric=metric, eigenvalues=bounds), torch.eye(3, dtype=torch.float64)
        assert jacobian(spd.project, size * eye).isfinite().all()
        if size == 1.0:
            equal(jacobian(spd.project, eye).reshape(9, 9), _symmetriser(3))
            pushed = jacobian(lambda v: spd.retract(eye, v), torch.zeros_like(eye))
            equal(pushed.reshape(9, 9) @ _symmetriser(3), _symmetriser(3))

    def test_a_huge_step_in_a_box_ends_in_a_corner(self):
        box = Box([0, 0], [1, 2])
        x = torch.tensor([0.5, 0.5], dtype=torch.float64)
        assert box.retract(x, torch.tensor([1e300, -1e300])).tolist() == [1, 0]

    def test_projection_onto_bounded_matrices_clips_eigenvalues(self, rng):
        spd, frame = SPD(3, eigenvalues=(0.5, 2.0)), linalg.random_frames(3, 3, rng=rng)
        x = linalg.spectral(torch.tensor([-1.0, 1.0, 7.0], dtype=torch.float64), frame)
        equal(spd.project(x), linalg.spectral(torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64), frame))

    def test_projection_leaves_points_of_the_space_untouched_to_the_bit(self, rng):
        for manifold in SAMPLES:
            if manifold.bounded and not isinstance(manifold, Product):
                x = manifold.random(20, rng=rng)
                inside = manifold.violation(x) == 0
                assert torch.equal(manifold.project(x)[inside], x[inside])


PAIRS = [
    (Sphere(4), pymanopt.manifolds.Sphere(5)),
    (SPD(4), pymanopt.manifolds.SymmetricPositiveDefinite(4)),
    (Grassmann(6, 2), pymanopt.manifolds.Grassmann(6, 2)),
    (Stiefel(6, 2), pymanopt.manifolds.Stiefel(6, 2)),
]
pairs = pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=[repr(pair[0]) for pair in PAIRS])


@pytest.fixture(scope="module")
def geoopt():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import geoopt
    return geoopt


class TestChart:
    @samples
    def test_coordinates_lead_back_and_cost_nothing(self, manifold, rng):
        if manifold.chart is None:
            pytest.skip("searched as it is")
        x = manifold.random(20, rng=rng)
        u = manifold.chart.coordinates(x)
        y, beyond = manifold.chart.point(u)
        equal(y, x, 1e-9)
        equal(beyond, torch.zeros(20), 1e-12)
        manifold.chart.flat.check(u)

    def test_beyond_the_bounds_the_point_stays_and_the_penalty_is_the_squared_distance(self):
        space = SPD(2, eigenvalues=(0.1, 10))
        u = torch.diag(torch.tensor([math.log(10) + 2, math.log(0.1) - 1], dtype=torch.float64)).flatten()
        x, beyond = space.chart.point(u.requires_grad_())
        equal(x, [[10, 0], [0, 0.1]])
        equal(beyond, 5.0)
        (slope,) = torch.autograd.grad(beyond, u)
        equal(slope, [4.0, 0, 0, -2.0])


class TestStrangers:
    """Other people's implementations give the same numbers."""

    @pairs
    def test_pymanopt_exp_and_inner_product(self, ours, theirs, rng):
        x = ours.random(rng=rng)
        u, v = (0.7 * ours.random_tangent(x, rng) for _ in range(2))
        y = ours.exp(x, v)
        if isinstance(ours, Grassmann):  # the same subspace, perhaps in another basis
            y_theirs = torch.tensor(theirs.exp(x.numpy(), v.numpy()))
            equal(y @ y.mT, y_theirs @ y_theirs.mT)
        else:
            equal(y, theirs.exp(x.numpy(), v.numpy()), 1e-10)
        equal(ours.inner(x, u, v), theirs.inner_product(x.numpy(), u.numpy(), v.numpy()))
        equal(ours.to_tangent(x, u + x), theirs.projection(x.numpy(), (u + x).numpy()))

    @pytest.mark.parametrize(("ours", "theirs"), PAIRS[:3], ids=[repr(pair[0]) for pair in PAIRS[:3]])
    def test_pymanopt_log_and_distance(self, ours, theirs, rng):
        x = ours.random(rng=rng)
        y = nearby(ours, x, rng)
        equal(ours.log(x, y), theirs.log(x.numpy(), y.numpy()), 1e-8)
        equal(ours.dist(x, y), theirs.dist(x.numpy(), y.numpy()), 1e-8)

    @pairs
    def test_pymanopt_gradients_and_hessians(self, ours, theirs, rng):
        x = ours.random(rng=rng)
        v = ours.random_tangent(x, rng)
        gradient, product = random(2, *ours.point_shape, rng=rng)
        if isinstance(ours, Grassmann):  # where f depends on the subspace only, xᵀ∇f is symmetric
            gradient = ours.to_tangent(x, gradient) + x @ linalg.sym(random(2, 2, rng=rng))
        if isinstance(ours, SPD):
            gradient, product = linalg.sym(gradient), linalg.sym(product)
        arrays = [t.numpy() for t in (x, gradient, product, v)]
        equal(ours.gradient(x, gradient), theirs.euclidean_to_riemannian_gradient(*arrays[:2]))
        equal(ours.hessian(x, gradient, product, v), theirs.euclidean_to_riemannian_hessian(*arrays), 1e-10)

    def test_geoopt_sphere(self, geoopt, rng):
        ours, theirs = Sphere(4), geoopt.Sphere()
        x = ours.random(6, rng=rng)
        y = nearby(ours, x, rng)
        v = ours.random_tangent(x, rng)
        equal(ours.exp(x, v), theirs.expmap(x, v), 1e-9)
        equal(ours.log(x, y), theirs.logmap(x, y), 1e-6)
        equal(ours.dist(x, y), theirs.dist(x, y), 1e-6)
        equal(ours.gradient(x, y), theirs.egrad2rgrad(x, y))

    @pytest.mark.filterwarnings("ignore:`torch.jit.script`", "ignore:SPDMetric.LEM")
    @pytest.mark.parametrize(("metric", "name"), [("affine-invariant", "AIM"), ("log-euclidean", "LEM")])
    def test_geoopt_spd(self, geoopt, metric, name, rng):
        ours, theirs = SPD(3, metric=metric), geoopt.SymmetricPositiveDefinite(default_metric=name)
        x, y = ours.random(2, 6, rng=rng)
        equal(ours.dist(x, y), theirs.dist(x, y), 1e-8)
        if name == "AIM":
            v = ours.random_tangent(x, rng)
            equal(ours.exp(x, v), theirs.expmap(x, v), 1e-8)
            equal(ours.log(x, y), theirs.logmap(x, y), 1e-8)
            equal(ours.inner(x, v, v), theirs.inner(x, v, v).squeeze(), 1e-8)

    def test_geoopt_stiefel(self, geoopt, rng):
        ours, theirs = Stiefel(6, 2), geoopt.EuclideanStiefel()
        x, v = ours.random(5, rng=rng), random(5, 6, 2, rng=rng)
        equal(ours.to_tangent(x, v), theirs.proju(x, v))
        equal(ours.project(v), theirs.projx(v))


def message(error):
    """The text of an error, which says what was wanted, what came and, where there is something, what to do."""
    return str(error.value)


class TestErrors:
    @pytest.mark.parametrize(
        ("manifold", "x", "parts"),
        [
            (Sphere(5), torch.zeros(32, 5), ["Sphere(5)", "(6,)", "(32, 5)", "Sphere(4)"]),
            (SPD(3), torch.zeros(2, 4, 4), ["SPD(3)", "(3, 3)", "(2, 4, 4)", "SPD(4)"]),
            (SPD(3), torch.zeros(9), ["(3, 3)", "(9,)"]),
            (Grassmann(5, 2), torch.zeros(6, 3), ["(5, 2)", "(6, 3)", "Grassmann(6, 3)"]),
            (Stiefel(5, 2), torch.zeros(6, 3), ["(5, 2)", "(6, 3)", "Stiefel(6, 3)"]),
            (Euclidean(3), torch.zeros(4), ["(3,)", "(4,)", "dimension 4"]),
            (Box(0, [1, 1]), torch.zeros(3), ["(2,)", "(3,)", "dimension 3"]),
            (Product(Sphere(2), SPD(2)), torch.zeros(6), ["(7,)", "(6,)", "join"]),
            (Sphere(5), 1.0, ["(6,)", "()"]),
        ],
        ids=lambda value: repr(value) if not isinstance(value, (list, torch.Tensor)) else "",
    )
    def test_wrong_shape(self, manifold, x, parts):
        with pytest.raises(ShapeError) as error:
            manifold.check(x)
        assert all(part in message(error) for part in parts)

    @pytest.mark.parametrize(
        ("manifold", "x", "parts"),
        [
            (Sphere(2), [1.0, 1.0, 0.0], ["Sphere(2) to within 1e-06: its norm is 1.414, it must be 1.", ".project"]),
            (Sphere(2), [1.0 + 2e-6, 0.0, 0.0], ["its norm is 1.000002, it must be 1."]),
            (SPD(2), [[1.0, 0.0], [0.0, -1.0]], ["SPD(2)", "eigenvalues lie between -1 and 1, they must be positive"]),
            (SPD(2), [[1.0, 0.5], [0.0, 1.0]], ["entries (0, 1) and (1, 0) are 0.5 and 0, they must be equal"]),
            (SPD(2), [[0.0, 0.0], [0.0, 0.0]], ["must be positive", ".project"]),
            (
                SPD(2, eigenvalues=(1, 2)),
                [[3.0, 0.0], [0.0, 1.0]],
                ["eigenvalues lie between 1 and 3, they must lie within [1.0, 2.0].", ".project"],
            ),
            (Stiefel(2, 1), [[1.0], [1.0]], ["its column 0 has the norm 1.414, it must be 1", ".project"]),
            (
                Grassmann(3, 2),
                [[1.0, 0.6], [0.0, 0.8], [0.0, 0.0]],
                ["its columns 0 and 1 have the inner product 0.6, it must be 0"],
            ),
            (Box(0, [1, 2]), [0.5, 2.5], ["its coordinate 1 is 2.5, it must lie between 0 and 2.", ".project"]),
            (
                Product(Sphere(1), Box(0, 1)),
                [1.0, 0.0, 3.0],
                ["its part 1 is no point of Box(0.0, 1.0): its coordinate 0 is 3, it must lie between 0 and 1."],
            ),
        ],
        ids=repr,
    )
    def test_off_the_manifold(self, manifold, x, parts):
        with pytest.raises(OffManifoldError) as error:
            manifold.check(x)
        assert all(part in message(error) for part in parts)
        manifold.check(manifold.project(torch.tensor(x, dtype=torch.float64)))

    def test_of_many_the_worst_is_described(self):
        with pytest.raises(OffManifoldError, match=r"but 2 of 3 are off\. The worst: its norm is 3, it must be 1\."):
            Sphere(1).check([[0.0, 2.0], [0.6, 0.8], [3.0, 0.0]])

    @samples
    def test_every_fault_has_a_number_that_was_found(self, manifold, rng):
        x = 3 * manifold.random(rng=rng) + 0.1
        if manifold.violation(x) > 0:
            assert any(character.isdigit() for character in manifold.fault(x))
            assert "must" in manifold.fault(x)

    @samples
    @pytest.mark.parametrize("bad", [math.nan, math.inf])
    def test_not_finite(self, manifold, bad, rng):
        x = manifold.random(3, rng=rng)
        x[(1, *[0] * len(manifold.point_shape))] = bad
        with pytest.raises(OffManifoldError, match="finite, got NaN or infinity in 1 of 3"):
            manifold.check(x)

    @pytest.mark.parametrize(
        "x", ["abc", None, object(), [[1.0], [1.0, 2.0]], {"x": 1}, ["a", "b"]], ids=lambda x: type(x).__name__
    )
    def test_not_numbers(self, x):
        with pytest.raises(ArgumentError, match=r"Wanted a (tensor, array|number) or (a )?list of numbers"):
            Sphere(1).check(x)

    def test_complex_numbers(self):
        with pytest.raises(ArgumentError, match="real"):
            Sphere(1).check(torch.tensor([1j, 0]))

    def test_a_list_an_array_and_whole_numbers_are_welcome(self):
        assert Sphere(1).check([1, 0]).dtype == torch.float64
        assert Sphere(1).check([0.6, 0.8]).tolist() == [0.6, 0.8]
        assert Box(0.1, [0.7, 0.9]).upper == (0.7, 0.9)
        assert Sphere(1).check(np.array([0.0, 1.0])).tolist() == [0, 1]
        assert Sphere(1).check(torch.tensor([1.0, 0.0])).dtype == torch.float32

    @pytest.mark.parametrize(
        ("bounds", "parts"),
        [
            ((2.0, 1.0), ["0 < low < high < inf", "(2, 1)"]),
            ((1.0, 1.0), ["0 < low < high < inf", "(1, 1)"]),
            ((-1.0, 1.0), ["0 < low < high < inf", "(-1, 1)"]),
            ((0.0, 1.0), ["0 < low < high < inf", "(0, 1)"]),
            ((1.0, math.inf), ["0 < low < high < inf", "inf"]),
            ((math.nan, 1.0), ["0 < low < high < inf", "nan"]),
            (1.0, ["two numbers", "1.0"]),
            ((1.0, 2.0, 3.0), ["two numbers", "3.0"]),
            ("ab", ["two numbers", "ab"]),
            ((1, 10**400), ["two numbers"]),
        ],
        ids=lambda value: repr(value)[:20],
    )
    def test_impossible_eigenvalue_bounds(self, bounds, parts):
        with pytest.raises(ArgumentError) as error:
            SPD(3, eigenvalues=bounds)
        assert all(part in message(error) for part in parts)

    @pytest.mark.parametrize(
        ("lower", "upper", "parts"),
        [
            (1, 0, ["lower < upper", "[1, 0]", "coordinate 0"]),
            ([0, 1], [1, 1], ["lower < upper", "[1, 1]", "coordinate 1"]),
            ([0, 1], [1, 1, 2], ["one length", "2 and 3"]),
            (0, math.inf, ["finite", "Euclidean"]),
            (math.nan, 1, ["finite"]),
            ([], [], ["numbers or vectors"]),
            ([[0]], [[1]], ["numbers or vectors"]),
            ("a", 1, ["Wanted a number or a list of numbers, got 'a'"]),
            (None, 1, ["Wanted a tensor, array or list of numbers"]),
            (10**400, 1, ["Wanted a tensor, array or list of numbers"]),
        ],
        ids=lambda value: repr(value)[:20],
    )
    def test_impossible_box(self, lower, upper, parts):
        with pytest.raises(ArgumentError) as error:
            Box(lower, upper)
        assert all(part in message(error) for part in parts)

    @pytest.mark.parametrize("scale", ["cubic", "", None, 3, ["log"]])
    def test_unknown_scale(self, scale):
        with pytest.raises(ArgumentError, match='"linear" or "log", got'):
            SPD(3, eigenvalues=(0.1, 10), scale=scale)

    def test_a_logarithmic_scale_needs_bounds(self):
        with pytest.raises(ArgumentError, match="needs bounds"):
            SPD(3, scale="log")

    def test_axes_need_bounds_and_a_yes_or_no(self):
        with pytest.raises(ArgumentError, match="need bounds"):
            SPD(3, aligned=True)
        with pytest.raises(ArgumentError, match="True or False, got 'yes'"):
            SPD(3, eigenvalues=(0.1, 10), aligned="yes")

    @pytest.mark.parametrize("metric", ["euclidean", "", None, 3, ["affine-invariant"]])
    def test_unknown_metric(self, metric):
        with pytest.raises(ArgumentError, match="affine-invariant, log-euclidean, got"):
            SPD(3, metric=metric)

    @pytest.mark.parametrize("size", [0, -1, 2.0, "3", None, True, math.nan])
    @pytest.mark.parametrize("build", [Sphere, SPD, Euclidean, lambda n: Grassmann(n, 1), lambda p: Stiefel(5, p)])
    def test_impossible_size(self, build, size):
        with pytest.raises(ArgumentError, match=r"whole number of at least .*, got"):
            build(size)

    @pytest.mark.parametrize("family", [Grassmann, Stiefel])
    def test_too_many_columns(self, family):
        with pytest.raises(ArgumentError, match=r"p < n, got n = 3 and p = 3"):
            family(3, 3)

    @pytest.mark.parametrize("factors", [(), (Sphere(2), "spd"), (Sphere,), ([Sphere(2)],)], ids=repr)
    def test_product_of_what_is_not_a_manifold(self, factors):
        with pytest.raises(ArgumentError, match="Product takes spaces, got"):
            Product(*factors)

    def test_every_error_is_ours_and_a_value_error(self):
        for kind in (ArgumentError, ShapeError, OffManifoldError):
            assert issubclass(kind, NestboError)
            assert issubclass(kind, ValueError)
