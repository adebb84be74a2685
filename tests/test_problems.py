"""Benchmark problems: the laws, the verified optima, the functions themselves, mistakes."""

import math

import numpy as np
import pytest
import scipy.optimize
import torch

import nestbo
from nestbo import SPD, ArgumentError, Box, Product, Quaternion, Sphere, Torus, linalg, problem
from nestbo.nested import Identity, NestedSPD
from nestbo.optimise import lbfgs, trust_region
from nestbo.problems import PROBLEMS
from nestbo.problems.coordinates import coordinates, from_coordinates, within
from nestbo.problems.optima import OPTIMA
from nestbo.problems.search import find_optimum
from nestbo.testing import PROBLEM_LAWS

BOUNDED = {"eigenvalues": (1e-3, 5.0)}
CASES = [
    *((name, nestbo.space(text), {}) for name, text in OPTIMA),
    *((name, Sphere(50), {"latent_dim": 5, "seed": 7}) for name in PROBLEMS),
    *((name, SPD(10, **BOUNDED), {"latent_dim": 3, "seed": 7}) for name in PROBLEMS),
]


@pytest.mark.parametrize(("name", "space", "options"), CASES, ids=lambda value: str(value))
def test_laws(name, space, options, rng):
    """One test for each problem: a law takes milliseconds."""
    p = problem(name, space, **options)
    for law in PROBLEM_LAWS:
        law(p, rng)


def vector(*entries):
    return torch.tensor(entries, dtype=torch.float64)


class TestVerifiedOptima:
    """The values of an independent search, to eight digits."""

    @pytest.mark.parametrize(
        ("name", "space", "value"),
        [
            ("ackley", Sphere(5), 0.0),
            ("rosenbrock", Sphere(5), 0.0),
            ("product-of-sines", Sphere(5), -92.57008430839473),
            ("rosenbrock", SPD(3, **BOUNDED), 0.43747445378681193),
            ("styblinski-tang", SPD(3, **BOUNDED), -234.99699422262853),
            ("product-of-sines", SPD(3, **BOUNDED), -100.0),
        ],
    )
    def test_values(self, name, space, value):
        assert problem(name, space).optimal_value == pytest.approx(value, rel=1e-8, abs=1e-12)

    def test_the_sines_on_the_sphere_have_an_infimum_only(self):
        p = problem("product-of-sines", Sphere(5))
        assert p.optimum is None
        t = vector(1.472731894625302, -1.387503618701833, *[1.387503618701833] * 3)
        assert t.norm().item() == pytest.approx(math.pi, abs=1e-12)
        assert p.objective(from_coordinates(Sphere(5), (1 - 1e-7) * t)).item() == pytest.approx(p.optimal_value, 1e-6)

    def test_rosenbrock_on_matrices_lies_on_the_bound(self):
        p = problem("rosenbrock", SPD(3, **BOUNDED))
        assert torch.linalg.eigvalsh(p.optimum)[-1].item() == pytest.approx(5, abs=1e-9)
        t = vector(0.951982, 0.906940, 0.823527, 0.678250, 0.460489, 0.209588)
        torch.testing.assert_close(coordinates(p.space, p.optimum), t, rtol=0, atol=2e-6)

    @pytest.mark.parametrize(("name", "n", "value"), [("levy", 10, 1.3208371345552e-4), ("levy", 20, 0.62009442217187)])
    def test_levy_where_its_free_minimiser_is_just_out_of_reach(self, name, n, value):
        """By an enumeration of which coordinates sit in the second well, independent of the search."""
        p = problem(name, Sphere(n))
        assert p.optimal_value == pytest.approx(value, rel=1e-9)
        assert p.optimum is None

    def test_an_optimum_is_missing_exactly_where_it_is_not_attained(self):
        for (name, text), (_, attained, t) in OPTIMA.items():
            space = nestbo.space(text)
            assert (problem(name, space).optimum is not None) == attained
            assert attained or (isinstance(space, Sphere) and math.hypot(*t) == pytest.approx(math.pi, abs=1e-6))

    @pytest.mark.parametrize(
        ("name", "space"),
        [
            ("levy", Sphere(10)),
            ("product-of-sines", Sphere(5)),
            ("product-of-sines", Sphere(2)),
            ("rosenbrock", Sphere(20)),
            ("rosenbrock", SPD(2, **BOUNDED)),
            ("product-of-sines", SPD(3, **BOUNDED)),
        ],
        ids=repr,
    )
    def test_a_fresh_search_finds_nothing_lower(self, name, space):
        value, _, _ = find_optimum(PROBLEMS[name], space, starts=12, seed=99)
        stored = problem(name, space).optimal_value
        assert value >= stored - 1e-8 * max(1, abs(stored))

    @pytest.mark.parametrize("name", ["ackley", "rastrigin", "griewank", "styblinski-tang"])
    def test_a_free_minimiser_is_one_to_scipy(self, name):
        """Nothing lower in five coordinates from many starts, by another optimiser."""
        f = lambda t: PROBLEMS[name].value(torch.from_numpy(t)).item()
        stored = f(np.full(5, PROBLEMS[name].minimiser))
        for seed in range(5):
            start = np.random.default_rng(seed).normal(size=5)
            assert scipy.optimize.minimize(f, start).fun >= stored - 1e-9

    def test_a_space_without_an_entry_is_searched(self):
        p = problem("rosenbrock", Sphere(4))
        assert ("rosenbrock", "sphere:4") not in OPTIMA
        assert p.optimal_value == 0
        torch.testing.assert_close(coordinates(Sphere(4), p.optimum), torch.ones(4).double())


