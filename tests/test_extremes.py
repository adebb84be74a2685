"""Spaces, values and noise at the edge of what floats can hold lead to a suggestion, or to a sentence at the door."""

import json
import math

import pytest
import torch

import nestbo as nb
from nestbo.outputs import Standardise

GABO, HDGABO = nb.GaBO(), nb.HDGaBO()
SPACES = {
    "narrow eigenvalues": (nb.SPD(3, eigenvalues=(1, 1 + 1e-6)), GABO),
    "very narrow eigenvalues": (nb.SPD(6, eigenvalues=(1, 1 + 1e-12)), HDGABO),
    "five matrices": (nb.SPD(1, eigenvalues=(1, 1 + 1e-15)), GABO),
    "wide eigenvalues": (nb.SPD(6, eigenvalues=(1e-12, 1e12)), HDGABO),
    "wide eigenvalues of logarithms": (nb.SPD(6, metric="log-euclidean", eigenvalues=(1e-10, 1e10)), HDGABO),
    "wide eigenvalues, GaBO": (nb.SPD(6, eigenvalues=(1e-10, 1e10)), GABO),
    "the widest eigenvalues": (nb.SPD(3, eigenvalues=(1e-100, 1e100)), HDGABO),
    "large eigenvalues": (nb.SPD(3, eigenvalues=(1e15, 1e16)), GABO),
    "small eigenvalues": (nb.SPD(3, eigenvalues=(1e-100, 1e-99)), HDGABO),
    "wide eigenvalues in coordinates": (nb.SPD(3, eigenvalues=(1e-10, 1e10)), nb.EuclideanBO(coordinates="cholesky")),
    "the widest box": (nb.Box([-5e29, 0], [5e29, 1e-30]), GABO),
    "a box of two points": (nb.Box(1, 1 + 2**-52), GABO),
    "a box of nine points": (nb.Box(1e15, 1e15 + 1), nb.EuclideanBO()),
    "a wide factor": (nb.Product(nb.Sphere(2), nb.SPD(3, eigenvalues=(1e-12, 1e12))), HDGABO),
}


@pytest.fixture
def full(request):
    return request.config.getoption("--full")


@pytest.mark.parametrize("case", SPACES)
def test_a_space(case, full):
    """Points pass the space's own check, have finite features, and lie as far apart as the space says."""
    space, method = SPACES[case]
    x = space.random(200, rng=torch.Generator().manual_seed(0))
    apart = space.dist(x[:100], x[100:]).square().mean().sqrt().item()
    assert 0.5 < apart / space.typical_distance < 2
    study = nb.Study(space, method, seed=0)
    study.run(lambda x: float(space.embed(x).sum()), 12 if full else 6, progress=False)
    points = torch.stack([*study.history.points, *(trial.x for trial in study.ask(2 if full else 1))])
    assert all(trial.status == "told" for trial in study.history.finished)
    space.check(points)
    space.check(space.project(points))
    assert space.embed(points).isfinite().all()


def test_matrices_as_flat_as_they_may_be(full):
    space = nb.SPD(6, eigenvalues=(1e-12, 1e12))
    for seed in range(7) if full else [7]:
        for method in (HDGABO, GABO):
            study = nb.Study(space, method, seed=seed)
            study.run(lambda x: -float(torch.linalg.cond(x).log()), 14 if full else 9, progress=False)
            assert all(trial.status == "told" for trial in study.history)
            torch.linalg.cholesky(space.check(study.history.points))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nb.Box(-1e300, 1e300), "1e-30 and 1e\\+30 wide, got 2e\\+300 in coordinate 0"),
        (lambda: nb.Box(-1.7e308, 1.7e308), "got inf in coordinate 0"),
        (lambda: nb.Box([0, 0], [1, 1e-300]), "got 1e-300 in coordinate 1"),
        (lambda: nb.Box(0, 5e-324), "Choose another unit"),
        (lambda: nb.SPD(2, eigenvalues=(1e-300, 1e300)), "between 1e-100 and 1e\\+100, got \\(1e-300, 1e\\+300\\)"),
        (lambda: nb.SPD(2, eigenvalues=(5e-324, 1)), "Choose another unit"),
    ],
)
def test_what_floats_cannot_measure_is_refused(make, message):
    with pytest.raises(nb.ArgumentError, match=message):
        make()


