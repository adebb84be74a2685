"""Statistics over trials and over problems, against values from textbooks and by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import friedmanchisquare

from nestbo import ArgumentError
from nestbo.experiment import SUITES, Task, main, run
from nestbo.experiment.comparison import (
    Contest,
    common,
    contests,
    critical_difference,
    fewest,
    performance,
    profiles,
    ranks,
    ratios,
    solved,
)
from nestbo.experiment.evidence import PARTS, Part, cells, make, paces, set_aside
from nestbo.experiment.figures import profile
from nestbo.experiment.results import Record, Series, collect, records
from nestbo.experiment.statistics import holm, interval, parted, rows, wilson
from nestbo.experiment.summary import BETTER, complete, hero, judged, overview, standings, summary

TASKS = [Task("ackley", f"sphere:{n}") for n in range(2, 12)]


def series(end, n=20):
    """Trials that fall from 1 to their end, evenly in the logarithm, after five evaluations at 1."""
    end = np.asarray(end, dtype=float)
    share = np.r_[np.zeros(5), np.linspace(0, 1, n - 5)]
    return Series(tuple(range(len(end))), end[:, None] ** share, 0.5, ("cpu",))


def noisy(scale, seed, trials=30):
    return series(scale * np.random.default_rng(seed).lognormal(sigma=0.3, size=trials))


class TestOneProblem:
    def test_holm_as_in_his_paper(self):
        """The example of most textbooks: 0.01, 0.04, 0.03, 0.005 become 0.03, 0.06, 0.06, 0.02."""
        assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
        assert holm([]) == []
        assert holm([0.7, 0.9]) == [1.0, 1.0]

    def test_wilson(self):
        """Agresti and Coull (1998): 0 of 10 gives an upper bound of z²/(n + z²)."""
        z = 1.959963984540054
        assert wilson(0, 10) == pytest.approx((0.0, z**2 / (10 + z**2)), abs=1e-12)
        assert wilson(8, 10) == pytest.approx((0.4901625, 0.9433178), abs=1e-6)

    def test_the_interval_of_a_median_is_scipys(self):
        low, high = interval(np.arange(10.0))
        assert (low, high) == (2.0, 7.0)
        assert interval(np.array([3.0])) == (3.0, 3.0)

    def test_two_clusters_are_found_where_they_are(self):
        found = parted(np.r_[np.full(12, 1e-3), np.full(18, 1.65)])
        assert found.share == pytest.approx(0.4)
        assert found.between == pytest.approx(math.sqrt(1e-3 * 1.65))
        assert found.likely == pytest.approx(wilson(12, 30))

    def test_one_cluster_outliers_and_few_trials_are_no_two(self):
        assert parted(np.random.default_rng(0).lognormal(size=30)) is None
        assert parted(np.r_[np.full(28, 1.0), 1e-6, 1e-6]) is None
        assert parted(np.array([1e-6, 1e-6, 1, 1])) is None

    def test_rows_are_corrected_for_their_number(self):
        methods = {"a": noisy(1e-3, 0, 8), "b": noisy(1e-1, 1, 8), "c": noisy(1.0, 2, 8)}
        made = {row.label: row for row in rows(methods, 0.5)}
        assert made["a"].p is None
        assert made["b"].p == made["c"].p == pytest.approx(2 * 2 / 2**8)
        assert made["a"].likely == wilson(8, 8)


def wins_of_one(problems, trials):
    """Of a hero that is better in all pairs of the first problem, and the same on all others."""
    same = {"hero": series(np.full(trials, 0.1)), "b": series(np.full(trials, 0.1))}
    better = {"hero": noisy(1e-3, 0, trials), "b": noisy(1.0, 1, trials)}
    found = {Task("ackley", f"sphere:{n + 2}"): same if n else better for n in range(problems)}
    (one,) = contests(found, "hero")
    return one.wins


class TestContests:
    def test_wins_ties_and_losses(self):
        """Against b the hero wins all ten, against c it is level, against d it loses all."""
        found = {
            task: {
                "hero": noisy(1e-3, k),
                "b": noisy(1e-1, 100 + k),
                "c": noisy(1e-3, 200 + k),
                "d": noisy(1e-5, 300 + k),
                "oracle": noisy(1e-6, 400 + k),
            }
            for k, task in enumerate(TASKS)
        }
        made = {one.label: one for one in contests(found, "hero")}
        assert made["b"] == Contest("b", 10, 0, 0, 300, 300)
        assert made["c"].ties >= 9
        assert 0 < made["c"].lower < made["c"].pairs == 300
        assert made["d"] == Contest("d", 0, 0, 10, 0, 300)
        assert "oracle" not in made

    @pytest.mark.parametrize("problems", [1, 2, 8, 19, 44])
    def test_the_fewest_pairs_that_can_win_a_problem(self, problems):
        """With one pair less, a method that is better in all pairs of one problem does not win it."""
        enough = fewest(problems)
        assert wins_of_one(problems, enough) == 1
        assert wins_of_one(problems, enough - 1) == 0

    def test_few_trials_prove_nothing(self):
        found = {TASKS[0]: {"hero": noisy(1e-3, 0, 4), "b": noisy(1.0, 1, 4)}}
        (one,) = contests(found, "hero")
        assert (one.wins, one.ties, one.losses) == (0, 1, 0)

    def test_pairs_decide_who_wins_and_not_medians(self):
        """The hero is better in 26 of 30 pairs, but its median lies in the upper cluster."""
        lower, upper = np.full(14, 1e-3), np.full(16, 1.0)
        other = np.r_[lower, upper[:12], np.full(4, 0.5e-3)]
        hero = np.r_[lower * 0.9, upper[:12] * 0.9, upper[12:]]
        assert np.median(hero) > np.median(other)
        (one,) = contests({TASKS[0]: {"hero": series(hero), "b": series(other)}}, "hero")
        assert (one.wins, one.losses) == (1, 0)

    def test_problems_without_the_hero_do_not_count(self):
        assert contests({TASKS[0]: {"a": noisy(1, 0)}}, "hero") == []


class TestRanks:
    @pytest.mark.parametrize(("methods", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
    def test_critical_differences_are_those_of_demsar(self, methods, q):
        """His table 5a, to its three digits."""
        expected = q * math.sqrt(methods * (methods + 1) / (6 * 14))
        assert critical_difference(methods, 14) == pytest.approx(expected, rel=2e-3)

    def test_mean_ranks(self):
        medians = np.array([[1, 2, 3], [2, 1, 3], [1, 1, 3], [1, 3, 2]], dtype=float)
        found = {
            task: {label: series(np.full(3, 10.0**-4 * m)) for label, m in zip("abc", row, strict=True)}
            for task, row in zip(TASKS, medians, strict=False)
        }
        made = ranks(found)
        assert made.means == {"a": (1 + 2 + 1.5 + 1) / 4, "b": (2 + 1 + 1.5 + 3) / 4, "c": (3 + 3 + 3 + 2) / 4}
        assert made.p == pytest.approx(friedmanchisquare(*medians.T).pvalue)
        assert made.problems == 4

    def test_only_methods_of_all_problems_have_one(self):
        found = {TASKS[0]: {"a": series([0.1]), "b": series([0.1])}, TASKS[1]: {"a": series([0.1])}}
        assert common(found) == ["a"]
        assert list(ranks(found).means) == ["a"]


class TestProfiles:
    def test_evaluations_until_a_share_of_the_start(self):
        best = np.array([[9, 8, 7, 6, 4, 2, 0.3], [9, 9, 9, 9, 8, 8, 8]])
        np.testing.assert_array_equal(solved(best, 0.5), [6, math.inf])
        np.testing.assert_array_equal(solved(best, 0.1), [7, math.inf])

    def test_problems_count_alike(self):
        found = {TASKS[0]: {"a": series([1e-4] * 9)}, TASKS[1]: {"a": series([1e-4, 1.0])}}
        curve = profiles(found, 0.01)["a"]
        assert curve.shape == (20,)
        assert curve[4] == 0
        assert curve[-1] == pytest.approx((1 + 0.5) / 2)
        assert (np.diff(curve) >= 0).all()

    def test_ratios_to_the_quickest(self):
        quick, slow, never = series([1e-8]), series([1e-3]), series([0.9])
        found = {TASKS[0]: {"a": quick, "b": slow, "c": never}, TASKS[1]: {"a": slow, "b": quick, "c": never}}
        made = ratios(found, 0.01)
        ratio = solved(slow.best, 0.01)[0] / solved(quick.best, 0.01)[0]
        np.testing.assert_allclose(sorted(made["a"]), [1, ratio])
        assert performance(made["a"], 1) == 0.5
        assert performance(made["a"], ratio) == 1
        assert performance(made["c"], 1e9) == 0

    def test_nothing_measured(self):
        assert profiles({}, 0.1) == ratios({}, 0.1) == {}


class TestSummary:
    FOUND = {  # noqa: RUF012
        task: {"hdgabo-auto": noisy(1e-3, k), "gabo": noisy(1e-2, 50 + k), "oracle": noisy(1e-5, 90 + k)}
        for k, task in enumerate(TASKS)
    }

    def test_a_row_for_each_method_and_the_problems_that_were_lost(self):
        found = {**self.FOUND, Task("levy", "sphere:3"): {"hdgabo-auto": noisy(1e-2, 1), "gabo": noisy(1e-4, 2)}}
        lines = summary(found, SUITES["paper"])
        (own,) = [line for line in lines if line.startswith("| GaBO | 1.91")]
        assert "| 10, 0, 1 |" in own
        assert "HD-GaBO has the lowest median on 10 of 11 problems." in lines
        assert "Of the others it is level with the best method on 0, and behind on 1." in lines
        assert lines[-1].startswith("| Levy on S^3 | GaBO |")
        assert lines[-1].endswith("| **behind** |")

    def test_a_better_method_with_two_trials_is_neither_level_nor_ahead(self):
        found = {**self.FOUND, Task("levy", "sphere:3"): {"hdgabo-auto": noisy(1e-2, 1), "gabo": noisy(1e-4, 2, 2)}}
        lines = summary(found, SUITES["paper"])
        assert "Of the others it is level with the best method on 0, and behind on 0." in lines
        assert "On 1 the best method has too few trials for a test." in lines
        assert any(line.startswith("| Levy on S^3 | GaBO |") and line.endswith("| too few trials |") for line in lines)

    def test_an_overview_counts_how_a_suite_stands(self):
        """Behind where ten pairs say so, level where the medians are nearly equal, untested where pairs are few."""
        few = {"hdgabo-auto": noisy(1e-2, 1), "gabo": noisy(1e-4, 2, 2)}
        behind = {"hdgabo-auto": noisy(1e-2, 1), "gabo": noisy(1e-4, 2)}
        spread = np.linspace(1e-3, 3e-3, 30)
        level = {"hdgabo-auto": series(spread), "gabo": series(0.999 * spread[::-1])}
        others = {"griewank": few, "levy": behind, "rastrigin": level}
        found = {**self.FOUND, **{Task(name, "sphere:3"): methods for name, methods in others.items()}}
        assert overview({"paper": found, "held-out": {}})[2:] == [
            "| the twelve problems of Jaquier and Rozo (2020) | HD-GaBO | 13 | 10 | 1 | 1 | 1 |"
        ]

    def test_below_a_method_with_few_trials_stands_the_best_that_can_be_tested(self):
        """Or nothing, where the hero is the best of those."""
        few = {"turbo": noisy(1e-5, 2, 2)}
        found = {
            **self.FOUND,
            Task("levy", "sphere:3"): {"hdgabo-auto": noisy(1e-2, 1), "gabo": noisy(1e-3, 3), **few},
            Task("levy", "sphere:4"): {"hdgabo-auto": noisy(1e-2, 1), "gabo": noisy(1.0, 3), **few},
        }
        *_, first, second, third = summary(found, SUITES["rivals"])
        assert [line.split(" | ")[1] for line in (first, second, third)] == ["TuRBO", "GaBO", "TuRBO"]
        assert second.endswith("| **behind** |")
        assert third.startswith("| Levy on S^4 |")

    def test_ranks_that_contradict_the_medians_are_no_loss(self):
        """The other has the lower median, and is worse in 26 of 30 pairs."""
        lower, upper = np.full(14, 1e-3), np.full(16, 1.0)
        other = np.r_[lower, upper[:12], np.full(4, 0.5e-3)]
        hero = np.r_[lower * 0.9, upper[:12] * 0.9, upper[12:]]
        found = {TASKS[0]: {"hdgabo-auto": series(hero), "gabo": series(other)}}
        (standing,) = standings(found, "hdgabo-auto").values()
        assert standing.best.label == "gabo"
        assert standing.p < 0.05
        assert standing.verdict == BETTER
        assert overview({"paper": found})[-1].endswith("| 1 | 0 | 1 | 0 | 0 |")
        assert "On 1 it is better by the paired test, against the medians." in summary(found, SUITES["paper"])

    def test_nothing_measured(self):
        assert summary({}) == ["Not yet measured."]

    def test_where_there_is_nothing_to_compare_with_medians_are_shown(self):
        lines = summary({TASKS[0]: {"hdgabo-auto": series(np.full(3, 0.25), n=10)}}, SUITES["paper"])
        assert lines[0] == "No method but HD-GaBO has been run on these problems yet."
        assert lines[-1].endswith("| 0.25 | 3 | 10 |")

    def test_trials_that_did_not_come_as_far_are_left_out(self):
        short = {TASKS[0]: {"hdgabo-auto": noisy(1e-3, 0), "gabo": series(np.full(3, 1e-2), n=10)}}
        assert list(complete(short)[TASKS[0]]) == ["hdgabo-auto"]

    def test_problems_without_the_hero_are_left_out(self):
        other = {TASKS[0]: {"gabo": noisy(1e-2, 1)}, TASKS[1]: {"gabo": noisy(1e-2, 2), "hdgabo-auto": noisy(1e-3, 3)}}
        third = {TASKS[2]: {"random": noisy(1.0, 3)}}
        assert hero(other) == "hdgabo-auto"
        assert list(judged(other)) == [TASKS[1]]
        assert hero({**other, **third}) == "gabo"
        assert list(judged({**other, **third})) == TASKS[:2]

    def test_a_picture(self, tmp_path):
        assert profile(self.FOUND, tmp_path / "new" / "a.png").read_bytes().startswith(b"\x89PNG")


class TestEvidence:
    PART = Part("rivals", "random", 2, alone=True)

    def test_it_says_how_long_it_takes_runs_collects_and_goes_on(self, tmp_path, monkeypatch):
        small = replace(SUITES["rivals"], tasks=(Task("wishart", "spd:2:eigenvalues=0.001,5"),), budget=8)
        monkeypatch.setitem(SUITES, "rivals", small)
        said = []
        options = {"parts": [self.PART], "jobs": 1, "say": said.append}
        assert make(tmp_path / "runs", tmp_path / "archive", **options) == []
        assert said[0] == "rivals: 2 of 2 cells, 6 suggestions, 6 s"
        assert "nothing is known of random: 1 s a suggestion is assumed" in said[1]
        assert said[-1].startswith("1 archives")
        ((_, one), *rest) = records(tmp_path / "archive")
        assert len(rest) == 1
        assert one.regret.shape == (1, 8)
        assert paces([tmp_path / "archive"])["random"] < 1
        before = (tmp_path / "archive" / "wishart-spd-2.zip").read_bytes()
        assert make(tmp_path / "runs", tmp_path / "archive", **options) == []
        assert sum("0 of 2 cells" in line for line in said) == 2  # the plan and the run
        assert (tmp_path / "archive" / "wishart-spd-2.zip").read_bytes() == before

    def test_what_another_version_began_is_made_anew(self, tmp_path, monkeypatch):
        monkeypatch.setitem(SUITES, "rivals", replace(SUITES["rivals"], tasks=TASKS[:1]))
        part = Part("rivals", "random", 1, alone=True)
        (cell,) = cells(part)
        run(cell.trials, 6, tmp_path / cell.name)
        assert set_aside([part], tmp_path) == 0
        monkeypatch.setattr("nestbo.experiment.evidence.source", lambda: "another")
        assert set_aside([part], tmp_path) == 1
        assert (tmp_path / "older" / cell.name).exists()
        assert set_aside([part], tmp_path) == 0

    def test_fewer_trials_and_rivals_whose_packages_are_missing(self, monkeypatch):
        monkeypatch.setattr("nestbo.experiment.evidence.RIVALS", {})
        made = cells(Part("rivals", "cma-es,tpe,powell", 5, alone=True), trials=2)
        assert {cell.label for cell in made} == {"powell"}
        assert {cell.trials.seeds for cell in made} == {(0,), (1,)}

    def test_every_part_is_there(self):
        """Every suite of the pages has a part; every method of the rivals is in one."""
        suites = {"paper", "held-out", "held-out-metric", "mismatch", "ablation", "few-dimensions", "rivals-205"}
        assert {part.suite for part in PARTS} == suites
        held_out = {label for part in PARTS if part.suite == "held-out" for label in part.methods.split(",")}
        slow = {"turbo", "turbo-logei", "turbo-tangent", "botorch", "saas", "rpm", "optuna-gp"}  # not on all problems
        assert held_out == set(SUITES["held-out"].methods) - slow
        rivals = {label for part in PARTS if part.suite == "rivals-205" for label in part.methods.split(",")}
        assert rivals == set(SUITES["rivals"].methods) - {"gabo", "hdgabo-auto"}

    def test_our_methods_on_the_problems_of_the_rivals_are_in_other_parts(self):
        """With at least as many evaluations."""
        made = {cell.name.rsplit("__", 1)[0] for part in PARTS for cell in cells(part)}
        problems = [task.key for task in SUITES["rivals-205"].tasks]
        assert {f"{key}__{label}" for key in problems for label in ("gabo", "hdgabo-auto")} <= made
        assert min(SUITES[part.suite].budget for part in PARTS if part.suite in ("paper", "held-out")) == 205

    def test_the_command_says_how_long(self, tmp_path, capsys):
        main(["evidence", "--out", str(tmp_path / "r"), "--archive", str(tmp_path), "--suites", "held-out", "--plan"])
        assert capsys.readouterr().out.startswith("held-out: ")

    def test_archives_are_of_problems_that_are_known(self, tmp_path):
        about = {"problem": "../x", "space": "sphere:2", "latent_dim": None, "method": "m", "seeds": [0], "device": ""}
        Record(about, np.ones((1, 6)), np.full((1, 6), ""), np.zeros(6)).write(tmp_path / "runs" / "a.npz")
        with pytest.raises(ArgumentError, match="Wanted a problem"):
            collect([tmp_path / "runs"], tmp_path / "out")

    @pytest.mark.parametrize("options", [[], ["--replace"]])
    def test_of_two_rows_the_longer_one_stays_unless_it_is_replaced(self, options, tmp_path):
        about = {
            "problem": "ackley",
            "space": "sphere:2",
            "latent_dim": None,
            "method": "m",
            "seeds": [0],
            "device": "",
        }
        for folder, count in (("former", 8), ("new", 6)):
            made = Record(about, np.full((1, count), count), np.full((1, count), ""), np.zeros(count))
            made.write(tmp_path / folder / "a.npz")
        main(["collect", str(tmp_path / "former"), "-o", str(tmp_path / "out")])
        main(["collect", str(tmp_path / "new"), "-o", str(tmp_path / "out"), *options])
        ((_, kept),) = records(tmp_path / "out" / "ackley-sphere-2.zip")
        assert kept.regret.shape == (1, 6 if options else 8)
