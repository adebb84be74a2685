"""Functions of symmetric matrices, twice differentiable also where eigenvalues repeat (Daleckii–Krein)."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from nestbo.linalg.jacobi import jacobi
from nestbo.linalg.scalar import EXP, INVERSE_SQRT, LOG, SQRT, ScalarFunction

_EIGH_BATCH, _TINY = 2**8, 4
_FORBIDDEN = 2  # the debug mode of torch in which waiting for a GPU is an error


def sym(a: Tensor) -> Tensor:
    """The symmetric part."""
    return (a + a.mT) / 2


def eigh(a: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and vectors of symmetric matrices; one that is not finite gives NaN and leaves the others alone."""
    finite, safe = _finite(a)
    values, vectors = _eigh(safe)
    return torch.where(finite, values, torch.nan), vectors


def eigvalsh(a: Tensor) -> Tensor:
    """The eigenvalues alone, which on a CPU cost a third."""
    if a.is_cuda:
        return eigh(a)[0]
    finite, safe = _finite(a)
    return torch.where(finite, torch.linalg.eigvalsh(safe), torch.nan)


def _finite(a: Tensor) -> tuple[Tensor, Tensor]:
    """Which matrices are finite, (…, 1), and the identity in place of the others."""
    finite = a.isfinite().all(-1).all(-1, keepdim=True)
    eye = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    return finite, torch.where(finite.unsqueeze(-1), a, eye)


def _eigh(a: Tensor) -> tuple[Tensor, Tensor]:
    """On a GPU in parts, since its solver wants gigabytes of workspace for thousands of matrices.

    It has to be waited for, too: where that is not allowed, and for very many, tiny matrices do without it.
    """
    if not a.is_cuda or a.ndim == 2:
        return tuple(torch.linalg.eigh(a))
    waiting = torch.cuda.get_sync_debug_mode() < _FORBIDDEN and not torch.cuda.is_current_stream_capturing()
    if a.shape[-1] <= _TINY and (a[..., 0, 0].numel() > _EIGH_BATCH or not waiting):
        return jacobi(a)
    return _eigh_in_parts(a, _EIGH_BATCH)


def _eigh_in_parts(a: Tensor, count: int) -> tuple[Tensor, Tensor]:
    parts = [torch.linalg.eigh(part) for part in a.flatten(0, -3).split(count)]
    values, vectors = (torch.cat(found) for found in zip(*parts, strict=True))
    return values.reshape(a.shape[:-1]), vectors.reshape(a.shape)


def spectral(values: Tensor, vectors: Tensor) -> Tensor:
    """U diag(λ) Uᵀ."""
    return sym((vectors * values.unsqueeze(-2)) @ vectors.mT)


