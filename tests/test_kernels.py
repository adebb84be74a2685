"""Kernels: positive definiteness where it is hard, invariance, curvature, closed forms, strangers, priors, mistakes."""

import json
import math
from pathlib import Path

import gpytorch
import numpy as np
import pytest
import scipy.special
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP

from nestbo import SPD, ArgumentError, Box, Euclidean, Grassmann, Product, Sphere, linalg
from nestbo.kernels import KERNELS, GeodesicGaussian, ManifoldKernel, ProductKernel, beta_min, kernel
from nestbo.kernels.beta_table import BETA_MIN
from nestbo.testing.kernels import lengthscales

VALID = [name for name in KERNELS if name != "geodesic-gaussian"]
EXTRINSIC = ["gaussian", "matern12", "matern32", "matern52"]
SPECTRAL = ["heat", "spectral-matern"]
valid = pytest.mark.parametrize("name", VALID)
spectral = pytest.mark.parametrize("name", SPECTRAL)


def scale(*values):
    return torch.tensor(values, dtype=torch.float64)


def circle(count, dim):
    """Points equally spaced on a great circle of S^dim."""
    angle = 2 * math.pi * torch.arange(count, dtype=torch.float64) / count
    return arcs(angle, dim)


def arcs(angle, dim):
    """Points of S^dim at these angles from (1, 0, …)."""
    x = torch.zeros(len(angle), dim + 1, dtype=torch.float64)
    x[:, 0], x[:, 1] = angle.cos(), angle.sin()
    return x


def least_eigenvalue(k, x, lengthscale):
    return torch.linalg.eigvalsh(k.correlation(x, x, lengthscale)).min().item()


class TestPositiveDefiniteness:
    @valid
    @pytest.mark.parametrize("dim", [2, 5, 50])
    def test_on_a_great_circle(self, name, dim):
        k, x = kernel(name, Sphere(dim)), circle(100, dim)
        for lengthscale in lengthscales(k, 7):
            assert least_eigenvalue(k, x, lengthscale) >= -1e-10 * 100

    @valid
    @pytest.mark.parametrize("dim", [2, 50])
    def test_on_clusters_and_copies(self, name, dim, rng):
        space = Sphere(dim)
        k, centre = kernel(name, space), space.random(1, rng=rng).expand(40, -1)
        cluster = space.exp(centre, 1e-6 * space.random_tangent(centre, rng))
        x = torch.cat([cluster, cluster[:10], -cluster[:10], space.random(20, rng=rng)])
        for lengthscale in lengthscales(k, 7):
            assert least_eigenvalue(k, x, lengthscale) >= -1e-10 * len(x)

    @pytest.mark.parametrize("name", EXTRINSIC)
    @pytest.mark.parametrize("space", [SPD(3), SPD(2, eigenvalues=(1e-3, 5)), Grassmann(6, 2)], ids=repr)
    def test_on_other_spaces(self, name, space, rng):
        k, centre = kernel(name, space), space.random(1, rng=rng).expand(30, *space.point_shape)
        x = torch.cat([space.random(100, rng=rng), space.retract(centre, 1e-6 * space.random_tangent(centre, rng))])
        for lengthscale in lengthscales(k, 5):
            assert least_eigenvalue(k, x, lengthscale) >= -1e-10 * len(x)

    @pytest.mark.parametrize(("name", "space"), [("matern52", Sphere(5)), ("heat", Sphere(2)), ("gaussian", SPD(2))])
    def test_of_two_thousand_points(self, name, space, rng):
        k, x = kernel(name, space), space.random(2000, rng=rng)
        assert least_eigenvalue(k, x, k.median_lengthscale) >= -1e-10 * 2000

    @pytest.mark.parametrize(("dim", "beta", "least"), [(5, 1.0, -1e-4), (50, 0.21, -0.5), (5, 2.0, -3e-9)])
    def test_the_geodesic_gaussian_is_indefinite_on_a_great_circle(self, dim, beta, least):
        """Why it is not the default: at β_min as published (the first two) and beyond."""
        k = GeodesicGaussian(Sphere(dim), beta_min=beta)
        found = least_eigenvalue(k, circle(100, dim), k.lengthscale_bounds[1])
        assert found == pytest.approx(least, rel=0.2)

    @pytest.mark.parametrize("family", BETA_MIN)
    def test_the_geodesic_gaussian_is_within_its_tolerance_on_random_points(self, family, rng):
        for n in (2, 3, 5):
            space = {"sphere": Sphere, "spd": SPD}[family](n)
            k = kernel("geodesic-gaussian", space)
            assert least_eigenvalue(k, space.random(200, rng=rng), k.lengthscale_bounds[1]) >= -k.tolerance


