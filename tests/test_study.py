"""Ask and tell: what is promised to someone whose evaluations cost an hour."""

import math
from importlib import import_module

import numpy as np
import pytest
import torch

import nestbo as nb

SPACES = [nb.Sphere(2), nb.SPD(2, eigenvalues=(0.1, 5.0)), nb.Product(nb.Sphere(1), nb.Box(0, 1))]


def bowl(x):
    return float((x**2 * torch.arange(1, x.numel() + 1, dtype=x.dtype).reshape(x.shape)).sum())


def quiet(study, f, n, **options):
    return study.run(f, n, progress=False, **options)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_ask_and_tell(space):
    study = nb.Study(space, nb.RandomSearch(), seed=1)
    trial = study.ask()
    space.check(trial.x)
    assert [t.index for t in study.pending] == [0]
    study.tell(trial, 3.5)
    later = study.ask(3)
    assert [t.index for t in later] == [1, 2, 3]
    assert len({tuple(t.x.flatten().tolist()) for t in later}) == 3
    study.tell(later[1].index, 1.25)
    assert study.best.index == 2
    assert study.best.value == 1.25
    assert [t.index for t in study.pending] == [1, 3]


def test_run_is_ask_and_tell():
    by_run, by_hand = (nb.Study(nb.Sphere(2), nb.GaBO(), seed=4) for _ in range(2))
    quiet(by_run, bowl, 9)
    for _ in range(9):
        trial = by_hand.ask()
        by_hand.tell(trial, bowl(trial.x))
    assert torch.equal(by_run.history.points, by_hand.history.points)
    assert torch.equal(by_run.history.values, by_hand.history.values)


def test_a_seed_gives_one_trajectory_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    runs = [quiet(nb.Study(nb.Sphere(3), seed=s), bowl, 8).history.points for s in (0, 0, 1)]
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])
    assert torch.equal(before, torch.get_rng_state())


def test_maximize_is_minimize_of_the_negative():
    down = quiet(nb.Study(nb.Sphere(2), seed=2), bowl, 10)
    up = quiet(nb.Study(nb.Sphere(2), seed=2, direction="maximize"), lambda x: -bowl(x), 10)
    assert torch.equal(down.history.points, up.history.points)
    assert up.best.value == -down.best.value == up.history.best.value


def test_failures_count_as_the_worst_in_either_direction():
    for direction, worst in (("minimize", 5.0), ("maximize", 1.0)):
        study = nb.Study(nb.Sphere(2), nb.RandomSearch(), direction=direction)
        for trial, value in zip(study.ask(3), (1.0, 5.0, math.nan), strict=True):
            study.tell(trial, value)
        assert study.history.values.tolist() == [1.0, 5.0, worst]


def test_a_run_leaves_trials_asked_by_hand_alone():
    study = nb.Study(nb.Sphere(2), nb.RandomSearch())
    by_hand = study.ask()
    quiet(study, bowl, 3)
    assert [t.index for t in study.pending] == [by_hand.index]
    study.tell(by_hand, 1.0)


def test_what_is_handed_out_is_a_copy():
    study = quiet(nb.Study(nb.Sphere(2), nb.RandomSearch()), bowl, 3)
    before = study.history.points
    for x in (study.best.x, study.history[0].x):
        x.mul_(0)
    assert torch.equal(study.history.points, before)


def test_a_trial_of_another_study_is_refused():
    a, b = (nb.Study(nb.Sphere(2), nb.RandomSearch(), seed=s) for s in (0, 1))
    a.ask()
    with pytest.raises(nb.TrialError, match="another point"):
        a.tell(b.ask(), 1.0)


def test_asking_for_several_fits_once(monkeypatch):
    fitting, fits = import_module("nestbo.surrogate.fitting"), []
    minimise = fitting.lbfgs
    monkeypatch.setattr(fitting, "lbfgs", lambda *a, **k: fits.append(1) or minimise(*a, **k))
    study = quiet(nb.Study(nb.Sphere(2), nb.GaBO(metric="isotropic")), bowl, 6)
    fits.clear()
    trials = study.ask(3)
    assert len(fits) == 1
    assert trials[0].memory.fits == trials[1].memory.fits == trials[2].memory.fits
    study.ask()
    assert len(fits) == 1  # as long as no value is told
    study.tell(trials[0], 1.0)
    study.ask()
    assert len(fits) == 2


