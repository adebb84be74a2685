"""Problems that were held out: their optima, by laws and by searches that know nothing of how they were made."""

import pytest
import torch

import nestbo as nb
from nestbo import SPD, ArgumentError, Sphere, linalg
from nestbo.experiment import SUITES
from nestbo.optimise import lbfgs
from nestbo.problems import HELD_OUT, PROBLEMS, pose
from nestbo.problems.posed import BEST_KNOWN

TASKS = list(dict.fromkeys(t for name in ("held-out-metric",) for t in SUITES[name].tasks if t.problem in HELD_OUT))
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
        found = lbfgs(p.objective, p.space, p.space.random(4, rng=rng), max_iterations=60)
        least = p.objective(p.space.project(found.point)).min().item()
        assert least >= p.optimal_value - 1e-8 * max(1, abs(p.optimal_value))

    def test_a_batch_has_the_values_of_its_points_and_the_seed_alone_draws_them(self, task, rng):
        p, x = posed(task), nb.space(task.space).random(2, 3, rng=rng)
        each = torch.stack([p.objective(point) for point in x.flatten(0, 1)]).unflatten(0, (2, 3))
        torch.testing.assert_close(p.objective(x), each, rtol=1e-10, atol=1e-10)
        assert torch.equal(posed(task).objective(x), p.objective(x))
        assert not torch.equal(posed(task, seed=4).objective(x), p.objective(x))

    def test_it_moves_to_a_device(self, task, rng):
        p = posed(task)
        x = p.space.random(3, rng=rng)
        assert torch.equal(p.to("cpu").objective(x), p.objective(x))


def test_the_least_values_that_are_known_were_searched():
    """A fresh search of other starts finds the same value, or a higher one; several starts find the same."""
    for (name, text), stored in BEST_KNOWN.items():
        p = pose(name, nb.space(text))
        start = p.space.random(48, rng=torch.Generator().manual_seed(99))
        found = lbfgs(p.objective, p.space, start, max_iterations=300)
        values = p.objective(p.space.project(found.point))
        slack = 1e-8 * max(1, abs(stored.value))
        assert p.best_known
        assert values.min().item() >= stored.value - slack
        assert ((values - stored.value).abs() < 1e3 * slack).sum() >= 2
        assert "starts" in stored.how


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


class TestMistakes:
    @pytest.mark.parametrize(("name", "space", "latent_dim"), [("linear", MATRICES, None), ("linear", Sphere(50), 5)])
    def test_problems_of_a_whole_sphere(self, name, space, latent_dim):
        with pytest.raises(ArgumentError, match="whole Sphere"):
            pose(name, space, latent_dim=latent_dim)

    def test_a_sphere_with_too_few_dimensions(self):
        with pytest.raises(ArgumentError, match="at least 5"):
            pose("unnormalised-levy", Sphere(4))

    def test_an_unknown_name(self):
        with pytest.raises(ArgumentError, match="Did you mean 'quadratic'"):
            pose("quadratik", Sphere(5))

    def test_names_are_not_taken_twice(self):
        assert not set(HELD_OUT) & set(PROBLEMS)
