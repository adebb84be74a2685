"""Real Optuna studies over manifolds: in memory, in a SQLite file, with several worker processes."""

import math
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import optuna
import pytest
import torch
from optuna.testing.pytest_samplers import BasicSamplerTestCase, MultiObjectiveSamplerTestCase
from optuna.trial import TrialState

import nestbo as nb
import nestbo.optuna
from nestbo import ArgumentError, Box, GaBO, HDGaBO, Product, Quaternion, RandomSearch, Rotation, Simplex, Sphere, Torus
from nestbo.optuna import ManifoldSampler, distributions, params, point, suggest
from nestbo.strategies import Runs

SPACES = [
    Sphere(11),
    nb.SPD(2, eigenvalues=(0.1, 5)),
    nb.SPD(2),
    nb.Euclidean(2),
    nb.Grassmann(4, 2),
    Rotation(3),
    Product(Quaternion(), Torus(1), Simplex(2), Box([-3, 0], [5, 1])),
]
spaces = pytest.mark.parametrize("space", SPACES, ids=repr)


@pytest.fixture(autouse=True)
def quiet():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def value(space, x):
    return float((space.embed(x) - 0.3).square().sum())


def begun(space, strategy=None, **options):
    return optuna.create_study(sampler=ManifoldSampler(space, strategy), **options)


def turn(k):
    """What the watched strategy remembers of its k-th suggestion."""
    return nb.Memory(own={"turn": k})


@dataclass(frozen=True, repr=False)
class Watched(nb.Strategy):
    """Random search that lets the test see what it was given."""

    seen: ClassVar = []

    @classmethod
    def samples(cls):
        return [cls()]

    def propose(self, space, runs):
        self.seen.append(runs)
        return space.random(1, rng=runs.rngs[0]), [turn(len(self.seen))]


@pytest.fixture
def watched():
    Watched.seen.clear()
    return Watched()


class TestParameters:
    @spaces
    def test_points_survive_the_way_through_parameters_to_the_bit(self, space, rng):
        for x in space.random(20, rng=rng):
            stored, ranges = params(x, space), distributions(space)
            assert stored.keys() == ranges.keys()
            assert all(ranges[key]._contains(stored[key]) for key in stored)
            study = begun(space)
            study.enqueue_trial(stored)
            back = suggest(study.ask(), space)
            torch.testing.assert_close(back, x, rtol=0, atol=1e-15)
            assert torch.equal(point(study.trials[0], space), back)

    def test_names_say_where_an_entry_stands_and_sort(self):
        assert list(distributions(Sphere(2))) == ["x_0", "x_1", "x_2"]
        assert list(distributions(nb.SPD(2), "stiffness"))[:2] == ["stiffness_0_0", "stiffness_0_1"]
        names = list(distributions(Sphere(11)))
        assert names[1] == "x_01"
        assert names == sorted(names)

    def test_ranges_are_those_of_the_space(self):
        ranges = distributions(Product(Sphere(1), Torus(1), Simplex(1), Box(2, 3), nb.SPD(2, eigenvalues=(1, 5))))
        assert [(r.low, r.high) for r in ranges.values()] == [
            *[(-1, 1)] * 2,
            (-math.pi, math.pi),
            *[(0, 1)] * 2,
            (2, 3),
            *[(1, 5), (-2, 2), (-2, 2), (1, 5)],
        ]

    def test_an_angle_beyond_a_turn_is_brought_back(self):
        assert params([2 * math.pi + 1.0], Torus(1))["x_0"] == pytest.approx(1.0)

    def test_a_rounding_beyond_a_range_is_cut(self):
        assert params([1 + 2e-16, 0.0, 0.0], Sphere(2))["x_0"] <= 1.0

    def test_any_sampler_leads_to_points_of_the_space(self):
        space = Product(Sphere(2), Simplex(1))
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        study.optimize(lambda trial: value(space, space.check(suggest(trial, space))), n_trials=5)
        assert value(space, point(study.best_trial, space)) == study.best_value

    def test_a_fixed_trial_tries_an_objective_without_a_study(self):
        trial = optuna.trial.FixedTrial({"x_0": 0.6, "x_1": 0.8})
        assert suggest(trial, Sphere(1)).tolist() == [0.6, 0.8]


