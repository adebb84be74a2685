"""Problems that were held out: their optima, by laws and by searches that know nothing of how they were made."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import nestbo as nb
from nestbo import SPD, ArgumentError, Sphere, linalg
from nestbo.experiment import SUITES, Trials, run
from nestbo.experiment.results import Record
from nestbo.experiment.trials import noises
from nestbo.optimise import lbfgs
from nestbo.problems import HELD_OUT, PROBLEMS, pose
from nestbo.problems.modelling import MODELLING
from nestbo.problems.posed import BEST_KNOWN
from nestbo.problems.textbook import TEXTBOOK

EVERY = SUITES["held-out"].tasks + SUITES["held-out-metric"].tasks
TASKS = [task for task in EVERY if task.problem in HELD_OUT and not task.noise]
SEEDLESS = {"schwefel", "thomson"}
MATRICES = SPD(10, eigenvalues=(1e-3, 5.0))


def posed(task, seed=3):
    return pose(task.problem, nb.space(task.space), latent_dim=task.latent_dim, seed=seed)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.key)
class TestOptima:
    def test_the_optimum_lies_in_the_space_and_has_the_optimal_value(self, task):
        p = posed(task)
        p.space.check(p.optimum, 1e-9)
        assert p.objective(p.optimum).item() == pytest.approx(p.optimal_value, rel=1e-9, abs=1e-9)

    def test_no_random_point_and_no_step_from_the_optimum_is_lower(self, task, rng):
        p = posed(task)
        near = p.optimum.expand(200, *p.space.point_shape)
        lengths = torch.logspace(-6, 0, 200, dtype=torch.float64).reshape(-1, *[1] * len(p.space.point_shape))
        steps = p.space.typical_distance * lengths * p.space.random_tangent(near, rng)
        tried = torch.cat([p.space.random(1000, rng=rng), p.space.project(p.space.retract(near, steps))])
        assert p.objective(tried).min().item() >= p.optimal_value - 1e-9 * max(1, abs(p.optimal_value))

    def test_no_refined_start_is_lower(self, task, rng):
        p = posed(task)
        found = lbfgs(p.objective, p.space, p.space.random(2, rng=rng), max_iterations=30)
        least = p.objective(p.space.project(found.point)).min().item()
        assert least >= p.optimal_value - 1e-8 * max(1, abs(p.optimal_value))

    def test_a_batch_has_the_values_of_its_points_and_the_seed_alone_draws_them(self, task, rng):
        p, x = posed(task), nb.space(task.space).random(2, 3, rng=rng)
        each = torch.stack([p.objective(point) for point in x.flatten(0, 1)]).unflatten(0, (2, 3))
        torch.testing.assert_close(p.objective(x), each, rtol=1e-10, atol=1e-10)
        assert torch.equal(posed(task).objective(x), p.objective(x))
        same = torch.equal(posed(task, seed=4).objective(x), p.objective(x))
        assert same == (task.problem in SEEDLESS)

    def test_it_moves_to_a_device(self, task, rng):
        p = posed(task)
        x = p.space.random(3, rng=rng)
        assert torch.equal(p.to("cpu").objective(x), p.objective(x))


def test_fresh_searches_find_nothing_below_the_least_values_that_are_known():
    for (name, text), stored in BEST_KNOWN.items():
        p = pose(name, nb.space(text))
        start = p.space.random(3, rng=torch.Generator().manual_seed(99))
        found = lbfgs(p.objective, p.space, torch.cat([start, p.optimum.unsqueeze(0)]), max_iterations=50)
        values = p.objective(p.space.project(found.point))
        assert p.best_known
        assert "starts" in stored.how
        assert values.min().item() >= stored.value - 1e-8 * max(1, abs(stored.value))


class TestWhatIsHidden:
    def test_a_quadratic_is_the_quadratic_form_of_what_a_kernel_sees(self, rng):
        p = pose("quadratic", Sphere(20), latent_dim=3, seed=5)
        x = p.space.random(4, rng=rng)
        form, centre = p.constants
        difference = p.mapping.project(x) - centre
        wanted = torch.einsum("ni,ij,nj->n", difference, form.mT @ form, difference)
        torch.testing.assert_close(p.objective(x), wanted)
        curvature = torch.linalg.eigvalsh(form.mT @ form)
        assert (curvature[-1] / curvature[0]).item() == pytest.approx(1000)

    def test_unnormalised_functions_change_along_a_fibre_of_the_nested_sphere(self):
        """The paper's functions are constant where Wᵀx keeps its direction; these see its length."""
        p = pose("unnormalised-ackley", Sphere(50), seed=5)
        columns = p.constants[0]
        inside, outside = columns[:, 0], linalg.completion(columns)[:, 0]
        first, second = (linalg.unit(inside + s * outside) for s in (0.5, 2.0))
        assert (p.objective(first) - p.objective(second)).abs() > 0.1

    def test_few_coordinates_matter(self, rng):
        p = pose("few-coordinates-rosenbrock", Sphere(50), seed=5)
        x = p.space.random(rng=rng).requires_grad_()
        (slope,) = torch.autograd.grad(p.objective(x), x)
        assert (slope != 0).sum() == 5

    def test_a_linear_function(self, rng):
        p = pose("linear", Sphere(50), seed=5)
        x = p.space.random(5, rng=rng)
        torch.testing.assert_close(p.objective(x) + p.objective(-x), torch.zeros(5, dtype=torch.float64))

    def test_none_of_the_functions_is_one_of_the_paper_on_its_own_spaces(self):
        tuned = {(task.problem, task.space) for task in SUITES["paper"].tasks}
        assert not tuned & {(task.problem, task.space) for task in SUITES["held-out-metric"].tasks}


