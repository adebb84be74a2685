"""A metric that is learned, great spheres that the data span, basins that are closed."""

from dataclasses import replace

import pytest
import torch

import nestbo as nb
from nestbo import (
    SPD,
    ArgumentError,
    Box,
    GaBO,
    HDGaBO,
    Memory,
    Product,
    Quaternion,
    Simplex,
    Sphere,
    Study,
    Torus,
)
from nestbo.kernels import kernel
from nestbo.search import Runs, seen
from nestbo.strategies.aligned import along_axes
from nestbo.strategies.closing import _outside, close_basins
from nestbo.strategies.competing import Kind, kinds_on, scores
from nestbo.strategies.great_spheres import Span, beside, grown, outlook, spans
from nestbo.surrogate import Data, Description, Metric, Sight, fit


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def runs_of(x, y, memories=None):
    memories = memories or [[Memory()] * x.shape[1] for _ in x]
    return Runs(x, y, x[:, :0], [seeded(k) for k in range(len(x))], memories)


BLOCKS = Product(Sphere(2), Box([0.0, 0.0], [1.0, 40.0]), Torus(2))


class TestBlocks:
    """Each factor of a product has a block of its own."""

    @pytest.mark.parametrize(
        ("space", "full", "diagonal"),
        [
            (Sphere(3), 10, 0),
            (Quaternion(), 10, 0),
            (Box([0.0] * 4, [1.0] * 4), 10, 4),
            (SPD(2), 6, 3),
            (Simplex(2), 6, 3),
            (Torus(5), 5, 5),
            (SPD(12), 78, 78),
            (Box(0, 1), 0, 0),
            (Torus(1), 0, 0),
            (Product(Box(0, 1), Box(0, 1)), 0, 0),
            (BLOCKS, 6 + 3 + 2, 2 + 2),
        ],
        ids=repr,
    )
    def test_how_many_numbers_are_learned(self, space, full, diagonal):
        assert Metric(Sight(space), 1.0).size == full
        assert Metric(Sight(space), 1.0, diagonal=True).size == diagonal

    def test_where_nothing_is_learned_nothing_competes_and_l_is_the_identity(self):
        boxes = Product(Box(0, 1), Box(0, 1), Box(0, 1))
        assert [kind.name for kind in kinds_on(boxes, "full", "auto")] == ["full:0"]
        nothing, identity = torch.zeros(2, 0, dtype=torch.float64), torch.eye(3, dtype=torch.float64)
        assert torch.equal(Metric(Sight(boxes), 1.0).factor(nothing), identity.expand(2, 3, 3))

    def test_factors_do_not_mix(self):
        metric = Metric(Sight(BLOCKS), 1.0)
        factor = metric.factor(normal(metric.size))
        counts = metric.sight.counts
        assert counts == [3, 2, 4]
        inside = torch.block_diag(*(torch.ones(count, count) for count in counts)).bool()
        assert (factor[~inside] == 0).all()
        assert (factor[inside][:13] != 0).all()

    def test_cosine_and_sine_of_an_angle_have_one_scale(self):
        metric = Metric(Sight(Torus(3)), 1.0)
        scales = metric.factor(normal(metric.size)).diagonal()
        torch.testing.assert_close(scales[:3], scales[3:])
        assert len(set(scales[:3].tolist())) == 3

    @pytest.mark.parametrize("space", [BLOCKS, Quaternion(), Simplex(3), SPD(3)], ids=repr)
    def test_what_is_seen_are_points_where_the_kernel_lives(self, space):
        metric = Metric(Sight(space), 1.0)
        phi = metric.sight.coordinates(space.random(9, rng=seeded(0)))
        seen = metric.sight.warped(metric.factor(normal(metric.size)), phi)
        metric.sight.seen.check(seen)

    def test_both_signs_of_a_quaternion_are_seen_alike(self):
        metric = Metric(Sight(Quaternion()), 1.0)
        q, factor = Quaternion().random(5, rng=seeded(0)), metric.factor(normal(metric.size))
        here, there = (metric.sight.warped(factor, metric.sight.coordinates(x)) for x in (q, -q))
        torch.testing.assert_close(Quaternion().embed(here), Quaternion().embed(there))

    def test_a_study_learns_which_coordinate_matters(self):
        space = Product(Quaternion(), Box([0.0] * 3, [1.0] * 3))
        study = Study(space, GaBO(metric="diagonal"), seed=0)
        study.run(lambda x: float((4 * x[4] - 1.3).sin()), 20, progress=False)
        scales = study.model().metric.factor.diagonal()
        assert scales[4:].argmax() == 0
        torch.testing.assert_close(scales[:4], torch.ones(4).double())


