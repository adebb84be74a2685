"""How far a run goes, what ends it, who hears of it, and what is evaluated first."""

import math
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import nestbo as nb
from nestbo.stop import Progress

SPACE = nb.Sphere(2)


def bowl(x):
    return float(1 - x[0])


def fresh(strategy=None, **settings):
    return nb.Study(SPACE, strategy or nb.RandomSearch(), **settings)


def told(values, direction="minimize"):
    trials = (nb.Trial(k, torch.zeros(2)).with_value(value) for k, value in enumerate(values))
    return nb.History(tuple(trials), direction=direction)


def at(values=(), seconds=0.0, gain=None, direction="minimize"):
    return Progress(told(values, direction), seconds, lambda: gain)


class TestRules:
    def test_time(self):
        rule = nb.stop.After(seconds=2)
        assert rule.reason(at(seconds=1.9)) is None
        assert rule.reason(at(seconds=2.0)) == "the time limit of 2 s has passed"

    @pytest.mark.parametrize(("direction", "short", "enough"), [("minimize", 1.0, 0.5), ("maximize", 0.0, 0.5)])
    def test_target(self, direction, short, enough):
        rule = nb.stop.Target(0.5)
        assert rule.reason(at()) is None
        assert rule.reason(at([short], direction=direction)) is None
        assert rule.reason(at([short, enough], direction=direction)) == "the target 0.5 is reached"

    def test_standstill(self):
        rule = nb.stop.Stalled(3)
        assert rule.reason(at()) is None
        assert rule.reason(at([5.0, 1, 2, 3])) is None  # the second was a gain
        assert rule.reason(at([5.0, 1, 2, 3, 1])) == "nothing was gained for 3 evaluations"
        assert rule.reason(at([1.0, 0.99, 0.98, 0.97])) is None
        assert nb.stop.Stalled(3, by=0.1).reason(at([1.0, 0.99, 0.98, 0.97])) is not None

    def test_gain(self):
        rule = nb.stop.Gain(1e-3)
        assert rule.reason(at(gain=None)) is None
        assert rule.reason(at(gain=1e-3)) is None
        assert "expected to gain 0.0005, less than 0.001" in rule.reason(at(gain=5e-4))

    @pytest.mark.parametrize(
        "make",
        [
            lambda: nb.stop.After(0),
            lambda: nb.stop.After("soon"),
            lambda: nb.stop.Target(math.nan),
            lambda: nb.stop.Stalled(0),
            lambda: nb.stop.Stalled(3, by=-1),
            lambda: nb.stop.Gain(True),
        ],
    )
    def test_nonsense_is_refused(self, make):
        with pytest.raises(nb.ArgumentError, match="got"):
            make()


def test_a_budget_is_a_total_and_a_number_is_more(tmp_path):
    for _ in range(2):
        with fresh(store=tmp_path / "s.db") as study:
            assert study.run(bowl, budget=4, progress=False).stopped == "the budget of 4 is used up"
            assert len(study.history) == 4
    with nb.Study.load(tmp_path / "s.db") as study:
        assert study.run(bowl, 2, progress=False).stopped == "the number of evaluations, 2, is reached"
        assert len(study.history) == 6
    with nb.Study.load(tmp_path / "s.db") as study:
        assert study.stopped == "the number of evaluations, 2, is reached"


@pytest.mark.parametrize("options", [{}, {"n": 3, "budget": 3}, {"budget": 0}, {"n": -1}, {"budget": True}])
def test_one_of_the_two_is_given(options):
    with pytest.raises(nb.ArgumentError, match="got"):
        fresh().run(bowl, **options)


def test_a_run_ends_where_a_rule_says_and_not_before_the_first_evaluation_of_a_new_study():
    study = fresh()
    study.run(bowl, 50, stop=[nb.stop.After(3600), nb.stop.Target(1.0)], progress=False)
    assert study.stopped == "the target 1 is reached"
    assert study.best.index == len(study.history) - 1
    before = len(study.history)
    study.run(bowl, 50, stop=nb.stop.Target(1.0), progress=False)  # nothing is left to do
    assert len(study.history) == before


