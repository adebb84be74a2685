"""Rivals: their charts cover the spaces, their searches go on as they would have, TuRBO's region follows the paper."""

import importlib.util
import math
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
import torch
from botorch.optim.closures import get_loss_closure_with_grads
from botorch.optim.utils import get_parameters
from gpytorch.mlls import ExactMarginalLogLikelihood

from nestbo import SPD, ArgumentError, Box, Product, Quaternion, Rotation, Simplex, Sphere, Stiefel, Torus
from nestbo.experiment import SUITES, Trials, run
from nestbo.experiment.rivals import RIVALS, RPM, Local, Turbo, method, natural, tangent
from nestbo.experiment.rivals.density import density
from nestbo.experiment.rivals.posterior import Posterior
from nestbo.experiment.rivals.random_projection import Map, learned
from nestbo.experiment.rivals.stock import MODELS, process
from nestbo.experiment.rivals.turbo import _box, _candidates, region
from nestbo.experiment.rivals.turbo import _model as turbo_model

BOUNDED = SPD(3, eigenvalues=(1e-3, 5.0))
SPACES = [Sphere(4), SPD(2), BOUNDED, Box([-1, 0], [1, 5]), Torus(3), Simplex(3), Quaternion(), Rotation(3)]
SPACES += [Product(Quaternion(), Box(0, 1)), Product(Sphere(2), BOUNDED)]
TEXTS = [sample.specification for name in ("turbo", "botorch", "local", "rpm") for sample in RIVALS[name].samples()]
FOLDER = Path(__file__).parent.parent / "benchmarks"


class TestCharts:
    @pytest.mark.parametrize("space", SPACES, ids=repr)
    def test_the_natural_chart_covers_the_space(self, space, rng):
        cube, x = natural(space), space.random(20, rng=rng)
        u = cube.coordinates(x)
        assert u.shape == (20, cube.size)
        assert ((u >= 0) & (u <= 1)).all()
        assert (space.dist(cube.point(u), x) < 1e-5).all()
        corner = torch.rand(50, cube.size, generator=rng, dtype=torch.float64)
        assert (space.violation(cube.point(corner)) < 1e-8).all()

    @pytest.mark.parametrize("space", [Sphere(4), SPD(2, eigenvalues=(0.1, 5.0)), BOUNDED], ids=repr)
    def test_the_tangent_chart_has_its_base_in_the_middle(self, space, rng):
        base = space.random(rng=rng)
        cube = tangent(space, base)
        assert cube.size == space.dim
        middle = torch.full((cube.size,), 0.5, dtype=torch.float64)
        assert space.dist(cube.point(middle), base) < 1e-6
        x = space.retract(
            base.expand(10, *space.point_shape), 0.1 * space.random_tangent(base.expand(10, *space.point_shape), rng)
        )
        assert (space.dist(cube.point(cube.coordinates(x)), x) < 1e-6).all()

    def test_spaces_without_a_tangent_chart(self):
        with pytest.raises(ArgumentError, match="natural chart"):
            method("turbo:chart=tangent").check(Torus(2))


class TestRuns:
    @pytest.mark.parametrize("text", [*TEXTS, "turbo:chart=tangent"])
    def test_a_rival_starts_where_all_start_and_goes_on_as_if_it_had_not_stopped(self, text, tmp_path):
        trials = Trials("ackley", "sphere:2", text, (0,))
        straight = run(trials, 7, tmp_path / "a.npz")
        run(trials, 6, tmp_path / "b.npz")
        resumed = run(trials, 7, tmp_path / "b.npz")
        torch.testing.assert_close(resumed.y, straight.y, rtol=1e-9, atol=1e-12)
        others = run(Trials("ackley", "sphere:2", "randomsearch", (0,)), 6, tmp_path / "c.npz")
        assert torch.equal(straight.x[:, :5], others.x[:, :5])
        assert Sphere(2).violation(straight.x).max() < 1e-9

    def test_global_random_numbers_are_left_alone(self, tmp_path):
        before = torch.random.get_rng_state()
        run(Trials("ackley", "sphere:2", "turbo", (0,)), 6, tmp_path / "a.npz")
        assert torch.equal(torch.random.get_rng_state(), before)


MAKERS = [*(partial(process, name) for name in MODELS), turbo_model]


