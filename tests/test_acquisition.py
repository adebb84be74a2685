"""Acquisition functions through our process, their starts, and their maximiser on fakes with known answers."""

import math

import mpmath
import pytest
import torch

from nestbo import SPD, Box, Euclidean, Grassmann, Product, Simplex, Sphere, Stiefel
from nestbo.acquisition import ACQUISITIONS, OPTIMISERS, Question, candidates, improvement, maximise
from nestbo.kernels import kernel
from nestbo.surrogate import GP

ANYWHERE = ("lbfgs", "trust-region")  # SLSQP is for some spaces, see test_baselines.py
optimisers = pytest.mark.parametrize("optimiser", [OPTIMISERS[name] for name in ANYWHERE], ids=ANYWHERE)
acquisitions = pytest.mark.parametrize("name", ACQUISITIONS)
BOUNDED = SPD(2, eigenvalues=(0.1, 5))


def process(space, rng, runs=(), n=8):
    k = kernel("matern52", space)
    x = space.random(*runs, n, rng=rng)
    full = lambda value: torch.full(runs, value, dtype=torch.float64)
    scales = k.median_lengthscale.expand(*runs, -1)
    values = torch.randn(*runs, n, generator=rng, dtype=torch.float64)
    return GP(k, x, values, scales, full(0.1), full(1.3), full(1e-4))


def vector(*entries):
    return torch.tensor(entries, dtype=torch.float64)


def log_ei(u):
    """log(φ(u) + u Φ(u)) and its pieces over it, to 80 digits."""
    with mpmath.workdps(80):
        u = mpmath.mpf(u)
        density, mass = mpmath.npdf(u), mpmath.ncdf(u)
        ei = density + u * mass
        return float(mpmath.log(ei)), float(density / ei), float(mass / ei)


class TestValues:
    depths = pytest.mark.parametrize("depth", [-3, 0, 1, 2, 5, 10, 20, 40, 100, 1000])

    @depths
    def test_log_expected_improvement_and_its_gradient_deep_in_the_tail(self, depth, rng):
        """The best value lies ``depth`` standard deviations below the mean."""
        gp, x = process(Euclidean(2), rng), vector(0.4, -0.3).requires_grad_()
        mean, deviation, slopes = self.moments(gp, x)
        best = mean - depth * deviation
        acquisition = ACQUISITIONS["logei"](Question(gp, best, None, 0))
        value = acquisition(x.reshape(1, 1, 2))
        (gradient,) = torch.autograd.grad(value.sum(), x)
        u = (best.item() - mean.item()) / deviation.item()
        log_h, density, mass = log_ei(u)
        assert value.item() == pytest.approx(log_h + math.log(deviation.item()), rel=1e-10)
        expected = (density * slopes[1] - mass * slopes[0]) / deviation
        torch.testing.assert_close(gradient, expected, rtol=1e-6, atol=1e-8)

    def moments(self, gp, x):
        """Mean and deviation at x, and their gradients."""
        mean, variance = gp.moments(x.reshape(1, 2))
        deviation = variance.sqrt()
        slopes = [torch.autograd.grad(part, x, retain_graph=True)[0] for part in (mean, deviation)]
        return mean.detach()[0], deviation.detach()[0], slopes

    def test_expected_improvement_is_the_closed_form(self, rng):
        gp, x = process(Sphere(3), rng), Sphere(3).random(10, rng=rng)
        best = gp.z.min()
        mean, variance = gp.moments(x)
        standard, deviation = torch.distributions.Normal(0, 1), variance.sqrt()
        u = (best - mean) / deviation
        expected = deviation * (standard.log_prob(u).exp() + u * standard.cdf(u))
        torch.testing.assert_close(ACQUISITIONS["ei"](Question(gp, best, None, 0))(x.unsqueeze(-2)), expected)
        logarithm = ACQUISITIONS["logei"](Question(gp, best, None, 0))(x.unsqueeze(-2))
        torch.testing.assert_close(logarithm, expected.log())

    def test_the_confidence_bound_is_two_deviations_below_the_mean(self, rng):
        gp, x = process(SPD(2), rng), SPD(2).random(10, rng=rng)
        mean, variance = gp.moments(x)
        value = ACQUISITIONS["ucb"](Question(gp, gp.z.min(), None, 0))(x.flatten(-2).unsqueeze(-2))
        torch.testing.assert_close(value, -(mean - 2 * variance.sqrt()))

    @acquisitions
    @pytest.mark.parametrize("pending", [0, 2])
    def test_runs_are_independent(self, name, pending, rng):
        space = Sphere(3)
        gp, x = process(space, rng, runs=(3,)), space.random(4, 3, 1, rng=rng)
        waiting = space.random(3, pending, rng=rng) if pending else None
        best = gp.z.amin(-1)
        together = ACQUISITIONS[name](Question(gp, best, waiting, 5))(x)
        assert together.shape == (4, 3)
        for k in range(3):
            parts = (part[k] for part in (gp.lengthscale, gp.mean, gp.scale, gp.noise))
            one = GP(gp.kernel, gp.x[k], gp.z[k], *parts)
            alone = ACQUISITIONS[name](Question(one, best[k], None if waiting is None else waiting[k], 5))
            torch.testing.assert_close(together[:, k], alone(x[:, k]))

    def test_noisy_improvement_is_over_feasible_evaluations_only(self, rng):
        """Those whose values cannot be had do not count, however low they are and however few the others."""
        space = Sphere(3)
        gp, x = process(space, rng, runs=(1,), n=20), space.random(50, 1, 1, rng=rng)
        feasible = (gp.z > gp.z.median()) & (torch.arange(20) % 3 == 0)
        known = torch.where(feasible, gp.z, torch.inf).amin(-1)
        noisy = improvement("logei", gp, None, 0, noisy=True, feasible=feasible)(x)
        exact = ACQUISITIONS["logei"](Question(gp, known, None, 0))(x)
        assert (noisy - exact).abs().median() < 0.1