def matrix_function(a: Tensor, f: ScalarFunction, eigen: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """f of symmetric matrices, twice differentiable also at repeated eigenvalues (Daleckii–Krein).

    ``eigen`` are the eigenvalues and vectors of a, where they are known.
    """
    values, vectors = eigen or eigh(a.detach())
    result: Tensor = _MatrixFunction.apply(a, values, vectors, f)  # type: ignore[no-untyped-call]
    return result


def logm(a: Tensor) -> Tensor:
    """Logarithm of symmetric positive definite matrices."""
    return matrix_function(a, LOG)


def expm(a: Tensor) -> Tensor:
    """Exponential of symmetric matrices."""
    return matrix_function(a, EXP)


def sqrtm(a: Tensor) -> Tensor:
    """Square root of symmetric positive definite matrices."""
    return matrix_function(a, SQRT)


def inverse_sqrtm(a: Tensor) -> Tensor:
    """Inverse square root of symmetric positive definite matrices."""
    return matrix_function(a, INVERSE_SQRT)


def frechet(a: Tensor, direction: Tensor, f: ScalarFunction) -> Tensor:
    """Derivative of the matrix function f at a along a symmetric direction."""
    values, vectors = eigh(a.detach())
    result: Tensor = _Frechet.apply(a, direction, values, vectors, f)  # type: ignore[no-untyped-call]
    return result


def second_frechet(a: Tensor, first: Tensor, second: Tensor, f: ScalarFunction) -> Tensor:
    """Second derivative of the matrix function f at a along two symmetric directions."""
    values, vectors = eigh(a)
    return _second_derivative(first, second, vectors, divided_differences(f, values, 3))


def sum_of_squared_logs(a: Tensor) -> Tensor:
    """Σ log²(1 + λ) over the eigenvalues λ of symmetric matrices (…, n, n): (…).

    Its derivative is a matrix function itself, so that the second one needs n² divided differences, not n³.
    """
    if not (torch.is_grad_enabled() and a.requires_grad):
        return torch.log1p(eigvalsh(a)).square().sum(-1)
    values, vectors = eigh(a.detach())
    total: Tensor = _SumOfSquaredLogs.apply(a, values, vectors)  # type: ignore[no-untyped-call]
    return total


class _SumOfSquaredLogs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, values: Tensor, vectors: Tensor) -> Tensor:
        ctx.save_for_backward(a, values, vectors)
        return torch.log1p(values).square().sum(-1)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:
        slope: Tensor = _MatrixFunction.apply(*ctx.saved_tensors, _SQUARED_LOG_SLOPE)  # type: ignore[no-untyped-call]
        return upstream[..., None, None] * slope, None, None


def _squared_log_slope_taylor(m: Tensor, k: int) -> Tensor:
    """With x = m + (1 + m) t, log²(1 + x) = (log(1 + m) + log(1 + t))²; its derivative has harmonic coefficients."""
    harmonic = sum(1 / i for i in range(1, k + 1))
    return 2 * (-1) ** k * (torch.log1p(m) - harmonic) / (1 + m)


_SQUARED_LOG_SLOPE = ScalarFunction(lambda x: 2 * torch.log1p(x) / (1 + x), _squared_log_slope_taylor, lambda m: 1 + m)


class _MatrixFunction(torch.autograd.Function):
    """a ↦ U f(λ) Uᵀ. The derivative is a Function of its own, so that it can be differentiated once more."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, values: Tensor, vectors: Tensor, f: ScalarFunction) -> Tensor:
        ctx.save_for_backward(a, values, vectors)
        ctx.f = f
        return spectral(f.value(values), vectors)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None, None]:
        a, values, vectors = ctx.saved_tensors
        return _Frechet.apply(a, sym(upstream), values, vectors, ctx.f), None, None, None  # type: ignore[no-untyped-call]


class _Frechet(torch.autograd.Function):
    """(a, g) ↦ Df(a)[g], self-adjoint in g; its derivative in a is the symmetric second derivative D²f(a)[g, ·].

    Hessian-vector products call ``backward`` many times on one graph, so it keeps the divided differences.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, g: Tensor, values: Tensor, vectors: Tensor, f: ScalarFunction) -> Tensor:
        ctx.save_for_backward(g, values, vectors)
        ctx.f, ctx.second = f, None
        ctx.first = divided_differences(f, values, 2)
        return _first_derivative(g, vectors, ctx.first)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        g, values, vectors = ctx.saved_tensors
        grad_a, grad_g, q = None, None, sym(upstream)
        if ctx.needs_input_grad[0]:
            ctx.second = divided_differences(ctx.f, values, 3) if ctx.second is None else ctx.second
            grad_a = _unbroadcast(_second_derivative(g, q, vectors, ctx.second), values)
        if ctx.needs_input_grad[1]:
            grad_g = _unbroadcast(_first_derivative(q, vectors, ctx.first), g[..., 0])
        return grad_a, grad_g, None, None, None


def _unbroadcast(gradient: Tensor, like: Tensor) -> Tensor:
    """Sum a matrix gradient over the leading axes that broadcasting added to an input of batch ``like``."""
    return gradient.sum_to_size((*like.shape, gradient.shape[-1]))