class TestBetaMin:
    @pytest.mark.parametrize("space", [Sphere(2), Sphere(3), Sphere(5), SPD(2), SPD(3)], ids=repr)
    def test_it_holds_where_it_says_so_and_not_far_below(self, space):
        n, tolerance = 80, 1e-6
        beta = beta_min(space, n, tolerance)
        draws = space.random(5, n, rng=torch.Generator().manual_seed(0))
        least = lambda b: min(torch.linalg.eigvalsh((-b * space.pairwise_sq_dist(x, x)).exp()).min() for x in draws)
        assert least(beta) >= -tolerance
        assert least(0.9 * beta) < -tolerance

    def test_a_larger_tolerance_and_fewer_points_need_less(self):
        strict, lax = (beta_min(Sphere(2), 80, tolerance) for tolerance in (1e-8, 1e-3))
        assert lax < strict
        assert beta_min(Sphere(3), 20) <= beta_min(Sphere(3), 200)

    @pytest.mark.parametrize("space", [SPD(3, metric="log-euclidean"), Euclidean(2)], ids=repr)
    def test_flat_metrics_need_none(self, space):
        assert beta_min(space, 50) <= 1.1e-3

    def test_it_has_two_digits_and_is_reproducible(self):
        beta = beta_min(Sphere(4), 50)
        assert beta == float(f"{beta:.2g}") == beta_min(Sphere(4), 50)

    def test_the_kernel_keeps_its_length_scale_below_the_bound(self):
        assert kernel("geodesic-gaussian", Sphere(5)).lengthscale_bounds[1].item() == pytest.approx(1 / math.sqrt(2))
        assert kernel("geodesic-gaussian", Sphere(7)).lengthscale_bounds[1].item() == pytest.approx(1 / math.sqrt(2))
        own = kernel("geodesic-gaussian", Sphere(5), beta_min=8.0)
        assert own.lengthscale_bounds[1].item() == pytest.approx(0.25)
        assert own.lengthscale.item() < 0.25

    def test_a_product_takes_the_tolerance_of_its_parts(self):
        assert kernel("geodesic-gaussian", Product(Sphere(2), SPD(2))).tolerance == GeodesicGaussian.tolerance
        assert kernel("matern52", Product(Sphere(2), SPD(2))).tolerance == 0


class TestInvariance:
    @pytest.mark.parametrize("name", KERNELS)
    @pytest.mark.parametrize("dim", [1, 2, 10])
    def test_rotations_of_the_sphere(self, name, dim, rng):
        k, turn = kernel(name, Sphere(dim)), linalg.random_frames(dim + 1, dim + 1, rng=rng)
        x = Sphere(dim).random(15, rng=rng)
        self.check(k, x, x @ turn.mT)

    @pytest.mark.parametrize("name", [*EXTRINSIC, "geodesic-gaussian"])
    @pytest.mark.parametrize("metric", ["affine-invariant", "log-euclidean"])
    def test_congruence_by_orthogonal_matrices_and_inversion(self, name, metric, rng):
        space, turn = SPD(3, metric=metric), linalg.random_frames(3, 3, rng=rng)
        k, x = kernel(name, space), space.random(15, rng=rng)
        self.check(k, x, turn @ x @ turn.mT)
        self.check(k, x, torch.linalg.inv(x))
        self.check(k, x, 7 * x)

    def test_all_congruences_for_the_affine_invariant_distance(self, rng):
        k, x = kernel("geodesic-gaussian", SPD(3)), SPD(3).random(15, rng=rng)
        a = torch.randn(3, 3, generator=rng, dtype=torch.float64)
        self.check(k, x, linalg.sym(a @ x @ a.mT))

    @pytest.mark.parametrize("name", EXTRINSIC)
    def test_bases_of_one_subspace(self, name, rng):
        k, x = kernel(name, Grassmann(6, 2)), Grassmann(6, 2).random(15, rng=rng)
        self.check(k, x, x @ linalg.random_frames(15, 2, 2, rng=rng))
        self.check(k, x, linalg.random_frames(6, 6, rng=rng) @ x)

    @pytest.mark.parametrize("name", EXTRINSIC)
    def test_units_of_a_box(self, name, rng):
        x = Box(0, [1, 1]).random(10, rng=rng)
        k, other = kernel(name, Box(0, [1, 1])), kernel(name, Box([3, 0], [5, 1e-3]))
        y = torch.stack([3 + 2 * x[:, 0], 1e-3 * x[:, 1]], -1)
        torch.testing.assert_close(other.correlation(y, y, scale(0.3)), k.correlation(x, x, scale(0.3)))

    def check(self, k, x, y):
        for lengthscale in lengthscales(k, 3):
            a, b = (k.correlation(points, points, lengthscale) for points in (x, y))
            torch.testing.assert_close(a, b, rtol=0, atol=1e-8)