class TestPending:
    def test_joint_improvement_is_that_of_many_samples(self, rng):
        space = Sphere(2)
        gp, x, pending = process(space, rng), space.random(1, 1, rng=rng), space.random(2, rng=rng)
        best = gp.z.mean()
        joint = gp.posterior(torch.cat([x[0], pending])).distribution
        with torch.random.fork_rng():
            torch.manual_seed(0)
            samples = joint.rsample(torch.Size([200_000]))
        expected = (best - samples).clamp(min=0).amax(-1).mean().item()
        plain, logarithm = (ACQUISITIONS[name](Question(gp, best, pending, 0))(x) for name in ("ei", "logei"))
        assert plain.item() == pytest.approx(expected, rel=0.05)
        assert logarithm.exp().item() == pytest.approx(expected, rel=0.05)

    @acquisitions
    def test_a_point_that_cannot_be_computed_with_leaves_the_others_alone(self, name, rng):
        """A matrix whose eigenvalues are too different to be told from 0."""
        space = SPD(2)
        gp, x, pending = process(space, rng), space.random(3, 1, rng=rng), space.random(2, rng=rng)
        far = torch.tensor([[1e30, 1e30], [1e30, 1e30]], dtype=torch.float64) + torch.eye(2)
        acquisition = ACQUISITIONS[name](Question(gp, gp.z.min(), pending.flatten(-2), 0))
        found = acquisition(torch.cat([x, far.reshape(1, 1, 2, 2)]).flatten(-2))
        torch.testing.assert_close(found[:3], acquisition(x.flatten(-2)))
        assert found[3].isnan()

    @acquisitions
    @pytest.mark.parametrize("space", [Sphere(2), BOUNDED], ids=repr)
    def test_the_next_point_keeps_away_from_those_waiting(self, name, space, rng):
        gp = process(space, rng)
        pools = candidates(space, gp.x[None], gp.z[None], [rng], 128)
        batched = GP(
            gp.kernel, gp.x[None], gp.z[None], gp.lengthscale[None], gp.mean[None], gp.scale[None], gp.noise[None]
        )
        found, best = [], gp.z.min().reshape(1)
        for _ in range(3):
            waiting = torch.stack(found, 1).flatten(2) if found and len(space.point_shape) > 1 else None
            waiting = torch.stack(found, 1) if found and waiting is None else waiting
            point, _ = maximise(ACQUISITIONS[name](Question(batched, best, waiting, 0)), space, pools)
            found.append(point)
        points = torch.cat(found)
        space.check(points, 1e-9)
        apart = space.pairwise_dist(points, points) + 10 * torch.eye(3)
        assert apart.min() > 0.05 * space.typical_distance