def _first_derivative(g: Tensor, vectors: Tensor, quotients: Tensor) -> Tensor:
    """U (f[λ_i, λ_j] ∘ UᵀgU) Uᵀ."""
    return sym(vectors @ (quotients * (vectors.mT @ g @ vectors)) @ vectors.mT)


def _second_derivative(g: Tensor, h: Tensor, vectors: Tensor, quotients: Tensor) -> Tensor:
    """In the eigenbasis, Σ_k f[λ_i, λ_k, λ_j] (g_ik h_kj + h_ik g_kj)."""
    g, h = vectors.mT @ g @ vectors, vectors.mT @ h @ vectors
    inside = (quotients * g.unsqueeze(-1) * h.unsqueeze(-3)).sum(-2)
    return sym(vectors @ (inside + inside.mT) @ vectors.mT)


# Below this relative spread the Taylor sum is exact to rounding; above it a quotient loses at most two digits.
_CLOSE = 0.02
_TAYLOR_TERMS = 7


def divided_differences(f: ScalarFunction, values: Tensor, count: int) -> Tensor:
    """f[λ_i, λ_j] (count 2) or f[λ_i, λ_k, λ_j] (count 3) over ascending values (…, n): (…, n, n) or (…, n, n, n)."""
    n = values.shape[-1]
    if count == 2 and f.quotient is not None:
        return f.quotient(values.unsqueeze(-1), values.unsqueeze(-2))
    subsets, position = _multisets(n, count, values.device)
    distinct = _divided_difference(f, values[..., subsets])
    return distinct[..., position].unflatten(-1, (n,) * count)


@lru_cache(maxsize=64)
def _multisets(n: int, count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The ascending index tuples, (count, m), and for each of the nᶜ tuples the place of its sorted form among them."""
    subsets = list(itertools.combinations_with_replacement(range(n), count))
    place = {subset: k for k, subset in enumerate(subsets)}
    position = [place[tuple(sorted(t))] for t in itertools.product(range(n), repeat=count)]
    return torch.tensor(subsets, device=device).T, torch.tensor(position, device=device)


def _divided_difference(f: ScalarFunction, points: Tensor) -> Tensor:
    """Divided difference over the ascending arguments along axis −2, also where they (nearly) coincide.

    Close arguments: Σ_k f⁽ᵏ⁺ᵒ⁾(m)/(k+o)! h_k(a−m, …), m their mean, o the order, h_k the complete homogeneous
    polynomial. Others: the quotient of lower differences over the two extremes. At a branch point (√ at 0) it is 0.
    """
    order = points.shape[-2] - 1
    spread = points[..., -1, :] - points[..., 0, :]
    mean = points.mean(-2)
    scale = f.scale(mean)
    close, singular = spread <= _CLOSE * scale.abs(), scale == 0
    relative = (points - mean.unsqueeze(-2)) / torch.where(singular, 1, scale).unsqueeze(-2)
    terms = [f.taylor(mean, k + order) * h for k, h in enumerate(_homogeneous(relative, _TAYLOR_TERMS))]
    nearby = torch.where(singular, 0, sum(terms) / scale**order)
    if order == 1:
        lower, upper = f.value(points).unbind(-2)
    else:
        lower = _divided_difference(f, points[..., :-1, :])
        upper = _divided_difference(f, points[..., 1:, :])
    return torch.where(close, nearby, (upper - lower) / torch.where(close, 1, spread))


def _homogeneous(points: Tensor, count: int) -> list[Tensor]:
    """h_0, …, h_{count−1} of the points along axis −2: h_k(x₁…x_j) = h_k(x₁…x_{j−1}) + x_j h_{k−1}(x₁…x_j)."""
    first = points[..., 0, :]
    h = [torch.ones_like(first)] + [torch.zeros_like(first)] * (count - 1)
    for point in points.unbind(-2):
        for k in range(1, count):
            h[k] = h[k] + point * h[k - 1]
    return h