def test_observations_made_elsewhere_are_used():
    study = nb.Study(nb.Sphere(2), nb.GaBO(), seed=0)
    for x in nb.Sphere(2).random(6, rng=torch.Generator().manual_seed(5)):
        study.add(x, bowl(x))
    study.add([0.0, 0.0, 1.0], 2)
    assert study.best.value == min(t.value for t in study.history)
    assert study.model().gp.z.shape == (7,)
    assert study.ask().memory.arm is not None  # a model made this suggestion: the initial design is complete


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_a_failure(value):
    study = nb.Study(nb.Sphere(2), nb.RandomSearch())
    done = study.tell(study.ask(), value)
    assert done.status == "failed"
    assert repr(value) in done.told.failed
    assert study.best is None


@pytest.mark.parametrize("value", ["3.1", [1, "2"], torch.zeros(0), True, None, {}, lambda x: x])
def test_what_is_not_a_number_is_refused_by_hand_and_recorded_in_a_run(value):
    study = nb.Study(nb.Sphere(2), nb.RandomSearch())
    with pytest.raises(nb.ArgumentError, match="tell takes a"):
        study.tell(study.ask(), value)
    assert len(study.pending) == 1
    quiet(study, lambda x: value, 1)
    assert study.history[1].status == "failed"
    assert "not a number" in study.history[1].told.failed


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.array([2.0]), torch.tensor(2.0), torch.tensor([[2]])])
def test_any_single_number_is_a_value(value):
    study = nb.Study(nb.Sphere(2), nb.RandomSearch())
    assert study.tell(study.ask(), value).value == 2.0


def test_failures_keep_their_place_and_steer_away():
    space = nb.Sphere(2)

    def half(x):
        if x[2] > 0:
            raise RuntimeError("motor stalled")
        return bowl(x)

    study = quiet(nb.Study(space, nb.GaBO(), seed=0), half, 17)
    failed = [t for t in study.history if t.status == "failed"]
    assert failed
    assert all("motor stalled" in t.told.failed for t in failed)
    assert [t.index for t in study.history] == list(range(17))
    assert sum(t.status == "failed" for t in study.history[9:]) < 4


def test_errors_can_be_raised_and_are_recorded_all_the_same():
    study = nb.Study(nb.Sphere(2), nb.RandomSearch())
    with pytest.raises(ZeroDivisionError):
        quiet(study, lambda x: 1 / 0, 5, on_error="raise")
    assert [t.status for t in study.history] == ["failed"]


def test_control_c_keeps_everything_told():
    study, count = nb.Study(nb.Sphere(2), nb.RandomSearch()), iter(range(10))

    def interrupted(x):
        if next(count) == 3:
            raise KeyboardInterrupt
        return bowl(x)

    with pytest.raises(KeyboardInterrupt):
        quiet(study, interrupted, 10)
    assert study.stopped == "interrupted"
    assert [t.status for t in study.history] == ["told"] * 3 + ["asked"]
    quiet(study, bowl, 2)  # the next run begins with what was interrupted
    assert [t.status for t in study.history] == ["told"] * 5


def test_objectives_see_a_copy_and_may_ask_for_arrays():
    seen = []

    def spoil(x):
        seen.append(type(x))
        x *= 0
        return 1.0

    study = quiet(nb.Study(nb.Sphere(2), nb.RandomSearch()), spoil, 2, numpy=True)
    assert seen == [np.ndarray] * 2
    nb.Sphere(2).check(study.history.points)


def test_minimize_answers_like_scipy():
    result = nb.minimize(bowl, nb.Sphere(2), budget=15, seed=0)
    assert result.value == result.fun == bowl(result.x)
    assert result.nfev == len(result.history) == 15
    assert result.success
    assert "budget" in result.message
    assert result.value < 1.1  # the minimum is 1, at (±1, 0, 0)


def test_minimize_says_when_it_was_interrupted():
    calls = iter(range(9))

    def impatient(x):
        if next(calls) == 3:
            raise KeyboardInterrupt
        return bowl(x)

    result = nb.minimize(impatient, nb.Sphere(2), budget=8, seed=0)
    assert not result.success
    assert result.nfev == 3
    assert result.message == "Interrupted after 3 evaluations."


