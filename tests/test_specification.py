"""The text form: what is written reads back, and what is not one is refused with a sentence."""

import sys
import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nestbo import (
    SPD,
    Box,
    Euclidean,
    Grassmann,
    Manifold,
    Product,
    Quaternion,
    Rotation,
    Simplex,
    SpecificationError,
    Sphere,
    Stiefel,
    Torus,
    space,
)
from nestbo.manifolds import MANIFOLDS

quickly = settings(deadline=None, max_examples=200)


@pytest.mark.parametrize(
    ("text", "manifold"),
    [
        ("sphere:50", Sphere(50)),
        (" sphere : 50 ".replace(" :", ":"), Sphere(50)),
        ("sphere:n=3", Sphere(3)),
        ("spd:10:eigenvalues=0.001,5", SPD(10, eigenvalues=(0.001, 5.0))),
        ("spd:3:metric=log-euclidean", SPD(3, metric="log-euclidean")),
        ("spd:3:eigenvalues=none", SPD(3)),
        ("spd:3:eigenvalues = 1e-3 , 5", SPD(3, eigenvalues=(1e-3, 5))),
        ("grassmann:5:2", Grassmann(5, 2)),
        ("stiefel:5:p=2", Stiefel(5, 2)),
        ("euclidean:4", Euclidean(4)),
        ("rotation:3", Rotation(3)),
        ("quaternion", Quaternion()),
        ("torus:2", Torus(2)),
        ("simplex:n=4", Simplex(4)),
        ("product:(quaternion):(box:0:1)", Product(Quaternion(), Box(0, 1))),
        ("box:0:1", Box(0, 1)),
        ("box:0:1,2", Box(0, [1, 2])),
        ("box:-1.5,0,:1,1", Box([-1.5, 0], [1, 1])),
        ("product:(sphere:2):(spd:3)", Product(Sphere(2), SPD(3))),
        ("product:(product:(sphere:1)):(box:0,0:1,2)", Product(Product(Sphere(1)), Box(0, [1, 2]))),
    ],
)
def test_known_texts(text, manifold):
    assert space(text) == manifold
    assert space(manifold.specification) == manifold


def test_texts_are_short():
    assert SPD(10, eigenvalues=(1e-3, 5)).specification == "spd:10:eigenvalues=0.001,5.0"
    assert Product(Sphere(2), SPD(3)).specification == "product:(sphere:2):(spd:3)"
    assert repr(SPD(10, eigenvalues=(1e-3, 5))) == "SPD(10, eigenvalues=(0.001, 5.0))"


sizes = st.integers(1, 2**29)
wide = st.floats(-4e29, 4e29)


@st.composite
def bounds(draw):
    positive = st.floats(min_value=1e-100, max_value=1e100)
    low, high = sorted([draw(positive), draw(positive)])
    assume(low < high)
    return low, high


@st.composite
def boxes(draw):
    pairs = draw(st.lists(st.tuples(wide, wide).filter(lambda p: abs(p[0] - p[1]) > 1e-29), min_size=1, max_size=4))
    return Box([min(p) for p in pairs], [max(p) for p in pairs])


@st.composite
def frames(draw):
    p = draw(sizes)
    return draw(st.sampled_from([Grassmann, Stiefel]))(p + draw(sizes), p)


spds = st.builds(
    SPD, sizes, metric=st.sampled_from(["affine-invariant", "log-euclidean"]), eigenvalues=st.none() | bounds()
)
rotations = st.sampled_from([Rotation(3), Quaternion()])
sized = st.builds(lambda family, n: family(n), st.sampled_from([Sphere, Euclidean, Torus, Simplex]), sizes)
simple = sized | rotations | spds | boxes() | frames()
manifolds = st.recursive(
    simple, lambda inner: st.lists(inner, min_size=1, max_size=3).map(lambda f: Product(*f)), max_leaves=6
)


@quickly
@given(manifolds)
def test_every_manifold_reads_back_equal(manifold):
    back = space(manifold.specification)
    assert back == manifold
    assert hash(back) == hash(manifold)
    assert repr(back) == repr(manifold)
    assert back.specification == manifold.specification


@quickly
@given(bounds())
def test_floats_survive_to_the_last_bit(pair):
    back = space(SPD(2, eigenvalues=pair).specification)
    assert [x.hex() for x in back.eigenvalues] == [x.hex() for x in pair]


def reads_or_refuses(text):
    try:
        manifold = space(text)
    except SpecificationError:
        return
    assert isinstance(manifold, Manifold)
    assert space(manifold.specification) == manifold


@quickly
@given(st.text())
def test_arbitrary_text_is_read_or_refused(text):
    reads_or_refuses(text)


pieces = st.sampled_from(
    (
        *(*MANIFOLDS, *":(),=. -", "n", "p", "metric", "eigenvalues", "lower", "log-euclidean", "none", "True"),
        *("nan", "inf", "-1", "0", "1", "2", "3", "2.0", "1e5", "1e400", "-0.0", "1_0", "٣", "½", "\0"),
        *("9" * count for count in (30, 400)),
    )
)


