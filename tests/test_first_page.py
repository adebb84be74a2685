"""The first page says what the raw results say, and the project's files agree with each other."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import nestbo

ROOT = Path(__file__).parent.parent
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def raw():
    """The results behind the picture, by the key of the problem and the label of the method."""
    spec = importlib.util.spec_from_file_location("first_page", ROOT / "benchmarks" / "first_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {task.key: methods for task, methods in module.found().items()}


def share_below(one):
    """Per cent of the trials that end below 0.1."""
    return round(100 * (one.best[:, -1] < 0.1).mean())


def test_shares_of_the_first_page_are_those_of_the_files(raw):
    ackley = raw["ackley-sphere-50"]
    labels = {"hdgabo": "87 % of its trials", "gabo": "50 % for GaBO", "hdgabo-paper-lbfgs": "33 % for HD-GaBO as"}
    for label, words in labels.items():
        assert words.startswith(f"{share_below(ackley[label])} %")
        assert words in README
    assert [share_below(ackley[label]) for label in ("cma-es", "powell", "nelder-mead")] == [0, 0, 0]


def test_medians_of_the_first_page_are_those_of_the_files(raw):
    assert f"{np.median(raw['rosenbrock-sphere-70']['hdgabo'].best[:, -1]):.1f} for 0.1 (30 trials)" in README


def test_the_picture_has_as_many_trials_as_its_caption_says(raw):
    wanted = {"hdgabo": (30, 305), "gabo": (30, 305), "random": (30, 305), "bo": (10, 305), "rembo": (10, 305)}
    wanted |= dict.fromkeys(("cma-es", "powell", "nelder-mead"), (10, 105))
    for key in ("ackley-sphere-50", "rosenbrock-sphere-50", "rosenbrock-spd-10"):
        shown = {label: one.best.shape for label, one in raw[key].items() if label in wanted}
        assert shown == {label: wanted[label] for label in shown}
    assert set(raw["ackley-sphere-50"]) >= set(wanted)


def test_files_of_the_project_name_this_version():
    assert f"nestbo-{nestbo.__version__}-py3-none-any.whl" in README
    assert re.search(rf"^version: {re.escape(nestbo.__version__)}$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
