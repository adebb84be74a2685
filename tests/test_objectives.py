"""Several objectives: fronts, what is suggested for them, what is told of them, and what is refused."""

import io
import json
import math
from dataclasses import replace

import pytest
import torch

import nestbo as nb
from nestbo.errors import ArgumentError, StoreError
from nestbo.fronts import hypervolume, non_dominated, ranks
from nestbo.history import History, Trial
from nestbo.kernels import kernel
from nestbo.search import Runs
from nestbo.strategies.many import Joint, Many, _reference, hypervolume_gain
from nestbo.surrogate import Data, Description, fit

NAMES = ("error", "energy")


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def two_targets(space, seed=7):
    """Squared distances to two points: the front is the geodesic between them."""
    first, second = space.random(2, rng=seeded(seed))
    return lambda x: (float(space.dist(x, first) ** 2), float(space.dist(x, second) ** 2))


def told(space, count=7, **options):
    """A study with some told trials at random points."""
    study, f = nb.Study(space, objectives=NAMES, **options), two_targets(space)
    for x in space.random(count, rng=seeded(1)):
        study.add(x, f(x))
    return study


class TestFronts:
    def test_what_nothing_dominates(self):
        y = tensor([[0, 3], [1, 1], [3, 0], [2, 2], [1, 1], [0, 4]])
        assert non_dominated(y).tolist() == [True, True, True, False, True, False]
        assert ranks(y).tolist() == [0, 0, 0, 1, 0, 1]

    def test_only_the_first_fronts_are_told_apart(self):
        found = ranks(torch.arange(50.0).unsqueeze(-1).expand(50, 2))
        assert found.tolist() == [min(k, 20) for k in range(50)]

    def test_hypervolume_by_hand(self):
        y = tensor([[0, 3], [1, 1], [3, 0], [2, 2], [9, -1]])
        assert hypervolume(y, tensor([4, 4])) == pytest.approx(1 + 9 + 1)
        assert hypervolume(y, tensor([0, 0])) == 0
        assert hypervolume(tensor([[0, 0, 0]]), tensor([1, 2, 3])) == pytest.approx(6)

    def test_directions_of_a_history(self):
        trials = [Trial(k, torch.zeros(2)).with_value(*y) for k, y in enumerate([(0, 3), (1, 1), (0, 4)])]
        history = History((*trials, Trial(3, torch.zeros(2)).with_failure()), direction=("minimize", "maximize"))
        assert [trial.index for trial in history.front] == [2]
        assert history.worst == (1, 1)
        assert history.outcomes.tolist()[-1] == [1, 1]
        assert history.to_minimise.outcomes[:, 1].tolist() == [-3, -1, -4, -1]
        assert history.to_minimise.direction == ("minimize", "minimize")

    def test_the_front_of_one_objective_is_the_best(self):
        study = nb.Study(nb.Sphere(2))
        for value in (2.0, 1.0, 1.0):
            study.add(study.space.random(rng=seeded(0)), value)
        assert [trial.index for trial in study.front] == [1, 2]


