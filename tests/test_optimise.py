"""The optimisers on problems with known answers: rates, batches, bounds, constraints and mistakes."""

import math
from functools import partial

import numpy as np
import pytest
import scipy.optimize
import torch

from nestbo import SPD, Box, Euclidean, Grassmann, Product, Sphere, Stiefel, linalg
from nestbo.errors import ArgumentError, OffManifoldError, ShapeError
from nestbo.optimise import augmented_lagrangian, exact_penalty, lbfgs, trust_region


def differences(f, manifold, start, **options):
    return trust_region(f, manifold, start, hessian="differences", **options)


OPTIMISERS = {"trust region": trust_region, "differences": differences, "l-bfgs": lbfgs}
optimisers = pytest.mark.parametrize("optimise", OPTIMISERS.values(), ids=OPTIMISERS)
hessians = pytest.mark.parametrize("hessian", ["exact", "differences"])
PENALTIES = {"augmented Lagrangian": augmented_lagrangian, "exact penalty": exact_penalty}
penalties = pytest.mark.parametrize("method", PENALTIES.values(), ids=PENALTIES)


def vector(*entries):
    return torch.tensor(entries, dtype=torch.float64)


def normal(*shape, rng):
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def equal(a, b, tolerance):
    torch.testing.assert_close(a, torch.as_tensor(b, dtype=a.dtype), rtol=0, atol=tolerance)


def quadratic(a):
    return lambda x: ((x @ a) * x).sum(-1)


def rosenbrock(x):
    return (100 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + (1 - x[..., :-1]) ** 2).sum(-1)


def gradient_norm(f, manifold, x):
    leaf = x.detach().requires_grad_()
    (euclidean,) = torch.autograd.grad(f(leaf).sum(), leaf)
    return manifold.norm(x, manifold.gradient(x, euclidean))


class Rayleigh:
    manifold = Sphere(200)

    def __init__(self, rng):
        self.a = linalg.sym(normal(201, 201, rng=rng))

    def f(self, x):
        return quadratic(self.a)(x)

    def check(self, x, value):
        values, vectors = torch.linalg.eigh(self.a)
        equal(value, values[0].expand(value.shape), 1e-10)
        equal((x @ vectors[:, 0]).abs(), torch.ones(value.shape), 1e-10)


class Karcher:
    manifold = SPD(10)

    def __init__(self, rng):
        self.data = self.manifold.random(20, rng=rng)

    def f(self, x):
        return self.manifold.sq_dist(x.unsqueeze(-3), self.data).mean(-1) / 2

    def check(self, x, value):
        """The mean of the logarithms vanishes, and inverses have the inverse mean."""
        residual = self.manifold.log(x.unsqueeze(-3), self.data).mean(-3)
        assert self.manifold.norm(x, residual).max() < 1e-6
        inverses = torch.linalg.inv(self.data)
        there = self.manifold.log(torch.linalg.inv(x).unsqueeze(-3), inverses).mean(-3)
        assert self.manifold.norm(torch.linalg.inv(x), there).max() < 1e-6


class Subspace:
    manifold = Grassmann(50, 5)

    def __init__(self, rng):
        root = normal(50, 50, rng=rng)
        self.a = root @ root.mT

    def f(self, x):
        return -(x * (self.a @ x)).sum((-1, -2))

    def check(self, x, value):
        values, vectors = torch.linalg.eigh(self.a)
        equal(value, -values[-5:].sum().expand(value.shape), 1e-8)
        assert self.manifold.dist(x, vectors[:, -5:]).max() < 1e-6


PROBLEMS = {"Rayleigh quotient": Rayleigh, "Karcher mean": Karcher, "dominant subspace": Subspace}
problems = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


