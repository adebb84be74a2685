"""The primitives against mpmath, scipy and finite differences, where they are smooth and where they are not."""

import math

import mpmath
import numpy as np
import pytest
import scipy.linalg
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.functional import hessian, jacobian

from nestbo import linalg
from nestbo.linalg import EXP, INVERSE_SQRT, LOG, LOG1P, SQRT, symmetric

DTYPES = [torch.float64, torch.float32]
both_precisions = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def vector(*entries, dtype=torch.float64):
    return torch.tensor(entries, dtype=dtype)


def random(*shape, rng):
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def equal(a, b, tolerance=1e-12):
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


@both_precisions
@pytest.mark.parametrize("f", [linalg.norm, lambda x: linalg.safe_sqrt(x[0])], ids=["norm", "safe_sqrt"])
def test_kinks_at_zero_have_zero_derivatives(f, dtype):
    zero = torch.zeros(3, dtype=dtype)
    assert f(zero) == 0
    assert f(zero).dtype == dtype
    assert (jacobian(f, zero) == 0).all()
    assert (hessian(f, zero) == 0).all()


def test_safe_sqrt_is_the_root_elsewhere_and_zero_below():
    equal(linalg.safe_sqrt(vector(4.0, 2.0, -1.0)), vector(2.0, math.sqrt(2), 0.0))
    equal(jacobian(linalg.safe_sqrt, vector(4.0)), vector(0.25)[None])


def test_what_is_not_a_number_does_not_become_zero():
    assert linalg.safe_sqrt(vector(math.nan)).isnan().all()
    assert linalg.norm(vector(math.nan, 1.0)).isnan()
    assert linalg.safe_sqrt(vector(math.inf)) == math.inf


def test_norm_takes_several_axes_and_has_the_right_derivatives(rng):
    x = random(4, 2, 3, rng=rng)
    equal(linalg.norm(x, axes=2), torch.linalg.matrix_norm(x))
    assert gradcheck(lambda x: linalg.norm(x, 2), x.requires_grad_())
    assert gradgradcheck(lambda x: linalg.norm(x, 2), x)


@both_precisions
def test_unit_of_zero_is_the_first_axis_with_finite_derivatives(dtype):
    zero = torch.zeros(4, dtype=dtype)
    assert linalg.unit(zero).tolist() == [1, 0, 0, 0]
    assert jacobian(linalg.unit, zero).isfinite().all()
    assert hessian(lambda x: linalg.unit(x).sum(), zero).isfinite().all()


@pytest.mark.parametrize(
    ("size", "dtype"),
    [
        (1e-200, torch.float64),
        (1e200, torch.float64),
        (1.0, torch.float64),
        (1e-30, torch.float32),
        (1e30, torch.float32),
    ],
)
def test_unit_neither_overflows_nor_underflows(size, dtype):
    x = size * vector(3.0, 0.0, -4.0, dtype=dtype)
    u = linalg.unit(x)
    rounding = 10 * torch.finfo(dtype).eps
    equal(u, vector(0.6, 0.0, -0.8, dtype=dtype), rounding)
    tangential = (torch.eye(3, dtype=dtype) - torch.outer(u, u)) / 5
    equal(jacobian(linalg.unit, x) * size, tangential, rounding)


def test_unit_is_twice_differentiable(rng):
    x = random(3, 4, rng=rng).requires_grad_()
    assert gradcheck(linalg.unit, x)
    assert gradgradcheck(linalg.unit, x)


@both_precisions
def test_arc_is_exact_at_coincident_and_antipodal_points(dtype, rng):
    x = linalg.unit(random(50, 6, rng=rng).to(dtype))
    assert (linalg.arc(x, x) == 0).all()
    equal(linalg.arc(x, -x), torch.full((50,), math.pi, dtype=dtype), torch.finfo(dtype).eps)


@both_precisions
@pytest.mark.parametrize("sign", [1, -1], ids=["coincident", "antipodal"])
def test_arc_has_finite_derivatives_at_its_kinks(sign, dtype):
    y = linalg.unit(vector(1.0, 2.0, -2.0, dtype=dtype))
    f = lambda x: linalg.arc(x, y)
    assert (jacobian(f, sign * y) == 0).all()
    assert hessian(f, sign * y).isfinite().all()