class TestMetric:
    def test_no_entries_are_the_isotropic_kernel(self):
        metric = Metric(Sight(Sphere(4)), 1.0)
        torch.testing.assert_close(metric.factor(torch.zeros(metric.size, dtype=torch.float64)), torch.eye(5).double())

    @pytest.mark.parametrize("strength", [0.25, 1.0])
    def test_factors_are_near_the_exponential(self, strength):
        """Symmetric, positive definite, and of determinant about 1, since S has no trace."""
        metric = Metric(Sight(Sphere(4)), strength)
        factor = metric.factor(normal(7, metric.size))
        torch.testing.assert_close(factor, factor.mT)
        assert (torch.linalg.eigvalsh(factor) > 0).all()
        assert (factor.logdet().abs() < 0.5 * strength).all()

    def test_a_multiple_of_the_identity_in_s_changes_nothing(self):
        metric = Metric(Sight(Sphere(2)), 1.0)
        entries = torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0, 0.0], dtype=torch.float64)
        torch.testing.assert_close(metric.factor(3 * entries), torch.eye(3).double())

    def test_coordinates_of_matrices_keep_the_log_euclidean_distance(self):
        space, sight = SPD(3), Sight(SPD(3))
        x, y = space.random(2, 10, rng=seeded(0))
        straight = (sight.coordinates(x) - sight.coordinates(y)).norm(dim=-1)
        ratio = straight / (space.embed(x) - space.embed(y)).norm(dim=-1)
        torch.testing.assert_close(ratio, ratio[:1].expand(10))
        assert sight.count == 6

    def test_what_is_seen_of_a_sphere_is_on_one(self):
        metric = Metric(Sight(Sphere(3)), 1.0)
        seen = metric.sight.warped(metric.factor(normal(metric.size)), Sphere(3).random(9, rng=seeded(1)))
        torch.testing.assert_close(seen.norm(dim=-1), torch.ones(9).double())

    def test_the_direction_that_matters_is_learned(self):
        """A function of the first coordinate: the metric stretches it, and predicts better than the isotropic model."""
        x = Box([0.0] * 6, [1.0] * 6).random(1, 60, rng=seeded(0))
        f = lambda x: (6 * x[..., 0]).sin()
        sight, test = Sight(Box([0.0] * 6, [1.0] * 6)), Box([0.0] * 6, [1.0] * 6).random(1, 200, rng=seeded(1))
        data = Data(x, f(x), [seeded(2)])
        learned = fit(Description(kernel("matern52", sight.seen), metric=Metric(sight, 1.0)), data)
        isotropic = fit(Description(kernel("matern52", sight.space)), data)
        errors = [(model.predict(test) - f(test)).square().mean().sqrt().item() for model in (learned, isotropic)]
        assert errors[0] < 0.3 * errors[1]
        stretched = learned.metric.factor[0].norm(dim=0)
        assert stretched.argmax() == 0