class TestClosedForm:
    """Derivatives that a user writes by hand are used, and change nothing but the time."""

    def test_the_steps_are_those_of_torch(self, rng):
        p = Rayleigh(rng)
        start = p.manifold.random(4, rng=rng)
        calls = []

        def hessian(x, v):
            calls.append(x.shape)
            return 2 * v @ p.a

        automatic = trust_region(p.f, p.manifold, start)
        for options in ({"hessian": hessian}, {"hessian": "exact"}, {"hessian": "differences"}):
            given = trust_region(p.f, p.manifold, start, gradient=lambda x: 2 * x @ p.a, **options)
            equal(given.value, automatic.value, 1e-10)
            p.check(given.point, given.value)
        assert calls
        by_hand = trust_region(p.f, p.manifold, start, gradient=lambda x: 2 * x @ p.a, hessian=hessian)
        assert by_hand.iterations.tolist() == automatic.iterations.tolist()

    def test_the_function_is_not_differentiated(self, rng):
        p = Rayleigh(rng)

        def f(x):
            assert not x.requires_grad
            return p.f(x)

        options = {"gradient": lambda x: 2 * x @ p.a, "hessian": lambda x, v: 2 * v @ p.a}
        assert (trust_region(f, p.manifold, p.manifold.random(2, rng=rng), **options).reason == "converged").all()

    def test_frames_bounds_and_constraints(self, rng):
        p = Subspace(rng)
        options = {"gradient": lambda x: -2 * p.a @ x, "hessian": lambda x, v: -2 * p.a @ v}
        found = trust_region(p.f, p.manifold, p.manifold.random(2, rng=rng), tolerance=1e-7, **options)
        p.check(found.point, found.value)
        box, target = Box([0, 0], [1, 1]), torch.tensor([2.0, 0.5], dtype=torch.float64)
        simple = {"gradient": lambda x: 2 * (x - target), "hessian": lambda x, v: 2 * v}
        for more in ({}, {"constraints": lambda x: 0.8 - x[..., 0]}):
            found = trust_region(
                lambda x: (x - target).square().sum(-1), box, box.random(3, rng=rng) * 0.5, **simple, **more
            )
            equal(found.point[:, 0], torch.full((3,), 0.8 if more else 1.0), 1e-6)

    def test_data_reach_both(self, rng):
        centres = Sphere(3).random(4, rng=rng)
        options = {"gradient": lambda x, c: -c.expand_as(x), "hessian": lambda x, v, c: torch.zeros_like(v)}
        found = trust_region(
            lambda x, c: -(x * c).sum(-1), Sphere(3), Sphere(3).random(4, rng=rng), data=(centres,), **options
        )
        equal(found.point, centres, 1e-5)

    def test_mistakes(self, rng):
        start = Sphere(2).random(2, rng=rng)
        f = lambda x: x[..., 0]
        with pytest.raises(ArgumentError, match="needs the gradient, too"):
            trust_region(f, Sphere(2), start, hessian=lambda x, v: v)
        with pytest.raises(ShapeError, match="shape of the points"):
            trust_region(f, Sphere(2), start, gradient=lambda x: x[..., :2])


class TestConvergence:
    @optimisers
    @problems
    def test_every_start_reaches_the_known_answer(self, problem, optimise, rng):
        p = problem(rng)
        result = optimise(p.f, p.manifold, p.manifold.random(4, rng=rng), tolerance=1e-7)
        assert (result.reason == "converged").all()
        assert (result.gradient_norm <= 1e-7).all()
        p.manifold.check(result.point, 1e-9)
        p.check(result.point, result.value)

    @hessians
    @problems
    def test_the_trust_region_converges_superlinearly(self, problem, hessian, rng):
        """Near the end each step contracts the gradient more than the one before, by a thousand and more at last."""
        p = problem(rng)
        start, norms = p.manifold.random(rng=rng), []
        while not norms or norms[-1] > 1e-7:
            limit = len(norms) + 1
            assert limit < 40
            result = trust_region(p.f, p.manifold, start, hessian=hessian, tolerance=0, max_iterations=limit)
            norms.append(result.gradient_norm.item())
        first, second, third = (after / before for before, after in zip(norms[-4:-1], norms[-3:], strict=True))
        assert third < second < first < 0.5
        assert third < 1e-2
        assert norms[-1] < norms[-2] ** 1.5

    @problems
    def test_exact_and_difference_hessians_agree(self, problem, rng):
        p = problem(rng)
        start = p.manifold.random(3, rng=rng)
        exact, approximate = (trust_region(p.f, p.manifold, start, hessian=h) for h in ("exact", "differences"))
        assert p.manifold.dist(exact.point, approximate.point).max() < 1e-5
        assert (exact.iterations - approximate.iterations).abs().max() <= 2

    @optimisers
    def test_the_log_euclidean_mean_is_the_mean_of_logarithms(self, optimise, rng):
        spd = SPD(10, metric="log-euclidean")
        data = spd.random(20, rng=rng)
        result = optimise(lambda x: spd.sq_dist(x.unsqueeze(-3), data).mean(-1) / 2, spd, spd.random(2, rng=rng))
        assert spd.dist(result.point, linalg.expm(linalg.logm(data).mean(0))).max() < 1e-5

    @optimisers
    def test_the_mean_of_two_matrices_is_their_geometric_mean(self, optimise, rng):
        spd = SPD(4)
        x, y = spd.random(2, rng=rng)
        root, inverse = linalg.sqrtm(x), linalg.inverse_sqrtm(x)
        mean = root @ linalg.sqrtm(inverse @ y @ inverse) @ root
        result = optimise(lambda z: spd.sq_dist(z, x) + spd.sq_dist(z, y), spd, x)
        assert spd.dist(result.point, mean) < 1e-6

    @pytest.mark.parametrize("n", [2, 5, 10])
    @optimisers
    def test_rosenbrock_ends_where_scipy_does(self, optimise, n):
        start = vector(*[-1.2, 1.0] if n == 2 else [0.0] * n)
        theirs = scipy.optimize.minimize(
            scipy.optimize.rosen, start.numpy(), jac=scipy.optimize.rosen_der, method="BFGS", tol=1e-10
        )
        ours = optimise(rosenbrock, Euclidean(n), start, tolerance=1e-8)
        assert ours.reason.item() == "converged"
        equal(ours.point, theirs.x, 1e-6)

    @optimisers
    def test_procrustes_on_stiefel_is_the_polar_factor(self, optimise, rng):
        a = normal(6, 3, rng=rng)
        result = optimise(lambda x: ((x - a) ** 2).sum((-1, -2)), Stiefel(6, 3), linalg.orthonormal(a))
        equal(result.point, linalg.polar(a), 1e-6)

    @optimisers
    def test_a_product_is_minimised_in_all_its_factors(self, optimise, rng):
        product = Product(Sphere(3), SPD(2), Euclidean(2))
        target, start = product.random(2, rng=rng)
        result = optimise(lambda x: product.sq_dist(x, target), product, start)
        assert product.dist(result.point, target) < 1e-6

    @optimisers
    def test_the_reported_gradient_belongs_to_the_reported_point(self, optimise, rng):
        p = Rayleigh(rng)
        start = p.manifold.random(5, rng=rng)
        for limit in (1, 2, 7):
            result = optimise(p.f, p.manifold, start, max_iterations=limit)
            equal(result.value, p.f(result.point), 1e-12)
            equal(result.gradient_norm, gradient_norm(p.f, p.manifold, result.point), 1e-10)
            assert (result.value < p.f(start)).all()
            assert (result.iterations == limit).all()
            assert (result.reason == "max iterations").all()

    @hessians
    def test_a_saddle_is_left(self, hessian):
        """Next to a saddle the gradient is tiny and the curvature negative."""
        f = lambda x: x[..., 0] ** 2 - x[..., 1] ** 2 + x[..., 1] ** 4
        result = trust_region(f, Euclidean(2), vector(0.3, 1e-5), hessian=hessian)
        equal(result.point, [0.0, math.sqrt(0.5)], 1e-6)

    @optimisers
    def test_a_start_at_a_data_point_sees_curvature(self, optimise, rng):
        """The mean of squared distances, started exactly at one of the points, where a kink would stop it."""
        sphere = Sphere(2)
        data = sphere.project(vector(1, 0, 0) + 0.3 * normal(5, 3, rng=rng))
        result = optimise(lambda x: sphere.sq_dist(x.unsqueeze(-2), data).mean(-1), sphere, data)
        assert (result.reason == "converged").all()
        assert sphere.pairwise_dist(result.point, result.point).max() < 1e-6


