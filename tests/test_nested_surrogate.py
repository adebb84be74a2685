"""The nested surrogate: what it predicts, what its fit minimises, and that it finds subspaces."""

import json
import math
from importlib import import_module

import pytest
import scipy.optimize
import torch

from nestbo import SPD, Product, Sphere
from nestbo.kernels import kernel
from nestbo.memory import Fit, Memory
from nestbo.nested import NestedSphere, Nesting
from nestbo.outputs import Standardise
from nestbo.surrogate import CRITERIA, GP, Data, Description, Effort, fit, leave_one_out

SPHERES = Nesting(Sphere(4), Sphere(1))
MATRICES = Nesting(SPD(3), SPD(1))
BOTH = Nesting(Product(Sphere(3), SPD(3)), Product(Sphere(1), SPD(3)))
NESTINGS = [SPHERES, MATRICES, BOTH, Nesting(SPD(3), SPD(2), logarithmic=True)]
nestings = pytest.mark.parametrize("nesting", NESTINGS, ids=repr)
criteria = pytest.mark.parametrize("criterion", CRITERIA.values(), ids=CRITERIA)


def normal(*shape, rng):
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def generators(count):
    return [torch.Generator().manual_seed(k) for k in range(count)]


def on(nesting):
    return kernel("matern52", nesting.latent)


def hidden(nesting, n, rng, runs=1):
    """A basis, points, and values of a smooth function of their projections."""
    truth = nesting.bases.random(runs, rng=rng)
    x = nesting.ambient.random(runs, n, rng=rng)
    e = nesting.latent.embed(nesting.at(truth).project(x))
    return truth, x, (2 * e[..., 0]).sin() + e.square().sum(-1) + e[..., -1]


def loss_at(nesting, criterion, basis, parameters, x, y, priors=True):
    """The criterion of one run at a basis and parameters."""
    k, latent = on(nesting), nesting.project(basis, nesting.prepare(x))
    return criterion(k, parameters, k.statistic(latent, latent), Standardise.fit(y).forward(y), priors)


def medians(nesting, noise=1e-4):
    return torch.cat([on(nesting).median_lengthscale.log(), torch.tensor([math.log(noise)], dtype=torch.float64)])


def fit_nested(nesting, x, y, previous=None, effort=Effort.FEW_STEPS, guess=None, noise=None, rngs=None, **options):
    """One generator for each run."""
    data = Data(x, y, rngs or generators(len(x)), noise)
    return fit(Description(on(nesting), nesting, **options), data, previous, effort, guess=guess)


def fit_at(basis, parameters):
    """A fit with this basis and these parameters."""
    return Fit(tuple(parameters.tolist()), 0, tuple(basis.flatten().tolist()))


def fitted(nesting, found):
    """The basis and the parameters of a fit."""
    basis, parameters = (torch.tensor(part, dtype=torch.float64) for part in (found.basis, found.parameters))
    return basis.reshape(nesting.bases.point_shape), parameters


def through_json(*fits):
    """Fits as they come back from a file."""
    written = json.dumps([Memory(fits={"nested": each}).json for each in fits], allow_nan=False)
    return tuple(Memory.of(each).fits["nested"] for each in json.loads(written))