def test_a_time_limit_ends_a_run_and_waits_for_what_is_under_way():
    study = fresh()

    def slow(x):
        time.sleep(0.05)
        return bowl(x)

    study.run(slow, 1000, stop=nb.stop.After(0.12), executor=ThreadPoolExecutor, workers=2, progress=False)
    assert 2 <= len(study.history) <= 10
    assert {trial.status for trial in study.history} == {"told"}


def test_functions_may_stop_and_say_why():
    study = fresh()
    study.run(bowl, 9, stop=lambda study, trial: trial.index == 2 and "three are enough", progress=False)
    assert (len(study.history), study.stopped) == (3, "three are enough")

    def enough(study, trial):
        return len(study.history) == 5

    study.run(bowl, 9, stop=enough, progress=False)
    assert (len(study.history), study.stopped) == (5, "enough said so")
    with pytest.raises(nb.ArgumentError, match=r"stop takes rules of nestbo\.stop"):
        study.run(bowl, 1, stop=3)


def test_callbacks_hear_of_every_trial_and_may_raise():
    study, heard = fresh(), []
    study.run(bowl, 3, callbacks=[lambda study, trial: heard.append((study, trial.index, trial.value))], progress=False)
    assert heard == [(study, trial.index, trial.value) for trial in study.history]

    def refuse(study, trial):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        study.run(bowl, 3, callbacks=[refuse], progress=False)
    assert [trial.status for trial in study.history] == ["told"] * 4
    with pytest.raises(nb.ArgumentError, match="callbacks"):
        study.run(bowl, 1, callbacks=[None])


def test_minimize_says_what_stopped_it():
    result = nb.minimize(bowl, SPACE, budget=30, strategy=nb.RandomSearch(), stop=nb.stop.Target(1.5))
    assert result.success
    assert result.message == "The target 1.5 is reached."
    assert result.nfev < 30


class TestExpectedGain:
    def test_there_is_none_without_a_model(self):
        assert fresh().expected_gain() is None
        assert fresh().run(bowl, 6, progress=False).expected_gain() is None

    @pytest.mark.parametrize("direction", ["minimize", "maximize"])
    def test_it_is_in_the_units_of_the_objective_and_falls(self, direction):
        f = bowl if direction == "minimize" else (lambda x: -bowl(x))
        small, large = (fresh(nb.GaBO(initial=4), direction=direction) for _ in range(2))
        small.run(f, 4, progress=False)
        large.run(lambda x: 100 * f(x), 4, progress=False)
        first = small.expected_gain()
        assert first > 0
        assert large.expected_gain() == pytest.approx(100 * first, rel=0.05)

    def test_it_ends_a_run(self):
        study = fresh(nb.GaBO(initial=4))
        study.run(bowl, 20, stop=nb.stop.Gain(0.02), progress=False)
        assert "less than 0.02" in study.stopped
        assert len(study.history) < 20
        assert study.best.value < 0.05

    def test_constraints_and_noise_count(self):
        study = fresh(nb.GaBO(initial=3), noise="infer")
        study.run(lambda x: nb.Observation(bowl(x), constraints=float(x[1]) + 2), 5, progress=False)
        assert 0 <= study.expected_gain() < 2


class TestQueue:
    def test_enqueued_points_come_first(self, tmp_path):
        with fresh(store=tmp_path / "s.db") as study:
            for k in range(3):
                study.enqueue(torch.eye(3)[k], note=f"axis {k}")
        with nb.Study.load(tmp_path / "s.db") as study:
            first = study.ask()
            assert torch.equal(first.x, torch.eye(3, dtype=torch.float64)[0])
            assert first.told.note == "axis 0"
            study.tell(first, 1.0)
            study.run(bowl, 3, progress=False)
            assert [trial.value for trial in study.history[1:3]] == [1.0, 1.0]
            assert len(study.history) == 4
            assert study.history[0].told.note == "axis 0"
            asked, done = study.times[1]
            assert asked <= done

    def test_several_are_asked_with_new_ones(self):
        study = fresh()
        study.enqueue([0.0, 0, 1])
        trials = study.ask(3)
        assert [trial.index for trial in trials] == [0, 1, 2]
        assert trials[0].x.tolist() == [0, 0, 1]
        assert len(study.pending) == 3

    def test_what_is_no_point_of_the_study_is_refused(self):
        with pytest.raises(nb.OffManifoldError):
            fresh().enqueue([1.0, 1, 1])
        with pytest.raises(nb.ArgumentError, match="enqueue takes one point"):
            fresh().enqueue(torch.eye(3))
        with pytest.raises(nb.ArgumentError, match="note is a text"):
            fresh().enqueue([0.0, 0, 1], note=3)
        with pytest.raises(nb.ConstraintError, match="satisfies the constraints"):
            fresh(constraints=lambda x: x[..., 0]).enqueue([-1.0, 0, 0])


