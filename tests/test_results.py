"""Results: files merged by cell, numbers with known answers, tables, figures and pages."""

import io

import numpy as np
import pytest
from scipy.stats import wilcoxon

from nestbo import ArgumentError
from nestbo.experiment import SUITES, Task, main
from nestbo.experiment.figures import _KNOWN, _draw, _legend, figures
from nestbo.experiment.pages import report
from nestbo.experiment.results import Record, Series, results, series
from nestbo.experiment.statistics import interval, paired, reached, rows, target
from nestbo.experiment.tables import heading, tables
from nestbo.experiment.trial_files import run
from nestbo.experiment.trials import Trials

PAPER = SUITES["paper"]
ACKLEY, MATRICES = Task("ackley", "sphere:50", 5), Task("rosenbrock", "spd:10:eigenvalues=0.001,5", 3)


def record(regret, label="gabo", task=ACKLEY, first=0, seconds=1.0):
    regret = np.atleast_2d(np.asarray(regret, dtype=float))
    seeds = list(range(first, first + len(regret)))
    about = {"problem": task.problem, "space": task.space, "latent_dim": task.latent_dim, "seeds": seeds}
    method = PAPER.methods[label].text(task) if label in PAPER.methods else label
    about |= {"method": method, "label": label, "device": "cpu", "optimum": 0.0}
    times = np.r_[np.zeros(5), np.full(max(0, regret.shape[1] - 5), seconds)][: regret.shape[1]]
    return Record(about, regret, np.full(regret.shape, ""), times)


def drawn(shape, scale=1.0, seed=0):
    return scale * np.random.default_rng(seed).uniform(0.5, 1.5, shape)


@pytest.fixture
def folder(tmp_path):
    """Three methods and the oracle on two problems, thirty evaluations of eight trials."""
    out = tmp_path / "runs"
    for task in (ACKLEY, MATRICES):
        for k, label in enumerate(("oracle", "hdgabo-auto", "gabo", "random")):
            record(drawn((8, 30), 10.0**k, k), label, task).write(out / f"{task.key}__{label}__0-7.npz")
    return out


def test_every_trial_has_an_optimum_of_its_own(tmp_path):
    """The likelihood of a covariance has another optimum for each seed."""
    trials = Trials("wishart", "spd:3", "randomsearch", (0, 1, 2))
    state = run(trials, 6, tmp_path / "a.npz")
    optima = [p.optimal_value for p in trials.problems()]
    assert len(set(optima)) == 3
    np.testing.assert_allclose(Record.read(tmp_path / "a.npz").regret, state.y.numpy() - np.reshape(optima, (3, 1)))


class TestMerging:
    def test_the_least_so_far(self):
        np.testing.assert_array_equal(series([record([3, 5, 1, 2, 0.5, 4])]).best, [[3, 3, 1, 1, 0.5, 0.5]])

    def test_chunks_are_joined_by_seed(self):
        one = series([record(drawn((2, 8), 3), first=2), record(drawn((2, 8), 1), first=0)])
        assert one.seeds == (0, 1, 2, 3)
        assert one.best[:2].max() < one.best[2:, 0].min()

    def test_of_a_seed_that_is_there_twice_the_longer_trial(self):
        one = series([record(drawn((1, 8), 1)), record(drawn((1, 20), 5))])
        assert one.best.shape == (1, 20)

    def test_trials_that_are_behind_are_left_out_when_ten_are_ahead(self):
        long, short = record(drawn((10, 30))), record(drawn((5, 12)), first=10)
        assert series([short, long]).best.shape == (10, 30)
        assert series([short, long], 20).best.shape[1] == 20
        assert series([short, long], 99).best.shape == (10, 30)

    def test_fewer_end_where_the_shortest_does(self):
        assert series([record(drawn((4, 30))), record(drawn((5, 12)), first=4)]).best.shape == (9, 12)

    def test_seconds_of_a_suggestion_are_those_of_a_step_shared_by_its_trials(self):
        assert series([record(drawn((4, 30)), seconds=2.0)]).pace == pytest.approx(0.5)

    def test_only_what_a_suite_has_in_its_order(self, folder):
        record(drawn((2, 8)), "another").write(folder / "another.npz")
        found = results([folder], PAPER)
        assert list(found) == [ACKLEY, MATRICES]
        assert list(found[ACKLEY]) == ["random", "gabo", "hdgabo-auto", "oracle"]
        assert "another" in results([folder])[ACKLEY]

    def test_a_label_that_meant_another_strategy_is_left_out(self, folder):
        old = record(drawn((2, 8)), "bo")
        old.about["method"] = "euclideanbo:initial=3"
        old.write(folder / "old.npz")
        assert "bo" not in results([folder], PAPER)[ACKLEY]

    def test_files_of_other_kinds_are_refused(self, tmp_path):
        np.savez(tmp_path / "a.npz", about="{}", y=np.zeros((1, 2)))
        with pytest.raises(ArgumentError, match="Run them again"):
            results([tmp_path])


