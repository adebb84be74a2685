"""What a Riemannian manifold can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self, TypeGuard

import torch
from torch import Tensor

from nestbo.errors import ArgumentError, OffManifoldError, ShapeError, shown
from nestbo.linalg import safe_sqrt
from nestbo.specification import Specified
from nestbo.text import in_notebook

_LARGEST = 2**31 - 1  # a size or a count: no computer holds, or does, more
_PRECISIONS = (torch.float32, torch.float64)  # in which all operations exist


@dataclass(frozen=True)
class Chart:
    """Coordinates in a flat space that know no bounds: minimisations there cost less than on the manifold.

    ``point`` maps u to a point of the manifold and to a penalty, the square of how far u is beyond the bounds;
    ``coordinates`` is one way back.
    """

    flat: Manifold
    point: Callable[[Tensor], tuple[Tensor, Tensor]]
    coordinates: Callable[[Tensor], Tensor]


class Manifold(Specified, ABC):
    """A Riemannian manifold whose points and tangent vectors are tensors of trailing shape ``point_shape``.

    Every operation broadcasts over the axes in front, keeps dtype and device, and is differentiable. A subclass is a
    frozen dataclass that defines the abstract operations; the others have sound defaults and may be replaced.
    """

    def _repr_html_(self) -> str:
        return in_notebook("space_html", self)

    @property
    @abstractmethod
    def dim(self) -> int:
        """Dimension of the manifold."""

    @property
    @abstractmethod
    def point_shape(self) -> tuple[int, ...]:
        """Trailing shape of a point."""

    @property
    @abstractmethod
    def typical_distance(self) -> float:
        """The scale of the space: how far apart two points usually are."""

    @property
    @abstractmethod
    def injectivity_radius(self) -> float:
        """``exp`` and ``log`` are inverse to each other within this distance; inf if they always are."""

    @classmethod
    @abstractmethod
    def samples(cls) -> list[Self]:
        """A few members of the family, small ones included, on which the laws are tested."""

    @abstractmethod
    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        """Random points, (*batch, *point_shape), in float64: uniform where the manifold is compact."""

    def random_each(self, count: int, rngs: list[torch.Generator]) -> Tensor:
        """Random points (count, runs, *point) of several runs, those of each from a generator of its own."""
        return torch.stack([self.random(count, rng=rng) for rng in rngs], 1)

    @abstractmethod
    def project(self, x: Tensor) -> Tensor:
        """A nearest point of the manifold to any tensor of the right shape."""

    @abstractmethod
    def to_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        """Orthogonal projection of an ambient vector onto the tangent space at x."""

    @abstractmethod
    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """Riemannian inner product of tangent vectors at x."""

    @abstractmethod
    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """The point reached after unit time along the geodesic that leaves x with velocity v."""

    @abstractmethod
    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """The velocity at x of the shortest geodesic to y: exp(x, log(x, y)) = y."""

    @abstractmethod
    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        """Squared geodesic distance, smooth where x = y."""

    @abstractmethod
    def embed(self, x: Tensor) -> Tensor:
        """Points as vectors (…, k) whose straight distance stands in for the geodesic one in kernels."""

    @abstractmethod
    def violation(self, x: Tensor) -> Tensor:
        """How far x is from the manifold: 0 on it, up to rounding."""

    @abstractmethod
    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        """Riemannian Hessian applied to v, from the Euclidean gradient and Hessian-vector product of a function."""

    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        """Geodesic distance; its derivative is 0 where x = y."""
        return safe_sqrt(self.sq_dist(x, y))

    def gradient(self, x: Tensor, euclidean: Tensor) -> Tensor:
        """Riemannian gradient from the Euclidean one."""
        return self.to_tangent(x, euclidean)

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        """A cheap map that agrees with ``exp`` to second order and, where the space has bounds, stays within them."""
        return self.exp(x, v)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        """Carry a tangent vector from x to y."""
        return self.to_tangent(y, v)

    def norm(self, x: Tensor, v: Tensor) -> Tensor:
        """Riemannian norm of a tangent vector at x; its derivative is 0 at 0."""
        return safe_sqrt(self.inner(x, v, v))

    @property
    def euclidean_metric(self) -> bool:
        """Whether ``inner`` is the sum of products of coordinates."""
        return False

    def pairwise_inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """Inner products at x (…, *point) of all of u (…, n, *point) with all of v (…, m, *point): (…, n, m)."""
        axes = len(self.point_shape)
        if self.euclidean_metric:
            return u.flatten(-axes) @ v.flatten(-axes).mT
        return self.inner(x.unsqueeze(-axes - 1).unsqueeze(-axes - 1), u.unsqueeze(-axes - 1), v.unsqueeze(-axes - 2))

    @property
    def bounded(self) -> bool:
        """Whether the space has bounds, at which ``retract`` stops."""
        return False

    def face(self, x: Tensor, descent: Tensor, slack: float) -> Callable[[Tensor], Tensor]:
        """The linear projection onto directions along those bounds that stop ``descent`` at x; else the identity.

        A bound counts as reached within ``slack``, relative to the size of the space.
        """
        return lambda v: v

    def bend(self, x: Tensor, gradient: Tensor, slack: float) -> Callable[[Tensor], Tensor]:
        """What curved bounds that stop the descent at x add to a Hessian-vector product; nothing if they are flat.

        ``gradient`` is the Euclidean one: a ``retract`` along a ``face`` turns with it, and f changes accordingly.
        """
        return lambda v: torch.zeros_like(v)

    @property
    def chart(self) -> Chart | None:
        """Flat coordinates of the whole space, where they exist and are worth their while."""
        return None

    def pairwise_dist(self, x: Tensor, y: Tensor) -> Tensor:
        """Distances between all of x (…, n, *point) and all of y (…, m, *point): (…, n, m)."""
        return safe_sqrt(self.pairwise_sq_dist(x, y))

    def pairwise_sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        """Squared distances between all of x (…, n, *point) and all of y (…, m, *point): (…, n, m)."""
        axes = len(self.point_shape)
        return self.sq_dist(x.unsqueeze(-axes - 1), y.unsqueeze(-axes - 2))

    def from_noise(self, x: Tensor, noise: Tensor) -> Tensor:
        """Random tangent vectors, of any length, from standard normal numbers of the shape of x."""
        return self.to_tangent(x, noise)

    def random_tangent(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """A random unit tangent vector at each x."""
        v = self.from_noise(x, torch.randn(x.shape, generator=rng, dtype=x.dtype, device=x.device))
        return v / self.norm(x, v)[(..., *[None] * len(self.point_shape))]

    def check(self, x: Any, tolerance: float = 1e-6) -> Tensor:
        """Return x (a tensor, array or nested list) as a tensor of points, or say why it is not one.

        Studies work in double precision, and so does this: what is a point here, is one everywhere.
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
            which = "" if violation.ndim == 0 else f", but {off} of {violation.numel()} are none. The worst"
            raise OffManifoldError(
                f"Wanted points of {self} to within {tolerance:g}{which}: {self.fault(worst.double().cpu())}. "
                "Use .project(x), in double precision, for a nearest point."
            )
        return x

    def fault(self, x: Tensor) -> str:
        """What is wrong with one tensor that is no point of this manifold: the number found, and the one wanted."""
        return f"its violation is {self.violation(x):.4g}, it must be 0"

    def _check_shape(self, x: Tensor) -> None:
        axes = len(self.point_shape)
        if x.ndim < axes or tuple(x.shape[x.ndim - axes :]) != self.point_shape:
            hint = self._shape_hint(tuple(x.shape))
            raise ShapeError(f"{self} points end in shape {self.point_shape}, got {tuple(x.shape)}.{hint}")

    def _shape_hint(self, shape: tuple[int, ...]) -> str:
        return ""


