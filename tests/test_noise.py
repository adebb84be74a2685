"""Noisy values: what the model makes of them, what is suggested next, and what is recommended in the end."""

import numpy as np
import pytest
import torch
from botorch.acquisition import qLogNoisyExpectedImprovement

import nestbo as nb
from nestbo.acquisition import ACQUISITIONS
from nestbo.kernels import kernel
from nestbo.strategies.runs import settled
from nestbo.surrogate import fit_surrogate


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def noisy_bowl(deviation, seed=0):
    rng = seeded(seed)
    return lambda x: float((x[0] - 1) ** 2 + x[1] ** 2) + deviation * torch.randn((), generator=rng).item()


class TestRecommendation:
    def study(self, **options):
        """Many values around a good point, and a bad one that was lucky once."""
        study = nb.Study(nb.Sphere(2), nb.GaBO(), **options)
        good, bad = torch.tensor([1.0, 0, 0]).double(), torch.tensor([-1.0, 0, 0]).double()
        rng, sphere = seeded(0), nb.Sphere(2)
        for value in (0.1, -0.1, 0.2, -0.2, 0.0, 0.1):
            study.add(sphere.project(good + 0.05 * torch.randn(3, generator=rng, dtype=torch.float64)), value)
        for value in (4.2, 3.8, -0.5, 4.1, 4.0, 3.9):
            study.add(sphere.project(bad + 0.05 * torch.randn(3, generator=rng, dtype=torch.float64)), value)
        return study

    @pytest.mark.parametrize("options", [{"noise": 0.5}, {"noise": 1, "direction": "minimize"}], ids=str)
    def test_it_is_the_best_mean_not_the_luckiest_value(self, options):
        study = self.study(**options)
        assert study.best.value == -0.5
        assert study.recommend().x[0] > 0.9

    def test_exact_values_speak_for_themselves(self):
        study = self.study()
        assert study.recommend().index == study.best.index

    def test_it_needs_no_model_of_the_strategy(self):
        study = nb.Study(nb.Sphere(2), nb.RandomSearch(), noise="infer", direction="maximize")
        assert study.recommend() is None
        study.run(lambda x: float(x[0]), 12, progress=False)
        assert study.recommend().value > 0.5

    def test_minimize_returns_it(self):
        result = nb.minimize(noisy_bowl(0.2), nb.Sphere(2), budget=12, noise=0.04, strategy=nb.GaBO())
        assert result.value in [trial.value for trial in result.history]


class TestModel:
    def values(self, variances):
        """Thirty values of 3x₀, with noise of these variances."""
        rng, space = seeded(1), nb.Sphere(2)
        x = space.random(1, 30, rng=rng)
        noise = torch.randn(1, 30, generator=rng, dtype=torch.float64) * variances.sqrt()
        return x, 3 * x[..., 0] + noise

    def test_each_evaluation_has_its_own(self):
        """The exact half of the data decides, where a common variance trusts all alike."""
        variances = torch.tensor([1e-4, 9.0], dtype=torch.float64).repeat(15).unsqueeze(0)
        x, y = self.values(variances)
        test = nb.Sphere(2).random(1, 200, rng=seeded(2))
        errors = [
            (
                fit_surrogate(kernel("matern52", nb.Sphere(2)), x, y, [seeded(0)], noise=noise).predict(test)
                - 3 * test[..., 0]
            )
            .square()
            .mean()
            .sqrt()
            .item()
            for noise in (variances, 4.5)
        ]
        assert errors[0] < 0.2 < errors[1]

    def test_equal_variances_are_one_variance(self):
        x, y = self.values(torch.full((1, 30), 0.25, dtype=torch.float64))
        fits = [
            fit_surrogate(kernel("matern52", nb.Sphere(2)), x, y, [seeded(0)], noise=noise)
            for noise in (0.25, torch.full_like(y, 0.25))
        ]
        torch.testing.assert_close(fits[0].gp.weights, fits[1].gp.weights, rtol=1e-6, atol=1e-9)
        torch.testing.assert_close(fits[0].gp.scale, fits[1].gp.scale)

    def test_a_value_without_one_has_that_of_the_study(self):
        study = nb.Study(nb.Sphere(2), nb.RandomSearch(), noise=2)
        for trial, noise in zip(study.ask(3), (None, 0.5, None), strict=True):
            study.tell(trial, 1.0, noise=noise)
        assert study.history.variances.tolist() == [2.0, 0.5, 2.0]
        other = nb.Study(nb.Sphere(2), nb.RandomSearch())
        for trial, noise in zip(other.ask(3), (0.5, 1.5, None), strict=True):
            other.tell(trial, 1.0, noise=noise)
        assert other.history.variances.tolist() == [0.5, 1.5, 1.0]