class TestStatistics:
    def test_evaluations_to_a_target(self):
        best = np.array([[3, 1, 0.5], [3, 2, 0.1], [0.2, 0.2, 0.2]])
        assert reached(best, 0.5) == 3
        assert reached(best, 0.15) is None

    def test_interval_of_the_median(self):
        values = np.random.default_rng(1).normal(size=400)
        low, high = interval(values)
        assert low < np.median(values) < high
        expected = 2 * 1.96 * 1.2533 / 20  # that of normal values
        assert 0.5 * expected < high - low < 2 * expected
        assert interval(values) == (low, high)

    def test_pairs_are_of_the_same_seed(self):
        a, b = drawn((10, 20), 1, 1), drawn((10, 20), 2, 2)
        one, other = series([record(a)]), series([record(b, first=2)])
        difference = np.log10(a.min(1)[2:]) - np.log10(b.min(1)[:8])
        assert paired(one, other) == pytest.approx(wilcoxon(difference).pvalue)

    def test_pairs_at_evaluations_that_both_have(self):
        a, b = drawn((10, 20), 1, 1), drawn((10, 30), 1, 2)
        b[:, 20:] = 1e-6
        same = paired(series([record(a)]), series([record(b[:, :20])]))
        assert paired(series([record(a)]), series([record(b)])) == same

    def test_few_pairs_say_nothing(self):
        assert paired(series([record(drawn((3, 9)))]), series([record(drawn((3, 9)))])) is None

    def test_equal_trials_do_not_differ(self):
        assert paired(series([record(drawn((9, 9)))]), series([record(drawn((9, 9)))])) == 1.0

    def test_rows(self, folder):
        made = {row.label: row for row in rows(results([folder])[ACKLEY], 20.0)}
        ranks = {label: row.rank for label, row in made.items()}
        assert ranks == {"hdgabo-auto": 1, "gabo": 2, "random": 3, "oracle": None}
        assert (made["oracle"].p, made["hdgabo-auto"].p) == (None, None)
        assert made["gabo"].p == pytest.approx(2 * 2 / 2**8)  # two methods against the best
        assert (made["hdgabo-auto"].success, made["random"].success) == (1.0, 0.0)
        assert (made["hdgabo-auto"].reached, made["random"].reached) == (1, None)
        assert (made["gabo"].trials, made["gabo"].evaluations) == (8, 30)

    def test_equal_medians_share_a_rank(self):
        same = Series((0, 1), np.ones((2, 3)), 1.0, ("cpu",))
        assert [row.rank for row in rows({"a": same, "b": same}, 0.1)] == [1, 1]

    def test_the_oracle_alone(self):
        (row,) = rows({"oracle": Series((0, 1), np.ones((2, 3)), 1.0, ("cpu",))}, 0.1)
        assert (row.rank, row.p) == (None, None)

    def test_targets(self):
        assert (target("ackley"), target("levy")) == (0.1, 0.1)


