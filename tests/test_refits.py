"""How much a fit does: nothing where a pending point was suggested with it, a few steps, or a search anew."""

import dataclasses
from importlib import import_module

import pytest
import torch

import nestbo as nb
from nestbo.history import History, Observation, Trial
from nestbo.memory import Fit, Memory
from nestbo.search.runs import Refit, Runs, refits, together
from nestbo.surrogate import Effort

SPACE = nb.Sphere(2)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def fitted(evaluations, value=0.0):
    return Fit((value, -9.0), evaluations)


def remembered(*fits, model="full"):
    """Memories with these fits of a model; None for a memory without one."""
    return [Memory(fits={} if fit is None else {model: fit}) for fit in fits]


def runs_of(*memories, n=5, asked=()):
    """Runs of n evaluations, of which the last have these memories; and those of points under evaluation."""
    x = SPACE.random(len(memories), n, rng=seeded(0))
    past = [[*[Memory()] * (n - len(each)), *each] for each in memories]
    runs = Runs(x, x[..., 0], x[:, :0], [seeded(k) for k in range(len(memories))], past)
    for each in zip(*asked, strict=True):
        runs = runs.with_pending(x[:, 0], list(each))
    return runs


class TestRefits:
    def test_the_first_fit_is_a_search(self):
        assert refits(runs_of([]), "full") == [Refit(None, Effort.ANEW)]
        assert refits(runs_of(remembered(fitted(4), model="nested:2")), "full") == [Refit(None, Effort.ANEW)]

    def test_the_newest_fit_of_the_model_is_where_the_next_begins(self):
        past = [*remembered(fitted(2), fitted(3)), *remembered(fitted(4), model="nested:2"), Memory()]
        assert refits(runs_of(past), "full") == [Refit(fitted(3), Effort.FEW_STEPS)]

    @pytest.mark.parametrize(
        ("before", "now", "anew"),
        [
            (9, 11, True),
            (11, 19, False),
            (5, 27, True),
            (90, 119, False),
            (119, 120, True),
            (10, 10, False),
            (99, 100, False),
        ],
    )
    def test_a_search_begins_whenever_its_turn_comes(self, before, now, anew):
        """Also where the model is chosen at odd counts only, or points come three at a time."""
        found = refits(runs_of(remembered(fitted(before)), n=now), "full")
        assert found == [Refit(fitted(before), Effort.ANEW if anew else Effort.FEW_STEPS)]

    def test_a_fit_that_a_pending_point_was_suggested_with_is_taken_over(self):
        runs = runs_of(remembered(fitted(4)), asked=[remembered(fitted(5, 1.0))])
        assert refits(runs, "full") == [Refit(fitted(5, 1.0), Effort.NONE)]
        assert refits(runs, "full", shared=False) == [Refit(fitted(4), Effort.FEW_STEPS)]

    def test_the_newest_such_fit_counts(self):
        runs = runs_of([], asked=[remembered(fitted(3, 1.0), fitted(5, 2.0), None)])
        assert refits(runs, "full") == [Refit(fitted(5, 2.0), Effort.NONE)]

    def test_it_is_not_once_a_value_was_told(self):
        """It looked at fewer evaluations; and it is not where a warm fit begins, as that is of a finished trial."""
        runs = runs_of(remembered(fitted(3)), asked=[remembered(fitted(4, 1.0))])
        assert refits(runs, "full") == [Refit(fitted(3), Effort.FEW_STEPS)]
        runs = runs_of([], asked=[remembered(fitted(4, 1.0))])
        assert refits(runs, "full") == [Refit(None, Effort.ANEW)]

    def test_nor_is_that_of_another_model(self):
        runs = runs_of([], asked=[remembered(fitted(5), model="nested:2")])
        assert refits(runs, "full") == [Refit(None, Effort.ANEW)]

    def test_each_run_has_its_own(self):
        asked = [remembered(None), remembered(fitted(5, 2.0)), remembered(None)]
        runs = runs_of([], remembered(fitted(3)), remembered(fitted(4)), asked=asked)
        assert refits(runs, "full") == [
            Refit(None, Effort.ANEW),
            Refit(fitted(5, 2.0), Effort.NONE),
            Refit(fitted(4), Effort.FEW_STEPS),
        ]