class TestBatch:
    @optimisers
    @problems
    def test_a_batch_is_a_loop_of_single_starts(self, problem, optimise, rng):
        p = problem(rng)
        start = p.manifold.random(3, rng=rng)
        together = optimise(p.f, p.manifold, start, max_iterations=8)
        for k, x in enumerate(start):
            alone = optimise(p.f, p.manifold, x, max_iterations=8)
            equal(together.point[k], alone.point, 1e-6)
            equal(together.value[k], alone.value, 1e-6)
            assert together.reason[k] == alone.reason
            assert together.iterations[k] == alone.iterations

    @optimisers
    def test_a_start_without_batch_axes_gives_scalars(self, optimise):
        result = optimise(lambda x: ((x - 2) ** 2).sum(-1), Euclidean(3), [0.0, 0.0, 0.0])
        equal(result.point, [2.0, 2.0, 2.0], 1e-6)
        assert result.value.shape == result.iterations.shape == result.gradient_norm.shape == result.reason.shape == ()
        assert result.reason == "converged"

    @optimisers
    def test_several_batch_axes_come_back_in_place(self, optimise, rng):
        sphere = Sphere(2)
        start = sphere.random(2, 3, 4, rng=rng)
        result = optimise(lambda x: x[..., 0], sphere, start)
        assert result.point.shape == (2, 3, 4, 3)
        assert result.value.shape == result.reason.shape == result.iterations.shape == (2, 3, 4)
        equal(result.value, -torch.ones(2, 3, 4), 1e-10)
        flat = optimise(lambda x: x[..., 0], sphere, start.flatten(0, 2))
        equal(result.point.flatten(0, 2), flat.point, 1e-12)

    @optimisers
    @pytest.mark.parametrize("inner", [(), (4,), (2, 3)], ids=str)
    def test_data_reach_the_function_in_step_with_their_rows(self, optimise, inner, rng):
        target, weight = normal(5, 3, rng=rng), torch.arange(1.0, 6.0, dtype=torch.float64)

        def f(x, target, weight):
            axes = [1] * len(inner)
            assert x.shape[1:-1] == inner
            assert len(x) == len(target) == len(weight)
            weight, target = weight.view(-1, *axes), target.view(len(x), *axes, 3)
            return weight * ((x - target) ** 4 + (x - target) ** 2).sum(-1)

        start = 3 * normal(5, *inner, 3, rng=rng)
        result = optimise(f, Euclidean(3), start, data=(target, weight))
        assert (result.reason == "converged").all()
        equal(result.point, target.view(5, *[1] * len(inner), 3).expand(start.shape), 1e-5)

    @optimisers
    def test_single_precision_stays_single(self, optimise, rng):
        for manifold in (Sphere(5), SPD(3), SPD(3, eigenvalues=(0.1, 5.0)), Box(-1, [1, 1])):
            start = manifold.project(manifold.random(4, rng=rng).float())
            target = manifold.project(manifold.random(rng=rng).float())
            result = optimise(partial(manifold.sq_dist, target), manifold, start, tolerance=1e-3)
            assert result.point.dtype == result.value.dtype == result.gradient_norm.dtype == torch.float32
            assert (result.reason == "converged").all()
            assert manifold.dist(result.point, target).max() < 2e-3

    @optimisers
    def test_converged_elements_stop_costing(self, optimise, rng):
        seen = []

        def f(x):
            seen.append(x.detach())
            return rosenbrock(x)

        start = torch.ones(64, 4, dtype=torch.float64)
        start[7] = vector(-1.2, 1, -1.2, 1)
        result = optimise(f, Euclidean(4), start)
        assert result.iterations[7] > 10
        assert (result.iterations[torch.arange(64) != 7] == 0).all()
        wide = [len(x) for x in seen].index(1)  # the first iteration sees everyone
        assert wide <= 2 + (4 + 1 if optimise is differences else 0)
        assert all(len(x) == 1 for x in seen[wide:])

    @optimisers
    def test_the_callers_tensors_and_modes_are_left_alone(self, optimise, rng):
        start = Sphere(3).random(4, rng=rng)
        copy = start.clone()
        state = torch.get_rng_state()
        f = lambda x: x[..., 0] + x[..., 1] ** 2
        wanted = optimise(f, Sphere(3), start)
        with torch.no_grad():
            inside = optimise(f, Sphere(3), start.requires_grad_())
        assert torch.equal(inside.point, wanted.point)
        assert not wanted.point.requires_grad
        assert not wanted.value.requires_grad
        assert torch.equal(start, copy)
        assert torch.equal(torch.get_rng_state(), state)


