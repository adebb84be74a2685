"""Every registered method obeys the laws, on a sphere, on bounded matrices and on a product."""

import pytest
import torch

import nestbo as nb
from nestbo import (
    SPD,
    ArgumentError,
    Box,
    GaBO,
    HDGaBO,
    History,
    Product,
    RandomSearch,
    Sphere,
    Trial,
    problem,
    strategy,
)
from nestbo.strategies import STRATEGIES
from nestbo.testing import STRATEGY_LAWS

METHODS = [method for family in STRATEGIES.values() for method in family.samples()]
SPACES = [Sphere(3), SPD(2, eigenvalues=(0.1, 5)), Product(Sphere(2), Box(0, 1))]


@pytest.mark.parametrize("law", STRATEGY_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("space", SPACES, ids=repr)
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_law(method, space, law, rng, request):
    """GaBO on all spaces, the others on the sphere; HD-GaBO is GaBO on such small spaces, as the next test shows."""
    short = method == GaBO() or (space == SPACES[0] and method != HDGaBO())
    if not short and not request.config.getoption("--full"):
        pytest.skip("a long version: --full")
    try:
        method.check(space)
    except ArgumentError as error:
        pytest.skip(str(error))
    law(method, space, rng)


def test_hdgabo_suggests_what_gabo_does_on_a_small_space():
    space = SPACES[0]
    gabo, hdgabo = (run(method, lambda x: x[0] + x[1] ** 2, space, 8, seed=0) for method in (GaBO(), HDGaBO()))
    assert torch.equal(gabo.points, hdgabo.points)


def run(method, objective, space, count, seed):
    history = History()
    for k in range(count):
        rng = torch.Generator().manual_seed(1000 * seed + k)
        (suggestion,) = method.suggest(space, history, 1, rng)
        value = objective(suggestion.x).item()
        history = history.add(Trial(k, suggestion.x, memory=suggestion.memory).with_value(value))
    return history


def test_gabo_minimises_ackley_on_the_sphere():
    ackley = problem("ackley", Sphere(2))
    best = run(GaBO(), ackley.objective, ackley.space, 20, seed=0).best.value
    assert best < 0.5
    assert best < run(RandomSearch(), ackley.objective, ackley.space, 20, seed=0).best.value


class TestMistakes:
    @pytest.mark.parametrize("field", ["kernel", "acquisition", "outputs", "optimiser"])
    def test_an_unknown_name_is_refused_with_those_there_are(self, field):
        with pytest.raises(ArgumentError, match=f"{field} is one of .*, got 'nonsense'"):
            GaBO(**{field: "nonsense"})

    @pytest.mark.parametrize("initial", [0, -1, 2.5, True, "5"])
    def test_the_number_of_initial_points_is_a_positive_whole_number(self, initial):
        with pytest.raises(ArgumentError, match="initial points"):
            GaBO(initial=initial)

    def test_an_unknown_method_is_refused_with_the_nearest(self):
        with pytest.raises(ArgumentError, match="Did you mean 'gabo'"):
            strategy("gaboo")


@pytest.mark.parametrize(
    "space",
    [
        nb.Euclidean(2),
        nb.SPD(3),
        nb.SPD(3, metric="log-euclidean"),
        nb.Grassmann(4, 2),
        nb.Stiefel(4, 2),
        nb.Product(nb.SPD(2), nb.Euclidean(1)),
    ],
    ids=repr,
)
def test_gabo_works_on_every_space_with_a_far_optimum(space):
    """The optimum is at the edge of what floats can tell from singular, so that searches try to go too far."""
    target = space.embed(space.project(torch.randn(space.point_shape, generator=seeded(1), dtype=torch.float64)))
    study = nb.Study(space, nb.GaBO(), seed=0)
    study.run(lambda x: float(((space.embed(x) - target) ** 2).sum()), 7, progress=False)
    space.check(torch.stack([trial.x for trial in study.ask(2)]))
    assert all(trial.status == "told" for trial in study.history.finished)


def seeded(seed):
    return torch.Generator().manual_seed(seed)