@spaces
def test_suggestions_are_those_of_a_nestbo_study_to_the_bit(space):
    method = GaBO(initial=3)
    theirs, ours = begun(space, method), nb.Study(space, method, seed=0)
    theirs.optimize(lambda trial: value(space, suggest(trial, space)), n_trials=5)
    ours.run(lambda x: value(space, x), 5, progress=False)
    assert [t.value for t in theirs.trials] == pytest.approx([t.value for t in ours.history], abs=1e-12)
    close = [torch.equal(point(t, space), o.x) for t, o in zip(theirs.trials, ours.history, strict=True)]
    assert all(close)


def test_maximising():
    study = begun(Sphere(2), direction="maximize")
    study.optimize(lambda trial: float(suggest(trial, Sphere(2))[2]), n_trials=10)
    assert study.best_value > 0.9


class TestWhatStrategiesSee:
    def test_a_whole_number_is_a_known_variance_too(self):
        study = begun(Sphere(1), RandomSearch())
        study.optimize(lambda trial: value(Sphere(1), suggest(trial, Sphere(1))), n_trials=2)
        for noise in (1, 1.0):
            history = ManifoldSampler(Sphere(1), noise=noise).history(study)
            assert Runs.of(Sphere(1), history, torch.Generator()).noise == 1.0

    def test_running_trials_are_pending_before_the_objective_has_read_them(self, watched):
        study = begun(Sphere(2), watched)
        first, second = study.ask(), study.ask()
        assert first.relative_params
        x = suggest(second, Sphere(2))
        suggest(study.ask(), Sphere(2))
        assert [runs.pending.shape[1] for runs in watched.seen] == [0, 1, 2]
        assert [runs.asked for runs in watched.seen[1:]] == [[[turn(1)]], [[turn(1), turn(2)]]]
        assert torch.equal(watched.seen[2].pending[0, 1], x)
        assert not torch.allclose(*watched.seen[2].pending[0])

    def test_finished_failed_and_pruned_trials(self, watched):
        def objective(trial):
            suggest(trial, Sphere(2))
            if trial.number == 1:
                raise RuntimeError("motor stalled")
            if trial.number == 2:
                return math.nan
            if trial.number in (3, 4):
                if trial.number == 3:
                    trial.report(7.0, step=1)
                raise optuna.TrialPruned
            return 1.0 + trial.number

        study = begun(Sphere(2), watched)
        study.optimize(objective, n_trials=6, catch=(RuntimeError,))
        suggest(study.ask(), Sphere(2))
        told = watched.seen[-1]
        assert told.y.tolist() == [[1.0, 7.0, 7.0, 7.0, 7.0, 6.0]]
        history = study.sampler.history(study)
        assert [t.status for t in history] == ["told", "failed", "failed", "told", "failed", "told", "asked"]
        assert [t.memory for t in history] == [turn(k) for k in range(1, 8)]

    def test_values_are_flipped_where_a_study_maximises(self, watched):
        study = begun(Sphere(1), watched, direction="maximize")
        study.optimize(lambda trial: suggest(trial, Sphere(1)).abs().sum().item(), n_trials=3)
        suggest(study.ask(), Sphere(1))
        assert watched.seen[-1].y[0].tolist() == [-t.value for t in study.trials[:3]]

    def test_enqueued_and_added_trials(self, watched):
        study, x = begun(Simplex(2), watched), [0.2, 0.3, 0.5]
        known = optuna.trial.create_trial(
            params=params([0.0, 0.0, 1.0], Simplex(2)), distributions=distributions(Simplex(2)), value=4.0
        )
        study.add_trial(known)
        study.enqueue_trial(params(x, Simplex(2)))
        trial = study.ask()
        assert suggest(trial, Simplex(2)).tolist() == x
        assert watched.seen == []
        study.tell(trial, 2.0)
        suggest(study.ask(), Simplex(2))
        assert watched.seen[0].x[0].tolist() == [[0.0, 0.0, 1.0], x]
        assert watched.seen[0].y[0].tolist() == [4.0, 2.0]

    def test_who_comes_second_to_a_point_suggests_another(self):
        """Two workers that look at the same moment would choose the same point."""
        space = Sphere(1)
        meeting = torch.tensor([0.6, 0.8], dtype=torch.float64)

        @dataclass(frozen=True, repr=False)
        class Slow(Watched):
            def propose(self, space, runs):
                if runs.pending.shape[1]:
                    return -meeting.unsqueeze(0), [nb.Memory()]
                study.add_trial(
                    optuna.trial.create_trial(
                        state=TrialState.RUNNING, params=params(meeting, space), distributions=distributions(space)
                    )
                )
                return meeting.unsqueeze(0), [nb.Memory()]

        study = begun(space, Slow())
        assert torch.equal(suggest(study.ask(), space), -meeting)

    def test_other_parameters_are_drawn_at_random_and_differ(self):
        drawn = []
        for _ in range(2):
            study = begun(Sphere(1), RandomSearch())
            study.optimize(lambda t: suggest(t, Sphere(1))[0].item() + t.suggest_float("a", 0, 1), n_trials=4)
            drawn.append([t.params["a"] for t in study.trials])
        assert drawn[0] == drawn[1]
        assert len(set(drawn[0])) == 4

    def test_coordinates_that_were_enqueued_alone_are_completed_by_a_suggestion(self, watched):
        space = Box([0, 0], [1, 1])
        study = begun(space, watched)
        study.enqueue_trial({"x_0": 0.25})
        first = study.ask()
        assert first.relative_params  # nothing is read yet
        suggest(study.ask(), space)
        x = suggest(first, space)
        assert x[0] == 0.25
        assert torch.equal(watched.seen[1].pending[0, 0], x)
        assert [trial.memory for trial in study.sampler.history(study)] == [nb.Memory(), turn(2)]

    def test_threads(self):
        study = begun(Sphere(2), GaBO(initial=3))
        study.optimize(lambda trial: value(Sphere(2), suggest(trial, Sphere(2))), n_trials=6, n_jobs=3)
        points = torch.stack([point(t, Sphere(2)) for t in study.trials])
        assert (torch.cdist(points, points) + torch.eye(6) > 1e-9).all()