class TestShowing:
    def test_headings(self):
        assert heading(MATRICES) == "Rosenbrock, SPD(3) in SPD(10)"
        assert heading(Task("product-of-sines", "sphere:70", 5)) == "Product of sines, S^5 in S^70"
        assert heading(Task("ackley", "sphere:20")) == "Ackley on S^20"

    def test_tables(self, folder):
        lines = tables(results([folder], PAPER), PAPER)
        assert lines[0] == "| method | Ackley, S^5 in S^50 | mean rank |"
        (medians,) = [line for line in lines if line.startswith("| HD-GaBO |") and line.endswith("(1) | 1.0 |")][:1]
        best = np.median(drawn((8, 30), 10.0, 1).min(1))
        assert f"| {best:.3g} (1) |" in medians
        assert lines.count("Run on cpu.") == 2
        widths = {line.count("|") for line in lines[lines.index("### Ackley, S^5 in S^50") :] if line.startswith("|")}
        assert widths == {11}

    def test_nothing_is_said_to_be_measured_that_is_not(self):
        assert tables({}) == ["Not yet measured."]

    def test_a_picture_for_each_space(self, folder, tmp_path):
        found = results([folder], PAPER)
        paths = figures(found, tmp_path / "new", PAPER, prefix="a-")
        assert [path.name for path in paths] == ["a-sphere-50.png", "a-spd-10.png"]
        assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)

    def test_legends_of_long_names_are_not_cut_and_colours_differ(self):
        labels = list(_KNOWN)
        found = {ACKLEY: {label: series([record(drawn((4, 8), 1.0, k), "gabo")]) for k, label in enumerate(labels)}}
        page = _draw(found, None)
        page.legends[0].remove()
        _legend(page, page.axes[0].get_lines(), [f"{label}, a long name" for label in labels])
        page.savefig(io.BytesIO())
        box = page.legends[-1].get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= page.bbox.width
        assert len({colour for colour, _ in _KNOWN.values()}) == len(labels)

    def test_a_page_is_written_between_its_marks_and_again(self, folder, tmp_path):
        page = tmp_path / "page.md"
        page.write_text("before\n<!-- results: paper -->\nold\n<!-- end -->\nafter ≤\n", encoding="utf-8")
        assert report([folder], page) == ["paper"]
        text = page.read_text(encoding="utf-8")
        assert text.startswith("before\n<!-- results: paper -->\n\n![")
        assert text.endswith("<!-- end -->\nafter ≤\n")
        assert "old" not in text
        assert "pictures/paper-sphere-50.png" in text
        assert (tmp_path / "pictures" / "paper-sphere-50.png").exists()
        report([folder], page)
        assert page.read_text(encoding="utf-8") == text

    def test_an_overview_has_a_row_for_each_suite_that_was_run(self, tmp_path):
        """Of two suites, the one that has the problem."""
        for label, scale in (("hdgabo-auto", 1e-3), ("gabo", 1.0)):
            record(drawn((8, 305), scale, 0), label).write(tmp_path / "runs" / f"{label}.npz")
        page = tmp_path / "page.md"
        page.write_text("<!-- overview: paper, few-dimensions -->\n<!-- end -->\n", encoding="utf-8")
        assert report([tmp_path / "runs"], page) == ["paper", "few-dimensions"]
        _, _, *shown = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
        assert shown == ["| the twelve problems of Jaquier and Rozo (2020) | HD-GaBO | 1 | 1 | 0 | 0 | 0 |"]

    @pytest.mark.parametrize(
        "text",
        ["nothing", *(f"<!-- {name} -->\n<!-- end -->" for name in ("results: papre", "results: paper, rivals"))],
    )
    def test_a_page_without_marks_is_refused(self, text, tmp_path):
        (tmp_path / "page.md").write_text(text)
        with pytest.raises(ArgumentError, match="no marks of suites"):
            report([tmp_path], tmp_path / "page.md")

    def test_commands(self, folder, tmp_path, capsys):
        main(["table", str(folder), "--suite", "paper", "--target", "2"])
        assert "evaluations to 2 |" in capsys.readouterr().out
        main(["pack", str(folder), "-o", str(tmp_path / "a.zip")])
        main(["figures", str(tmp_path / "a.zip"), "-o", str(tmp_path / "pictures")])
        assert len(list((tmp_path / "pictures").glob("*.png"))) == 2
        (tmp_path / "page.md").write_text("<!-- results: paper -->\n<!-- end -->")
        main(["report", str(folder), "-o", str(tmp_path / "page.md")])
        assert "page.md: paper" in capsys.readouterr().out

    def test_no_results_are_a_mistake(self, tmp_path):
        with pytest.raises(SystemExit):
            main(["table", str(tmp_path / "nowhere")])