class TestShelf:
    def test_the_best_candidate_is_chosen_and_none_twice(self):
        study, shelf = fresh(nb.GaBO(initial=4)), SPACE.random(30, rng=torch.Generator().manual_seed(1))
        for _ in range(12):
            trial = study.ask(among=shelf)
            study.tell(trial, bowl(trial.x))
        chosen = [min(range(30), key=lambda k: float((shelf[k] - t.x).norm())) for t in study.history]
        assert len(set(chosen)) == 12
        assert torch.equal(shelf[chosen], study.history.points)
        ranked = sorted(bowl(x) for x in shelf)
        assert study.best.value <= ranked[1]  # eight guided draws of thirty: the first or the second

    @pytest.mark.parametrize("strategy", [nb.HDGaBO(1, initial=2), nb.EuclideanBO(initial=2), nb.GaBO(initial=2)])
    def test_on_any_strategy_also_several_at_a_time(self, strategy):
        study = fresh(strategy)
        study.run(lambda x: nb.Observation(bowl(x), constraints=float(x[1]) + 0.5), 4, progress=False)
        shelf = [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]]
        assert len({tuple(trial.x.tolist()) for trial in study.ask(3, among=shelf)}) == 3
        with pytest.raises(nb.ArgumentError, match="All 3 points of among"):
            study.ask(among=shelf)
        assert len(study.pending) == 3

    def test_a_constraint_known_in_advance_takes_candidates_off_the_shelf(self):
        study = fresh(constraints=lambda x: x[..., 0])
        assert study.ask(among=[[1.0, 0, 0], [-1.0, 0, 0]]).x[0] == 1
        with pytest.raises(nb.ArgumentError, match="satisfy the constraints"):
            study.ask(among=[[-1.0, 0, 0]])

    def test_candidates_may_have_names(self):
        study = nb.Study(nb.Product(tool=nb.Choice("soft", "hard"), force=nb.Box(0, 1)), nb.RandomSearch())
        trial = study.ask(among=[{"tool": "hard", "force": 0.25}])
        assert trial.parameters == {"tool": "hard", "force": 0.25}

    def test_a_single_point_is_no_list(self):
        with pytest.raises(nb.ArgumentError, match="among takes several points"):
            fresh().ask(among=torch.tensor([1.0, 0, 0]))


class TestFailures:
    def test_the_first_one_is_said_with_its_first_line(self):
        def fails_at_times(x):
            if x[0] > 0:
                raise ValueError("no grip\nand more")
            return bowl(x)

        with pytest.warns(nb.FailureWarning) as said:
            study = fresh().run(fails_at_times, 12, progress=False)
        assert len(said) == 1
        assert "failed: ValueError: no grip. It is recorded" in str(said[0].message)
        assert said[0].filename == __file__
        assert sum(trial.status == "failed" for trial in study.history) > 1

    def test_six_at_the_beginning_are_a_mistake(self):
        study = fresh()
        with pytest.raises(nb.ObjectiveError, match=r"first 6 evaluations failed, the last one with NameError: .*typo"):
            study.run(lambda x: typo, 50, progress=False)  # noqa: F821
        assert [trial.status for trial in study.history] == ["failed"] * 6
        study.run(bowl, 2, progress=False)
        study.run(lambda x: math.nan, 8, progress=False)  # there is a value by now
        assert len(study.history) == 16

    def test_exact_evaluations_warn_of_nothing(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            study = fresh().run(bowl, 3, progress=False)
        assert [trial.status for trial in study.history] == ["told"] * 3
