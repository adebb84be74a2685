"""The surrogate against scikit-learn and gpytorch, its likelihood against brute force, its fit on odd data."""

import math
from dataclasses import replace
from importlib import import_module

import gpytorch
import numpy as np
import pytest
import scipy.optimize
import torch
from botorch.models import SingleTaskGP
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern

from nestbo import SPD, Box, Euclidean, Product, Sphere
from nestbo.kernels import kernel
from nestbo.memory import Fit
from nestbo.outputs import OUTPUTS, Bilog, HalfLog, Standardise
from nestbo.surrogate import GP, Data, Description, Effort, fit, negative_log_likelihood


def normal(*shape, rng):
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def process(space, rng, *, name="matern52", n=12, runs=(), lengthscale=0.8, noise=1e-3):
    """A process with given parameters, conditioned on random values."""
    k = kernel(name, space)
    x = space.random(*runs, n, rng=rng)
    scales = torch.full((*runs, len(k.median_lengthscale)), lengthscale, dtype=torch.float64)
    mean, scale = (torch.full(runs, value, dtype=torch.float64) for value in (0.3, 1.7))
    return GP(k, x, normal(*runs, n, rng=rng), scales, mean, scale, torch.full(runs, noise, dtype=torch.float64))


def generators(count):
    return [torch.Generator().manual_seed(k) for k in range(count)]


def fit_one(name, space, x, y, previous=None, effort=Effort.FEW_STEPS, **options):
    """One run."""
    data = Data(x.unsqueeze(0), y.unsqueeze(0), generators(1))
    return fit(Description(kernel(name, space), **options), data, previous, effort)


def parameters_of(surrogate, run=0):
    return torch.tensor(surrogate.fits[run].parameters, dtype=torch.float64)