def test_arc_keeps_its_digits_for_small_and_for_nearly_straight_angles():
    angles = vector(1e-300, 1e-150, 1e-12, 1e-3, 1.0, 3.0, math.pi - 1e-9)
    x = torch.stack([torch.ones_like(angles), torch.zeros_like(angles)], -1)
    y = torch.stack([angles.cos(), angles.sin()], -1)
    small = angles >= 1e-150  # a squared difference of 1e-300 underflows
    equal(linalg.arc(x, y)[small] / angles[small], torch.ones_like(angles[small]), 1e-14)
    equal(linalg.arc_squared(x, y)[small] / angles[small] ** 2, torch.ones_like(angles[small]), 1e-14)


@both_precisions
@pytest.mark.parametrize("n", [2, 3, 8])
def test_half_the_squared_arc_has_the_identity_as_hessian_where_points_coincide(n, dtype, rng):
    y = linalg.unit(random(n, rng=rng).to(dtype))
    f = lambda x: linalg.arc_squared(x, y) / 2
    tangential = torch.eye(n, dtype=dtype) - torch.outer(y, y)
    rounding = 100 * torch.finfo(dtype).eps
    equal(jacobian(f, y), torch.zeros(n, dtype=dtype), rounding)
    equal(tangential @ hessian(f, y) @ tangential, tangential, rounding)


@both_precisions
@pytest.mark.parametrize("offset", [0.0, 1e-100, 1e-30, 1e-8, 1e-4, 0.1, 1.0], ids=str)
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["near", "opposite"])
def test_squared_arc_has_finite_derivatives_everywhere(offset, sign, dtype):
    x = linalg.unit(vector(1.0, 0.0, 0.0, dtype=dtype))
    y = linalg.unit(vector(sign, offset, 0.0, dtype=dtype))
    f = lambda x: linalg.arc_squared(x, y)
    equal(f(x), linalg.arc(x, y) ** 2, 10 * torch.finfo(dtype).eps)
    assert jacobian(f, x).isfinite().all()
    assert hessian(f, x).isfinite().all()


@pytest.mark.parametrize("angle", [0.3, 2 * math.asin(0.5), 1.5, 3.0])
def test_squared_arc_has_the_hessian_of_the_sphere(angle):
    """½θ² has curvature 1 along the geodesic and θ cot θ across it, on both sides of the switch at sin²(θ/2) = ¼."""
    x, along, across = torch.eye(3, dtype=torch.float64)
    y = math.cos(angle) * x + math.sin(angle) * along
    f = lambda x: linalg.arc_squared(x, y) / 2
    slope, curvature = jacobian(f, x), hessian(f, x)
    riemannian = curvature - torch.dot(slope, x) * torch.eye(3, dtype=torch.float64)
    equal(slope @ along, vector(-angle)[0], 1e-12)
    equal(along @ riemannian @ along, vector(1.0)[0], 1e-11)
    equal(across @ riemannian @ across, vector(angle / math.tan(angle))[0], 1e-11)


def _mp_sinc_root(q):
    return mpmath.sinc(mpmath.sqrt(q))


def _mp_arcsinc_root(q):
    return mpmath.asin(mpmath.sqrt(q)) / mpmath.sqrt(q) if q else mpmath.mpf(1)


QUOTIENTS = [
    (linalg.cos_root, lambda q: mpmath.cos(mpmath.sqrt(q)), 9.0),
    (linalg.sinc_root, _mp_sinc_root, 9.0),
    (linalg.arcsinc_root, _mp_arcsinc_root, 0.95),
]


@pytest.mark.parametrize(("f", "exact", "largest"), QUOTIENTS, ids=["cos_root", "sinc_root", "arcsinc_root"])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_quotients_and_their_derivatives_agree_with_mpmath(f, exact, largest, order):
    points = [0.0, 1e-300, 1e-12, 1e-3, 0.1, 0.2499999, math.nextafter(0.25, 0), 0.25, 0.2500001, 0.5, 0.7, largest]
    q = vector(*points).requires_grad_()
    value = f(q)
    for _ in range(order):
        (value,) = torch.autograd.grad(value.sum(), q, create_graph=True)
    with mpmath.workdps(60):
        wanted = [float(mpmath.re(mpmath.diff(exact, mpmath.mpf(p), order, h=mpmath.mpf(10) ** -15))) for p in points]
    torch.testing.assert_close(value.detach(), vector(*wanted), rtol=1e-13 * 30**order, atol=1e-15)


