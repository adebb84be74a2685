"""HD-GaBO: its text form, its arms, how they are chosen, and studies with it."""

import json
import math
from dataclasses import replace

import pytest
import torch

import nestbo as nb
from nestbo import SPD, ArgumentError, Box, Euclidean, HDGaBO, Product, RandomSearch, Sphere, Study, strategy
from nestbo.nested import NestedProduct, NestedSPD, NestedSphere, Nesting
from nestbo.strategies import Runs
from nestbo.strategies.arms import CHOICES, Arm, balanced, by_success, exhausted, in_turn, record, stalled, standings
from nestbo.strategies.base import due, successes
from nestbo.strategies.local import START, Region, regions, regions_at_best

BOTH = Product(Sphere(6), SPD(3))
QUICK = {"initial": 3, "outputs": "standardise"}


def names(space, *arguments, **options):
    return [arm.name for arm in HDGaBO(*arguments, **options).arms_on(space)]


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def smooth(space):
    """A function with one clear minimum."""
    target = space.embed(space.random(rng=seeded(99)))
    return lambda x: float((space.embed(x) - target).square().sum())


class TestText:
    @pytest.mark.parametrize(
        "method",
        [
            HDGaBO(),
            HDGaBO(5),
            HDGaBO((2, None)),
            HDGaBO((2,)),
            HDGaBO(arms=("fitted",)),
            HDGaBO(3, ("full", "random"), "success", exact=False, outputs="bilog", criterion="leave-one-out"),
            HDGaBO.paper(5),
            HDGaBO.paper((None, 2)),
        ],
        ids=repr,
    )
    def test_there_and_back(self, method):
        assert strategy(method.specification) == method

    def test_known_texts(self):
        assert strategy("hdgabo") == HDGaBO()
        assert strategy("hdgabo:latent_dim=5") == HDGaBO(5)
        assert strategy("hdgabo:latent_dim=2,none") == HDGaBO((2, None))
        assert strategy("hdgabo:arms=fitted,:choice=in-turn") == HDGaBO(arms=("fitted",), choice="in-turn")
        assert HDGaBO((2, None)).specification == "hdgabo:latent_dim=2,none"

    def test_the_papers_configuration_to_the_letter(self):
        paper = HDGaBO.paper(5)
        assert (paper.kernel, paper.acquisition, paper.optimiser) == ("geodesic-gaussian", "ei", "trust-region")
        assert (paper.latent_dim, paper.arms, paper.exact) == (5, ("fitted",), False)
        assert (paper.priors, paper.outputs, paper.criterion, paper.initial) == (False, "standardise", "likelihood", 5)
        (arm,) = paper.arms_on(SPD(10))
        assert arm == Arm("nested:5", Nesting(SPD(10), SPD(5), logarithmic=True), "fitted")


class TestArms:
    def test_on_spheres_and_matrices(self):
        assert names(Sphere(50), 2) == ["full", "nested:2:incumbent", "full:embedded:2"]
        assert names(SPD(10), 2) == ["full", "nested:2:incumbent", "nested:2:local"]
        assert names(SPD(10), 2, ("full", "local")) == ["full", "nested:2:local"]
        assert names(Sphere(6)) == ["full", "nested:2:incumbent", "full:embedded:2", "nested:5:incumbent"]
        assert names(SPD(10), 2, ("incumbent", "fitted")) == ["nested:2:incumbent", "nested:2:fitted"]
        assert names(SPD(10), 2, ("random", "full")) == ["full", "nested:2:random"]

    def test_sizes_that_are_tried_are_smaller_than_the_space(self):
        sizes = lambda space: [name.split(":")[1] for name in names(space, "auto", ("fitted",)) if name != "full"]
        assert sizes(Sphere(50)) == ["2", "5"]
        assert sizes(Sphere(5)) == ["2"]
        assert sizes(SPD(3)) == ["2"]
        assert sizes(SPD(10)) == ["2", "3"]
        assert sizes(BOTH) == ["2,2", "5,2"]
        assert sizes(Product(Sphere(20), Box(0, 1))) == ["2,none", "5,none"]

    def test_embedded_spheres_are_a_little_wider_and_smaller_than_the_space(self):
        (arm,) = HDGaBO(2, ("embedded",)).arms_on(Sphere(50))
        assert 2 < arm.nesting.latent.n < 50
        assert (arm.model, arm.domain) == ("full", arm.name)
        assert names(Sphere(3), 2, ("embedded",)) == ["full"]
        (arm,) = HDGaBO((2, 2), ("embedded",)).arms_on(Product(Sphere(20), SPD(4)))
        assert arm.nesting.latent.factors[1] == SPD(4)

    def test_arms_that_differ_in_the_lift_search_the_same(self):
        first, second = HDGaBO(2, ("incumbent", "fitted")).arms_on(Sphere(50))
        assert first.domain == second.domain == "nested:2"
        assert first.name != second.name

    def test_of_a_product_some_factors_may_stay_whole(self):
        (arm,) = HDGaBO((2, None), ("fitted",)).arms_on(BOTH)
        assert arm.name == "nested:2,none:fitted"
        assert arm.nesting.latent == Product(Sphere(2), SPD(3))

    @pytest.mark.parametrize(
        "space", [Box(0, 1), Sphere(2), Sphere(1), SPD(2), Product(Sphere(2), Box(0, 1))], ids=repr
    )
    def test_where_nothing_smaller_is_worth_trying_the_full_model_is_alone(self, space):
        for arms in (HDGaBO().arms, ("fitted",), ("embedded",)):
            assert names(space, "auto", arms) == ["full"]

    def test_a_latent_space_as_large_as_the_space_is_the_full_model(self):
        assert names(Sphere(5), 5) == ["full", "full:local", "full:near"]
        assert names(Sphere(5), 5, ("fitted",)) == ["full"]
        assert names(BOTH, (None, None), ("fitted",)) == ["full"]
        assert names(BOTH, (6, 2), ("fitted",)) == ["nested:6,2:fitted"]

    @pytest.mark.parametrize(
        ("space", "size", "message"),
        [
            (Box(0, 1), 1, "has no nested spaces inside"),
            (Sphere(3), 4, r"latent_dim of Sphere\(3\) is a whole number from 1 to 3, got 4"),
            (SPD(3), 5, r"from 1 to 3, got 5"),
            (BOTH, 2, "tuple with one entry per factor"),
            (BOTH, (2, 2, 2), "tuple with one entry per factor"),
            (Sphere(3), (2,), "whole number from 1 to 3"),
        ],
    )
    def test_a_study_refuses_sizes_that_the_space_has_not(self, space, size, message):
        with pytest.raises(ArgumentError, match=message):
            Study(space, HDGaBO(size))

    @pytest.mark.parametrize("space", [Product(Product(Sphere(2), Sphere(2)), Sphere(6))], ids=repr)
    @pytest.mark.parametrize("size", ["auto", (None, 2)])
    def test_inner_products_may_be_left_whole(self, space, size):
        assert "nested:none,2:incumbent" in names(space, size)

    def test_products_in_products(self):
        space = Product(Product(Sphere(4), SPD(3)), Sphere(4))
        study = Study(space, HDGaBO(arms=("incumbent",), **QUICK), seed=0)
        study.run(smooth(space), 4, progress=False)
        space.check(study.history.points, 1e-9)
        assert study.history[-1].memory["arm"].endswith(":incumbent")