def test_minimize_says_when_nothing_worked():
    with pytest.raises(nb.ArgumentError, match="None of 3 evaluations gave a number"):
        nb.minimize(lambda x: math.nan, nb.Sphere(2), budget=3)


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda s: s.tell(7, 1.0), nb.TrialError, "no trial 7"),
        (lambda s: [s.tell(0, 1.0), s.tell(0, 1.0)], nb.TrialError, "told already"),
        (lambda s: s.tell(0), nb.ArgumentError, "value or failed"),
        (lambda s: s.tell(0, 1.0, failed="no"), nb.ArgumentError, "value or failed"),
        (lambda s: s.add([1.0, 0.0], 1.0), nb.ShapeError, "end in shape"),
        (lambda s: s.add([1.0, 1.0, 0.0], 1.0), nb.OffManifoldError, "norm is 1"),
        (lambda s: s.add([1.0, 0.0, 0.0], math.nan), nb.ArgumentError, "finite number"),
        (lambda s: s.add([[1.0, 0.0, 0.0]], 1.0), nb.ArgumentError, "one point"),
        (lambda s: s.ask(0), nb.ArgumentError, "at least 1"),
        (lambda s: s.run(bowl, -1), nb.ArgumentError, "whole number"),
        (lambda s: s.run(3, 1), nb.ArgumentError, "function"),
        (lambda s: s.tell([1], 1.0), nb.TrialError, "no trial"),
        (lambda s: nb.minimize(bowl, nb.Sphere(2), budget="10"), nb.ArgumentError, "budget"),
        (lambda s: nb.minimize(bowl, nb.Sphere(2), budget=0), nb.ArgumentError, "budget"),
        (lambda s: nb.Study(nb.Sphere(2), store=3), nb.ArgumentError, "path"),
        (lambda s: nb.Study(nb.Sphere(2), store="a\0b"), nb.ArgumentError, "path"),
        (lambda s: nb.Study(nb.Sphere(2), store="a" * 300), nb.StoreError, "Cannot open"),
        (lambda s: nb.Study.load(3.5), nb.ArgumentError, "path"),
        (lambda s: nb.Study(nb.SPD(2), nb.GaBO(kernel="heat")), nb.ArgumentError, "Sphere"),
        (lambda s: nb.Study(nb.Box(0, 1), nb.GaBO.paper()), nb.ArgumentError, "geodesic"),
        (lambda s: nb.GaBO(kernel=["a"]), nb.ArgumentError, "kernel"),
        (lambda s: nb.GaBO(priors="no"), nb.ArgumentError, "priors"),
        (lambda s: nb.Study(nb.Sphere(2), noise=True), nb.ArgumentError, "variance"),
        (lambda s: s.run(bowl, 1, on_error="ignore"), nb.ArgumentError, "on_error"),
        (lambda s: s.model(), nb.ArgumentError, "no model"),
        (lambda s: nb.Study("sphere:2"), nb.ArgumentError, "nestbo.space"),
        (lambda s: nb.Study(nb.Sphere(2), "gabo"), nb.ArgumentError, "GaBO()"),
        (lambda s: nb.Study(nb.Sphere(2), seed=-1), nb.ArgumentError, "seed"),
        (lambda s: nb.Study(nb.Sphere(2), direction="up"), nb.ArgumentError, "direction"),
        (lambda s: nb.Study(nb.Sphere(2), noise=-1.0), nb.ArgumentError, "variance"),
    ],
)
def test_mistakes_are_explained(act, error, words):
    study = nb.Study(nb.Sphere(2), nb.RandomSearch())
    study.ask()
    with pytest.raises(error) as caught:
        act(study)
    assert words in str(caught.value)


def test_progress_is_lines_when_not_on_a_terminal(capsys):
    nb.Study(nb.Sphere(2), nb.RandomSearch()).run(bowl, 3)
    text = capsys.readouterr().err
    assert "3/3 evaluations, best" in text
    assert "\x1b" not in text


def test_a_run_with_nothing_left_says_so(capsys):
    study = nb.Study(nb.Sphere(2), nb.RandomSearch(), seed=0).run(bowl, budget=3, progress=False)
    study.run(bowl, budget=3)
    assert capsys.readouterr().err == (
        "the budget of 3 is used up: nothing to evaluate. For another objective, choose another store.\n"
    )