@pytest.mark.parametrize(("f", "exact", "largest"), QUOTIENTS, ids=["cos_root", "sinc_root", "arcsinc_root"])
def test_quotients_in_single_precision(f, exact, largest):
    points = [0.0, 1e-30, 0.1, 0.25, 0.7]
    wanted = vector(*(float(exact(mpmath.mpf(p))) for p in points), dtype=torch.float32)
    equal(f(vector(*points, dtype=torch.float32)), wanted, 1e-6)
    assert jacobian(lambda q: f(q).sum(), vector(*points, dtype=torch.float32)).isfinite().all()


NAMED = {
    "logm": (linalg.logm, scipy.linalg.logm),
    "expm": (linalg.expm, scipy.linalg.expm),
    "sqrtm": (linalg.sqrtm, scipy.linalg.sqrtm),
    "inverse_sqrtm": (linalg.inverse_sqrtm, lambda a: np.linalg.inv(scipy.linalg.sqrtm(a))),
}
SCALARS = {"log": LOG, "log1p": LOG1P, "exp": EXP, "sqrt": SQRT, "inverse_sqrt": INVERSE_SQRT}
SPECTRA = {
    "random": (0.3, 0.9, 2.5, 4.0),
    "identity": (1.0, 1.0, 1.0, 1.0),
    "repeated": (0.5, 0.5, 2.0, 2.0),
    "gap 1e-3": (1.0, 1.001, 1.002, 3.0),
    "gap 1e-8": (1.0, 1.0 + 1e-8, 1.0 + 2e-8, 3.0),
    "gap 1e-12": (1.0, 1.0 + 1e-12, 1.0 + 2e-12, 3.0),
    "switch": (1.0, 1.0202, 1.0203, 1.05),
    "wide": (1e-2, 1.0, 1.0, 1e2),
}
named = pytest.mark.parametrize("name", NAMED)
scalars = pytest.mark.parametrize("name", SCALARS)
spectra = pytest.mark.parametrize("spectrum", SPECTRA)


def matrix(spectrum, rng):
    frame = linalg.random_frames(4, 4, rng=rng)
    return linalg.spectral(vector(*SPECTRA[spectrum]), frame)


@named
@spectra
def test_matrix_functions_agree_with_scipy(name, spectrum, rng):
    ours, theirs = NAMED[name]
    a = matrix(spectrum, rng)
    a = a / 20 if (name, spectrum) == ("expm", "wide") else a
    equal(ours(a), torch.tensor(np.real(theirs(a.numpy()))), 1e-11)


@scalars
@spectra
def test_matrix_functions_are_twice_differentiable(name, spectrum, rng):
    a = matrix(spectrum, rng)
    if spectrum == "wide":
        a = torch.diag(vector(0.1, 1.0, 1.0, 5.0))
    f = lambda a: linalg.matrix_function(linalg.sym(a), SCALARS[name])
    assert gradcheck(f, a.requires_grad_())
    assert gradgradcheck(f, a)


@named
@both_precisions
def test_matrix_functions_at_the_identity(name, dtype):
    eye = torch.eye(3, dtype=dtype).requires_grad_()
    value = NAMED[name][0](eye)
    (gradient,) = torch.autograd.grad(value.sum(), eye, create_graph=True)
    (second,) = torch.autograd.grad((gradient**2).sum(), eye)
    assert value.dtype == gradient.dtype == dtype
    assert value.isfinite().all()
    assert gradient.isfinite().all()
    assert second.isfinite().all()


@both_precisions
def test_a_function_of_a_multiple_of_the_identity_has_its_scalar_derivatives(dtype):
    """At mI, Df(a)[g] = f′(m) g and D²f(a)[g, g] = f″(m) g², exactly."""
    m, g = 2.0, torch.tensor([[1.0, 2.0], [2.0, -1.0]], dtype=dtype)
    a = m * torch.eye(2, dtype=dtype)
    rounding = 10 * torch.finfo(dtype).eps
    equal(linalg.frechet(a, g, LOG), g / m, rounding)
    equal(linalg.second_frechet(a, g, g, LOG), -g @ g / m**2, rounding)
    equal(linalg.second_frechet(a, g, g, EXP), math.exp(m) * g @ g, rounding)


@spectra
def test_frechet_agrees_with_scipy(spectrum, rng):
    a, g = matrix(spectrum, rng), linalg.sym(random(4, 4, rng=rng))
    a = a / a.abs().max()
    wanted = scipy.linalg.expm_frechet(a.numpy(), g.numpy(), compute_expm=False)
    equal(linalg.frechet(a, g, EXP), torch.tensor(wanted), 1e-12)