class TestGreatSpheres:
    def test_small_spheres_and_other_spaces_are_searched_as_a_whole(self):
        for space in (Sphere(20), SPD(3), Box([0.0] * 30, [1.0] * 30)):
            runs = runs_of(space.random(1, 5, rng=seeded(0)), torch.zeros(1, 5).double())
            assert spans(space, "auto", runs) == [Span(space.dim)]
            assert outlook(space, space.dim, runs).place == space

    def test_the_first_points_lie_in_it(self):
        space = Sphere(50)
        runs = runs_of(space.random(2, 5, rng=seeded(0)), torch.zeros(2, 5).double())
        look = outlook(space, 8, runs)
        assert look.place == Sphere(8)
        torch.testing.assert_close(look.mapping.lift(look.mapping.project(runs.x)), runs.x)
        assert [memory.span for memory in look.memories] == [(0, 1, 2, 3, 4)] * 2

    def test_nobody_needs_to_know_the_dimension(self):
        runs = runs_of(Sphere(50).random(1, 5, rng=seeded(0)), torch.zeros(1, 5).double())
        sizes = [spans(Sphere(50), told, runs)[0].size for told in ("auto", 5, 2, None)]
        assert sizes == [8, 8, 5, 50]

    def test_a_stall_is_followed_by_two_steps_beside_it(self):
        told, step = Memory(arm="spanned:8:1"), Memory(arm="beside")
        fall = lambda lucky: [5.0, 3.0, *(3.0 - sum(lucky[: k + 1]) for k in range(len(lucky)))]
        grow = lambda memories, lucky, most=50: grown([Memory()] * 2 + memories, fall(lucky), 8, most)
        assert grow([Memory()] * 30, [False] * 30) == Span(8)  # random points are no suggestions
        assert grow([told] * 15, [False] * 15) == Span(8)
        assert grow([told] * 16, [False] * 16) == Span(8, 1)
        assert grow([told] * 16, [False] * 15 + [True]) == Span(8)
        stall = [told] * 16
        assert grow([*stall, step], [False] * 17) == Span(8, -1)
        assert grow([*stall, step, step], [False] * 18) == Span(9)
        assert grow([*stall, step, step, *stall], [False] * 34) == Span(9)  # the next stall has to be twice as long
        assert grow([*stall, step, step, *stall, *stall], [False] * 50) == Span(9, 1)
        quiet, luckless = [False] * 16, [False] * 2
        tried = lambda count: [*stall, *[step] * count]
        assert grow(tried(1), [*quiet, True]) == Span(9, 1)  # the next direction at once
        assert grow(tried(2), [*quiet, False, True]) == Span(9, 1)
        assert grow(tried(2), [*quiet, True, False]) == Span(9, -1)
        assert grow(tried(3), [*quiet, True, *luckless]) == Span(18)  # may have been chance
        assert grow(tried(4), [*quiet, True, True, *luckless]) == Span(20)
        assert grow(tried(3), [*quiet, True, *luckless], 12) == Span(12)
        assert grow(tried(3), [*quiet, True, True, True]) == Span(50)  # no chance
        assert grow(tried(5), [*quiet, True, False, True, False, True]) == Span(50)
        assert grow([*tried(3), *stall], [*quiet, True, True, True, *quiet]) == Span(50)
        assert grow([*tried(3), *stall], [*quiet, True, *luckless, *quiet]) == Span(18, 1)
        assert grow([*stall, step, step], [False] * 18, 9) == Span(9)
        assert grow(stall, [False] * 16, 8) == Span(8)  # the whole sphere: there is nothing beside it

    def test_steps_lie_in_the_next_great_sphere_on_both_sides_of_the_best_point(self):
        space = Sphere(50)
        x, y = space.random(1, 5, rng=seeded(0)), torch.tensor([[3.0, 1.0, 2.0, 4.0, 5.0]]).double()
        first = outlook(space, 8, runs_of(x, y))
        runs = runs_of(x, y, [[Memory()] * 4 + first.memories])
        there, back = (beside(space, Span(8, step), runs) for step in (1, -1))
        torch.testing.assert_close(space.dist(there, x[:, 1]), torch.tensor([0.05]).double())
        torch.testing.assert_close(space.dist(there, back), torch.tensor([0.1]).double())
        wider = outlook(space, 9, runs)
        torch.testing.assert_close(wider.mapping.lift(wider.mapping.project(there.unsqueeze(1))), there.unsqueeze(1))

    def test_a_slope_beside_the_great_sphere_is_found(self):
        """A linear function is least far from any small great sphere."""
        study = Study(Sphere(30), HDGaBO(), seed=1)
        study.run(lambda x: float(x[0]), 45, progress=False)
        steps = [trial.index for trial in study.history if trial.memory.arm == "beside"]
        assert steps
        assert study.best.index >= steps[0]
        assert "full:0" in study.models()

    def test_it_stays_the_same_within_a_larger_one(self):
        space = Sphere(50)
        x, y = space.random(1, 5, rng=seeded(0)), torch.zeros(1, 5).double()
        first = outlook(space, 8, runs_of(x, y))
        memories = [[Memory()] * 4 + first.memories]
        again = outlook(space, 8, runs_of(x, y, memories))
        assert torch.equal(first.mapping.basis, again.mapping.basis)
        assert again.memories[0].span == ()
        later = outlook(space, 16, runs_of(x, y, memories))
        inside = later.mapping.basis @ later.mapping.basis.mT
        torch.testing.assert_close(inside @ first.mapping.basis, first.mapping.basis)

    def test_evaluations_beside_it_are_no_data_of_it(self):
        space = Sphere(50)
        study = Study(space, HDGaBO(metric="auto"), seed=0)
        f = lambda x: float(x[0])
        study.run(f, 7, progress=False)
        beside = space.random(rng=seeded(9))
        study.add(beside, f(beside))
        study.ask()
        (model,) = study.models().values()
        assert len(model.gp.z) == 7

    def test_suggestions_lie_in_it(self):
        study = Study(Sphere(40), HDGaBO(2, metric="auto"), seed=0).run(lambda x: float(x[0]), 8, progress=False)
        points = study.history.points
        assert torch.linalg.matrix_rank(points, atol=1e-8) <= 6