class TestNotFinite:
    @optimisers
    def test_an_element_that_starts_at_nan_leaves_the_others_alone(self, optimise, rng):
        f = lambda x: torch.where(x[..., 0] > 2, torch.nan, rosenbrock(x))
        start = normal(5, 3, rng=rng)
        start[2, 0] = 3.0
        keep = [0, 1, 3, 4]
        result, alone = optimise(f, Euclidean(3), start), optimise(f, Euclidean(3), start[keep])
        assert result.reason[2] == "not finite"
        assert result.iterations[2] == 0
        assert torch.equal(result.point[2], start[2])
        assert (result.reason[keep] == alone.reason).all()
        equal(result.point[keep], alone.point, 1e-10)
        assert (result.iterations[keep] == alone.iterations).all()

    @optimisers
    @pytest.mark.parametrize("edge", [torch.nan, torch.inf, -torch.inf])
    def test_a_region_without_values_is_not_entered(self, optimise, edge):
        """x − log x, undefined for x ≤ 0, from starts whose first full step would go there."""
        f = lambda x: torch.where(x > 0, x - torch.where(x > 0, x, 1).log(), edge).sum(-1)
        result = optimise(f, Euclidean(1), [[5.0], [0.01], [1.5], [40.0]])
        assert (result.reason == "converged").all()
        equal(result.point, torch.ones(4, 1), 1e-5)

    @optimisers
    def test_a_finite_value_without_a_gradient_is_not_called_converged(self, optimise):
        f = lambda x: (x**2).sum(-1).sqrt()
        result = optimise(f, Euclidean(2), [[0.0, 0.0]])
        assert result.reason[0] == "not finite"

    @penalties
    def test_constrained_elements_are_independent_too(self, method):
        f = lambda x: torch.where(x[..., 0] > 5, torch.nan, x.sum(-1))
        g = lambda x: 1 - (x**2).sum(-1)
        result = method(f, Euclidean(2), [[0.1, 0.2], [9.0, 0.0], [2.0, 1.0]], inequalities=g)
        assert result.reason.tolist() == ["converged", "not finite", "converged"]
        equal(result.point[[0, 2]], torch.full((2, 2), -math.sqrt(0.5)), 1e-5)

    @optimisers
    def test_each_element_has_its_own_reason(self, optimise):
        f = lambda x: torch.where(x[..., 0] > 50, torch.nan, rosenbrock(x))
        result = optimise(f, Euclidean(2), [[1.0, 1.0], [60.0, 0.0], [-1.2, 1.0]], max_iterations=3)
        assert result.reason.tolist() == ["converged", "not finite", "max iterations"]
        assert result.iterations.tolist() == [0, 0, 3]

    @optimisers
    def test_a_constant_function_converges_at_once(self, optimise):
        for f in (lambda x: torch.zeros(x.shape[:-1], dtype=x.dtype), lambda x: 0 * x.sum(-1)):
            result = optimise(f, Sphere(2), [[1.0, 0.0, 0.0]])
            assert result.reason[0] == "converged"

    @optimisers
    def test_linear_and_unbounded_functions_end(self, optimise):
        result = optimise(lambda x: x.sum(-1), Euclidean(2), [[0.0, 0.0]], max_iterations=20)
        assert result.reason[0] == "max iterations"
        assert result.value[0] < -100

    @hessians
    def test_an_unreachable_tolerance_stalls_at_the_minimum(self, hessian, rng):
        p = Rayleigh(rng)
        result = trust_region(p.f, p.manifold, p.manifold.random(3, rng=rng), tolerance=0, hessian=hessian)
        assert (result.reason == "stalled").all()
        equal(result.value, torch.linalg.eigvalsh(p.a)[0].expand(3), 1e-10)