def test_a_run_that_goes_on_says_how_far_it_is(capsys):
    study = nb.Study(nb.Sphere(2), nb.RandomSearch(), seed=0).run(bowl, budget=3, progress=False)
    study.run(bowl, budget=5)
    assert capsys.readouterr().err.startswith("3 of 5 evaluations are made, 2 are left\n")


def test_an_unknown_argument_is_one_of_a_study():
    with pytest.raises(TypeError, match=r"^Study\(\) got an unexpected keyword argument 'maximize'"):
        nb.Study(nb.Sphere(2), maximize=True)


def test_values_that_violate_a_constraint_are_not_the_best(capsys):
    study = nb.Study(nb.Sphere(2), nb.RandomSearch(), seed=0)
    study.run(lambda x: nb.Observation(1.0, constraints=-1.0), 1)
    assert "1/1 evaluations, no feasible value yet" in capsys.readouterr().err


def test_known_noise_is_what_the_model_assumes(tmp_path):
    """On pure noise of variance 4, a model told so attributes this much to noise; and the store remembers it."""
    rng, path = torch.Generator().manual_seed(0), tmp_path / "s.db"
    study = nb.Study(nb.Sphere(2), nb.GaBO(), store=path, noise=4.0)
    for x in nb.Sphere(2).random(30, rng=rng):
        study.add(x, 2 * torch.randn((), generator=rng).item())
    study.close()
    study = nb.Study.load(path)
    model = study.model()
    variance = model.gp.noise * model.gp.scale * model.outputs.scale.squeeze() ** 2
    assert variance.item() == pytest.approx(4.0, rel=1e-9)


MODELLED = {
    "full": (nb.Sphere(2), nb.GaBO(initial=3)),
    "nested:2": (nb.Sphere(5), nb.HDGaBO(2, initial=3)),
    "nested:1,none": (nb.Product(nb.SPD(2), nb.Box(0, 1)), nb.HDGaBO((1, None), initial=3)),
    "log": (nb.Box([0, 0], [1, 1]), nb.GaBO(initial=3, outputs="log")),
    "bilog": (nb.Torus(2), nb.GaBO(initial=3, outputs="bilog", metric="isotropic")),
}


@pytest.mark.parametrize("name", MODELLED)
def test_models_are_those_of_one_run(name, rng):
    """A study is a batch of one inside; nobody sees that from outside."""
    space, method = MODELLED[name]
    study = nb.Study(space, method, seed=0)
    study.run(
        lambda x: nb.Observation(float(x.square().sum() + x.sum()), constraints=float(x.sum())), 6, progress=False
    )
    models, runs = study.models(), method.models(space, study._runs())
    assert "constraint:0" in models
    assert study.model().fit == next(iter(models.values())).fit
    x = space.random(2, 3, rng=rng)
    for key, model in models.items():
        inside, latent, gp = runs[key], model.mapping.latent.point_shape, model.gp
        assert model.latent_points.shape == (6, *latent)
        assert (gp.z.shape, gp.mean.shape, gp.scale.shape, gp.noise.shape) == ((6,), (), (), ())
        assert gp.lengthscale.shape == (len(space.factors) if isinstance(space, nb.Product) else 1,)
        assert model.mapping.basis.shape == inside.mapping.basis.shape[key.startswith("nested") :]
        assert model.outputs.inverse(gp.z).shape == (6,)
        assert all(part.shape == (6,) for part in gp.leave_one_out())
        assert model.mapping.lift(model.mapping.project(x)).shape == x.shape
        assert model.fit == inside.fits[0]
        assert model.loss == inside.loss.item()
        for deviations in (-1.5, 0.0, 1.5):
            wanted = inside.predict(x.unsqueeze(1), deviations).squeeze(1)
            torch.testing.assert_close(model.predict(x, deviations), wanted)
            torch.testing.assert_close(model.predict(x[1, 2], deviations), wanted[1, 2])
        torch.testing.assert_close(model.gradients(x[0]), inside.gradients(x[:1])[0])
        assert model.gradients(x[0, 0]).shape == x[0, 0].shape