class TestStudy:
    def test_values_front_and_hypervolume(self):
        study = nb.Study(nb.Sphere(2), objectives=NAMES, direction=("minimize", "maximize"))
        for values in ((1, 1), (2, 3), (3, 2), (0.5, 0.5)):
            done = study.tell(study.ask(), values)
        assert done.values == (0.5, 0.5)
        assert done.value is None
        assert [trial.index for trial in study.front] == [0, 1, 3]
        assert study.hypervolume(reference=(3, 0)) == pytest.approx(0.5 * 0.5 + 1 * 1 + 1 * 3)
        assert study.hypervolume() == pytest.approx(study.hypervolume(reference=(3, 0.5)))

    def test_it_is_kept_in_a_file(self, tmp_path):
        path, space = tmp_path / "s.db", nb.Sphere(2)
        with told(space, store=path, direction=("minimize", "maximize"), noise=(0.1, 0.2)) as study:
            expected = study.ask().x
        with nb.Study.load(path) as again:
            assert again.objectives == NAMES
            assert again.direction == ("minimize", "maximize")
            assert again.noise == (0.1, 0.2)
            assert [trial.values for trial in again.history] == [trial.values for trial in study.history]
        repeated = told(space, direction=("minimize", "maximize"), noise=(0.1, 0.2))
        assert torch.equal(repeated.ask().x, expected)
        with pytest.raises(ArgumentError, match="objectives"):
            nb.Study(space, store=path, direction=("minimize", "maximize"), noise=(0.1, 0.2), objectives=("a", "b"))
        with pytest.raises(ArgumentError, match=r"objectives \['error', 'energy'\], got one objective"):
            nb.Study(space, store=path)

    def test_damaged_settings_are_refused(self, tmp_path):
        path = tmp_path / "s.db"
        with told(nb.Sphere(2), store=path) as study:
            study.remember(objectives="error")
        with pytest.raises(StoreError, match="objectives"):
            nb.Study.load(path)

    def test_a_run_approaches_the_front(self):
        space = nb.Sphere(2)
        f = two_targets(space)
        size = max(f(space.random(2, rng=seeded(7))[0]))
        study = nb.Study(space, objectives=NAMES, seed=1).run(f, 14, progress=False)
        random = nb.Study(space, nb.RandomSearch(), objectives=NAMES, seed=1).run(f, 14, progress=False)
        ways = torch.linspace(0, 1, 200, dtype=torch.float64)
        ideal = hypervolume(size * torch.stack([ways**2, (1 - ways) ** 2], -1), tensor([size, size]))
        assert study.hypervolume((size, size)) > 0.75 * ideal
        assert study.hypervolume((size, size)) > random.hypervolume((size, size))
        assert list(study.models()) == list(NAMES)

    @pytest.mark.parametrize(
        "text",
        ["sphere:3", "spd:2:eigenvalues=0.1,2", "torus:2", "simplex:3", "grassmann:4:2"],
    )
    def test_every_space_with_points_under_evaluation(self, text):
        study = told(nb.space(text), count=6)
        first, second = study.ask(2)
        assert study.space.violation(first.x) < 1e-6
        assert study.space.dist(first.x, second.x) > 1e-6
        assert first.memory.arm == "front"
        assert list(first.memory.fits) == ["objective:0", "objective:1"]

    def test_the_best_of_a_list(self):
        study = told(nb.Sphere(2))
        near = study.front[0].x + 0.1 * torch.eye(3)[0]
        far = [trial.x for trial in study.history if trial.index not in {t.index for t in study.front}]
        points = torch.stack([*far, study.space.project(near)])
        assert study.ask(among=points).x.tolist() == points[-1].tolist()

    def test_a_run_stops_when_the_front_stands_still(self):
        values = iter([(1.0, 1.0), (0.5, 2.0), (2.0, 2.0), (2.0, 1.0), (3.0, 3.0), (0.0, 0.0)])
        study = nb.Study(nb.Sphere(2), nb.RandomSearch(), objectives=NAMES)
        study.run(lambda x: next(values), 6, stop=nb.stop.Stalled(3), progress=False)
        assert len(study.history) == 5
        with pytest.raises(ArgumentError, match="no best trial"):
            study.run(lambda x: (1.0, 1.0), 1, stop=nb.stop.Target(0.0), progress=False)

    def test_noisy_values(self):
        study = told(nb.Sphere(2), noise="infer")
        point = study.front[0].x
        study.add(point, (3.0, 3.0))
        assert study.ask().x.norm().item() == pytest.approx(1)

    def test_many_points_under_evaluation(self):
        study = told(nb.Sphere(2))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("nestbo.strategies.many._JOINTLY", 1)
            points = torch.stack([trial.x for trial in study.ask(4)])
        away = study.space.pairwise_dist(points, points) + torch.eye(4)
        assert away.min() > 1e-6

    def test_failures_and_three_objectives(self):
        space = nb.Sphere(2)
        study = nb.Study(space, nb.GaBO(initial=3), objectives=("a", "b", "c"))
        for x in space.random(4, rng=seeded(1)):
            study.add(x, tuple(x.tolist()))
        assert study.tell(study.ask(), (1.0, math.nan, 2.0)).status == "failed"
        assert "not a finite number" in study.history[-1].told.failed
        assert study.tell(study.ask(), x.tolist()).values == tuple(x.tolist())

    def test_all_failed(self):
        study = nb.Study(nb.Sphere(2), nb.GaBO(initial=2), objectives=NAMES)
        for _ in range(3):
            study.tell(study.ask(), failed="no power")
        assert study.front == []
        assert study.hypervolume() == 0


