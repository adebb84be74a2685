"""HD-GaBO: its text form, its settings, the nested model of the paper, and studies with it."""

import contextlib
import json
import math
import shutil
import sqlite3
from pathlib import Path

import pytest
import torch

import nestbo as nb
from nestbo import SPD, ArgumentError, Box, GaBO, HDGaBO, Product, RandomSearch, Sphere, Study, strategy
from nestbo.memory import Fit, Memory
from nestbo.nested import NestedProduct, NestedSPD, NestedSphere, Nesting
from nestbo.search.runs import Runs
from nestbo.strategies import stored_strategy

BOTH = Product(Sphere(6), SPD(3))
QUICK = {"initial": 3, "metric": "isotropic"}


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def smooth(space):
    """A function with one clear minimum."""
    target = space.embed(space.random(rng=seeded(99)))
    return lambda x: float((space.embed(x) - target).square().sum())


def data(space, rng, count=6, memories=None):
    """Runs with the same number of evaluations of the first embedded coordinate."""
    who = [[Memory()] * count] if memories is None else memories
    x = space.random(len(who), count, rng=rng)
    return Runs(x, space.embed(x)[..., 0], x[:, :0], [seeded(k) for k in range(len(who))], who)


class TestText:
    @pytest.mark.parametrize(
        "method",
        [
            HDGaBO(),
            HDGaBO(5),
            HDGaBO((2, None)),
            HDGaBO((2,)),
            HDGaBO(3, "fitted", exact=False, outputs="bilog", criterion="leave-one-out", metric="isotropic"),
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
        assert HDGaBO((2, None)).specification == "hdgabo:latent_dim=2,none"

    def test_the_papers_configuration_to_the_letter(self):
        paper = HDGaBO.paper(5)
        assert (paper.kernel, paper.acquisition, paper.optimiser) == ("geodesic-gaussian", "ei", "trust-region")
        assert (paper.latent_dim, paper.lift, paper.exact, paper.metric) == (5, "fitted", False, "isotropic")
        assert (paper.priors, paper.outputs, paper.criterion, paper.initial) == (False, "standardise", "likelihood", 5)
        assert paper._single(SPD(10)).nesting == Nesting(SPD(10), SPD(5), logarithmic=True)

    def test_settings_of_earlier_versions_are_left_out_with_a_warning(self):
        with pytest.warns(UserWarning, match="arms=full,local, which nestbo 0.2 has no more. It goes on with"):
            assert stored_strategy("hdgabo:latent_dim=5:arms=full,local") == HDGaBO(5)
        with pytest.warns(UserWarning, match="goes on with hdgabo"):
            assert stored_strategy("hdgabo:choice=(balanced:decay=0.9)") == HDGaBO()
        with pytest.raises(nb.SpecificationError, match="unknown setting arms"):
            strategy("hdgabo:arms=full,")

    def test_the_paper_as_an_earlier_version_wrote_it_is_the_paper(self):
        old = "kernel=geodesic-gaussian:acquisition=ei:optimiser=trust-region:priors=false"
        found = stored_strategy(f"hdgabo:{old}:outputs=standardise:latent_dim=5:arms=fitted,:exact=false")
        assert found == HDGaBO.paper(5)
        assert stored_strategy(f"gabo:{old}").repeats

    def test_a_study_that_an_earlier_version_began_goes_on(self, tmp_path):
        path = shutil.copy(Path(__file__).parent / "golden" / "schema1-hdgabo.db", tmp_path / "s.db")
        with contextlib.closing(sqlite3.connect(path)) as file, file:
            old = json.dumps("hdgabo:latent_dim=2:choice=success")
            file.execute("UPDATE settings SET value = ? WHERE name = 'strategy'", (old,))
        with pytest.warns(UserWarning, match="choice=success"):
            study = Study.load(path)
        assert study.run(smooth(study.space), 1, progress=False).history[-1].status == "told"


class TestSpaces:
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
    @pytest.mark.parametrize("metric", ["auto", "isotropic"])
    def test_a_study_refuses_sizes_that_the_space_has_not(self, space, size, message, metric):
        with pytest.raises(ArgumentError, match=message):
            Study(space, HDGaBO(size, metric=metric))

    @pytest.mark.parametrize("setting", [{"metric": "isotropic"}, {"kernel": "geodesic-gaussian"}], ids=repr)
    def test_without_a_metric_the_size_has_to_be_told(self, setting):
        with pytest.raises(ArgumentError, match=r'it has to be told latent_dim, got "auto". Give it, as in HDGaBO\('):
            Study(Sphere(6), HDGaBO(**setting))

    def test_a_latent_space_as_large_as_the_space_is_the_full_model(self):
        assert HDGaBO(5, metric="isotropic")._single(Sphere(5)) == GaBO(metric="isotropic")._single(Sphere(5))

    def test_of_a_product_some_factors_may_stay_whole(self):
        single = HDGaBO((2, None))._single(BOTH)
        assert (single.name, single.nesting.latent) == ("nested:2,none", Product(Sphere(2), SPD(3)))
        space = Product(Product(Sphere(2), Sphere(2)), Sphere(6))
        assert HDGaBO((None, 2))._single(space).nesting.latent == Product(space.factors[0], Sphere(2))

    def test_the_papers_distances_on_products(self):
        single = HDGaBO.paper((1, 2))._single(Product(Sphere(3), SPD(3)))
        assert single.nesting.compared == Product(Sphere(1), SPD(2, metric="log-euclidean"))


class TestMistakes:
    @pytest.mark.parametrize("size", [0, -1, 2.0, True, None, (), (0, 2), (2, "x"), [2], "autoo"])
    def test_what_is_no_size_anywhere(self, size):
        with pytest.raises(ArgumentError, match="latent_dim is a whole number"):
            HDGaBO(size)

    def test_unknown_names(self):
        with pytest.raises(ArgumentError, match="lift is one of fitted, incumbent, got 'random'"):
            HDGaBO(2, "random")
        with pytest.raises(ArgumentError, match="criterion is one of likelihood, leave-one-out, got 'aic'"):
            HDGaBO(criterion="aic")
        with pytest.raises(ArgumentError, match="exact is True or False, got 1"):
            HDGaBO(exact=1)


class TestNestedModel:
    @pytest.mark.parametrize(
        ("space", "size", "family"),
        [(Sphere(5), 2, NestedSphere), (SPD(4), 2, NestedSPD), (BOTH, (2, None), NestedProduct)],
        ids=repr,
    )
    def test_mappings_lead_to_the_latent_space(self, space, size, family, rng):
        (model,) = HDGaBO.paper(size).models(space, data(space, rng)).values()
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

    def test_memories_say_what_the_next_fit_wants_to_know(self, rng):
        _, (memory,) = HDGaBO(2, **QUICK).propose(Sphere(6), data(Sphere(6), rng))
        found = memory.fits["nested:2"]
        assert found == Fit(found.parameters, 6, found.basis)
        assert (len(found.parameters), len(found.basis)) == (2, 7 * 3)
        assert memory == Memory("nested:2", {"nested:2": found})

    def test_a_run_is_the_same_beside_one_that_has_not_been_fitted_yet(self, rng):
        method, space = HDGaBO(2, **QUICK), Sphere(6)
        _, (memory,) = method.propose(space, data(space, seeded(5)))
        who = [[Memory()] * 5 + [memory], [Memory()] * 6]
        together, _ = method.propose(space, data(space, rng, memories=who))
        alone, _ = method.propose(space, data(space, seeded(0), memories=who).take([0]))
        torch.testing.assert_close(together[0], alone[0], rtol=0, atol=5e-3)

    @pytest.mark.parametrize("lift", ["fitted", "incumbent"])
    def test_lifts_keep_the_latent_point(self, lift, rng):
        space = Sphere(6)
        runs = data(space, rng)
        x, (memory,) = HDGaBO(2, lift, **QUICK).propose(space, runs)
        basis = torch.tensor(memory.fits["nested:2"].basis, dtype=torch.float64).reshape(7, 3)
        mapping, again = NestedSphere(basis), data(space, seeded(0))
        assert torch.equal(again.x, runs.x)
        y, (other,) = HDGaBO(2, **QUICK).propose(space, again)
        assert other.fits == memory.fits
        torch.testing.assert_close(mapping.project(x), mapping.project(y), rtol=0, atol=1e-10)
        if lift == "incumbent":
            torch.testing.assert_close(mapping.lift_near(mapping.project(x), runs.best[0]), x, rtol=0, atol=1e-10)
        else:
            torch.testing.assert_close(mapping.fit_lift(runs.x[0]).lift(mapping.project(x)), x, rtol=0, atol=1e-8)


class TestStudies:
    @pytest.mark.parametrize(
        ("space", "method"),
        [
            (Sphere(8), HDGaBO(2, initial=3)),
            (SPD(3, eigenvalues=(0.1, 5)), HDGaBO(2, **QUICK)),
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
        study = Study(space, HDGaBO(2, **QUICK), seed=0)
        study.add(corner, 0.0)
        study.run(lambda x: float((x - corner).square().sum()), 6, progress=False)
        space.check(torch.stack([trial.x for trial in study.ask(2)]), 1e-9)
        space.check(study.history.points, 1e-9)
        assert study.history[-1].memory.arm == "nested:2"

    def test_points_asked_together_are_distinct(self):
        study = Study(Sphere(6), HDGaBO(2, **QUICK), seed=0)
        study.run(smooth(Sphere(6)), 5, progress=False)
        points = torch.stack([trial.x for trial in study.ask(3)])
        assert (Sphere(6).pairwise_dist(points, points) + 10 * torch.eye(3) > 1e-3).all()

    @pytest.mark.parametrize(
        ("space", "method"), [(Sphere(6), HDGaBO(2, initial=3)), (SPD(3), HDGaBO(2, **QUICK))], ids=repr
    )
    def test_maximising_is_minimising_the_negative(self, space, method):
        f = smooth(space)
        least = Study(space, method, seed=1).run(f, 7, progress=False)
        most = Study(space, method, seed=1, direction="maximize").run(lambda x: -f(x), 7, progress=False)
        assert torch.equal(least.history.points, most.history.points)
        assert most.best.value == -least.best.value

    def test_a_product_with_a_factor_left_whole(self):
        study = Study(BOTH, HDGaBO((2, None), initial=3), seed=0).run(smooth(BOTH), 8, progress=False)
        BOTH.check(study.history.points, 1e-9)
        assert all(trial.status == "told" for trial in study.history)
        assert study.history[-1].memory.arm == "nested:2,none"

    def test_the_papers_configuration_runs(self):
        for space in (Sphere(5), SPD(3, eigenvalues=(0.1, 5))):
            study = Study(space, HDGaBO.paper(2), seed=0).run(smooth(space), 7, progress=False)
            space.check(study.history.points, 1e-9)
            assert [trial.memory.arm for trial in study.history] == [None] * 5 + ["nested:2"] * 2

    @pytest.mark.parametrize(
        ("space", "method"), [(Sphere(6), HDGaBO(2, **QUICK)), (SPD(3), HDGaBO(2, **QUICK))], ids=repr
    )
    def test_failures_are_survived(self, space, method):
        study = Study(space, method, seed=0)
        f, seen = smooth(space), iter(range(8))
        study.run(lambda x: math.nan if next(seen) % 2 else f(x), 8, progress=False)
        assert [trial.status for trial in study.history] == ["told", "failed"] * 4
        space.check(study.ask().x, 1e-9)


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

    ours, random = best(HDGaBO(2), 22), best(RandomSearch(), 60)
    assert (ours < 0.2 * random).all()
