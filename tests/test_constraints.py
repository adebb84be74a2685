"""Constraints: those known in advance hold at every suggestion, others are learned from what is told."""

import math

import numpy as np
import pytest
import torch

import nestbo as nb
from damage import change
from nestbo.constraints import Constraints

BOUNDED = nb.SPD(2, eigenvalues=(0.1, 5))


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def bowl(x):
    return float((x**2 * torch.arange(1, x.numel() + 1, dtype=x.dtype).reshape(x.shape)).sum())


def branching(x):
    return x[0] - 0.3 if x[1] > 0 else x[0] - 0.4


class TestFunctions:
    @pytest.mark.parametrize(
        ("function", "count", "smooth", "batched"),
        [
            (lambda x: x[0] - 0.3, 1, True, True),
            (lambda x: [x[0] - 0.3, 0.5 - x[1]], 2, True, True),
            (lambda x: x, 4, True, True),
            (branching, 1, True, False),
            (lambda x: float(x[0]) - 0.3, 1, False, False),
            (lambda x: np.array([x.numpy()[0] - 0.3, 1.0]), 2, False, False),
            (lambda x: 1 if x[0] > 0.3 else -1, 1, False, False),
        ],
    )
    def test_what_a_function_can_do_is_found_out(self, function, count, smooth, batched):
        constraints = Constraints.of(function, nb.Sphere(3))
        assert (constraints.count, constraints.smooth, constraints.batched) == (count, smooth, batched)
        x = nb.Sphere(3).random(2, 5, rng=seeded(0))
        expected = torch.stack([constraints.at(point) for point in x.flatten(0, 1)])
        torch.testing.assert_close(constraints(x), expected.reshape(2, 5, count))

    @pytest.mark.parametrize(
        ("function", "words"),
        [
            (3, "a function"),
            (lambda x: True, "≥ 0"),
            (lambda x: x > 0, "≥ 0"),
            (lambda x: None, "≥ 0"),
            (lambda x: [], "≥ 0"),
            (lambda x: "positive", "≥ 0"),
            (lambda x: x.nothing, "raised AttributeError"),
            (lambda x: x[: 1 + int(abs(x[0]) < 0.5)].tolist(), "numbers at one point"),
        ],
    )
    def test_mistakes_are_explained(self, function, words):
        with pytest.raises(nb.ArgumentError, match=words):
            nb.Study(nb.Sphere(2), constraints=function)

    def test_what_it_does_to_its_argument_is_no_harm(self):
        def greedy(x):
            value = float(x[0])
            x.mul_(0)
            return value

        study = nb.Study(nb.Sphere(2), nb.RandomSearch(), constraints=greedy)
        assert all(trial.x.norm() == pytest.approx(1) for trial in study.ask(3))


class TestFinding:
    @pytest.mark.parametrize(
        ("space", "function"),
        [
            (nb.Sphere(50), lambda x: x[0] - 0.9),
            (nb.Sphere(50), lambda x: float(x[0]) - 0.9),
            (nb.Sphere(2), lambda x: 1.0 if x[0] > 0.97 else -1.0),
            (nb.SPD(5, eigenvalues=(1e-3, 5)), lambda x: 1 - x.diagonal().sum()),
            (nb.Product(nb.Sphere(2), nb.Box(0, 1)), lambda x: x[3] + x[0] - 1.9),
        ],
    )
    def test_rare_points_are_found(self, space, function):
        """A random draw is allowed once in 10^15, 10^15, 70, 10^4 and 200 times."""
        constraints = Constraints.of(function, space)
        for seed in range(3):
            x = constraints.random(seeded(seed))
            space.check(x)
            assert constraints.allows(x)

    def test_a_point_is_moved_no_further_than_it_must(self):
        sphere = nb.Sphere(2)
        constraints = Constraints.of(lambda x: x[0] - 0.5, sphere)
        x = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
        found = constraints.nearest(x, seeded(0))
        assert 0.5 <= found[0] < 0.5 + 1e-6
        assert sphere.dist(found, x) < math.pi / 6 + 0.1  # π/6 is the least

    @pytest.mark.parametrize("function", [lambda x: x[0] - 1.5, lambda x: float(x[0]) - 1.5])
    def test_an_impossible_set_is_reported_with_the_smallest_violation(self, function):
        study = nb.Study(nb.Sphere(3), constraints=function)
        with pytest.raises(nb.ConstraintError, match=r"smallest violation is 0\.5\d*, at \[(1|0\.9)") as caught:
            study.ask()
        assert "relax" in str(caught.value)
        assert study.pending == []

    def test_not_a_number_is_not_allowed(self):
        with pytest.raises(nb.ConstraintError, match="smallest violation is inf"):
            nb.Study(nb.Sphere(1), constraints=lambda x: math.nan).ask()