class TestConstraints:
    def test_known_ones_hold_for_every_suggestion(self):
        study = nb.Study(nb.Sphere(2), nb.GaBO(initial=3), objectives=NAMES, constraints=lambda x: x[2] - 0.5)
        study.run(two_targets(nb.Sphere(2)), 6, progress=False)
        assert all(trial.x[2] >= 0.5 for trial in study.history)

    def test_observed_ones_count_in_the_front_and_in_the_search(self):
        space = nb.Sphere(2)
        study, f = nb.Study(space, nb.GaBO(initial=3), objectives=NAMES), two_targets(space)
        study.run(lambda x: nb.Observation(f(x), constraints=float(x[2])), 9, progress=False)
        assert all(trial.x[2] >= 0 for trial in study.front)
        assert sum(trial.feasible for trial in study.history[3:]) >= 4
        assert list(study.models()) == [*NAMES, "constraint:0"]


class TestGain:
    def model(self):
        space, f = nb.Sphere(2), two_targets(nb.Sphere(2))
        x = space.random(8, rng=seeded(0))
        y = tensor([f(point) for point in x]).mT
        return fit(Description(kernel("matern52", space)), Data(x.expand(2, 8, 3), y, [seeded(0)] * 2))

    def test_objectives_are_outputs(self):
        surrogate, points = self.model(), nb.Sphere(2).random(4, 3, rng=seeded(2))
        posterior = Joint(surrogate).posterior(points)
        mean, variance = surrogate.gp.moments(points.unsqueeze(1).expand(4, 2, 3, 3))
        assert torch.allclose(posterior.mean, mean.mT)
        assert torch.allclose(posterior.variance, variance.mT, atol=1e-8)

    @pytest.mark.parametrize("noisy", [False, True])
    def test_it_is_the_expected_gain_of_hypervolume(self, noisy):
        model = self.model()
        gp = model.gp
        outcomes, empty = gp.z.mT, torch.zeros(1, 0, 3).double()
        runs = Runs(gp.x[:1], ranks(outcomes).unsqueeze(0), empty, [seeded(0)], [[]], noisy=noisy)
        x = nb.Sphere(2).random(1, 1, rng=seeded(3))
        gain = hypervolume_gain(model, runs)
        mean, variance = gp.moments(x.expand(1, 2, 1, 3))
        drawn = mean.mT + variance.mT.sqrt() * torch.randn(2000, 1, 2, generator=seeded(4), dtype=torch.float64)
        before = hypervolume(outcomes, -gain.args[0].ref_point)
        after = [
            hypervolume(torch.cat([outcomes, y]), -gain.args[0].ref_point) for y in drawn.squeeze(1).unsqueeze(1)[:500]
        ]
        assert gain(x).exp().item() == pytest.approx(sum(after) / len(after) - before, rel=0.25)

    def test_of_three_objectives_a_known_front_gives_what_an_uncertain_one_does(self):
        space = nb.Sphere(2)
        x = space.random(8, rng=seeded(0))
        model = fit(Description(kernel("matern52", space)), Data(x.expand(3, 8, 3), x.mT, [seeded(0)] * 3))
        exact = Runs(x[None], ranks(x)[None], x[None, :0], [seeded(0)], [[]])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("nestbo.strategies.many._SAMPLES", {3: 512})
            points = space.random(5, 1, rng=seeded(3))
            known, uncertain = (hypervolume_gain(model, replace(exact, noisy=noisy))(points) for noisy in (False, True))
        assert known.amax() > -2
        assert torch.allclose(known.exp(), uncertain.exp(), rtol=0.05, atol=2e-3)


