"""Mistakes of people: values that were mistyped, trials that do not count, notes."""

import csv
import io
import json
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

import nestbo as nb
from nestbo.cli import app
from nestbo.report import page

SPACE = nb.Sphere(2)


def bowl(x):
    return float(1 - x[0])


def fresh(strategy=None, **settings):
    return nb.Study(SPACE, strategy or nb.RandomSearch(), **settings)


def command(*arguments, code=0):
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return done


class TestCorrecting:
    def test_a_value_is_replaced_and_the_earlier_one_kept(self, tmp_path):
        with fresh(store=tmp_path / "s.db") as study:
            study.run(bowl, 3, progress=False)
            before = study.history[1]
            mended = study.correct(1, -5.0, note="comma")
            assert (mended.value, mended.told.corrected, mended.told.note) == (-5.0, ((before.value,),), "comma")
            assert study.best.index == 1
            study.correct(mended, -4.0)
        with nb.Study.load(tmp_path / "s.db") as study:
            assert study.history[1].told.corrected == ((before.value,), (-5.0,))
            assert study.history[1].told.note == "comma"
            assert study.history[1].value == -4.0
            assert torch.equal(study.history[1].x, before.x)

    @pytest.mark.parametrize("outcome", [{"value": 1.5}, {"failed": "slipped"}])
    def test_a_note_alone_keeps_everything_else(self, outcome, tmp_path):
        with fresh(store=tmp_path / "s.db") as study:
            before = study.tell(study.ask(), **outcome)
            assert study.correct(0, note="new pad").told == study.history[0].told
        command("correct", str(tmp_path / "s.db"), "0", "--note", "old pad")
        with nb.Study.load(tmp_path / "s.db") as study:
            after = study.history[0].told
        assert after == replace(before.told, note="old pad")

    def test_a_note_alone_is_for_trials_that_have_an_outcome(self):
        study = fresh()
        study.ask()
        with pytest.raises(nb.TrialError, match="waits for a value"):
            study.correct(0, note="new pad")

    def test_suggestions_go_on_as_if_the_right_value_had_been_told(self):
        straight, mended = fresh(nb.GaBO(initial=3)), fresh(nb.GaBO(initial=3))
        straight.run(bowl, 3, progress=False)
        mended.run(lambda x: bowl(x) + 100, 3, progress=False)
        for trial in mended.history:
            mended.correct(trial, bowl(trial.x))
        assert torch.equal(straight.ask().x, mended.ask().x)

    def test_failures_and_values_may_change_places(self):
        study = fresh()
        study.tell(study.ask(), failed="slipped")
        study.tell(study.ask(), 1.0)
        assert study.correct(0, 2.0).told.failed is None
        assert study.history[0].told.corrected == ((),)
        assert study.correct(1, failed="slipped").status == "failed"
        assert study.best.index == 0

    def test_constraints_and_noise_stay_unless_they_are_given(self):
        study = fresh()
        study.tell(study.ask(), 1.0, constraints=[0.5], noise=0.1)
        assert (study.correct(0, 2.0).constraints, study.correct(0, 2.0).noise) == ((0.5,), 0.1)
        assert study.correct(0, 2.0, constraints=[-0.5], noise=0.2).constraints == (-0.5,)
        assert study.correct(0, nb.Observation(1.0, [0.3], note="again")).told.note == "again"

    def test_what_cannot_be_corrected_is_refused(self):
        study = fresh()
        trial = study.ask()
        with pytest.raises(nb.TrialError, match=r"tell\(0, value\) gives it one"):
            study.correct(trial, 1.0)
        with pytest.raises(nb.TrialError, match="no trial 7"):
            study.correct(7, 1.0)
        study.tell(trial, 1.0)
        with pytest.raises(nb.ArgumentError, match="got both or neither"):
            study.correct(trial)
        with pytest.raises(nb.TrialError, match=r"correct\(0, value\)"):
            study.tell(trial, 2.0)

    def test_two_people_do_not_overwrite_each_other(self, tmp_path):
        with fresh(store=tmp_path / "s.db") as study, nb.Study.load(tmp_path / "s.db") as other:
            study.run(bowl, 1, progress=False)
            stale = other.history[0]
            study.correct(0, 1.0)
            with pytest.raises(nb.TrialError, match="changed by another process"):
                other._store.revise(stale, stale.told)