class TestBounds:
    @optimisers
    def test_quadratics_in_a_box_agree_with_scipy(self, optimise, rng):
        n = 12
        for _ in range(5):
            root, b = normal(n, n, rng=rng), normal(n, rng=rng)
            a = root @ root.mT / n + 0.1 * torch.eye(n)
            f = lambda x, a=a, b=b: quadratic(a)(x) / 2 + x @ b
            box = Box([-1] * n, [0.5] * n)
            theirs = scipy.optimize.minimize(
                lambda x, a, b: (x @ a @ x / 2 + b @ x, a @ x + b),
                np.zeros(n),
                args=(a.numpy(), b.numpy()),
                jac=True,
                bounds=[(-1, 0.5)] * n,
                method="L-BFGS-B",
                options={"ftol": 0, "gtol": 1e-10},
            )
            ours = optimise(f, box, box.random(4, rng=rng))
            assert (ours.reason == "converged").all()
            assert box.violation(ours.point).max() == 0
            assert 0 < (theirs.x <= -1 + 1e-9).sum() + (theirs.x >= 0.5 - 1e-9).sum() < n
            equal(ours.point, np.tile(theirs.x, (4, 1)), 1e-5)

    @optimisers
    def test_rosenbrock_in_a_box_that_excludes_its_minimum(self, optimise):
        bounds = [(-2.0, 0.5)] * 4
        theirs = scipy.optimize.minimize(
            scipy.optimize.rosen, np.zeros(4), jac=scipy.optimize.rosen_der, bounds=bounds, method="L-BFGS-B", tol=1e-14
        )
        ours = optimise(rosenbrock, Box([-2] * 4, [0.5] * 4), [[0.0] * 4, [0.5] * 4, [-0.5, 0.1, 0.3, -0.2]])
        assert (ours.reason == "converged").all()
        equal(ours.point, np.tile(theirs.x, (3, 1)), 1e-5)

    @optimisers
    @pytest.mark.parametrize("metric", ["affine-invariant", "log-euclidean"])
    def test_the_nearest_bounded_matrix_has_clipped_eigenvalues(self, optimise, metric, rng):
        spd, frame = SPD(4, metric=metric, eigenvalues=(0.5, 2.0)), linalg.random_frames(4, 4, rng=rng)
        target = linalg.spectral(vector(-1.0, 0.8, 1.5, 6.0), frame)
        wanted = linalg.spectral(vector(0.5, 0.8, 1.5, 2.0), frame)
        result = optimise(lambda x: ((x - target) ** 2).sum((-1, -2)) / 2, spd, spd.random(5, rng=rng))
        assert (result.reason == "converged").all()
        spd.check(result.point, 1e-10)
        equal(result.point, wanted.expand(5, 4, 4), 1e-5)

    @hessians
    @pytest.mark.parametrize("metric", ["affine-invariant", "log-euclidean"])
    def test_the_trust_region_converges_superlinearly_along_curved_bounds(self, metric, hessian, rng):
        """Eigenvectors of stopped eigenvalues turn along a curved face; without its curvature this takes hundreds."""
        spd, frame = SPD(5, metric=metric, eigenvalues=(0.5, 2.0)), linalg.random_frames(5, 5, rng=rng)
        target = linalg.spectral(vector(-1.0, 0.2, 0.8, 1.5, 6.0), frame)
        f = lambda x: ((x - target) ** 2).sum((-1, -2)) / 2
        result = trust_region(f, spd, spd.random(8, rng=rng), hessian=hessian)
        assert (result.reason == "converged").all()
        assert result.iterations.max() < 25

    @optimisers
    def test_a_linear_function_of_bounded_matrices_ends_in_a_corner(self, optimise, rng):
        spd, frame = SPD(3, eigenvalues=(1e-3, 5.0)), linalg.random_frames(3, 3, rng=rng)
        slope = linalg.spectral(vector(-2.0, 1.0, 3.0), frame)
        result = optimise(lambda x: (x * slope).sum((-1, -2)), spd, spd.random(5, rng=rng))
        spd.check(result.point, 1e-10)
        equal(result.point, linalg.spectral(vector(5.0, 1e-3, 1e-3), frame).expand(5, 3, 3), 1e-5)

    @optimisers
    def test_bounds_of_a_factor_hold_in_a_product(self, optimise, rng):
        product = Product(Sphere(2), Box([0, 0], [1, 1]))
        f = lambda x: x[..., 0] - x[..., 3] + (x[..., 4] - 0.3) ** 2
        result = optimise(f, product, product.random(4, rng=rng))
        assert (result.reason == "converged").all()
        equal(result.point, vector(-1, 0, 0, 1, 0.3).expand(4, 5), 1e-5)

    @optimisers
    def test_a_start_on_the_bound_may_leave_it(self, optimise):
        result = optimise(lambda x: ((x - 0.4) ** 2).sum(-1), Box([0, 0], [1, 1]), [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
        equal(result.point, torch.full((3, 2), 0.4), 1e-6)


class Cap:
    """A linear function on a spherical cap |x − pole| ≤ 0.7: the solution lies on the rim, in closed form."""

    def __init__(self, rng):
        self.sphere, self.pole = Sphere(4), vector(1, 0, 0, 0, 0)
        self.slope = linalg.unit(normal(5, rng=rng))
        across = linalg.unit(self.sphere.to_tangent(self.pole, self.slope))
        self.solution = math.cos(0.7) * self.pole - math.sin(0.7) * across
        pole = self.pole.expand(6, 5)
        self.start = self.sphere.exp(pole, 0.4 * self.sphere.random_tangent(pole, rng))

    def f(self, x):
        return x @ self.slope

    def inside(self, x):
        return x @ self.pole - math.cos(0.7)


class Crescent:
    """A cap cut by a curved constraint, both active at the solution; scipy's SLSQP gives the reference."""

    sphere = Sphere(3)

    def __init__(self):
        base = linalg.unit(vector(1.0, 0.6, 0.3, 0.1))
        self.start = linalg.unit(base + 0.05 * vector(*[[k % 2, k % 3 - 1, k % 5 - 2, 0] for k in range(6)]))
        constraints = [
            {"type": "eq", "fun": lambda x: x @ x - 1},
            {"type": "ineq", "fun": lambda x: x[0] - 0.5},
            {"type": "ineq", "fun": lambda x: x[1] - 2 * (x[2] - 0.2) ** 2 - 0.1},
        ]
        reference = scipy.optimize.minimize(
            lambda x: 0.3 * x[1] - x[3] - 0.2 * x[2],
            base.numpy(),
            constraints=constraints,
            method="SLSQP",
            options={"ftol": 1e-15},
        )
        self.solution = torch.tensor(reference.x)

    def f(self, x):
        return 0.3 * x[..., 1] - x[..., 3] - 0.2 * x[..., 2]

    def inside(self, x):
        return torch.stack([x[..., 0] - 0.5, x[..., 1] - 2 * (x[..., 2] - 0.2) ** 2 - 0.1], -1)


class TestConstrainedTrustRegion:
    @hessians
    def test_the_rim_of_a_cap(self, hessian, rng):
        cap = Cap(rng)
        result = trust_region(cap.f, cap.sphere, cap.start, constraints=cap.inside, hessian=hessian)
        assert (result.reason == "converged").all()
        assert (cap.inside(result.point) >= 0).all()
        assert cap.sphere.dist(result.point, cap.solution).max() < 3e-6

    @hessians
    def test_a_curved_corner(self, hessian):
        crescent = Crescent()
        result = trust_region(crescent.f, crescent.sphere, crescent.start, constraints=crescent.inside, hessian=hessian)
        assert (crescent.inside(result.point) >= 0).all()
        assert crescent.sphere.dist(result.point, crescent.solution).max() < 1e-5

    @pytest.mark.parametrize("problem", [Cap, lambda rng: Crescent()], ids=["cap", "crescent"])
    def test_the_function_is_evaluated_at_feasible_points_only(self, problem, rng):
        p, seen = problem(rng), []

        def f(x):
            seen.append(x.detach())
            return p.f(x)

        trust_region(f, p.sphere, p.start, constraints=p.inside)
        assert len(seen) > 5
        assert all((p.inside(x) >= 0).all() for x in seen)

    @hessians
    def test_every_iterate_is_feasible(self, hessian):
        p = Crescent()
        for limit in (1, 2, 3, 5, 8):
            options = {"constraints": p.inside, "hessian": hessian, "max_iterations": limit}
            result = trust_region(p.f, p.sphere, p.start, **options)
            assert (p.inside(result.point) >= 0).all()

    def test_an_interior_minimum_is_found_as_without_constraints(self, rng):
        p = Rayleigh(rng)
        start = p.manifold.random(3, rng=rng)
        free = trust_region(p.f, p.manifold, start)
        same = trust_region(p.f, p.manifold, start, constraints=lambda x: 2 - x[..., 0])
        equal(same.point, free.point, 1e-8)
        assert torch.equal(same.iterations, free.iterations)

    def test_an_infeasible_start_is_reported_per_element(self, rng):
        cap = Cap(rng)
        start = cap.start.clone()
        start[1], start[4] = -cap.pole, cap.sphere.exp(cap.pole, 0.71 * cap.sphere.random_tangent(cap.pole, rng))
        result = trust_region(cap.f, cap.sphere, start, constraints=cap.inside)
        assert result.reason.tolist() == [
            *["converged", "infeasible", "converged"],
            *["converged", "infeasible"],
            "converged",
        ]
        assert torch.equal(result.point[[1, 4]], start[[1, 4]])
        assert cap.sphere.dist(result.point[[0, 2, 3, 5]], cap.solution).max() < 3e-6

    def test_constraints_get_the_data_of_their_rows(self):
        limit = vector(1.0, 2.0, 3.0)
        result = trust_region(
            lambda x, limit: ((x - 5) ** 2).sum(-1),
            Euclidean(2),
            torch.zeros(3, 2, dtype=torch.float64),
            constraints=lambda x, limit: limit[:, None] - x,
            data=(limit,),
        )
        equal(result.point, limit[:, None].expand(3, 2), 1e-6)

    def test_bounds_and_constraints_hold_together(self):
        """x + y ≥ 1 in the unit square, minimising 2x + y: the solution (0, 1) lies on a bound and the constraint."""
        result = trust_region(
            lambda x: 2 * x[..., 0] + x[..., 1],
            Box([0, 0], [1, 1]),
            [[0.9, 0.9], [0.5, 0.6], [0.2, 1.0]],
            constraints=lambda x: x.sum(-1) - 1,
        )
        assert (result.point.sum(-1) >= 1).all()
        equal(result.point, vector(0, 1).expand(3, 2), 1e-5)


class TestPenalties:
    @penalties
    def test_the_rim_of_a_cap(self, method, rng):
        cap = Cap(rng)
        result = method(cap.f, cap.sphere, cap.start, inequalities=cap.inside)
        assert (result.reason == "converged").all()
        assert (result.violation <= 1e-6).all()
        equal(result.violation, (-cap.inside(result.point)).clamp(min=0), 1e-15)
        assert cap.sphere.dist(result.point, cap.solution).max() < 3e-6

    @penalties
    def test_a_curved_corner(self, method):
        crescent = Crescent()
        result = method(crescent.f, crescent.sphere, crescent.start, inequalities=crescent.inside)
        assert (result.violation <= 1e-6).all()
        assert crescent.sphere.dist(result.point, crescent.solution).max() < 1e-5

    @penalties
    def test_infeasible_starts_are_welcome(self, method, rng):
        cap = Cap(rng)
        result = method(cap.f, cap.sphere, cap.sphere.random(2, 4, rng=rng), inequalities=cap.inside)
        assert result.point.shape == (2, 4, 5)
        assert result.violation.shape == result.reason.shape == (2, 4)
        assert cap.sphere.dist(result.point, cap.solution).max() < 3e-6

    @penalties
    def test_equalities(self, method, rng):
        """The smallest Rayleigh quotient orthogonal to a given vector is that of the compressed matrix."""
        sphere, a = Sphere(5), linalg.sym(normal(6, 6, rng=rng))
        axis = linalg.unit(normal(6, rng=rng))
        rest = linalg.completion(axis[:, None])
        result = method(quadratic(a), sphere, sphere.random(6, rng=rng), equalities=lambda x: x @ axis)
        assert (result.violation <= 1e-6).all()
        assert result.value.min().item() == pytest.approx(torch.linalg.eigvalsh(rest.mT @ a @ rest)[0].item(), abs=1e-5)

    @penalties
    def test_equalities_and_inequalities_together(self, method):
        """On the unit circle of a plane, x ≥ ½ and y ≥ 0: minimising y − x² … ends at (1, 0)."""
        result = method(
            lambda x: x[..., 1] - x[..., 0] ** 2,
            Euclidean(2),
            [[0.8, 0.6], [2.0, 1.0]],
            equalities=lambda x: (x**2).sum(-1) - 1,
            inequalities=lambda x: torch.stack([x[..., 0] - 0.5, x[..., 1]], -1),
        )
        assert (result.violation <= 1e-6).all()
        equal(result.point, vector(1, 0).expand(2, 2), 1e-5)

    @penalties
    def test_inactive_constraints_change_nothing(self, method):
        result = method(lambda x: ((x - 1) ** 2).sum(-1), Euclidean(2), [0.0, 0.0], inequalities=lambda x: 5 - x)
        assert result.reason == "converged"
        equal(result.point, [1.0, 1.0], 1e-6)

    @penalties
    def test_impossible_constraints_are_reported(self, method, rng):
        cap = Cap(rng)
        result = method(cap.f, cap.sphere, cap.start, inequalities=lambda x: x @ cap.pole - 2, max_rounds=30)
        assert (result.reason == "infeasible").all()
        assert (result.violation >= 1 - 1e-9).all()

    @penalties
    def test_bounds_of_the_space_hold_as_well(self, method):
        result = method(
            lambda x: x.sum(-1), Box([0.2, 0], [1, 1]), [0.9, 0.9], inequalities=lambda x: x[..., 0] * x[..., 1] - 0.1
        )
        equal(result.point, [math.sqrt(0.1), math.sqrt(0.1)], 1e-4)
        assert result.violation <= 1e-6


class TestMistakes:
    @optimisers
    @pytest.mark.parametrize(
        ("f", "parts"),
        [
            (lambda x: x.sum(), ["shape (4,)", "got ()", "trailing axes of a point only"]),
            (lambda x: x, ["one number for each point", "(3,) each", "Sum over them"]),
            (lambda x: x.sum(-1, keepdim=True), ["one number for each point", "(1,) each"]),
            (lambda x: 1.0, ["shape (4,)", "got float"]),
            (lambda x: None, ["shape (4,)", "got NoneType"]),
            (lambda x: x.detach().numpy().sum(-1), ["shape (4,)", "got ndarray"]),
            (lambda x: x[:2].sum(-1), ["shape (4,)", "got (2,)"]),
        ],
    )
    def test_a_function_of_the_wrong_shape(self, optimise, f, parts):
        with pytest.raises(ShapeError) as error:
            optimise(f, Euclidean(3), torch.zeros(4, 3))
        assert all(part in str(error.value) for part in parts)

    @penalties
    def test_a_constraint_of_the_wrong_shape(self, method):
        with pytest.raises(ShapeError, match=r"shape \(4,\), got \(\)"):
            method(lambda x: x.sum(-1), Euclidean(3), torch.zeros(4, 3), inequalities=lambda x: x.sum())
        with pytest.raises(ShapeError, match=r"shape \(4,\), got \(\)"):
            trust_region(lambda x: x.sum(-1), Euclidean(3), torch.zeros(4, 3), constraints=lambda x: x.sum())

    @pytest.mark.parametrize("optimise", [*OPTIMISERS.values(), *PENALTIES.values()], ids=[*OPTIMISERS, *PENALTIES])
    def test_starts_are_checked(self, optimise):
        f, options = lambda x: x.sum(-1), {}
        if optimise in PENALTIES.values():
            options = {"inequalities": lambda x: x[..., 0]}
        with pytest.raises(ArgumentError, match=r"at least one start, got an empty one of shape \(0, 3\)"):
            optimise(f, Sphere(2), torch.zeros(0, 3), **options)
        with pytest.raises(OffManifoldError, match="norm is 1"):
            optimise(f, Sphere(2), [1.0, 1.0, 1.0], **options)
        with pytest.raises(OffManifoldError, match="finite"):
            optimise(f, Sphere(2), [math.nan, 1.0, 1.0], **options)
        with pytest.raises(ShapeError, match=r"end in shape \(3,\), got \(4,\)"):
            optimise(f, Sphere(2), torch.zeros(4), **options)
        with pytest.raises(ArgumentError, match=r"tolerance is a number from 0 to 1e\+18, got -1"):
            optimise(f, Sphere(2), [1.0, 0.0, 0.0], tolerance=-1, **options)

    @optimisers
    @pytest.mark.parametrize("count", [0, -1, 2.0, True, None])
    def test_iterations_are_counted_in_whole_numbers(self, optimise, count):
        with pytest.raises(ArgumentError, match="max_iterations is a whole number"):
            optimise(lambda x: x.sum(-1), Sphere(2), [1.0, 0.0, 0.0], max_iterations=count)

    def test_options_have_known_values(self):
        f, start = lambda x: x.sum(-1), [1.0, 0.0, 0.0]
        with pytest.raises(ArgumentError, match="or a function, got 'newton'"):
            trust_region(f, Sphere(2), start, hessian="newton")
        with pytest.raises(ArgumentError, match="memory is a whole number"):
            lbfgs(f, Sphere(2), start, memory=0)

    @optimisers
    @pytest.mark.parametrize("tolerance", [math.nan, "small", None])
    def test_tolerances_are_numbers(self, optimise, tolerance):
        with pytest.raises(ArgumentError, match=r"tolerance is a number from 0 to 1e\+18, got"):
            optimise(lambda x: x.sum(-1), Sphere(2), [1.0, 0.0, 0.0], tolerance=tolerance)

    @optimisers
    def test_data_go_with_the_first_axis(self, optimise):
        f = lambda x, d: x.sum(-1)
        with pytest.raises(ShapeError, match=r"first axis of the batch \(4,\), got \(3,\)"):
            optimise(f, Euclidean(3), torch.zeros(4, 3), data=(torch.zeros(3),))
        with pytest.raises(ShapeError, match="first axis of the batch"):
            optimise(f, Euclidean(3), torch.zeros(3), data=(torch.zeros(3),))
        with pytest.raises(ArgumentError, match="Data are tensors, got float"):
            optimise(f, Euclidean(3), torch.zeros(4, 3), data=(1.0,))

    @penalties
    def test_penalties_want_a_constraint(self, method):
        with pytest.raises(ArgumentError, match="got neither"):
            method(lambda x: x.sum(-1), Sphere(2), [1.0, 0.0, 0.0])


@pytest.mark.parametrize("optimiser", [trust_region, lbfgs])
def test_a_start_beside_a_bound_goes_all_the_way(optimiser):
    starts = 1e-3 * torch.rand(50, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    result = optimiser(lambda x: x.sum(-1), Box([0, 0], [1, 1]), starts)
    assert (result.reason == "converged").all()
    assert (result.point == 0).all()