class TestMetric:
    """A metric of each objective, where a user asks for one."""

    BOX = nb.Box([0.0] * 4, [1.0] * 4)

    def many(self, metric):
        return Many("matern52", "standardise", "lbfgs", True, metric)

    def runs(self, space, f, count=14):
        x = space.random(count, rng=seeded(1))
        outcomes = torch.stack([f(point) for point in x])
        pending = x[None, :0]
        told = Runs(x[None], ranks(outcomes)[None], pending, [seeded(0)], [[nb.Memory()] * count])
        return replace(told, outcomes=outcomes[None])

    @pytest.mark.parametrize("name", ["diagonal", "full"])
    def test_each_objective_sees_what_it_depends_on(self, name):
        runs = self.runs(self.BOX, lambda x: torch.stack([(4 * x[0]).sin(), (4 * x[3]).cos()]))
        models = self.many(name).models(self.BOX, runs)
        scales = [model.metric.factor[0].diagonal().abs() for model in models.values()]
        assert [scale.argmax().item() for scale in scales] == [0, 3]
        x, (memory,) = self.many(name).propose(self.BOX, runs)
        self.BOX.check(x)
        assert list(memory.fits) == [f"objective:0:{name}", f"objective:1:{name}"]

    def test_directions_of_a_sphere_have_no_axes(self):
        runs = self.runs(nb.Sphere(2), lambda x: x[:2], count=6)
        _, (memory,) = self.many("diagonal").propose(nb.Sphere(2), runs)
        assert list(memory.fits) == ["objective:0", "objective:1"]

    def test_outputs_are_those_of_each_process(self):
        runs = self.runs(self.BOX, lambda x: torch.stack([x[0], x[3] ** 2]))
        points = self.BOX.random(5, rng=seeded(2))
        found = self.many("full")._fit(self.BOX, runs)
        mean = Joint(found).posterior(points.unsqueeze(1)).mean.squeeze(1)
        apart = [found.take([k]) for k in range(2)]
        each = [model.gp.moments(model.see(points[None]))[0][0] for model in apart]
        assert torch.allclose(mean, torch.stack(each, -1))


class TestReference:
    OUTCOMES = tensor([[0.0, 1.0], [1.0, 0.0], [5.0, 6.0], [4.0, 9.0]])

    def test_it_is_close_to_the_front_and_now_and_then_beyond_all_values(self):
        near, far = (_reference(self.OUTCOMES, count) for count in (1, 3))
        assert near.tolist() == pytest.approx([1.1, 1.1])
        assert far.tolist() == pytest.approx([5.5, 9.9])

    def test_a_front_of_one_point_has_no_extent(self):
        outcomes = torch.cat([self.OUTCOMES, tensor([[0.0, 0.0]])])
        assert _reference(outcomes, 1).tolist() == pytest.approx([5.5, 9.9])


