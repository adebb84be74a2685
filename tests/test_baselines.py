"""The methods that HD-GaBO is compared with: their coordinates, and answers that are known."""

import math
from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

import nestbo as nb
from nestbo import SPD, ArgumentError, Box, Sphere
from nestbo.linalg import random_frames
from nestbo.optimise import lbfgs
from nestbo.optimise.slsqp import slsqp
from nestbo.strategies import REMBO, SIRBO, DropoutBO, EuclideanBO, Runs, strategy
from nestbo.strategies.coordinates import chart
from nestbo.strategies.dropout import filled, taken
from nestbo.strategies.rembo import embedding
from nestbo.strategies.sections import fit, spread
from nestbo.strategies.sir import directions

BOUNDED = SPD(4, eigenvalues=(1e-3, 5.0))
CHARTS = [
    chart(Sphere(5)),
    chart(Box([0, -3], [1, 5])),
    chart(BOUNDED),
    chart(BOUNDED, "cholesky"),
    chart(SPD(3)),
    chart(SPD(3), "cholesky"),
]
SMALL = SPD(3, eigenvalues=(0.1, 2.0))
METHODS = [EuclideanBO(), DropoutBO(2), SIRBO(2), SIRBO(2, "space"), REMBO(2)]


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def runs_on(space, x, objective, notes=None):
    y = objective(x)
    notes = notes or [[{} for _ in run] for run in x]
    return Runs(x, y, x[:, :0], [seeded(k) for k in range(len(x))], notes)


class TestCoordinates:
    @pytest.mark.parametrize("on", CHARTS, ids=repr)
    def test_round_trip(self, on, rng):
        x = on.space.random(3, 20, rng=rng)
        v = on.coordinates(x)
        assert v.shape == (3, 20, on.size)
        assert_close(on.point(v), x, atol=1e-12, rtol=1e-12)

    @pytest.mark.parametrize("on", [on for on in CHARTS if on.space != SPD(3)], ids=repr)
    def test_points_lie_within_half_and_radius(self, on, rng):
        v = on.coordinates(on.space.random(1000, rng=rng))
        assert (v.abs() <= v.new_tensor(on.half) + 1e-9).all()
        assert (v.norm(dim=-1) <= on.radius + 1e-9).all()

    @pytest.mark.parametrize("on", CHARTS, ids=repr)
    def test_every_vector_gives_a_point(self, on, rng):
        v = 3 * torch.randn(100, on.size, generator=rng, dtype=torch.float64)
        on.space.check(on.point(torch.cat([v, torch.zeros_like(v[:1])])), 1e-9)

    def test_entries_measure_frobenius_distances_of_matrices(self, rng):
        on, (x, y) = chart(BOUNDED), BOUNDED.random(2, 10, rng=rng)
        wanted = torch.linalg.matrix_norm(x - y) / ((5.0 - 1e-3) / 2)
        assert_close((on.coordinates(x) - on.coordinates(y)).norm(dim=-1), wanted)

    def test_cholesky_coordinates_are_the_factor(self, rng):
        on, x = chart(BOUNDED, "cholesky"), BOUNDED.random(10, rng=rng)
        origin = on.coordinates(torch.eye(4, dtype=torch.float64))
        factor = torch.linalg.cholesky(x) - torch.eye(4, dtype=torch.float64)
        rows, columns = torch.tril_indices(4, 4)
        wanted = factor[:, rows, columns] / math.sqrt(5.0 - 1e-3)
        assert_close(on.coordinates(x) - origin, wanted, atol=1e-10, rtol=1e-10)

    def test_projection_clips_eigenvalues(self):
        on, eye = chart(BOUNDED), torch.eye(4, dtype=torch.float64)
        x = torch.diag(torch.tensor([9.0, -2.0, 1.0, 3.0], dtype=torch.float64))
        rows, columns = torch.tril_indices(4, 4)
        v = ((x - (5.0 + 1e-3) / 2 * eye) / ((5.0 - 1e-3) / 2))[rows, columns]
        assert_close(on.point(v), torch.diag(torch.tensor([5.0, 1e-3, 1.0, 3.0], dtype=torch.float64)))

    @pytest.mark.parametrize("space", [nb.Product(Sphere(2), Sphere(2)), nb.Grassmann(4, 2), nb.Euclidean(3)], ids=repr)
    def test_other_spaces_are_refused(self, space):
        with pytest.raises(ArgumentError, match=r"spheres, SPD matrices and boxes, got .*\. Use GaBO"):
            EuclideanBO().check(space)

    def test_spheres_have_no_cholesky_factors(self):
        with pytest.raises(ArgumentError, match='Use coordinates="matrix"'):
            EuclideanBO(coordinates="cholesky").check(Sphere(3))