def test_a_model_takes_what_a_space_takes_and_checks_it():
    study = nb.Study(nb.Sphere(2), nb.GaBO(initial=3), seed=0).run(lambda x: float(x[0]), 5, progress=False)
    assert study.model().predict([1, 0, 0]).shape == ()
    with pytest.raises(nb.OffManifoldError, match=r"its norm is 1\.414, it must be 1"):
        study.model().predict([1, 1, 0])


class TestClosed:
    """A study is read after its ``with``, and says that it is closed when someone wants to go on."""

    @pytest.mark.parametrize("kept", [True, False], ids=["file", "memory"])
    def test_it_can_be_read(self, tmp_path, kept):
        with nb.Study(nb.Sphere(2), nb.GaBO(initial=2), store=tmp_path / "s.db" if kept else None) as study:
            study.run(bowl, 4, progress=False)
            open_ = study.ask()
            before = repr(study), study.best.value, study.times, [t.value for t in study.history], study.standings()
            model = study.model().predict([1, 0, 0])
        for path in tmp_path.iterdir():
            path.unlink()  # nothing of the file is needed
        for one in (study, study.copy()):
            assert (repr(one), one.best.value, one.times, [t.value for t in one.history], one.standings()) == before
            assert [trial.index for trial in one.pending] == [open_.index]
            assert torch.equal(one.model().predict([1, 0, 0]), model)
            assert one.recommend().value == one.best.value
        study.close()

    @pytest.mark.parametrize("kept", [True, False], ids=["file", "memory"])
    @pytest.mark.parametrize(
        "go_on",
        [lambda s: s.ask(), lambda s: s.tell(0, 1.0), lambda s: s.add([1, 0, 0], 1.0), lambda s: s.run(bowl, 1)],
        ids=["ask", "tell", "add", "run"],
    )
    def test_it_cannot_be_continued(self, tmp_path, go_on, kept):
        with nb.Study(nb.Sphere(2), nb.RandomSearch(), store=tmp_path / "s.db" if kept else None) as study:
            study.ask()
        for one in (study, study.copy()):
            with pytest.raises(nb.StoreError, match="is closed: it can be read, but not continued"):
                go_on(one)
        if kept:
            assert nb.Study.load(tmp_path / "s.db").tell(0, 2.0).value == 2.0


def test_tiny_known_noise_does_not_squeeze_the_signal():
    study = nb.Study(nb.Sphere(2), nb.GaBO(), noise=1e-12)
    for x in nb.Sphere(2).random(30, rng=torch.Generator().manual_seed(0)):
        study.add(x, bowl(x))
    gp = study.model().gp
    mean, variance = gp.leave_one_out()
    assert ((gp.z - mean).square() / variance).mean().sqrt() < 3


@pytest.mark.parametrize("space", [nb.Sphere(2), nb.Box(0, [1000, 1])], ids=repr)
def test_who_asks_while_another_process_does_gets_another_point(tmp_path, space):
    """Both look at the same history, and would find the same maximum."""
    objective = lambda x: float((space.embed(x) - 0.4).square().sum())
    with nb.Study(space, nb.GaBO(), store=tmp_path / "s.db") as first:
        first.run(objective, 10, progress=False)
        second, suggest, asked = nb.Study.load(tmp_path / "s.db"), nb.GaBO.suggest, []

        class Meanwhile:
            def suggest(self, *given, **options):
                found = suggest(nb.GaBO(), *given, **options)
                if not asked:
                    asked.append(second.ask())
                return found

        first.strategy = Meanwhile()
        trial = first.ask()
        usual = space.embed(first.history.points).std(0).norm()
        assert trial.index != asked[0].index
        assert (space.embed(trial.x) - space.embed(asked[0].x)).norm() > 0.01 * usual
        second.close()


def test_a_point_asked_just_before_another_is_written_counts_too(tmp_path, monkeypatch):
    space = nb.Sphere(2)
    with nb.Study(space, nb.GaBO(), store=tmp_path / "s.db") as first, nb.Study.load(tmp_path / "s.db") as second:
        quiet(first, bowl, 10)
        write, asked = first._store.ask, []

        def late(*given):
            if not asked:
                asked.append(second.ask())
            return write(*given)

        monkeypatch.setattr(first._store, "ask", late)
        trial = first.ask()
        assert space.dist(trial.x, asked[0].x) > 1e-3
        assert [t.index for t in second.pending] == [10, 11]