class TestPosterior:
    @pytest.mark.filterwarnings("ignore:Negative variance")  # that BoTorch has rounded one up
    @pytest.mark.parametrize("unit", [5, 1e-4])
    @pytest.mark.parametrize("make", MAKERS)
    def test_it_has_the_moments_of_botorch_and_their_gradients(self, make, unit, rng):
        """Variances of small values are bounded from below as BoTorch does it."""
        u = torch.rand(12, 4, generator=rng, dtype=torch.float64)
        fitted = make(u, unit * (1 + u.square().sum(-1).sin())).eval()
        at = torch.cat([torch.rand(6, 4, generator=rng, dtype=torch.float64), u[:1]]).unsqueeze(-2)
        theirs, ours = moments(fitted, at), moments(Posterior(fitted), at)
        assert theirs[0].shape == (7, 1, 1)
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


def moments(model, at):
    """Mean, variance, and the gradient of each, at points."""
    at = at.clone().requires_grad_()
    posterior = model.posterior(at)
    found = [posterior.mean, posterior.variance]
    gradients = [torch.autograd.grad(value.sum(), at, retain_graph=True)[0] for value in found]
    return [value.detach() for value in found] + gradients


class TestDensity:
    @pytest.mark.parametrize("make", MAKERS)
    def test_it_has_the_value_and_the_gradient_of_botorch(self, make, rng):
        """At parameters other than those a fit begins with, where all terms differ from zero."""
        u = torch.rand(12, 4, generator=rng, dtype=torch.float64)
        fitted = make(u, u.square().sum(-1).sin())
        mll = ExactMarginalLogLikelihood(fitted.likelihood, fitted).train()
        parameters = get_parameters(mll, requires_grad=True)
        with torch.no_grad():
            for value in parameters.values():
                value.add_(0.1 * torch.rand(value.shape, generator=rng, dtype=torch.float64))
        theirs = [found.detach().clone() for found in flat(get_loss_closure_with_grads(mll, parameters)())]
        ours = flat(density(mll)())
        assert len(theirs) == 1 + len(parameters)
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def flat(found):
    value, gradients = found
    return [value.detach(), *gradients]