class TestCurvature:
    """The second derivative of k(exp(x, tv), x) at t = 0, where a search from an observed point begins."""

    @pytest.mark.parametrize(
        "space", [Euclidean(3), Sphere(2), Sphere(50), SPD(3, metric="log-euclidean"), Grassmann(5, 2)], ids=repr
    )
    @pytest.mark.parametrize(("name", "factor"), [("matern52", 5 / 3), ("matern32", 3.0), ("gaussian", 1.0)])
    def test_of_radial_kernels_is_that_of_their_profile(self, name, factor, space, rng):
        k, lengthscale = kernel(name, space), 0.7
        assert self.curvature(k, scale(lengthscale), rng) == pytest.approx(-factor / lengthscale**2, rel=1e-8)

    @pytest.mark.parametrize("space", [Sphere(3), SPD(2)], ids=repr)
    def test_of_the_geodesic_gaussian(self, space, rng):
        k = kernel("geodesic-gaussian", space, beta_min=0.1)
        assert self.curvature(k, scale(0.7), rng) == pytest.approx(-1 / 0.7**2, rel=1e-8)

    @spectral
    def test_of_spectral_kernels_is_the_mean_eigenvalue(self, name, rng):
        """k″ = −Σ w_n λ_n / dim, by Gegenbauer's equation at 1."""
        for dim in (1, 2, 10):
            k, lengthscale = kernel(name, Sphere(dim)), scale(0.5)
            degree = np.arange(400)
            eigenvalue = degree * (degree + dim - 1.0)
            log_count = np.array([_log_harmonics(n, dim) for n in degree])
            density = {"heat": -eigenvalue / 8, "spectral-matern": -(2.5 + dim / 2) * np.log(20 + eigenvalue)}[name]
            weights = scipy.special.softmax(log_count + density)
            expected = -(weights * eigenvalue).sum() / dim
            assert self.curvature(k, lengthscale, rng) == pytest.approx(expected, rel=1e-3)

    def test_gradients_agree_with_differences(self, rng):
        for name in VALID:
            k, x, y = kernel(name, Sphere(3)), Sphere(3).random(2, rng=rng), Sphere(3).random(2, rng=rng)
            f = lambda x, s, k=k, y=y: k.correlation(linalg.unit(x), y, s)
            inputs = x.requires_grad_(), k.median_lengthscale.clone().requires_grad_()
            assert torch.autograd.gradcheck(f, inputs)
            if name != "spectral-matern":  # the code of the heat kernel, with 512 degrees
                assert torch.autograd.gradgradcheck(f, inputs)

    def curvature(self, k, lengthscale, rng):
        space = k.space
        y = space.random(rng=rng)
        v, x = space.random_tangent(y, rng), y.clone().requires_grad_()
        value = k.correlation(x.unsqueeze(0), y.unsqueeze(0), lengthscale)
        (slope,) = torch.autograd.grad(value, x, create_graph=True)
        (product,) = torch.autograd.grad((slope * v).sum(), x)
        assert space.norm(y, space.gradient(y, slope)).item() < 1e-9
        return space.inner(y, space.hessian(y, slope, product, v), v).item()


def _log_harmonics(n, dim):
    """Logarithm of the number of spherical harmonics of degree n on S^dim, by the two binomials."""
    count = math.comb(n + dim, dim) - (math.comb(n + dim - 2, dim) if n >= 2 else 0)
    return math.log(count)