class TestConstraints:
    """Optuna's are satisfied where they are ≤ 0, nestbo's where they are ≥ 0."""

    def test_they_reach_the_strategy(self, watched):
        def objective(trial):
            x = suggest(trial, Sphere(1))
            trial.set_constraint("load", float(x[0]))
            trial.set_constraint("heat", float(x[1]) - 0.5)
            return 1.0

        study = begun(Sphere(1), watched)
        study.optimize(objective, n_trials=3)
        suggest(study.ask(), Sphere(1))
        x = watched.seen[-1].x
        wanted = torch.stack([0.5 - x[..., 1], -x[..., 0]], -1)  # heat, load
        torch.testing.assert_close(watched.seen[-1].constraints, wanted)
        assert watched.seen[-1].feasible.tolist() == (wanted >= 0).all(-1).tolist()

    def test_a_function_gives_them_as_in_optunas_samplers(self, watched):
        sampler = ManifoldSampler(Sphere(1), watched, constraints_func=lambda trial: (trial.params["x_0"], -1.0))
        study = optuna.create_study(sampler=sampler)
        study.optimize(lambda trial: suggest(trial, Sphere(1))[1].item(), n_trials=2)
        assert [t.constraints for t in study.sampler.history(study)] == [(-t.params["x_0"], 1.0) for t in study.trials]
        assert study.trials[0].constraints == {"0": study.trials[0].params["x_0"], "1": -1.0}

    def test_one_that_a_trial_does_not_name_counts_as_the_least_told(self):
        def told(value, **constraints):
            return optuna.trial.create_trial(
                params=params([1.0, 0.0], Sphere(1)),
                distributions=distributions(Sphere(1)),
                value=value,
                constraints=constraints,
            )

        study = begun(Sphere(1))
        study.add_trials([told(1.0, load=1.0), told(2.0, heat=-2.0, load=-1.0), told(3.0), told(4.0, heat=math.inf)])
        history = study.sampler.history(study)
        assert [trial.constraints for trial in history] == [(-1.0, 2.0), (1.0, 2.0), None, None]
        assert [trial.status for trial in history] == ["told", "told", "told", "failed"]
        assert history.best.value == 2.0

    def test_suggestions_are_those_of_a_nestbo_study_told_the_same(self):
        space, method = Sphere(2), GaBO(initial=3)

        def objective(trial):
            x = suggest(trial, space)
            trial.set_constraint("side", 0.2 - float(x[0]))
            return value(space, x)

        theirs, ours = begun(space, method), nb.Study(space, method, seed=0)
        theirs.optimize(objective, n_trials=6)
        ours.run(lambda x: nb.Observation(value(space, x), constraints=float(x[0]) - 0.2), 6, progress=False)
        pairs = zip(theirs.trials, ours.history, strict=True)
        assert all(torch.equal(point(their, space), our.x) for their, our in pairs)

    def test_suggestions_learn_to_be_feasible(self):
        def objective(trial):
            x = suggest(trial, Sphere(2))
            trial.set_constraint("north", 0.3 - float(x[2]))  # x[2] ≥ 0.3
            return float(x[2] + x[0])

        study = begun(Sphere(2), GaBO(initial=4))
        study.optimize(objective, n_trials=14)
        feasible = [trial.constraints["north"] <= 0 for trial in study.trials]
        assert sum(feasible[-6:]) >= 3
        assert study.best_trial.constraints["north"] <= 0

    @pytest.mark.parametrize("given", [math.nan, "many", (), None])
    def test_what_is_no_constraint(self, given):
        sampler = ManifoldSampler(Sphere(1), RandomSearch(), constraints_func=lambda trial: given)
        study = optuna.create_study(sampler=sampler)
        with pytest.raises(ArgumentError, match="numbers"):
            study.optimize(lambda trial: suggest(trial, Sphere(1))[1].item(), n_trials=1)

    def test_what_is_no_function(self):
        with pytest.raises(ArgumentError, match="constraints_func is a function of a trial, got 3"):
            ManifoldSampler(Sphere(1), constraints_func=3)


