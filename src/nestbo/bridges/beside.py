"""Parameters beside a point: what objectives read with ``suggest_int``, ``suggest_categorical`` and ``suggest_float``.

They become factors of a product with the space of the point, so that a strategy suggests all of them jointly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.search_space import intersection_search_space
from optuna.trial import FrozenTrial
from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.manifolds import Box, Choice, Integer, Product, Space
from nestbo.manifolds.box import Scale
from nestbo.strategies import Strategy


def found(trials: Iterable[FrozenTrial], point: Iterable[str]) -> dict[str, BaseDistribution]:
    """The parameters beside a point that every finished trial with such a point has, within the same bounds."""
    keys = set(point)
    ours = [trial for trial in trials if keys <= set(trial.params)]
    shared = intersection_search_space(ours, include_pruned=True)
    return {name: each for name, each in shared.items() if name not in keys and not each.single()}


@dataclass(frozen=True)
class Joint:
    """A space, the parameters beside its points, and the product of all of them."""

    space: Space
    beside: Mapping[str, BaseDistribution]

    @property
    def whole(self) -> Space:
        """The space itself where there is nothing beside it."""
        return Product(self.space, *map(_factor, self.beside.values())) if self.beside else self.space

    def strategy(self, method: Strategy) -> Strategy:
        """The strategy for the product: what is nested is nested in the space alone."""
        latent_dim = getattr(method, "latent_dim", "auto")
        if not self.beside or latent_dim == "auto":
            return method
        return replace(method, latent_dim=(latent_dim, *[None] * len(self.beside)))  # type: ignore[type-var]

    def packed(self, x: Tensor, stored: Mapping[str, Any]) -> Tensor:
        """A point of the product from one of the space and the parameters beside it."""
        whole = self.whole
        if not self.beside or not isinstance(whole, Product):
            return x
        numbers = [[_number(each, stored[name])] for name, each in self.beside.items()]
        return whole.join([x, *torch.tensor(numbers, dtype=torch.float64)])

    def apart(self, x: Tensor) -> tuple[Tensor, dict[str, Any]]:
        """The point of the space and the parameters beside it."""
        whole = self.whole
        if not self.beside or not isinstance(whole, Product):
            return x, {}
        point, *rest = whole.split(x)
        pairs = zip(self.beside.items(), rest, strict=True)
        return point, {name: _value(each, part.item()) for (name, each), part in pairs}

    def known(self, stored: Mapping[str, Any]) -> bool:
        """Whether all parameters beside the point are known."""
        return all(name in stored for name in self.beside)


def possible(space: Space, beside: Mapping[str, BaseDistribution], method: Strategy) -> Joint:
    """The product, if a strategy works on it; else the space alone, and the others are drawn at random."""
    joint = Joint(space, dict(beside))
    try:
        joint.strategy(method).check(joint.whole)
    except ArgumentError:
        return Joint(space, {})
    return joint


def _factor(distribution: BaseDistribution) -> Space:
    if isinstance(distribution, CategoricalDistribution):
        return Choice(*(f"c{k}" for k in range(len(distribution.choices))))
    if not isinstance(distribution, IntDistribution | FloatDistribution):
        raise ArgumentError(f"A parameter of Optuna is a float, an int or a category, got {distribution}.")
    scale: Scale = "log" if distribution.log else "linear"
    if isinstance(distribution, FloatDistribution) and distribution.step is None:
        return Box((distribution.low,), (distribution.high,), scale)
    if distribution.step == 1:
        return Integer(int(distribution.low), int(distribution.high), scale)
    return Integer(0, round((distribution.high - distribution.low) / float(distribution.step or 1)))


def _number(distribution: Any, value: Any) -> float:
    """The number of a value in its factor."""
    internal: float = distribution.to_internal_repr(value)
    stepped = not isinstance(distribution, CategoricalDistribution) and distribution.step not in (None, 1)
    return float(round((internal - distribution.low) / distribution.step)) if stepped else internal


def _value(distribution: Any, number: float) -> Any:
    """The value of a number of its factor, as the objective wants it."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[round(number)]
    if distribution.step not in (None, 1):
        number = min(distribution.low + round(number) * distribution.step, distribution.high)
    return distribution.to_external_repr(min(max(number, distribution.low), distribution.high))


def chosen(search_space: Mapping[str, BaseDistribution], point: Sequence[str]) -> dict[str, BaseDistribution]:
    """The parameters beside the point that a sampler is asked for."""
    return {name: each for name, each in search_space.items() if name not in point}