class TestSpectral:
    @spectral
    @pytest.mark.parametrize("dim", [1, 2, 3, 10, 50, 200, 500])
    def test_every_dimension_is_stable(self, name, dim, rng):
        space = Sphere(dim)
        k, x = kernel(name, space), torch.cat([circle(30, dim), space.random(20, rng=rng)])
        angle = torch.linspace(0, 0.1, 30, dtype=torch.float64)
        for lengthscale in [*lengthscales(k, 4), k.median_lengthscale]:
            gram = k.correlation(x, x, lengthscale)
            assert gram.isfinite().all()
            assert gram.abs().max() <= 1 + 1e-9
            assert torch.linalg.eigvalsh(gram).min() >= -1e-10 * len(x)
            near = k.correlation(arcs(angle[:1], dim), arcs(angle, dim), lengthscale)[0]
            assert (near.diff()[near[1:] > 1e-3] < 1e-12).all()
        assert (near.diff() < 0).all()

    def test_the_heat_kernel_of_the_circle_is_a_theta_series(self):
        """Σ_k exp(−(θ + 2πk)²/2ℓ²), normalised."""
        k, angle = kernel("heat", Sphere(1)), torch.linspace(0, math.pi, 20, dtype=torch.float64)
        turns = 2 * math.pi * torch.arange(-30, 31, dtype=torch.float64)
        for lengthscale in (0.05, 0.3, 1.0, 3.0):
            wrapped = (-((angle.unsqueeze(-1) + turns) ** 2) / (2 * lengthscale**2)).exp().sum(-1)
            found = k.correlation(arcs(angle[:1], 1), arcs(angle, 1), scale(lengthscale))[0]
            torch.testing.assert_close(found, wrapped / wrapped[0], rtol=0, atol=1e-12)

    @pytest.mark.parametrize(
        ("name", "density"),
        [
            ("heat", lambda eigenvalue, s: np.exp(-(s**2) * eigenvalue / 2)),
            ("spectral-matern", lambda eigenvalue, s: (5 / s**2 + eigenvalue) ** -3.5),
        ],
    )
    def test_on_the_sphere_they_are_legendre_series(self, name, density):
        k, angle, n = kernel(name, Sphere(2)), np.linspace(0, np.pi, 20), np.arange(512)
        for lengthscale in (0.1, 0.5, 2.0):
            weights = (2 * n + 1) * density(n * (n + 1.0), lengthscale)
            series = (weights * scipy.special.eval_legendre(n, np.cos(angle)[:, None])).sum(-1) / weights.sum()
            points = arcs(torch.from_numpy(angle), 2)
            found = k.correlation(points[:1], points, scale(lengthscale))[0]
            np.testing.assert_allclose(found.numpy(), series, rtol=0, atol=max(1e-12, 2 * k.negligible))

    def test_geometric_kernels_gives_the_same_numbers(self):
        golden = json.loads((Path(__file__).parent / "golden" / "sphere_kernels.json").read_text())
        for entry in golden["entries"]:
            k = kernel(entry["kernel"], Sphere(entry["dim"]))
            x = arcs(torch.tensor([0.0, *entry["angles"]], dtype=torch.float64), entry["dim"])
            found = k.correlation(x[:1], x[1:], scale(entry["lengthscale"]))[0]
            np.testing.assert_allclose(found.numpy(), entry["correlations"], rtol=0, atol=1e-6)
        assert len(golden["entries"]) == 32

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("spectral-matern", {2: 1.12, 5: 0.77, 10: 0.50, 20: 0.30, 50: 0.13}),
            ("heat", {2: 1.11, 5: 0.89, 10: 0.73, 20: 0.58, 50: 0.41}),
        ],
    )
    def test_length_scales_of_half_correlation_are_those_measured(self, name, expected):
        """Within the two digits they were given to, and 3% for the draw of pairs."""
        for dim, lengthscale in expected.items():
            found = kernel(name, Sphere(dim)).median_lengthscale.item()
            assert found == pytest.approx(lengthscale, rel=0.03, abs=0.005)


class TestPrior:
    @pytest.mark.parametrize("name", VALID)
    @pytest.mark.parametrize("space", [Sphere(2), Sphere(50), SPD(3), Box(0, [1, 10]), Grassmann(6, 2)], ids=repr)
    def test_random_pairs_have_correlation_one_half(self, name, space, rng):
        try:
            k = kernel(name, space)
        except ArgumentError as error:
            pytest.skip(str(error))
        x, y = space.random(2, 3000, 1, rng=rng)
        average = k.correlation(x, y, k.median_lengthscale).mean().item()
        assert average == pytest.approx(0.5, abs=0.04)
        assert k.lengthscale.item() == pytest.approx(k.median_lengthscale.item())

    def test_the_prior_is_that_of_gpytorch(self):
        """Its density of ℓ is ours of log ℓ over ℓ, up to a constant."""
        k = kernel("matern52", Product(Sphere(2), SPD(2)))
        a, b = k.median_lengthscale * 1.7, k.median_lengthscale * torch.tensor([0.4, 2.0])
        gpytorch_ratio = (k.lengthscale_prior.log_prob(a) + a.log()).sum() - (
            k.lengthscale_prior.log_prob(b) + b.log()
        ).sum()
        ours = k.log_prior(a.log()) - k.log_prior(b.log())
        torch.testing.assert_close(gpytorch_ratio, ours)

    def test_random_pairs_of_a_product_are_correlated_about_as_much(self, rng):
        for space in (Product(Sphere(2), Sphere(2)), Product(Sphere(5), SPD(2), Box(0, 1))):
            k = kernel("matern52", space)
            x, y = space.random(2, 3000, 1, rng=rng)
            assert 0.35 < k.correlation(x, y, k.median_lengthscale).mean().item() < 0.65


