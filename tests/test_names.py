"""Names of parameters through a study: trials, objectives, observations, constraints, fixed values."""

import csv
import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import nestbo as nb
from nestbo import ArgumentError, Box, Choice, GaBO, HDGaBO, Integer, Product, RandomSearch, Sphere, Study
from nestbo.cli import app

SPACE = Product(direction=Sphere(2), force=Box(0, 40), passes=Integer(1, 8), tool=Choice("soft", "hard", "vacuum"))
GOOD = {"direction": [1, 0, 0], "force": 12.5, "passes": 3, "tool": "soft"}


def cost(direction, force, passes, tool):
    return float(1 - direction[0] + (force - 10) ** 2 / 400 + passes / 8 + (tool != "hard"))


class TestTrials:
    def test_a_trial_has_parameters_next_to_its_point(self):
        study = Study(SPACE, RandomSearch(), seed=0)
        trial = study.ask()
        assert list(trial.parameters) == ["direction", "force", "passes", "tool"]
        assert trial.parameters["force"] == trial.x[3]
        assert study.tell(trial, 3.0).parameters["tool"] == trial.parameters["tool"]
        assert study.best.parameters["passes"] == trial.parameters["passes"] == study.history[0].parameters["passes"]

    def test_without_names_the_point_is_called_x(self):
        trial = Study(Sphere(2), RandomSearch(), seed=0).ask()
        assert list(trial.parameters) == ["x"]
        assert (trial.parameters["x"] == trial.x.numpy()).all()

    def test_observations_and_the_queue_take_parameters(self):
        study = Study(SPACE, RandomSearch(), seed=0)
        assert study.add(GOOD, 2.0).x.tolist() == [1, 0, 0, 12.5, 3, 0]
        assert study.enqueue(GOOD | {"tool": "hard"}).parameters["tool"] == "hard"
        assert study.ask().parameters["tool"] == "hard"
        with pytest.raises(ArgumentError, match="force: 41 is above 40"):
            study.add(GOOD | {"force": 41}, 2.0)

    def test_a_file_keeps_names(self, tmp_path):
        with Study(SPACE, RandomSearch(), seed=0, store=tmp_path / "s.db") as study:
            study.add(GOOD, 2.0)
        with Study.load(tmp_path / "s.db") as again:
            assert again.space.names == SPACE.names
            assert again.best.parameters["tool"] == "soft"


class TestObjectives:
    def test_keyword_arguments_with_the_names_of_the_space_get_parameters(self):
        study = Study(SPACE, RandomSearch(), seed=0).run(cost, 3, progress=False, on_error="raise")
        assert study.history[0].value == pytest.approx(cost(**study.history[0].parameters))
        Study(SPACE, RandomSearch(), seed=0).run(lambda **p: p["force"], 1, progress=False, on_error="raise")

    def test_one_argument_gets_the_point(self):
        for f in (lambda x: float(x[0]), lambda x, scale=2.0: scale * float(x[0]), torch.sum):
            study = Study(SPACE, RandomSearch(), seed=0).run(f, 1, progress=False, on_error="raise")
            assert study.best.value == float(f(study.best.x))

    def test_other_names_are_refused(self):
        with pytest.raises(
            ArgumentError, match="or direction, force, passes, tool by name, got one that takes force, x"
        ):
            Study(SPACE, RandomSearch(), seed=0).run(lambda force, x: 1.0, 1, progress=False)

    def test_a_function_without_arguments_is_refused(self):
        for space in (SPACE, nb.Sphere(2)):
            with pytest.raises(ArgumentError, match=r"got one without arguments. Write def f\(x\)"):
                Study(space).run(lambda: 1.0, 1, progress=False)

    def test_minimize_takes_names_too(self):
        found = nb.minimize(lambda x, y: (x - 3) ** 2 + (y - 1) ** 2, Box([0, 0], [4, 4], names=("x", "y")), budget=12)
        assert found.value < 0.1

    def test_constraints_take_names_too(self):
        study = Study(SPACE, RandomSearch(), seed=0, constraints=lambda direction, force, passes, tool: 20 - force)
        assert all(trial.parameters["force"] <= 20 for trial in study.ask(8))


