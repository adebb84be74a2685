"""The record of trials."""

import dataclasses
import math

import pytest
import torch

from nestbo import History, Sphere, Trial
from nestbo.history import Told
from nestbo.memory import Fit, Memory
from nestbo.search.runs import latest
from nestbo.strategies import Runs


def vector(*entries):
    return torch.tensor(entries, dtype=torch.float64)


FIRST, SECOND = Fit((1.0,), 2), Fit((2.0,), 4)
HISTORY = History(
    (
        Trial(0, vector(1, 0)).with_value(3.0),
        Trial(1, vector(0, 1)).with_failure(),
        Trial(2, vector(-1, 0), memory=Memory("full", fits={"full": FIRST})).with_value(-2.0),
        Trial(3, vector(0, -1)),
        Trial(4, vector(1, 0)).with_value(7.0),
    )
)


class TestHistory:
    def test_it_is_a_sequence_of_trials(self):
        assert len(HISTORY) == 5
        assert HISTORY[2].value == -2
        assert [trial.index for trial in HISTORY] == [0, 1, 2, 3, 4]
        assert [trial.index for trial in reversed(HISTORY)] == [4, 3, 2, 1, 0]
        part = HISTORY[1:3]
        assert isinstance(part, History)
        assert [trial.index for trial in part] == [1, 2]

    def test_finished_and_pending_share_the_trials_out(self):
        assert [trial.index for trial in HISTORY.finished] == [0, 1, 2, 4]
        assert [trial.index for trial in HISTORY.pending] == [3]

    def test_the_best_was_told(self):
        assert HISTORY.best.index == 2
        assert HISTORY[1:2].best is None
        assert History().best is None
        assert HISTORY[3:4].best is None

    def test_a_failure_counts_as_the_worst_told_and_keeps_its_place(self):
        torch.testing.assert_close(HISTORY.finished.values, vector(3, 7, -2, 7))
        torch.testing.assert_close(HISTORY[1:2].values, vector(0))
        torch.testing.assert_close(HISTORY[1:3].values, vector(-2, -2))

    def test_values_are_kept_to_the_last_bit(self):
        value = 0.1 + 1e-17 + math.pi * 1e-9
        assert History((Trial(0, vector(1, 0)).with_value(value),)).values.item() == value

    def test_points_are_stacked(self):
        assert HISTORY.points.shape == (5, 2)
        assert torch.equal(HISTORY.points[3], vector(0, -1))

    def test_adding_makes_a_new_one(self):
        longer = HISTORY.add(Trial(5, vector(0, 1)), Trial(6, vector(0, 1)))
        assert len(longer) == 7
        assert len(HISTORY) == 5
        assert longer[:5].trials == HISTORY.trials

    def test_nothing_changes(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            HISTORY.trials = ()
        with pytest.raises(dataclasses.FrozenInstanceError):
            HISTORY[0].told = Told()
        with pytest.raises(dataclasses.FrozenInstanceError):
            HISTORY[0].told.values = (1.0,)
        with pytest.raises(dataclasses.FrozenInstanceError):
            HISTORY[0].memory.arm = "full"

    def test_an_empty_one_is_false(self):
        assert not History()
        assert HISTORY


class TestRuns:
    space = Sphere(1)

    def test_a_single_run_from_its_history(self, rng):
        runs = Runs.of(self.space, HISTORY, rng)
        assert runs.x.shape == (1, 4, 2)
        torch.testing.assert_close(runs.y, vector(3, 7, -2, 7).unsqueeze(0))
        assert torch.equal(runs.pending, vector(0, -1).reshape(1, 1, 2))
        assert runs.rngs == [rng]
        assert runs.memories == [[trial.memory for trial in HISTORY.finished]]
        assert runs.memories[0][2] == Memory("full", fits={"full": FIRST})
        assert runs.asked == [[Memory()]]

    def test_an_empty_history(self, rng):
        runs = Runs.of(self.space, History(), rng)
        assert runs.x.shape == runs.pending.shape == (1, 0, 2)
        assert runs.y.shape == (1, 0)
        assert runs.memories == runs.asked == runs.indices == [[]]

    def test_trials_are_found_again_by_their_index(self, rng):
        """Places are those among finished trials: trial 3 is pending."""
        runs = Runs.of(self.space, HISTORY, rng)
        assert runs.indices == [[0, 1, 2, 4]]
        assert [runs.index(0, place) for place in range(4)] == [0, 1, 2, 4]
        assert [runs.only([1, 3]).index(0, place) for place in range(2)] == [1, 4]
        assert dataclasses.replace(runs, indices=[]).index(0, 3) == 3

    def test_facts_are_those_of_finished_trials(self, rng):
        runs = Runs.of(self.space, HISTORY, rng)
        assert runs.failed.tolist() == [[False, True, False, False]]
        assert runs.feasible is runs.violation is runs.constraints is None
        outside = HISTORY.add(Trial(5, vector(0, 1)).with_value(1.0, violation=0.25))
        runs = Runs.of(self.space, outside, rng)
        assert runs.feasible.tolist() == [[True, True, True, True, False]]
        assert runs.violation.tolist() == [[0.0, 0.0, 0.0, 0.0, 0.25]]
        assert Runs.of(self.space, HISTORY[2:], rng).failed is None

    def test_what_was_remembered_last_is_that_of_finished_trials(self, rng):
        asked = HISTORY.add(Trial(5, vector(0, 1), memory=Memory("full", fits={"full": SECOND})))
        runs = Runs.of(self.space, asked, rng)
        fits = lambda memories: latest(memories, lambda memory: memory.fits.get("full"))
        assert fits(runs.memories[0]) == FIRST
        assert fits(runs.asked[0]) == SECOND
        assert latest(runs.memories[0], lambda memory: memory.fits.get("nested:2")) is None

    def test_one_more_point_pending(self, rng):
        runs = Runs.of(self.space, HISTORY, rng)
        more = runs.with_pending(vector(1, 0).unsqueeze(0), [Memory("full")])
        assert more.pending.shape == (1, 2, 2)
        assert more.asked == [[Memory(), Memory("full")]]
        assert runs.pending.shape == (1, 1, 2)
        assert runs.asked == [[Memory()]]


def test_the_text_of_a_trial_has_only_what_was_told():
    trial = Trial(3, torch.zeros(2), memory=Memory(arm="full:0")).with_value(1.5, note="good")
    assert repr(trial) == "Trial(index=3, x=tensor([0., 0.]), status='told', told=Told(values=(1.5,), note='good'))"
