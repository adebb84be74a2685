"""Benchmark functions of coordinates t (…, m) (paper, appendix E, and three more), and ``PROBLEMS``.

Each comes with a minimiser over all of R^m, where one has a closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from nestbo.linalg import safe_sqrt


@dataclass(frozen=True)
class Formula:
    """A function of coordinates, and the value that every coordinate of its free minimiser has, if they are equal."""

    value: Callable[[Tensor], Tensor]
    minimiser: float | None


def ackley(t: Tensor) -> Tensor:
    """−20 exp(−0.2 √mean t²) − exp(mean cos 2πt) + 20 + e; its minimum 0 is exactly 0."""
    bowl = -20 * torch.expm1(-0.2 * safe_sqrt(t.square().mean(-1)))
    return bowl - math.e * torch.expm1((torch.cos(2 * math.pi * t) - 1).mean(-1))


def rosenbrock(t: Tensor) -> Tensor:
    """Σ 100 (t_{i+1} − t_i²)² + (t_i − 1)²."""
    before, after = t[..., :-1], t[..., 1:]
    return (100 * (after - before**2) ** 2 + (before - 1) ** 2).sum(-1)


def styblinski_tang(t: Tensor) -> Tensor:
    """½ Σ (5t)⁴ − 16 (5t)² + 5 (5t)."""
    u = 5 * t
    return (u**4 - 16 * u**2 + 5 * u).sum(-1) / 2


def product_of_sines(t: Tensor) -> Tensor:
    """100 sin t₁ Π sin t_i."""
    return 100 * t[..., 0].sin() * t.sin().prod(-1)


def rastrigin(t: Tensor) -> Tensor:
    """Σ t² + 10 (1 − cos 2πt)."""
    return (t**2 + 20 * torch.sin(math.pi * t) ** 2).sum(-1)


def levy(t: Tensor) -> Tensor:
    """The function of Laguna and Martí in w = 1 + (t − 1)/4."""
    w = 1 + (t - 1) / 4
    head, body, last = w[..., 0], w[..., :-1], w[..., -1]
    waves = 1 + 10 * torch.sin(math.pi * body + 1) ** 2
    middle = ((body - 1) ** 2 * waves).sum(-1)
    end = (last - 1) ** 2 * (1 + torch.sin(2 * math.pi * last) ** 2)
    return torch.sin(math.pi * head) ** 2 + middle + end


def griewank(t: Tensor) -> Tensor:
    """Σ t²/4000 − Π cos(t_i/√i) + 1."""
    index = torch.arange(1, t.shape[-1] + 1, dtype=t.dtype, device=t.device)
    return t.square().sum(-1) / 4000 - torch.cos(t / index.sqrt()).prod(-1) + 1


PROBLEMS: dict[str, Formula] = {
    "ackley": Formula(ackley, 0.0),
    "rosenbrock": Formula(rosenbrock, 1.0),
    "styblinski-tang": Formula(styblinski_tang, -2.9035340277711770 / 5),
    "product-of-sines": Formula(product_of_sines, None),
    "rastrigin": Formula(rastrigin, 0.0),
    "levy": Formula(levy, 1.0),
    "griewank": Formula(griewank, 0.0),
}
