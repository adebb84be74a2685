"""Several spaces as one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError, shown
from nestbo.manifolds.base import Manifold
from nestbo.manifolds.box import Box
from nestbo.manifolds.names import check_given, check_names
from nestbo.manifolds.spaces import Space, read_part
from nestbo.manifolds.spd import SPD
from nestbo.manifolds.sphere import Sphere
from nestbo.text import entry_labels, labelled


def _advice(wrong: list[Any], named: Mapping[str, Any]) -> str:
    """What to write instead of something that is no space."""
    if wrong and isinstance(wrong[0], Mapping):
        conditional = "A parameter that exists for one choice only is not supported: name it beside the others."
        return conditional if named else "Write Product(force=Box(0, 40), passes=Integer(1, 8)), or Product(**spaces)."
    if wrong and isinstance(wrong[0], list | tuple):
        return 'Write Box(0, 40) for numbers between bounds, and Choice("soft", "hard") for one of several values.'
    return "Write Product(Sphere(2), SPD(3))."


@dataclass(frozen=True, repr=False, init=False)
class Product(Space):
    """Tuples of points, packed into one flat vector: ``split`` takes it apart, ``join`` puts it together.

    Factors may have names, ``Product(direction=Sphere(2), passes=Integer(1, 8))``. Names do not change the points. A
    product of manifolds is a manifold.

    Args:
        *factors: The spaces, if they have no names.
        **named: The spaces by name.
    """

    factors: tuple[Space, ...]
    titles: tuple[str, ...] | None = field(default=None, compare=False)

    def __new__(cls, /, *factors: Space, **named: Space) -> Product:
        given = (*factors, *named.values())
        smooth = cls is Product and given and all(isinstance(factor, Manifold) for factor in given)
        return object.__new__(ManifoldProduct if smooth else cls)

    def __init__(self, /, *factors: Space, **named: Space) -> None:
        given = (*factors, *named.values())
        wrong = [factor for factor in given if not isinstance(factor, Space)]
        if wrong or not given:
            came = shown(wrong[0]) if wrong else "nothing"
            raise ArgumentError(f"Product takes spaces, got {came}. {_advice(wrong, named)}")
        if factors and named:
            raise ArgumentError(f"Name all factors of a product, or none: got {len(factors)} without a name.")
        object.__setattr__(self, "factors", given)
        object.__setattr__(self, "titles", check_names(named) if named else None)
        if self.names is not None:
            check_names(self.names)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if self.titles is None:
            return self.factors, {}
        return (), dict(zip(self.titles, self.factors, strict=True))

    @property
    def kind(self) -> str:
        return "Product"

    @property
    def specification(self) -> str:
        texts = [factor.specification for factor in self.factors]
        if self.titles is not None:
            texts = [f"{name}={text}" for name, text in zip(self.titles, texts, strict=True)]
        return ":".join(["product", *(f"({text})" for text in texts)])

    @classmethod
    def samples(cls) -> list[Self]:
        named: dict[str, Space] = {"direction": Sphere(1), "width": Box(0, 1)}
        return [
            cls(Sphere(2)),
            cls(Sphere(2), SPD(3), Box(0, [1, 2])),
            cls(**named),
            cls(cls(Sphere(1), Sphere(1)), SPD(2, metric="log-euclidean", eigenvalues=(0.1, 4.0))),
        ]

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the factors; without these, the names inside of the factors, if each factor has some."""
        if self.titles is not None:
            return self.titles
        inside = [factor.names for factor in self.factors]
        return tuple(name for names in inside for name in names or ()) if all(inside) else None

    @property
    def labels(self) -> tuple[str, ...]:
        if self.titles is not None:
            pairs = zip(self.titles, self.factors, strict=True)
            return tuple(label for name, factor in pairs for label in labelled(name, factor.labels))
        if self.names is not None:
            return tuple(label for factor in self.factors for label in factor.labels)
        return entry_labels(self.point_shape)

    def cells(self, x: Tensor) -> list[Any]:
        return [entry for factor, part in zip(self.factors, self.split(x), strict=True) for entry in factor.cells(part)]

    def value(self, x: Tensor) -> Any:
        values = [factor.value(part) for factor, part in zip(self.factors, self.split(x), strict=True)]
        if self.titles is not None:
            return dict(zip(self.titles, values, strict=True))
        return tuple(values) if self.names is None else {name: part for each in values for name, part in each.items()}

    def read(self, value: Any) -> Tensor:
        if not isinstance(value, Mapping) or self.names is None:
            return self._read_parts(value) if isinstance(value, tuple) else super().read(value)
        check_given(value, self.names)
        if self.titles is None:
            return self.join(factor.read({name: value[name] for name in factor.names or ()}) for factor in self.factors)
        return self.join(read_part(n, factor, value[n]) for n, factor in zip(self.titles, self.factors, strict=True))

    def _read_parts(self, values: tuple[Any, ...]) -> Tensor:
        """A point from one value for each factor."""
        if len(values) != len(self.factors):
            raise ArgumentError(f"{self} has {len(self.factors)} parts, got {len(values)}. Give one for each.")
        return self.join(factor.read(value) for factor, value in zip(self.factors, values, strict=True))

    @property
    def dim(self) -> int:
        return sum(factor.dim for factor in self.factors)

    @property
    def _sizes(self) -> list[int]:
        return [math.prod(factor.point_shape) for factor in self.factors]

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (sum(self._sizes),)

    @property
    def typical_distance(self) -> float:
        return math.hypot(*(factor.typical_distance for factor in self.factors))

    def split(self, x: Tensor) -> tuple[Tensor, ...]:
        """The parts of packed points or tangent vectors, each in the shape of its factor.

        Args:
            x: Packed points or tangent vectors.
        """
        parts = x.split(self._sizes, dim=-1)
        return tuple(part.unflatten(-1, f.point_shape) for part, f in zip(parts, self.factors, strict=True))

    def join(self, parts: Iterable[Tensor]) -> Tensor:
        """The inverse of ``split``; leading axes broadcast.

        Args:
            parts: A point or tangent vector of each factor.
        """
        flat = [part.flatten(-len(f.point_shape)) for part, f in zip(parts, self.factors, strict=True)]
        batch = torch.broadcast_shapes(*(part.shape[:-1] for part in flat))
        return torch.cat([part.expand(*batch, -1) for part in flat], dim=-1)

    def _each(self, operation: str, *tensors: Tensor) -> list[Any]:
        """Apply an operation factor by factor to the parts of packed tensors."""
        parts = zip(*map(self.split, tensors), strict=True)
        return [getattr(f, operation)(*part) for f, part in zip(self.factors, parts, strict=True)]

    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        return self.join(factor.random(*batch, rng=rng) for factor in self.factors)

    def random_each(self, count: int, rngs: list[torch.Generator]) -> Tensor:
        return self.join(factor.random_each(count, rngs) for factor in self.factors)

    def project(self, x: Tensor) -> Tensor:
        return self.join(self._each("project", x))

    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        return _total(self._each("sq_dist", x, y))

    def pairwise_sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        return _total(self._each("pairwise_sq_dist", x, y))

    def embed(self, x: Tensor) -> Tensor:
        return torch.cat(self._each("embed", x), -1)

    def violation(self, x: Tensor) -> Tensor:
        return torch.stack(self._each("violation", x)).amax(0)

    def fault(self, x: Tensor) -> str:
        k = int(torch.stack(self._each("violation", x)).argmax())
        factor, part = self.factors[k], self.split(x)[k]
        if self.titles is not None:
            return f"{self.titles[k]}: {factor.complaint(part)}"
        return f"its part {k} is no point of {factor}: {factor.fault(part)}"

    def _shape_hint(self, shape: tuple[int, ...]) -> str:
        return " Pack one point per factor with .join([…])."