class TestAcquisition:
    def test_it_is_that_of_botorch_over_all_evaluated_points(self, rng):
        """Few points, so that none is left out; the same samples."""
        space = nb.Sphere(2)
        x = space.random(1, 6, rng=rng)
        gp = fit_surrogate(kernel("matern52", space), x, x[..., 0], [rng], noise=0.1).gp
        ours = ACQUISITIONS["lognei"](gp, gp.z.amin(-1), None, 3)
        assert isinstance(ours, qLogNoisyExpectedImprovement)
        assert sorted(ours.X_baseline[0, :, 0].tolist()) == sorted(x[0, :, 0].tolist())

    def test_a_lucky_value_does_not_scare(self, rng):
        """One of many values at a good place is far too low: LogEI gives that place up, LogNEI does not."""
        space = nb.Sphere(1)
        angle = torch.linspace(-3, 3, 30, dtype=torch.float64)
        x = torch.stack([angle.cos(), angle.sin()], -1).unsqueeze(0)
        y = (-x[..., 0]).clone()
        y[0, 15] -= 3
        gp = fit_surrogate(kernel("matern52", space), x, y, [rng], noise=0.5).gp
        good = torch.tensor([[[1.0, 0.0]]]).double()
        values = [ACQUISITIONS[name](gp, gp.z.amin(-1), None, 0)(good).item() for name in ("logei", "lognei")]
        assert values[1] > values[0] + 1

    def test_noisy_studies_use_it(self, monkeypatch):
        import nestbo.acquisition as acquisition

        used, build = [], acquisition.ACQUISITIONS["lognei"]
        monkeypatch.setitem(acquisition.ACQUISITIONS, "lognei", lambda *a, **k: used.append(1) or build(*a, **k))
        for noise, count in ((None, 0), ("infer", 1), (0.1, 2)):
            nb.Study(nb.Sphere(2), nb.GaBO(), noise=noise).run(noisy_bowl(0.3), 6, progress=False)
            assert len(used) == count


@pytest.mark.parametrize("method", [nb.GaBO(), nb.HDGaBO(1)], ids=repr)
def test_a_noisy_minimum_is_found(method):
    """The values at the minimum and one radian away differ by 0.92, the noise has a deviation of 0.3."""
    study = nb.Study(nb.Sphere(2), method, seed=1, noise="infer").run(noisy_bowl(0.3), 18, progress=False)
    assert study.recommend().x[0] > 0.8
    assert study.history[-1].memory["inferred_noise"] >= 0
    assert len({tuple(trial.x.tolist()) for trial in study.ask(3)}) == 3


class TestScores:
    def test_less_than_the_noise_is_no_success(self):
        assert settled([3.0, 2.9, 2.0, 2.5, 1.9, 1.4, 1.5], 0.5) == [3.0, 3.0, 2.0, 2.5, 2.0, 1.4, 1.5]
        assert settled([3.0, 2.9], 0.0) == [3.0, 2.9]

    def test_they_know_the_noise_of_the_study(self):
        x = nb.Sphere(2).random(3, rng=seeded(0))
        for options, expected in (({}, [3.0, 2.9, 1.0]), ({"noise": 0.25}, [3.0, 3.0, 1.0])):
            study = nb.Study(nb.Sphere(2), nb.GaBO(), **options)
            for point, value in zip(x, (3.0, 2.9, 1.0), strict=True):
                study.add(point, value)
            assert study._runs().scores == [expected]


@pytest.mark.parametrize("noise", ["guess", -1.0, 0, True, float("inf")])
def test_what_is_no_noise_is_refused(noise):
    with pytest.raises(nb.ArgumentError, match="infer"):
        nb.Study(nb.Sphere(2), noise=noise)


@pytest.mark.parametrize("kind", [np.float32, torch.tensor, lambda v: np.array([v]), int])
def test_a_variance_may_be_all_that_a_value_may_be(kind):
    study = nb.Study(nb.Sphere(2), nb.RandomSearch())
    study.tell(study.ask(), kind(1.0), noise=kind(2.0))
    study.run(lambda x: nb.Observation(kind(1.0), noise=kind(2.0)), 1, progress=False)
    assert [trial.noise for trial in study.history] == [2.0, 2.0]


@pytest.mark.parametrize("noise", ["little", -1.0, 0, True, float("nan"), [1.0, 2.0]], ids=str)
def test_what_is_no_variance_is_refused_and_recorded(noise):
    study = nb.Study(nb.Sphere(2), nb.RandomSearch())
    with pytest.raises(nb.ArgumentError, match="positive number"):
        study.tell(study.ask(), 1.0, noise=noise)
    study.run(lambda x: nb.Observation(1.0, noise=noise), 1, progress=False)
    assert "positive number" in study.history[-1].told.failed


def test_noise_to_infer_is_stored(tmp_path):
    nb.Study(nb.Sphere(2), store=tmp_path / "s.db", noise="infer").close()
    assert nb.Study.load(tmp_path / "s.db").noise == "infer"
