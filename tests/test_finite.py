"""Whole numbers, choices and levels, alone and in products, obey the laws of spaces; mistakes get a sentence."""

import pickle

import pytest
import torch

import nestbo as nb
from nestbo import ArgumentError, Box, Choice, Integer, Levels, Product, Quaternion, Simplex, Sphere
from nestbo.kernels import kernel
from nestbo.manifolds import FINITE, MANIFOLDS, Manifold, leaf
from nestbo.testing import KERNEL_LAWS, SPACE_LAWS

SEPARATE = [sample for family in FINITE.values() for sample in family.samples()]
MIXED = [
    Product(Sphere(2), Integer(0, 3), Choice("a", "b")),
    Product(weights=Simplex(2), passes=Integer(1, 40), tool=Choice("soft", "hard"), place=Box(0, [1, 2])),
    Product(Product(Choice("a", "b"), Sphere(1)), Levels(1, 2, 5)),
    Product(where=Box([0, 1], [1, 2], names=("x", "y")), how=Integer(1, 3)),
    Product(Box(0, 1, names="x"), Box([0, 0], [1, 1], names=["y", "z"])),
]
SAMPLES = [sample for family in MANIFOLDS.values() for sample in family.samples()] + SEPARATE + MIXED


@pytest.mark.parametrize("law", SPACE_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("space", SAMPLES, ids=repr)
def test_law(space, law, rng):
    law(space, rng)


@pytest.mark.parametrize("law", KERNEL_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("space", [*SEPARATE, MIXED[0]], ids=repr)
def test_kernel_law(space, law, rng):
    if not isinstance(space, Manifold) and "derivatives" in law.__name__:
        pytest.skip("between separate values there are no derivatives")
    law(kernel("matern52", space), rng)


class TestContracts:
    def test_only_a_product_of_manifolds_is_a_manifold(self):
        assert isinstance(Product(Sphere(2), Box(0, 1)), Manifold)
        assert not isinstance(Product(Sphere(2), Integer(0, 3)), Manifold)
        assert isinstance(Product(Sphere(2), Integer(0, 3)), Product)
        assert not isinstance(Integer(0, 3), Manifold)

    def test_names_change_nothing_about_points(self):
        assert Product(a=Sphere(2), b=Integer(0, 3)) == Product(Sphere(2), Integer(0, 3))
        assert Box(0, 1, names="x") == Box(0, 1)

    def test_a_climb_leaves_separate_values_as_they_are(self, rng):
        space = MIXED[0]
        x, smooth = space.random(5, rng=rng), leaf(space)
        moved = smooth.exp(x, 0.1 * smooth.random_tangent(x, rng))
        assert torch.equal(moved[:, 3:], x[:, 3:])
        assert (smooth.dist(moved, x) > 0.01).all()

    @pytest.mark.parametrize("space", [*SEPARATE, *MIXED], ids=repr)
    def test_spaces_are_copied_with_their_names(self, space):
        again = pickle.loads(pickle.dumps(space))
        assert again == space
        assert again.labels == space.labels

    def test_two_choices_are_a_priori_neither_the_same_nor_unrelated(self):
        for space in (Choice("a", "b"), Choice(*"abcdef"), Integer(0, 1), Integer(0, 100)):
            k = kernel("matern52", space)
            x = space.points
            apart = ~torch.eye(len(x), dtype=torch.bool)
            assert 0.3 < k.correlation(x, x, k.median_lengthscale)[apart].mean() < 0.7


@pytest.mark.parametrize(
    "options",
    [
        ("none", "acid"),
        ("1", 1, 1.5),
        ("a:b", "c,d", "(e)", "f=g", "50%"),
        (True, False, "true"),
        ("größe", "a b", "-1"),
    ],
)
def test_any_word_may_be_a_choice(options):
    space = Product(what=Choice(*options), n=Integer(1, 3))
    again = nb.space(space.specification).factors[0].options
    assert again == options
    assert list(map(type, again)) == list(map(type, options))


class TestValues:
    SPACE = Product(
        orientation=Quaternion(),
        force=Box(0, 40),
        passes=Integer(1, 8),
        tool=Choice("soft", "hard", "vacuum"),
        rate=Box(1e-6, 1, scale="log"),
    )
    GOOD = {"orientation": [1, 0, 0, 0], "force": 12.5, "passes": 3, "tool": "soft", "rate": 1e-3}  # noqa: RUF012

    def test_parameters_are_what_a_person_would_write(self):
        x = self.SPACE.point(self.GOOD)
        assert x.tolist() == [1, 0, 0, 0, 12.5, 3, 0, 1e-3]
        found = self.SPACE.parameters(x)
        assert found.pop("orientation").tolist() == [1, 0, 0, 0]
        assert found == {"force": 12.5, "passes": 3, "tool": "soft", "rate": 1e-3}
        assert isinstance(found["passes"], int)

    def test_the_text_form_speaks_names(self):
        text = "product:(force=box:0:40):(tool=choice:soft,hard,vacuum):(n=integer:1:8)"
        space = nb.space(text)
        assert space.names == ("force", "tool", "n")
        assert nb.space(space.specification).names == space.names
        assert nb.space("product:force=(box:0:40):n=(integer:1:8)").names == ("force", "n")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"force": 41}, r"^force: 41 is above 40\.$"),
            ({"force": -1}, r"^force: -1 is below 0\.$"),
            ({"force": float("nan")}, r"^force: wanted finite numbers"),
            ({"force": "strong"}, r"^force: Wanted a number or a list of numbers, got 'strong'"),
            ({"passes": 2.5}, r"^passes: 2.5 is not a whole number from 1 to 8"),
            ({"passes": 9}, r"^passes: 9 is above 8"),
            ({"passes": True}, r"^passes: True is not a whole number"),
            ({"passes": "3"}, r"^passes: '3' is not a whole number"),
            ({"tool": "vaccum"}, r"^tool: 'vaccum' is not one of soft, hard, vacuum. Did you mean 'vacuum'\?"),
            ({"tool": 1}, r"^tool: 1 is not one of"),
            ({"rate": 0}, r"^rate: 0 is below 1e-06"),
            ({"forse": 1}, r"There is no parameter 'forse'.*Did you mean 'force'"),
            ({"orientation": [1, 0, 0]}, r"^orientation: Wanted one point of Quaternion"),
        ],
    )
    def test_a_wrong_value_is_refused_by_name(self, change, message):
        with pytest.raises(ArgumentError, match=message):
            self.SPACE.point(self.GOOD | change)

    def test_a_missing_one_is_refused_by_name(self):
        with pytest.raises(ArgumentError, match="The parameter 'rate' is missing"):
            self.SPACE.point({name: value for name, value in self.GOOD.items() if name != "rate"})

    def test_a_packed_point_that_is_none_is_refused_by_name(self):
        with pytest.raises(ArgumentError, match="force: 41 is above 40"):
            self.SPACE.check([1, 0, 0, 0, 41, 3, 0, 1e-3])
        with pytest.raises(ArgumentError, match=r"passes: 2\.5 is not a whole number from 1 to 8"):
            self.SPACE.check([1, 0, 0, 0, 4, 2.5, 0, 1e-3])

    def test_a_space_without_names_takes_none(self):
        with pytest.raises(ArgumentError, match="has no names for its parameters, got force"):
            Product(Sphere(2), Integer(0, 3)).point({"force": 3})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Choice("only"), "at least two values, got \\['only'\\]"),
        (lambda: Choice(), "at least two values"),
        (lambda: Choice("a", "b", "a"), "may appear once, got 'a' twice"),
        (lambda: Choice("", "c"), "are words, without spaces around them, or finite numbers, got ''"),
        (lambda: Choice(" a", "c"), "got ' a'"),
        (lambda: Levels(1, float("inf")), "finite numbers, got inf"),
        (lambda: Choice(None, "c"), "got None"),
        (lambda: Levels(1, 3, 2), "are in their order"),
        (lambda: Integer(8, 1), "Integer needs low < high, got 8 and 1"),
        (lambda: Integer(1.5, 3), "are whole numbers, got 1.5"),
        (lambda: Integer(0, 3, "log"), "at least 1, got 0"),
        (lambda: Integer(1, 3, "cubic"), 'is "linear" or "log"'),
        (lambda: Product(Sphere(2), force=Box(0, 1)), "or none: got 1 without a name"),
        (lambda: Product(**{"a:b": Sphere(2)}), "one word of letters, digits and _, such as force, got 'a:b'"),
        (lambda: Product(**{"lambda": Sphere(2)}), "'lambda' is a word of Python"),
        (lambda: Product(force=3), "Product takes spaces, got 3"),
        (lambda: Product(force=(0, 40)), r"got \(0, 40\). Write Box\(0, 40\) for numbers between bounds"),
        (lambda: Product({"force": Box(0, 40)}), r"or Product\(\*\*spaces\)"),
        (lambda: Product(pressure={"vacuum": Box(0, 1)}), "exists for one choice only is not supported"),
        (lambda: Box([0, 0], [1, 1], names=("x", "x")), "got 'x' twice"),
        (lambda: Box([0, 0], [1, 1], names=("x",)), "has 2 coordinates, got 1 names"),
        (lambda: Box(0, 1, names=("for",)), "'for' is a word of Python"),
        (lambda: Product(Box(0, 1, names="x"), Box(0, 1, names="x")), "got 'x' twice"),
        (lambda: nb.space("product:(x=box:0:1):(x=box:0:1)"), "'x' is given twice"),
    ],
)
def test_mistakes_are_refused(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()