class TestPosterior:
    @pytest.mark.parametrize(
        ("name", "theirs"),
        [("gaussian", RBF(0.8)), ("matern32", Matern(0.8, nu=1.5)), ("matern52", Matern(0.8, nu=2.5))],
    )
    @pytest.mark.parametrize("space", [Euclidean(3), Box(0, [1, 1])], ids=repr)
    def test_scikit_learn_gives_the_same(self, name, theirs, space, rng):
        gp, test = process(space, rng, name=name), space.random(20, rng=rng)
        mean, variance = gp.moments(test)
        stranger = GaussianProcessRegressor(theirs, alpha=1e-3, optimizer=None)
        stranger.fit(gp.x.numpy(), ((gp.z - gp.mean) / gp.scale.sqrt()).numpy())
        expected, deviation = stranger.predict(test.numpy(), return_std=True)
        np.testing.assert_allclose(mean, 0.3 + math.sqrt(1.7) * expected, rtol=0, atol=1e-8)
        np.testing.assert_allclose(variance, 1.7 * deviation**2, rtol=0, atol=1e-8)

    @pytest.mark.parametrize(
        ("name", "space"),
        [
            ("matern52", Euclidean(2)),
            ("heat", Sphere(3)),
            ("gaussian", SPD(2)),
            ("matern52", Product(Sphere(2), SPD(2))),
        ],
    )
    def test_gpytorch_gives_the_same(self, name, space, rng):
        gp, axes = process(space, rng, name=name), len(space.point_shape)
        stranger = self.single_task(gp, axes)
        test = space.random(5, 3, rng=rng).flatten(-axes)
        ours, theirs = gp.posterior(test), stranger.posterior(test)
        torch.testing.assert_close(ours.mean, theirs.mean, rtol=0, atol=1e-8)
        torch.testing.assert_close(ours.variance, theirs.variance, rtol=0, atol=1e-8)
        mine, other = (p.distribution.covariance_matrix for p in (ours, theirs))
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-8)

    def single_task(self, gp, axes):
        covariance = gpytorch.kernels.ScaleKernel(gp.kernel)
        model = SingleTaskGP(
            gp.x.flatten(-axes),
            gp.z.unsqueeze(-1),
            torch.full_like(gp.z, (gp.scale * gp.noise).item()).unsqueeze(-1),
            covar_module=covariance,
            outcome_transform=None,
        )
        gp.kernel.initialize(lengthscale=gp.lengthscale)
        covariance.to(torch.float64).outputscale = gp.scale
        model.mean_module.initialize(constant=gp.mean)
        return model.to(torch.float64).eval()

    @pytest.mark.parametrize("space", [Sphere(3), SPD(2)], ids=repr)
    def test_the_joint_posterior_has_the_moments_on_its_diagonal(self, space, rng):
        gp, test = process(space, rng), space.random(4, 3, rng=rng)
        posterior = gp.posterior(test.flatten(-len(space.point_shape)))
        mean, variance = gp.moments(test)
        torch.testing.assert_close(posterior.mean.squeeze(-1), mean)
        torch.testing.assert_close(posterior.variance.squeeze(-1), variance, rtol=0, atol=1e-9)
        assert torch.linalg.eigvalsh(posterior.distribution.covariance_matrix).min() > 0

    def test_a_point_twice_can_be_sampled(self, rng):
        """A singular covariance; gpytorch would warn."""
        gp = process(Sphere(3), rng)
        x = torch.stack([gp.x[0], gp.x[0], gp.x[1]])
        samples = gp.posterior(x).rsample(torch.Size([200]))
        assert samples.isfinite().all()
        assert (samples[:, 0] - samples[:, 1]).abs().max() < 1e-3

    def test_observations_without_noise_are_interpolated(self, rng):
        gp = process(Sphere(3), rng, noise=1e-10)
        mean, variance = gp.moments(gp.x)
        torch.testing.assert_close(mean, gp.z, rtol=0, atol=1e-6)
        assert ((variance > 0) & (variance < 1e-8)).all()

    def test_far_away_the_prior_returns(self, rng):
        gp = process(Euclidean(2), rng)
        mean, variance = gp.moments(torch.full((1, 2), 100.0, dtype=torch.float64))
        torch.testing.assert_close(mean, gp.mean.unsqueeze(-1))
        torch.testing.assert_close(variance, gp.scale.unsqueeze(-1))

    def test_runs_are_independent(self, rng):
        space = Sphere(3)
        gp, test = process(space, rng, runs=(3,)), space.random(5, 3, 2, rng=rng)
        mean, variance = gp.moments(test)
        posterior = gp.posterior(test)
        assert gp.batch_shape == (3,)
        for k in range(3):
            parts = (gp.lengthscale, gp.mean, gp.scale, gp.noise)
            alone = GP(gp.kernel, gp.x[k], gp.z[k], *(part[k] for part in parts))
            expected = alone.moments(test[:, k])
            torch.testing.assert_close(mean[:, k], expected[0])
            torch.testing.assert_close(variance[:, k], expected[1])
            torch.testing.assert_close(posterior.mean[:, k], alone.posterior(test[:, k]).mean)

    def test_derivatives_agree_with_differences(self, rng):
        gp = process(Euclidean(2), rng)
        x = normal(3, 1, 2, rng=rng).requires_grad_()
        assert torch.autograd.gradcheck(lambda x: gp.moments(x), x)
        assert torch.autograd.gradgradcheck(lambda x: gp.moments(x), x)

    def test_leaving_one_out_is_refitting_without_it(self, rng):
        gp = process(SPD(2), rng, n=8)
        mean, variance = gp.leave_one_out()
        for k in range(8):
            rest = [j for j in range(8) if j != k]
            without = GP(gp.kernel, gp.x[rest], gp.z[rest], gp.lengthscale, gp.mean, gp.scale, gp.noise)
            expected_mean, expected_variance = without.moments(gp.x[k : k + 1])
            torch.testing.assert_close(mean[k : k + 1], expected_mean, rtol=1e-9, atol=1e-9)
            noisy = expected_variance + gp.scale * gp.noise
            torch.testing.assert_close(variance[k : k + 1], noisy, rtol=1e-9, atol=1e-9)


