"""What a Riemannian manifold can do."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from nestbo.linalg import safe_sqrt
from nestbo.manifolds.numbers import as_tensor, check_size, is_whole, told_apart
from nestbo.manifolds.spaces import Space

__all__ = ["Chart", "Manifold", "Space", "as_tensor", "check_size", "is_whole", "told_apart"]


@dataclass(frozen=True)
class Chart:
    """Coordinates in a flat space without bounds. A minimisation in them costs less than one on the manifold.

    ``point`` maps u to a point of the manifold and to a penalty, the square of how far u is beyond the bounds;
    ``coordinates`` is one way back.
    """

    flat: Manifold
    point: Callable[[Tensor], tuple[Tensor, Tensor]]
    coordinates: Callable[[Tensor], Tensor]


class Manifold(Space):
    """A Riemannian manifold: a space whose points have tangent vectors, which are tensors of the shape of a point.

    Every operation is differentiable. A subclass is a frozen dataclass that defines the abstract operations. The other
    operations have defaults, which a subclass may replace.
    """

    @property
    @abstractmethod
    def injectivity_radius(self) -> float:
        """``exp`` and ``log`` are inverse to each other within this distance; inf if they always are."""

    @abstractmethod
    def to_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        """Orthogonal projection of an ambient vector onto the tangent space at x.

        Args:
            x: A point (…, *point).
            v: An ambient vector.
        """

    @abstractmethod
    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """Riemannian inner product of tangent vectors at x.

        Args:
            x: A point (…, *point).
            u: A tangent vector at x.
            v: Another tangent vector at x.
        """

    @abstractmethod
    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """The point reached after unit time along the geodesic that leaves x with velocity v.

        Args:
            x: A point (…, *point).
            v: A tangent vector at x.
        """

    @abstractmethod
    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """The velocity at x of the shortest geodesic to y: exp(x, log(x, y)) = y.

        Args:
            x: A point (…, *point).
            y: Another point (…, *point).
        """

    @abstractmethod
    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        """Riemannian Hessian applied to v, from the Euclidean gradient and Hessian-vector product of a function.

        Args:
            x: A point (…, *point).
            gradient: The Euclidean gradient of a function at x.
            product: Its Euclidean Hessian applied to v.
            v: A tangent vector at x.
        """

    def gradient(self, x: Tensor, euclidean: Tensor) -> Tensor:
        """Riemannian gradient from the Euclidean one.

        Args:
            x: A point (…, *point).
            euclidean: The Euclidean gradient of a function at x.
        """
        return self.to_tangent(x, euclidean)

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        """A cheap map that agrees with ``exp`` to second order and, where the space has bounds, stays within them.

        Args:
            x: A point (…, *point).
            v: A tangent vector at x.
        """
        return self.exp(x, v)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        """Carry a tangent vector from x to y.

        Args:
            x: A point (…, *point).
            y: Another point (…, *point).
            v: A tangent vector at x.
        """
        return self.to_tangent(y, v)

    def norm(self, x: Tensor, v: Tensor) -> Tensor:
        """Riemannian norm of a tangent vector at x; its derivative is 0 at 0.

        Args:
            x: A point (…, *point).
            v: A tangent vector at x.
        """
        return safe_sqrt(self.inner(x, v, v))

    @property
    def euclidean_metric(self) -> bool:
        """Whether ``inner`` is the sum of products of coordinates."""
        return False

    def pairwise_inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """Inner products at x (…, *point) of all of u (…, n, *point) with all of v (…, m, *point): (…, n, m).

        Args:
            x: A point (…, *point).
            u: Tangent vectors (…, n, *point) at x.
            v: Tangent vectors (…, m, *point) at x.
        """
        axes = len(self.point_shape)
        if self.euclidean_metric:
            return u.flatten(-axes) @ v.flatten(-axes).mT
        row, column = -axes - 2, -axes - 1
        return self.inner(x.unsqueeze(column).unsqueeze(column), u.unsqueeze(column), v.unsqueeze(row))

    @property
    def bounded(self) -> bool:
        """Whether the space has bounds, at which ``retract`` stops."""
        return False

    def face(self, x: Tensor, descent: Tensor, slack: float) -> Callable[[Tensor], Tensor]:
        """The linear projection onto directions along the bounds that stop ``descent`` at x; the identity if none does.

        A bound counts as reached within ``slack``, relative to the size of the space.

        Args:
            x: A point (…, *point).
            descent: The direction in which a minimisation would go on.
            slack: How near a bound counts as reached, relative to the size of the space.
        """
        return lambda v: v

    def bend(self, x: Tensor, gradient: Tensor, slack: float) -> Callable[[Tensor], Tensor]:
        """The term that curved bounds add to a Hessian-vector product where they stop the descent; 0 for flat bounds.

        ``retract`` along a ``face`` turns with the gradient, and f changes accordingly.

        Args:
            x: A point (…, *point).
            gradient: The Euclidean gradient of a function at x: a ``retract`` along a ``face`` turns with it, and f
                changes.
            slack: How near a bound counts as reached, relative to the size of the space.
        """
        return lambda v: torch.zeros_like(v)

    @property
    def chart(self) -> Chart | None:
        """Flat coordinates of the whole space; None if there are none, or if they would save no time."""
        return None

    def from_noise(self, x: Tensor, noise: Tensor) -> Tensor:
        """Random tangent vectors, of any length, from standard normal numbers of the shape of x.

        Args:
            x: A point (…, *point).
            noise: Standard normal numbers of the shape of x.
        """
        return self.to_tangent(x, noise)

    def random_tangent(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """A random unit tangent vector at each x.

        Args:
            x: A point (…, *point).
            rng: The generator of random numbers.
        """
        v = self.from_noise(x, torch.randn(x.shape, generator=rng, dtype=x.dtype, device=x.device))
        return v / self.norm(x, v)[(..., *[None] * len(self.point_shape))]