class TestProduct:
    space = Product(Sphere(2), SPD(2))

    def test_it_multiplies_its_parts(self, rng):
        k, x = kernel("matern52", self.space), self.space.random(6, rng=rng)
        direction, matrix = self.space.split(x)
        first = kernel("matern52", Sphere(2)).correlation(direction, direction, scale(0.5))
        second = kernel("matern52", SPD(2)).correlation(matrix, matrix, scale(2.0))
        torch.testing.assert_close(k.correlation(x, x, scale(0.5, 2.0)), first * second)

    def test_parts_may_differ_and_nest(self, rng):
        outer = Product(self.space, Sphere(1))
        k = ProductKernel(outer, [kernel("gaussian", self.space), kernel("heat", Sphere(1))])
        x = outer.random(5, rng=rng)
        assert k.lengthscale.shape == (1, 3)
        inner, circle_part = outer.split(x)
        expected = kernel("gaussian", self.space).correlation(inner, inner, scale(0.5, 2.0))
        expected = expected * kernel("heat", Sphere(1)).correlation(circle_part, circle_part, scale(0.9))
        torch.testing.assert_close(k.correlation(x, x, scale(0.5, 2.0, 0.9)), expected)

    def test_there_is_one_kernel_for_each_factor(self):
        with pytest.raises(ArgumentError, match="takes 2 kernels"):
            ProductKernel(self.space, [kernel("gaussian", Sphere(2))])


class TestGPyTorch:
    @pytest.mark.parametrize(
        ("name", "space"), [("matern52", Product(Sphere(2), SPD(2))), ("heat", Sphere(3)), ("gaussian", SPD(2))]
    )
    def test_a_stock_model_fits_and_predicts(self, name, space, rng):
        k = kernel(name, space)
        axes = len(space.point_shape)
        x = space.random(25, rng=rng).flatten(-axes)
        f = lambda x: space.embed(x.unflatten(-1, space.point_shape)).sum(-1, keepdim=True).div(2).sin()
        model = SingleTaskGP(x, f(x), covar_module=gpytorch.kernels.ScaleKernel(k))
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
        before = k.lengthscale.clone()
        fit_gpytorch_mll(mll)
        low, high = k.lengthscale_bounds
        assert not torch.allclose(k.lengthscale, before)
        assert ((k.lengthscale > low) & (k.lengthscale < high)).all()
        test = space.random(50, rng=rng).flatten(-axes)
        error = (model.posterior(test).mean - f(test)).square().mean()
        assert error < 0.3 * f(test).var()
        assert repr(k) in repr(model)

    def test_a_kernel_prints(self):
        assert repr(kernel("matern52", SPD(3))) == "Matern52(SPD(3))"
        assert repr(kernel("heat", Product(Sphere(2)))) == "ProductKernel(Product(Sphere(2)))"


class TestMistakes:
    def test_an_unknown_name_is_refused_with_the_nearest(self):
        with pytest.raises(ArgumentError, match=r"got 'mattern52'. Did you mean 'matern52'\?"):
            kernel("mattern52", Sphere(2))
        with pytest.raises(ArgumentError, match=r"Wanted a kernel .*, got None"):
            kernel(None, Sphere(2))

    @spectral
    def test_spectral_kernels_are_those_of_spheres(self, name):
        with pytest.raises(ArgumentError, match=r"on a Sphere only, got SPD\(2\). Use matern52"):
            kernel(name, SPD(2))
        with pytest.raises(ArgumentError, match="on a Sphere only"):
            kernel(name, Product(Sphere(2), SPD(2)))

    def test_the_geodesic_laplace_is_that_of_spheres(self):
        with pytest.raises(ArgumentError, match="valid on a Sphere, got SPD"):
            kernel("geodesic-laplace", SPD(2))

    def test_the_geodesic_gaussian_wants_a_bound(self):
        with pytest.raises(ArgumentError, match="Pass beta_min"):
            kernel("geodesic-gaussian", Grassmann(5, 2))
        assert isinstance(kernel("geodesic-gaussian", Grassmann(5, 2), beta_min=1.0), ManifoldKernel)

    def test_unknown_options_are_refused(self):
        with pytest.raises(TypeError, match="beta_mim"):
            kernel("geodesic-gaussian", Sphere(2), beta_mim=3.0)
        with pytest.raises(TypeError, match="beta_min"):
            kernel("gaussian", Sphere(2), beta_min=3.0)
