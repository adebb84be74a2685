"""Boxes: unit coordinates inside, whatever the units and the scale outside."""

import pytest
import torch

import nestbo as nb
from nestbo import ArgumentError, Box, Product, Quaternion
from nestbo.strategies import STRATEGIES
from nestbo.testing.strategies import units_of_boxes_change_nothing

METHODS = [method for family in STRATEGIES.values() for method in family.samples()]
QUICK = (nb.GaBO(), nb.EuclideanBO(), nb.RandomSearch())
RATE = Box(1e-6, 1, scale="log")


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_units_change_no_suggestion(method, rng, request):
    if method not in QUICK and not request.config.getoption("--full"):
        pytest.skip("with --full; test_strategy_laws has all methods on a product")
    space = Box([-1, 0.5], [3, 9], ("linear", "log"))
    try:
        method.check(space)
    except ArgumentError as error:
        pytest.skip(str(error))
    units_of_boxes_change_nothing(method, space, rng)


@pytest.mark.parametrize(
    ("box", "text"),
    [
        (Box(20, 90), "box:20.0:90.0"),
        (Box(1e-6, 1, "log", ["rate"]), "box:1e-06:1.0:scale=log:names=rate"),
        (Box([0, 1], [1, 2]), "box:0.0,1.0:1.0,2.0"),
    ],
)
def test_the_text_form_is_what_a_person_would_write(box, text):
    again = nb.space(text)
    assert box.specification == text
    assert (again, again.names) == (box, box.names)
    assert repr(Box(20, 90)) == "Box(20.0, 90.0)"


def test_a_file_with_the_text_form_of_an_earlier_version_is_continued(tmp_path):
    space = Product(heat=Box(20, 90))
    with nb.Study(space, nb.RandomSearch(), store=tmp_path / "a.db") as study:
        study.remember(space="product:(heat=box:20.0,:90.0,)")
    assert nb.Study(space, nb.RandomSearch(), store=tmp_path / "a.db").space == space


class TestUnits:
    def test_a_wide_box_does_not_rule_a_product(self, rng):
        narrow, wide = (Product(Quaternion(), Box(0, width)) for width in (1, 40))
        assert narrow.typical_distance == pytest.approx(wide.typical_distance)

    def test_distances_are_those_of_unit_coordinates(self):
        space = Box([0, 100], [40, 101])
        here, there = torch.tensor([[0.0, 100.0], [10.0, 100.5]], dtype=torch.float64)
        assert space.dist(here, there).item() == pytest.approx((0.25**2 + 0.5**2) ** 0.5)


class TestLogarithm:
    def test_random_points_are_even_on_it(self, rng):
        share = (RATE.random(4000, rng=rng) < 1e-3).double().mean().item()
        assert share == pytest.approx(0.5, abs=0.03)

    def test_unit_coordinates_are_even_on_it(self):
        t = RATE.embed(torch.tensor([[1e-6], [1e-3], [1.0]], dtype=torch.float64))
        assert t.flatten().tolist() == pytest.approx([0, 0.5, 1])

    def test_a_point_below_zero_is_outside(self):
        assert RATE.violation(torch.tensor([-1.0], dtype=torch.float64)) > 1
        with pytest.raises(ArgumentError, match="must lie between 1e-06 and 1"):
            RATE.check([-1.0])

    def test_a_study_finds_a_small_rate(self):
        study = nb.Study(RATE, seed=0)
        study.run(lambda x: float((x[0].log10() + 4.5) ** 2), 14, progress=False)
        assert study.best.value < 1e-3

    def test_its_text_form_reads_back(self):
        both = Box([1, 0], [10, 1], ("log", "linear"))
        assert nb.space(RATE.specification) == RATE
        assert nb.space("box:1,0:10,1:scale=log,linear") == both
        assert Box([1, 2], [3, 4], ("log", "log")) == Box([1, 2], [3, 4], scale="log")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Box(0, 1, scale="log"), "logarithmic scale is positive, got a lower bound of 0"),
        (lambda: Box(1, 2, scale="logarithmic"), 'is "linear" or "log"'),
        (lambda: Box(1, 2, scale=3), 'is "linear" or "log"'),
        (lambda: Box(1, 2, scale=("log", "log")), "has 1 coordinates, got 2 scales"),
        (lambda: Box(40, 0), r"lower < upper, got \[40, 0\]"),
    ],
)
def test_mistakes_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()