class TestFixed:
    @pytest.mark.parametrize("method", [GaBO(), HDGaBO(), GaBO(metric="auto"), RandomSearch()], ids=repr)
    def test_fixed_parameters_have_their_values(self, method, request):
        if method == HDGaBO() and not request.config.getoption("--full"):
            pytest.skip("on this space much like GaBO; with --full")
        study = Study(SPACE, method, seed=0).run(cost, 6, progress=False, on_error="raise")
        for trial in study.ask(2, fixed={"tool": "vacuum", "force": 7}):
            assert (trial.parameters["tool"], trial.parameters["force"]) == ("vacuum", 7.0)
        SPACE.check(study.ask().x)

    def test_the_others_are_chosen_to_go_with_them(self):
        study = Study(SPACE, GaBO(metric="isotropic"), seed=0).run(cost, 11, progress=False, on_error="raise")
        trial = study.ask(fixed={"tool": "soft"})
        assert trial.parameters["passes"] <= 2
        assert trial.parameters["direction"][0] > 0.8

    def test_coordinates_of_a_box_are_fixed_by_name(self):
        space = Box([0, 0, 0], [1, 2, 3], names=("x", "y", "z"))
        study = Study(space, GaBO(), seed=0).run(lambda x, y, z: (x - 0.5) ** 2 + y + z, 7, progress=False)
        found = study.ask(fixed={"y": 1.5}).parameters
        assert found["y"] == 1.5
        assert space.names == tuple(found)
        inside = Product(Sphere(2), Integer(0, 3))
        both = Product(where=space, how=inside)
        trial = Study(both, RandomSearch(), seed=0).ask(fixed={"where": {"z": 2}})
        assert trial.parameters["where"]["z"] == 2

    @pytest.mark.parametrize("metric", ["auto", "diagonal"])
    def test_the_search_knows_what_is_fixed(self, metric):
        """The best b differs from the best one of all, because a is not free; before, it was found for a free a."""
        space = Product(a=Box(0, 1), b=Box([0, 0], [1, 1]), tool=Choice("soft", "hard"))
        study = Study(space, GaBO(metric=metric), seed=0)
        points = space.random(24, rng=torch.Generator().manual_seed(0))
        for x in points:
            a, b, _ = space.split(x)
            study.add(x, float((a[0] - b[0]) ** 2 + (b[1] - a[0]) ** 2 + 0.1 * a[0]))
        found = study.ask(fixed={"a": 0.9}).parameters
        assert found["a"] == 0.9
        assert min(found["b"]) > 0.6

    def test_constraints_hold_as_well(self):
        study = Study(SPACE, GaBO(), seed=0, constraints=lambda x: 30 - x[3] - 4 * x[4])
        study.run(cost, 6, progress=False, on_error="raise")
        trial = study.ask(fixed={"passes": 7})
        assert trial.parameters["passes"] == 7
        assert trial.parameters["force"] <= 2

    @pytest.mark.parametrize(
        ("fixed", "message"),
        [
            ({"tol": "soft"}, "There is no parameter 'tol'.*Did you mean 'tool'"),
            ({"tool": "sft"}, "tool: 'sft' is not one of"),
            ({"force": 50}, "force: 50 is above 40"),
            (GOOD, "fixed leaves no parameter to choose"),
        ],
    )
    def test_mistakes_are_refused(self, fixed, message):
        with pytest.raises(ArgumentError, match=message):
            Study(SPACE, RandomSearch(), seed=0).ask(fixed=fixed)

    def test_something_else_than_a_dict_is_refused(self):
        with pytest.raises(ArgumentError, match=r'fixed is a dict such as \{"direction": …\}, got .soft.'):
            Study(SPACE).ask(fixed="soft")

    def test_a_space_without_names_has_nothing_to_fix(self):
        with pytest.raises(ArgumentError, match="fixed by name, and Sphere"):
            Study(Sphere(2), RandomSearch(), seed=0).ask(fixed={"x": 1})


def test_a_parameter_of_one_choice_only_is_refused_with_a_way_out():
    with pytest.raises(ArgumentError, match="exists for one choice only is not supported"):
        Choice("soft", Box(0, 1))
    with pytest.raises(ArgumentError, match=r"force: every parameter has a value .* got None"):
        SPACE.point(GOOD | {"force": None})


class TestCommand:
    """What the command prints, and takes, by name."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

    @staticmethod
    def said(*arguments, code=0):
        result = CliRunner(env={"COLUMNS": "200"}).invoke(app, list(arguments), prog_name="nestbo")
        assert result.exit_code == code, result.output
        return result.output

    def test_it_speaks_names(self):
        self.said("new", "s.db", "--space", SPACE.specification, "--strategy", "randomsearch")
        trial = json.loads(self.said("ask", "s.db", "--fix", "tool=hard", "--fix", "passes=3"))
        assert (trial["parameters"]["tool"], trial["parameters"]["passes"]) == ("hard", 3)
        self.said("tell", "s.db", "0", "1.5")
        self.said("add", "s.db", "--x", json.dumps(GOOD), "--value", "0.5")
        self.said("add", "s.db", "--json", json.dumps({"parameters": GOOD | {"force": 3}, "value": 0.7}))
        assert "force: 41 is above 40" in self.said(
            "add", "s.db", "--x", json.dumps(GOOD | {"force": 41}), "--value", "1", code=2
        )
        assert "There is no parameter 'tol'" in self.said("ask", "s.db", "--fix", "tol=1", code=2)
        header, first, *_ = csv.reader(self.said("export", "s.db").splitlines())
        assert header[6:] == ["direction_0", "direction_1", "direction_2", "force", "passes", "tool"]
        assert first[-2:] == ["3", "hard"]
        assert json.loads(self.said("best", "s.db", "--json"))["parameters"]["tool"] == "soft"
        assert "tool soft" in self.said("show", "s.db")

    def test_an_objective_in_a_file_takes_names(self):
        Path("f.py").write_text(
            "def cost(direction, force, passes, tool):\n    print(tool)\n    return force + passes\n"
        )
        arguments = ("--space", SPACE.specification, "--strategy", "randomsearch", "--budget", "3")
        assert "at     {" in self.said("run", "f.py:cost", *arguments)