class TestMaximise:
    """On closed-form stand-ins for an acquisition function: (…, runs, 1, size) ↦ (…, runs)."""

    def pools(self, space, runs, rng, count=32):
        return [space.random(count, runs, rng=rng) for _ in range(2)]

    def fake(self, space, f):
        return lambda x: f(x.squeeze(-2).unflatten(-1, space.point_shape))

    @optimisers
    @pytest.mark.parametrize(
        "space", [Sphere(4), SPD(2), Grassmann(5, 2), Euclidean(3), Product(Sphere(2), SPD(2))], ids=repr
    )
    def test_each_run_finds_its_own_maximum(self, space, optimiser, rng):
        targets = space.random(3, rng=rng)
        acquisition = self.fake(space, lambda x: -space.sq_dist(x, targets))
        x, value = maximise(acquisition, space, self.pools(space, 3, rng), optimiser=optimiser)
        assert space.dist(x, targets).max() < 1e-3
        assert value.max() <= 0
        assert value.min() > -1e-6

    @optimisers
    def test_a_maximum_on_the_bounds_of_eigenvalues(self, optimiser, rng):
        """tr(a x) is largest at the eigenvalue bounds, in the eigenvectors of a."""
        a = torch.tensor([[1.0, 0.5], [0.5, -2.0]], dtype=torch.float64)
        acquisition = self.fake(BOUNDED, lambda x: (a * x).sum((-1, -2)))
        x, value = maximise(acquisition, BOUNDED, self.pools(BOUNDED, 1, rng), optimiser=optimiser)
        values = torch.linalg.eigvalsh(a)
        assert value.item() == pytest.approx((5 * values[1] + 0.1 * values[0]).item(), rel=1e-5)
        torch.testing.assert_close(torch.linalg.eigvalsh(x[0]), vector(0.1, 5.0), rtol=0, atol=1e-6)
        BOUNDED.check(x, 1e-9)

    @optimisers
    def test_a_maximum_in_the_corner_of_a_product(self, optimiser, rng):
        space = Product(Sphere(2), Box(0, [1, 2]))
        direction = vector(0.0, 0.6, 0.8)
        f = lambda x: x[..., :3] @ direction + x[..., 3] - (x[..., 4] - 0.7) ** 2
        x, value = maximise(self.fake(space, f), space, self.pools(space, 1, rng), optimiser=optimiser)
        assert value.item() == pytest.approx(2, abs=1e-6)
        torch.testing.assert_close(x[0], torch.cat([direction, vector(1.0, 0.7)]), rtol=0, atol=1e-3)

    @optimisers
    def test_the_best_of_many_hills(self, optimiser, rng):
        peaks = Sphere(3).random(12, rng=rng)
        heights = torch.linspace(0.5, 1, 12, dtype=torch.float64)
        hills = lambda x: (heights * (30 * (x @ peaks.mT - 1)).exp()).sum(-1)
        pools = self.pools(Sphere(3), 1, rng, count=256)
        x, value = maximise(self.fake(Sphere(3), hills), Sphere(3), pools, optimiser=optimiser)
        others = torch.cat([peaks, Sphere(3).random(5000, rng=rng)])
        assert value.item() >= hills(others).max().item() - 1e-9
        assert value.item() == pytest.approx(hills(x[0]).item())

    @optimisers
    def test_candidates_without_a_value_are_passed_over(self, optimiser, rng):
        space = Sphere(2)
        f = lambda x: torch.where(x[..., 0] < 0, torch.nan, -((x[..., 0] - 0.5) ** 2))
        x, value = maximise(self.fake(space, f), space, self.pools(space, 2, rng), optimiser=optimiser)
        assert value.isfinite().all()
        torch.testing.assert_close(x[:, 0], vector(0.5, 0.5), rtol=0, atol=1e-3)

    @optimisers
    def test_runs_in_a_batch_are_runs_alone(self, optimiser, rng):
        space = Sphere(3)
        gp, pools = process(space, rng, runs=(3,)), self.pools(space, 3, rng, 64)
        best = gp.z.amin(-1)
        together, _ = maximise(ACQUISITIONS["logei"](Question(gp, best, None, 0)), space, pools, optimiser=optimiser)
        for k in range(3):
            parts = (part[k : k + 1] for part in (gp.x, gp.z, gp.lengthscale, gp.mean, gp.scale, gp.noise))
            alone = ACQUISITIONS["logei"](Question(GP(gp.kernel, *parts), best[k : k + 1], None, 0))
            x, _ = maximise(alone, space, [pool[:, k : k + 1] for pool in pools], optimiser=optimiser)
            torch.testing.assert_close(together[k], x[0], rtol=0, atol=1e-5)

    def test_nothing_of_the_pools_is_better(self, rng):
        space = BOUNDED
        gp, pools = process(space, rng, runs=(2,)), self.pools(space, 2, rng, 200)
        acquisition = ACQUISITIONS["logei"](Question(gp, gp.z.amin(-1), None, 0))
        _, value = maximise(acquisition, space, pools)
        assert (value >= acquisition(torch.cat(pools).flatten(-2).unsqueeze(-2)).amax(0)).all()

    @optimisers
    def test_a_maximum_beyond_the_bounds_is_taken_at_the_bound(self, optimiser, rng):
        space = BOUNDED
        top = 5 * torch.eye(2, dtype=torch.float64)
        acquisition = lambda x: -(space.embed(x.unflatten(-1, (2, 2))) - space.embed(2 * top)).square().sum((-1, -2))
        point, _ = maximise(acquisition, space, self.pools(space, 3, rng, 32), optimiser=optimiser)
        space.check(point, 1e-12)
        torch.testing.assert_close(point, top.expand(3, 2, 2), rtol=1e-3, atol=1e-3)