@scalars
@pytest.mark.parametrize("spectrum", ["random", "gap 1e-3", "switch"])
def test_frechet_agrees_with_the_block_triangular_identity(name, spectrum, rng):
    """f([a g; 0 a]) = [f(a) Df(a)[g]; 0 f(a)] (Mathias 1996), evaluated by scipy, which needs distinct eigenvalues."""
    a, g = matrix(spectrum, rng), linalg.sym(random(4, 4, rng=rng))
    block = np.block([[a.numpy(), g.numpy()], [np.zeros((4, 4)), a.numpy()]])
    root = scipy.linalg.sqrtm
    general = {
        "exp": scipy.linalg.expm,
        "log": scipy.linalg.logm,
        "log1p": lambda b: scipy.linalg.logm(b + np.eye(8)),
        "sqrt": root,
        "inverse_sqrt": lambda b: np.linalg.inv(root(b)),
    }
    wanted = np.real(general[name](block))[:4, 4:]
    equal(linalg.frechet(a, g, SCALARS[name]), torch.tensor(wanted), 1e-8)


@scalars
@spectra
def test_second_frechet_agrees_with_differences_of_the_first(name, spectrum, rng):
    f, a = SCALARS[name], matrix(spectrum, rng)
    if spectrum == "wide":
        a = torch.diag(vector(0.1, 1.0, 1.0, 5.0))
    g, h = (linalg.sym(random(4, 4, rng=rng)) for _ in range(2))
    step = 1e-5
    forward, backward = (linalg.frechet(a + s * step * h, g, f) for s in (1, -1))
    second = linalg.second_frechet(a, g, h, f)
    torch.testing.assert_close(second, (forward - backward) / (2 * step), rtol=1e-5, atol=1e-5)
    equal(second, linalg.second_frechet(a, h, g, f), 1e-10)


@pytest.mark.parametrize("gap", [1e-1, 3e-2, 2.1e-2, 2e-2, 1.9e-2, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15])
@scalars
def test_derivatives_keep_their_digits_at_every_gap(name, gap):
    """First and second divided differences against mpmath, across the switch from quotients to Taylor sums."""
    exact = {
        "log": mpmath.log,
        "log1p": mpmath.log1p,
        "exp": mpmath.exp,
        "sqrt": mpmath.sqrt,
        "inverse_sqrt": lambda x: 1 / mpmath.sqrt(x),
    }[name]
    nodes = vector(1.0, 1.0 + gap, 1.0 + 2.5 * gap)
    g = torch.ones(3, 3, dtype=torch.float64)
    first = linalg.frechet(torch.diag(nodes), g, SCALARS[name])
    second = linalg.second_frechet(torch.diag(nodes), g, g, SCALARS[name])[0, 2].item()
    with mpmath.workdps(120):
        x = [mpmath.mpf(node) + k * mpmath.mpf(10) ** -35 for k, node in enumerate(nodes.tolist())]
        pair = [[None] * 3 for _ in range(3)]
        for i in range(3):
            for j in range(3):
                pair[i][j] = mpmath.diff(exact, x[i]) if i == j else (exact(x[i]) - exact(x[j])) / (x[i] - x[j])
        # f[λ₀, λ_k, λ₂] summed over k, twice, is the (0, 2) entry of the second derivative along all-ones.
        triples = [_triple(exact, x[0], x[k], x[2], k) for k in range(3)]
        wanted = float(2 * sum(triples))
    assert first[0, 2].item() == pytest.approx(float(pair[0][2]), rel=1e-13)
    assert first[1, 1].item() == pytest.approx(float(pair[1][1]), rel=1e-13)
    assert second == pytest.approx(wanted, rel=1e-11)


@pytest.mark.parametrize(
    ("f", "exact", "a", "b"),
    [(LOG, mpmath.log, a, 1.0) for a in (1e-3, 1e-10, 1e-16, 1e-30)]
    + [(LOG1P, mpmath.log1p, 0.0, 1e12), (EXP, mpmath.exp, -100.0, 100.0), (EXP, mpmath.exp, -1500.0, 0.0)],
)
def test_derivatives_keep_their_digits_at_very_different_eigenvalues(f, exact, a, b):
    with mpmath.workdps(60):
        wanted = float((exact(mpmath.mpf(b)) - exact(mpmath.mpf(a))) / (mpmath.mpf(b) - mpmath.mpf(a)))
    found = symmetric.divided_differences(f, vector(a, b), 2)
    assert found[0, 1].item() == found[1, 0].item() == pytest.approx(wanted, rel=1e-14)