class TestModel:
    def test_the_kernel_is_that_of_matrix_entries(self, rng):
        """The correlation that the model gives two matrices is a Gaussian of their Frobenius distance."""
        on, x = chart(SMALL), SMALL.random(2, 9, rng=rng)
        runs = runs_on(SMALL, x, lambda x: x.diagonal(dim1=-2, dim2=-1).sum(-1))
        v = on.coordinates(x)
        gp = fit(v / spread(v), runs).gp
        squares = torch.cdist(x.flatten(-2), x.flatten(-2)) ** 2
        length = gp.lengthscale[..., None] * spread(v) * (2.0 - 0.1) / 2
        found = gp.kernel.correlation(gp.x, gp.x, gp.lengthscale)
        assert_close(found, torch.exp(-squares / (2 * length**2)))

    def test_equal_inputs_have_a_unit_all_the_same(self):
        assert_close(spread(torch.full((2, 5, 3), 0.7)), torch.ones(2, 1, 1))


class TestDropout:
    def test_exactly_d_coordinates_change(self, rng):
        others = torch.randn(3, 1, 10, generator=rng)
        chosen = torch.stack([torch.randperm(10, generator=rng)[:4] for _ in range(3)]).unsqueeze(1)
        values = torch.randn(5, 3, 2, 4, generator=rng)
        whole = filled(others, chosen, values)
        assert whole.shape == (5, 3, 2, 10)
        assert ((whole != others).sum(-1) == 4).all()
        assert torch.equal(taken(whole, chosen), values)

    def test_copy_takes_the_others_from_the_best_and_random_does_not(self, rng):
        space = Sphere(9)
        runs = runs_on(space, space.random(3, 7, rng=rng), lambda x: x[..., 0])
        copied = DropoutBO(2, 0.0).others(chart(space), runs)
        assert torch.equal(copied, runs.best)
        assert not (DropoutBO(2, 1.0).others(chart(space), runs) == runs.best).any()

    def test_mix_is_the_probability_of_random(self, rng):
        space = Sphere(2)
        runs = runs_on(space, space.random(1, 3, rng=rng).expand(400, 3, 3), lambda x: x[..., 0])
        kept = (DropoutBO(2, 0.1).others(chart(space), runs) == runs.best).all(-1).double().mean()
        assert 0.84 < kept < 0.96

    def test_on_a_box_all_but_d_coordinates_of_a_suggestion_are_the_best_ones(self, rng):
        space = Box((0.0,) * 8, (2.0,) * 8)
        runs = runs_on(space, space.random(3, 7, rng=rng), lambda x: (x - 1).square().sum(-1))
        x, _ = DropoutBO(3, 0.0).propose(space, runs)
        assert ((x - runs.best.squeeze(1)).abs() > 1e-9).sum(-1).tolist() == [3, 3, 3]


class TestSIR:
    def test_a_linear_direction_is_recovered_from_plenty_of_data(self, rng):
        v = torch.randn(4, 3000, 20, generator=rng, dtype=torch.float64) * torch.linspace(0.5, 2, 20)
        axis = random_frames(4, 20, 1, rng=rng)
        y = (v @ axis).squeeze(-1).exp()
        found = directions(v, y, 1)
        assert ((found.mT @ axis).abs() > 0.98).all()

    def test_a_plane_is_recovered(self, rng):
        v = torch.randn(1, 5000, 10, generator=rng, dtype=torch.float64)
        plane = random_frames(1, 10, 2, rng=rng)
        z = v @ plane
        found = directions(v, z[..., 0] / (0.5 + (z[..., 1] + 1.5) ** 2), 2)  # the example of Li (1991), section 6.1
        assert (torch.linalg.svdvals(found.mT @ plane) > 0.9).all()

    @pytest.mark.parametrize("n", [1, 2, 5, 30])
    def test_few_and_equal_data_give_orthonormal_directions(self, n, rng):
        v = torch.randn(1, n, 12, generator=rng, dtype=torch.float64)
        for data in (v, v[:, :1].expand_as(v)):
            found = directions(data, data[..., 0], 5)
            assert_close(found.mT @ found, torch.eye(5, dtype=torch.float64).unsqueeze(0))

    def test_on_the_sphere_a_suggestion_lies_in_the_subspace(self, rng):
        space = Sphere(9)
        runs = runs_on(space, space.random(2, 12, rng=rng), lambda x: x[..., 0])
        x, _ = SIRBO(3).propose(space, runs)
        basis = directions(runs.x, runs.y, 3)
        inside = (basis @ (basis.mT @ x.unsqueeze(-1))).squeeze(-1)
        assert_close(inside, x)