class TestLikelihood:
    """negative_log_likelihood: derivatives, and profiled mean and scale."""

    def setup(self, rng, name="matern52"):
        space = Product(Sphere(2), SPD(2)) if name != "heat" else Sphere(3)
        k, x = kernel(name, space), space.random(9, rng=rng)
        parameters = torch.cat([k.median_lengthscale.log(), torch.tensor([math.log(1e-2)], dtype=torch.float64)])
        return k, k.statistic(x, x), normal(9, rng=rng), parameters

    @pytest.mark.parametrize("priors", [True, False])
    @pytest.mark.parametrize("name", ["matern52", "gaussian", "heat"])
    def test_the_gradient_agrees_with_differences(self, name, priors, rng):
        k, statistic, z, parameters = self.setup(rng, name)
        f = lambda p: negative_log_likelihood(k, p, statistic, z, priors)
        assert torch.autograd.gradcheck(f, parameters.requires_grad_())

    @pytest.mark.parametrize("priors", [True, False])
    def test_mean_and_scale_are_those_of_an_explicit_minimisation(self, priors, rng):
        k, statistic, z, parameters = self.setup(rng)
        gram = self.gram(k, statistic, parameters)
        best = scipy.optimize.minimize(lambda p: self.explicit(gram, z, *p, priors), [0.0, 0.0], tol=1e-12)
        ours = negative_log_likelihood(k, parameters, statistic, z, priors).item()
        prior = self.parameter_prior(k, parameters) if priors else 0.0
        constant = self.constant(len(z), priors)
        assert ours + constant == pytest.approx(best.fun + prior, abs=1e-6)

    def gram(self, k, statistic, parameters):
        lengthscale = parameters[:-1].exp()
        return k.correlate(statistic, lengthscale[None, None]) + parameters[-1].exp() * torch.eye(len(statistic))

    def explicit(self, gram, z, mean, log_scale, priors):
        """−log N(z | mean, scale · gram), less the log density of an inverse gamma prior with shape 1 and rate 1.5."""
        scale = math.exp(log_scale)
        normal = torch.distributions.MultivariateNormal(torch.full_like(z, mean), scale * gram)
        prior = 2 * log_scale + 1.5 / scale if priors else 0.0
        return -normal.log_prob(z).item() + prior

    def parameter_prior(self, k, parameters):
        return (((parameters[-1] - math.log(1e-4)) / 3) ** 2 / 2 - k.log_prior(parameters[:-1])).item()

    def constant(self, n, priors):
        """What the profiled form leaves out: n/2 log 2π, and the residual at the best scale, its weight."""
        return n / 2 * math.log(2 * math.pi) + n / 2 + (2 if priors else 0)

    def test_batches_are_their_elements(self, rng):
        k, statistic, z, parameters = self.setup(rng)
        several = parameters + 0.3 * normal(4, len(parameters), rng=rng)
        together = negative_log_likelihood(k, several, statistic, z, True)
        alone = torch.stack([negative_log_likelihood(k, p, statistic, z, True) for p in several])
        torch.testing.assert_close(together, alone)

    def test_an_indefinite_matrix_is_not_a_number_and_leaves_the_others_alone(self, rng):
        k, statistic, z, parameters = self.setup(rng)
        broken = torch.stack([statistic, statistic.clone()])
        broken[1, 0, 1] = broken[1, 1, 0] = -5.0
        value = negative_log_likelihood(k, parameters, broken, z, False)
        assert value[0].isfinite()
        assert value[1].isnan()


