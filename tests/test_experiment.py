"""Experiments: many trials at once, in a file that a later call continues."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import nestbo.experiment
from nestbo import SPD, ArgumentError, Sphere
from nestbo.experiment import Progress, Trials, main, run, trial_files
from nestbo.experiment.trial_files import run_together
from nestbo.memory import Memory
from nestbo.problems import problem

GABO = Trials("ackley", "sphere:4", "gabo:metric=isotropic", (3, 4), latent_dim=2)
HDGABO = Trials("ackley", "sphere:5", "hdgabo:latent_dim=2:outputs=standardise", (0, 1), latent_dim=2)
RANDOM = Trials("ackley", "sphere:4", "randomsearch", (3, 4), latent_dim=2)


def silent(line):
    pass


def same(a: Progress, b: Progress):
    assert torch.equal(a.x, b.x)
    assert torch.equal(a.y, b.y)
    assert a.memories == b.memories


def test_points_values_and_memories(tmp_path):
    state = run(GABO, 8, tmp_path / "a.npz")
    assert state.x.shape == (2, 8, 5)
    Sphere(4).check(state.x, 1e-9)
    for k, seed in enumerate(GABO.seeds):
        hidden = problem("ackley", Sphere(4), latent_dim=2, seed=seed)
        torch.testing.assert_close(state.y[k], hidden.objective(state.x[k]))
        assert [memory.arm for memory in state.memories[k]] == [None] * 5 + ["full"] * 3
    assert state.seconds[:5] == (0,) * 5
    assert len(state.seconds) == 8
    assert min(state.seconds[5:]) > 0


@pytest.mark.parametrize("trials", [GABO, HDGABO], ids=lambda trials: trials.method)
def test_a_run_in_parts_is_the_straight_run(trials, tmp_path):
    straight = run(trials, 9, tmp_path / "straight.npz")
    for budget in (6, 7, 9):
        parts = run(trials, budget, tmp_path / "parts.npz")
        assert parts.y.shape[1] == budget
    same(straight, parts)


@pytest.mark.parametrize(
    "method", ["hdgabo:latent_dim=2", "rembo:3:embeddings=2", "hdgabo:latent_dim=1:metric=isotropic"]
)
def test_fits_that_are_dropped_are_of_no_use(method, tmp_path, monkeypatch):
    trials = Trials("ackley", "sphere:6", method, (0, 1), latent_dim=2)
    light = run(trials, 13, tmp_path / "light.npz", report=silent)
    monkeypatch.setattr(nestbo.experiment.trials, "_lightened", lambda past, new: past)
    full = run(trials, 13, tmp_path / "full.npz", report=silent)
    assert torch.equal(light.x, full.x)
    nested = [name for memory in light.memories[0] for name, fit in memory.fits.items() if fit.basis]
    assert len(nested) == len(set(nested))
    assert [memory.arm for memory in light.memories[0]] == [memory.arm for memory in full.memories[0]]


class TestTogether:
    """Trials of several problems on one space, as one batch."""

    parts = (GABO, replace(GABO, problem="rosenbrock", seeds=(5, 6, 7)))

    def test_files_are_those_of_trials_that_were_run_apart(self, tmp_path):
        run_together({tmp_path / f"{k}.npz": part for k, part in enumerate(self.parts)}, 9)
        for k, part in enumerate(self.parts):
            apart, file = run(part, 9, tmp_path / "apart" / f"{k}.npz"), np.load(tmp_path / f"{k}.npz")
            torch.testing.assert_close(torch.from_numpy(file["x"]), apart.x, rtol=0, atol=1e-5)
            assert json.loads(str(file["about"]))["seeds"] == list(part.seeds)

    def test_what_was_begun_is_gone_on_with(self, tmp_path):
        for name, budgets in (("straight", (9,)), ("parts", (6, 9))):
            paths = [tmp_path / name / f"{k}.npz" for k in range(2)]
            for budget in budgets:
                state = run_together(dict(zip(paths, self.parts, strict=True)), budget)
            assert state.y.shape == (5, 9)
        for k in range(2):
            one, other = (np.load(tmp_path / name / f"{k}.npz")["y"] for name in ("straight", "parts"))
            assert np.array_equal(one, other)

    def test_each_trial_has_a_great_sphere_of_its_own(self, tmp_path):
        hidden = Trials("ackley", "sphere:22", "hdgabo", (0, 1), latent_dim=2)
        parts = (hidden, replace(hidden, problem="rosenbrock", seeds=(2,)))
        run_together({tmp_path / f"{k}.npz": part for k, part in enumerate(parts)}, 7)
        for k, part in enumerate(parts):
            apart = run(part, 7, tmp_path / "apart" / f"{k}.npz")
            together = torch.from_numpy(np.load(tmp_path / f"{k}.npz")["x"])
            torch.testing.assert_close(together, apart.x, rtol=0, atol=1e-4)

    def test_applications_are_refused(self, tmp_path, capsys):
        with pytest.raises(SystemExit):
            main(["run", "--suite", "applications", "--together", "--out", str(tmp_path)])
        assert "Leave out --together" in capsys.readouterr().err

    def test_longer_trials_are_not_lost(self, tmp_path):
        paths = [tmp_path / f"{k}.npz" for k in range(2)]
        run(self.parts[0], 8, paths[0])
        with pytest.raises(ArgumentError, match="from the same count"):
            run_together(dict(zip(paths, self.parts, strict=True)), 9)
        assert trial_files.evaluated(paths[0]) == 8


def test_a_limit_stops_and_a_later_call_goes_on(tmp_path):
    stopped = run(RANDOM, 8, tmp_path / "a.npz", limit=0.0)
    assert stopped.y.shape[1] == 5
    same(run(RANDOM, 8, tmp_path / "a.npz"), run(RANDOM, 8, tmp_path / "b.npz"))


def test_a_kill_between_two_writes_loses_only_what_came_after(tmp_path, monkeypatch):
    """The file of the first write stays whole, and the next call goes on from it."""
    straight = run(RANDOM, 12, tmp_path / "straight.npz")
    monkeypatch.setattr(trial_files, "_SAVE_EVERY", 0.0)
    save, writes = trial_files._write, []

    def dying(path, *arguments):
        save(path, *arguments)
        writes.append(path)
        if len(writes) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(trial_files, "_write", dying)
    with pytest.raises(KeyboardInterrupt):
        run(RANDOM, 12, tmp_path / "a.npz", report=silent)
    monkeypatch.setattr(trial_files, "_write", save)
    assert np.load(tmp_path / "a.npz")["y"].shape == (2, 8)
    same(run(RANDOM, 12, tmp_path / "a.npz", report=silent), straight)


def test_a_kill_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    before = run(RANDOM, 6, tmp_path / "a.npz")

    def dying(file, **arrays):
        file.write(b"half of it")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez_compressed", dying)
        with pytest.raises(KeyboardInterrupt):
            run(RANDOM, 8, tmp_path / "a.npz")
    same(run(RANDOM, 6, tmp_path / "a.npz"), before)


def test_what_is_done_is_not_done_again(tmp_path):
    first = run(RANDOM, 8, tmp_path / "a.npz")
    same(run(RANDOM, 6, tmp_path / "a.npz"), first)


def test_every_source_that_took_part_is_told(tmp_path, monkeypatch):
    def source():
        return json.loads(str(np.load(tmp_path / "a.npz")["about"]))["nestbo"]

    run(RANDOM, 6, tmp_path / "a.npz")
    own = source()
    monkeypatch.setattr(trial_files, "source", lambda: "another")
    for budget in (7, 8):
        run(RANDOM, budget, tmp_path / "a.npz")
    assert source() == f"{own}, another"


def test_a_file_of_other_trials_is_refused(tmp_path):
    """Instead of going on with their points on another problem."""
    run(RANDOM, 6, tmp_path / "a.npz")
    with pytest.raises(ArgumentError):
        run(Trials("rosenbrock", "sphere:4", "randomsearch", (3, 4), latent_dim=2), 8, tmp_path / "a.npz")


def test_the_file_is_plain_arrays_and_json(tmp_path):
    state = run(HDGABO, 7, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
        assert set(file.files) == {"about", "x", "y", "memories", "seconds"}
        np.testing.assert_array_equal(file["x"], state.x)
        np.testing.assert_array_equal(file["y"], state.y)
        found = json.loads(file["memories"].tobytes())
        assert [[Memory.of(each) for each in trial] for trial in found] == state.memories
        about = json.loads(str(file["about"]))
    assert (about["problem"], about["space"], about["method"]) == ("ackley", "sphere:5", HDGABO.method)
    assert (about["seeds"], about["latent_dim"], about["device"]) == ([0, 1], 2, "cpu")
    assert not list(tmp_path.glob("*.part"))


def test_a_file_of_an_earlier_version_is_continued(tmp_path):
    """What nestbo 0.1 called notes had the fits of models beside who suggested."""
    straight = run(GABO, 8, tmp_path / "a.npz")
    run(GABO, 7, tmp_path / "b.npz")
    with np.load(tmp_path / "b.npz") as file:
        arrays = dict(file)
    earlier = [
        [({"arm": m["arm"]} if "arm" in m else {}) | m.get("fits", {}) for m in trial]
        for trial in json.loads(arrays.pop("memories").tobytes())
    ]
    np.savez_compressed(tmp_path / "b.npz", notes=np.frombuffer(json.dumps(earlier).encode(), np.uint8), **arrays)
    same(run(GABO, 8, tmp_path / "b.npz"), straight)


def test_methods_of_a_trial_start_from_the_same_points(tmp_path):
    states = [run(trials, 6, tmp_path / f"{trials.method}.npz") for trials in (GABO, RANDOM)]
    assert torch.equal(states[0].x[:, :5], states[1].x[:, :5])
    assert not torch.equal(states[0].x[:, 5], states[1].x[:, 5])


def test_a_trial_depends_on_its_seed_alone(tmp_path):
    together = run(RANDOM, 8, tmp_path / "a.npz")
    alone = run(Trials("ackley", "sphere:4", "randomsearch", (4,), latent_dim=2), 8, tmp_path / "b.npz")
    assert torch.equal(alone.x[0], together.x[1])
    assert not torch.equal(together.x[0], together.x[1])


@pytest.mark.parametrize(("space", "latent"), [("sphere:4", Sphere(2)), ("spd:4:eigenvalues=0.1,5", SPD(2))])
def test_the_oracle_searches_the_latent_space(space, latent, tmp_path):
    """Its values are those of the hidden objective at lifted points."""
    trials = Trials("rosenbrock", space, "oracle", (0, 1), latent_dim=2)
    state = run(trials, 7, tmp_path / trials.name)
    assert state.x.shape[2:] == latent.point_shape
    for k, hidden in enumerate(trials.problems()):
        hidden.mapping.latent.check(state.x[k], 1e-9)
        torch.testing.assert_close(state.y[k], hidden.objective(hidden.mapping.lift(state.x[k])))


def test_a_problem_without_a_hidden_projection(tmp_path):
    state = run(Trials("ackley", "sphere:3", "randomsearch", (0,)), 6, tmp_path / "a.npz")
    torch.testing.assert_close(state.y[0], problem("ackley", Sphere(3)).objective(state.x[0]))


def test_progress_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(trial_files, "_SAVE_EVERY", 0.0)
    lines = []
    state = run(RANDOM, 7, tmp_path / "a.npz", report=lines.append)
    assert len(lines) == 2
    assert lines[-1].startswith(f"a: 7/7, median best {state.y.amin(1).median():.4g}, ")
    assert lines[-1].endswith(" s a step, 0 s left")


def test_names_differ_and_are_file_names():
    found = {trials.name for trials in (GABO, HDGABO, RANDOM, Trials("ackley", "sphere:4", "gabo", (3, 4)))}
    assert len(found) == 4
    assert all(name.endswith(".npz") and not set(name) & set('/\\:*?"<>| ') for name in found)


class TestCommand:
    arguments = (
        "one",
        "ackley",
        "sphere:4",
        "randomsearch",
        "--latent-dim",
        "2",
        "--trials",
        "3",
        "--first",
        "2",
        "--budget",
        "8",
    )

    def test_it_prints_and_writes(self, tmp_path, capsys):
        main([*self.arguments, "--out", str(tmp_path / "new")])
        (path,) = (tmp_path / "new").iterdir()
        values = np.load(path)["y"]
        assert values.shape == (3, 8)
        low, middle, high = np.quantile(values.min(1), [0.25, 0.5, 0.75])
        line = f"randomsearch: after 8 evaluations, median {middle:.4g} ({low:.4g}, {high:.4g})\n"
        assert capsys.readouterr().out == line
        assert json.loads(str(np.load(path)["about"]))["seeds"] == [2, 3, 4]

    @pytest.mark.parametrize(
        ("place", "wrong", "message"),
        [
            (1, "akley", "Did you mean 'ackley'?"),
            (2, "spere:4", "Did you mean 'sphere'?"),
            (2, "torus:2", "Benchmark problems live on a Sphere, on SPD matrices, on a Quaternion"),
            (3, "gaboo", "Did you mean 'gabo'?"),
            (5, "9", "from 1 to 4, got 9"),
            (5, "two", "wanted a whole number of at least 1, got 'two'"),
            (3, "hdgabo:latent_dim=9", "from 1 to 4, got 9"),
        ],
    )
    def test_mistakes_are_told_as_such(self, place, wrong, message, tmp_path, capsys):
        arguments = list(self.arguments)
        arguments[place] = wrong
        with pytest.raises(SystemExit) as stop:
            main([*arguments, "--out", str(tmp_path)])
        assert stop.value.code == 2
        assert message in capsys.readouterr().err
        assert not list(tmp_path.iterdir())

    def test_no_trials_are_a_mistake(self, tmp_path):
        with pytest.raises(SystemExit):
            main([*self.arguments, "--trials", "0", "--out", str(tmp_path)])
