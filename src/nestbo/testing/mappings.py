"""The laws of nested mappings."""

from __future__ import annotations

from collections.abc import Callable

import torch

from nestbo.manifolds import leaf
from nestbo.nested import NestedMapping
from nestbo.testing.assertions import close, require


def projection_undoes_the_lift(mapping: NestedMapping, rng: torch.Generator) -> None:
    """project(lift(z)) = z."""
    z = mapping.latent.random(4, 3, rng=rng)
    close(mapping.project(mapping.lift(z)), z, f"{mapping}: project(lift(z)) ≠ z", 1e-10)


def points_stay_on_their_manifolds(mapping: NestedMapping, rng: torch.Generator) -> None:
    """Lifted and projected points lie on their manifold, within its bounds, and have its shape."""
    z, x = mapping.latent.random(20, rng=rng), mapping.ambient.random(20, rng=rng)
    require(mapping.lift(z).shape == x.shape, f"{mapping}: lifted points have the wrong shape")
    require(mapping.project(x).shape == z.shape, f"{mapping}: projected points have the wrong shape")
    mapping.ambient.check(mapping.lift(z), 1e-10)
    mapping.latent.check(mapping.project(x), 1e-10)


def batches_agree_with_single_points(mapping: NestedMapping, rng: torch.Generator) -> None:
    """A batch gives what its elements give one by one."""
    z, x = mapping.latent.random(3, rng=rng), mapping.ambient.random(3, rng=rng)
    for operation, *points in ((mapping.lift, z), (mapping.project, x), (mapping.lift_near, z, x)):
        each = torch.stack([operation(*single) for single in zip(*points, strict=True)])
        close(operation(*points), each, f"{mapping}: {operation.__name__} of a batch differs from its elements", 1e-10)
    shared = torch.stack([mapping.lift_near(point, x[0]) for point in z])
    close(mapping.lift_near(z, x[:1]), shared, f"{mapping}: lift_near does not share one point among a batch", 1e-10)


def projection_is_smooth(mapping: NestedMapping, rng: torch.Generator) -> None:
    """The derivative of project along a tangent agrees with differences along the geodesic."""
    x = mapping.ambient.random(3, rng=rng)
    v = leaf(mapping.ambient).random_tangent(x, rng)
    _, derivative = torch.autograd.functional.jvp(mapping.project, x, v)
    step = 1e-5
    ahead, behind = (mapping.project(leaf(mapping.ambient).exp(x, sign * step * v)) for sign in (1, -1))
    close(derivative, (ahead - behind) / (2 * step), f"{mapping}: the derivative of project is wrong", 1e-6)


def fitting_the_lift_helps(mapping: NestedMapping, rng: torch.Generator) -> None:
    """fit_lift never worsens the reconstruction of the points it is given, and leaves the projection alone."""
    ambient = mapping.ambient
    x = ambient.random(12, rng=rng)
    fitted = mapping.fit_lift(x)
    close(fitted.project(x), mapping.project(x), f"{mapping}: fit_lift changes the projection", 1e-12)
    before, after = (ambient.sq_dist(x, m.lift(m.project(x))).mean() for m in (mapping, fitted))
    require(after <= before + 1e-9, f"{mapping}: the fitted lift reconstructs worse ({after:.6g} after {before:.6g})")


def lifts_near_a_point_resemble_it(mapping: NestedMapping, rng: torch.Generator) -> None:
    """lift_near(z, x) projects to z, lies within the bounds, depends on x, and is x where x has this very form."""
    z, x = mapping.latent.random(20, rng=rng), mapping.ambient.random(20, rng=rng)
    near = mapping.lift_near(z, x)
    require(near.shape == x.shape, f"{mapping}: points lifted near others have the wrong shape")
    close(mapping.project(near), z, f"{mapping}: project(lift_near(z, x)) ≠ z", 1e-10)
    mapping.ambient.check(near, 1e-10)
    for there in (near, mapping.lift(z)):
        close(mapping.lift_near(z, there), there, f"{mapping}: lift_near(project(x), x) ≠ x for a lifted x", 1e-8)
    if mapping.latent.dim < mapping.ambient.dim:
        apart = (mapping.lift_near(z, x.roll(1, 0)) - near).abs().max()
        require(apart > 1e-3, f"{mapping}: lift_near does not look at x")


MAPPING_LAWS: tuple[Callable[[NestedMapping, torch.Generator], None], ...] = (
    projection_undoes_the_lift,
    points_stay_on_their_manifolds,
    batches_agree_with_single_points,
    projection_is_smooth,
    fitting_the_lift_helps,
    lifts_near_a_point_resemble_it,
)