class TestFit:
    def test_it_is_at_least_as_good_as_any_parameters_near_the_prior(self, rng):
        space = Sphere(3)
        x, k = space.random(20, rng=rng), kernel("matern52", space)
        y = x[:, 0].sin() + x[:, 1] * x[:, 2]
        surrogate = fit_one("matern52", space, x, y)
        statistic, z = k.statistic(x, x), surrogate.gp.z[0]
        loss = lambda p: negative_log_likelihood(k, p, statistic, z, True)
        found = loss(parameters_of(surrogate))
        low, high = (bound.log() for bound in k.lengthscale_bounds)
        grid = torch.cartesian_prod(torch.linspace(low.item(), high.item(), 40), torch.linspace(-13.8, 0, 30)).double()
        assert found <= loss(grid).nan_to_num(nan=torch.inf).min() + 1e-3

    def test_it_predicts_a_smooth_function(self, rng):
        for space in (Sphere(2), SPD(2, eigenvalues=(0.5, 2)), Product(Sphere(2), Box(0, 1))):
            f = lambda x, space=space: space.embed(x).sum(-1).sin()
            x, test = space.random(60, rng=rng), space.random(200, rng=rng)
            surrogate = fit_one("matern52", space, x, f(x))
            error = surrogate.predict(test.unsqueeze(0))[0] - f(test)
            assert error.square().mean() < 0.02 * f(test).var()

    def test_it_is_neither_constant_nor_white_noise_with_five_points_in_fifty_dimensions(self, rng):
        """Neighbours of an observation are predicted like it, and strangers are not."""
        space = Sphere(50)
        x = space.random(5, rng=rng)
        y = torch.tensor([1.0, 2.0, 3.0, 4.0, 10.0], dtype=torch.float64)
        surrogate = fit_one("matern52", space, x, y)
        apart = surrogate.gp.kernel.correlation(x, x, surrogate.gp.lengthscale[0]).triu(1).max().item()
        assert 0.05 < apart < 0.95
        near = surrogate.predict(space.exp(x, 0.2 * space.random_tangent(x, rng)).unsqueeze(0))[0]
        assert near[4] - near[:4].max() > 1
        far = surrogate.gp.moments(space.random(1, 3, rng=rng))[1]
        assert (far > 1.5 * surrogate.gp.moments(x.unsqueeze(0))[1].max()).all()

    def test_noise_is_told_from_signal(self, rng):
        x = Box(0, 1).random(80, rng=rng)
        clean = (6 * x[:, 0]).sin()
        for deviation in (0.01, 0.3):
            y = clean + deviation * normal(80, rng=rng)
            gp = fit_one("gaussian", Box(0, 1), x, y).gp
            assert (gp.noise * gp.scale).sqrt().item() * y.std().item() == pytest.approx(deviation, rel=0.35)

    def test_a_batch_of_runs_is_its_single_runs(self, rng):
        space = SPD(2)
        x, y = space.random(3, 10, rng=rng), normal(3, 10, rng=rng)
        y[1] *= 1e6
        model = Description(kernel("matern52", space))
        together = fit(model, Data(x, y, generators(3)))
        test = space.random(5, rng=rng)
        for k in range(3):
            alone = fit(model, Data(x[k : k + 1], y[k : k + 1], generators(3)[k : k + 1]))
            torch.testing.assert_close(parameters_of(together, k), parameters_of(alone), rtol=0, atol=1e-4)
            expected = alone.predict(test.unsqueeze(0))[0]
            torch.testing.assert_close(together.predict(test.expand(3, 5, 2, 2))[k], expected, rtol=1e-4, atol=1e-4)

    def test_a_previous_fit_is_where_the_next_begins(self, rng):
        x = Sphere(3).random(15, rng=rng)
        y = x[:, 0].sin()
        first = fit_one("matern52", Sphere(3), x, y)
        again = fit_one("matern52", Sphere(3), x, y, first.fits)
        torch.testing.assert_close(parameters_of(again), parameters_of(first), rtol=0, atol=0.05)

    def test_without_effort_a_previous_fit_is_taken_over_to_the_last_bit(self, rng, monkeypatch):
        """Nothing is minimised, and no random number is drawn."""
        x = Sphere(3).random(15, rng=rng)
        y = x[:, 0].sin()
        first = fit_one("matern52", Sphere(3), x, y)
        monkeypatch.setattr(import_module("nestbo.surrogate.fitting"), "lbfgs", None)
        data = Data(x.unsqueeze(0), y.unsqueeze(0), generators(1))
        before = data.rngs[0].get_state()
        again = fit(Description(kernel("matern52", Sphere(3))), data, first.fits, Effort.NONE)
        assert again.fits == first.fits
        assert torch.equal(data.rngs[0].get_state(), before)
        for name in ("lengthscale", "noise", "mean", "scale", "weights"):
            assert torch.equal(getattr(again.gp, name), getattr(first.gp, name)), name

    def test_a_fit_of_other_data_is_taken_over_with_shorter_length_scales_if_need_be(self, rng):
        """The kernel is indefinite for points on a circle at length scales at which it is not for others."""
        found = kernel("geodesic-gaussian", Sphere(20))
        angle = torch.linspace(0, 2 * torch.pi, 61, dtype=torch.float64)[:60]
        circle = torch.zeros(60, 21, dtype=torch.float64)
        circle[:, 0], circle[:, 1] = angle.cos(), angle.sin()
        data = Data(circle.unsqueeze(0), circle[:, :1].mT.clone(), generators(1))
        longest = found.lengthscale_bounds[1].log().item()
        previous = [Fit((longest, -25.0), 60)]
        gp = fit(Description(found), data, previous, Effort.NONE).gp
        assert gp.lengthscale.log().item() < longest
        assert gp.moments(circle.unsqueeze(0))[0].isfinite().all()

    def test_who_has_no_previous_fit_starts_anew_whatever_the_effort(self, rng):
        x = Sphere(3).random(15, rng=rng)
        fits = [fit_one("matern52", Sphere(3), x, x[:, 0].sin(), effort=effort).fits for effort in Effort]
        assert fits[0] == fits[1] == fits[2]

    def test_a_fit_that_starts_anew_does_not_depend_on_the_one_before(self, rng):
        x = Sphere(3).random(15, rng=rng)
        far = [Fit((3.0, -1.0), 15)]
        fits = [fit_one("matern52", Sphere(3), x, x[:, 0].sin(), p, Effort.ANEW).fits for p in (None, far)]
        assert fits[0] == fits[1]

    def test_fits_say_how_many_evaluations_there_were(self, rng):
        x = Sphere(3).random(15, rng=rng)
        (found,) = fit_one("matern52", Sphere(3), x, x[:, 0]).fits
        assert found == Fit(found.parameters, 15)

    def test_predictions_move_by_deviations(self, rng):
        x = Sphere(2).random(10, rng=rng)
        y = 100 + 50 * x[:, 0]
        surrogate = fit_one("matern52", Sphere(2), x, y)
        test = Sphere(2).random(1, 4, rng=rng)
        low, middle, high = (surrogate.predict(test, deviations) for deviations in (-2, 0, 2))
        assert (low < middle).all()
        assert (middle < high).all()
        torch.testing.assert_close(high - middle, middle - low)
        _, variance = surrogate.gp.moments(test)
        torch.testing.assert_close((high - low) / 4, variance.sqrt() * y.std(correction=0))


