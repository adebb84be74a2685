"""The gallery: examples are complete, say what they need, run, and can be copied."""

import ast
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import nestbo as nb
from nestbo.cli import app
from nestbo.experiment import applications, main
from nestbo.experiment.applications import METHODS, Evaluations, InCoordinates, OnSpace, Run, SpentError
from nestbo.experiment.applications.evaluations import summary
from nestbo.experiment.applications.tables import Row, compared, read, table
from nestbo.gallery import CATALOGUE, Application, Coordinates, copy, draw, entry, load, needs
from nestbo.gallery.catalogue import MODULES, folder

ROOT = Path(__file__).parent.parent
ALWAYS = {"printing", "neighbours"}  # the others behind --full


def application(name, request):
    if name not in ALWAYS and not request.config.getoption("--full"):
        pytest.skip("takes long: --full")
    if entry(name).missing:
        pytest.skip(f"needs {', '.join(entry(name).missing)}")
    return load(name)


class TestCatalogue:
    def test_every_file_of_the_folder_belongs_to_an_example(self):
        named = {file for one in CATALOGUE.values() for file in one.files}
        assert {path.name for path in folder().glob("*.py")} == named

    @pytest.mark.parametrize("file", sorted({file for one in CATALOGUE.values() for file in one.files}))
    def test_files_are_short(self, file):
        assert len((folder() / file).read_text().splitlines()) <= 150

    @pytest.mark.parametrize("name", CATALOGUE)
    def test_the_file_names_the_packages_that_it_imports(self, name):
        """Those of the catalogue, and it imports nothing else that nestbo does not bring."""
        used, said = set(), set()
        for file in entry(name).files:
            for node in ast.walk(ast.parse((folder() / file).read_text())):
                if isinstance(node, ast.Import):
                    used |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    used.add(node.module.split(".")[0])
                elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "needs":
                    said |= {argument.value for argument in node.args}
        brought = {"nestbo", "numpy", "scipy", "torch", "matplotlib", *entry(name).helpers, *sys.stdlib_module_names}
        assert said == set(entry(name).packages)
        assert used - brought <= {MODULES[package] for package in said}

    @pytest.mark.parametrize("name", CATALOGUE)
    def test_the_file_begins_with_the_problem(self, name):
        said = ast.get_docstring(ast.parse((folder() / f"{name}.py").read_text()))
        assert len(said.split("\n\n")) >= 3  # a title, the problem, the space
        assert "space" in said

    def test_packages_have_lower_bounds_in_the_extra(self):
        text = (ROOT / "pyproject.toml").read_text()
        extra = text[text.index("gallery = [") :].split("]")[0]
        assert [package for package in MODULES if f'"{package}>=' not in extra] == []

    def test_a_missing_package_is_named(self):
        with pytest.raises(ModuleNotFoundError, match="pip install rdkit tblite"), needs("rdkit", "tblite"):
            import a_package_that_nobody_has  # noqa: F401

    def test_an_unknown_example_is_refused(self):
        with pytest.raises(nb.SpecificationError, match="Did you mean 'burner'"):
            load("burnr")


class TestApplications:
    @pytest.mark.parametrize("name", CATALOGUE)
    def test_runs_and_is_drawn(self, name, request):
        found = application(name, request)
        assert found.name == name
        study = nb.Study(found.space, seed=0, **found.settings())
        study.run(found.objective, 6, progress=False, numpy=True, on_error="raise")
        assert len(draw(found, study).axes) >= 2

    @pytest.mark.parametrize("name", CATALOGUE)
    def test_coordinates_give_points_of_the_space(self, name, request):
        found, rng = application(name, request), np.random.default_rng(0)
        assert len(found.coordinates) >= 2
        for coordinates in found.coordinates:
            for unit in (np.zeros(coordinates.size) + 1e-9, *rng.uniform(size=(5, coordinates.size))):
                found.space.check(torch.from_numpy(coordinates.point(unit)))


class TestCommand:
    def test_lists_all(self):
        shown = CliRunner().invoke(app, ["example"])
        assert shown.exit_code == 0
        assert [name for name in CATALOGUE if name not in shown.output] == []

    def test_copies_one(self, tmp_path):
        done = CliRunner().invoke(app, ["example", "molecule", "--to", str(tmp_path / "mine")])
        assert done.exit_code == 0
        assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == ["chemistry.py", "molecule.py"]

    def test_leaves_files_that_are_there(self, tmp_path):
        (tmp_path / "burner.py").write_text("mine")
        with pytest.raises(nb.ArgumentError, match="exists already"):
            copy("burner", tmp_path)
        assert (tmp_path / "burner.py").read_text() == "mine"

    def test_examples_with_a_common_helper_share_a_folder(self, tmp_path):
        copied = [path.name for name in ("water", "molecule") for path in copy(name, tmp_path)]
        assert copied == ["water.py", "placement.py", "chemistry.py", "molecule.py", "chemistry.py"]
        (tmp_path / "chemistry.py").write_text("mine")
        with pytest.raises(nb.ArgumentError, match="another file"):
            copy("basepair", tmp_path)
        assert not (tmp_path / "basepair.py").exists()


class Sketch:
    """An application without packages: the height of a direction, failing in the south, noisy or constrained."""

    def __new__(cls, name="printing", **options):
        polar = Coordinates("polar", [0.0, -np.pi], [np.pi, np.pi], cls.polar)
        vectors = Coordinates("vectors", [-1.0] * 3, [1.0] * 3, lambda u: u / np.linalg.norm(u))
        given = {"objective": lambda x: float((x[0] - 0.6) ** 2 + x[1] ** 2)} | options
        return Application(
            name, "m", nb.Sphere(2), picture=None, coordinates=[polar, vectors], budget=14, worst=9.0, **given
        )

    @staticmethod
    def polar(u):
        return np.array([np.sin(u[0]) * np.cos(u[1]), np.sin(u[0]) * np.sin(u[1]), np.cos(u[0])])


