"""Without noise no point is evaluated twice, and a search that has finished in a corner goes on elsewhere."""

from dataclasses import replace

import pytest
import torch

import nestbo as nb
from nestbo.memory import Memory
from nestbo.search.repeats import repeated
from nestbo.strategies import STRATEGIES, Runs, Strategy
from nestbo.testing.strategies import COINCIDING, known_points_are_not_suggested_again

METHODS = [method for family in STRATEGIES.values() for method in family.samples()]
SQUARE = nb.Box([0.0, 0.0], [1.0, 1.0])
CORNERS = [SQUARE, nb.Simplex(2), nb.SPD(1, eigenvalues=(0.1, 5))]


def explored(memory):
    """Whether a suggestion is not where the acquisition function is largest since that point is known."""
    return memory.moved is not None and "known" in memory.moved


def repeats(space, history):
    """How many trials are at the point of an earlier one."""
    x = history.points
    apart = space.pairwise_dist(x, x) / space.typical_distance
    return int((apart < COINCIDING).tril(-1).any(-1).sum())


@pytest.mark.parametrize("space", CORNERS, ids=repr)
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_the_law_holds_where_a_corner_is_best(method, space, rng):
    try:
        method.check(space)
    except nb.ArgumentError as error:
        pytest.skip(str(error))
    known_points_are_not_suggested_again(method, space, rng)


@pytest.mark.parametrize(
    "space",
    [
        nb.Box([0.0] * 3, [1.0] * 3),
        nb.Box([0.0] * 5, [1.0] * 5),
        nb.Box([0.0] * 8, [1.0] * 8),
        nb.Simplex(3),
        nb.SPD(1),
        nb.Product(nb.Box(0, 1), nb.SPD(1, eigenvalues=(0.1, 5))),
    ],
    ids=repr,
)
def test_a_default_study_repeats_nothing(space, request):
    count = 45 if request.config.getoption("--full") else 10
    study = nb.Study(space, seed=0).run(lambda x: float(x.flatten()[0]), count, progress=False)
    study.ask(2)
    assert repeats(space, study.history) == 0


def test_many_evaluations_of_a_plane(request):
    budget = 30 if request.config.getoption("--full") else 20
    study = nb.Study(SQUARE, seed=0).run(lambda x: float(x.sum()), budget, progress=False)
    assert repeats(SQUARE, study.history) == 0


def two_minima(x, width=0.1):
    """A plane that is least in a corner, 0.2, with a hole of this width elsewhere, −0.6 deep."""
    bottom = torch.tensor([0.62, 0.7], dtype=x.dtype)
    plane, depth = 0.2 + 0.5 * x.sum(), 0.2 + 0.5 * bottom.sum() + 0.6
    return float(plane - depth * torch.exp(-(x - bottom).square().sum() / (2 * width**2)))


def test_a_better_minimum_inside_is_found_after_the_corner(request):
    full = request.config.getoption("--full")
    for seed in range(6) if full else [2]:
        study = nb.Study(SQUARE, seed=seed).run(two_minima, 60 if full else 30, progress=False)
        assert study.best.value < -0.59


class TestConstraints:
    def test_a_corner_of_known_ones(self):
        study = nb.Study(SQUARE, seed=0, constraints=lambda x: torch.stack([x[0] - 0.2, x[1] - 0.3]))
        study.run(lambda x: float(x.sum()), 15, progress=False)
        assert repeats(SQUARE, study.history) == 0
        assert any(explored(trial.memory) for trial in study.history)
        assert all(study.constraints.allows(trial.x) for trial in study.history)

    def test_a_face_that_points_are_moved_to(self):
        study = nb.Study(SQUARE, seed=0, constraints=lambda x: x[0] - 1)
        study.run(lambda x: float(x[1]), 15, progress=False)
        assert repeats(SQUARE, study.history) == 0

    def test_a_single_point_is_suggested_for_ever(self):
        study = nb.Study(SQUARE, seed=0, constraints=lambda x: x.sum() - 2)
        study.run(lambda x: float(x.sum()), 2, progress=False)
        assert torch.equal(study.history.points, torch.ones(2, 2, dtype=torch.float64))

    def test_observed_ones_say_where_to_explore(self):
        study = nb.Study(SQUARE, seed=0)
        study.run(lambda x: nb.Observation(float(x.sum()), constraints=float(0.5 - x[1])), 18, progress=False)
        elsewhere = [trial for trial in study.history if explored(trial.memory)]
        assert repeats(SQUARE, study.history) == 0
        assert len(elsewhere) > 5
        assert sum(trial.x[1] < 0.6 for trial in elsewhere) > 0.8 * len(elsewhere)