class TestPredictions:
    kinds = (Kind("a", None, 0.0), Kind("b", None, 1.0))

    def test_the_better_predictor_leads_and_ties_go_to_the_first(self):
        x, y = torch.zeros(1, 2, 1).double(), torch.tensor([[1.0, 2.0]]).double()
        good, bad = (0.9, 1.0, 1.1), (2.0, 3.0, 4.0)
        known = [[Memory(forecast={"a": bad, "b": good}), Memory()]]
        assert scores(runs_of(x, y, known), self.kinds).argmax(1).tolist() == [1]
        assert scores(runs_of(x, y), self.kinds).argmax(1).tolist() == [0]

    def test_each_side_has_a_deviation_of_its_own(self):
        x, forecast = torch.zeros(1, 1, 1).double(), {"a": (0.0, 1.0, 11.0), "b": (-9.0, 1.0, 2.0)}
        low, high = (
            scores(runs_of(x, torch.tensor([[y]]).double(), [[Memory(forecast=forecast)]]), self.kinds)[0]
            for y in (-1.0, 5.0)
        )
        assert low[1] > low[0]
        assert high[0] > high[1]


class TestBasins:
    def waited(self, n, best):
        """Evaluations on a line, all of the last n of which waited for the best to become better."""
        x = torch.linspace(0, 1, 30, dtype=torch.float64).reshape(1, 30, 1)
        y = (x.squeeze(-1) - 0.5).abs()
        memories = [[Memory()] * (30 - n) + [Memory(best=best)] * n]
        model = fit(Description(kernel("matern52", Box([0.0], [1.0]))), Data(x, y, [seeded(0)]))
        model = replace(
            model,
            gp=type(model.gp)(
                model.gp.kernel,
                x,
                model.gp.z,
                torch.tensor([[0.1]]).double(),
                model.gp.mean,
                model.gp.scale,
                model.gp.noise,
            ),
        )
        return close_basins(model, runs_of(x, y, memories))

    def test_one_is_closed_after_ten_suggestions_in_vain(self):
        best = 14  # the first of two equally good
        assert self.waited(9, best)[0] is None
        basins, (memory,) = self.waited(10, best)
        assert memory.closed == (best,)
        assert not basins.free[0, best]
        assert basins.free[0, 0]
        assert basins.free[0, memory.best]

    def test_basins_widen_with_each_that_is_closed(self):
        _, (first,) = self.waited(10, 14)
        x = torch.linspace(0, 1, 30, dtype=torch.float64)
        correlation = kernel("matern52", Box([0.0], [1.0])).correlation(
            x.reshape(30, 1), x.reshape(30, 1), torch.tensor([0.1], dtype=torch.float64)
        )
        one, two = (_outside(correlation, list(first.closed) * count) for count in (1, 2))
        assert one.sum() > two.sum() > 0
        assert (one | ~two).all()

    def test_a_search_stays_outside(self):
        basins, _ = self.waited(10, 14)
        worth = basins.keep_out(lambda z: torch.zeros(z.shape[:-2]).double(), lambda z: z)
        at = lambda x: worth(torch.tensor([[[x]]], dtype=torch.float64)).item()
        assert at(14 / 29) == pytest.approx(-100)
        assert at(0.0) == 0

    def test_when_nothing_is_left_open_all_is(self):
        x = torch.full((1, 20, 1), 0.5, dtype=torch.float64) + 1e-3 * torch.arange(20).reshape(1, 20, 1)
        y = torch.arange(20).double().unsqueeze(0)
        model = fit(Description(kernel("gaussian", Box([0.0], [1.0]))), Data(x, y, [seeded(0)]))
        basins, (memory,) = close_basins(model, runs_of(x, y, [[Memory()] * 5 + [Memory(best=0)] * 15]))
        assert basins is None
        assert memory.closed == ()


