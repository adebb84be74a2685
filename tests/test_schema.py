"""What is in the file: facts apart from memory, a checksum for every row, and files of older versions of nestbo."""

import logging
import os
import random
import shutil
import sqlite3
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

import nestbo as nb
from damage import change, raw
from nestbo.history import Told
from nestbo.memory import Memory
from nestbo.storage.rows import read_told, write_told
from processes import forked, killed

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
GOLDEN = Path(__file__).parent / "golden"


def bowl(x):
    return float((x**2 * torch.arange(1, x.numel() + 1, dtype=x.dtype)).sum())


def schema(path):
    with raw(path) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


@pytest.fixture
def study(tmp_path):
    """A file with a told, a failed and a pending trial."""
    path = tmp_path / "s.db"
    with nb.Study(nb.Sphere(2), nb.RandomSearch(), seed=1, store=path) as study:
        study.tell(study.ask(), 1.5, constraints=[0.5, -1.0], noise=0.25)
        study.tell(study.ask(), failed="motor stalled")
        study.ask()
    return path


class TestToldAndMemory:
    everything = Told(
        (0.1 + 0.2, -0.0), (5e-324,), 1e308, "é\ud800", float("inf"), ("a", "b"), "a note", True, ((1.0,), (2.0, 3.0))
    )

    def test_facts_come_back_from_text_to_the_last_bit(self):
        for told in (Told(), self.everything, Told((1.0,)), Told(failed="")):
            assert read_told(write_told(told)) == told
        assert str(read_told(write_told(self.everything)).values[1]) == "-0.0"

    @pytest.mark.parametrize(
        "text",
        [
            *("[]", "3", '{"value": 1.0}', '{"values": 1.0}', '{"values": [NaN]}', '{"values": [true]}'),
            *('{"values": [[1.0]]}', '{"noise": "1"}', '{"noise": Infinity}', '{"failed": 3}', '{"lost": "a"}'),
            *('{"lost": [1]}', '{"note": []}', '{"discarded": 1}', '{"corrected": [1.0]}', '{"violation": null}'),
        ],
    )
    def test_other_texts_are_refused(self, text):
        with pytest.raises(ValueError, match=r"it has|was told"):
            read_told(text)

    def test_a_trial_has_one_value_or_none(self):
        x = torch.zeros(2)
        assert nb.Trial(0, x).value is None
        assert nb.Trial(0, x).with_value(2.0).value == 2.0
        assert replace(nb.Trial(0, x), told=Told((1.0, 2.0))).value is None
        assert nb.Trial(0, x).with_failure("why").told.failed == "why"

    @pytest.mark.filterwarnings("ignore:Trial.notes is deprecated:DeprecationWarning")
    def test_notes_are_a_view_of_both_that_cannot_be_changed(self):
        trial = nb.Trial(0, torch.zeros(2), memory=Memory("full", noise=9.0))
        trial = trial.with_value(1.0, noise=0.5, constraints=(1.0, 2.0), lost=("died",))
        assert trial.notes == {"arm": "full", "noise": 0.5, "constraints": [1.0, 2.0], "lost": ["died"]}
        with pytest.raises(TypeError):
            trial.notes["arm"] = "other"

    def test_a_memory_has_no_influence_on_facts(self, tmp_path):
        """A strategy may use the very words that facts have."""

        @dataclass(frozen=True, repr=False)
        class Forgetful(nb.Strategy):
            @classmethod
            def samples(cls):
                return [cls()]

            def propose(self, space, runs):
                own = {"noise": 3.0, "constraints": [-1.0], "failed": "no", "violation": 2.0, "lost": ["a"] * 9}
                memory = Memory(noise=4.0, own=own | {"values": [7.0], "discarded": True})
                return runs.random(space), [memory for _ in runs.rngs]

        with nb.Study(nb.Sphere(2), Forgetful(), store=tmp_path / "s.db") as study:
            study.run(bowl, 3, progress=False)
            asked = study.ask()
            history = study.history
        assert not history.noisy
        assert history.constraints is None
        assert history.best is not None
        assert [trial.told for trial in history] == [*(Told((bowl(t.x),)) for t in history[:3]), Told()]
        assert (asked.memory.noise, asked.memory.own["noise"]) == (4.0, 3.0)
        runs = nb.strategies.Runs.of(nb.Sphere(2), history, torch.Generator())
        assert (runs.noisy, runs.constraints, runs.feasible, runs.failed, runs.violation) == (False, *[None] * 4)

    def test_facts_reach_strategies_as_tensors(self):
        x = nb.Sphere(1).random(3, rng=torch.Generator().manual_seed(0))
        trials = nb.Trial(0, x[0]).with_value(1.0, violation=0.5), nb.Trial(1, x[1]).with_failure("why")
        history = nb.History((*trials, nb.Trial(2, x[2]).with_value(3.0)))
        runs = nb.strategies.Runs.of(nb.Sphere(1), history, torch.Generator())
        assert runs.failed.tolist() == [[False, True, False]]
        assert runs.violation.tolist() == [[0.5, 0.0, 0.0]]
        assert runs.feasible.tolist() == [[False, True, True]]
        assert runs.only([1, 2]).failed.tolist() == [[True, False]]


