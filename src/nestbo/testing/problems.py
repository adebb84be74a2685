"""The laws of benchmark problems."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from nestbo.manifolds import Sphere, leaf
from nestbo.problems import Problem
from nestbo.problems.coordinates import coordinates, from_coordinates
from nestbo.testing.assertions import close, require

_POINTS = 1000
_SCALES = (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)


def optimum_has_the_optimal_value(problem: Problem, rng: torch.Generator) -> None:
    """It lies on the manifold; where there is none, the value is approached at the antipode of the sphere."""
    x, best = problem.optimum, problem.optimal_value
    if x is not None:
        problem.space.check(x, 1e-9)
        gap = (problem.objective(x) - best).abs() / max(1.0, abs(best))
        require(gap <= 1e-9, f"{problem.name}: the value at the optimum is off by {gap:.2e}")
        return
    z = _near_optimum(problem)
    antipode = from_coordinates(problem.mapping.latent, torch.zeros(problem.mapping.latent.dim, dtype=z.dtype))
    require(problem.mapping.latent.dist(z, -antipode) < 1e-5, f"{problem.name}: values jump at the antipode only")
    gap = (problem.objective(problem.mapping.lift(z)) - best) / max(1.0, abs(best))
    require((gap >= 0) & (gap < 1e-5), f"{problem.name}: the optimal value is not approached ({gap:.2e})")


def _near_optimum(problem: Problem) -> Tensor:
    """The latent optimum, or a point a millionth short of where the optimal value is approached."""
    _, attained, t = problem._optimum
    z = from_coordinates(problem.mapping.latent, torch.tensor(t, dtype=torch.float64) * (1 if attained else 1 - 1e-6))
    return problem.mapping.latent.project(z)


def nothing_beats_the_optimum(problem: Problem, rng: torch.Generator) -> None:
    """Not random points of the latent and the ambient space, nor steps of all sizes from near the optimum."""
    latent = leaf(problem.mapping.latent)
    drawn = [problem.space.random(_POINTS, rng=rng), problem.mapping.lift(latent.random(_POINTS, rng=rng))]
    centre = _near_optimum(problem).expand(_POINTS // len(_SCALES), *latent.point_shape)
    for scale in _SCALES:
        step = scale * latent.typical_distance * latent.random_tangent(centre, rng)
        drawn.append(problem.mapping.lift(latent.retract(centre, step)))
    least = problem.objective(torch.cat(drawn)).min().item()
    slack = 1e-9 * max(1.0, abs(problem.optimal_value))
    require(least >= problem.optimal_value - slack, f"{problem.name}: {least} lies below {problem.optimal_value}")


def batches_agree_with_single_points(problem: Problem, rng: torch.Generator) -> None:
    """Values of a batch are those of its elements."""
    x = problem.space.random(2, 3, rng=rng)
    each = torch.stack([problem.objective(point) for point in x.flatten(0, 1)]).unflatten(0, (2, 3))
    size = 1 + each.abs()
    close(problem.objective(x) / size, each / size, f"{problem.name}: a batch differs", 1e-10)


def values_are_finite_everywhere(problem: Problem, rng: torch.Generator) -> None:
    """Also with their gradients, and at the base point and its antipode."""
    latent = leaf(problem.mapping.latent)
    special = [from_coordinates(latent, torch.zeros(1, latent.dim, dtype=torch.float64))]
    if isinstance(latent, Sphere):
        special.append(-special[0])
    z = torch.cat([latent.project(torch.cat(special)), latent.random(20, rng=rng)])
    x = torch.cat([problem.mapping.lift(z), problem.space.random(20, rng=rng)]).requires_grad_()
    value = problem.objective(x)
    (slope,) = torch.autograd.grad(value.sum(), x)
    require(value.isfinite(), f"{problem.name}: a value is not finite")
    require(slope.isfinite(), f"{problem.name}: a gradient is not finite")


def hidden_function_is_that_of_the_projection(problem: Problem, rng: torch.Generator) -> None:
    """The value at x is the function of the coordinates of project(x), the same all along a fibre."""
    x = problem.space.random(10, rng=rng)
    z = problem.mapping.project(x)
    value = problem.function.value(coordinates(problem.mapping.latent, z))
    size = 1 + value.abs()
    close(problem.objective(x) / size, value / size, f"{problem.name}: the mapping is not used", 1e-12)
    close(problem.objective(problem.mapping.lift(z)) / size, value / size, f"{problem.name}: fibres differ", 1e-8)


PROBLEM_LAWS: tuple[Callable[[Problem, torch.Generator], None], ...] = (
    optimum_has_the_optimal_value,
    nothing_beats_the_optimum,
    batches_agree_with_single_points,
    values_are_finite_everywhere,
    hidden_function_is_that_of_the_projection,
)