class TestTheSuite:
    def test_it_has_what_was_asked_for(self):
        held = SUITES["held-out"].tasks
        sizes = {(task.where, task.latent_dim) for task in held}
        assert {("sphere-30", 3), ("sphere-100", 10), ("sphere-500", 5), ("spd-6", 2), ("spd-15", 4)} <= sizes
        assert {"box-100", "torus-30", "simplex-30", "product-9", "product-12", "box-20", "sphere-20"} <= {
            task.where for task in held
        }
        assert {task.noise for task in held} == {0.0, 0.01, 0.1}
        assert len(held) >= 16

    def test_no_function_of_an_earlier_target_is_in_it(self):
        assert not {task.problem for task in SUITES["held-out"].tasks} & set(PROBLEMS)

    def test_noise_is_observed_and_regret_is_exact(self, tmp_path):
        noisy = Trials("zakharov", "sphere:8", "randomsearch", (0, 1), 2, noise=0.1)
        state = run(noisy, 8, tmp_path / "a.npz")
        exact = run(replace(noisy, noise=0.0), 8, tmp_path / "b.npz")
        assert torch.equal(state.x, exact.x)
        assert torch.equal(state.exact, exact.y)
        assert (state.y != state.exact).all()
        np.testing.assert_array_equal(Record.read(tmp_path / "a.npz").regret, exact.y)
        (first, second), off = noises(noisy), (state.y - state.exact).abs().amax(1)
        assert 0 < off[0] < 5 * first
        assert 0 < off[1] < 5 * second

    def test_noisy_trials_go_on_as_if_they_had_not_stopped(self, tmp_path):
        noisy = Trials("zakharov", "sphere:8", "randomsearch", (0,), 2, noise=0.1)
        run(noisy, 6, tmp_path / "a.npz")
        assert torch.equal(run(noisy, 9, tmp_path / "a.npz").y, run(noisy, 9, tmp_path / "b.npz").y)
        with pytest.raises(ArgumentError, match="holds trials with noise"):
            run(replace(noisy, noise=0.2), 9, tmp_path / "a.npz")


class TestMistakes:
    @pytest.mark.parametrize(("name", "space", "latent_dim"), [("linear", MATRICES, None), ("linear", Sphere(50), 5)])
    def test_problems_of_a_whole_sphere(self, name, space, latent_dim):
        with pytest.raises(ArgumentError, match="whole Sphere"):
            pose(name, space, latent_dim=latent_dim)

    @pytest.mark.parametrize("name", [*TEXTBOOK, *MODELLING])
    def test_spaces_that_are_none_of_theirs(self, name):
        with pytest.raises(ArgumentError):
            pose(name, nb.Grassmann(4, 2))

    def test_a_sphere_with_too_few_dimensions(self):
        with pytest.raises(ArgumentError, match="at least 5"):
            pose("unnormalised-levy", Sphere(4))

    def test_an_unknown_name(self):
        with pytest.raises(ArgumentError, match="Did you mean 'quadratic'"):
            pose("quadratik", Sphere(5))

    def test_names_are_not_taken_twice(self):
        assert not set(HELD_OUT) & set(PROBLEMS)