class TestTogether:
    def test_the_largest_effort_serves_all(self):
        few, none, anew = (
            Refit(fitted(k), effort) for k, effort in enumerate((Effort.FEW_STEPS, Effort.NONE, Effort.ANEW))
        )
        assert together([none, none]) == ([none.fit] * 2, Effort.NONE)
        assert together([none, few]) == ([none.fit, few.fit], Effort.FEW_STEPS)
        assert together([few, anew, none]) == ([few.fit, anew.fit, none.fit], Effort.ANEW)

    def test_where_a_run_has_no_fit_all_begin_anew(self):
        assert together([Refit(fitted(3), Effort.NONE), Refit(None, Effort.ANEW)]) == (None, Effort.ANEW)
        assert together([Refit(None, Effort.ANEW)]) == (None, Effort.ANEW)


@pytest.fixture
def counted(monkeypatch):
    """How many times something was minimised to fit a model."""
    module, count = import_module("nestbo.surrogate.fitting"), []
    minimise = module.lbfgs
    monkeypatch.setattr(module, "lbfgs", lambda *given, **options: count.append(1) or minimise(*given, **options))
    return count


def history(space, n, **facts):
    x = space.random(n, rng=seeded(3))
    return History(tuple(Trial(k, x[k]).with_value(float(x[k].flatten()[0]), **facts) for k in range(n)))


class TestBatches:
    @pytest.mark.parametrize(
        ("method", "space", "count"),
        [
            (nb.GaBO(metric="isotropic"), SPACE, 1),
            (nb.GaBO.paper(), SPACE, 1),
            (nb.HDGaBO(2, metric="isotropic"), nb.Sphere(4), 1),
        ],
        ids=repr,
    )
    def test_several_suggestions_are_made_with_one_fit(self, method, space, count, counted):
        made = method.suggest(space, history(space, 6), 3, seeded(0))
        assert len(counted) == count
        assert len({tuple(each.x.tolist()) for each in made}) == 3
        assert made[0].memory.fits == made[1].memory.fits == made[2].memory.fits

    def test_those_of_constraints_are_fitted_once_as_well(self, counted):
        past = history(SPACE, 6, constraints=(0.5, 1.0))
        made = nb.GaBO(metric="isotropic").suggest(SPACE, past, 3, seeded(0))
        assert len(counted) == 3
        assert all(each.memory.fits == made[0].memory.fits for each in made)
        assert set(made[0].memory.fits) == {"full", "constraint:0", "constraint:1"}

    def test_a_method_that_sees_other_coordinates_each_time_fits_each_time(self, counted):
        nb.DropoutBO(2).suggest(SPACE, history(SPACE, 6), 3, seeded(0))
        assert len(counted) == 3

    def test_asking_one_after_the_other_fits_once_until_a_value_is_told(self, counted):
        past = history(SPACE, 6)
        for k, fits in enumerate((1, 1, 1, 2)):
            if k == 3:
                past = History((*past[:6], past[6].with_value(1.0), *past[7:]))
            (found,) = nb.GaBO(metric="isotropic").suggest(SPACE, past, 1, seeded(k))
            past = past.add(Trial(6 + k, found.x, memory=found.memory))
            assert len(counted) == fits

    def test_a_fit_that_is_taken_over_gives_the_suggestion_that_it_would_have_given(self):
        """Of a batch of two the second point, made with the fit of the first, is that of a new fit."""
        past = history(SPACE, 6)
        first, second = nb.GaBO(metric="isotropic").suggest(SPACE, past, 2, seeded(0))
        forgetful = past.add(Trial(6, first.x, memory=dataclasses.replace(first.memory, fits={})))
        (again,) = nb.GaBO(metric="isotropic").suggest(SPACE, forgetful, 1, seeded(0))
        assert again.memory.fits == second.memory.fits
        assert SPACE.dist(again.x, second.x) < 0.05


def test_noise_and_failures_leave_the_fits_of_a_batch_alone():
    study = nb.Study(SPACE, nb.GaBO(metric="isotropic"), seed=0, noise="infer")
    outcomes = iter([None, *range(6)])

    def f(x):
        value = next(outcomes)
        return float("nan") if value is None else Observation(float(x[0]), noise=0.1 + value)

    study.run(f, 7, progress=False)
    assert len({trial.memory.fits["full"] for trial in study.ask(3)}) == 1