class TestOtherSpaces:
    """A study may hold trials of another space whose parameters have the same names."""

    @pytest.mark.parametrize(
        ("before", "now"),
        [
            (Box([0, 0], [1, 1]), Box([5, 5], [9, 9])),
            (Box([0, 0], [1, 1]), Sphere(1)),
            (Product(Sphere(1), Sphere(1)), Sphere(3)),
            (Sphere(3), Sphere(2)),
            (Sphere(2), Sphere(3)),
            (nb.Stiefel(3, 2), nb.Grassmann(3, 2)),
        ],
        ids=repr,
    )
    def test_their_trials_are_left_out_with_one_warning(self, before, now):
        study = begun(before, RandomSearch())
        study.optimize(lambda trial: value(before, suggest(trial, before)), n_trials=2)
        assert study.ask().relative_params  # suggested, and not yet read
        study.sampler = ManifoldSampler(now, RandomSearch())
        with pytest.warns(UserWarning, match=r"^3 trials .* not points of .*ignored") as caught:
            study.optimize(lambda trial: value(now, suggest(trial, now)), n_trials=3)
        assert len(caught) == 1
        assert [trial.index for trial in study.sampler.history(study)] == [3, 4, 5]

    def test_points_of_any_sampler_belong_to_the_space_that_the_objective_names(self):
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        study.optimize(lambda trial: value(Sphere(2), suggest(trial, Sphere(2))), n_trials=3)
        assert len(ManifoldSampler(Sphere(2)).history(study)) == 3
        with pytest.warns(UserWarning, match="3 trials"):
            assert len(ManifoldSampler(nb.Product(Sphere(1), Box(-1, 1))).history(study)) == 0

    def test_what_says_nothing_of_its_space_counts_where_it_lies_in_it(self):
        study = begun(Sphere(1))
        for numbers in ({"x_0": 0.6, "x_1": 0.8}, {"x_0": 0.6, "x_1": 0.9}):
            known = optuna.trial.create_trial(params=numbers, distributions=distributions(Sphere(1)), value=1.0)
            study.add_trial(known)
        with pytest.warns(UserWarning, match="1 trials"):
            assert [trial.index for trial in study.sampler.history(study)] == [0]

    def test_a_trial_has_one_space(self):
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        trial = study.ask()
        suggest(trial, Sphere(2))
        with pytest.raises(ArgumentError, match="'x' of trial 0 is from sphere:2, got Stiefel"):
            suggest(trial, nb.Stiefel(3, 1))


