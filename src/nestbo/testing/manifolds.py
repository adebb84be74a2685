"""The laws of manifolds."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from nestbo.linalg import inner
from nestbo.manifolds import Grassmann, Manifold, space
from nestbo.testing.assertions import close, require


def nearby(manifold: Manifold, x: Tensor, rng: torch.Generator, fraction: float = 0.45) -> Tensor:
    """Points at ``fraction`` of the injectivity radius (or the typical distance) from x, in random directions."""
    radius = fraction * min(manifold.injectivity_radius, manifold.typical_distance)
    return manifold.exp(x, radius * manifold.random_tangent(x, rng))


def _as_vectors(manifold: Manifold, x: Tensor) -> Tensor:
    """Trailing axes that broadcast against points."""
    return x[(..., *[None] * len(manifold.point_shape))]


def points_lie_on_it(manifold: Manifold, rng: torch.Generator) -> None:
    """Random and projected points satisfy the membership check."""
    x = manifold.random(4, 3, rng=rng)
    require(x.shape == (4, 3, *manifold.point_shape), f"{manifold}: random points have the wrong shape {x.shape}")
    manifold.check(x, 1e-10)
    manifold.check(manifold.project(torch.randn(x.shape, generator=rng, dtype=x.dtype)), 1e-10)
    alone = [manifold.random(3, rng=torch.Generator().manual_seed(seed)) for seed in range(2)]
    together = manifold.random_each(3, [torch.Generator().manual_seed(seed) for seed in range(2)])
    close(together, torch.stack(alone, 1), f"{manifold}: random points of several runs are not those of each")


def projections_are_idempotent(manifold: Manifold, rng: torch.Generator) -> None:
    """Project and to_tangent change nothing the second time."""
    x = manifold.random(5, rng=rng)
    close(manifold.project(x), x, f"{manifold}: project moves a point of the manifold")
    v = manifold.to_tangent(x, torch.randn(x.shape, generator=rng, dtype=x.dtype))
    close(manifold.to_tangent(x, v), v, f"{manifold}: to_tangent moves a tangent vector")


def exp_and_log_are_inverse(manifold: Manifold, rng: torch.Generator) -> None:
    """exp(x, 0) = x, exp(x, log(x, y)) = y, log(x, exp(x, v)) = v."""
    x = manifold.random(5, rng=rng)
    v = 0.45 * min(manifold.injectivity_radius, manifold.typical_distance) * manifold.random_tangent(x, rng)
    y = manifold.exp(x, v)
    close(manifold.exp(x, torch.zeros_like(x)), x, f"{manifold}: exp(x, 0) is not x")
    close(manifold.dist(manifold.exp(x, manifold.log(x, y)), y), torch.zeros(5), f"{manifold}: exp(x, log(x, y)) ≠ y")
    close(manifold.log(x, y), v, f"{manifold}: log(x, exp(x, v)) ≠ v")


def distance_is_a_metric(manifold: Manifold, rng: torch.Generator) -> None:
    """Dist = |log|, symmetric, with the triangle inequality, and exactly 0 on the diagonal."""
    x = manifold.random(5, rng=rng)
    y, z = nearby(manifold, x, rng), nearby(manifold, x, rng)
    d = manifold.dist(x, y)
    close(d, manifold.norm(x, manifold.log(x, y)), f"{manifold}: dist is not the norm of log")
    close(d, manifold.dist(y, x), f"{manifold}: dist is not symmetric")
    close(d**2, manifold.sq_dist(x, y), f"{manifold}: sq_dist is not the square of dist")
    require(manifold.dist(x, x) == 0, f"{manifold}: dist(x, x) is not exactly 0")
    require(d + manifold.dist(y, z) >= manifold.dist(x, z) - 1e-9, f"{manifold}: the triangle inequality fails")
    pairs = manifold.pairwise_dist(x[:1], torch.stack([y[0], z[0]]))
    each = torch.stack([d[0], manifold.dist(x[0], z[0])])
    close(pairs[0], each, f"{manifold}: pairwise_dist disagrees with dist")
    near = torch.stack([x[0], y[0], z[0]])
    among, copied = (manifold.pairwise_sq_dist(near, other) for other in (near, near.clone()))
    close(among, copied, f"{manifold}: pairwise_sq_dist of points from themselves disagrees with that from a copy")


def squared_distance_has_unit_hessian(manifold: Manifold, rng: torch.Generator) -> None:
    """At coincident points ½d² has gradient 0 and the identity as its Hessian, not 0 or NaN."""
    y = manifold.random(3, rng=rng)
    v = manifold.random_tangent(y, rng)
    _, gradient, hessian = _derivatives(manifold, lambda x: manifold.sq_dist(x, y) / 2, y, v)
    close(gradient, torch.zeros_like(y), f"{manifold}: the gradient of ½d² at 0 is not 0")
    close(hessian, v, f"{manifold}: the Hessian of ½d² at 0 is not the identity")


def batches_agree_with_single_points(manifold: Manifold, rng: torch.Generator) -> None:
    """A batch gives what its elements give one by one."""
    x = manifold.random(3, rng=rng)
    y = nearby(manifold, x, rng)
    for operation in (manifold.log, manifold.dist, manifold.sq_dist, manifold.to_tangent):
        each = torch.stack([operation(a, b) for a, b in zip(x, y, strict=True)])
        close(operation(x, y), each, f"{manifold}: {operation.__name__} of a batch differs from that of its elements")


def transport_keeps_tangency(manifold: Manifold, rng: torch.Generator) -> None:
    """Transport is linear, ends in the tangent space, and does nothing from x to x."""
    x = manifold.random(4, rng=rng)
    y = nearby(manifold, x, rng)
    u, v = manifold.random_tangent(x, rng), manifold.random_tangent(x, rng)
    w = manifold.transport(x, y, u)
    close(manifold.to_tangent(y, w), w, f"{manifold}: a transported vector is not tangent")
    close(manifold.transport(x, x, v), v, f"{manifold}: transport from x to x changes a vector")
    both = manifold.transport(x, y, 2 * u - v)
    close(both, 2 * w - manifold.transport(x, y, v), f"{manifold}: transport is not linear")


def retraction_is_second_order(manifold: Manifold, rng: torch.Generator) -> None:
    """dist(retract(x, tv), exp(x, tv)) = O(t³), checked inside the bounds of the space."""
    x = _interior(manifold, rng)
    v = manifold.random_tangent(x, rng)
    t = torch.tensor([0.02, 0.01], dtype=x.dtype)[:, None] * manifold.typical_distance
    tv = _as_vectors(manifold, t) * v
    gap = manifold.dist(manifold.retract(x, tv), manifold.exp(x, tv))
    exact = gap[0] < 1e-10
    require(exact | (gap[0] / gap[1] > 6), f"{manifold}: retract does not agree with exp to second order ({gap})")


def derivatives_have_taylor_slopes(manifold: Manifold, rng: torch.Generator) -> None:
    """f(exp(x, tv)) − f − t⟨∇f, v⟩ − ½t²⟨H v, v⟩ = O(t³) for a smooth function f; H is symmetric."""
    x = _interior(manifold, rng)
    u, v = manifold.random_tangent(x, rng), manifold.random_tangent(x, rng)
    f = _smooth_function(manifold, rng)
    value, gradient, hv = _derivatives(manifold, f, x, v)
    _, _, hu = _derivatives(manifold, f, x, u)
    close(manifold.inner(x, hv, u), manifold.inner(x, hu, v), f"{manifold}: the Hessian is not symmetric")
    slope, curvature = manifold.inner(x, gradient, v), manifold.inner(x, hv, v)
    t = torch.tensor([2e-3, 1e-3], dtype=x.dtype)[:, None]
    model = value + t * slope + t**2 / 2 * curvature
    gap = (f(manifold.exp(x, _as_vectors(manifold, t) * v)) - model).abs()
    scale = 1 + value.abs() + slope.abs() + curvature.abs()
    exact, cubic = gap[0] / scale < 1e-11, gap[0] / gap[1] > 6
    require(exact | cubic, f"{manifold}: gradient or Hessian is wrong (slopes {gap})")


def specification_round_trips(manifold: Manifold, rng: torch.Generator) -> None:
    """The text form of a registered manifold gives the same manifold back."""
    del rng
    require(space(manifold.specification) == manifold, f"{manifold}: {manifold.specification!r} reads back otherwise")


def _interior(manifold: Manifold, rng: torch.Generator) -> Tensor:
    """Random points away from the bounds of the space, if it has any: midway to the mean of the sample."""
    x = manifold.random(6, rng=rng)
    midway = (x + x.mean(0)) / 2
    return manifold.project(midway) if manifold.violation(midway).max() == 0 else x


def _smooth_function(manifold: Manifold, rng: torch.Generator) -> Callable[[Tensor], Tensor]:
    """A function of random coefficients; on subspaces it may depend on the subspace only, not on its basis."""
    axes, shape = len(manifold.point_shape), manifold.point_shape
    if isinstance(manifold, Grassmann):
        left = torch.randn(shape[0], shape[0], generator=rng, dtype=torch.float64)
        return lambda x: (left @ x @ x.mT).sin().sum((-1, -2))
    weight = torch.randn(shape, generator=rng, dtype=torch.float64)
    return lambda x: inner(x, weight, axes).sin() + inner(x**3, weight.flip(0), axes)


def _derivatives(
    manifold: Manifold, f: Callable[[Tensor], Tensor], x: Tensor, v: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Value, Riemannian gradient and Riemannian Hessian along v, by automatic differentiation."""
    x = x.detach().requires_grad_()
    value = f(x)
    (gradient,) = torch.autograd.grad(value.sum(), x, create_graph=True)
    (product,) = torch.autograd.grad((gradient * v).sum(), x)
    x, gradient = x.detach(), gradient.detach()
    return value.detach(), manifold.gradient(x, gradient), manifold.hessian(x, gradient, product, v)


MANIFOLD_LAWS: tuple[Callable[[Manifold, torch.Generator], None], ...] = (
    points_lie_on_it,
    projections_are_idempotent,
    exp_and_log_are_inverse,
    distance_is_a_metric,
    squared_distance_has_unit_hessian,
    batches_agree_with_single_points,
    transport_keeps_tangency,
    retraction_is_second_order,
    derivatives_have_taylor_slopes,
    specification_round_trips,
)
