"""HD-GaBO: its text form, its arms, how they are chosen, and studies with it."""

import json
import math
from dataclasses import dataclass, replace

import pytest
import torch

import nestbo as nb
from nestbo import SPD, ArgumentError, Box, Euclidean, HDGaBO, Product, RandomSearch, Sphere, Study, strategy
from nestbo.memory import Fit, Memory
from nestbo.nested import NestedProduct, NestedSPD, NestedSphere, Nesting
from nestbo.search.runs import Runs
from nestbo.search.sections import Section, same
from nestbo.strategies.arms import ARMS, Arm, Kind, Lifted
from nestbo.strategies.local import Region, regions, regions_at_best

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
        kind = Kind("nested:5", Nesting(SPD(10), SPD(5), logarithmic=True))
        assert arm == Lifted("nested:5:fitted", kind, "fitted")


class TestArms:
    def test_on_spheres_and_matrices(self):
        assert names(Sphere(50), 2) == ["full", "nested:2:incumbent", "full:embedded:2"]
        assert names(SPD(10), 2) == ["full", "nested:2:incumbent", "nested:2:local"]
        assert names(SPD(10), 2, ("full", "local")) == ["full", "nested:2:local"]
        assert names(Sphere(6)) == ["full", "nested:2:incumbent", "full:embedded:2", "nested:5:incumbent"]
        assert names(SPD(10), 2, ("incumbent", "fitted")) == ["nested:2:incumbent", "nested:2:fitted"]
        assert names(SPD(10), 2, ("random", "full")) == ["full", "nested:2:random"]
        models = ["nested:2", "nested:3"]
        wanted = [f"{model}:{way}" for way in ("incumbent", "local") for model in models]
        assert names(SPD(10)) == ["full", *wanted]

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
        assert (arm.name, arm.kind, arm.scout) == ("full:embedded:2", Kind(), True)
        assert names(Sphere(3), 2, ("embedded",)) == ["full"]
        (arm,) = HDGaBO((2, 2), ("embedded",)).arms_on(Product(Sphere(20), SPD(4)))
        assert arm.nesting.latent.factors[1] == SPD(4)

    def test_arms_that_differ_in_the_lift_search_the_same(self):
        first, second = HDGaBO(2, ("incumbent", "fitted")).arms_on(Sphere(50))
        assert first.kind == second.kind == Kind("nested:2", Nesting(Sphere(50), Sphere(2)))
        assert first.name != second.name

    def test_of_a_product_some_factors_may_stay_whole(self):
        (arm,) = HDGaBO((2, None), ("fitted",)).arms_on(BOTH)
        assert arm.name == "nested:2,none:fitted"
        assert arm.kind.nesting.latent == Product(Sphere(2), SPD(3))

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
        assert study.history[-1].memory.arm.endswith(":incumbent")


@dataclass(frozen=True)
class Opposite(Arm):
    """The full model, searched at the antipodes of where it would be: an arm of somebody else."""

    name: str
    kind: Kind = Kind()
    scout: bool = True

    @classmethod
    def on(cls, place):
        return [cls(f"opposite:{place.size}")] if isinstance(place.space, Sphere) else []

    def section(self, space, model, runs):
        memories = [Memory(own={"turned": run}) for run in range(len(runs.rngs))]
        pending = model.seen(runs.pending)
        return Section(space, lambda x: -x, same, runs.x, model, runs, pending, None, memories)