class TestOptunasOwnTests(BasicSamplerTestCase, MultiObjectiveSamplerTestCase):
    """Those that Optuna ships for samplers: objectives of ordinary parameters, beside the point or without one."""

    @pytest.fixture
    def sampler(self):
        return lambda: ManifoldSampler(Sphere(1), RandomSearch())


WORKER = """
import sys
import optuna
import nestbo as nb
from nestbo.optuna import ManifoldSampler, suggest

space = nb.Product(nb.Sphere(2), nb.Box(0, 1))
sampler = ManifoldSampler(space, nb.HDGaBO(latent_dim=(1, None), initial=3))
study = optuna.load_study(study_name="robot", storage=sys.argv[1], sampler=sampler)
study.optimize(lambda trial: float((space.embed(suggest(trial, space)) - 0.3).square().sum()), n_trials=4)
"""


def test_several_processes_share_a_file(tmp_path):
    """Two workers, one SQLite file; what they wrote is complete, distinct, on the manifold, and goes on."""
    store, space = f"sqlite:///{tmp_path}/robot.db", Product(Sphere(2), Box(0, 1))
    optuna.create_study(study_name="robot", storage=store)
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, store], stderr=subprocess.PIPE, env=alone) for _ in range(2)
    ]
    ends = [worker.communicate(timeout=250)[1].decode() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], "\n".join(ends)
    method = HDGaBO(latent_dim=(1, None), initial=3)
    study = optuna.load_study(study_name="robot", storage=store, sampler=ManifoldSampler(space, method))
    assert [t.state for t in study.trials] == [TrialState.COMPLETE] * 8
    points = torch.stack([point(t, space) for t in study.trials])
    space.check(points)
    assert (torch.cdist(points, points) + torch.eye(8) > 1e-9).all()
    assert [value(space, x) for x in points] == [t.value for t in study.trials]
    assert sum(t.memory.arm is not None for t in study.sampler.history(study)) >= 3
    study.optimize(lambda trial: value(space, suggest(trial, space)), n_trials=1)
    assert len(study.trials) == 9
    assert study.best_trial.params == params(point(study.best_trial, space), space)


def test_several_objectives_are_those_of_a_study():
    space = Sphere(12)
    study = begun(space, directions=["minimize", "maximize"])
    own = nb.Study(space, objectives=("a", "b"), direction=("minimize", "maximize"), seed=0)

    def both(trial):
        x = suggest(trial, space)
        assert torch.equal(x, own.ask().x)
        if trial.number == 2:
            own.tell(trial.number, failed="on purpose")
            raise ValueError
        own.tell(trial.number, (x[0].item(), x[1].item()))
        return x[0].item(), x[1].item()

    study.optimize(both, n_trials=7, catch=ValueError)
    history = study.sampler.history(study)
    assert history.direction == ("minimize", "maximize")
    assert [trial.index for trial in history.front] == sorted(trial.number for trial in study.best_trials)
    assert history[-1].memory.arm == "front"