class TestChecksums:
    @pytest.mark.parametrize(
        "damage",
        [
            *(
                "status = 'told'",
                "x = CAST(x'00' || substr(x, 2) AS BLOB)",
                "told = replace(told, '1.5', '1.6')",
                "memory = '{\"a\":1}'",
            ),
            *("owner = 'me'", "asked_at = asked_at + 1", "told_at = 0.0", "version = '0'", "revision = revision + 1"),
            *("number = number + 10", "checksum = x'0000000000000000'", "told = CAST(told AS BLOB)"),
        ],
    )
    def test_a_row_is_checked_when_it_is_read(self, study, damage):
        with raw(study) as connection:
            connection.execute(f"UPDATE trials SET {damage} WHERE number = {2 if 'status' in damage else 0}")
        before = study.read_bytes()
        with pytest.raises(nb.StoreError, match="damaged in trial"):
            nb.Study.load(study).history  # noqa: B018
        assert study.read_bytes() == before

    def test_a_setting_is_checked_when_it_is_read(self, study):
        with raw(study) as connection:
            connection.execute("UPDATE settings SET value = '2' WHERE name = 'seed'")
        with pytest.raises(nb.StoreError, match=r"settings .* damaged"):
            nb.Study.load(study)

    def test_a_damaged_row_is_not_written_over(self, study):
        """What a tell keeps of a row is checked, too: the point and the memory."""
        with nb.Study.load(study) as loaded:
            (trial,) = loaded.pending
            with raw(study) as connection:
                connection.execute("UPDATE trials SET memory = '{\"a\": 1}' WHERE number = 2")
            with pytest.raises(nb.StoreError, match="damaged in trial 2"):
                loaded._store.tell(trial.with_value(1.0))

    def test_points_are_checked_against_the_space(self, study):
        point = torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64).numpy().tobytes()
        change(study, "UPDATE trials SET x = ? WHERE number = 1", point)
        with pytest.raises(nb.StoreError, match="damaged"):
            nb.Study.load(study).history  # noqa: B018


