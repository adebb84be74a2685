"""Very many evaluations and pending points: what models see of them, and that all the rest still counts them all."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

import nestbo as nb
from nestbo.acquisition import improvement
from nestbo.kernels import kernel
from nestbo.memory import Memory
from nestbo.search import Runs, choosing, seen
from nestbo.search.repeats import repeated
from nestbo.strategies.competing import standings
from nestbo.surrogate import Description, fit

SPHERE = nb.Sphere(3)
FEW = 40  # what a model sees, in tests


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(choosing, "_MOST", FEW)


def made(count, space=SPHERE, runs=1, **more):
    x = space.random(runs, count, rng=torch.Generator().manual_seed(0))
    y = (space.embed(x) - 0.4).square().sum(-1)
    rngs = [torch.Generator().manual_seed(k) for k in range(runs)]
    return Runs(x, y, x[:, :0], rngs, [[Memory() for _ in range(count)] for _ in range(runs)], **more)


def history(count, pending=0, space=SPHERE):
    x = space.random(count + pending, rng=torch.Generator().manual_seed(0))
    values = (space.embed(x) - 0.4).square().sum(-1).tolist()
    told = [nb.Trial(k, x[k]).with_value(values[k]) for k in range(count)]
    return nb.History((*told, *(nb.Trial(k, x[k]) for k in range(count, count + pending))))


class TestChoosing:
    def test_as_long_as_they_are_not_too_many_all_are_seen(self, few):
        runs = made(FEW)
        assert seen(SPHERE, runs) is runs
        assert runs.record is runs

    def test_the_best_the_nearest_to_it_and_the_newest_are_seen(self, few):
        runs = made(400, runs=2)
        some = seen(SPHERE, runs)
        assert some.y.shape == (2, FEW)
        assert some.record is runs
        for run in range(2):
            places = set(some.indices[run])
            away = (runs.x[run] - runs.best[run]).norm(dim=-1)
            assert len(places) == FEW
            assert some.indices[run] == sorted(places)
            for wanted in (runs.y[run].argsort(), away.argsort(), torch.arange(399, -1, -1)):
                assert places.issuperset(wanted[: FEW // 4].tolist())
            assert torch.equal(some.x[run], runs.x[run, some.indices[run]])
            assert torch.equal(some.y[run], runs.y[run, some.indices[run]])

    def test_the_others_are_spread_over_all_ranks(self, few):
        runs = made(400)
        ranks = runs.y[0].argsort().argsort()[seen(SPHERE, runs).indices[0]]
        largest_gap = ranks.sort().values.diff().max()
        assert largest_gap < 400 / (FEW // 4) + FEW

    def test_one_more_than_can_be_seen(self, few):
        assert seen(SPHERE, made(FEW + 1)).y.shape[1] == FEW

    def test_what_is_known_of_each_goes_with_it(self, few):
        n = 90
        facts = {
            "noise": torch.arange(n, dtype=torch.float64).add(1).unsqueeze(0),
            "feasible": (torch.arange(n) % 3 > 0).unsqueeze(0),
            "constraints": torch.arange(n, dtype=torch.float64).reshape(1, n, 1) - 10,
            "failed": (torch.arange(n) % 7 == 0).unsqueeze(0),
        }
        some = seen(SPHERE, made(n, **facts))
        (places,) = some.indices
        for name, values in facts.items():
            assert torch.equal(getattr(some, name)[0], values[0, places])

    def test_runs_taken_apart_take_their_records_along(self, few):
        runs = made(90, runs=3)
        assert torch.equal(seen(SPHERE, runs).take([1]).record.x, runs.x[1:2])


class TestWhatCountsAll:
    def test_a_fit_says_how_many_there_are_how_many_it_saw_and_how_many_it_is_given(self, few):
        runs = seen(SPHERE, made(90))
        found = fit(Description(kernel("matern52", SPHERE)), runs.data).fits[0]
        assert (found.evaluations, found.given, found.seen) == (90, FEW, FEW)
        assert Memory.of(Memory(fits={"full": found}).json).fits["full"] == found

    def test_without_a_choice_it_says_nothing_of_it(self):
        found = fit(Description(kernel("matern52", SPHERE)), made(20).data).fits[0]
        assert (found.evaluations, found.given, found.seen) == (20, None, None)
        assert "given" not in Memory(fits={"full": found}).json["fits"]["full"]

    def test_known_points_are_all_points(self, few):
        runs = made(90)
        unseen = next(k for k in range(90) if k not in seen(SPHERE, runs).indices[0])
        assert repeated(SPHERE, runs.x[:, unseen], seen(SPHERE, runs)).tolist() == [True]

    def test_standings_count_all_suggestions(self, few):
        runs = replace(made(90), memories=[[Memory(arm="full") for _ in range(90)]])
        (standing,) = standings(["full"], seen(SPHERE, runs))
        assert (standing.suggestions, standing.share) == (90, 1.0)

    @pytest.mark.parametrize(
        "method",
        [nb.GaBO(), nb.HDGaBO(1), nb.EuclideanBO(), nb.REMBO(2, 1)],
        ids=repr,
    )
    def test_a_study_goes_on(self, few, method):
        """The next fit is due by the number of all evaluations, not by how many are seen."""
        study = nb.Study(SPHERE, method, seed=0)
        for trial in history(70):
            study.add(trial.x, trial.value)
        study.run(lambda x: float((x - 0.4).square().sum()), 4, progress=False)
        assert study.best.value < (0.2 if isinstance(method, nb.GaBO | nb.EuclideanBO) else 0.35)
        assert not {tuple(t.x.tolist()) for t in study.history[:70]} & {tuple(t.x.tolist()) for t in study.history[70:]}
        counts = [fit.evaluations for trial in study.history for fit in trial.memory.fits.values()]
        assert all(count >= 70 or isinstance(method, nb.REMBO) for count in counts)

    @pytest.mark.parametrize("noise", [None, "infer"])
    def test_matrices_with_constraints_and_noise(self, few, noise):
        space = nb.SPD(3, eigenvalues=(0.1, 5))
        study = nb.Study(space, nb.HDGaBO(2), seed=0, noise=noise)
        x = space.random(60, rng=torch.Generator().manual_seed(1))
        for point in x:
            study.add(point, float(point.trace()), constraints=[float(point[0, 0] - 0.5)])
        study.run(lambda x: nb.Observation(float(x.trace()), [float(x[0, 0] - 0.5)]), 2, progress=False)
        space.check(torch.stack([trial.x for trial in study.ask(2)]))
        assert study.best.value < x.diagonal(dim1=-2, dim2=-1).sum(-1).min()
        assert study.recommend() is not None


class TestPending:
    def process(self, count=12):
        data = made(count).data
        return fit(Description(kernel("matern52", SPHERE)), data).gp

    def test_what_is_believed_is_what_a_process_of_all_points_says(self):
        """Conditioned on the values that it expects, the mean stays, and the variance is that of all points."""
        gp, x = self.process(), SPHERE.random(1, 30, rng=torch.Generator().manual_seed(1))
        probe = SPHERE.random(1, 50, rng=torch.Generator().manual_seed(2))
        believed = gp.given(x)
        whole = type(gp)(gp.kernel, believed.x, believed.z, gp.lengthscale, gp.mean, gp.scale, gp.noise)
        for ours, theirs in zip(believed.moments(probe), whole.moments(probe), strict=True):
            assert torch.allclose(ours, theirs, atol=1e-7)
        assert torch.allclose(believed.moments(probe)[0], gp.moments(probe)[0], atol=1e-3)
        assert (believed.moments(probe)[1] <= gp.moments(probe)[1] + 1e-9).all()

    def test_points_that_coincide_are_believed_too(self):
        gp = self.process()
        believed = gp.given(gp.x[:, :1].expand(-1, 200, -1))
        assert believed.root.isfinite().all()

    def test_few_are_sampled_and_many_are_believed(self):
        gp = self.process()
        for count, sampled in ((64, True), (65, False)):
            pending = SPHERE.random(1, count, rng=torch.Generator().manual_seed(1))
            found = improvement("logei", gp, pending, 0)
            assert (getattr(found, "X_pending", None) is not None) == sampled

    @pytest.mark.parametrize("name", ["logei", "lognei", "ei", "ucb"])
    def test_an_acquisition_function_is_low_at_what_is_believed(self, name):
        gp, x = self.process(), SPHERE.random(1, 100, rng=torch.Generator().manual_seed(1))
        feasible = torch.ones_like(gp.z, dtype=torch.bool)
        gain = improvement(name, gp, x, 0, noisy=name == "lognei", feasible=feasible)
        there, elsewhere = gain(x[0, :50, None, None]), gain(SPHERE.random(50, 1, 1, rng=torch.Generator()))
        assert there.mean() < elsewhere.mean()

    def test_suggestions_are_new_points(self):
        asked = nb.GaBO().suggest(SPHERE, history(12, 100), 2, torch.Generator().manual_seed(0))
        known = torch.stack([*history(12, 100).points, *(one.x for one in asked)])
        assert SPHERE.pairwise_dist(known, known).add(torch.eye(114)).min() > 1e-6


def test_predictions_at_very_many_points_are_those_at_each():
    gp = fit(Description(kernel("matern52", SPHERE)), made(12).data).gp
    x = SPHERE.random(1, 9000, rng=torch.Generator().manual_seed(1))
    for parts, at_once in zip(gp.moments_in_parts(x), gp.moments(x), strict=True):
        assert torch.allclose(parts, at_once, rtol=1e-12)


def test_a_kernel_in_very_many_dimensions_is_calibrated_by_a_few_pairs():
    """On S^n random points are at right angles, and the average correlation of two is ½ at the median."""
    space = nb.Sphere(200_000)
    found = kernel("matern52", space)
    q = torch.tensor(2.0 / found.median_lengthscale.item() ** 2, dtype=torch.float64)
    assert found.profile(q).item() == pytest.approx(0.5, abs=1e-3)


MEASURED = """
import sys
sys.path.insert(0, "benchmarks")
import scale
print(scale.measure(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="resource limits are those of Unix")
def test_memory_is_bounded(request):
    """Of the whole process, with the libraries that it imports."""
    full = request.config.getoption("--full")
    cases = [("gabo", "sphere:5", 10_000, 1000)]
    if full:
        spaces = ("sphere:5", "sphere:50", "spd:10:eigenvalues=0.001,5")
        cases += [("hdgabo", space, n, m) for space in spaces for n, m in ((10_000, 0), (50_000, 0), (100, 1000))]
    root = request.config.rootpath
    for case in cases:
        command = [sys.executable, "-c", MEASURED, *map(str, case)]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
        peak = done.stdout.split("|")[-2]
        assert float(peak.removesuffix(" MB ")) < 2048
