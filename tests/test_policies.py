"""Policies: what they see of a run, whom they choose, and their text form."""

import dataclasses
import math
import re

import pytest
import torch

from nestbo import ArgumentError, HDGaBO, Sphere, Study, strategy
from nestbo.memory import Memory
from nestbo.nested import Nesting
from nestbo.search.runs import Runs, successes
from nestbo.strategies.arms import Embedded, Full, Kind, Lifted, Local, Near, exhausted
from nestbo.strategies.policies import POLICIES, Balanced, InTurn, Record, Success, policy, stalled, standings

NESTED = Nesting(Sphere(12), Sphere(2))


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def named(name):
    """An arm of this name; of a name that says nothing, a nested one."""
    model, _, way = name.rpartition(":")
    if name == "full":
        return Full()
    if model == "full:embedded":
        return Embedded(name, NESTED)
    kind = Kind() if model == "full" else Kind(model or name, NESTED)
    trust_regions = {"local": Local, "near": Near}
    return trust_regions[way](name, kind, True) if way in trust_regions else Lifted(name, kind, way)


def several(*names):
    return [named(name) for name in names]


def record(who, y, pending=0, **more):
    """A run of which these arms made the evaluations; None for an initial point."""
    return Record(who, y, len(who) + pending, **more)


def counted(who, y, *names):
    return {name: record(who, y).counts(name, Success.decay) for name in names}


class TestRecord:
    """Successes and failures: the median of the first ten values is 5 here, and a success of 1e-3 · |5 − best|."""

    y = (8.0, 6.0, 4.0, 5.0, 3.9999, 3.0, 7.0)
    who = (None, None, "a", "b", "a", "b", "a")

    def test_known_counts(self):
        """a: success, failure since it was a little better only, failure. b: failure, success."""
        counts = counted(self.who, self.y, "a", "b", "c")
        assert counts["a"] == pytest.approx((0.93**2, 0.93 + 1))
        assert counts["b"] == pytest.approx((1.0, 0.93))
        assert counts["c"] == (0.0, 0.0)

    def test_later_values_do_not_change_what_is_usual(self):
        """Ten values settle it: a thousandth of 100 − 0 is no success, more is one."""
        y = [100.0] * 9 + [0.0]
        for value, expected in ((-0.09, (0.0, 1.0)), (-0.11, (1.0, 0.0))):
            counts = counted([None] * 10 + ["a"] + ["b"] * 30, [*y, value, *[0.5] * 30], "a", "b")
            assert counts["a"] == expected

    def test_equal_values_are_failures(self):
        assert counted([None, "a", "a"], [3.0, 3.0, 3.0], "a") == {"a": pytest.approx((0.0, 1.93))}

    def test_which_values_are_successes(self):
        assert successes([]) == []
        assert successes([3.0]) == [False]
        assert successes(list(self.y)) == [False, True, True, False, False, True, False]

    @pytest.mark.parametrize(
        ("used", "success", "changed", "expected"),
        [
            (40, None, None, True),
            (39, None, None, False),
            (41, 0, None, True),
            (40, 0, None, False),
            (40, None, 20, False),
        ],
    )
    def test_an_embedded_space_is_exhausted_after_forty_failures(self, used, success, changed, expected):
        """By its own suggestions, the other arms' do not count; and a new space gets as many."""
        memories, y = [Memory()], [5.0]
        for k in range(used):
            memories += [Memory("wide", frame=2 if changed is not None and k >= changed else 1), Memory("full")]
            y += [4.0 if k == success else 10.0, 3.0 - k]
        assert exhausted("wide", memories, y) is expected

    def test_standings(self):
        arms = several("full", "nested:2:fitted", "nested:2:random")
        who = [None, "full", "nested:2:fitted", "full", "full"]
        found = standings([arm.name for arm in arms], record(who, [5.0, 4.0, 3.0, 6.0, 6.0]))
        assert [(s.arm, s.suggestions, s.share) for s in found] == [
            ("full", 3, 0.75),
            ("nested:2:fitted", 1, 0.25),
            ("nested:2:random", 0, 0.0),
        ]
        good, bad = 0.93**2, 0.93 + 1
        assert [s.score for s in found] == pytest.approx([(1 + good) / (2 + good + bad), 2 / 3, 1 / 2])

    def test_standings_of_a_study_that_has_not_begun(self):
        assert Study(Sphere(12), HDGaBO(2), seed=0).standings() == []
        found = Study(Sphere(12), HDGaBO(2, metric="isotropic"), seed=0).standings()
        assert {(s.suggestions, s.share, s.score) for s in found} == {(0, 0.0, 0.5)}