class ManifoldProduct(Product, Manifold):
    """A product of manifolds. ``Product`` returns one if all factors are manifolds."""

    factors: tuple[Manifold, ...]

    @property
    def injectivity_radius(self) -> float:
        return min(factor.injectivity_radius for factor in self.factors)

    def to_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        return self.join(self._each("to_tangent", x, v))

    def from_noise(self, x: Tensor, noise: Tensor) -> Tensor:
        return self.join(self._each("from_noise", x, noise))

    @property
    def euclidean_metric(self) -> bool:
        return all(factor.euclidean_metric for factor in self.factors)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        if self.euclidean_metric:
            return linalg.inner(u, v)
        return _total(self._each("inner", x, u, v))

    def pairwise_inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        if self.euclidean_metric:
            return super().pairwise_inner(x, u, v)
        return _total(self._each("pairwise_inner", x, u, v))

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        return self.join(self._each("exp", x, v))

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        return self.join(self._each("log", x, y))

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        return self.join(self._each("retract", x, v))

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        return self.join(self._each("transport", x, y, v))

    def gradient(self, x: Tensor, euclidean: Tensor) -> Tensor:
        return self.join(self._each("gradient", x, euclidean))

    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        return self.join(self._each("hessian", x, gradient, product, v))

    @property
    def bounded(self) -> bool:
        return any(factor.bounded for factor in self.factors)

    def face(self, x: Tensor, descent: Tensor, slack: float) -> Callable[[Tensor], Tensor]:
        parts = zip(self.factors, self.split(x), self.split(descent), strict=True)
        faces = [factor.face(at, down, slack) for factor, at, down in parts]
        return lambda v: self.join(face(part) for face, part in zip(faces, self.split(v), strict=True))

    def bend(self, x: Tensor, gradient: Tensor, slack: float) -> Callable[[Tensor], Tensor]:
        parts = zip(self.factors, self.split(x), self.split(gradient), strict=True)
        bends = [factor.bend(at, slope, slack) for factor, at, slope in parts]
        return lambda v: self.join(bend(part) for bend, part in zip(bends, self.split(v), strict=True))


def _total(parts: list[Tensor]) -> Tensor:
    return torch.stack(torch.broadcast_tensors(*parts)).sum(0)