class TestREMBO:
    @pytest.mark.parametrize("eps", [0.5, 0.2, 0.1])
    def test_an_embedding_contains_an_optimum_as_often_as_its_paper_says(self, eps, rng):
        """Theorem 3: if f(x) = g(Wᵀx), an optimum A y has |y| ≤ √d |Wᵀx*| / ε with probability at least 1 − ε."""
        size, d, count = 25, 2, 1000
        active = random_frames(size, d, rng=rng)
        target = active.mT @ torch.full((size,), 0.3, dtype=torch.float64)
        a = torch.stack([embedding(size, d, seed) for seed in range(count)])
        y = torch.linalg.solve(active.mT @ a, target.expand(count, d))
        assert_close((active.mT @ a @ y.unsqueeze(-1)).squeeze(-1), target.expand(count, d))  # (Wᵀx − Wᵀx*)² is 0
        share = (y.norm(dim=-1) <= math.sqrt(d) * target.norm() / eps).double().mean()
        assert share >= 1 - eps

    def test_embeddings_are_drawn_once_and_take_turns(self):
        study = nb.Study(Sphere(6), REMBO(2, 3), seed=0).run(lambda x: float(x[0]), 11, progress=False)
        seeds = [trial.memory["embedding"] for trial in study.history]
        assert len(set(seeds)) == 3
        assert seeds[3:6] == seeds[6:9]
        assert len(set(seeds[3:6])) == 3

    def test_points_lie_in_their_embedding(self):
        study = nb.Study(Sphere(6), REMBO(2, 2), seed=0).run(lambda x: float(x[0]), 9, progress=False)
        for trial in study.history:
            a = embedding(7, 2, trial.memory["embedding"])
            assert_close(a @ torch.linalg.pinv(a) @ trial.x, trial.x)

    def test_points_asked_at_once_agree_on_their_embeddings_later(self):
        study = nb.Study(Sphere(4), REMBO(2, 2), seed=0)
        for trial in study.ask(6):
            study.tell(trial, float(trial.x[0]))
        first = list(dict.fromkeys(trial.memory["embedding"] for trial in study.history))[:2]
        study.run(lambda x: float(x[0]), 4, progress=False)
        assert {trial.memory["embedding"] for trial in study.history[6:]} == set(first)

    def test_a_batch_is_its_single_runs(self, rng):
        """Also where runs differ in which evaluations were made in the embedding whose turn it is."""
        method = REMBO(2, 1)
        seeds = [[7] * 6, [8] * 6, [7, 7, 0, 0, 7, 7]]
        x = torch.stack(
            [
                chart(SMALL).point(
                    torch.stack([embedding(6, 2, s) @ torch.rand(2, generator=rng).double() for s in run])
                )
                for run in seeds
            ]
        )
        notes = [[{"embedding": s} if s else {} for s in run] for run in seeds]
        whole = runs_on(SMALL, x, lambda x: x[..., 0, 0], notes)
        together, noted = method.propose(SMALL, whole)
        assert [note["embedding"] for note in noted] == [7, 8, 7]
        assert all("model" in note for note in noted)
        for k in range(3):
            alone = Runs(x[k : k + 1], whole.y[k : k + 1], x[k : k + 1, :0], [seeded(k)], [notes[k]])
            assert_close(method.propose(SMALL, alone)[0][0], together[k], atol=5e-3, rtol=0)