class TestWhatCounts:
    def test_noisy_values_may_be_evaluated_again(self):
        runs = self.runs(torch.zeros(1, 1, 2))
        assert repeated(SQUARE, torch.zeros(1, 2, dtype=torch.float64), runs).tolist() == [True]
        assert repeated(SQUARE, torch.zeros(1, 2, dtype=torch.float64), replace(runs, noisy=True)).tolist() == [False]

    def test_pending_points_and_each_run_by_itself(self):
        runs = self.runs(torch.tensor([[[0.0, 0.0]], [[0.5, 0.5]]]), torch.tensor([[[1.0, 1.0]], [[0.2, 0.2]]]))
        for point, wanted in [(0.0, [True, False]), (1.0, [True, False]), (0.5, [False, True]), (0.2, [False, True])]:
            x = torch.full((2, 2), point, dtype=torch.float64)
            assert repeated(SQUARE, x, runs).tolist() == wanted

    def test_a_jitter_is_the_same_point_and_a_small_step_is_not(self):
        runs = self.runs(torch.zeros(1, 1, 2))
        for step, wanted in [(1e-10, True), (1e-7, False)]:
            assert repeated(SQUARE, torch.full((1, 2), step, dtype=torch.float64), runs).tolist() == [wanted]

    def test_a_run_that_has_not_finished_is_left_alone(self):
        """Of two runs the first has its best value in a corner, with all of the plane known."""
        x = SQUARE.random(2, 12, rng=torch.Generator().manual_seed(0))
        x[0, 0] = 0
        y = torch.stack([x[0].sum(-1), (x[1] - 0.5).square().sum(-1)])
        both, memories = nb.GaBO().propose(SQUARE, self.runs(x, y=y))
        assert [explored(memory) for memory in memories] == [True, False]
        alone, _ = nb.GaBO().propose(SQUARE, self.runs(x, y=y).take([1]))
        assert torch.allclose(both[1], alone[0], atol=1e-3)

    def test_the_papers_method_may_repeat(self):
        assert all(method.repeats for method in (nb.GaBO.paper(), nb.HDGaBO.paper(2)))
        assert not any(method.repeats for method in (nb.GaBO(), nb.HDGaBO(), nb.EuclideanBO()))

    def test_any_method_is_kept_from_repeating(self):
        class Stubborn(Strategy):
            @classmethod
            def samples(cls):
                return [cls()]

            def propose(self, space, runs):
                return torch.zeros(1, 2, dtype=torch.float64), [Memory()]

        suggestions = Stubborn().suggest(SQUARE, nb.History(), 3, torch.Generator().manual_seed(0))
        assert torch.equal(suggestions[0].x, torch.zeros(2, dtype=torch.float64))
        assert all(explored(suggestion.memory) for suggestion in suggestions[1:])

    def runs(self, x, pending=None, y=None):
        x = x.double()
        pending = x[:, :0] if pending is None else pending.double()
        rngs = [torch.Generator().manual_seed(k) for k in range(len(x))]
        y = x.sum(-1) if y is None else y
        return Runs(x, y, pending, rngs, [[Memory()] * x.shape[1] for _ in rngs])