class TestMistakes:
    @pytest.mark.parametrize("size", [0, -1, 2.0, True, None, (), (0, 2), (2, "x"), [2], "autoo"])
    def test_what_is_no_size_anywhere(self, size):
        with pytest.raises(ArgumentError, match="latent_dim is a whole number"):
            HDGaBO(size)

    @pytest.mark.parametrize("arms", [(), ["full"], "full", None])
    def test_arms_are_a_tuple(self, arms):
        with pytest.raises(
            ArgumentError, match=r"arms is a tuple of names \(full, fitted, incumbent, random, embedded, local\)"
        ):
            HDGaBO(arms=arms)

    def test_unknown_names(self):
        with pytest.raises(ArgumentError, match=r"An arm is one of full, .*, got 'nested'"):
            HDGaBO(arms=("full", "nested"))
        with pytest.raises(ArgumentError, match="choice is one of balanced, success, in-turn, got 'best'"):
            HDGaBO(choice="best")
        with pytest.raises(ArgumentError, match="criterion is one of likelihood, leave-one-out, got 'aic'"):
            HDGaBO(criterion="aic")
        with pytest.raises(ArgumentError, match="exact is True or False, got 1"):
            HDGaBO(exact=1)

    def test_arms_are_different(self):
        with pytest.raises(ArgumentError):
            HDGaBO(2, ("fitted", "fitted", "incumbent"))


def notes(*arms):
    """The notes of suggestions by these arms; an empty name for an initial point."""
    return [{"arm": arm} if arm else {} for arm in arms]


class TestRecord:
    """Successes and failures: the median of the first ten values is 5 here, and a success of 1e-3 · |5 − best|."""

    y = (8.0, 6.0, 4.0, 5.0, 3.9999, 3.0, 7.0)
    who = notes("", "", "a", "b", "a", "b", "a")

    def test_known_counts(self):
        """a: success, failure since it was a little better only, failure. b: failure, success."""
        counts = record(["a", "b", "c"], self.who, self.y)
        assert counts["a"] == pytest.approx((0.93**2, 0.93 + 1))
        assert counts["b"] == pytest.approx((1.0, 0.93))
        assert counts["c"] == (0.0, 0.0)

    def test_arms_that_take_no_part_are_forgotten(self):
        assert record(["b"], self.who, self.y) == {"b": pytest.approx((1.0, 0.93))}

    def test_later_values_do_not_change_what_is_usual(self):
        """Ten values settle it: a thousandth of 100 − 0 is no success, more is one."""
        y, arms = [100.0] * 9 + [0.0], [""] * 10
        for value, expected in ((-0.09, (0.0, 1.0)), (-0.11, (1.0, 0.0))):
            counts = record(["a", "b"], notes(*arms, "a", *["b"] * 30), [*y, value, *[0.5] * 30])
            assert counts["a"] == expected

    def test_equal_values_are_failures(self):
        assert record(["a"], notes("", "a", "a"), [3.0, 3.0, 3.0]) == {"a": pytest.approx((0.0, 1.93))}

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
        who, y = [{}], [5.0]
        for k in range(used):
            who += [{"arm": "wide", "wide": [[2.0 if changed is not None and k >= changed else 1.0]]}, {"arm": "full"}]
            y += [4.0 if k == success else 10.0, 3.0 - k]
        assert exhausted("wide", who, y) is expected

    def test_standings(self):
        arms = [Arm("full"), Arm("nested:2", None, "fitted"), Arm("nested:2", None, "random")]
        who = notes("", "full", "nested:2:fitted", "full", "full")
        found = standings(arms, who, [5.0, 4.0, 3.0, 6.0, 6.0])
        assert [(s.arm, s.suggestions, s.share) for s in found] == [
            ("full", 3, 0.75),
            ("nested:2:fitted", 1, 0.25),
            ("nested:2:random", 0, 0.0),
        ]
        good, bad = 0.93**2, 0.93 + 1
        assert [s.score for s in found] == pytest.approx([(1 + good) / (2 + good + bad), 2 / 3, 1 / 2])

    def test_standings_of_a_study_that_has_not_begun(self):
        found = Study(Sphere(12), HDGaBO(2), seed=0).standings()
        assert {(s.suggestions, s.share, s.score) for s in found} == {(0, 0.0, 0.5)}


