"""The gallery: examples are complete, say what they need, run, and can be copied."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import nestbo as nb
from nestbo.cli import app
from nestbo.gallery import CATALOGUE, copy, draw, entry, load, needs
from nestbo.gallery.catalogue import MODULES, folder

ROOT = Path(__file__).parent.parent
ALWAYS = {"printing"}  # the others behind --full


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