class TestStudies:
    @pytest.mark.parametrize("smooth", [True, False])
    def test_the_constrained_minimum_is_found(self, smooth):
        """The minimum of x₂ where x₀ ≥ ½ and x₂ ≥ −¼ is −¼, on the boundary."""

        def allowed(x):
            c = torch.stack([x[0] - 0.5, x[2] + 0.25])
            return c if smooth else c.tolist()

        result = nb.minimize(lambda x: float(x[2]), nb.Sphere(2), budget=14, constraints=allowed)
        assert result.value == pytest.approx(-0.25, abs=1e-3)
        assert all(min(allowed(trial.x)) >= 0 for trial in result.history)

    def test_through_the_lift_and_in_batches(self):
        study = nb.Study(
            nb.Sphere(12), nb.HDGaBO(2, metric="isotropic"), seed=0, constraints=lambda x: x[0] - x[1] - 0.3
        )
        study.run(bowl, 7, progress=False)
        trials = study.ask(4)
        points = torch.stack([trial.x for trial in trials])
        assert (points[:, 0] - points[:, 1] >= 0.3).all()
        assert (torch.cdist(points, points) + torch.eye(4)).min() > 1e-3

    def test_a_file_does_not_keep_them_and_says_so(self, tmp_path):
        path, allowed = tmp_path / "s.db", lambda x: x[0]
        with nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path, constraints=allowed) as study:
            study.run(bowl, 5, progress=False)
            study.add([-1.0, 0.0, 0.0], 0.5)  # made elsewhere, and not allowed
            best = study.best
            assert best.value > 0.5
        read = nb.Study.load(path)
        assert read.best.index == best.index
        with pytest.raises(nb.ConstraintError, match=r"constraints=…"):
            read.ask()
        with pytest.raises(nb.ConstraintError, match=r"constraints=…"):
            read.add([-1.0, 0.0, 0.0], -0.5)  # it would be the best, and none could tell that it is not allowed
        with pytest.raises(nb.ConstraintError, match="Give the same"):
            nb.Study.load(path, constraints=lambda x: -x[0])
        again = nb.Study.load(path, constraints=allowed)
        assert again.ask().x[0] >= 0
        straight = nb.Study(nb.Sphere(2), nb.RandomSearch(), constraints=allowed).run(bowl, 5, progress=False)
        assert torch.equal(again.history.points[:5], straight.history.points)

    def test_a_resumed_run_is_the_straight_run(self, tmp_path):
        """With constraints of both kinds and noise, wherever it was interrupted."""

        def f(x):
            return nb.Observation(bowl(x), float(x[1]), noise=0.01 + float(x[0]) ** 2)

        options = {"seed": 3, "constraints": lambda x: x[0] + 0.5}
        straight = nb.Study(nb.Sphere(2), nb.GaBO(), **options).run(f, 9, progress=False).history
        nb.Study(nb.Sphere(2), nb.GaBO(), store=tmp_path / "s.db", **options).close()
        for count in (6, 1, 2):
            with nb.Study.load(tmp_path / "s.db", constraints=options["constraints"]) as study:
                resumed = study.run(f, count, progress=False).history
        assert torch.equal(resumed.points, straight.points)
        assert [trial.memory for trial in resumed] == [trial.memory for trial in straight]
        assert [trial.told for trial in resumed] == [trial.told for trial in straight]

    @pytest.mark.parametrize("told", ['"constraints": "no"', '"constraints": [null]', '"noise": [1]'])
    def test_damage_is_told(self, told, tmp_path):
        path = tmp_path / "s.db"
        with nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path) as study:
            study.tell(study.ask(), 1.0, constraints=2.0)
        change(path, "UPDATE trials SET told = ?", f'{{"values": [1.0], {told}}}')
        with pytest.raises(nb.StoreError, match="damaged in trial 0"):
            nb.Study.load(path).history  # noqa: B018

    def test_a_study_begun_without_is_not_continued_with(self, tmp_path):
        nb.Study(nb.Sphere(2), store=tmp_path / "s.db").close()
        with pytest.raises(nb.ArgumentError, match="constraints"):
            nb.Study(nb.Sphere(2), store=tmp_path / "s.db", constraints=lambda x: x[0])