def last_bit(x):
    """Points that differ from x in the last bit of one coordinate."""
    y = x.clone()
    y[:, 0] = torch.nextafter(y[:, 0], torch.full_like(y[:, 0], 2))
    return y


def great_circle(dim, count):
    angle = 2 * math.pi * torch.arange(count, dtype=torch.float64) / count
    x = torch.zeros(count, dim + 1, dtype=torch.float64)
    x[:, 0], x[:, 1] = angle.cos(), angle.sin()
    return x


class TestRobustness:
    """A fit does not raise, and predicts finite numbers."""

    space = Sphere(3)

    @pytest.mark.parametrize("outputs", OUTPUTS.values(), ids=OUTPUTS)
    @pytest.mark.parametrize("priors", [True, False], ids=["priors", "likelihood"])
    @pytest.mark.parametrize("name", ["matern52", "gaussian", "geodesic-gaussian", "heat"])
    def test_odd_data(self, name, priors, outputs, rng, request):
        """The default kernel with everything, the others as the default and as the paper have them."""
        usual = (priors, outputs) in ((True, OUTPUTS["bilog"]), (False, OUTPUTS["standardise"]))
        if name != "matern52" and not usual and not request.config.getoption("--full"):
            pytest.skip("a long version: --full")
        x = self.space.random(8, rng=rng)
        y = x[:, 0] + x[:, 1] ** 2
        cases = {
            "duplicates": (torch.cat([x, x]), torch.cat([y, y])),
            "contradictions": (torch.cat([x, x]), torch.cat([y, -y])),
            "constant": (x, torch.full_like(y, 0.1)),
            "zero": (x, torch.zeros_like(y)),
            "huge": (x, 1e300 * y),
            "tiny": (x, 1e-300 * y),
            "an outlier": (x, torch.where(y == y.max(), 1e300, y)),
            "one": (x[:1], y[:1]),
            "two": (x[:2], y[:2]),
            "two equal": (x[:1].expand(2, -1), y[:1].expand(2)),
            "fifty identical points": (x[:1].expand(50, -1), normal(50, rng=rng)),
            "the last bit": (torch.cat([x, last_bit(x)]), torch.cat([y, last_bit(y.unsqueeze(-1)).squeeze(-1)])),
            "values apart in the last bit": (x, torch.nextafter(torch.ones_like(y), 2 * y.sign())),
            "a great circle": (great_circle(3, 40), great_circle(3, 40)[:, 0]),
        }
        test = torch.cat([x[:2], -x[:2], self.space.random(3, rng=rng)])
        for case, (points, values) in cases.items():
            surrogate = fit_one(name, self.space, points, values, priors=priors, outputs=outputs.fit)
            mean, variance = surrogate.gp.moments(test.unsqueeze(0))
            assert mean.isfinite().all(), case
            assert (variance.isfinite() & (variance > 0)).all(), case
            assert surrogate.predict(test.unsqueeze(0)).isfinite().all(), case
            assert all(math.isfinite(p) for p in surrogate.fits[0].parameters), case

    def test_an_indefinite_kernel_falls_back_and_says_so(self):
        """The geodesic Gaussian on a great circle of S^50, where its least eigenvalue is −0.5 at β_min."""
        x = great_circle(50, 100)
        median = kernel("geodesic-gaussian", Sphere(50)).median_lengthscale.log().item()
        surrogate = fit_one("geodesic-gaussian", Sphere(50), x, x[:, 0], [Fit((median, math.log(1e-4)), 0)])
        assert surrogate.predict(x.unsqueeze(0)).isfinite().all()
        assert surrogate.fits[0].failed

    def test_data_at_the_bounds_of_matrices(self, rng):
        space = SPD(2, eigenvalues=(1e-3, 5))
        x = space.project(10 * normal(20, 2, 2, rng=rng))
        surrogate = fit_one("matern52", space, x, x.diagonal(dim1=-2, dim2=-1).sum(-1))
        assert surrogate.predict(x.unsqueeze(0)).isfinite().all()