class TestPrediction:
    @nestings
    def test_it_is_that_at_the_projection(self, nesting, rng):
        _, x, y = hidden(nesting, 12, rng)
        surrogate = fit_nested(nesting, x, y)
        test = nesting.ambient.random(5, 1, 3, rng=rng)
        z = surrogate.mapping.project(test)
        mean, variance = surrogate.gp.moments(z)
        for deviations in (0.0, 1.5):
            expected = surrogate.outputs.inverse(mean + deviations * variance.sqrt())
            torch.testing.assert_close(surrogate.predict(test, deviations), expected)
        elsewhere = surrogate.mapping.lift_near(z, nesting.ambient.random(5, 1, 3, rng=rng))
        torch.testing.assert_close(surrogate.predict(elsewhere), surrogate.predict(test), rtol=0, atol=1e-6)
        torch.testing.assert_close(surrogate.latent_points, surrogate.mapping.project(x))

    def test_it_is_good_with_the_right_subspace_and_not_without(self, rng):
        """Of the same process on a random one."""
        truth, x, y = hidden(SPHERES, 60, rng)
        surrogate = fit_nested(SPHERES, x, y, guess=truth)
        other = NestedSphere.random(Sphere(4), Sphere(1), rng)
        astray = GP(
            on(SPHERES),
            other.project(x[0]),
            surrogate.gp.z[0],
            *(
                part[0]
                for part in (surrogate.gp.lengthscale, surrogate.gp.mean, surrogate.gp.scale, surrogate.gp.noise)
            ),
        )
        test = Sphere(4).random(200, rng=rng)
        e = SPHERES.at(truth[0]).project(test)
        values = (2 * e[:, 0]).sin() + 1 + e[:, -1]
        error = surrogate.predict(test.unsqueeze(0))[0] - values
        assert error.square().mean() < 0.01 * values.var()
        wrong = surrogate.outputs.inverse(astray.moments(other.project(test))[0].unsqueeze(0))[0] - values
        assert wrong.square().mean() > 0.2 * values.var()


class TestCriteria:
    @nestings
    @criteria
    @pytest.mark.parametrize("priors", [True, False])
    def test_the_gradient_agrees_with_differences(self, nesting, criterion, priors, rng):
        """In the basis and in the parameters."""
        truth, x, y = hidden(nesting, 7, rng)
        basis, parameters = truth[0].requires_grad_(), medians(nesting, 1e-2).requires_grad_()
        f = lambda basis, parameters: loss_at(nesting, criterion, basis, parameters, x[0], y[0], priors)
        assert torch.autograd.gradcheck(f, (basis, parameters))

    @criteria
    @pytest.mark.parametrize("nesting", [SPHERES, NESTINGS[3]], ids=repr)
    def test_bases_of_one_span_are_equal(self, nesting, criterion, rng):
        truth, x, y = hidden(nesting, 9, rng)
        turn = SPD(2).random(rng=rng)
        turned = truth[0] @ torch.linalg.eigh(turn).eigenvectors
        losses = [loss_at(nesting, criterion, w, medians(nesting), x[0], y[0]) for w in (truth[0], turned)]
        torch.testing.assert_close(*losses, rtol=0, atol=1e-8)

    @pytest.mark.parametrize("priors", [True, False])
    def test_leaving_one_out_is_predicting_each_from_the_others(self, priors, rng):
        """Brute force over the scale, at the most likely mean; an inverse gamma prior with shape 1 and rate 1.5."""
        k, x, z = kernel("matern52", Sphere(2)), Sphere(2).random(8, rng=rng), normal(8, rng=rng)
        parameters = torch.tensor([-0.3, math.log(1e-2)], dtype=torch.float64)
        gram = k.correlation(x, x, parameters[:-1].exp()) + 1e-2 * torch.eye(8, dtype=torch.float64)
        weights = torch.linalg.solve(gram, torch.ones(8, dtype=torch.float64))
        mean = (weights @ z / weights.sum()).item()
        shape, rate = (1.0, 1.5) if priors else (-1.0, 0.0)
        brute = lambda s: self.brute(gram, z, mean, math.exp(s)) + (shape + 1) * s + rate / math.exp(s)
        least = scipy.optimize.minimize_scalar(brute, bounds=(-10, 10), options={"xatol": 1e-10}).fun
        constant = 4 * math.log(2 * math.pi) + 4 + (shape + 1)
        prior = ((parameters[-1] - math.log(1e-4)) / 3) ** 2 / 2 - k.log_prior(parameters[:-1]) if priors else 0.0
        ours = leave_one_out(k, parameters, k.statistic(x, x), z, priors)
        assert ours.item() + constant == pytest.approx(least + float(prior), abs=1e-7)

    def brute(self, gram, z, mean, scale, total=0.0):
        for k in range(len(z)):
            rest = [j for j in range(len(z)) if j != k]
            inverse = torch.linalg.inv(gram[rest][:, rest])
            centre = mean + gram[k, rest] @ inverse @ (z[rest] - mean)
            variance = scale * (gram[k, k] - gram[k, rest] @ inverse @ gram[rest, k])
            total -= torch.distributions.Normal(centre, variance.sqrt()).log_prob(z[k]).item()
        return total

    def test_known_noise_gives_the_scale_when_leaving_one_out(self, rng):
        """As in the likelihood: scale = known noise / relative noise, which is what the process gets in the end."""
        k, x, z = kernel("matern52", Sphere(2)), Sphere(2).random(8, rng=rng), normal(8, rng=rng)
        parameters = torch.tensor([-0.3, math.log(1e-2)], dtype=torch.float64)
        gram = k.correlation(x, x, parameters[:-1].exp()) + 1e-2 * torch.eye(8, dtype=torch.float64)
        weights = torch.linalg.solve(gram, torch.ones(8, dtype=torch.float64))
        mean, statistic = (weights @ z / weights.sum()).item(), k.statistic(x, x)
        losses = [leave_one_out(k, parameters, statistic, z, False, torch.tensor([v])).item() for v in (0.01, 0.05)]
        wanted = [self.brute(gram, z, mean, v / 1e-2) for v in (0.01, 0.05)]
        assert losses[1] - losses[0] == pytest.approx(wanted[1] - wanted[0], abs=1e-6)

    def test_an_indefinite_matrix_is_not_a_number_and_leaves_the_others_alone(self, rng):
        k, x, z = kernel("matern52", Sphere(2)), Sphere(2).random(6, rng=rng), normal(6, rng=rng)
        statistic = k.statistic(x, x)
        broken = torch.stack([statistic, statistic.clone()])
        broken[1, 0, 1] = broken[1, 1, 0] = -5.0
        value = leave_one_out(k, torch.tensor([0.0, -5.0], dtype=torch.float64), broken, z, False)
        assert value[0].isfinite()
        assert value[1].isnan()


