"""What a study needs of any space: a manifold, whole numbers, choices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Tensor

from nestbo.errors import ArgumentError, OffManifoldError, ShapeError
from nestbo.linalg import safe_sqrt
from nestbo.manifolds.numbers import as_tensor
from nestbo.specification import Specified
from nestbo.text import entry_labels, in_notebook

_READ = 1e-6  # how far off the space a value that a person writes may be: it has few digits


class Space(Specified, ABC):
    """A set of points, tensors of trailing shape ``point_shape``, with a distance and an embedding for kernels.

    Every operation broadcasts over leading axes and keeps dtype and device. A ``Manifold`` also has tangent vectors and
    geodesics; whole numbers and choices have none.
    """

    def _repr_html_(self) -> str:
        return in_notebook("space_html", self)

    @property
    @abstractmethod
    def dim(self) -> int:
        """The dimension of a manifold; for another space, how many numbers describe a point."""

    @property
    @abstractmethod
    def point_shape(self) -> tuple[int, ...]:
        """Trailing shape of a point."""

    @property
    @abstractmethod
    def typical_distance(self) -> float:
        """The scale of the space: how far apart two points usually are."""

    @classmethod
    @abstractmethod
    def samples(cls) -> list[Self]:
        """A few members of the family, small ones included, on which the laws are tested."""

    @abstractmethod
    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        """Random points, (*batch, *point_shape), in float64: uniform where the manifold is compact.

        Args:
            *batch: The number of points along each leading axis. Without a number, one point is drawn.
            rng: The generator of random numbers.
        """

    def random_each(self, count: int, rngs: list[torch.Generator]) -> Tensor:
        """Random points (count, runs, *point) of several runs. Each run has its own generator.

        Args:
            count: The number of points for each run.
            rngs: A generator for each run.
        """
        return torch.stack([self.random(count, rng=rng) for rng in rngs], 1)

    @abstractmethod
    def project(self, x: Tensor) -> Tensor:
        """A nearest point of the manifold to any tensor of the right shape.

        Args:
            x: A tensor (…, *point).
        """

    @abstractmethod
    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        """Squared geodesic distance, smooth where x = y.

        Args:
            x: A point (…, *point).
            y: Another point (…, *point).
        """

    @abstractmethod
    def embed(self, x: Tensor) -> Tensor:
        """Points as vectors (…, k) whose straight distance stands in for the geodesic one in kernels.

        Args:
            x: A point (…, *point).
        """

    @abstractmethod
    def violation(self, x: Tensor) -> Tensor:
        """How far x is from the manifold: 0 on it, up to rounding.

        Args:
            x: A tensor (…, *point).
        """

    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        """Geodesic distance; its derivative is 0 where x = y.

        Args:
            x: A point (…, *point).
            y: Another point (…, *point).
        """
        return safe_sqrt(self.sq_dist(x, y))

    def pairwise_dist(self, x: Tensor, y: Tensor) -> Tensor:
        """Distances between all of x (…, n, *point) and all of y (…, m, *point): (…, n, m).

        Args:
            x: Points (…, n, *point).
            y: Points (…, m, *point).
        """
        return safe_sqrt(self.pairwise_sq_dist(x, y))

    def pairwise_sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        """Squared distances between all of x (…, n, *point) and all of y (…, m, *point): (…, n, m).

        Args:
            x: Points (…, n, *point).
            y: Points (…, m, *point).
        """
        axes = len(self.point_shape)
        return self.sq_dist(x.unsqueeze(-axes - 1), y.unsqueeze(-axes - 2))

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the parameters of a point; None if they have no names."""
        return None

    @property
    def labels(self) -> tuple[str, ...]:
        """A label for each entry of a point, for the columns of tables."""
        return entry_labels(self.point_shape)

    def cells(self, x: Tensor) -> list[Any]:
        """The entries of one point as a table shows them, in the order of ``labels``.

        Args:
            x: One point.
        """
        return list(x.flatten().tolist())

    def value(self, x: Tensor) -> Any:
        """One point as a person would write it: a number, an array, or a dict of named parameters.

        Args:
            x: One packed point.
        """
        return x.item() if self.point_shape == (1,) else x.detach().cpu().numpy().copy()

    def read(self, value: Any) -> Tensor:
        """The point that a person wrote, the inverse of ``value``. If it is no point, an error says what is wrong.

        Args:
            value: What a person wrote.
        """
        x = as_tensor(value).double()
        x = x.reshape(1) if self.point_shape == (1,) and x.ndim == 0 else x
        self._check_one(x)
        if not x.isfinite().all() or self.violation(x) > _READ:
            raise OffManifoldError(self.complaint(x))
        return x

    def parameters(self, x: Tensor) -> dict[str, Any]:
        """The parameters of one point by name; without names, the point is called x.

        Args:
            x: One packed point.
        """
        value = self.value(x)
        return value if self.names is not None else {"x": value}

    def point(self, x: Any) -> Tensor:
        """One packed point in double precision, from parameters by name or from a packed point.

        Args:
            x: A dict of parameters by name, or a packed point.
        """
        if isinstance(x, Mapping):
            return self._named(x)
        x = self.check(x).double()
        self._check_one(x)
        return x

    def _named(self, parameters: Mapping[str, Any]) -> Tensor:
        if self.names is not None:
            return self.read(parameters)
        if set(parameters) != {"x"}:
            raise ArgumentError(
                f"{self} has no names for its parameters, got {', '.join(map(str, parameters))}. Give the point itself."
            )
        return self.read(parameters["x"])

    def _check_one(self, x: Tensor) -> None:
        if tuple(x.shape) != self.point_shape:
            raise ShapeError(f"Wanted one point of {self}, of shape {self.point_shape}, got {tuple(x.shape)}.")

    def complaint(self, x: Tensor) -> str:
        """What is wrong with one value of a parameter, after its name.

        Args:
            x: A value of the parameter.
        """
        return "wanted finite numbers, got NaN or infinity" if not x.isfinite().all() else self.fault(x)

    def check(self, x: Any, tolerance: float = 1e-6) -> Tensor:
        """Return x (a tensor, array or nested list) as a tensor of points, or raise an error that says what is wrong.

        The check uses double precision, as studies do.

        Args:
            x: A tensor, array or nested list, (…, *point).
            tolerance: How far from the space a point may be.
        """
        x = as_tensor(x)
        self._check_shape(x)
        finite = x.isfinite().flatten(x.ndim - len(self.point_shape)).all(-1)
        if not finite.all():
            count, total = int((~finite).sum()), finite.numel()
            raise OffManifoldError(
                f"{self} points are finite, got NaN or infinity in {count} of {total}. Drop or repair these."
            )
        violation = self.violation(x.double())
        off = int((violation > tolerance).sum())
        if off:
            worst = x.reshape(-1, *self.point_shape)[int(violation.argmax())]
            one = violation.ndim == 0
            others = "" if one else f", but {off} of {violation.numel()} are off. The worst"
            raise OffManifoldError(
                f"Wanted {'a point' if one else 'points'} of {self} to within {tolerance:g}{others}: "
                f"{self.fault(worst.double().cpu())}. "
                "Use .project(x), in double precision, for a nearest point."
            )
        return x

    def fault(self, x: Tensor) -> str:
        """What is wrong with one tensor that is not a point of this manifold: the number found, and the number wanted.

        Args:
            x: One tensor of the shape of a point.
        """
        return f"its violation is {self.violation(x):.4g}, it must be 0"

    def _check_shape(self, x: Tensor) -> None:
        axes = len(self.point_shape)
        if x.ndim < axes or tuple(x.shape[x.ndim - axes :]) != self.point_shape:
            hint = self._shape_hint(tuple(x.shape))
            raise ShapeError(f"{self} points end in shape {self.point_shape}, got {tuple(x.shape)}.{hint}")

    def _shape_hint(self, shape: tuple[int, ...]) -> str:
        return ""


def read_part(name: str, space: Space, value: Any) -> Tensor:
    """The value of a parameter; what is wrong with it is said with its name."""
    if value is None:
        raise ArgumentError(
            f"{name}: every parameter has a value in every trial, got None. A parameter that exists for one choice "
            "only is not supported: let the objective ignore it for the others, and give any value there."
        )
    try:
        return space.read(value)
    except ArgumentError as error:
        sentence = str(error) if str(error).endswith((".", "?")) else f"{error}."
        raise type(error)(f"{name}: {sentence}") from error