class TestRecordsOfRuns:
    """What a record says of runs."""

    def runs(self, memories, **more):
        n = len(memories[0])
        y = torch.arange(n, 0, -1, dtype=torch.float64).expand(len(memories), n)
        x = Sphere(2).random(len(memories), n, rng=seeded(0))
        return dataclasses.replace(Runs(x, y, x[:, :0], [seeded(0)] * len(memories), memories), **more)

    def test_each_run_has_its_own(self):
        first, second = Record.each(self.runs([[Memory(), Memory("full")], [Memory("near"), Memory()]]))
        assert (first.arms, second.arms) == ([None, "full"], ["near", None])
        assert first.values == second.values == [2.0, 1.0]
        assert (first.turn, first.worth, first.constrained) == (2, {}, False)

    def test_points_under_evaluation_are_turns(self):
        runs = self.runs([[Memory()] * 4])
        (found,) = Record.each(runs.with_pending(runs.x[:, 0], [Memory("full")]))
        assert found.turn == 5
        assert found.arms == [None] * 4
        assert InTurn().choose(several("a", "b", "c"), found, seeded(0)).name == "c"

    def test_the_last_comparison_of_a_model_counts(self):
        worths = [{"nested:2": 9.0, "nested:3": 2.0}, {}, {"nested:2": -1.0}]
        (found,) = Record.each(self.runs([[Memory(worth=worth) for worth in worths]]))
        assert found.worth == {"nested:2": -1.0, "nested:3": 2.0}

    def test_constraints_are_those_that_were_told(self):
        """Whatever a method remembers under such a name."""
        memories = [[Memory(own={"constraints": [1.0], "noise": 3.0})] * 2]
        assert not Record.each(self.runs(memories))[0].constrained
        told = torch.ones(1, 2, 1, dtype=torch.float64)
        assert Record.each(self.runs(memories, constraints=told))[0].constrained

    def test_infeasible_values_are_no_success(self):
        feasible = torch.tensor([[True, False, True]])
        (found,) = Record.each(self.runs([[Memory()] * 3], feasible=feasible))
        assert found.values == [3.0, 3.0, 1.0]