class TestMatrices:
    @pytest.mark.parametrize("bounds", [(1, 1.05), (1, 1.099999), (1, 1.1), (2, 2.3), (0.1, 5), (1e-3, 5)])
    def test_the_typical_distance_by_another_formula(self, bounds):
        """The variance of log u is 1 − ab log²(b/a) / (b − a)² for a uniform u in [a, b]."""
        low, high = bounds
        variance = 1 - low * high * (math.log(high / low) / (high - low)) ** 2
        wanted = math.sqrt(6 * variance)
        assert nb.SPD(3, eigenvalues=bounds).typical_distance == pytest.approx(wanted, rel=1e-9)

    @pytest.mark.parametrize("scale", ["linear", "log"])
    def test_narrow_bounds_have_a_distance_in_proportion(self, scale):
        widths = [1e-4, 1e-8, 1e-12]
        found = [nb.SPD(2, eigenvalues=(1, 1 + width), scale=scale).typical_distance / width for width in widths]
        assert found == pytest.approx([math.sqrt(4 / 12)] * 3, rel=1e-3)

    @pytest.mark.parametrize("bounds", [(1e-9, 1e9), (1e-100, 1e100)])
    def test_wide_bounds_on_a_logarithmic_scale(self, bounds):
        space = nb.SPD(3, eigenvalues=bounds, scale="log", aligned=True)
        assert (space.violation(space.random(200, rng=torch.Generator().manual_seed(0))) <= 0).all()
        study = nb.Study(space, seed=0)
        study.run(lambda x: float(x.diagonal().log().square().sum()), 9, progress=False)
        assert len(study.history) == 9

    def test_a_matrix_that_rounding_makes_indefinite_is_mended_and_refused(self):
        space = nb.SPD(3, eigenvalues=(1e-12, 1e12))
        frame = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)).Q
        flat = frame @ torch.diag(torch.tensor([1e12, 1e12, -1e-2], dtype=torch.float64)) @ frame.mT
        with pytest.raises(nb.OffManifoldError):
            space.check((flat + flat.mT) / 2)
        torch.linalg.cholesky(space.check(space.project(flat)))

    def test_small_matrices_within_wide_bounds_stay_as_they_are(self):
        space = nb.SPD(2, eigenvalues=(1e-12, 1e12))
        small = 1e-9 * torch.eye(2, dtype=torch.float64)
        assert torch.equal(space.project(small), small)

    def test_a_large_matrix_may_be_off_by_its_rounding_and_no_more(self):
        space = nb.SPD(2, eigenvalues=(1e15, 1e16))
        x = torch.diag(torch.tensor([1e15 - 1, 1e16], dtype=torch.float64))
        space.check(x)
        with pytest.raises(nb.OffManifoldError):
            space.check(x - 1e3 * torch.eye(2, dtype=torch.float64))


TINY, HUGE, EPS = 5e-324, 1.79e308, 2.0**-52
VALUES = {
    "the least of all numbers": (0, TINY),
    "the same below zero": (-TINY, 0),
    "subnormal": (0, 1e-310, 3e-310),
    "just normal": (1e-308, 3e-308),
    "the largest": (HUGE, -HUGE, 0),
    "one huge, one tiny": (1e300, TINY),
    "one rounding apart": (1, 1 + EPS),
    "far from zero": (1e16, 1e16 + 2),
    "very steep": (1e-300, 1e-150, 1, 1e150, 1e300),
    "very steep below zero": (-1e-300, -1e-150, -1, -1e150, -1e300),
}


@pytest.mark.parametrize("case", VALUES)
@pytest.mark.parametrize("method", [GABO, HDGABO, nb.SIRBO(2)], ids=repr)
def test_values(case, method):
    """Alone, as constraints, and with noise; what is remembered can be stored."""
    space, count = nb.Sphere(11), 7
    x = space.random(count, rng=torch.Generator().manual_seed(0))
    values = [float(VALUES[case][k % len(VALUES[case])]) for k in range(count)]
    kinds = ((False, None), (True, "infer")) if isinstance(method, nb.GaBO | nb.HDGaBO) else ((False, None),)
    for constrained, noise in kinds:
        facts = [{"constraints": (value,)} if constrained else {} for value in values]
        trials = [nb.Trial(k, x[k]).with_value(values[k], **facts[k]) for k in range(count)]
        suggestions = method.suggest(space, nb.History(tuple(trials), noise), 1, torch.Generator().manual_seed(0))
        space.check(suggestions[0].x)
        json.dumps(suggestions[0].memory.json, allow_nan=False)


@pytest.mark.parametrize("case", VALUES)
def test_values_in_the_units_of_a_model(case):
    y = torch.tensor([VALUES[case]], dtype=torch.float64)
    outputs = Standardise.fit(y)
    assert (outputs.scale > 0).all()
    assert outputs.forward(y).isfinite().all()