class TestChoice:
    arms = ("full", "nested:2:fitted", "full:embedded:2", "nested:5:fitted", "full:embedded:5")

    def history(self, *counts):
        """For each arm as many successes (positive) or failures (negative) as said, after one initial value."""
        who, y = [""], [1e6]
        for arm, count in zip(self.arms, counts, strict=True):
            who += [arm] * abs(count)
            for _ in range(abs(count)):
                y.append(min(y) - 1e5 if count > 0 else max(y))
        return notes(*who), y

    @pytest.mark.parametrize("rule", CHOICES.values(), ids=CHOICES)
    def test_generators_decide(self, rule):
        who, y = self.history(2, -2, 3, 1, 0)
        drawn = [[rule(list(self.arms), who, y, seeded(k)) for k in range(20)] for _ in range(2)]
        assert drawn[0] == drawn[1]
        assert set(drawn[0]) <= set(range(5))

    def test_success_is_followed(self):
        """An arm with many failures is nearly never chosen against one with many successes."""
        who, y = self.history(-20, 20, 0, -20, -20)
        drawn = [by_success(list(self.arms[:2]), who, y, seeded(k)) for k in range(200)]
        assert sum(drawn) > 195

    def test_without_a_record_all_are_equal(self):
        drawn = [by_success(["a", "b", "c"], notes("", ""), [1.0, 2.0], seeded(k)) for k in range(600)]
        assert all(140 < drawn.count(arm) < 260 for arm in range(3))

    def test_draws_follow_the_betas(self):
        """Beta(2, 1) exceeds Beta(1, 2) with probability 5/6."""
        who, y = notes("", "a", "b"), [1.0, 0.0, 2.0]
        drawn = [by_success(["a", "b"], who, y, seeded(k)) for k in range(1000)]
        assert drawn.count(0) / 1000 == pytest.approx(5 / 6, abs=0.04)

    def drawn(self, names, who, y, **options):
        return {names[balanced(names, who, y, seeded(k), **options)] for k in range(40)}

    @pytest.mark.parametrize(("luck", "period"), [(0, 8), (2, 8), (-20, 2)])
    def test_embedded_spaces_take_their_turn(self, luck, period):
        """More often where the others have no luck; one after the other."""
        start, y = self.history(luck, luck, 0, luck, 0)
        for more in range(16):
            who, values = start + notes(*[""] * more), y + [max(y)] * more
            turn, chosen = len(who), self.drawn(list(self.arms), who, values)
            if turn % period == 1:
                assert chosen == {("full:embedded:2", "full:embedded:5")[turn // period % 2]}
            else:
                assert not any("embedded" in name for name in chosen)
                assert len(chosen) > 1

    def test_without_embedded_spaces_local_searches_and_the_full_model_are_scouts(self):
        arms = ["full", "nested:2:incumbent", "nested:2:local"]
        chosen = [self.drawn(arms, notes(*[""] * n), [1.0] * n) for n in (8, 9, 10, 17)]
        assert chosen == [{"nested:2:incumbent"}, {"nested:2:local"}, {"nested:2:incumbent"}, {"full"}]

    def test_where_the_best_value_stands_still_they_leave_the_others_a_turn(self):
        arms, stuck = ["full", "nested:2:incumbent", "nested:2:local"], [9.0, 1.0, *[5.0] * 40]
        for n in range(32, 42):
            scout = ("full", "nested:2:local")[n // 8 % 2]
            assert self.drawn(arms, notes(*[""] * n), stuck[:n]) == {"nested:2:incumbent" if n % 8 == 1 else scout}

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
        for two, three, nested in ((1.0, 2.0, True), (-1.0, 2.0, True), (-1.0, -2.0, False)):
            compared = [{"worth:nested:2": 9.0}, {"worth:nested:2": two}, {"worth:nested:3": three}]
            for n in (8, 9, 10, 17, 40):  # at 40 the best value stands still
                chosen = self.drawn(arms, compared + notes(*[""] * (n - 3)), [9.0, 1.0, *[5.0] * (n - 2)])
                if nested:
                    assert ("full" in chosen) == (n == 17)
                else:
                    assert chosen == ({"nested:2:incumbent", "nested:3:incumbent"} if n % 8 == 1 else {"full"})

    def test_where_constraints_are_told_the_full_model_is_no_scout(self):
        arms = ["full", "nested:2:incumbent", "nested:2:local"]
        first = [{"constraints": "a key of a memory tells nothing", "worth:nested:2": 1.0}]
        who = [first + notes(*[""] * (n - 1)) for n in (8, 9, 17)]
        chosen = [self.drawn(arms, past, [1.0] * len(past), constrained=True) for past in who]
        assert chosen == [{"full", "nested:2:incumbent"}, {"nested:2:local"}, {"nested:2:local"}]

    def test_without_nested_arms_the_full_model_is_no_scout(self):
        chosen = [self.drawn(["full", "full:local"], notes(*[""] * n), [1.0] * n) for n in (8, 9, 10, 17)]
        assert chosen == [{"full"}, {"full:local"}, {"full"}, {"full:local"}]

    def test_nor_is_the_search_around_the_best_point(self):
        arms, stuck = ["full", "full:local", "full:near"], [9.0, 1.0, *[5.0] * 40]
        chosen = [self.drawn(arms, notes(*[""] * n), stuck[:n]) for n in (8, 9, 40, 41)]
        assert chosen == [{"full", "full:near"}, {"full:local"}, {"full:local"}, {"full", "full:near"}]

    def test_balance_of_nested_arms_is_success(self):
        who, y = notes("", "a", "b"), [3.0, 2.0, 4.0]
        for k in range(20):
            assert balanced(["a", "b"], who, y, seeded(k)) == by_success(["a", "b"], who, y, seeded(k))

    def test_balance_of_embedded_spaces_alone(self):
        wide = ["full:embedded:2", "full:embedded:5"]
        assert {balanced(wide, notes("", ""), [1.0, 2.0], seeded(k)) for k in range(20)} == {0, 1}

    def test_in_turn(self):
        chosen = [in_turn(["a", "b", "c"], notes(*[""] * n), [1.0] * n, seeded(0)) for n in range(6)]
        assert chosen == [0, 1, 2, 0, 1, 2]


def data(space, who, y, rng):
    """One run with these arms and values."""
    x = space.random(1, len(y), rng=rng)
    return Runs(x, torch.tensor([y], dtype=torch.float64), x[:, :0], [seeded(0)], [who])


class TestModels:
    y = (5.0, 4.0, 3.0, 6.0, 6.0)

    def test_the_model_of_the_most_successful_arm_leads(self, rng):
        method = HDGaBO(2, ("full", "fitted", "incumbent"), outputs="standardise")
        for first, second in (("full", "nested:2:fitted"), ("nested:2:incumbent", "full")):
            who = notes("", first, first, second, second)
            models = method.models(Sphere(6), data(Sphere(6), who, self.y, rng))
            assert list(models) == [first.removesuffix(":incumbent"), second.removesuffix(":fitted")]

    def test_there_is_one_model_for_each_size_and_one_for_the_space(self, rng):
        models = HDGaBO(outputs="standardise").models(Sphere(7), data(Sphere(7), [{}] * 5, self.y, rng))
        assert set(models) == {"full", "nested:2", "nested:5"}
        assert [models[name].mapping.latent for name in ("full", "nested:2", "nested:5")] == [
            Sphere(7),
            Sphere(2),
            Sphere(5),
        ]

    @pytest.mark.parametrize(
        ("space", "size", "family"),
        [(Sphere(5), 2, NestedSphere), (SPD(4), 2, NestedSPD), (BOTH, (2, None), NestedProduct)],
        ids=repr,
    )
    def test_mappings_lead_to_the_latent_space(self, space, size, family, rng):
        (model,) = HDGaBO.paper(size).models(space, data(space, [{}] * 5, self.y, rng)).values()
        mapping = model.mapping
        assert type(mapping) is family
        assert (mapping.ambient, mapping.latent) == (space, nb.nested.smaller(space, size))
        x = space.random(1, 3, rng=rng)
        mean, _ = model.gp.moments(mapping.project(x))
        torch.testing.assert_close(model.predict(x), model.outputs.inverse(mean))

    def test_without_data_there_is_none(self):
        study = Study(Sphere(6), HDGaBO(2), seed=0)
        assert study.models() == {}
        with pytest.raises(ArgumentError, match="Tell some values first"):
            study.model()


class TestRegions:
    """Trust regions of one run on a line with a typical distance of 1: 0.3 from known points is away, 0.1 is near."""

    x, y = (0.0, 0.2, 0.5, 0.9, 1.5), (1.0, 2.0, 3.0, 4.0, 5.0)

    def region(self, x, y, starts=(), seed=0, **more):
        """The next region, after evaluations of which the last are the arm's, each with the place its region began."""
        line = Euclidean(1)
        where, values = (torch.tensor(each, dtype=torch.float64).unsqueeze(0) for each in (x, y))
        points = line.typical_distance * where.unsqueeze(-1)
        who = [{"arm": "local", START: points[0, start].tolist()} for start in starts]
        runs = Runs(points, values, points[:, :0], [seeded(seed)], [[{}] * (len(x) - len(starts)) + who])
        (found,) = regions("local", line, points, replace(runs, **more))
        return found

    def test_the_first_begins_at_the_best_point_away_from_the_best(self):
        assert self.region(self.x, self.y) == Region(2, 2, 0.25)

    def test_where_no_point_is_away_it_begins_at_the_farthest(self):
        assert self.region((0.0, 0.0, 0.0, 0.1), (1.0, 2.0, 3.0, 4.0)).start == 3
        for many in (1, 5):
            assert self.region([0.0] * many, [1.0] * many) == Region(0, 0, 0.25)

    def test_successes_widen_and_move_it_and_failures_narrow_it(self):
        better = self.region((*self.x, 0.6), (*self.y, 2.5), (2,))
        worse = self.region((*self.x, 0.6), (*self.y, 3.5), (2,))
        hardly = self.region((*self.x, 0.6), (*self.y, 2.91), (2,))
        assert better == Region(2, 5, pytest.approx(1.6 * 0.25))
        assert worse == Region(2, 2, pytest.approx(0.75 * 0.25))
        assert hardly == Region(2, 5, pytest.approx(0.75 * 0.25))  # less than a twentieth of the way to the best

    def test_evaluations_that_finish_late_do_not_confuse_it(self):
        assert self.region((1.0, *self.x, 0.6), (9.0, *self.y, 2.5), (3,))[:2] == (3, 6)

    def test_nor_do_equal_values(self):
        """All but one, as of failures, or of an objective that is flat but for a basin."""
        assert self.region((*self.x, 0.6), (1.0, *[9.0] * 5), (2,)) == Region(2, 2, pytest.approx(0.75 * 0.25))

    def test_nor_do_points_that_were_evaluated_twice(self):
        x, y = (0.0, 0.0, 0.0, 0.5, 0.6, 0.7), (1.0, 1.0, 1.0, 3.0, 2.5, 2.0)
        assert self.region(x, y, (3, 3)) == Region(3, 5, 0.6)  # the largest

    def test_where_it_has_shrunk_to_nothing_another_one_begins_away_from_all(self):
        tried = [0.5 + k / 100 for k in range(1, 9)]
        assert self.region((*self.x, *tried[:7]), (*self.y, *[3.5] * 7), [2] * 7).start == 2
        assert self.region((*self.x, *tried), (*self.y, *[3.5] * 8), [2] * 8).start in (3, 4)

    def test_where_it_has_come_back_to_a_known_point_another_one_begins(self):
        assert self.region((*self.x, 0.05), (*self.y, 1.5), (2,)).start in (3, 4)
        assert self.region((*self.x, 0.05), (*self.y, 0.5), (2,)).centre == 5  # it is better there

    def test_the_second_begins_anywhere(self):
        found = {self.region((*self.x, 0.05), (*self.y, 1.5), (2,), seed).start for seed in range(20)}
        assert found == {3, 4}

    def test_every_third_one_begins_at_the_best_point_if_that_leads_to_better_ones(self):
        """Regions that come back end at once: the third begins there, and the sixth only if the third was good."""
        x, y = (*self.x, 2.0, 2.5, 3.0, 0.05, 0.06), (*self.y, 6.0, 7.0, 8.0, 1.5, 1.6)
        assert self.region(x, y, (2, 3)) == Region(0, 0, 0.25)
        for last, begins in ((0.5, {10}), (0.999, {6, 7}), (1.5, {6, 7})):
            where, found = (*x, 0.3, *[0.01] * 2), (*y, last, *[1.4] * 2)
            several = {self.region(where, found, (2, 3, 0, 4, 5), seed).start for seed in range(20)}
            assert several == begins
            if last == 0.5:  # a region goes on that began where an earlier one has found the best point
                asked = {"arm": "local", START: [Euclidean(1).typical_distance * 0.3]}
                assert self.region(where, found, (2, 3, 0, 4, 5), asked=[[asked]]) == Region(10, 10, 0.25)
                after = self.region((*where, 0.35), (*found, 0.9), (2, 3, 0, 4, 5, 10))
                assert after == Region(10, 10, pytest.approx(0.75 * 0.25))

    def test_one_at_the_best_point_is_widened_and_narrowed_and_begins_anew(self):
        def found(y, mine):
            points = torch.zeros(1, len(y), 1, dtype=torch.float64)
            who = [{} for _ in range(len(y) - mine)] + [{"arm": "near"}] * mine
            values = torch.tensor([y], dtype=torch.float64)
            return regions_at_best("near", Runs(points, values, points[:, :0], [seeded(0)], [who]))[0]

        assert found([9.0, 5.0, 7.0], 0) == Region(1, 1, 0.25)
        assert found([9.0, 5.0, 7.0], 1) == Region(1, 1, pytest.approx(0.75 * 0.25))
        assert found([9.0, 5.0, 3.0], 1) == Region(2, 2, pytest.approx(1.6 * 0.25))
        narrow = [found([9.0, 5.0, *[7.0] * k], k).radius for k in range(1, 30)]
        assert min(narrow) == pytest.approx(0.25 * 0.75**13)  # the next would be below 0.005
        assert narrow[13] == 0.25

    def test_it_goes_on_where_a_point_is_under_evaluation(self):
        """An ended region is followed by one from anywhere: four points asked at once are all of that one."""
        x, y = (*self.x, 2.0, 2.5, 3.0, 0.05), (*self.y, 6.0, 7.0, 8.0, 1.5)
        asked = {"arm": "local", START: [Euclidean(1).typical_distance * 2.5]}
        assert {self.region(x, y, (2,), seed, asked=[[asked]]).start for seed in range(9)} == {6}

    def test_it_begins_neither_at_a_failure_nor_where_a_constraint_is_violated(self):
        feasible = torch.tensor([[True, True, False, True, True]])
        assert self.region(self.x, self.y, feasible=feasible).start == 3
        failed = torch.tensor([[False, False, False, True]])
        assert self.region((0.0, 0.01, 0.02, 0.9), (1.0, 2.0, 3.0, 3.0), failed=failed).start == 2

    def test_where_values_are_noisy_the_model_says_which_is_the_best(self):
        posterior = torch.tensor([[3.0, 4.0, 1.0, 2.0, 5.0]])
        assert self.region(self.x, self.y, posterior=posterior).start == 3

    def test_notes_without_a_start_are_of_no_region(self):
        """Those of the arm of this name that earlier versions had."""
        assert self.region(self.x, self.y, notes=[[{"arm": "local"}] * 5]) == Region(2, 2, 0.25)


class TestProposals:
    def runs(self, space, who, rng, first=0):
        """Six evaluations of each run, with generators of different seeds."""
        x = space.random(len(who), 6, rng=rng)
        y = torch.stack([torch.tensor([smooth(space)(point) for point in run]) for run in x]).double()
        return Runs(x, y, x[:, :0], [seeded(first + k) for k in range(len(who))], who)

    def embedded(self, rng, others=()):
        """A run's basis as noted at one suggestion and at the next, with other runs beside it."""
        method, space = HDGaBO(2, ("embedded",), **QUICK), Sphere(8)
        _, (first,) = method.propose(space, self.runs(space, [[{}] * 6], rng))
        x, (second, *_) = method.propose(space, self.runs(space, [[{}] * 5 + [first], *others], rng, first=7))
        bases = [torch.tensor(note["full:embedded:2"], dtype=torch.float64) for note in (first, second)]
        return x[0], *bases

    @pytest.mark.parametrize("arm", ["full:local", "full:near"])
    def test_a_local_arm_keeps_to_a_trust_region(self, arm, rng):
        space = SPD(3, eigenvalues=(0.1, 10))
        runs = self.runs(space, [[{}] * 6] * 2, rng)
        worst = runs.x[1, runs.y[1].argmax()].flatten().tolist()
        runs.notes[1] = [{}] * 5 + [{"arm": arm, START: worst}]
        method = HDGaBO(3, ("local",), choice="in-turn", **QUICK)
        if arm == "full:near":  # whose turn is the next
            runs = replace(runs, x=runs.x[:, 1:], y=runs.y[:, 1:], notes=[past[1:] for past in runs.notes])
        x, notes = method.propose(space, runs)
        found = regions_at_best(arm, runs) if arm == "full:near" else regions(arm, space, runs.x, runs)
        assert found[0].radius != found[1].radius
        centres = torch.stack([points[region.centre] for points, region in zip(runs.x, found, strict=True)])
        away = (space.embed(x) - space.embed(centres)).norm(dim=-1)
        assert (away > 0).all()
        assert (away < 1.2 * space.typical_distance * torch.tensor([region.radius for region in found])).all()
        assert [note["arm"] for note in notes] == [arm] * 2
        starts = [points[region.start].flatten().tolist() for points, region in zip(runs.x, found, strict=True)]
        assert [note[START] for note in notes] == starts

    def test_what_a_basis_is_worth_is_noted_where_it_can_be_told(self, rng):
        space = SPD(3)
        for n, criterion, compared in ((26, "likelihood", True), (6, "likelihood", True), (26, "leave-one-out", False)):
            x = space.random(1, n, rng=rng)
            y = torch.tensor([[smooth(space)(point) for point in x[0]]], dtype=torch.float64)
            runs = Runs(x, y, x[:, :0], [seeded(0)], [[{}] * n])
            _, (note,) = HDGaBO(1, ("full", "incumbent"), criterion=criterion, **QUICK).propose(space, runs)
            assert note["arm"] == "nested:1:incumbent"
            assert (note.get("worth:nested:1") is not None) == compared
            if compared:
                assert (note["worth:nested:1"] < 0) == (n == 26)  # nothing is nested
            json.dumps(note, allow_nan=False)

    def test_a_local_arm_on_a_nested_space_keeps_the_rest_of_its_centre(self, rng):
        space = SPD(4)
        runs = self.runs(space, [[{}] * 6], rng)
        x, (note,) = HDGaBO(2, ("local",), **QUICK).propose(space, runs)
        mapping = Nesting(space, SPD(2)).at(torch.tensor([note["nested:2"]["basis"]], dtype=torch.float64))
        centre = torch.tensor(note[START], dtype=torch.float64).reshape(1, 1, 4, 4)
        again = mapping.lift_near(mapping.project(x.unsqueeze(1)), centre).squeeze(1)
        torch.testing.assert_close(again, x, rtol=1e-8, atol=1e-8)

    def test_embedded_spaces_stay_the_same(self, rng):
        """Their basis is in the notes, and the suggestion lies in its span."""
        x, first, second = self.embedded(rng)
        torch.testing.assert_close(first, second, rtol=0, atol=1e-6)
        torch.testing.assert_close(first @ (first.mT @ x), x, rtol=0, atol=1e-6)

    def test_embedded_spaces_stay_the_same_to_the_last_bit(self, rng):
        x, first, second = self.embedded(rng)
        assert torch.equal(first, second)
        torch.testing.assert_close(first @ (first.mT @ x), x, rtol=0, atol=1e-12)

    def test_embedded_spaces_stay_the_same_beside_runs_that_have_none_yet(self, rng):
        _, first, second = self.embedded(rng, others=[[{}] * 6])
        torch.testing.assert_close(first, second, rtol=0, atol=1e-6)

    def test_notes_say_who_suggested_and_what_the_next_fit_wants_to_know(self, rng):
        method = HDGaBO(2, ("incumbent",), initial=3)
        _, (note,) = method.propose(Sphere(6), self.runs(Sphere(6), [[{}] * 6], rng))
        assert note["arm"] == "nested:2:incumbent"
        assert set(note["nested:2"]) == {"parameters", "evaluations", "basis"}
        assert note["steep"] in ([True, 6], [False, 6])

    def test_a_run_is_the_same_beside_one_that_has_not_been_fitted_yet(self, rng):
        method, space = HDGaBO(2, ("incumbent",), **QUICK), Sphere(6)
        _, (note,) = method.propose(space, self.runs(space, [[{}] * 6], seeded(5)))
        both = self.runs(space, [[{}] * 5 + [note], [{}] * 6], rng)
        together, _ = method.propose(space, both)
        alone, _ = method.propose(space, self.runs(space, [[{}] * 5 + [note], [{}] * 6], seeded(0)).take([0]))
        torch.testing.assert_close(together[0], alone[0], rtol=0, atol=5e-3)

    def test_embedded_spaces_are_kept_while_points_are_under_evaluation(self):
        study = Study(Sphere(8), HDGaBO(2, ("embedded",), **QUICK), seed=0)
        study.run(smooth(study.space), 4, progress=False)
        asked = [*study.ask(2), study.ask()]
        assert len({str(trial.memory["full:embedded:2"]) for trial in asked}) == 1

    def test_fits_start_anew_whenever_their_turn_comes(self):
        """Also where the model is chosen at odd counts only, or points come three at a time."""
        assert [due({"evaluations": a}, b) for a, b in ((9, 11), (11, 19), (5, 27), (90, 119), (119, 120))] == [
            True,
            False,
            True,
            False,
            True,
        ]
        assert due(None, 5) is None

    def test_the_papers_distances_on_products(self):
        (arm,) = HDGaBO.paper((1, 2)).arms_on(Product(Sphere(3), SPD(3)))
        assert arm.nesting.compared == Product(Sphere(1), SPD(2, metric="log-euclidean"))

    @pytest.mark.parametrize("lift", ["fitted", "incumbent", "random"])
    def test_lifts_differ_and_keep_the_latent_point(self, lift, rng):
        """All arms of a model search the same latent space, from the same generator."""
        space = Sphere(6)
        runs = self.runs(space, [[{}] * 6], rng)
        x, (note,) = HDGaBO(2, (lift,), **QUICK).propose(space, runs)
        basis = torch.tensor(note["nested:2"]["basis"], dtype=torch.float64)
        mapping, again = NestedSphere(basis), self.runs(space, [[{}] * 6], seeded(0))
        assert torch.equal(again.x, runs.x)
        y, (other,) = HDGaBO(2, ("incumbent",), **QUICK).propose(space, again)
        assert other["nested:2"] == note["nested:2"]
        torch.testing.assert_close(mapping.project(x), mapping.project(y), rtol=0, atol=1e-10)
        if lift == "incumbent":
            torch.testing.assert_close(mapping.lift_near(mapping.project(x), runs.best[0]), x, rtol=0, atol=1e-10)
        if lift == "fitted":
            torch.testing.assert_close(mapping.fit_lift(runs.x[0]).lift(mapping.project(x)), x, rtol=0, atol=1e-8)

    def test_runs_with_different_arms_are_served_together(self, rng):
        """In a batch, each run gets what its own arm suggests."""
        method, space = HDGaBO(2, ("full", "fitted", "incumbent"), "success", **QUICK), Sphere(5)
        who = [notes(*[""] * 2, *[arm] * 4) for arm in ("full", "nested:2:fitted", "nested:2:incumbent", "full")]
        runs = self.runs(space, who, rng)
        x, found = method.propose(space, runs)
        space.check(x, 1e-9)
        assert len({note["arm"] for note in found}) > 1
        for k, note in enumerate(found):
            alone = Runs(runs.x[[k]], runs.y[[k]], runs.pending[[k]], [seeded(k)], [who[k]])
            y, (same,) = method.propose(space, alone)
            assert same["arm"] == note["arm"]
            torch.testing.assert_close(y[0], x[k], rtol=0, atol=1e-3)


class TestStudies:
    @pytest.mark.parametrize(
        ("space", "method"),
        [
            (Sphere(8), HDGaBO(2, initial=3)),
            (SPD(3, eigenvalues=(0.1, 5)), HDGaBO(2, choice="in-turn", **QUICK)),
            (SPD(3, eigenvalues=(0.1, 5)), HDGaBO(2, ("local",), **QUICK)),
        ],
        ids=repr,
    )
    def test_a_loaded_study_goes_on_bit_for_bit(self, space, method, tmp_path):
        f = smooth(space)
        straight = Study(space, method, seed=4).run(f, 8, progress=False).history
        Study(space, method, seed=4, store=tmp_path / "a.db").run(f, 5, progress=False).close()
        loaded = Study.load(tmp_path / "a.db").run(f, 3, progress=False)
        assert loaded.strategy == method
        assert torch.equal(loaded.history.points, straight.points)
        assert [trial.memory for trial in loaded.history] == [trial.memory for trial in straight]
        shares = [standing.share for standing in loaded.standings()]
        assert sum(shares) == pytest.approx(1)
        assert sum(standing.suggestions for standing in loaded.standings()) == 5

    def test_suggestions_keep_eigenvalue_bounds(self):
        """Also where the best is at a corner of them."""
        space = SPD(4, eigenvalues=(0.5, 2))
        corner = torch.diag(torch.tensor([0.5, 0.5, 2.0, 2.0], dtype=torch.float64))
        study = Study(space, HDGaBO(2, ("full", "fitted", "incumbent"), "in-turn", **QUICK), seed=0)
        study.add(corner, 0.0)
        study.run(lambda x: float((x - corner).square().sum()), 6, progress=False)
        space.check(torch.stack([trial.x for trial in study.ask(2)]), 1e-9)
        space.check(study.history.points, 1e-9)
        arms = {trial.memory.get("arm") for trial in study.history}
        assert {"full", "nested:2:fitted", "nested:2:incumbent"} <= arms

    def test_points_asked_together_are_distinct(self):
        study = Study(Sphere(6), HDGaBO(2, ("incumbent", "fitted"), **QUICK), seed=0)
        study.run(smooth(Sphere(6)), 5, progress=False)
        points = torch.stack([trial.x for trial in study.ask(3)])
        assert (Sphere(6).pairwise_dist(points, points) + 10 * torch.eye(3) > 1e-3).all()

    @pytest.mark.parametrize(
        ("space", "method"), [(Sphere(6), HDGaBO(2, initial=3)), (SPD(3), HDGaBO(2, ("local",), **QUICK))], ids=repr
    )
    def test_maximising_is_minimising_the_negative(self, space, method):
        f = smooth(space)
        least = Study(space, method, seed=1).run(f, 7, progress=False)
        most = Study(space, method, seed=1, direction="maximize").run(lambda x: -f(x), 7, progress=False)
        assert torch.equal(least.history.points, most.history.points)
        assert most.best.value == -least.best.value

    def test_a_product_with_a_factor_left_whole(self):
        method = HDGaBO((2, None), choice="in-turn", **QUICK)
        study = Study(BOTH, method, seed=0).run(smooth(BOTH), 8, progress=False)
        BOTH.check(study.history.points, 1e-9)
        assert all(trial.status == "told" for trial in study.history)
        arms = {trial.memory.get("arm", "none") for trial in study.history}
        assert {"full", "nested:2,none:incumbent", "full:embedded:2,none"} <= arms

    def test_the_papers_configuration_runs(self):
        for space in (Sphere(5), SPD(3, eigenvalues=(0.1, 5))):
            study = Study(space, HDGaBO.paper(2), seed=0).run(smooth(space), 7, progress=False)
            space.check(study.history.points, 1e-9)
            assert [trial.memory.get("arm") for trial in study.history] == [None] * 5 + ["nested:2:fitted"] * 2

    @pytest.mark.parametrize(
        ("space", "method"), [(Sphere(6), HDGaBO(2, **QUICK)), (SPD(3), HDGaBO(2, ("local",), **QUICK))], ids=repr
    )
    def test_failures_are_survived(self, space, method):
        study = Study(space, method, seed=0)
        f, seen = smooth(space), iter(range(8))
        study.run(lambda x: math.nan if next(seen) % 2 else f(x), 8, progress=False)
        assert [trial.status for trial in study.history] == ["told", "failed"] * 4
        space.check(study.ask().x, 1e-9)

    def test_local_searches_asked_together_are_one(self):
        study = Study(SPD(3), HDGaBO(2, ("local",), **QUICK), seed=0).run(smooth(SPD(3)), 6, progress=False)
        together = study.ask(3)
        assert len({tuple(trial.memory[START]) for trial in together}) == 1
        assert len({tuple(trial.x.flatten().tolist()) for trial in together}) == 3


def test_a_hidden_function_is_minimised_better_than_at_random():
    """1 − ⟨z, target⟩ of z on S² in S¹⁰, two trials at once."""
    space, count = Sphere(10), 2
    mappings = [NestedSphere.random(space, Sphere(2), seeded(seed)) for seed in range(count)]
    x0 = torch.stack([space.random(5, rng=seeded(10 + seed)) for seed in range(count)])

    def evaluate(x):
        return torch.stack([1 - mapping.project(points)[:, 0] for mapping, points in zip(mappings, x, strict=True)])

    def best(method, budget):
        x, who = x0, [[{}] * 5 for _ in range(count)]
        while x.shape[1] < budget:
            rngs = [seeded(100 * x.shape[1] + k) for k in range(count)]
            new, found = method.propose(space, Runs(x, evaluate(x), x[:, :0], rngs, who))
            x, who = torch.cat([x, new.unsqueeze(1)], 1), [[*a, b] for a, b in zip(who, found, strict=True)]
        return evaluate(x).amin(1)

    ours, random = best(HDGaBO(2, outputs="standardise"), 22), best(RandomSearch(), 60)
    assert (ours < 0.2 * random).all()