class TestDiscarding:
    def test_a_discarded_trial_counts_for_nothing_and_stays(self, tmp_path):
        with fresh(store=tmp_path / "s.db") as study:
            study.run(bowl, 4, progress=False)
            study.discard(study.best, note="sensor off")
            assert len(study.history) == 4
            assert len(study.history.finished) == 3
            assert study.best.value > min(trial.value for trial in study.history)
            study.run(bowl, budget=4, progress=False)  # one more, as one does not count
            assert len(study.history) == 5
        with nb.Study.load(tmp_path / "s.db") as study:
            gone = [trial for trial in study.history if trial.told.discarded]
            assert [(trial.state, trial.told.note) for trial in gone] == [("discarded", "sensor off")]
            with pytest.raises(nb.TrialError, match="discarded already"):
                study.discard(gone[0])
            with pytest.raises(nb.TrialError, match="discarded already"):
                study.correct(gone[0], 1.0)

    def test_a_pending_trial_is_no_longer_waited_for(self):
        study = fresh()
        trial = study.ask()
        study.discard(trial)
        assert study.pending == []
        with pytest.raises(nb.TrialError, match="was discarded"):
            study.tell(trial, 1.0)

    def test_a_queued_point_is_taken_from_the_queue(self):
        study = fresh()
        study.discard(study.enqueue([1.0, 0, 0]))
        study.run(bowl, 1, progress=False)
        assert [trial.state for trial in study.history] == ["discarded", "told"]

    @pytest.mark.parametrize(
        "strategy", [nb.GaBO(initial=3), nb.HDGaBO(1, initial=3), nb.GaBO(initial=3, metric="auto")]
    )
    def test_suggestions_do_not_see_it(self, strategy):
        study = fresh(strategy)
        study.run(bowl, 5, progress=False)
        study.discard(study.add([0.0, 0, 1], -1e9))
        assert abs(study.model().predict([0.0, 0, 1]).item()) < 1e3
        study.run(bowl, 2, progress=False)
        assert study.best.value >= 0


def test_notes_are_kept_with_values_failures_and_additions():
    study = fresh()
    study.tell(study.ask(), 1.0, note="gripper slipped")
    study.tell(study.ask(), failed="stuck", note="again")
    study.add([1.0, 0, 0], 0.0, note="by hand")
    study.run(lambda x: nb.Observation(2.0, note="from the robot"), 1, progress=False)
    assert [trial.told.note for trial in study.history] == ["gripper slipped", "again", "by hand", "from the robot"]
    with pytest.raises(nb.ArgumentError, match="note is a text"):
        study.add([1.0, 0, 0], 0.0, note=3)


class TestCommand:
    @pytest.fixture(autouse=True)
    def _here(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with fresh(store="s.db") as study:
            study.run(bowl, 3, progress=False)

    def test_correct_and_discard(self):
        said = command("correct", "s.db", "1", "-5.5", "--note", "comma").output
        assert "Trial 1: -5.5. Best: -5.5 (trial 1)." in said
        assert "before" in said
        assert "Trial 1 is discarded." in command("discard", "s.db", "1").output
        assert "1 discarded" in command("show", "s.db").output
        assert "comma" in command("show", "s.db").output
        rows = list(csv.DictReader(io.StringIO(command("export", "s.db").stdout)))
        assert [row["status"] for row in rows] == ["told", "discarded", "told"]
        assert [row["note"] for row in rows] == ["", "comma", ""]
        facts = json.loads(command("show", "s.db", "--json").stdout)
        assert facts["trials"][1]["note"] == "comma"
        assert facts["counts"] == {"told": 2, "failed": 0, "asked": 0, "discarded": 1}

    def test_notes(self):
        command("ask", "s.db", "-n", "3")
        command("tell", "s.db", "3", "1.5", "--note", "warm")
        command(
            "tell",
            "s.db",
            "--json",
            '[{"index": 4, "value": 1, "note": "cold"}, {"index": 5, "failed": "x", "note": "n"}]',
        )
        command("add", "s.db", "--x", "[1,0,0]", "--value", "0", "--note", "by hand")
        with nb.Study.load("s.db") as study:
            assert [trial.told.note for trial in study.history[3:]] == ["warm", "cold", "n", "by hand"]

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["correct", "s.db", "1"], "INDEX VALUE"),
            (["correct", "s.db", "one", "2"], "Wanted the index"),
            (["correct", "s.db", "9", "2"], "no trial 9"),
            (["discard", "s.db", "9"], "no trial 9"),
        ],
    )
    def test_what_is_wrong_is_said(self, arguments, words):
        assert words in command(*arguments, code=2).output

    def test_the_report_strikes_through(self):
        with nb.Study.load("s.db") as study:
            study.correct(0, failed="stuck", note="<b>comma</b>")
            study.discard(1)
            study.discard(2)  # no value is left, and so nothing to draw
            text = page(study)
        assert 'class="discarded"' in text
        assert "&lt;b&gt;comma&lt;/b&gt;" in text
        assert "<s>" in text
        assert "the number of evaluations, 3, is reached" in text
