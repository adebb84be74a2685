"""Functions of a number that symmetric matrices are put into, with what their derivatives need."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class ScalarFunction:
    """An analytic function f, the scale s(m) on which it varies around m, and its coefficients f⁽ᵏ⁾(m)·s(m)ᵏ / k!.

    ``quotient`` is (f(b) − f(a)) / (b − a) without cancellation, where there is such a form.
    """

    value: Callable[[Tensor], Tensor]
    taylor: Callable[[Tensor, int], Tensor]
    scale: Callable[[Tensor], Tensor]
    quotient: Callable[[Tensor, Tensor], Tensor] | None = None


def _log_taylor(m: Tensor, k: int) -> Tensor:
    return torch.full_like(m, (-1) ** (k + 1) / k)


def _power_taylor(exponent: float) -> Callable[[Tensor, int], Tensor]:
    return lambda m, k: math.prod((exponent - i) / (i + 1) for i in range(k)) * m**exponent


def _ratio(g: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """g(x)/x for a function that is 0 and has slope 1 at 0."""
    return torch.where(x == 0, 1, g(x) / torch.where(x == 0, 1, x))


def _log_quotient(a: Tensor, b: Tensor) -> Tensor:
    """With the smaller one as the unit, which keeps all digits also where the other is much larger."""
    least = torch.minimum(a, b)
    return _ratio(torch.log1p, (b - a).abs() / least) / least


def _exp_quotient(a: Tensor, b: Tensor) -> Tensor:
    """With the larger one in front, so that nothing overflows but what is too large itself."""
    return torch.maximum(a, b).exp() * _ratio(lambda d: -torch.expm1(-d), (b - a).abs())


LOG = ScalarFunction(torch.log, _log_taylor, lambda m: m, _log_quotient)
LOG1P = ScalarFunction(torch.log1p, _log_taylor, lambda m: 1 + m, lambda a, b: _log_quotient(1 + a, 1 + b))
EXP = ScalarFunction(torch.exp, lambda m, k: m.exp() / math.factorial(k), torch.ones_like, _exp_quotient)
SQRT = ScalarFunction(torch.sqrt, _power_taylor(0.5), lambda m: m)
INVERSE_SQRT = ScalarFunction(torch.rsqrt, _power_taylor(-0.5), lambda m: m)


def power_series(coefficients: tuple[float, ...]) -> ScalarFunction:
    """The function Σ aₙ xⁿ, with as many coefficients as its arguments need."""

    def evaluate(x: Tensor, terms: list[float]) -> Tensor:
        total = torch.full_like(x, terms[-1])
        for coefficient in reversed(terms[:-1]):
            total = total * x + coefficient
        return total

    def taylor(m: Tensor, k: int) -> Tensor:
        return evaluate(m, [math.comb(n, k) * a for n, a in enumerate(coefficients)][k:])

    return ScalarFunction(lambda x: evaluate(x, list(coefficients)), taylor, torch.ones_like)


def clip(low: float, high: float) -> ScalarFunction:
    """x kept between two bounds: the derivative is 1 between them and 0 beyond."""
    scale = 1e-6 * min(high - low, 1)  # a kink asks for quotients down to almost equal arguments

    def taylor(m: Tensor, k: int) -> Tensor:
        return scale * ((m >= low) & (m <= high)).to(m) if k == 1 else torch.zeros_like(m)

    def quotient(a: Tensor, b: Tensor) -> Tensor:
        inside = ((a >= low) & (a <= high)).to(a)
        apart = torch.where(a == b, 1, b - a)
        return torch.where(a == b, inside, (b.clamp(low, high) - a.clamp(low, high)) / apart)

    return ScalarFunction(lambda m: m.clamp(low, high), taylor, lambda m: torch.full_like(m, scale), quotient)
