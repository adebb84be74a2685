"""What is done to observed values before a Gaussian process sees them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import torch
from torch import Tensor

_ZOOM = 10.0  # Log is bent from a tenth of the way between the best value and the median on


@dataclass(frozen=True)
class Outputs(ABC):
    """An increasing map from values y (…, n) to the units of the model, with mean 0 and deviation 1."""

    shift: Tensor
    scale: Tensor

    @classmethod
    @abstractmethod
    def fit(cls, y: Tensor) -> Self:
        """The map for these values; constant values map to 0."""

    @abstractmethod
    def forward(self, y: Tensor) -> Tensor:
        """Values in the units of the model."""

    @abstractmethod
    def inverse(self, z: Tensor) -> Tensor:
        """Values in the units of y."""

    @abstractmethod
    def log_slope(self, y: Tensor) -> Tensor:
        """The logarithm of the derivative at y, which compares likelihoods in the units of y."""

    def of_run(self, run: int | list[int]) -> Self:
        """The map of one of several runs."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        one: dict[str, Any] = {
            name: part.of_run(run) if isinstance(part, Outputs) else part[run] for name, part in parts.items()
        }
        return replace(self, **one)

    def noise(self, variance: float | Tensor) -> Tensor | None:
        """A variance of y, or those of each (…, n), in the model's units, (…, 1) or (…, n), if the map is linear."""
        return None


@dataclass(frozen=True)
class Standardise(Outputs):
    """(y − mean) / deviation."""

    @classmethod
    def fit(cls, y: Tensor) -> Self:
        return cls(*_moments(y))

    def forward(self, y: Tensor) -> Tensor:
        return _ratio(y, self.shift, self.scale)

    def inverse(self, z: Tensor) -> Tensor:
        return self.shift + self.scale * z

    def log_slope(self, y: Tensor) -> Tensor:
        return -self.scale.log().expand_as(y)

    def noise(self, variance: float | Tensor) -> Tensor | None:
        return variance / self.scale**2


@dataclass(frozen=True)
class Bilog(Outputs):
    """sign(u) log(1 + |u|) of u = (y − median) / deviation, standardised: tames functions that rise steeply."""

    then: Standardise

    @classmethod
    def fit(cls, y: Tensor) -> Self:
        _, scale = _moments(y)
        shift = y.median(-1, keepdim=True).values
        return cls(shift, scale, Standardise.fit(_bilog(_ratio(y, shift, scale))))

    def forward(self, y: Tensor) -> Tensor:
        return self.then.forward(_bilog(_ratio(y, self.shift, self.scale)))

    def inverse(self, z: Tensor) -> Tensor:
        u = self.then.inverse(z)
        return self.shift + self.scale * u.sign() * torch.expm1(u.abs())

    def log_slope(self, y: Tensor) -> Tensor:
        size = _ratio(y, self.shift, self.scale).abs()
        return -torch.log1p(size) - self.scale.log() - self.then.scale.log()


@dataclass(frozen=True)
class HalfLog(Outputs):
    """u up to 0, log(1 + u) above, of u = (y − median) / (median − best), standardised.

    The better half of the values is seen as it is, however high the others are.
    """

    then: Standardise

    @classmethod
    def fit(cls, y: Tensor) -> Self:
        return cls._bent(y, y.median(-1, keepdim=True).values, _spread(y))

    @classmethod
    def _bent(cls, y: Tensor, shift: Tensor, scale: Tensor) -> Self:
        return cls(shift, scale, Standardise.fit(_bend(_ratio(y, shift, scale))))

    def forward(self, y: Tensor) -> Tensor:
        return self.then.forward(_bend(_ratio(y, self.shift, self.scale)))

    def inverse(self, z: Tensor) -> Tensor:
        v = self.then.inverse(z)
        return self.shift + self.scale * torch.where(v > 0, torch.expm1(v.clamp(min=0)), v)

    def log_slope(self, y: Tensor) -> Tensor:
        u = _ratio(y, self.shift, self.scale).clamp(min=0)
        return -torch.log1p(u) - self.scale.log() - self.then.scale.log()


@dataclass(frozen=True)
class Log(HalfLog):
    """log(1 + 10u) of u = (y − best) / (median − best), standardised: sees differences near the best of steep values.

    Below the best value, the map continues along its tangent.
    """

    @classmethod
    def fit(cls, y: Tensor) -> Self:
        return cls._bent(y, y.amin(-1, keepdim=True), _spread(y) / _ZOOM)


OUTPUTS: dict[str, type[Outputs]] = {"standardise": Standardise, "half-log": HalfLog, "log": Log, "bilog": Bilog}


def _ratio(y: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """(y − shift) / scale, the largest number where that would overflow."""
    largest = torch.finfo(y.dtype).max
    return ((y - shift).clamp(-largest, largest) / scale).clamp(-largest / _ZOOM, largest / _ZOOM)


def _bilog(u: Tensor) -> Tensor:
    return u.sign() * torch.log1p(u.abs())


def _bend(u: Tensor) -> Tensor:
    return torch.where(u > 0, torch.log1p(u.clamp(min=0)), u)


def _spread(y: Tensor) -> Tensor:
    """From the best value to the median (…, 1), or the deviation where they are as good as equal."""
    above = y.median(-1, keepdim=True).values - y.amin(-1, keepdim=True)
    return torch.where((above > torch.finfo(y.dtype).tiny) & above.isfinite(), above, _moments(y)[1])


def _moments(y: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation (…, 1), without overflow; one that is rounding only counts as the size of the values."""
    size = y.abs().amax(-1, keepdim=True)
    unit = y / torch.where(size > 0, size, 1)
    mean = unit.mean(-1, keepdim=True)
    deviation = (unit - mean).square().mean(-1, keepdim=True).sqrt()
    constant = (deviation <= 1e-14) | (deviation * size < torch.finfo(y.dtype).tiny)
    return mean * size, torch.where(constant, torch.where(size > 0, size, 1), deviation * size)