class TestRefused:
    def test_a_tuple_in_a_study_of_one_objective(self):
        study = nb.Study(nb.Sphere(2))
        with pytest.raises(ArgumentError, match=r"one objective, got 2 values: \(1.0, 2.0\). A study of several is"):
            study.run(lambda x: (1.0, 2.0), 3, progress=False)
        assert [trial.status for trial in study.history] == ["asked"]
        with pytest.raises(ArgumentError, match="one objective, got 3 values"):
            nb.minimize(lambda x: x, nb.Sphere(2), budget=3)

    def test_a_wrong_number_of_values(self):
        study = nb.Study(nb.Sphere(2), objectives=NAMES)
        with pytest.raises(ArgumentError, match="2 numbers, one for each of error, energy, got 1"):
            study.tell(study.ask(), 1.0)
        with pytest.raises(ArgumentError, match="2 numbers"):
            study.run(lambda x: (1.0, 2.0, 3.0), 1, progress=False)
        with pytest.raises(ArgumentError, match="noise goes with"):
            study.tell(0, (1.0, 2.0), noise=0.1)

    def test_what_only_one_objective_has(self):
        study = told(nb.Sphere(2))
        for work in (lambda: study.best, study.recommend, lambda: study.history.best, lambda: study.history.values):
            with pytest.raises(ArgumentError, match="front"):
                work()
        with pytest.raises(ArgumentError, match="this study has one"):
            nb.Study(nb.Sphere(2)).hypervolume()
        with pytest.raises(ArgumentError, match="reference is a finite number for each of error, energy"):
            study.hypervolume((1.0, 2.0, 3.0))

    @pytest.mark.parametrize("objectives", ["error", ("error",), ("a", "a"), ("a", 3), ("a", " "), {"a": 1, "b": 2}])
    def test_names(self, objectives):
        with pytest.raises(ArgumentError, match="objectives names two or more"):
            nb.Study(nb.Sphere(2), objectives=objectives)

    def test_directions_are_no_names(self):
        with pytest.raises(ArgumentError, match=r'direction=\("minimize", "maximize"\)'):
            nb.Study(nb.Sphere(2), objectives=("minimize", "maximize"))

    def test_a_file_of_one_objective(self, tmp_path):
        nb.Study(nb.Sphere(2), store=tmp_path / "a.db").close()
        with pytest.raises(ArgumentError, match=r"holds a study with one objective, got objectives \['error'"):
            nb.Study(nb.Sphere(2), nb.GaBO(), store=tmp_path / "a.db", objectives=NAMES)

    def test_other_settings(self):
        for strategy in (nb.HDGaBO(), nb.EuclideanBO()):
            with pytest.raises(ArgumentError, match="works with one objective, got several"):
                nb.Study(nb.Sphere(12), strategy, objectives=NAMES)
        assert nb.Study(nb.Sphere(12), objectives=NAMES).strategy == nb.GaBO()
        for direction in ("up", ("minimize",), ("minimize", "up"), ("minimize",) * 3):
            with pytest.raises(ArgumentError, match="or 2 of these, one for each objective"):
                nb.Study(nb.Sphere(2), objectives=NAMES, direction=direction)
        for noise in (0.1, (0.1,), (0.1, -1), ("infer", 0.1)):
            with pytest.raises(ArgumentError, match="a tuple of 2 positive variances"):
                nb.Study(nb.Sphere(2), objectives=NAMES, noise=noise)


@pytest.fixture(scope="module")
def study():
    made = told(nb.Sphere(2), direction=("minimize", "maximize"))
    made.tell(made.ask(), failed="on purpose")
    return made


class TestPictures:
    @pytest.mark.parametrize("kind", nb.plots.DRAWINGS)
    def test_every_kind(self, study, kind):
        figure = nb.plots.draw(study, kind)
        figure.savefig(io.BytesIO(), format="png", dpi=40)
        assert ("for error on" in figure.get_suptitle()) == (kind not in nb.plots.OF_ALL)

    def test_one_objective_is_chosen_by_name(self, study):
        assert "for energy on" in nb.plots.draw(study, "surrogate", "energy").get_suptitle()
        with pytest.raises(ArgumentError, match="error, energy, got 'power'"):
            nb.plots.draw(study, "surrogate", "power")

    def test_the_front_has_its_trials(self, study):
        axes = nb.plots.draw(study, "front").axes[0]
        (marks,) = [each for each in axes.collections if each.get_label() == "front"]
        assert sorted(map(tuple, marks.get_offsets().tolist())) == sorted(trial.values for trial in study.front)
        assert axes.get_ylabel() == "energy (more is better)"

    def test_three_objectives_have_three_pairs(self):
        study = nb.Study(nb.Sphere(2), objectives=("a", "b", "c"))
        for x in study.space.random(5, rng=seeded(1)):
            study.add(x, tuple(x.tolist()))
        assert len(nb.plots.draw(study, "front").axes) == 3

    def test_the_volume_grows_to_that_of_the_study(self, study):
        numbers = nb.plots.summarise(study)
        assert numbers["hypervolume"] == sorted(numbers["hypervolume"])
        assert numbers["hypervolume"][-1] == pytest.approx(study.hypervolume())
        assert numbers["front"] == [trial.index for trial in study.front]
        assert json.loads(json.dumps(numbers))["values"][-1] is None
        assert set(numbers["leave_one_out"]) == set(NAMES)

    def test_the_report(self, study):
        html = nb.report.page(study)
        assert "could not be drawn" not in html
        for kind in ("front", "hypervolume", "predictions error", "predictions energy"):
            assert f'data-kind="{kind}"' in html
        assert 'data-kind="best"' not in html
        assert "error (minimize), energy (maximize) on" in html
        assert html.count('<tr role="row" class="best">') == len(study.front)