class TestObserved:
    def objective(self, x):
        return nb.Observation(float(x[2]), [float(x[0]) - 0.5, float(x[2]) + 0.25])

    @pytest.mark.parametrize("method", [nb.GaBO(), nb.HDGaBO(1), nb.EuclideanBO()], ids=repr)
    def test_they_are_learned(self, method):
        study = nb.Study(nb.Sphere(2), method, seed=0).run(self.objective, 12, progress=False)
        assert -0.25 <= study.best.value < -0.2
        assert study.best.constraints[0] >= 0
        later = list(study.history)[6:]
        assert sum(trial.feasible for trial in later) >= len(later) / 4

    def test_the_first_feasible_point_is_looked_for_where_it_is_likely(self):
        """Twelve infeasible points, which show the way to x₀ ≥ 0.9, beyond all of them."""
        study = nb.Study(nb.Sphere(2), nb.GaBO(), seed=0)
        for x in (x for x in nb.Sphere(2).random(20, rng=seeded(1)) if x[0] < 0.7):
            study.add(x, float(x[2]), constraints=float(x[0]) - 0.9)
        assert study.best is None
        assert study.recommend() is None
        assert study.ask().x[0] > 0.8
        assert "constraint:0" in study.models()

    def test_the_best_is_feasible_in_either_direction(self):
        for direction in ("minimize", "maximize"):
            study = nb.Study(nb.Sphere(2), nb.RandomSearch(), direction=direction)
            for trial, value, constraint in zip(study.ask(3), (1.0, 2.0, 3.0), (-1.0, 0.0, -1e-300), strict=True):
                study.tell(trial, value, constraints=[constraint, 5])
            assert study.best.value == 2.0
            assert study.best.constraints == (0.0, 5.0)

    def test_they_are_stored_to_the_last_bit(self, tmp_path):
        path = tmp_path / "s.db"
        with nb.Study(nb.Sphere(2), nb.RandomSearch(), store=path) as study:
            study.tell(
                study.ask(), 1.0, constraints=torch.tensor([0.1 + 0.2, -5e-324], dtype=torch.float64), noise=0.1 + 0.2
            )
            study.add([0.0, 0.0, 1.0], 2.0, constraints=np.array([1.0, -2.0]))
        first, second = nb.Study.load(path).history
        assert (first.constraints, first.noise) == ((0.1 + 0.2, -5e-324), 0.1 + 0.2)
        assert (second.constraints, second.noise) == ((1.0, -2.0), None)
        assert not first.feasible

    @pytest.mark.parametrize("constraints", [math.nan, [1.0, math.inf], [-math.inf, 0]])
    def test_what_is_not_finite_is_a_failure(self, constraints):
        study = nb.Study(nb.Sphere(2), nb.RandomSearch())
        done = study.tell(study.ask(), 1.0, constraints=constraints)
        assert done.status == "failed"
        assert "constraints" in done.told.failed

    def test_mistakes_are_explained(self):
        study = nb.Study(nb.Sphere(2), nb.RandomSearch())
        study.tell(study.ask(), 1.0, constraints=[1.0, 2.0])
        trial = study.ask()
        for wrong in (None, 1.0, [1, 2, 3]):
            with pytest.raises(nb.ArgumentError, match="2 constraints each"):
                study.tell(trial, 1.0, constraints=wrong)
        for wrong in ("12", [], [None, 1.0], [[1.0], [2.0]]):
            with pytest.raises(nb.ArgumentError, match="constraints are numbers"):
                study.tell(trial, 1.0, constraints=wrong)
        with pytest.raises(nb.ArgumentError, match="noise"):
            study.tell(trial, 1.0, constraints=[1, 2], noise=-1)
        study.run(lambda x: 3.0, 1, progress=False)
        assert "2 constraints each" in study.history[2].told.failed
        study.tell(trial, failed="no power")
        assert study.history.constraints.tolist() == [[1.0, 2.0]] * 3

    def test_minimize_says_that_nothing_was_feasible(self):
        with pytest.raises(nb.ArgumentError, match="None of 3 evaluations satisfied the constraints"):
            nb.minimize(lambda x: nb.Observation(1.0, -1.0), nb.Sphere(2), budget=3)


def test_an_infeasible_success_is_none(rng):
    """Arms are judged by feasible values."""
    study = nb.Study(nb.Sphere(2), nb.GaBO())
    for x, value, constraint in zip(nb.Sphere(2).random(3, rng=rng), (5.0, 1.0, 4.0), (1.0, -1.0, 1.0), strict=True):
        study.add(x, value, constraints=constraint)
    assert study._runs().scores == [[5.0, 5.0, 4.0]]
    assert study._runs().ranking.tolist() == [[1.0, 2.0, 0.0]]