class TestMistakes:
    def test_another_space_in_the_objective(self):
        trial = begun(Sphere(2)).ask()
        with pytest.raises(ArgumentError, match=r"samples 'x' from Sphere\(2\), got 'x' from Sphere\(3\)"):
            suggest(trial, Sphere(3))
        with pytest.raises(ArgumentError, match=r"got 'y' from Sphere\(2\)"):
            suggest(trial, Sphere(2), "y")

    def test_several_objectives_and_a_method_for_one(self):
        study = begun(Sphere(5), HDGaBO(latent_dim=2), directions=["minimize", "minimize"])
        with pytest.raises(ArgumentError, match="one objective, got 2"):
            suggest(study.ask(), Sphere(5))
        study = optuna.create_study(sampler=ManifoldSampler(Sphere(1), noise=0.1), directions=["minimize"] * 2)
        with pytest.raises(ArgumentError, match="a single objective, got 2"):
            suggest(study.ask(), Sphere(1))

    def test_what_is_not_a_space_or_a_strategy(self):
        with pytest.raises(ArgumentError, match="needs a space"):
            ManifoldSampler("sphere:2")
        with pytest.raises(ArgumentError, match="strategy is an object such as"):
            ManifoldSampler(Sphere(2), optuna.samplers.TPESampler())
        with pytest.raises(ArgumentError, match="latent_dim of"):
            ManifoldSampler(Sphere(2), HDGaBO(latent_dim=5))

    def test_a_trial_without_the_point(self):
        study = begun(Sphere(2))
        study.optimize(lambda trial: trial.suggest_float("a", 0, 1), n_trials=1)
        with pytest.raises(ArgumentError, match=r"Trial 0 has no parameter 'x_0' of a point 'x' of Sphere\(2\)"):
            point(study.best_trial, Sphere(2))
        assert len(study.sampler.history(study)) == 0

    @pytest.mark.parametrize(
        ("x", "space"),
        [
            ([3e10], nb.Euclidean(1)),
            ([[3e10, 0.0], [0.0, 1.0]], nb.SPD(2)),
            ([0.0, -1e11], Product(nb.Euclidean(1), nb.Euclidean(1))),
        ],
        ids=repr,
    )
    def test_a_point_beyond_what_optuna_keeps(self, x, space):
        with pytest.raises(ArgumentError, match=r"between -1e\+10 and 1e\+10 in Optuna, got .* another unit"):
            params(x, space)

    def test_large_bounds_allow_the_rounding_of_large_numbers(self, rng):
        for space in (Box(0, 1e15), nb.SPD(2, eigenvalues=(1e9, 1e12)), nb.Euclidean(1)):
            assert params(space.random(rng=rng), space)
        assert params([1e10], nb.Euclidean(1)) == {"x_0": 1e10}

    def test_a_parameter_of_another_kind_with_the_name_of_an_entry(self):
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        study.optimize(lambda t: len(t.suggest_categorical("x_0", ["red", "blue"])) + t.suggest_int("x_1", 0, 3), 2)
        with pytest.raises(ArgumentError, match=r"'x_0' of trial \d is '\w+', no float of a point 'x' of Sphere\(1\)"):
            point(study.best_trial, Sphere(1))
        study.sampler = ManifoldSampler(Sphere(1), RandomSearch())
        trial = study.ask()
        with pytest.warns(UserWarning, match="2 trials of this study"):
            assert trial.relative_params
        with pytest.raises(ArgumentError, match=r"no float for 'x_0'.* different distribution kind .*name=name"):
            suggest(trial, Sphere(1))

    @pytest.mark.filterwarnings("ignore:Fixed parameter")
    @pytest.mark.parametrize("given", ["red", math.inf, True])
    def test_what_was_enqueued_is_no_number(self, given):
        study = begun(Sphere(1), RandomSearch())
        study.enqueue_trial({"x_0": given, "x_1": 0.0})
        trial = study.ask()
        if given is True:  # 1.0 for Optuna, and for its storages
            assert suggest(trial, Sphere(1)).tolist() == [1.0, 0.0]
            return
        with pytest.raises(ArgumentError, match="'x_0'"):
            suggest(trial, Sphere(1))
        with pytest.warns(UserWarning, match="1 trials"):
            suggest(study.ask(), Sphere(1))

    def test_a_fixed_trial_without_an_entry(self):
        with pytest.raises(ArgumentError, match="no float for 'x_1'"):
            suggest(optuna.trial.FixedTrial({"x_0": 1.0}), Sphere(1))

    @pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
    def test_fixed_parameters(self):
        def objective(trial):
            return value(Sphere(1), suggest(trial, Sphere(1))) + trial.suggest_float("a", 0, 1)

        def fixed(**numbers):
            sampler = ManifoldSampler(Sphere(1), RandomSearch())
            return optuna.create_study(sampler=optuna.samplers.PartialFixedSampler(numbers, sampler))

        with pytest.raises(ArgumentError, match=r"whole points of Sphere\(1\), but 'x_0' is fixed"):
            fixed(x_0=0.5).optimize(objective, n_trials=1)
        beside, whole = fixed(a=0.5), fixed(x_0=0.6, x_1=0.8)
        for study in (beside, whole):
            study.optimize(objective, n_trials=2)
        assert [trial.params["a"] for trial in beside.trials] == [0.5, 0.5]
        assert beside.trials[0].params["x_0"] != beside.trials[1].params["x_0"]
        assert point(whole.trials[1], Sphere(1)).tolist() == [0.6, 0.8]

    def test_several_points_at_once(self, rng):
        with pytest.raises(ArgumentError, match=r"one point, of shape \(3,\), got \(2, 3\)"):
            params(Sphere(2).random(2, rng=rng), Sphere(2))

    def test_without_optuna_the_message_says_what_to_install(self):
        text = "import sys; sys.modules['optuna'] = None; import nestbo.optuna"
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
        assert done.returncode == 1
        assert "pip install 'nestbo[optuna]'" in done.stderr


