"""Objectives and data at the edge of floating point: every method keeps suggesting valid points."""

import pytest
import torch

import nestbo as nb
from nestbo import SPD, History, Product, Sphere, Trial
from nestbo.manifolds import Box
from nestbo.outputs import OUTPUTS
from nestbo.strategies import STRATEGIES

METHODS = [method for family in STRATEGIES.values() for method in family.samples()]
FIRST = [family.samples()[0] for family in STRATEGIES.values()]
SPHERE, MATRICES = Sphere(3), SPD(2, eigenvalues=(0.1, 5))
LARGEST = torch.finfo(torch.float64).max


def told(x, y):
    return History(tuple(Trial(k, x[k]).with_value(value) for k, value in enumerate(y.tolist())))


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def case(name):
    """Points and values of a space, by name."""

    def decorate(make):
        CASES[name] = make
        return make

    return decorate


CASES = {}


@case("infinite slopes")
def _(x):
    t = x.flatten(1)[:, 0]
    return x, (t - t[3]).abs().sqrt().sqrt()


@case("plateaus")
def _(x):
    return x, (x.flatten(1)[:, 0] * 2).floor()


@case("one pit in a plateau")
def _(x):
    return x, torch.eye(len(x), dtype=x.dtype)[4] * -1e8


@case("values from 1e-300 to 1e300")
def _(x):
    return x, 10 ** torch.linspace(-300, 300, len(x), dtype=x.dtype)


@case("values from -1e300 to 1e-300")
def _(x):
    return x, -(10 ** torch.linspace(300, -300, len(x), dtype=x.dtype))


@case("the largest numbers there are")
def _(x):
    return x, LARGEST * torch.linspace(-1, 1, len(x), dtype=x.dtype).sign()


@case("the smallest numbers there are")
def _(x):
    return x, 5e-324 * torch.arange(len(x), dtype=x.dtype)


@case("large values that differ in the last bit")
def _(x):
    return x, 1e15 + torch.arange(len(x), dtype=x.dtype) / 8


@case("fifty identical points")
def _(x):
    x = x[:1].expand(50, *x.shape[1:])
    return x, torch.randn(50, generator=seeded(0), dtype=x.dtype)


@case("points that differ in the last bit")
def _(x):
    near = x[:1].expand_as(x).clone()
    for k in range(1, len(x)):
        near[k] = torch.nextafter(near[k - 1], torch.tensor(2.0, dtype=x.dtype))
    return near, torch.arange(len(x), dtype=x.dtype)


def survives(method, space, name):
    x, y = CASES[name](space.random(9, rng=seeded(1)))
    (suggestion,) = method.suggest(space, told(x, y), 1, seeded(2))
    space.check(suggestion.x, 1e-9)


def allowed(method, space):
    try:
        method.check(space)
    except nb.ArgumentError:
        return False
    return True


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_every_method_keeps_suggesting_valid_points(method, name, request):
    """Full run: all methods on three spaces; otherwise one of each family on a sphere."""
    full = request.config.getoption("--full")
    if not full and method not in FIRST:
        pytest.skip("in the full run")
    spaces = [space for space in (SPHERE, MATRICES, Product(Sphere(2), Box(0, 1))) if allowed(method, space)]
    assert spaces
    for space in spaces if full else spaces[:1]:
        survives(method, space, name)


@pytest.mark.parametrize("corner", [(0.1, 0.1), (5.0, 5.0), (0.1, 5.0)], ids=str)
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_an_optimum_on_the_boundary_of_the_bounds(method, corner, request):
    """Full run: all methods, all corners."""
    if not request.config.getoption("--full") and (method not in FIRST or corner != (0.1, 5.0)):
        pytest.skip("in the full run")
    if not allowed(method, MATRICES):
        pytest.skip("not on matrices")
    target = torch.diag(torch.tensor(corner, dtype=torch.float64))
    start = torch.cat(
        [MATRICES.random(6, rng=seeded(0)), target.unsqueeze(0), 0.1 * torch.eye(2).double().unsqueeze(0)]
    )
    history = told(start, ((start - target) ** 2).sum((1, 2)))
    for k in range(2):
        (suggestion,) = method.suggest(MATRICES, history, 1, seeded(k))
        MATRICES.check(suggestion.x, 1e-9)
        value = ((suggestion.x - target) ** 2).sum().item()
        history = history.add(Trial(len(history), suggestion.x, memory=suggestion.memory).with_value(value))


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_are_finite_for_every_finite_value(name):
    for y in (
        torch.tensor([-LARGEST, LARGEST, 0.0, 1.0], dtype=torch.float64),
        torch.tensor([LARGEST, LARGEST, LARGEST], dtype=torch.float64),
        torch.tensor([LARGEST, 0.99 * LARGEST], dtype=torch.float64),
        torch.tensor([5e-324, 0.0, 1e-310], dtype=torch.float64),
        torch.tensor([5e-324, LARGEST], dtype=torch.float64),
        torch.tensor([-LARGEST], dtype=torch.float64),
    ):
        outputs = OUTPUTS[name].fit(y)
        z = outputs.forward(y)
        assert z.isfinite().all()
        assert (z.argsort() == y.argsort()).all() or len(set(z.tolist())) < len(z)
        assert not outputs.inverse(z).isnan().any()
        assert not outputs.log_slope(y).isnan().any()