class TestReplays:
    def test_nelder_mead_asks_for_what_scipy_asks_for(self):
        """From the best initial point; a value that is known is not asked for."""
        f = lambda u: float(((u - 0.3) ** 2 * [1, 4, 9]).sum())
        u = torch.rand(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        y = torch.tensor([f(row) for row in u.numpy()], dtype=torch.float64)
        asked, start = [], u[y.argmin()].numpy()
        options = {"maxfev": 30, "xatol": 1e-8, "fatol": 1e-8}
        scipy.optimize.minimize(
            lambda v: asked.append(v.copy()) or f(v), start, method="nelder-mead", bounds=[(0, 1)] * 3, options=options
        )
        for wanted in asked[1:20]:
            found = Local().next(u, y, seed=0)
            np.testing.assert_array_equal(found.numpy(), wanted)
            u, y = torch.cat([u, found.unsqueeze(0)]), torch.cat([y, torch.tensor([f(found.numpy())])])

    @pytest.mark.parametrize("name", ["nelder-mead", "powell"])
    def test_a_search_that_is_over_is_followed_by_another(self, name):
        """On a constant function every search ends at once."""
        u, y = torch.rand(5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64), torch.zeros(5)
        for seed in range(150):
            found = Local(method=name).next(u, y, seed)
            u, y = torch.cat([u, found.unsqueeze(0)]), torch.cat([y, torch.zeros(1)])
        assert u[5:].std(0).min() > 0.05


class TestTurbo:
    def test_the_region_grows_after_three_successes(self):
        y = [5.0] * 5 + [4, 3, 2]
        assert region(y, 4) == (0, 1.6)
        assert region([*y, 1, 0.5, 0.25], 4) == (0, 1.6)

    def test_it_halves_after_as_many_failures_as_there_are_dimensions(self):
        assert region([5.0] * 5 + [6] * 3, 4) == (0, 0.8)
        assert region([5.0] * 5 + [6] * 4, 4) == (0, 0.4)

    def test_a_small_decrease_is_a_failure(self):
        assert region([5.0] * 5 + [4.999] * 4, 4) == (0, 0.4)

    def test_it_begins_anew_when_it_is_small(self):
        halvings = math.ceil(math.log2(0.8 / 0.5**7))
        y = [5.0] * 5 + [6] * 4 * halvings
        assert region(y, 4) == (len(y), 0.8)
        assert region([*y, 9, 9, 9, 9, 9, 8, 7, 6], 4) == (len(y), 1.6)

    def test_the_box_has_the_proportions_of_the_length_scales(self):
        scales = torch.tensor([[0.5, 1.0, 2.0]], dtype=torch.float64)
        model = SimpleNamespace(covar_module=SimpleNamespace(base_kernel=SimpleNamespace(lengthscale=scales)))
        low, high = _box(model, torch.full((3,), 0.5, dtype=torch.float64), 0.2)
        torch.testing.assert_close((high - low), torch.tensor([0.1, 0.2, 0.4], dtype=torch.float64))

    def test_candidates_lie_in_the_box_and_move_about_twenty_coordinates(self, rng):
        centre = torch.full((50,), 0.5, dtype=torch.float64)
        found = _candidates(centre, centre - 0.1, centre + 0.2, rng)
        assert ((found >= 0.4) & (found <= 0.7)).all()
        moved = (found != centre).sum(-1)
        assert moved.min() >= 1
        assert 19 < moved.double().mean() < 22

    @pytest.mark.parametrize("options", [{"chart": "box"}, {"acquisition": "ucb"}])
    def test_mistakes(self, options):
        with pytest.raises(ArgumentError):
            Turbo(**options)


class TestRPM:
    def test_each_vector_has_a_unit_vector_with_the_same_image(self, rng):
        """Also where the centre is nearly as long as it may be."""
        basis, centre = Stiefel(6, 3).random(rng=rng), torch.tensor([[0.7, -0.6, 0.35]], dtype=torch.float64)
        to_sphere, x = Map(basis, centre), torch.randn(20, 6, generator=rng, dtype=torch.float64)
        point = to_sphere.point(x)
        torch.testing.assert_close(point.norm(dim=-1), torch.ones(20, dtype=torch.float64))
        torch.testing.assert_close(to_sphere.directions(point), to_sphere.directions(x))

    def test_the_circle_that_a_function_depends_on_is_found(self):
        """In S^3, from 60 random points: nearly in most cases. Some searches end in local maxima of the likelihood."""
        found = sorted(map(overlap_of_learned_circle, range(5)))
        assert found[2] > 0.9
        assert found[3] > 0.999

    @pytest.mark.parametrize(
        ("options", "space"), [({}, Sphere(5)), ({}, Box(0, 1)), ({"chart": "tangent"}, Sphere(9))]
    )
    def test_other_spaces_and_charts_are_refused(self, options, space):
        with pytest.raises(ArgumentError, match="RPM-BO needs a sphere of more than 5 dimensions"):
            RPM(**options).check(space)


def overlap_of_learned_circle(seed):
    """1 where the learned plane is that of the first two coordinates, whose direction the values depend on."""
    rng = torch.Generator().manual_seed(seed)
    x = Sphere(3).random(60, rng=rng)
    value = x[:, 0] / x[:, :2].norm(dim=-1)
    basis = learned(x, (value - value.mean()) / value.std(), 1, rng).basis
    return basis[:2].square().sum() / 2


class TestElsewhere:
    def test_what_is_not_registered_says_where_it_is(self):
        if "cmaes" not in RIVALS:
            with pytest.raises(ArgumentError, match=r"benchmarks/rivals\.py"):
                method("cmaes")

    @pytest.mark.parametrize("text", ["cmaes", "optuna", "optuna:sampler=gp"])
    def test_they_run(self, text, tmp_path, monkeypatch):
        pytest.importorskip("cma" if text == "cmaes" else "optuna")
        monkeypatch.setattr("nestbo.experiment.rivals.RIVALS", dict(RIVALS))
        spec = importlib.util.spec_from_file_location("rivals_script", FOLDER / "rivals.py")
        script = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, script)
        spec.loader.exec_module(script)
        straight = run(Trials("ackley", "sphere:3", text, (0,)), 7, tmp_path / "a.npz")
        assert straight.y.shape == (1, 7)
        assert Sphere(3).violation(straight.x).max() < 1e-9

    def test_the_suite_has_eight_problems(self):
        assert len(SUITES["rivals"].tasks) == 8