class TestStudies:
    @pytest.mark.parametrize("coordinates", ["matrix", "cholesky"])
    @pytest.mark.parametrize("method", METHODS, ids=repr)
    def test_eigenvalue_bounds_are_kept_when_the_optimum_is_beyond_them(self, method, coordinates):
        study = nb.Study(SMALL, replace(method, coordinates=coordinates), seed=1).run(
            lambda x: float(x[0, 0] - x.det()), 9, progress=False
        )
        for trial in study.history:
            values = torch.linalg.eigvalsh(trial.x)
            assert values.min() >= 0.1 - 1e-9
            assert values.max() <= 2.0 + 1e-9

    @pytest.mark.parametrize("space", [Box((0.0,) * 4, (1.0,) * 4), SPD(3)], ids=repr)
    @pytest.mark.parametrize("method", METHODS, ids=repr)
    def test_boxes_and_matrices_without_bounds(self, method, space):
        study = nb.Study(space, method, seed=0).run(lambda x: float(x.sum()), 8, progress=False)
        space.check(torch.stack([trial.x for trial in study.ask(2)]))

    def test_a_study_is_resumed_from_its_file(self, tmp_path):
        def objective(x):
            return float(x[0])

        straight = nb.Study(Sphere(4), REMBO(2, 2), seed=3).run(objective, 9, progress=False)
        nb.Study(Sphere(4), REMBO(2, 2), seed=3, store=tmp_path / "s.db").run(objective, 7, progress=False)
        resumed = nb.Study.load(tmp_path / "s.db").run(objective, 2, progress=False)
        assert torch.equal(resumed.history.points, straight.history.points)


class TestMistakes:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("euclideanbo:coordinates=polar", "coordinates is one of matrix, cholesky, got 'polar'"),
            ("euclideanbo:acquisition=none", "acquisition is one of"),
            ("euclideanbo:initial=0", "initial points"),
            ("dropoutbo:0", "latent_dim"),
            ("dropoutbo:2:mix=1.5", "mix is a probability"),
            ("sirbo:2:within=nowhere", "within is one of subspace, space, got 'nowhere'"),
            ("rembo:2:embeddings=0", "embeddings"),
        ],
    )
    def test_impossible_settings_are_refused(self, text, message):
        with pytest.raises(ArgumentError, match=message):
            strategy(text)

    @pytest.mark.parametrize("method", [DropoutBO(5), SIRBO(5), REMBO(5)], ids=repr)
    def test_more_coordinates_than_there_are(self, method):
        with pytest.raises(ArgumentError, match=r"Sphere\(3\) has 4 coordinates, got latent_dim=5. Take at most 4"):
            nb.Study(Sphere(3), method, seed=0)


class TestSLSQP:
    """Kept to compare with: it finds what the batched optimiser finds."""

    @pytest.mark.parametrize("space", [Sphere(4), SMALL, Box([0, -1], [1, 2])], ids=repr)
    def test_a_linear_function(self, space, rng):
        slope = torch.randn(space.point_shape, generator=rng, dtype=torch.float64)
        starts, axes = space.random(2, 3, rng=rng), tuple(range(-len(space.point_shape), 0))

        def f(x, *_):
            return (slope * x).sum(axes)

        found, ours = (optimiser(f, space, starts, data=(torch.arange(2),)) for optimiser in (slsqp, lbfgs))
        space.check(found.point, 1e-9)
        assert found.value.shape == (2, 3)
        assert_close(found.value, ours.value, atol=2e-2, rtol=0)
        assert_close(found.value, f(found.point))
        assert set(found.reason.flat) == {"converged"}

    def test_a_start_that_is_not_improved_is_kept(self, rng):
        start = Sphere(3).random(2, rng=rng)
        assert torch.equal(slsqp(lambda x: 0 * x.sum(-1), Sphere(3), start).point, start)

    def test_matrices_without_bounds_stay_positive_definite(self, rng):
        found = slsqp(lambda x: x.diagonal(dim1=-2, dim2=-1).sum(-1), SPD(2), SPD(2).random(2, rng=rng))
        SPD(2).check(found.point, 1e-9)
        assert found.value.max() < 1e-3

    @pytest.mark.parametrize("method", [EuclideanBO(optimiser="slsqp"), DropoutBO(2, optimiser="slsqp")], ids=repr)
    def test_as_the_optimiser_of_a_method(self, method, rng):
        study = nb.Study(Sphere(3), method, seed=0).run(lambda x: float(x[0]), 8, progress=False)
        assert len(study.history.finished) == 8
        assert strategy(method.specification) == method

    def test_other_spaces_are_refused(self):
        with pytest.raises(ArgumentError, match="SLSQP is for"):
            slsqp(lambda x: x.sum((-1, -2)), nb.Grassmann(3, 1), nb.Grassmann(3, 1).random(rng=seeded(0)))