POSE = Product(Quaternion(), Box((-2, -2, -2), (3, 3, 3)))
SPACES = [Sphere(1), Sphere(4), SPD(1), SPD(3), POSE]


class TestCoordinates:
    @pytest.mark.parametrize("space", SPACES, ids=repr)
    def test_they_are_inverse_to_points(self, space, rng):
        x = space.random(5, rng=rng)
        t = coordinates(space, x)
        assert t.shape == (5, space.dim)
        again = from_coordinates(space, t)
        torch.testing.assert_close(space.embed(again), space.embed(x), rtol=0, atol=1e-12)  # q and −q are one point

    def test_on_the_sphere_they_are_the_logarithm_at_the_base(self):
        x = vector(math.cos(0.7), 0, math.sin(0.7))
        torch.testing.assert_close(coordinates(Sphere(2), x), vector(0, 0.7))

    def test_of_a_rotation_they_are_axis_times_angle(self):
        quarter = vector(math.cos(math.pi / 4), 0, 0, math.sin(math.pi / 4))  # of a turn about the third axis
        for same in (quarter, -quarter):
            torch.testing.assert_close(coordinates(Quaternion(), same), vector(0, 0, math.pi / 2))

    def test_of_a_product_those_of_its_factors_follow_each_other(self):
        t = vector(0.1, 0.2, 0.3, 1, 2, 3)
        x = from_coordinates(POSE, t)
        torch.testing.assert_close(x[4:], t[3:])
        torch.testing.assert_close(coordinates(POSE, x), t)

    def test_of_matrices_the_diagonal_comes_first_without_mandels_root(self):
        log = vector(1, 4, 6, 4, 2, 5, 6, 5, 3).reshape(3, 3) / 10
        x = 2 * linalg.expm(log / 2)
        torch.testing.assert_close(coordinates(SPD(3), x), vector(0.1, 0.2, 0.3, 0.4, 0.5, 0.6))

    def test_those_of_no_point_are_told(self):
        assert within(Sphere(2), vector(math.pi, 0))
        assert not within(Sphere(2), vector(math.pi + 1e-9, 0))
        assert within(POSE, vector(0, 0, 3, 3, 3, 3))
        assert not within(POSE, vector(0, 0, 4, 3, 3, 3))
        assert not within(POSE, vector(0, 0, 3, 3, 3, 4))
        bounded = SPD(2, eigenvalues=(1, 5))
        assert within(bounded, vector(0, 0, 0))
        assert not within(bounded, vector(3, 0, 0))