class TestAlignedMatrices:
    """Those whose axes mean something."""

    SPACE = SPD(3, eigenvalues=(0.01, 10.0), scale="log", aligned=True)

    def told(self, space, budget, **settings):
        best = torch.tensor([[2.0, 0.1, 0.0], [0.1, 0.05, 0.0], [0.0, 0.0, 0.5]], dtype=torch.float64)
        study = Study(space, GaBO(), seed=0, **settings)
        study.run(lambda x: space.sq_dist(x, best), budget, progress=False)
        return study

    def test_a_search_begins_with_diagonal_matrices(self):
        x = torch.stack([trial.x for trial in self.told(self.SPACE, 5)])
        assert (x - torch.diag_embed(x.diagonal(dim1=-2, dim2=-1))).abs().max() < 1e-12
        other = torch.stack([trial.x for trial in self.told(replace(self.SPACE, aligned=False), 5)])
        assert (other - torch.diag_embed(other.diagonal(dim1=-2, dim2=-1))).abs().max() > 0.1
        torch.testing.assert_close(torch.linalg.eigvalsh(x), torch.linalg.eigvalsh(other))

    def test_every_second_suggestion_has_the_eigenvectors_of_the_best_matrix(self):
        trials, apart = list(self.told(self.SPACE, 12)), {}
        for k in range(5, 12):
            best, x = min(trials[:k], key=lambda trial: trial.value).x, trials[k].x
            apart[k] = float((best @ x - x @ best).norm() / (best @ x).norm())
        assert max(apart[6], apart[8], apart[10]) < 1e-9
        assert max(apart[5], apart[7], apart[9], apart[11]) > 1e-2

    def test_constraints_hold_from_the_beginning(self):
        coupled = lambda x: x[..., 0, 1].abs() - 0.01  # never on the diagonal
        for trial in self.told(self.SPACE, 7, constraints=coupled):
            assert coupled(trial.x) >= -1e-9

    def test_turns_count_evaluations_that_models_do_not_see(self):
        x = self.SPACE.random(1, 1003, rng=seeded(0))
        turns = [
            along_axes(self.SPACE, seen(self.SPACE, runs_of(x[:, :n], x[:, :n, 0, 0]))) for n in (1001, 1002, 1003)
        ]
        assert turns == [False, True, False]

    def test_matrices_nested_in_large_ones_are_searched_as_before(self):
        large = SPD(8, eigenvalues=(0.1, 5.0), aligned=True)
        study = Study(large, HDGaBO(), seed=0)
        study.run(lambda x: x[0, 0] + x.trace(), 8, progress=False)
        assert list(study.models()) == ["nested:3:1"]