class TestBeside:
    """Parameters that an objective reads beside the point are suggested jointly with it."""

    @staticmethod
    def objective(trial):
        weights = suggest(trial, nb.Simplex(2))
        trees = trial.suggest_int("trees", 10, 90, step=5)
        depth = trial.suggest_int("depth", 1, 12)
        rate = trial.suggest_float("rate", 1e-5, 1.0, log=True)
        solver = trial.suggest_categorical("solver", ["a", None, 3.5])
        share = trial.suggest_float("share", 0.0, 1.0, step=0.25)
        assert isinstance(trees, int)
        assert trees % 5 == 0
        away = float((weights - torch.tensor([0.5, 0.3, 0.2])).square().sum()) + ((trees - 60) / 40) ** 2
        return (
            away + ((depth - 9) / 6) ** 2 + (math.log10(rate) + 3) ** 2 / 9 + (solver is not None) + (share - 0.5) ** 2
        )

    def test_they_are_modelled(self):
        study = optuna.create_study(sampler=ManifoldSampler(nb.Simplex(2), seed=0))
        study.optimize(self.objective, n_trials=17)
        assert study.best_params["solver"] is None
        assert study.best_value < 0.4

    def test_a_study_goes_on_with_them(self):
        storage = optuna.storages.InMemoryStorage()
        runs = []
        for counts in ((7,), (3, 4)):
            name = f"s{len(counts)}"
            optuna.create_study(study_name=name, storage=storage)
            for count in counts:
                sampler = ManifoldSampler(nb.Simplex(2), seed=0)
                study = optuna.load_study(study_name=name, storage=storage, sampler=sampler)
                study.optimize(self.objective, n_trials=count)
            runs.append([trial.params for trial in study.trials])
        assert runs[0] == runs[1]

    def test_what_only_some_trials_have_is_drawn_at_random(self):
        def objective(trial):
            x = suggest(trial, nb.Sphere(2))
            extra = trial.suggest_int("extra", 1, 5) if trial.number % 2 else 0
            return float(x[0]) + extra

        study = optuna.create_study(sampler=ManifoldSampler(nb.Sphere(2), seed=0))
        study.optimize(objective, n_trials=8)
        assert len(study.trials) == 8

    def test_nested_models_stay_those_of_the_point(self):
        def objective(trial):
            return float(suggest(trial, nb.Sphere(12))[0]) + trial.suggest_int("n", 0, 4)

        sampler = ManifoldSampler(nb.Sphere(12), nb.HDGaBO(latent_dim=2), seed=0)
        study = optuna.create_study(sampler=sampler)
        study.optimize(objective, n_trials=8)
        assert study.best_params["n"] <= 2

    def test_a_method_that_cannot_take_them_works_as_before(self):
        sampler = ManifoldSampler(nb.Sphere(3), nb.EuclideanBO(), seed=0)
        study = optuna.create_study(sampler=sampler)
        study.optimize(lambda trial: float(suggest(trial, nb.Sphere(3))[0]) + trial.suggest_int("n", 0, 4), n_trials=7)
        assert len(study.trials) == 7

    def test_names_of_a_space_are_those_of_parameters(self):
        space = nb.Product(direction=nb.Sphere(1), passes=nb.Integer(1, 4), tool=nb.Choice("soft", "hard"))
        study = optuna.create_study(sampler=ManifoldSampler(space, name="p", seed=0))
        study.optimize(lambda trial: float(suggest(trial, space, "p")[0]), n_trials=6)
        assert list(study.best_params) == ["p_direction_0", "p_direction_1", "p_passes", "p_tool"]
        space.check(point(study.best_trial, space, "p"))