VALUES = {
    "ordinary": [1.0, 2.0, -3.0, 0.5, 100.0],
    "huge": [1e300, -2e300, 5e299],
    "tiny": [1e-300, -2e-300, 5e-301],
    "far from zero": [1e6, 1e6 + 1, 1e6 + 3],
    "two": [0.0, 1.0],
}


def test_half_log_sees_the_better_half_however_high_the_others_are():
    y = torch.tensor([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 1e6]], dtype=torch.float64)
    steps = HalfLog.fit(y).forward(y).diff()[0]
    torch.testing.assert_close(steps[:3], steps[:1].expand(3))
    assert steps[0] > 0.05
    assert Standardise.fit(y).forward(y).diff()[0, 0] < 1e-5


@pytest.mark.parametrize("family", OUTPUTS.values(), ids=OUTPUTS)
class TestOutputs:
    cases = pytest.mark.parametrize("case", VALUES)

    @cases
    def test_there_and_back(self, family, case):
        y = torch.tensor([VALUES[case]], dtype=torch.float64)
        outputs = family.fit(y)
        torch.testing.assert_close(outputs.inverse(outputs.forward(y)) / y.abs().max(), y / y.abs().max())

    @cases
    def test_mean_zero_and_deviation_one(self, family, case):
        y = torch.tensor([VALUES[case]], dtype=torch.float64)
        z = family.fit(y).forward(y)
        assert z.mean().item() == pytest.approx(0, abs=1e-9)
        assert z.square().mean().item() == pytest.approx(1, abs=1e-8)

    @cases
    def test_the_order_is_kept(self, family, case):
        y = torch.tensor([VALUES[case]], dtype=torch.float64)
        outputs, grid = family.fit(y), torch.linspace(-3, 3, 50, dtype=torch.float64)
        line = y.mean() + grid * (y - y.mean()).abs().max()
        assert (outputs.forward(line.unsqueeze(0)).diff() > 0).all()
        assert (outputs.inverse(grid.unsqueeze(0)).diff() > 0).all()

    def test_constants_are_zero(self, family):
        for value in (0.1, 0.0, -7e300, 1e-310, 3.0):
            y = torch.full((1, 7), value, dtype=torch.float64)
            outputs = family.fit(y)
            assert (outputs.forward(y) == 0).all()
            torch.testing.assert_close(outputs.inverse(torch.zeros(1, 7, dtype=torch.float64)), y, rtol=1e-12, atol=0)

    def test_runs_are_independent(self, family, rng):
        y = torch.tensor([[1.0], [1e-200], [1e200]], dtype=torch.float64) * normal(3, 6, rng=rng)
        together = family.fit(y).forward(y)
        for k in range(3):
            torch.testing.assert_close(together[k], family.fit(y[k]).forward(y[k]))


def test_bilog_tames_a_steep_function():
    y = torch.tensor([[0.0, 1.0, 2.0, 3.0, 1e6]], dtype=torch.float64)
    plain, tamed = Standardise.fit(y).forward(y), Bilog.fit(y).forward(y)
    assert tamed[0, -1] <= plain[0, -1]
    steep = 10.0 ** torch.arange(8, dtype=torch.float64).unsqueeze(0)
    spread = lambda z: (z[0, 6] - z[0, 4]) / (z[0, 7] - z[0, 6])
    assert spread(Bilog.fit(steep).forward(steep)) > 1.2 * spread(Standardise.fit(steep).forward(steep))


def test_a_surrogate_is_a_value(rng):
    surrogate = fit_one("matern52", Sphere(2), Sphere(2).random(5, rng=rng), normal(5, rng=rng))
    assert replace(surrogate, fits=()).gp is surrogate.gp