class TestStudies:
    @pytest.mark.parametrize(
        ("space", "method"),
        [
            (Sphere(30), HDGaBO(metric="auto")),
            (SPD(3, eigenvalues=(0.1, 5.0)), HDGaBO(2, metric="auto")),
            (Product(Sphere(2), Box([0.0], [1.0])), GaBO(metric="auto")),
        ],
        ids=repr,
    )
    def test_a_loaded_study_goes_on_bit_for_bit(self, space, method, tmp_path):
        f = lambda x: float(space.embed(x).sum())
        straight = Study(space, method, seed=4).run(f, 9, progress=False).history
        Study(space, method, seed=4, store=tmp_path / "a.db").run(f, 6, progress=False).close()
        loaded = Study.load(tmp_path / "a.db").run(f, 3, progress=False)
        assert loaded.strategy == method
        assert torch.equal(loaded.history.points, straight.points)
        assert [trial.memory for trial in loaded.history] == [trial.memory for trial in straight]

    def test_every_suggestion_says_what_each_model_expected(self):
        study = Study(Sphere(3), GaBO(metric="auto"), seed=0).run(lambda x: float(x[0]), 7, progress=False)
        low, middle, high = study.history[-1].memory.forecast["full:0"]
        assert low < middle < high
        assert set(study.models()) == {"full:0", "full:0.25", "full:1"}

    def test_values_and_half_log_take_turns_and_refinements_have_half_log(self):
        space = Sphere(2)
        study = Study(space, GaBO(metric="full"), seed=0)
        study.run(nb.problem("ackley", space).objective, 12, progress=False)
        fitted = [set(trial.memory.fits) for trial in study.history][5:]
        half = {5, 7, 9, 10, 11}  # odd counts, and multiples of five
        assert fitted == [{"full:1:half-log" if count in half else "full:1"} for count in range(5, 12)]

    @pytest.mark.parametrize(("noise", "names"), [(None, ["nested:3:1"]), ("infer", ["full:0", "nested:3:1"])])
    def test_a_model_of_all_of_the_matrix_competes_under_noise(self, noise, names):
        study = Study(SPD(7), HDGaBO(), seed=0, noise=noise)
        study.run(lambda x: float(x[0, 0]), 7, progress=False)
        assert sorted(study.models()) == names

    def test_models_predict_on_the_space(self):
        study = Study(Sphere(30), HDGaBO(metric="auto"), seed=0).run(lambda x: float(x[0]), 8, progress=False)
        model = study.model()
        assert model.mapping.ambient == Sphere(30)
        assert model.metric.factor.shape == (9, 9)
        torch.testing.assert_close(model.predict(study.history.points), study.history.values, rtol=0, atol=0.05)


class TestMistakes:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: GaBO(metric="euclidean"), "metric is one of isotropic, diagonal, full, auto"),
            (lambda: Study(Sphere(3), GaBO(metric="full", kernel="geodesic-gaussian")), "A metric is learned with"),
            (lambda: Study(Box([0.0], [1.0]), HDGaBO(1, metric="full")), "latent_dim is for a Sphere or SPD"),
        ],
    )
    def test_what_does_not_go_together(self, make, message):
        with pytest.raises(ArgumentError, match=message):
            make()

    def test_auto_learns_where_kernel_and_space_allow_it(self):
        space = Sphere(3)
        assert GaBO().learns(space)
        assert HDGaBO(2).learns(space)
        assert GaBO(outputs="log", criterion="leave-one-out").learns(space)
        for method in (
            GaBO(kernel="heat"),
            GaBO.paper(),
            HDGaBO.paper(2),
            GaBO(metric="isotropic"),
        ):
            assert not method.learns(space)
        assert not HDGaBO((2, None)).learns(Product(space, Box([0.0], [1.0])))

    def test_text(self):
        assert nb.strategy("hdgabo:metric=auto") == HDGaBO()
        assert nb.strategy("gabo:metric=diagonal") == GaBO(metric="diagonal")