class TestNewArms:
    """One that is registered is an arm like the others."""

    @pytest.fixture(autouse=True)
    def registered(self, monkeypatch):
        monkeypatch.setitem(ARMS, "opposite", Opposite.on)

    def test_it_takes_part_where_it_says_so(self):
        assert names(Sphere(6), 2, ("full", "opposite")) == ["full", "opposite:2"]
        assert names(Sphere(6), "auto", ("full", "opposite")) == ["full", "opposite:2", "opposite:5"]
        assert names(SPD(3), 2, ("full", "opposite")) == ["full"]
        method = HDGaBO(2, ("full", "opposite"))
        assert strategy(method.specification) == method

    def test_one_that_is_registered_again_takes_the_place_of_the_first(self, monkeypatch):
        assert names(Sphere(6), 2, ("full", "opposite")) == ["full", "opposite:2"]
        monkeypatch.setitem(ARMS, "opposite", lambda place: [Opposite("another")])
        assert names(Sphere(6), 2, ("full", "opposite")) == ["full", "another"]

    def test_it_suggests_and_its_memory_comes_back(self, tmp_path):
        space, f = Sphere(6), smooth(Sphere(6))
        method = HDGaBO(2, ("full", "opposite"), "in-turn", **QUICK)
        with Study(space, method, seed=0, store=tmp_path / "s.db") as study:
            study.run(f, 7, progress=False)
        memories = [trial.memory for trial in Study.load(tmp_path / "s.db").history]
        assert [memory.arm for memory in memories[3:]] == ["opposite:2", "full"] * 2
        assert memories[3].own == {"turned": 0}
        assert memories[4].own == {}
        assert set(memories[3].fits) == set(memories[4].fits) == {"full"}

    def test_it_reaches_the_space_as_it_says(self):
        """From the same generator the full model suggests the point on the other side."""
        space = Sphere(6)
        x = space.random(1, 6, rng=seeded(0))
        runs = lambda: Runs(x, x[..., 0], x[:, :0], [seeded(1)], [[Memory()] * 6])
        (full, _), (opposite, _) = (HDGaBO(2, (arm,), **QUICK).propose(space, runs()) for arm in ("full", "opposite"))
        assert torch.equal(opposite, -full)

    def test_a_scout_has_its_turn(self):
        study = Study(Sphere(12), HDGaBO(2, ("full", "incumbent", "opposite"), **QUICK), seed=0)
        for x in Sphere(12).random(9, rng=seeded(0)):
            study.add(x, float(x[0]))
        assert study.ask().memory.arm == "opposite:2"
        assert "opposite:2" in {standing.arm for standing in study.standings()}


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


def remembered(*arms):
    """The memories of suggestions by these arms; an empty name for an initial point."""
    return [Memory(arm or None) for arm in arms]


def data(space, who, y, rng):
    """One run with these arms and values."""
    x = space.random(1, len(y), rng=rng)
    return Runs(x, torch.tensor([y], dtype=torch.float64), x[:, :0], [seeded(0)], [who])