class TestFunctions:
    """Against the textbook formulas, written out."""

    t = np.random.default_rng(3).normal(size=(20, 4))

    def test_ackley(self):
        t = self.t
        textbook = -20 * np.exp(-0.2 * np.sqrt((t**2).mean(-1))) - np.exp(np.cos(2 * np.pi * t).mean(-1)) + 20 + np.e
        self.check("ackley", textbook)

    def test_rosenbrock(self):
        self.check("rosenbrock", [scipy.optimize.rosen(row) for row in self.t])

    def test_styblinski_tang(self):
        u = 5 * self.t
        self.check("styblinski-tang", (u**4 - 16 * u**2 + 5 * u).sum(-1) / 2)

    def test_product_of_sines(self):
        t = self.t
        self.check("product-of-sines", 100 * np.sin(t[:, 0]) * np.prod(np.sin(t), -1))

    def test_rastrigin(self):
        self.check("rastrigin", 10 * 4 + (self.t**2 - 10 * np.cos(2 * np.pi * self.t)).sum(-1))

    def test_levy(self):
        w = 1 + (self.t - 1) / 4
        middle = ((w[:, :-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:, :-1] + 1) ** 2)).sum(-1)
        end = (w[:, -1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[:, -1]) ** 2)
        self.check("levy", np.sin(np.pi * w[:, 0]) ** 2 + middle + end)

    def test_griewank(self):
        t = self.t
        self.check("griewank", (t**2).sum(-1) / 4000 - np.prod(np.cos(t / np.sqrt([1, 2, 3, 4])), -1) + 1)

    def check(self, name, values):
        np.testing.assert_allclose(PROBLEMS[name].value(torch.from_numpy(self.t)).numpy(), values, rtol=1e-12)

    def test_ackleys_minimum_is_exactly_zero_with_a_zero_gradient(self):
        t = torch.zeros(3, dtype=torch.float64, requires_grad=True)
        value = PROBLEMS["ackley"].value(t)
        (slope,) = torch.autograd.grad(value, t)
        assert value.item() == 0
        assert (slope == 0).all()


class TestHidden:
    def test_a_projection_is_drawn_from_its_seed(self):
        first, again, other = (problem("ackley", Sphere(20), latent_dim=3, seed=seed) for seed in (1, 1, 2))
        assert torch.equal(first.mapping.basis, again.mapping.basis)
        assert not torch.equal(first.mapping.basis, other.mapping.basis)

    def test_values_are_finite_where_the_projection_is_not_defined(self):
        """At x ⟂ W there is no nearest point on the nested sphere."""
        p = problem("rosenbrock", Sphere(10), latent_dim=2, seed=0)
        x = linalg.completion(p.mapping.basis)[:, 0]
        assert p.objective(x).isfinite()

    def test_bounds_are_those_of_the_whole_space(self):
        p = problem("rosenbrock", SPD(6, **BOUNDED), latent_dim=3, seed=0)
        assert isinstance(p.mapping, NestedSPD)
        assert p.mapping.latent == SPD(3, **BOUNDED)
        assert p.optimal_value == problem("rosenbrock", SPD(3, **BOUNDED)).optimal_value

    def test_nothing_is_hidden_without_a_latent_dimension(self):
        assert isinstance(problem("ackley", Sphere(3)).mapping, Identity)

    def test_our_optimisers_reach_the_optimum_of_a_hidden_problem(self, rng):
        p = problem("styblinski-tang", Sphere(10), latent_dim=2, seed=0)
        start = p.space.random(20, rng=rng)
        for optimise in (lbfgs, trust_region):
            found = optimise(p.objective, p.space, start).value.min().item()
            assert found == pytest.approx(p.optimal_value, rel=1e-9)


class TestMistakes:
    def test_an_unknown_name_is_refused_with_the_nearest(self):
        with pytest.raises(ArgumentError, match="Did you mean 'rosenbrock'"):
            problem("rosenbrok", Sphere(3))
        with pytest.raises(ArgumentError, match=r"Wanted a problem .*, got 3"):
            problem(3, Sphere(3))

    def test_other_spaces_are_refused(self):
        with pytest.raises(ArgumentError, match="live on a Sphere, on SPD matrices, on a Quaternion"):
            problem("ackley", Torus(2))
        for convert in (coordinates, from_coordinates):
            with pytest.raises(ArgumentError, match="live on a Sphere, on SPD matrices, on a Quaternion"):
                convert(Torus(2), torch.zeros(2))

    def test_nothing_is_hidden_in_a_box(self):
        with pytest.raises(ArgumentError, match="no nested spaces inside"):
            problem("ackley", Box((0, 0), (1, 1)), latent_dim=1, seed=0)

    def test_a_hidden_problem_wants_a_seed(self):
        with pytest.raises(ArgumentError, match="Pass seed=0"):
            problem("ackley", Sphere(5), latent_dim=2)

    @pytest.mark.parametrize("latent_dim", [0, 6, 2.0, True, "2"])
    def test_a_latent_dimension_fits_into_the_space(self, latent_dim):
        with pytest.raises(ArgumentError, match="whole number from 1 to 5"):
            problem("ackley", Sphere(5), latent_dim=latent_dim, seed=0)