class TestChoice:
    names = ("full", "nested:2:fitted", "full:embedded:2", "nested:5:fitted", "full:embedded:5")

    def history(self, *counts):
        """For each arm as many successes (positive) or failures (negative) as said, after one initial value."""
        who, y = [None], [1e6]
        for arm, count in zip(self.names, counts, strict=True):
            who += [arm] * abs(count)
            for _ in range(abs(count)):
                y.append(min(y) - 1e5 if count > 0 else max(y))
        return who, y

    @pytest.mark.parametrize("rule", POLICIES.values(), ids=POLICIES)
    def test_generators_decide(self, rule):
        past, arms = record(*self.history(2, -2, 3, 1, 0)), several(*self.names)
        drawn = [[rule().choose(arms, past, seeded(k)) for k in range(20)] for _ in range(2)]
        assert drawn[0] == drawn[1]
        assert set(drawn[0]) <= set(arms)

    def test_success_is_followed(self):
        """An arm with many failures is nearly never chosen against one with many successes."""
        past, arms = record(*self.history(-20, 20, 0, -20, -20)), several(*self.names[:2])
        drawn = [Success().choose(arms, past, seeded(k)) for k in range(200)]
        assert drawn.count(arms[1]) > 195

    def test_without_a_record_all_are_equal(self):
        arms = several("a", "b", "c")
        drawn = [Success().choose(arms, record([None, None], [1.0, 2.0]), seeded(k)) for k in range(600)]
        assert all(140 < drawn.count(arm) < 260 for arm in arms)

    def test_draws_follow_the_betas(self):
        """Beta(2, 1) exceeds Beta(1, 2) with probability 5/6."""
        past, arms = record([None, "a", "b"], [1.0, 0.0, 2.0]), several("a", "b")
        drawn = [Success().choose(arms, past, seeded(k)) for k in range(1000)]
        assert drawn.count(arms[0]) / 1000 == pytest.approx(5 / 6, abs=0.04)

    def test_what_is_long_ago_counts_less_by_the_decay(self):
        """One success, then nine failures: all forgotten but the last, or all remembered."""
        past, arms = record([None, *["a"] * 10], [9.0, 1.0, *[5.0] * 9]), several("a", "b")
        forgetful, faithful = (
            [Success(decay).choose(arms, past, seeded(k)) for k in range(400)].count(arms[0]) for decay in (0.0, 1.0)
        )
        assert forgetful / 400 == pytest.approx(1 / 3, abs=0.07)  # Beta(1, 2) exceeds Beta(1, 1)
        assert faithful / 400 == pytest.approx(2 / 12, abs=0.06)  # Beta(2, 10) does

    def drawn(self, names, who, y, **more):
        arms = several(*names)
        return {Balanced().choose(arms, record(who, y, **more), seeded(k)).name for k in range(40)}

    @pytest.mark.parametrize(("luck", "period"), [(0, 8), (2, 8), (-20, 2)])
    def test_embedded_spaces_take_their_turn(self, luck, period):
        """More often where the others have no luck; one after the other."""
        start, y = self.history(luck, luck, 0, luck, 0)
        for more in range(16):
            who, values = start + [None] * more, y + [max(y)] * more
            turn, chosen = len(who), self.drawn(self.names, who, values)
            if turn % period == 1:
                assert chosen == {("full:embedded:2", "full:embedded:5")[turn // period % 2]}
            else:
                assert not any("embedded" in name for name in chosen)
                assert len(chosen) > 1

    def test_without_embedded_spaces_local_searches_and_the_full_model_are_scouts(self):
        arms = ["full", "nested:2:incumbent", "nested:2:local"]
        chosen = [self.drawn(arms, [None] * n, [1.0] * n) for n in (8, 9, 10, 17)]
        assert chosen == [{"nested:2:incumbent"}, {"nested:2:local"}, {"nested:2:incumbent"}, {"full"}]

    def test_where_the_best_value_stands_still_they_leave_the_others_a_turn(self):
        arms, stuck = ["full", "nested:2:incumbent", "nested:2:local"], [9.0, 1.0, *[5.0] * 40]
        for n in range(32, 42):
            scout = ("full", "nested:2:local")[n // 8 % 2]
            assert self.drawn(arms, [None] * n, stuck[:n]) == {"nested:2:incumbent" if n % 8 == 1 else scout}

    def test_standing_still(self):
        """The median is 5: 0.003 of the way from there to the best has to be gone within 25 evaluations."""
        assert not stalled([9.0, 1.0, *[5.0] * 24])
        assert stalled([9.0, 1.0, *[5.0] * 25])
        assert stalled([9.0, 1.0, *[5.0] * 20, 0.99, *[5.0] * 10])
        assert not stalled([9.0, 1.0, *[5.0] * 20, 0.98, *[5.0] * 10])
        assert not stalled([2.0 - k / 100 for k in range(60)])
        assert not stalled([])
        assert not stalled([5.0] * 40)  # as where nothing is feasible yet
        assert not stalled([1.7e308] * 40)

    def test_where_no_nested_model_is_worth_its_parameters_the_full_model_makes_all_but_one_of_eight(self):
        arms = ["full", "nested:2:incumbent", "nested:2:local", "nested:3:incumbent"]
        for two, three, nested in ((1.0, 2.0, True), (-1.0, 2.0, True), (-1.0, None, True), (-1.0, -2.0, False)):
            worth = {"nested:2": two} | ({} if three is None else {"nested:3": three})
            for n in (8, 9, 10, 17, 40):  # at 40 the best value stands still
                chosen = self.drawn(arms, [None] * n, [9.0, 1.0, *[5.0] * (n - 2)], worth=worth)
                if nested:
                    assert ("full" in chosen) == (n == 17)
                else:
                    assert chosen == ({"nested:2:incumbent", "nested:3:incumbent"} if n % 8 == 1 else {"full"})

    def test_where_constraints_are_told_the_full_model_is_no_scout(self):
        arms, more = ["full", "nested:2:incumbent", "nested:2:local"], {"worth": {"nested:2": 1.0}, "constrained": True}
        chosen = [self.drawn(arms, [None] * n, [1.0] * n, **more) for n in (8, 9, 17)]
        assert chosen == [{"full", "nested:2:incumbent"}, {"nested:2:local"}, {"nested:2:local"}]

    def test_without_nested_arms_the_full_model_is_no_scout(self):
        chosen = [self.drawn(["full", "full:local"], [None] * n, [1.0] * n) for n in (8, 9, 10, 17)]
        assert chosen == [{"full"}, {"full:local"}, {"full"}, {"full:local"}]

    def test_nor_is_the_search_around_the_best_point(self):
        arms, stuck = ["full", "full:local", "full:near"], [9.0, 1.0, *[5.0] * 40]
        chosen = [self.drawn(arms, [None] * n, stuck[:n]) for n in (8, 9, 40, 41)]
        assert chosen == [{"full", "full:near"}, {"full:local"}, {"full:local"}, {"full", "full:near"}]

    def test_balance_of_nested_arms_is_success(self):
        past, arms = record([None, "a", "b"], [3.0, 2.0, 4.0]), several("a", "b")
        for k in range(20):
            assert Balanced().choose(arms, past, seeded(k)) == Success().choose(arms, past, seeded(k))

    def test_balance_of_embedded_spaces_alone(self):
        wide = ("full:embedded:2", "full:embedded:5")
        assert self.drawn(wide, [None, None], [1.0, 2.0]) == set(wide)

    def test_in_turn(self):
        chosen = [InTurn().choose(several("a", "b", "c"), record([None] * n, [1.0] * n), seeded(0)) for n in range(6)]
        assert [arm.name for arm in chosen] == ["a", "b", "c", "a", "b", "c"]

    def test_points_under_evaluation_are_turns(self):
        arms = ["full", "nested:2:incumbent", "nested:2:local"]
        chosen = [self.drawn(arms, [None] * 6, [1.0] * 6, pending=pending) for pending in (2, 3, 4, 11)]
        assert chosen == [{"nested:2:incumbent"}, {"nested:2:local"}, {"nested:2:incumbent"}, {"full"}]


class TestTable:
    """Each row of the table of ``Balanced``, with constants other than the usual ones."""

    rule = Balanced(luck=0.3, window=10, hardly=0.5, seldom=5, often=3)
    learned = ("full", "nested:2:incumbent", "nested:2:local")
    embedded = ("full", "nested:2:incumbent", "full:embedded:2")
    flat, still = [1.0] * 60, [9.0, 1.0, *[5.0] * 58]

    def chosen(self, names, y, **more):
        """Who is chosen at turns 20 to 49, each as a set."""
        arms = several(*names)
        at = lambda n: {self.rule.choose(arms, record([None] * n, y[:n], **more), seeded(k)).name for k in range(20)}
        return {n: at(n) for n in range(20, 50)}

    def test_no_nested_model_is_worth_its_parameters(self):
        for y in (self.flat, self.still):
            for n, found in self.chosen(self.learned, y, worth={"nested:2": -0.1}).items():
                assert found == ({"nested:2:incumbent"} if n % 5 == 1 else {"full"})

    def test_the_best_value_stands_still_and_there_are_no_embedded_spaces(self):
        for n, found in self.chosen(self.learned, self.still).items():
            assert found == ({"nested:2:incumbent"} if n % 5 == 1 else {("full", "nested:2:local")[n // 5 % 2]})

    def test_embedded_spaces_and_the_others_have_no_luck(self):
        arms, unlucky = several(*self.embedded), ["full", "nested:2:incumbent"] * 30
        for n in range(20, 50):
            past = record(unlucky[:n], self.still[:n])
            found = {self.rule.choose(arms, past, seeded(k)).name for k in range(40)}
            assert found == ({"full:embedded:2"} if n % 3 == 1 else {"full", "nested:2:incumbent"})

    def test_otherwise(self):
        for n, found in self.chosen(self.learned, self.flat).items():
            assert found == ({("full", "nested:2:local")[n // 5 % 2]} if n % 5 == 1 else {"nested:2:incumbent"})
        for n, found in self.chosen(self.embedded, self.still).items():  # standing still or not
            assert found == ({"full:embedded:2"} if n % 5 == 1 else {"full", "nested:2:incumbent"})


class TestText:
    @pytest.mark.parametrize(
        "rule", [Balanced(), Balanced(seldom=4), Balanced(0.9, often=3), Success(), Success(0.5), InTurn()], ids=repr
    )
    def test_there_and_back(self, rule):
        method = HDGaBO(2, choice=rule)
        assert strategy(method.specification) == method
        assert strategy(f"hdgabo:latent_dim=2:choice=({rule.specification})") == method

    def test_known_texts(self):
        assert strategy("hdgabo:choice=(balanced:seldom=4)") == HDGaBO(choice=Balanced(seldom=4))
        assert strategy("hdgabo:choice=(success:decay=0.5):outputs=bilog") == HDGaBO(
            choice=Success(0.5), outputs="bilog"
        )
        assert HDGaBO(choice=Balanced(seldom=4)).specification == "hdgabo:choice=(balanced:seldom=4)"

    @pytest.mark.parametrize(
        ("name", "rule"), [("balanced", Balanced()), ("success", Success()), ("in-turn", InTurn())]
    )
    def test_a_name_stands_for_the_usual_constants(self, name, rule):
        assert HDGaBO(choice=name) == HDGaBO(choice=rule) == strategy(f"hdgabo:choice={name}")
        assert policy(name) == policy(rule) == rule

    def test_the_usual_constants_are_left_out(self):
        assert HDGaBO(choice=Balanced()).specification == "hdgabo"
        assert repr(HDGaBO(choice=Balanced(seldom=4))) == "HDGaBO(choice=Balanced(seldom=4))"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("(balance:seldom=4)", r"Wanted a policy \(balanced, inturn, success\), got 'balance'.*'balanced'"),
            ("(balanced:seldon=4)", "unknown setting seldon; did you mean seldom"),
            ("(balanced:seldom=4", "parentheses"),
            ("(sphere:2)", "Wanted a policy"),
            ("best", "choice is one of balanced, success, in-turn, got 'best'"),
            ("3", "choice is one of balanced, success, in-turn, got 3"),
        ],
    )
    def test_mistakes_are_explained(self, text, message):
        with pytest.raises(ArgumentError, match=message):
            strategy(f"hdgabo:choice={text}")

    @pytest.mark.parametrize("rule", [Balanced, Success])
    @pytest.mark.parametrize("decay", [7, -0.1, math.nan, "0.9", None, True, 1j])
    def test_a_decay_is_a_share(self, rule, decay):
        with pytest.raises(ArgumentError, match=r"decay is a number between 0 and 1, got"):
            rule(decay=decay)

    @pytest.mark.parametrize(
        ("constants", "message"),
        [
            ({"seldom": 0}, "seldom is a whole number of at least 2, got 0"),
            ({"seldom": 1}, "seldom is a whole number of at least 2, got 1"),
            ({"often": 2.5}, "often is a whole number of at least 2, got 2.5"),
            ({"window": 0}, "window is a whole number of at least 1, got 0"),
            ({"window": "long"}, "window is a whole number of at least 1, got 'long'"),
            ({"luck": 2}, "luck is a number between 0 and 1, got 2"),
            ({"hardly": -1e-3}, "hardly is a number between 0 and 1, got -0.001"),
        ],
        ids=str,
    )
    def test_constants_are_checked(self, constants, message):
        with pytest.raises(ArgumentError, match=re.escape(message)):
            Balanced(**constants)

    def test_constants_of_a_text_form_are_checked(self):
        with pytest.raises(ArgumentError, match="seldom is a whole number of at least 2, got 0"):
            strategy("hdgabo:choice=(balanced:seldom=0)")

    def test_constants_change_who_is_chosen(self):
        """A study with another period lets the scout have its turn at another time."""
        x = Sphere(12).random(7, rng=seeded(0))
        for period, is_next in ((8, False), (3, True)):
            study = Study(Sphere(12), HDGaBO(2, choice=Balanced(seldom=period), outputs="standardise"), seed=0)
            for point in x:
                study.add(point, float(point[0]))
            assert (study.ask().memory.arm == "full:embedded:2") == is_next
