"""The paper's statements on nested SPD matrices (section 3, appendix C), and the fitted lifts."""

import pytest
import torch

from nestbo import SPD, linalg
from nestbo.nested import NestedLogSPD, NestedSPD
from nestbo.nested.spd import _contraction

METRICS = ("affine-invariant", "log-euclidean")


def loss(mapping, x):
    return mapping.ambient.sq_dist(x, mapping.lift(mapping.project(x))).mean()


def with_coupling(rng, norm):
    """A mapping SPD(6) → SPD(2) whose K has a given norm."""
    mapping = NestedSPD.random(SPD(6), SPD(2), rng)
    rest = linalg.completion(mapping.basis)
    k = torch.randn(2, 4, generator=rng, dtype=torch.float64)
    b = SPD(4).random(rng=rng)
    return NestedSPD(mapping.basis, SPD(6), rest @ b @ rest.mT, norm * k / torch.linalg.matrix_norm(k, 2) @ rest.mT)


@pytest.mark.parametrize("norm", [0.0, 0.5, 0.99, 0.999999])
def test_the_lift_is_positive_definite_for_every_coupling_of_norm_below_one(norm, rng):
    mapping = with_coupling(rng, norm)
    z = SPD(2).random(50, rng=rng)
    x = mapping.lift(z)
    assert (torch.linalg.eigvalsh(x) > 0).all()
    assert torch.allclose(mapping.project(x), z, atol=1e-12)


def test_a_coupling_of_norm_above_one_would_not_be(rng):
    x = with_coupling(rng, 1.01).lift(SPD(2).random(50, rng=rng))
    assert (torch.linalg.eigvalsh(x)[:, 0] < 0).all()


@pytest.mark.parametrize("metric", METRICS)
def test_the_fitted_lift_attains_the_minimum(metric, rng):
    """Perturbing B or K never helps, and a long general-purpose optimisation finds nothing better."""
    space = SPD(4, metric=metric)
    x = space.random(12, rng=rng)
    fitted = NestedSPD.random(space, SPD(2, metric=metric), rng).fit_lift(x)
    frame, least = linalg.completion(fitted.basis), loss(fitted, x)
    b, k = frame.mT @ fitted.complement @ frame, fitted.coupling @ frame

    def other(b, k):
        return NestedSPD(fitted.basis, space, frame @ b @ frame.mT, k @ frame.mT)

    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(10):
            move = linalg.sym(torch.randn(2, 2, generator=rng, dtype=torch.float64))
            turn = torch.randn(2, 2, generator=rng, dtype=torch.float64)
            moved = loss(other(linalg.expm(linalg.logm(b) + size * move), k + size * turn), x)
            assert moved >= least - 1e-12
    s, m = (torch.randn(2, 2, generator=rng, dtype=torch.float64).requires_grad_() for _ in range(2))
    search = torch.optim.LBFGS([s, m], max_iter=300, line_search_fn="strong_wolfe", tolerance_grad=1e-10)

    def closure():
        search.zero_grad()
        # without the eigen-decomposition of P in lift, which is not differentiable at its zero eigenvalues
        root_z, root_b = linalg.sqrtm(fitted.project(x)), linalg.expm(linalg.sym(s) / 2)
        cross = fitted.basis @ root_z @ _contraction(m) @ root_b @ frame.mT
        rest = frame @ linalg.expm(linalg.sym(s)) @ frame.mT
        lifted = fitted.basis @ fitted.project(x) @ fitted.basis.mT + rest + cross + cross.mT
        value = space.sq_dist(x, linalg.sym(lifted)).mean()
        value.backward()
        return value

    found = search.step(closure), closure()
    assert found[1].item() >= least.item() - 1e-9


def test_the_fitted_log_lift_is_the_mean(rng):
    space = SPD(5, metric="log-euclidean")
    x = space.random(15, rng=rng)
    fitted = NestedLogSPD.random(space, SPD(2, metric="log-euclidean"), rng).fit_lift(x)
    least = loss(fitted, x)
    assert (fitted.basis.mT @ fitted.offset @ fitted.basis).abs().max() < 1e-12
    inside = fitted.basis @ fitted.basis.mT
    for _ in range(20):
        move = linalg.sym(torch.randn(5, 5, generator=rng, dtype=torch.float64))
        moved = NestedLogSPD(fitted.basis, space, fitted.offset + 0.1 * (move - inside @ move @ inside))
        assert loss(moved, x) > least


@pytest.mark.parametrize("family", [NestedSPD, NestedLogSPD])
def test_fitted_lifts_keep_the_bounds_and_the_round_trip(family, rng):
    space, latent = SPD(6, eigenvalues=(1e-3, 5.0)), SPD(2, eigenvalues=(1e-3, 5.0))
    mapping = family.random(space, latent, rng)
    # strongly coupled data, so that the fitted coupling must give way near the bounds
    frames = linalg.orthonormal(torch.randn(6, 6, generator=rng, dtype=torch.float64))
    values = torch.tensor([1e-3, 1e-3, 0.01, 4.0, 5.0, 5.0], dtype=torch.float64)
    x = linalg.spectral(values * torch.rand(20, 6, generator=rng, dtype=torch.float64).clamp(min=0.9), frames)
    fitted = mapping.fit_lift(space.project(x))
    corners = linalg.spectral(torch.tensor([1e-3, 5.0], dtype=torch.float64), linalg.random_frames(20, 2, 2, rng=rng))
    z = torch.cat([latent.random(20, rng=rng), latent.project(corners)])
    space.check(fitted.lift(z), 1e-9)
    assert torch.allclose(fitted.project(fitted.lift(z)), z, atol=1e-9)


def test_fitting_never_worsens_the_reconstruction(rng):
    space = SPD(5)
    x = space.random(20, rng=rng)
    mapping = NestedSPD.random(space, SPD(2), rng)
    assert loss(mapping.fit_lift(x), x) <= loss(mapping, x)


def test_the_error_of_the_papers_approximation_is_small_near_the_identity_and_not_far_from_it(rng):
    """log(WᵀXW) ≈ Wᵀ log(X) W: to second order in log X, so that it is good for small logarithms only."""
    basis = linalg.random_frames(10, 3, rng=rng)
    direction = linalg.sym(torch.randn(30, 10, 10, generator=rng, dtype=torch.float64)) / 10
    errors = []
    for size in (0.1, 0.2, 2.0):
        exact = linalg.logm(linalg.sym(basis.mT @ linalg.expm(size * direction) @ basis))
        close = basis.mT @ (size * direction) @ basis
        errors.append((linalg.norm(exact - close, axes=2) / linalg.norm(exact, axes=2)).mean().item())
    assert errors[0] < 0.05
    assert errors[1] / errors[0] == pytest.approx(2.0, rel=0.15)
    assert errors[2] > 0.3
