"""Methods on spaces with separate values: laws, exactness, no repeats, constraints, noise, pending points, batches."""

from dataclasses import replace

import pytest
import torch

import nestbo as nb
from nestbo import Box, Choice, GaBO, HDGaBO, Integer, Levels, Product, RandomSearch, Simplex, Sphere, Study
from nestbo.acquisition import OPTIMISERS, Limits
from nestbo.manifolds import fixed
from nestbo.search.mixed import Climb, combinations, every, neighbours, over_separate_values
from nestbo.search.runs import Runs
from nestbo.search.turns import exchanged
from nestbo.testing import STRATEGY_LAWS

FEW = Product(Sphere(2), Integer(0, 3), Choice("a", "b"))
MANY = Product(direction=Sphere(2), passes=Integer(1, 60), tool=Choice("soft", "hard", "vacuum"), width=Box(0, 9))
LISTED = Product(Integer(1, 9), Choice("a", "b", "c"), Levels(0.1, 0.5, 2))


QUICK = {
    "suggestions_are_reproduced_by_their_seed",
    "a_resumed_run_is_the_straight_run",
    "known_points_are_not_suggested_again",
    "observed_constraints_and_noise_are_survived",
}


@pytest.mark.parametrize("law", STRATEGY_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("method", [GaBO(), RandomSearch(), HDGaBO()], ids=repr)
def test_law(method, law, rng, request):
    slow = method == HDGaBO() or (method == GaBO() and law.__name__ not in QUICK)
    if slow and not request.config.getoption("--full"):
        pytest.skip("long; with --full")
    law(method, FEW, rng)


def value(x):
    """Least, 0, at passes 23, the hard tool, a direction along the first axis and a width of 4."""
    p = MANY.parameters(x)
    return (
        float(1 - p["direction"][0])
        + ((p["passes"] - 23) / 30) ** 2
        + {"soft": 0.4, "hard": 0.0, "vacuum": 0.7}[p["tool"]]
        + ((p["width"] - 4) / 5) ** 2
    )


class TestSearches:
    def test_a_study_finds_the_best_combination(self):
        study = Study(MANY, GaBO(), seed=0).run(value, 22, progress=False, on_error="raise")
        assert study.best.value < 0.1

    def test_hdgabo_leaves_separate_values_whole(self):
        space = Product(Sphere(12), Integer(1, 5), Choice("a", "b"))
        study = Study(space, HDGaBO((2, None, None)), seed=0)
        study.run(lambda x: float(x[0] + (x[-2] - 3) ** 2 + x[-1]), 12, progress=False, on_error="raise")
        assert {trial.memory.arm for trial in study.history[5:]} & {"nested:2,none,none"}
        space.check(torch.stack([trial.x for trial in study.history]))

    def test_nothing_but_separate_values_are_compared_all(self):
        study = Study(LISTED, GaBO(), seed=0)
        objective = lambda x: float((x[0] - 7) ** 2 / 9 + (x[1] != 1) + (x[2] - 1) ** 2)
        study.run(objective, 20, progress=False, on_error="raise")
        assert study.best.value == 0
        assert len({tuple(trial.x.tolist()) for trial in study.history}) == 20

    def test_a_climb_is_made_in_each_of_few_combinations(self):
        runs = Runs(torch.zeros(1, 1, 5), torch.zeros(1, 1), torch.zeros(1, 0, 5), [torch.Generator()], [[]])
        target = torch.tensor([0.6, 0.8, 0.0], dtype=torch.float64)

        def worth(z):
            """Largest at the target where the whole number is 2 and the choice the second; a trap elsewhere."""
            right = (z[..., 3] == 2) & (z[..., 4] == 1)
            away = (z[..., :3] - target).square().sum(-1)
            return torch.where(right, 3 - 10 * away, 2 - 0.1 * away).squeeze(-1)

        pool = FEW.random_each(40, [torch.Generator().manual_seed(0)])
        found = over_separate_values(Climb(worth, FEW, OPTIMISERS["lbfgs"], 8), [pool], runs)
        assert (found[0] - torch.tensor([0.6, 0.8, 0, 2, 1])).abs().max() < 1e-3

    def test_steps_and_climbs_take_turns_where_there_are_many(self):
        runs = Runs(torch.zeros(1, 1, 6), torch.zeros(1, 1), torch.zeros(1, 0, 6), [torch.Generator()], [[]])

        def worth(z):
            return (-(z[..., 3] - 41).abs() / 60 - 10 * (z[..., 5] - 2).square() + (z[..., 4] == 2) + z[..., 0])[..., 0]

        pool = MANY.random_each(30, [torch.Generator().manual_seed(0)])
        found = over_separate_values(Climb(worth, MANY, OPTIMISERS["lbfgs"], 8), [pool], runs)
        assert (found[0] - torch.tensor([1, 0, 0, 41, 2, 2])).abs().max() < 1e-2

    def test_combinations_and_neighbours_are_what_they_say(self, rng):
        assert combinations(FEW) == 8
        x = FEW.random(rng=rng)
        points = every(FEW, x)
        assert len({tuple(point[3:].tolist()) for point in points}) == 8
        assert (points[:, :3] == x[:3]).all()
        around = neighbours(MANY, MANY.random(4, rng=rng))
        MANY.check(around)


def suggested(space, tools):
    """A run whose suggestions had these places of a choice, the last factor of a space, after one random point."""
    x = space.random(len(tools) + 1, rng=torch.Generator().manual_seed(0))
    x[:, -1] = torch.tensor([0, *tools], dtype=torch.float64)
    memories = [nb.Memory(), *(nb.Memory(arm="full") for _ in tools)]
    return Runs(x[None], torch.zeros(1, len(x)), x[None, :0], [torch.Generator()], [memories])


class TestTurns:
    SPACE = Product(Sphere(2), Choice("a", "b", "c"))

    def turn(self, tools, space=SPACE):
        points, ready = exchanged(space, suggested(space, tools))
        return points[0, -1].item() if ready else None

    def test_every_value_has_its_turn_when_suggestions_are_many_and_when_they_double(self):
        assert self.turn([0] * 14) is None
        assert self.turn([0] * 15) == 1
        assert self.turn([0] * 14 + [1]) == 2
        assert self.turn([0] * 14 + [1, 2]) is None
        assert self.turn([0] * 28 + [1, 1, 2]) == 2
        assert self.turn([0] * 28 + [1, 1, 2, 2]) is None

    def test_it_is_the_best_point_with_this_value(self):
        told = suggested(self.SPACE, [0] * 15)
        told = replace(told, y=(torch.arange(16) - 5.0).square()[None])
        points, ready = exchanged(self.SPACE, told)
        assert ready.tolist() == [True]
        assert points[0, :3].tolist() == told.x[0, 5, :3].tolist()
        known = replace(told, pending=points[None], asked=[[nb.Memory()]])
        assert exchanged(self.SPACE, known)[1].tolist() == [False]

    def test_points_under_evaluation_count(self):
        told = suggested(self.SPACE, [0] * 15)
        point = told.x[:, 0].index_fill(1, torch.tensor([3]), 1.0)
        points, _ = exchanged(self.SPACE, told.with_pending(point, [nb.Memory(arm="full")]))
        assert points[0, -1] == 2

    def test_random_points_and_fixed_choices_do_not(self):
        told = suggested(self.SPACE, [0] * 15)
        assert not exchanged(self.SPACE, replace(told, memories=[[nb.Memory()] * 16]))[1]
        named = Product(direction=Sphere(2), tool=Choice("a", "b", "c"))
        assert not exchanged(fixed(named, {"tool": "a"}), told)[1]

    def test_the_search_goes_there_where_it_is_allowed(self):
        pool = self.SPACE.random_each(40, [torch.Generator().manual_seed(0)])
        climb = Climb(lambda z: (z[..., 0] - 50 * z[..., 3])[..., 0], self.SPACE, OPTIMISERS["lbfgs"], 8)
        told = suggested(self.SPACE, [0] * 15)
        assert over_separate_values(climb, [pool], told)[0, -1] == 1
        never = Limits(lambda x: 0.5 - x[..., 3:], smooth=False)
        assert over_separate_values(replace(climb, limits=never), [pool], told)[0, -1] == 0


class TestRepeats:
    def test_every_value_is_tried_before_one_is_tried_again(self):
        study = Study(Integer(1, 8), GaBO(), seed=0)
        study.run(lambda x: float((x[0] - 6) ** 2), 8, progress=False, on_error="raise")
        assert sorted(trial.x.item() for trial in study.history) == list(range(1, 9))
        study.space.check(study.ask().x)  # nothing is left, and a study goes on

    def test_noisy_values_may_be_tried_again(self):
        study = Study(Choice("a", "b"), GaBO(), seed=0, noise="infer")
        noise = torch.Generator().manual_seed(0)
        measured = lambda x: float(x[0]) + 0.1 * float(torch.randn((), generator=noise))
        study.run(measured, 8, progress=False, on_error="raise")
        assert study.recommend().x.item() == 0

    def test_trials_asked_together_differ(self):
        study = Study(LISTED, GaBO(), seed=0)
        study.run(lambda x: float(x.sum()), 6, progress=False)
        points = {tuple(trial.x.tolist()) for trial in (*study.ask(6), *study.history[:6])}
        assert len(points) == 12


def test_constraints_known_and_told_are_respected():
    space = Product(weights=Simplex(2), passes=Integer(1, 9))
    few = lambda x: 4.5 - x[-1]
    study = Study(space, GaBO(), seed=0, constraints=few)
    study.run(lambda x: nb.Observation(float(-x[-1] + x[0]), constraints=float(x[1] - 0.2)), 9, progress=False)
    assert all(trial.x[-1] <= 4 for trial in study.history)
    assert all(trial.status == "told" for trial in study.history)


def test_a_batch_of_runs_has_separate_values_of_its_own(rng):
    x = FEW.random(3, 6, rng=rng)
    runs = Runs(
        x, FEW.embed(x).sum(-1), x[:, :0], [torch.Generator().manual_seed(k) for k in range(3)], [[nb.Memory()] * 6] * 3
    )
    found, _ = GaBO().propose(FEW, runs)
    FEW.check(found)