def alone(space, x, y, rng, count):
    """The candidates of one run."""
    return [pool.squeeze(1) for pool in candidates(space, x[None], y[None], [rng], count)]


class TestCandidates:
    SPACES = (
        Euclidean(2),
        Box([-1, 0], [1, 5]),
        Sphere(1),
        Sphere(20),
        SPD(3),
        SPD(3, eigenvalues=(1e-3, 5)),
        SPD(2, metric="log-euclidean", eigenvalues=(0.1, 10)),
        Grassmann(5, 2),
        Stiefel(4, 2),
        Product(Sphere(2), BOUNDED, Box(0, 1)),
    )

    @pytest.mark.parametrize("space", SPACES, ids=repr)
    @pytest.mark.parametrize("n", [1, 3, 10])
    def test_they_lie_in_the_space_and_within_its_bounds(self, space, n, rng):
        x = space.random(n, rng=rng)
        globally, locally = alone(space, x, torch.arange(n, dtype=torch.float64), rng, 31)
        for pool in (globally, locally):
            assert pool.shape == (31, *space.point_shape)
            space.check(pool, 1e-9)

    def test_local_ones_surround_the_best(self, rng):
        space = Sphere(10)
        x, y = space.random(20, rng=rng), torch.randn(20, generator=rng, dtype=torch.float64)
        _, locally = alone(space, x, y, rng, 200)
        distance = space.pairwise_dist(locally, x[y.argsort()[:4]])
        assert distance.amin(-1).max() <= 0.5 * space.typical_distance
        assert (distance.amin(0) < 0.01).all()
        assert distance.amin(-1).max() > 0.3

    @pytest.mark.parametrize("space", [Simplex(3), Product(Simplex(3), Sphere(2))], ids=repr)
    def test_local_ones_leave_a_face_of_the_simplex_in_no_preferred_direction(self, space, rng):
        """From a proportion of 0: all others, and the other factors, move as much."""
        x = torch.cat([vector(0.5, 0.3, 0.2, 0.0), vector(1.0, 0.0, 0.0)])[: space.point_shape[0]]
        _, locally = alone(space, x[None], vector(0.0), rng, 1000)
        moved = (space.embed(locally) - space.embed(x)).square().mean(0).sqrt()
        free = torch.tensor([True, True, True, False, False, True, True])[: len(x)]
        assert moved[free].min() > 0.5 * moved.max()

    def test_global_ones_reach_small_eigenvalues(self, rng):
        space = SPD(3, eigenvalues=(1e-3, 5))
        x = space.random(5, rng=rng)
        globally, _ = alone(space, x, torch.zeros(5, dtype=torch.float64), rng, 2000)
        small = lambda points: (torch.linalg.eigvalsh(points)[:, 0] < 0.02).double().mean().item()
        assert small(globally) > 2 * small(space.random(20_000, rng=rng))

    def test_they_come_from_their_generator(self):
        x = Sphere(2).random(5, rng=torch.Generator().manual_seed(0))
        draw = lambda seed: alone(Sphere(2), x, x[:, 0], torch.Generator().manual_seed(seed), 16)
        assert all(torch.equal(a, b) for a, b in zip(draw(1), draw(1), strict=True))
        assert not any(torch.equal(a, b) for a, b in zip(draw(1), draw(2), strict=True))