def _triple(f, a, b, c, k):
    if k == 1:
        return ((f(c) - f(b)) / (c - b) - (f(b) - f(a)) / (b - a)) / (c - a)
    slope, quotient = mpmath.diff(f, b), (f(c) - f(a)) / (c - a)
    return (quotient - slope) / (c - a) if k == 0 else (slope - quotient) / (c - a)


def test_the_root_has_finite_derivatives_at_singular_matrices():
    for spectrum in [(0.0, 0.0), (0.0, 1.0)]:
        a = torch.diag(vector(*spectrum)).requires_grad_()
        value = linalg.sqrtm(a)
        (gradient,) = torch.autograd.grad(value.sum(), a, create_graph=True)
        (second,) = torch.autograd.grad((gradient**2).sum(), a)
        equal(value @ value, a.detach())
        assert gradient.isfinite().all()
        assert second.isfinite().all()


@pytest.mark.parametrize(
    "spectrum", [(0.1, 0.2, 0.9, 1.1), (-1.0, 0.7, 0.7, 3.0), (0.7, 0.7, 0.7, 0.7), (5.0, 5.0, 5.0, 5.0)]
)
def test_clip_keeps_eigenvalues_within_bounds_and_is_differentiable_beside_them(spectrum, rng):
    frame, f = linalg.random_frames(4, 4, rng=rng), linalg.clip(0.5, 2.0)
    a = linalg.spectral(vector(*spectrum), frame)
    equal(linalg.matrix_function(a, f), linalg.spectral(vector(*spectrum).clamp(0.5, 2.0), frame))
    assert gradcheck(lambda a: linalg.matrix_function(linalg.sym(a), f), a.requires_grad_())
    known = linalg.matrix_function(a, f, linalg.eigh(a.detach()))
    equal(known, linalg.matrix_function(a, f), 0)


def test_power_series_is_the_function_it_sums(rng):
    exponential = linalg.power_series(tuple(1 / math.factorial(k) for k in range(40)))
    a = matrix("repeated", rng)
    g = linalg.sym(random(4, 4, rng=rng))
    equal(linalg.matrix_function(a, exponential), linalg.expm(a))
    equal(linalg.frechet(a, g, exponential), linalg.frechet(a, g, EXP))
    equal(linalg.second_frechet(a, g, g, exponential), linalg.second_frechet(a, g, g, EXP))


def test_frechet_is_differentiable_in_both_arguments_and_broadcasts(rng):
    a = torch.stack([matrix("random", rng), torch.eye(4, dtype=torch.float64)]).requires_grad_()
    g = random(3, 1, 4, 4, rng=rng).requires_grad_()
    assert gradcheck(lambda a, g: linalg.frechet(linalg.sym(a), linalg.sym(g), LOG), (a, g))


@named
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_matrix_that_is_not_finite_leaves_the_others_alone(name, bad, rng):
    f = NAMED[name][0]
    good = torch.stack([matrix("random", rng), matrix("repeated", rng)])
    a = torch.stack([good[0], torch.full((4, 4), bad, dtype=torch.float64), good[1]]).requires_grad_()
    value = f(a)
    assert value[1].isnan().all()
    equal(value[[0, 2]], f(good), 0)
    (gradient,) = torch.autograd.grad(value[[0, 2]].sum(), a, create_graph=True)
    (second,) = torch.autograd.grad((gradient[[0, 2]] ** 2).sum(), a)
    assert gradient[[0, 2]].isfinite().all()
    assert second[[0, 2]].isfinite().all()


def test_eigh_of_one_bad_matrix_leaves_the_others_alone(rng):
    a = torch.stack([matrix("random", rng)] * 3)
    a[1, 0, 0] = math.nan
    values, vectors = linalg.eigh(a)
    assert values[1].isnan().all()
    equal(linalg.spectral(values, vectors)[[0, 2]], a[[0, 2]])


def is_frame(q, tolerance=1e-12):
    equal(q.mT @ q, torch.eye(q.shape[-1], dtype=q.dtype).expand(*q.shape[:-2], -1, -1), tolerance)