class TestEvaluations:
    def test_the_budget_ends_a_method(self):
        made = Evaluations(Sketch(), 2)
        for _ in range(2):
            made.observe(np.array([1.0, 0, 0]))
        with pytest.raises(SpentError):
            made.observe(np.array([1.0, 0, 0]))

    def test_time_ends_a_method(self):
        with pytest.raises(SpentError):
            Evaluations(Sketch(), 2, deadline=1.0, clock=lambda: 2.0).observe(np.array([1.0, 0, 0]))

    def test_failures_and_violations_are_the_worst_for_methods_that_know_neither(self):
        def objective(x):
            if x[2] > 0:
                raise ArithmeticError
            return nb.Observation(1.0, constraints=[x[0], -0.5])

        made = Evaluations(Sketch(objective=objective), 5)
        assert made.told(np.array([0, 0, 1.0])) == 9.0
        assert made.told(np.array([-1.0, 0, 0])) == 9.0 + 1.0 + 0.5
        assert np.isnan(made.values).all()
        assert made.best is None

    def test_a_run_survives_its_file(self, tmp_path):
        made = Evaluations(Sketch(truth=lambda x: 7.0), 3)
        for z in (0.6, np.nan, 0.1):
            made.observe(np.array([z, 0.0, 0.0]))
        run = summary(made, "random", "manifold", seed=3, seconds=1.0)
        assert (run.chosen, run.reached, run.complete) == (0, 7.0, True)
        run.write(tmp_path / "run.json")
        assert Run.read(tmp_path / "run.json") == run


class TestRivals:
    @pytest.mark.parametrize("name", METHODS)
    def test_uses_the_budget(self, name):
        method, made = METHODS[name], Evaluations(Sketch(), 11 if name == "botorch" else 6)
        for package in {"cma": ["cma"], "tpe": ["optuna"]}.get(name, []):
            pytest.importorskip(package)
        if isinstance(method, OnSpace):
            chosen = method.run(made, seed=1)
        else:
            chosen = method.run(made, made.application.coordinates[0], seed=1)
        assert (chosen is None) == isinstance(method, InCoordinates)
        assert len(made.values) == made.budget


class TestSuite:
    def test_cells(self):
        found = applications.cells("peg,gust", "nestbo,cma", range(2))
        assert len({cell.name for cell in found}) == len(found) == 2 * 2 * 3
        assert found[0].name == "peg__nestbo__manifold__0.json"
        with pytest.raises(nb.SpecificationError, match="Wanted an application"):
            applications.cells("pge", "all", range(1))

    def test_runs_goes_on_and_makes_a_table(self, tmp_path, capsys):
        if entry("printing").missing:
            pytest.skip("needs trimesh")
        command = ["run", "--suite", "applications", "--problems", "printing", "--methods", "random", "--budget", "3"]
        for _ in range(2):
            main([*command, "--trials", "1", "--out", str(tmp_path)])
        assert "0 of 1 runs" in capsys.readouterr().out
        main(["table", str(tmp_path), "--suite", "applications"])
        assert "| random search | manifold |" in capsys.readouterr().out

    def test_a_table_compares_seed_by_seed(self):
        ours = Row("nestbo", "manifold", tuple(self.run("nestbo", seed, 0.1 * seed) for seed in range(8)))
        worse = Row("random", "manifold", tuple(self.run("random", seed, 1 + 0.1 * seed) for seed in range(8)))
        assert compared(ours, worse).startswith("better")
        assert compared(worse, ours).startswith("worse")
        assert compared(ours, ours) == "level"
        assert compared(ours, Row("random", "manifold", worse.runs[:5])) == ""  # five seeds prove nothing
        assert "| 8 of 8 |" not in "".join(table([ours, worse])[3:])

    def test_a_run_that_is_there_twice_counts_once_and_the_first_place_leads(self, tmp_path):
        for place, reached in (("new", 1.0), ("former", 2.0)):
            (tmp_path / place).mkdir()
            self.run("nestbo", 3, reached).write(tmp_path / place / "a.json")
        assert [run.reached for run in read([tmp_path / "new", tmp_path / "former"])] == [1.0]

    @staticmethod
    def run(method, seed, reached):
        return Run("peg", method, "manifold", seed, 1, (reached,), 0, reached, 0.1, 0.1)


class TestPages:
    @pytest.mark.parametrize("name", CATALOGUE)
    def test_every_example_has_a_page_with_its_picture_and_its_own_code(self, name):
        page = (ROOT / "docs" / "gallery" / f"{name}.md").read_text()
        assert f"](pictures/{name}.png)" in page
        code = page.split("```python\n")[1].split("```")[0]
        own = (folder() / f"{name}.py").read_text().split('if __name__ == "__main__":\n')[1]
        assert code == textwrap.dedent(own)

    def test_the_gallery_page_shows_all(self):
        page = (ROOT / "docs" / "gallery" / "index.md").read_text()
        assert [name for name in CATALOGUE if f"](pictures/{name}-small.png)]({name}.md)" not in page] == []
        licences = page[page.index("## Licences") :]
        packages = {"scikit-learn": "scikit-learn", "rdkit": "RDKit", "mujoco": "MuJoCo", "rtree": "Rtree"}
        shown = [packages.get(package, package) for package in MODULES]
        assert [name for name in shown if f"[{name}]".lower() not in licences.lower()] == []

    def test_pictures_are_small(self):
        pictures = list((ROOT / "docs" / "gallery" / "pictures").glob("*.png"))
        assert [picture.name for picture in pictures if picture.stat().st_size > 100_000] == []