@settings(deadline=None, max_examples=500)
@given(st.sampled_from(list(MANIFOLDS)), st.lists(pieces, max_size=12).map("".join))
def test_nearly_right_text_is_read_or_refused(name, rest):
    reads_or_refuses(f"{name}:{rest}")


@pytest.mark.parametrize(
    "text",
    [
        "sphere:nan",
        "sphere:inf",
        "sphere:1e3",
        "sphere:-3",
        "sphere:0",
        "sphere:٣",
        "sphere:1_0",
        "sphere:0x10",
        "sphere:" + "9" * 5000,
        "sphere:true",
        "sphere",
        "sphere:",
        "sphere:2:3",
        "sphere:m=3",
        "sphere:=3",
        "sphere:n=3:n=4",
        "sphere:2:n=3",
        "sphere:(sphere:2)",
        "rotation",
        "rotation:2",
        "quaternion:3",
        "torus:0",
        "simplex:2.5",
        "spd:3:eigenvalues=nan,1",
        "spd:3:eigenvalues=1,inf",
        "spd:3:eigenvalues=1,1e400",
        "spd:3:eigenvalues=1," + "9" * 400,
        "spd:3:eigenvalues=5,1",
        "spd:3:eigenvalues=1",
        "spd:3:eigenvalues=(sphere:2),(sphere:3)",
        "spd:3:metric=none",
        "spd:3:metric=1,2",
        "box:0",
        "box:1:0",
        "box:nan:1",
        "box:0:" + "9" * 400,
        "box:a:b",
        "box:none:1",
        "box:,:,",
        "box:(sphere:2):1",
        "box:1,(sphere:2):1",
        "product",
        "product:sphere:2",
        "product:(sphere:2),(sphere:3)",
        "product:(sphere:2",
        "product:sphere:2)",
        "product:)(",
        "product:(sphere:2)(sphere:2)",
        "product:()",
        "grassmann:2:3",
        "",
        " ",
        ":",
        "\0",
    ],
    ids=lambda text: text[:30],
)
def test_what_is_not_a_space_is_refused(text):
    with pytest.raises(SpecificationError) as error:
        space(text)
    assert len(str(error.value)) > 20


def test_huge_numbers_are_numbers_and_take_no_time():
    start = time.perf_counter()
    assert space("sphere:2147483647").dim == 2147483647
    assert space("spd:2147483647").dim > 10**18
    for text in ("sphere:99999999999999999999", "spd:" + "9" * 250, "sphere:" + "9" * 10_000):
        with pytest.raises(SpecificationError):
            space(text)
    assert space("spd:3:eigenvalues=1e-99,1e99").eigenvalues == (1e-99, 1e99)
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize("text", ["product:" * 5000, "(" * 100_000, "product:(" * 5000 + "sphere:2" + ")" * 5000])
def test_deep_nesting_is_refused_before_it_exhausts_the_stack(text):
    limit = sys.getrecursionlimit()
    with pytest.raises(SpecificationError):
        space(text)
    assert sys.getrecursionlimit() == limit


def test_reasonable_nesting_reads_back():
    manifold = Sphere(2)
    for _ in range(15):
        manifold = Product(manifold, Sphere(1))
    assert space(manifold.specification) == manifold


@pytest.mark.parametrize("text", [None, 3, b"sphere:2", ["sphere:2"], Sphere(2)], ids=repr)
def test_what_is_not_text_is_refused(text):
    with pytest.raises(SpecificationError, match=r"Wanted the text form of a space, got .*Pass a string"):
        space(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("spere:3", ["Wanted a space (", "euclidean", "got 'spere'", "Did you mean 'sphere'?"]),
        ("Sphere:3", ["got 'Sphere'", "Did you mean 'sphere'?"]),
        ("sphere:0", ["Cannot read 'sphere:0'", "at least 1, got 0"]),
        ("spd:3:metrik=x", ["metrik"]),
        ("product:(sphere:2", ["parentheses", "Write one ) for every ("]),
        ("sphere:n=3:n=4", ["'n' is given twice"]),
        ("product:(" * 30 + "sphere:2" + ")" * 30, ["at most 20 deep, got 30"]),
    ],
    ids=lambda value: str(value)[:20],
)
def test_messages_say_what_was_wanted_what_came_and_what_to_do(text, parts):
    with pytest.raises(SpecificationError) as error:
        space(text)
    assert all(part in str(error.value) for part in parts)


@pytest.mark.parametrize(
    ("text", "form"), [("box:20,90", "box:lower:upper"), ("sphere:2:3", "sphere:n"), ("spd", "spd:n")]
)
def test_arguments_that_are_too_few_or_too_many_are_answered_with_the_form(text, form):
    with pytest.raises(SpecificationError, match=f"write {form}"):
        space(text)
