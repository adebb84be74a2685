"""The first page says what the raw results say, and the project's files agree with each other."""

import importlib.util
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import nestbo
from nestbo.experiment.results import records, results, series
from nestbo.experiment.suites import SUITES
from nestbo.experiment.summary import BEHIND, LEVEL, LOWEST, judged, standings
from nestbo.experiment.tasks import PAPER

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


def share_below(one):
    """Per cent of the trials that end below 0.1."""
    return round(100 * (one.best[:, -1] < 0.1).mean())


def test_shares_of_the_first_page_are_those_of_the_files(raw):
    ackley = raw["ackley-sphere-50"]
    labels = {"hdgabo-auto": "90 % of the trials of HD-GaBO", "gabo": "50 % for GaBO", "hdgabo-paper-lbfgs": "33 % for"}
    for label, words in labels.items():
        assert words.startswith(f"{share_below(ackley[label])} %")
        assert words in README
    assert [share_below(ackley[label]) for label in ("cma-es", "tpe", "powell", "nelder-mead")] == [0] * 4


def medians(name):
    """Those of all methods that came to the end, by the problems of a suite and by label."""
    suite = SUITES[name]
    found = results([RESULTS / "evidence", RESULTS / "paper"], suite)
    assert len(found) == 8
    complete = lambda methods: {label: one for label, one in methods.items() if one.best.shape[1] == suite.budget}
    return {
        task.key: {label: np.median(one.best[:, -1]) for label, one in complete(methods).items()}
        for task, methods in found.items()
    }


def lower_than_ours(name, labels):
    """Problems of a suite, and rivals whose median there is lower than that of HD-GaBO."""
    ends = medians(name)
    pairs = [(key, label) for key in ends for label in labels if label in ends[key]]
    return {(key, label) for key, label in pairs if round(ends[key][label], 2) < round(ends[key]["hdgabo-auto"], 2)}


def test_rivals_that_the_first_page_names_are_lower_where_it_says():
    rivals = ("cma-es", "tpe", "optuna-gp", "turbo", "turbo-tangent", "powell", "nelder-mead", "botorch", "saas")
    valleys = "michalewicz-sphere-30"
    named = ("optuna-gp", "tpe", "cma-es", "saas", "turbo")
    ahead = {(valleys, label) for label in named}
    assert lower_than_ours("rivals-205", rivals) == ahead
    ends = {label: f"{median:.2f}" for label, median in medians("rivals-205")[valleys].items()}
    assert f"HD-GaBO has a median of {ends['hdgabo-auto']} after 205 evaluations" in README
    words = "Optuna's GP sampler ({}), TPE ({}), CMA-ES ({}), MAP-SAAS ({}) and TuRBO ({}) have lower ones"
    assert words.format(*(ends[label] for label in named)) in README
    assert "and BoTorch has the same" in README
    assert ends["botorch"] == ends["hdgabo-auto"]
    sines = ("product-of-sines-spd-10", "turbo-tangent"), ("product-of-sines-spd-10", "optuna-gp")
    assert lower_than_ours("rivals", rivals) == {*ahead, *sines}
    early = medians("rivals")["product-of-sines-spd-10"]
    tangent, sampler, ours = (f"{early[label]:.0f}" for label in ("turbo-tangent", "optuna-gp", "hdgabo-auto"))
    assert f"({tangent} and {sampler} against {ours})" in README


def test_rivals_have_the_trials_that_the_first_page_says():
    found = results([RESULTS / "evidence"], SUITES["rivals-205"])
    few, many = ("botorch", "saas", "turbo", "optuna-gp"), ("cma-es", "tpe", "powell", "nelder-mead")
    counted = Counter(len(methods[label].seeds) for methods in found.values() for label in few)
    assert counted == {5: 29, 10: 2, 4: 1}
    assert {len(methods[label].seeds) for methods in found.values() for label in many} == {10}
    assert {methods[label].best.shape[1] for methods in found.values() for label in few + many} == {105, 205}


def test_held_out_problems_stand_as_the_first_page_says():
    """Among the methods that have ten trials of each problem."""
    labels = ("cma-es", "tpe", "powell", "nelder-mead", "gabo", "random", "hdgabo-auto")
    found = judged(results([RESULTS / "evidence"], SUITES["held-out"]))
    named = {task: {label: methods[label] for label in labels} for task, methods in found.items()}
    assert {len(one.seeds) for methods in named.values() for one in methods.values()} == {10}
    made = {task.key: one.verdict for task, one in standings(named, "hdgabo-auto").items()}
    assert Counter(made.values()) == {LOWEST: 13, LEVEL: 5, BEHIND: 1}
    assert made["phases-torus-30"] == BEHIND
    assert (
        "HD-GaBO has the lowest median on thirteen. By paired tests, it is level with the best of them on five"
        in README
    )


def test_wins_of_the_first_page_are_those_of_the_files():
    """Of all methods that ran on the paper's problems, but for the oracle, which is told the answer."""
    medians = {}
    for place in (RESULTS / "paper", *sorted((RESULTS / "evidence").glob("*.zip"))):
        for _, record in records(place):
            if record.task in PAPER and record.label in SUITES["paper"].methods and record.label != "oracle":
                medians.setdefault(record.task, {}).setdefault(record.label, []).append(record)
    lowest = [min(found, key=lambda label: np.median(series(found[label]).best[:, -1])) for found in medians.values()]
    assert (len(lowest), lowest.count("hdgabo-auto"), lowest.count("hdgabo-nested")) == (12, 11, 1)
    assert "the lowest median on eleven. On the twelfth, nestbo 0.1 is level" in README


def test_the_picture_has_as_many_trials_as_its_caption_says(raw):
    wanted = dict.fromkeys(("hdgabo-auto", "hdgabo-paper-lbfgs", "gabo", "random", "bo", "rembo"), (30, 305))
    wanted |= dict.fromkeys(("cma-es", "tpe", "powell", "nelder-mead"), (10, 205))
    for key in ("ackley-sphere-50", "rosenbrock-sphere-50", "rosenbrock-spd-10"):
        shown = {label: one.best.shape for label, one in raw[key].items()}
        assert shown == {label: wanted[label] for label in shown}
    assert set(raw["ackley-sphere-50"]) == set(wanted)


def test_files_of_the_project_name_this_version():
    assert f"nestbo-{nestbo.__version__}-py3-none-any.whl" in README
    assert re.search(rf"^version: {re.escape(nestbo.__version__)}$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
