"""The first page says what the raw results say, and the project's files agree with each other."""

import importlib.util
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import nestbo
from nestbo.experiment.comparison import contests
from nestbo.experiment.results import results
from nestbo.experiment.suites import SUITES
from nestbo.experiment.summary import BEHIND, LEVEL, LOWEST, judged, standings

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def raw():
    """The results behind the picture, by the key of the problem and the label of the method."""
    spec = importlib.util.spec_from_file_location("first_page", ROOT / "benchmarks" / "first_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {task.key: methods for task, methods in module.found().items()}


def compared(name, labels=None):
    """The results of a suite at the end, of all methods or of some."""
    found = judged(results([RESULTS / "evidence", RESULTS / "paper"], SUITES[name]))
    chosen = lambda methods: {label: one for label, one in methods.items() if labels is None or label in labels}
    return {task: chosen(methods) for task, methods in found.items()}


def row(words):
    """The numbers in the row of the table that begins with these words."""
    (line,) = (line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if words in line)
    return [int(cell) for cell in line.split("|")[2:-1]]


def counted(found):
    """Problems, evaluations, and how often HD-GaBO has the lowest median, is level, or is behind."""
    verdicts = Counter(one.verdict for one in standings(found, "hdgabo-auto").values())
    (evaluations,) = {methods["hdgabo-auto"].best.shape[1] for methods in found.values()}
    return [len(found), evaluations, verdicts[LOWEST], verdicts[LEVEL], verdicts[BEHIND]]


QUICK = ("cma-es", "tpe", "powell", "nelder-mead", "gabo", "random", "hdgabo-auto")
SLOW = ("botorch", "saas", "turbo", "rpm", "optuna-gp")


def test_the_table_beside_the_methods_of_the_paper():
    assert row("| the methods of the [HD-GaBO paper]") == counted(compared("paper"))


def test_the_table_on_problems_that_nobody_tuned_on():
    found = compared("held-out", QUICK)
    assert {len(one.seeds) for methods in found.values() for one in methods.values()} == {10}
    assert row("on problems that nobody tuned on") == counted(found)
    (lost,) = (task.key for task, one in standings(found, "hdgabo-auto").items() if one.verdict == BEHIND)
    assert lost == "phases-torus-30"


def test_the_table_beside_what_people_use():
    found = compared("rivals-205")
    problems, _, *verdicts = counted(found)
    assert row("| the same, BoTorch, MAP-SAAS, TuRBO") == [problems, 205, *verdicts]
    assert set(SLOW) <= {label for methods in found.values() for label in methods}


def test_pairs_of_trials_beside_slow_rivals():
    made = {one.label: f"{one.lower} of {one.pairs}" for one in contests(compared("rivals-205"), "hdgabo-auto")}
    words = "{} beside BoTorch, {} beside MAP-SAAS, {} beside TuRBO. "
    words += "Beside RPM-BO it does in {}, beside Optuna's GP sampler in {}."
    assert words.format(*(made[label] for label in SLOW)) in README


def lower_than_ours(found):
    """Rivals with a lower median than HD-GaBO, to two digits behind the point, and that median."""
    ends = {label: round(float(np.median(one.best[:, -1])), 2) for label, one in found.items() if label != "oracle"}
    return {label: end for label, end in ends.items() if end < ends["hdgabo-auto"]}


def test_problems_where_rivals_are_ahead():
    ahead = {task.key: lower_than_ours(methods) for task, methods in compared("rivals-205").items()}
    valleys = ahead.pop("michalewicz-sphere-30")
    assert not any(ahead.values())
    low, high = min(valleys.values()), max(valleys.values())
    assert f"six rivals have lower medians ({low:.2f} to {high:.2f}) than HD-GaBO (1.76)" in README
    assert len(valleys) == 6
    early = {task.key: lower_than_ours(methods) for task, methods in compared("rivals").items()}
    assert {key for key, found in early.items() if found} == {"michalewicz-sphere-30", "product-of-sines-spd-10"}
    assert len(early["product-of-sines-spd-10"]) == 2


def test_the_picture_has_as_many_trials_as_its_caption_says(raw):
    wanted = dict.fromkeys(("hdgabo-auto", "hdgabo-paper-lbfgs", "gabo", "random", "bo", "rembo"), (30, 305))
    wanted |= dict.fromkeys(("cma-es", "tpe", "powell", "nelder-mead"), (10, 205))
    for key in ("ackley-sphere-50", "rosenbrock-sphere-50", "rosenbrock-spd-10"):
        shown = {label: one.best.shape for label, one in raw[key].items()}
        assert shown == {label: wanted[label] for label in shown}
    assert set(raw["ackley-sphere-50"]) == set(wanted)
    middle = float(np.median(raw["rosenbrock-sphere-50"]["hdgabo-auto"].best[:, -1]))
    assert f"In the middle, HD-GaBO ends at {middle:.2f}" in README


def test_files_of_the_project_name_this_version():
    assert f"nestbo-{nestbo.__version__}-py3-none-any.whl" in README
    assert re.search(rf"^version: {re.escape(nestbo.__version__)}$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
