"""What a notebook shows: tables, pictures, one line of progress; and notebooks that run."""

import re
import sys
import types
from pathlib import Path

import pytest
import torch

import nestbo as nb
from nestbo.progress import Inline, reporter

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.ipynb"))


def bowl(x):
    return float(1 - x[0])


@pytest.fixture(scope="module")
def study():
    made = nb.Study(nb.Sphere(2), nb.RandomSearch(), seed=0).run(bowl, 4, progress=False)
    made.tell(made.ask(), failed="<b>stuck</b>", note="by & by")
    made.correct(0, 5.0)
    made.discard(1)
    made.ask()
    return made


class TestTables:
    def test_a_study_shows_its_state_and_its_best_point(self, study):
        html = study._repr_html_()
        assert "Sphere(2)" in html
        assert "4 finished, 1 pending, 1 discarded" in html
        assert f"{study.best.value:.6g} (trial {study.best.index})" in html
        assert "&lt;b&gt;stuck&lt;/b&gt;" in html
        assert "by &amp; by" in html
        assert "line-through" in html
        assert html.count('src="data:image/png;base64,') == 1

    def test_a_study_without_values_and_one_of_several_objectives(self):
        assert "none yet" in nb.Study(nb.Sphere(2))._repr_html_()
        several = nb.Study(nb.Sphere(2), nb.RandomSearch(), objectives=("height", "width"))
        several.run(lambda x: (float(x[0]), float(x[1])), 3, progress=False)
        assert "trials</td>" in several._repr_html_()
        assert re.search(r"-?0\.\d+, -?0\.\d+", several[0]._repr_html_())

    def test_a_trial(self, study):
        assert "corrected" in study[0]._repr_html_()
        assert "5" in study[0]._repr_html_()
        assert "stuck" in study[4]._repr_html_()
        long = nb.Trial(0, torch.zeros(50))
        assert "…" in long._repr_html_()

    @pytest.mark.parametrize("space", [nb.Sphere(2), nb.Product(nb.SPD(2), nb.Box(0, 1)), nb.Torus(2)], ids=str)
    def test_a_space(self, space):
        html = space._repr_html_()
        assert space.specification in html
        assert f"<td>{space.dim}</td>" in html

    def test_a_result(self):
        result = nb.minimize(bowl, nb.Sphere(2), budget=3, strategy=nb.RandomSearch())
        html = result._repr_html_()
        assert "The budget of 3 is used up." in html
        assert "data:image/png" in html


def test_pictures_show_themselves(study):
    assert nb.plots.draw(study)._repr_png_().startswith(b"\x89PNG")


def test_a_study_is_a_sequence_of_trials(study):
    assert len(study) == 6
    assert [trial.index for trial in study] == list(range(6))
    assert study[-1].status == "asked"
    assert [trial.index for trial in study[1:3]] == [1, 2]
    assert nb.Study(nb.Sphere(2))  # not empty, though it has no trials


class TestFrame:
    def test_columns_and_rows(self, study):
        pytest.importorskip("pandas")
        frame = study.to_dataframe()
        assert list(frame.columns) == ["status", "value", "x0", "x1", "x2", "failed", "note", "asked_at", "told_at"]
        assert list(frame.status) == ["told", "discarded", "told", "told", "failed", "asked"]
        assert frame.loc[0, "value"] == 5.0
        assert frame.loc[2, "x1"] == study[2].x[1].item()
        assert frame.loc[4, "note"] == "by & by"

    def test_several_values_and_constraints(self):
        pytest.importorskip("pandas")
        study = nb.Study(nb.Torus(2), nb.RandomSearch(), objectives=("height", "width"))
        study.run(lambda x: nb.Observation((1.0, 2.0), constraints=[0.5]), 2, progress=False)
        frame = study.to_dataframe()
        assert frame[["height", "width", "constraint0"]].to_numpy().tolist() == [[1.0, 2.0, 0.5]] * 2
        assert nb.Study(nb.Sphere(2)).to_dataframe().empty

    def test_parameters_with_names(self):
        pytest.importorskip("pandas")
        space = nb.Product(tool=nb.Choice("soft", "hard"), angle=nb.Sphere(1), force=nb.Box(0, 1))
        study = nb.Study(space, nb.RandomSearch()).run(lambda tool, angle, force: force, 2, progress=False)
        frame = study.to_dataframe()
        assert list(frame.columns)[:6] == ["status", "value", "tool", "angle_0", "angle_1", "force"]
        assert list(frame.value) == list(frame.force)
        assert "tool" in study[0]._repr_html_()

    def test_without_pandas_it_says_what_to_install(self, study, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(nb.NestboError, match="pip install pandas"):
            study.to_dataframe()


class FakeDisplay(types.ModuleType):
    """What IPython shows, in a list."""

    def __init__(self):
        super().__init__("IPython.display")
        self.shown = []
        self.HTML = str

    def display(self, html, display_id):
        assert display_id
        self.shown.append(html)
        return types.SimpleNamespace(update=lambda html: self.shown.__setitem__(-1, html))


@pytest.fixture
def display(monkeypatch):
    fake, ipython = FakeDisplay(), types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    ipython.display = fake
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    return fake


def test_progress_is_one_line_in_a_notebook(display):
    assert isinstance(reporter(True), Inline)
    study = nb.Study(nb.Sphere(2), nb.RandomSearch()).run(bowl, 5)
    (line,) = display.shown
    assert 'value="5"' in line
    assert f"5/5 best {study.best.value:.6g} (trial {study.best.index})" in line


def test_an_interrupted_run_says_so_in_the_line(display):
    def interrupt(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nb.Study(nb.Sphere(2), nb.RandomSearch()).run(interrupt, 5)
    assert "interrupted, everything told is kept" in display.shown[-1]


def outputs(book):
    """The kinds of what cells show, and whether a picture came without asking for pyplot."""
    return [sorted(output.get("data", {})) for cell in book.cells for output in cell.get("outputs", ())]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_run_and_show_what_they_showed(path, tmp_path, request, monkeypatch):
    """The first one always, the others in a full run."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    if path.stem != "first_study" and not request.config.getoption("--full"):
        pytest.skip("a long one; --full runs it")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    stored, book = (nbformat.read(path, 4) for _ in range(2))
    nbformat.validate(stored)
    nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert outputs(book) == outputs(stored)
    assert any("image/png" in kinds for kinds in outputs(book))
    assert not any("%matplotlib" in cell.source and cell.cell_type == "code" for cell in book.cells)