class TestModels:
    y = (5.0, 4.0, 3.0, 6.0, 6.0)

    def test_the_model_of_the_most_successful_arm_leads(self, rng):
        method = HDGaBO(2, ("full", "fitted", "incumbent"), outputs="standardise")
        for first, second in (("full", "nested:2:fitted"), ("nested:2:incumbent", "full")):
            who = remembered("", first, first, second, second)
            models = method.models(Sphere(6), data(Sphere(6), who, self.y, rng))
            assert list(models) == [first.removesuffix(":incumbent"), second.removesuffix(":fitted")]

    def test_there_is_one_model_for_each_size_and_one_for_the_space(self, rng):
        models = HDGaBO(outputs="standardise").models(Sphere(7), data(Sphere(7), [Memory()] * 5, self.y, rng))
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
        (model,) = HDGaBO.paper(size).models(space, data(space, [Memory()] * 5, self.y, rng)).values()
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
        who = [Memory("local", start=start) for start in starts]
        runs = Runs(points, values, points[:, :0], [seeded(seed)], [[Memory()] * (len(x) - len(starts)) + who])
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
                asked = [[Memory("local", start=10)]]
                assert self.region(where, found, (2, 3, 0, 4, 5), asked=asked) == Region(10, 10, 0.25)
                after = self.region((*where, 0.35), (*found, 0.9), (2, 3, 0, 4, 5, 10))
                assert after == Region(10, 10, pytest.approx(0.75 * 0.25))

    def test_one_at_the_best_point_is_widened_and_narrowed_and_begins_anew(self):
        def found(y, mine):
            points = torch.zeros(1, len(y), 1, dtype=torch.float64)
            who = remembered(*[""] * (len(y) - mine), *["near"] * mine)
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
        asked = [[Memory("local", start=6)]]
        assert {self.region(x, y, (2,), seed, asked=asked).start for seed in range(9)} == {6}

    def test_it_begins_neither_at_a_failure_nor_where_a_constraint_is_violated(self):
        feasible = torch.tensor([[True, True, False, True, True]])
        assert self.region(self.x, self.y, feasible=feasible).start == 3
        failed = torch.tensor([[False, False, False, True]])
        assert self.region((0.0, 0.01, 0.02, 0.9), (1.0, 2.0, 3.0, 3.0), failed=failed).start == 2

    def test_where_values_are_noisy_the_model_says_which_is_the_best(self):
        posterior = torch.tensor([[3.0, 4.0, 1.0, 2.0, 5.0]])
        assert self.region(self.x, self.y, posterior=posterior).start == 3

    def test_memories_without_a_start_are_of_no_region(self):
        """Those of the arm of this name that earlier versions had, whose starts had coordinates."""
        assert self.region(self.x, self.y, memories=[remembered(*["local"] * 5)]) == Region(2, 2, 0.25)

    def test_nor_are_those_whose_start_is_not_among_the_evaluations(self):
        memories = [[Memory("local", start=99), Memory("local", start=-1), *[Memory()] * 3]]
        assert self.region(self.x, self.y, memories=memories) == Region(2, 2, 0.25)

    def test_starts_are_indices_of_trials_not_places(self):
        """Trials 0 and 3 are still under evaluation, so that trial 4 is the third evaluation."""
        better = self.region((*self.x, 0.6), (*self.y, 2.5), (4,), indices=[[1, 2, 4, 5, 6, 7]])
        assert better == Region(2, 5, pytest.approx(1.6 * 0.25))