class TestOlderFiles:
    @pytest.fixture(params=["gabo", "hdgabo"])
    def old(self, request, tmp_path):
        return Path(shutil.copy(GOLDEN / f"schema1-{request.param}.db", tmp_path / f"{request.param}.db"))

    def test_they_are_migrated_and_go_on(self, old):
        assert schema(old) == 1
        constraints = (lambda x: x[0] + 0.5) if old.stem == "gabo" else None
        with nb.Study.load(old, constraints=constraints) as study:
            before = study.history
            study.run(bowl, 2, progress=False) if constraints is None else study.tell(study.ask(), 1.0, constraints=1.0)
        assert schema(old) == 2
        with nb.Study.load(old) as study:
            assert len(study.history) > len(before)
            assert [t.told for t in study.history][:3] == [t.told for t in before][:3]
            study.space.check(study.history.points)

    def test_facts_and_memory_come_apart(self, tmp_path):
        path = shutil.copy(GOLDEN / "schema1-gabo.db", tmp_path / "s.db")
        with nb.Study.load(path) as study:
            history, times = study.history, study.times
        told = [trial.told for trial in history]
        assert told[0] == Told((2.0,), (0.25,), 0.5, violation=0.5)
        assert (told[1], str(told[1].values[0])) == (Told((-0.0,), (-1.5,), 0.125), "-0.0")
        assert told[5] == Told((0.1 + 0.2,), (1.0,), lost=("BrokenProcessPool: died",))
        assert told[6] == Told(failed="é \U0001f4a5")
        assert [trial.index for trial in history] == [0, 1, 2, 3, 4, 5, 6, 8]
        assert [trial.status for trial in history] == [*["told"] * 6, "failed", "asked"]
        assert history[2].memory.fits["full"].evaluations == 2
        assert all(trial.memory.own == {} for trial in history)
        assert all(trial.memory.noise != trial.told.noise for trial in history if trial.told.noise is not None)
        assert all(asked is not None for number, (asked, _) in times.items() if number != 7)

    def test_what_a_method_remembered_is_translated(self, tmp_path):
        """A fit under the name of its model, the noise as "inferred_noise"; the file itself says what it said."""
        path = shutil.copy(GOLDEN / "schema1-hdgabo.db", tmp_path / "s.db")
        with nb.Study.load(path) as study:
            memories = [trial.memory for trial in study.history]
        arms = {memory.arm for memory in memories if memory.arm is not None}
        assert arms
        for memory in memories:
            if memory.arm is not None:
                assert all(fit.parameters and fit.evaluations for fit in memory.fits.values())
                assert memory.own == {}
        assert any(fit.basis for memory in memories for fit in memory.fits.values())

    @pytest.mark.parametrize("memory", ['{"arm": 3}', '{"best": [0.5]}', '{"fits": []}', '{"noise": NaN}', "[]", "3"])
    def test_a_damaged_memory_is_named(self, study, memory):
        change(study, "UPDATE trials SET memory = ? WHERE number = 1", memory)
        with pytest.raises(nb.StoreError, match="damaged in trial 1"):
            nb.Study.load(study).history  # noqa: B018

    def test_what_a_dead_process_had_reserved_or_was_evaluating_is_taken_up(self, tmp_path):
        path = shutil.copy(GOLDEN / "schema1-gabo.db", tmp_path / "s.db")
        with nb.Study.load(path, constraints=lambda x: x[0] + 0.5) as study:
            assert study.ask().index == 7
            assert study._store.take_orphan("a call") == 8

    def test_a_damaged_one_stays_as_it_is(self, old):
        with raw(old) as connection:
            connection.execute("UPDATE trials SET notes = '[]' WHERE number = 3")
        before = old.read_bytes()
        with pytest.raises(nb.StoreError, match="damaged in trial 3"):
            nb.Study.load(old)
        assert (schema(old), old.read_bytes()) == (1, before)

    def test_a_kill_in_the_middle_leaves_the_old_or_the_new_one(self, tmp_path, request):
        """With so many trials that it takes a while. Full run: 100 kills."""
        full = request.config.getoption("--full")
        path, source, chance, schemas = tmp_path / "s.db", tmp_path / "large.db", random.Random(0), set()
        shutil.copy(GOLDEN / "schema1-hdgabo.db", source)
        with raw(source) as connection:
            columns = "status, x, value, notes, owner, asked, told"
            for _ in range(2000 if full else 300):
                connection.execute(f"INSERT INTO trials ({columns}) SELECT {columns} FROM trials WHERE number = 3")
        shutil.copy(source, path)
        began = time.monotonic()
        with nb.Study.load(path) as study:
            wanted, longest = [trial.told for trial in study.history], time.monotonic() - began
        for _ in range(100 if full else 3):
            for end in ("-wal", "-shm", "-journal"):
                Path(f"{path}{end}").unlink(missing_ok=True)
            shutil.copy(source, path)
            killed(forked(lambda: nb.storage.Store(path)), chance.uniform(0, longest))
            schemas.add(schema(path))
            with nb.Study.load(path) as study:
                assert [trial.told for trial in study.history] == wanted
        assert schemas <= {1, 2}

    def test_two_processes_migrate_once(self, old):
        first, second = (sqlite3.connect(old, isolation_level=None) for _ in range(2))
        for connection in (first, second):
            nb.storage.schema.migrate(connection, old)
            connection.close()
        assert schema(old) == 2

    def test_one_that_cannot_be_written_is_read_through_a_copy(self, old, monkeypatch):
        before = old.read_bytes()
        monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
        with nb.Study.load(old) as study:
            assert len(study.history) in (8, 11)
            assert study.best is not None
            with pytest.raises(nb.StoreError, match="writable"):
                study.tell(study.pending[0], failed="why")
        assert old.read_bytes() == before
        assert os.listdir(old.parent) == [old.name]

    def test_another_version_is_named_once_and_goes_on(self, study, caplog, monkeypatch):
        with caplog.at_level(logging.WARNING, "nestbo"), nb.Study.load(study) as loaded:
            loaded.ask()
            assert caplog.messages == []
        monkeypatch.setattr(nb.study.asking, "version", lambda: "99.1")
        monkeypatch.setattr(nb.storage.store, "version", lambda: "99.1")
        with nb.Study.load(study) as loaded:
            assert len(loaded.history) == 4
            assert caplog.messages == []  # to look at a study is not to resume it
            loaded.ask(2)
            loaded.ask()
        (said,) = caplog.messages
        assert "nestbo 99.1 goes on" in said
        with nb.Study.load(study) as loaded:
            loaded.ask()
        assert len(caplog.messages) == 1

    def test_an_older_file_says_so_when_it_goes_on(self, tmp_path, caplog):
        path = shutil.copy(GOLDEN / "schema1-hdgabo.db", tmp_path / "s.db")
        with nb.Study.load(path) as study:
            study.ask()
        assert "an earlier nestbo" in caplog.text