def told_apart(found: Tensor, wanted: float) -> str:
    """A number that was found, with four digits, or as many as tell it from the one that was wanted."""
    texts = [(f"{found.item():.{digits}g}", f"{wanted:.{digits}g}") for digits in (4, 8, 12, 17)]
    return next((text for text, other in texts if text != other), f"{wanted:.4g}")


def as_tensor(x: Any) -> Tensor:
    """A tensor from a tensor, array, number or nested list: in float32 if it has this precision, else in float64."""
    try:
        x = torch.as_tensor(x, dtype=None if hasattr(x, "dtype") else torch.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ArgumentError(f"Wanted a tensor, array or list of numbers, got {type(x).__name__}: {error}.") from error
    if x.is_complex():
        raise ArgumentError("Wanted real numbers, got complex ones. Pass the real part.")
    return x if x.dtype in _PRECISIONS else x.double()


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether a value is a whole number, Python's or NumPy's; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_size(name: str, value: Any, least: int = 1) -> int:
    """``value`` as Python's int, if it is a whole number of at least ``least``."""
    if not is_whole(value) or value < least:
        raise ArgumentError(f"{name} is a whole number of at least {least}, got {shown(value)}.")
    if value > _LARGEST:
        raise ArgumentError(f"{name} is at most {_LARGEST}, got {shown(value)}.")
    return int(value)