class TestProposals:
    def runs(self, space, who, rng, first=0):
        """Six evaluations of each run, with generators of different seeds."""
        x = space.random(len(who), 6, rng=rng)
        y = torch.stack([torch.tensor([smooth(space)(point) for point in run]) for run in x]).double()
        return Runs(x, y, x[:, :0], [seeded(first + k) for k in range(len(who))], who)

    def embedded(self, rng, others=()):
        """What a run remembers of its space at one suggestion and at the next, with other runs beside it."""
        method, space = HDGaBO(2, ("embedded",), **QUICK), Sphere(8)
        _, (first,) = method.propose(space, self.runs(space, [[Memory()] * 6], rng))
        runs = self.runs(space, [[Memory()] * 5 + [first], *others], rng, first=7)
        x, (second, *more) = method.propose(space, runs)
        return x[0], first, second, *more

    def basis(self, memory):
        """Of the embedded space that a memory holds."""
        return torch.tensor(memory.columns, dtype=torch.float64).reshape(9, 4)

    @pytest.mark.parametrize("arm", ["full:local", "full:near"])
    def test_a_local_arm_keeps_to_a_trust_region(self, arm, rng):
        space = SPD(3, eigenvalues=(0.1, 10))
        runs = self.runs(space, [[Memory()] * 6] * 2, rng)
        worst = int(runs.y[1].argmax())
        runs.memories[1] = [Memory()] * 5 + [Memory(arm, start=worst)]
        method = HDGaBO(3, ("local",), choice="in-turn", **QUICK)
        if arm == "full:near":  # whose turn is the next
            runs = replace(runs, x=runs.x[:, 1:], y=runs.y[:, 1:], memories=[past[1:] for past in runs.memories])
        x, memories = method.propose(space, runs)
        found = regions_at_best(arm, runs) if arm == "full:near" else regions(arm, space, runs.x, runs)
        assert found[0].radius != found[1].radius
        centres = torch.stack([points[region.centre] for points, region in zip(runs.x, found, strict=True)])
        away = (space.embed(x) - space.embed(centres)).norm(dim=-1)
        assert (away > 0).all()
        assert (away < 1.2 * space.typical_distance * torch.tensor([region.radius for region in found])).all()
        assert [memory.arm for memory in memories] == [arm] * 2
        starts = [None] * 2 if arm == "full:near" else [region.start for region in found]
        assert [memory.start for memory in memories] == starts

    @pytest.mark.parametrize(("arm", "turn"), [("full:local", 6), ("full:near", 5)])
    def test_a_local_arm_of_the_full_model_fits_that_only_where_values_are_noisy(self, arm, turn, rng):
        space, method = SPD(3), HDGaBO(3, ("local",), choice="in-turn", **QUICK)
        runs = self.runs(space, [[Memory()] * 6], rng).only(list(range(turn)))
        for noisy, models in ((False, set()), (True, {"full"})):
            _, (memory,) = method.propose(space, replace(runs, noisy=noisy))
            assert (memory.arm, set(memory.fits)) == (arm, models)
            assert (memory.noise is not None) == noisy

    def test_what_a_basis_is_worth_is_remembered_where_it_can_be_told(self, rng):
        space = SPD(3)
        for n, criterion, compared in ((26, "likelihood", True), (6, "likelihood", True), (26, "leave-one-out", False)):
            x = space.random(1, n, rng=rng)
            y = torch.tensor([[smooth(space)(point) for point in x[0]]], dtype=torch.float64)
            runs = Runs(x, y, x[:, :0], [seeded(0)], [[Memory()] * n])
            _, (memory,) = HDGaBO(1, ("full", "incumbent"), criterion=criterion, **QUICK).propose(space, runs)
            assert memory.arm == "nested:1:incumbent"
            assert set(memory.worth) == ({"nested:1"} if compared else set())
            if compared:
                assert (memory.worth["nested:1"] < 0) == (n == 26)  # nothing is nested
            json.dumps(memory.json, allow_nan=False)

    def test_a_local_arm_on_a_nested_space_keeps_the_rest_of_its_centre(self, rng):
        space = SPD(4)
        runs = self.runs(space, [[Memory()] * 6], rng)
        x, (memory,) = HDGaBO(2, ("local",), **QUICK).propose(space, runs)
        basis = torch.tensor(memory.fits["nested:2"].basis, dtype=torch.float64).reshape(1, 4, 2)
        mapping, centre = Nesting(space, SPD(2)).at(basis), runs.x[:, [memory.start]]
        again = mapping.lift_near(mapping.project(x.unsqueeze(1)), centre).squeeze(1)
        torch.testing.assert_close(again, x, rtol=1e-8, atol=1e-8)

    def test_embedded_spaces_stay_the_same(self, rng):
        """The first memory of one holds its basis, the others its name, and suggestions lie in its span."""
        x, first, second = self.embedded(rng)
        basis = self.basis(first)
        assert second.frame == first.frame is not None
        assert second.columns == ()
        torch.testing.assert_close(basis @ (basis.mT @ x), x, rtol=0, atol=1e-12)

    def test_embedded_spaces_stay_the_same_to_the_last_bit(self, rng):
        """Also where memories went through a file."""
        method, space = HDGaBO(2, ("embedded",), **QUICK), Sphere(8)
        _, (first,) = method.propose(space, self.runs(space, [[Memory()] * 6], rng))
        read = Memory.of(json.loads(json.dumps(first.json)))
        assert read == first
        again = [self.runs(space, [[Memory()] * 5 + [each]], seeded(3), first=7) for each in (first, read)]
        (x, same), (y, other) = (method.propose(space, runs) for runs in again)
        assert torch.equal(x, y)
        assert same == other

    def test_embedded_spaces_stay_the_same_beside_runs_that_have_none_yet(self, rng):
        x, first, second, other = self.embedded(rng, others=[[Memory()] * 6])
        basis = self.basis(first)
        assert second.frame == first.frame != other.frame
        assert other.columns
        torch.testing.assert_close(basis @ (basis.mT @ x), x, rtol=0, atol=1e-12)

    def test_an_embedded_space_whose_basis_is_lost_is_followed_by_another(self, rng):
        method, space = HDGaBO(2, ("embedded",), **QUICK), Sphere(8)
        for lost in (Memory("full:embedded:2", frame=7), Memory("full:embedded:2")):
            _, (memory,) = method.propose(space, self.runs(space, [[Memory()] * 5 + [lost]], rng))
            assert memory.columns
            assert memory.frame != lost.frame

    def test_an_exhausted_embedded_space_is_followed_by_another(self, rng):
        """After forty failures, but not while one of its points is under evaluation."""
        method, space = HDGaBO(2, ("embedded",), **QUICK), Sphere(8)
        x = space.random(1, 41, rng=rng)
        first = Memory("full:embedded:2", frame=1, columns=tuple(torch.eye(9, 4).flatten().tolist()))
        memories = [Memory(), first, *[Memory("full:embedded:2", frame=1)] * 39]
        y = torch.tensor([[0.0, *range(1, 41)]], dtype=torch.float64)
        runs = Runs(x, y, x[:, :0], [seeded(0)], [memories])
        _, (memory,) = method.propose(space, runs)
        assert memory.columns
        assert memory.frame != 1
        _, (memory,) = method.propose(space, runs.with_pending(x[:, 0], [Memory("full:embedded:2", frame=1)]))
        assert (memory.frame, memory.columns) == (1, ())

    def test_memories_say_who_suggested_and_what_the_next_fit_wants_to_know(self, rng):
        method = HDGaBO(2, ("incumbent",), initial=3)
        _, (memory,) = method.propose(Sphere(6), self.runs(Sphere(6), [[Memory()] * 6], rng))
        found = memory.fits["nested:2"]
        assert found == Fit(found.parameters, 6, found.basis)
        assert (len(found.parameters), len(found.basis)) == (2, 7 * 3)
        assert memory.steep in ((True, 6), (False, 6))
        assert memory == Memory("nested:2:incumbent", {"nested:2": found}, steep=memory.steep)

    def test_a_run_is_the_same_beside_one_that_has_not_been_fitted_yet(self, rng):
        method, space = HDGaBO(2, ("incumbent",), **QUICK), Sphere(6)
        _, (memory,) = method.propose(space, self.runs(space, [[Memory()] * 6], seeded(5)))
        who = [[Memory()] * 5 + [memory], [Memory()] * 6]
        together, _ = method.propose(space, self.runs(space, who, rng))
        alone, _ = method.propose(space, self.runs(space, who, seeded(0)).take([0]))
        torch.testing.assert_close(together[0], alone[0], rtol=0, atol=5e-3)

    def test_embedded_spaces_are_kept_while_points_are_under_evaluation(self):
        study = Study(Sphere(8), HDGaBO(2, ("embedded",), **QUICK), seed=0)
        study.run(smooth(study.space), 4, progress=False)
        asked = [*study.ask(2), study.ask()]
        assert len({trial.memory.frame for trial in asked}) == 1
        assert [bool(trial.memory.columns) for trial in asked] == [False] * 3  # the first suggestion has them

    def test_the_papers_distances_on_products(self):
        (arm,) = HDGaBO.paper((1, 2)).arms_on(Product(Sphere(3), SPD(3)))
        assert arm.kind.nesting.compared == Product(Sphere(1), SPD(2, metric="log-euclidean"))

    @pytest.mark.parametrize("lift", ["fitted", "incumbent", "random"])
    def test_lifts_differ_and_keep_the_latent_point(self, lift, rng):
        """All arms of a model search the same latent space, from the same generator."""
        space = Sphere(6)
        runs = self.runs(space, [[Memory()] * 6], rng)
        x, (memory,) = HDGaBO(2, (lift,), **QUICK).propose(space, runs)
        basis = torch.tensor(memory.fits["nested:2"].basis, dtype=torch.float64).reshape(7, 3)
        mapping, again = NestedSphere(basis), self.runs(space, [[Memory()] * 6], seeded(0))
        assert torch.equal(again.x, runs.x)
        y, (other,) = HDGaBO(2, ("incumbent",), **QUICK).propose(space, again)
        assert other.fits == memory.fits
        torch.testing.assert_close(mapping.project(x), mapping.project(y), rtol=0, atol=1e-10)
        if lift == "incumbent":
            torch.testing.assert_close(mapping.lift_near(mapping.project(x), runs.best[0]), x, rtol=0, atol=1e-10)
        if lift == "fitted":
            torch.testing.assert_close(mapping.fit_lift(runs.x[0]).lift(mapping.project(x)), x, rtol=0, atol=1e-8)

    def test_runs_with_different_arms_are_served_together(self, rng):
        """In a batch, each run gets what its own arm suggests."""
        method, space = HDGaBO(2, ("full", "fitted", "incumbent"), "success", **QUICK), Sphere(5)
        who = [remembered(*[""] * 2, *[arm] * 4) for arm in ("full", "nested:2:fitted", "nested:2:incumbent", "full")]
        runs = self.runs(space, who, rng)
        x, found = method.propose(space, runs)
        space.check(x, 1e-9)
        assert len({memory.arm for memory in found}) > 1
        for k, memory in enumerate(found):
            alone = Runs(runs.x[[k]], runs.y[[k]], runs.pending[[k]], [seeded(k)], [who[k]])
            y, (same,) = method.propose(space, alone)
            assert same.arm == memory.arm
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
        arms = {trial.memory.arm for trial in study.history}
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
        arms = {trial.memory.arm for trial in study.history}
        assert {"full", "nested:2,none:incumbent", "full:embedded:2,none"} <= arms

    def test_the_papers_configuration_runs(self):
        for space in (Sphere(5), SPD(3, eigenvalues=(0.1, 5))):
            study = Study(space, HDGaBO.paper(2), seed=0).run(smooth(space), 7, progress=False)
            space.check(study.history.points, 1e-9)
            assert [trial.memory.arm for trial in study.history] == [None] * 5 + ["nested:2:fitted"] * 2

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
        assert len({trial.memory.start for trial in together}) == 1
        assert together[0].memory.start in range(6)
        assert len({tuple(trial.x.flatten().tolist()) for trial in together}) == 3


def test_a_hidden_function_is_minimised_better_than_at_random():
    """1 − ⟨z, target⟩ of z on S² in S¹⁰, two trials at once."""
    space, count = Sphere(10), 2
    mappings = [NestedSphere.random(space, Sphere(2), seeded(seed)) for seed in range(count)]
    x0 = torch.stack([space.random(5, rng=seeded(10 + seed)) for seed in range(count)])

    def evaluate(x):
        return torch.stack([1 - mapping.project(points)[:, 0] for mapping, points in zip(mappings, x, strict=True)])

    def best(method, budget):
        x, who = x0, [[Memory()] * 5 for _ in range(count)]
        while x.shape[1] < budget:
            rngs = [seeded(100 * x.shape[1] + k) for k in range(count)]
            new, found = method.propose(space, Runs(x, evaluate(x), x[:, :0], rngs, who))
            x, who = torch.cat([x, new.unsqueeze(1)], 1), [[*a, b] for a, b in zip(who, found, strict=True)]
        return evaluate(x).amin(1)

    ours, random = best(HDGaBO(2, outputs="standardise"), 22), best(RandomSearch(), 60)
    assert (ours < 0.2 * random).all()