class TestFit:
    @criteria
    @nestings
    def test_it_is_no_worse_than_its_starts(self, nesting, criterion, rng):
        truth, x, y = hidden(nesting, 10, rng)
        options = {"criterion": criterion}
        guessed = fit_nested(nesting, x, y, guess=truth, **options)
        at = lambda basis, parameters: loss_at(nesting, criterion, basis, parameters, x[0], y[0]).item()
        assert guessed.loss.item() <= at(truth[0], medians(nesting)) + 1e-9
        assert at(*fitted(nesting, guessed.fits[0])) <= guessed.loss.item() + 1e-6
        previous = [fit_at(nesting.bases.random(rng=rng), medians(nesting, 1e-3))]
        start = at(*fitted(nesting, previous[0]))
        for effort in (Effort.FEW_STEPS, Effort.ANEW):
            surrogate = fit_nested(nesting, x, y, previous, effort, **options)
            assert surrogate.loss.item() < start

    def test_a_subspace_is_found_from_random_starts(self, rng):
        """Of a function of one number."""
        truth, x, y = hidden(MATRICES, 60, rng, runs=3)
        surrogate = fit_nested(MATRICES, x, y)
        assert (MATRICES.bases.dist(surrogate.mapping.basis, truth) < 0.01).all()

    @criteria
    @pytest.mark.parametrize("nesting", [SPHERES, MATRICES], ids=repr)
    def test_a_subspace_is_found_from_a_guess_nearby(self, nesting, criterion, rng):
        truth, x, y = hidden(nesting, 60, rng, runs=2)
        guess = nesting.bases.exp(truth, 0.1 * nesting.bases.random_tangent(truth, rng))
        surrogate = fit_nested(nesting, x, y, criterion=criterion, guess=guess)
        assert (nesting.bases.dist(surrogate.mapping.basis, truth) < 0.01).all()

    def test_active_directions_of_the_full_model_are_a_guess(self, rng):
        """They are nearer than chance, and a fit that begins there ends with the subspace, though not at once."""
        truth, x, y = hidden(SPHERES, 60, rng)
        full = fit(Description(kernel("matern52", Sphere(4))), Data(x, y, generators(1)))
        leaf = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(full.gp.moments(leaf)[0].sum(), leaf)
        guess, previous = SPHERES.active(Sphere(4).to_tangent(x, gradient)), None
        assert SPHERES.bases.dist(guess, truth) < 0.6
        for _ in range(12):  # one to nine were enough with six seeds; rounding decides
            surrogate = fit_nested(SPHERES, x, y, previous, Effort.ANEW, guess=guess)
            previous = surrogate.fits
        assert SPHERES.bases.dist(surrogate.mapping.basis, truth) < 0.05

    def test_a_subspace_of_a_product_is_found_from_a_guess_nearby(self, rng):
        truth = BOTH.bases.random(1, rng=rng)
        x = BOTH.ambient.random(1, 50, rng=rng)
        z, matrix = BOTH.latent.split(BOTH.at(truth).project(x))
        y = (2 * z[..., 0]).sin() + z[..., 1] + 0.1 * matrix.logdet()
        guess = BOTH.bases.exp(truth, 0.3 * BOTH.bases.random_tangent(truth, rng))
        surrogate = fit_nested(BOTH, x, y, guess=guess)
        assert BOTH.bases.dist(surrogate.mapping.basis, truth) < 0.1

    @pytest.mark.parametrize("nesting", [SPHERES, MATRICES, NESTINGS[3]], ids=repr)
    def test_a_batch_of_runs_is_its_single_runs(self, nesting, rng):
        _, x, y = hidden(nesting, 8, rng, runs=2)
        y[1] *= 1e6
        together = fit_nested(nesting, x, y)
        test = nesting.ambient.random(4, rng=rng)
        batch = together.predict(test.expand(2, *test.shape))
        for k in range(2):
            alone = fit_nested(nesting, x[k : k + 1], y[k : k + 1], rngs=generators(2)[k : k + 1])
            torch.testing.assert_close(together.loss[k], alone.loss[0], rtol=0, atol=1e-2)
            error = (batch[k] - alone.predict(test.unsqueeze(0))[0]).abs().max() / y[k].std()
            assert error < 0.05

    def test_a_previous_fit_is_where_the_next_begins(self, rng):
        _, x, y = hidden(MATRICES, 40, rng)
        first = fit_nested(MATRICES, x, y)
        again = fit_nested(MATRICES, x, y, first.fits)
        assert again.loss <= first.loss + 1e-9
        assert MATRICES.bases.dist(again.mapping.basis, first.mapping.basis) < 1e-3

    def test_a_fresh_fit_is_no_worse_than_one_that_knows_nothing(self, rng):
        """A previous fit to few data may be far off, and the way from there is barred by worse subspaces."""
        _, x, y = hidden(SPHERES, 60, rng, runs=4)
        early = fit_nested(SPHERES, x[:, :6], y[:, :6])
        later = fit_nested(SPHERES, x, y, early.fits, Effort.ANEW)
        anew = fit_nested(SPHERES, x, y)
        assert (later.loss <= anew.loss + 1e-3).all()

    @pytest.mark.parametrize("nesting", [SPHERES, BOTH], ids=repr)
    @pytest.mark.parametrize("effort", Effort)
    def test_fits_survive_json_to_the_last_bit(self, nesting, effort, rng):
        truth, x, y = hidden(nesting, 6, rng)
        first = fit_nested(nesting, x, y, [fit_at(truth[0], medians(nesting, 1 / 3))])
        read = through_json(*first.fits)
        assert read == first.fits
        fits = [fit_nested(nesting, x, y, previous, effort).fits for previous in (first.fits, read)]
        assert fits[0] == fits[1]

    @nestings
    def test_without_effort_a_previous_fit_is_taken_over_to_the_last_bit(self, nesting, rng, monkeypatch):
        """Nothing is minimised, and no random number is drawn."""
        _, x, y = hidden(nesting, 8, rng, runs=2)
        first, rngs = fit_nested(nesting, x, y), generators(2)
        before = [each.get_state() for each in rngs]
        monkeypatch.setattr(import_module("nestbo.surrogate.fitting"), "lbfgs", None)
        again = fit_nested(nesting, x, y, first.fits, Effort.NONE, rngs=rngs)
        assert again.fits == first.fits
        assert all(torch.equal(a.get_state(), b) for a, b in zip(rngs, before, strict=True))
        assert torch.equal(again.mapping.basis, first.mapping.basis)
        for name in ("x", "lengthscale", "noise", "mean", "scale", "weights"):
            assert torch.equal(getattr(again.gp, name), getattr(first.gp, name)), name

    def test_generators_decide(self, rng):
        _, x, y = hidden(SPHERES, 8, rng)
        same = [fit_nested(SPHERES, x, y).fits for _ in range(2)]
        assert same[0] == same[1]

    def test_of_very_many_data_a_fit_looks_at_the_best_and_some_others(self, rng, monkeypatch):
        """All of them are in the process all the same."""
        module = import_module("nestbo.surrogate.fitting")
        monkeypatch.setattr(module, "_FIT_POINTS", 10)
        _, x, y = hidden(SPHERES, 25, rng, runs=2)
        surrogate = fit_nested(SPHERES, x, y)
        assert [(found.seen, found.evaluations) for found in surrogate.fits] == [(10, 25)] * 2
        assert surrogate.gp.z.shape == (2, 25)
        points, values = module.representative(10, x, y)
        for k in range(2):
            best = y[k].sort().values
            assert set(best[:5].tolist()) < set(values[k].tolist()) < set(best.tolist())
            assert best[-1] in values[k]
            assert len(set(values[k].tolist())) == 10
            assert all((x[k][y[k] == v] == p).all() for p, v in zip(points[k], values[k], strict=True))

    def test_known_noise_is_kept(self, rng):
        _, x, y = hidden(SPHERES, 30, rng)
        y = y + 0.3 * normal(*y.shape, rng=rng)
        gp = fit_nested(SPHERES, x, y, noise=0.09).gp
        assert (gp.scale * gp.noise).item() * y.var(correction=0).item() == pytest.approx(0.09, rel=1e-6)

    @criteria
    @pytest.mark.parametrize("nesting", [SPHERES, NESTINGS[3]], ids=repr)
    def test_odd_data(self, nesting, criterion, rng):
        _, x, y = hidden(nesting, 5, rng)
        twice = torch.cat([x, x], 1)
        cases = {
            "duplicates, contradictions": (
                twice.repeat(2, *[1] * (x.ndim - 1)),
                torch.cat([y, y, y, -y]).reshape(2, 10),
            ),
            "constant, huge": (x.repeat(2, *[1] * (x.ndim - 1)), torch.cat([torch.full_like(y, 0.1), 1e300 * y])),
            "one point many times": (x[:, :1].expand_as(x), y),
            "one": (x[:, :1], y[:, :1]),
        }
        test = nesting.ambient.random(4, rng=rng)
        for case, (points, values) in cases.items():
            runs = len(points)
            surrogate = fit_nested(nesting, points, values, criterion=criterion)
            assert surrogate.predict(test.expand(runs, *test.shape)).isfinite().all(), case
            nesting.bases.check(surrogate.mapping.basis, 1e-8)
            assert through_json(*surrogate.fits) == surrogate.fits, case

    def test_an_indefinite_kernel_falls_back_and_says_so(self):
        """The geodesic Gaussian on a great circle, which the projection keeps."""
        angle = 2 * math.pi * torch.arange(100, dtype=torch.float64) / 100
        x = torch.zeros(1, 100, 12, dtype=torch.float64)
        x[..., 0], x[..., 1] = angle.cos(), angle.sin()
        nesting, k = Nesting(Sphere(11), Sphere(10)), kernel("geodesic-gaussian", Sphere(10))
        basis = torch.eye(12, 11, dtype=torch.float64)
        previous = [fit_at(basis, torch.cat([k.median_lengthscale.log(), torch.tensor([math.log(1e-4)]).double()]))]
        surrogate = fit(Description(k, nesting), Data(x, x[..., 0], generators(1)), previous)
        assert surrogate.predict(x).isfinite().all()
        assert surrogate.fits[0].failed