def test_orthonormal_spans_the_columns_and_is_continuous(rng):
    a = random(7, 6, 3, rng=rng)
    q = linalg.orthonormal(a)
    is_frame(q)
    equal(q @ (q.mT @ a), a)
    assert ((q.mT @ a).diagonal(dim1=-2, dim2=-1) > 0).all()
    assert (linalg.orthonormal(a + 1e-9 * random(7, 6, 3, rng=rng)) - q).abs().max() < 1e-7


@pytest.mark.parametrize("p", [1, 3, 5, 6])
def test_completion_spans_the_complement(p, rng):
    frame = linalg.random_frames(4, 6, p, rng=rng)
    rest = linalg.completion(frame)
    assert rest.shape == (4, 6, 6 - p)
    is_frame(torch.cat([frame, rest], -1))


def test_random_frames_are_haar(rng):
    """Entries of a Haar frame have mean 0, variance 1/n and no preferred sign."""
    q = linalg.random_frames(20000, 4, 2, rng=rng)
    is_frame(q)
    assert q.mean(0).abs().max() < 0.02
    assert (4 * (q**2).mean(0) - 1).abs().max() < 0.03
    assert ((q > 0).double().mean(0) - 0.5).abs().max() < 0.015


def test_polar_agrees_with_scipy_and_is_twice_differentiable(rng):
    a = random(2, 5, 3, rng=rng)
    wanted = torch.stack([torch.tensor(scipy.linalg.polar(part.numpy())[0]) for part in a])
    equal(linalg.polar(a), wanted)
    equal(linalg.nearest_frame(a), wanted)
    frame = linalg.random_frames(5, 3, rng=rng).requires_grad_()  # here aᵀa is the identity
    assert gradcheck(linalg.polar, frame)
    assert gradgradcheck(linalg.polar, frame)


def test_nearest_frame_accepts_any_matrix(rng):
    a = random(4, 5, 3, rng=rng)
    a[1] = 0
    a[2, :, 2] = a[2, :, 0]
    a[3, 0, 0] = math.nan
    q = linalg.nearest_frame(a)
    is_frame(q[:3])
    assert q[3].isnan().all()
    equal(q[0], linalg.nearest_frame(a[0]))  # rounding differs with the size of a batch


@pytest.mark.parametrize(
    "a", [torch.zeros(3, 3), torch.diag(torch.tensor([0.5, 0.5, 0.5 + 1e-9, 2.0])), torch.full((2, 2), 0.3)], ids=str
)
def test_sum_of_squared_logs_is_that_of_the_matrix_logarithm(a):
    """Value, gradient and Hessian, also at repeated eigenvalues."""
    a = a.double().requires_grad_()
    fast = lambda x: linalg.sum_of_squared_logs(linalg.sym(x))
    slow = lambda x: linalg.matrix_function(linalg.sym(x), linalg.LOG1P).square().sum((-1, -2))
    assert torch.autograd.gradcheck(fast, a)
    assert torch.autograd.gradgradcheck(fast, a)
    assert torch.allclose(fast(a), slow(a), atol=1e-14)
    hessians = [torch.autograd.functional.hessian(f, a) for f in (fast, slow)]
    assert torch.allclose(*hessians, atol=1e-12)


def test_eigenvalues_in_parts_are_those_of_the_whole(rng):
    a = linalg.sym(torch.randn(2, 5, 3, 3, generator=rng, dtype=torch.float64))
    for found, whole in zip(symmetric._eigh_in_parts(a, 3), torch.linalg.eigh(a), strict=True):
        torch.testing.assert_close(found, whole)


def test_eigenvalues_alone_are_those_with_vectors(rng):
    a = linalg.sym(random(5, 3, 4, 4, rng=rng))
    a[1, 2, 0, 0] = math.nan
    expected = linalg.eigh(a)[0]
    torch.testing.assert_close(symmetric.eigvalsh(a), expected, rtol=0, atol=1e-13, equal_nan=True)
    assert expected.isnan().sum() == 4


def test_sums_of_squared_logs_are_the_same_without_a_gradient(rng):
    a = linalg.sym(random(5, 4, 4, rng=rng)) / 10
    with_gradient = linalg.sum_of_squared_logs(a.clone().requires_grad_())
    assert with_gradient.requires_grad
    equal(linalg.sum_of_squared_logs(a), with_gradient.detach())
    with torch.no_grad():
        equal(linalg.sum_of_squared_logs(a.clone().requires_grad_()), with_gradient.detach())
