"""The laws of kernels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from nestbo.kernels import ManifoldKernel
from nestbo.manifolds import leaf
from nestbo.testing.assertions import close, require


def lengthscales(kernel: ManifoldKernel, count: int = 5) -> Tensor:
    """Length scales (count, scales) from the lower to the upper bound of each, in geometric steps."""
    low, high = (bound.log() for bound in kernel.lengthscale_bounds)
    fraction = torch.linspace(0, 1, count, dtype=torch.float64).unsqueeze(-1)
    return (low + fraction * (high - low)).exp()


def crowded(kernel: ManifoldKernel, rng: torch.Generator) -> Tensor:
    """Random points, some of them twice, and a tight cluster around the first."""
    space = leaf(kernel.space)
    x = space.random(12, rng=rng)
    centre = x[:1].expand(12, *space.point_shape)
    return torch.cat([x, x[:4], space.retract(centre, 1e-6 * space.random_tangent(centre, rng))])


def correlations_are_symmetric_with_unit_diagonal(kernel: ManifoldKernel, rng: torch.Generator) -> None:
    """k(x, y) = k(y, x), k(x, x) = 1, |k| ≤ 1, at every length scale."""
    x, y = kernel.space.random(6, rng=rng), kernel.space.random(4, rng=rng)
    for scale in lengthscales(kernel):
        k = kernel.correlation(x, y, scale)
        require(k.shape == (6, 4), f"{kernel}: the correlations of 6 and 4 points have shape {tuple(k.shape)}")
        close(k, kernel.correlation(y, x, scale).mT, f"{kernel}: k(x, y) ≠ k(y, x) at {scale}", 1e-12)
        require(k.abs() <= 1 + 1e-12, f"{kernel}: a correlation beyond ±1 at {scale}")
        same = kernel.correlation(x, x, scale).diagonal()
        close(same, torch.ones_like(same), f"{kernel}: k(x, x) ≠ 1 at {scale}", 1e-9)


def gram_matrices_are_positive_semidefinite(kernel: ManifoldKernel, rng: torch.Generator) -> None:
    """No eigenvalue below −tolerance, which is 0 unless the kernel says otherwise, also for crowded points."""
    x = crowded(kernel, rng)
    for scale in lengthscales(kernel):
        least = torch.linalg.eigvalsh(kernel.correlation(x, x, scale)).min().item()
        allowed = kernel.tolerance + 1e-10 * len(x)
        require(least >= -allowed, f"{kernel}: an eigenvalue of {least:.2e} at {scale}")


def batches_agree_with_single_sets(kernel: ManifoldKernel, rng: torch.Generator) -> None:
    """A batch of sets, each with its length scale, gives what they give one by one."""
    x, y = kernel.space.random(3, 5, rng=rng), kernel.space.random(3, 2, rng=rng)
    scale = lengthscales(kernel, 5)[1:4]
    each = torch.stack([kernel.correlation(*one) for one in zip(x, y, scale, strict=True)])
    close(kernel.correlation(x, y, scale), each, f"{kernel}: a batch differs from its elements", 1e-12)
    broadcast = kernel.correlation(x[0], y, scale)
    close(broadcast[1], kernel.correlation(x[0], y[1], scale[1]), f"{kernel}: broadcasting")


def derivatives_are_finite_at_coincident_points(kernel: ManifoldKernel, rng: torch.Generator) -> None:
    """Gradients of order one and two in a point that coincides with an observed one, and in the length scale."""
    y = kernel.space.random(3, rng=rng)
    v = leaf(kernel.space).random_tangent(y, rng)
    x = y.clone().requires_grad_()
    scale = kernel.median_lengthscale.clone().requires_grad_()
    k = kernel.correlation(x, y, scale)
    slope, by_scale = torch.autograd.grad(k.sum(), (x, scale), create_graph=True)
    (curvature,) = torch.autograd.grad((slope * v).sum(), x)
    for name, value in {"gradient": slope, "Hessian": curvature, "derivative in the length scale": by_scale}.items():
        require(value.isfinite(), f"{kernel}: the {name} at coincident points is not finite")
    close(
        leaf(kernel.space).to_tangent(y, _own(kernel, y)),
        torch.zeros_like(y),
        f"{kernel}: k(x, y) has a slope at x = y",
    )


def _own(kernel: ManifoldKernel, y: Tensor) -> Tensor:
    """The gradient of k(x, y_i) in x at x = y_i."""
    x = y.clone().requires_grad_()
    k = kernel.correlation(x, y, kernel.median_lengthscale).diagonal().sum()
    (slope,) = torch.autograd.grad(k, x)
    return slope


def gpytorch_sees_the_same_correlations(kernel: ManifoldKernel, rng: torch.Generator) -> None:
    """As a gpytorch kernel, on flattened points: matrix and diagonal, at its own length scale."""
    axes = len(kernel.space.point_shape)
    x, y = kernel.space.random(2, 5, rng=rng), kernel.space.random(2, 5, rng=rng)
    flat, other = x.flatten(-axes), y.flatten(-axes)
    k = kernel.correlation(x, y, kernel.lengthscale[0].detach())
    close(kernel(flat, other).to_dense(), k, f"{kernel}: gpytorch's matrix is another", 1e-12)
    diagonal = kernel(flat, other, diag=True)
    close(diagonal, k.diagonal(dim1=-2, dim2=-1), f"{kernel}: gpytorch's diagonal is another", 1e-12)


KERNEL_LAWS: tuple[Callable[[ManifoldKernel, torch.Generator], None], ...] = (
    correlations_are_symmetric_with_unit_diagonal,
    gram_matrices_are_positive_semidefinite,
    batches_agree_with_single_sets,
    derivatives_are_finite_at_coincident_points,
    gpytorch_sees_the_same_correlations,
)
