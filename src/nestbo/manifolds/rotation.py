"""Rotations of space."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError, shown
from nestbo.linalg import sym
from nestbo.manifolds.base import Manifold, is_whole
from nestbo.manifolds.frames import fault_of_frame

# √(E θ²) = √(π²/3 + 2) for the angle θ between two uniform rotations, whose density is (1 − cos θ)/π.
TYPICAL_ANGLE = math.sqrt(math.pi**2 / 3 + 2)


@dataclass(frozen=True, repr=False)
class Rotation(Manifold):
    """SO(3): the 3×3 rotation matrices; the distance is the angle of the rotation that takes one to the other.

    ``Quaternion()`` is the same space in other coordinates.

    Args:
        n: The size of the matrices, 3.
    """

    n: int

    def __post_init__(self) -> None:
        if not is_whole(self.n) or self.n != 3:
            raise ArgumentError(
                f"Rotation(3) holds the rotations of space, got {shown(self.n)}. In a plane, use Torus(1)."
            )
        object.__setattr__(self, "n", 3)

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(3)]

    @property
    def dim(self) -> int:
        return 3

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (3, 3)

    @property
    def typical_distance(self) -> float:
        return TYPICAL_ANGLE

    @property
    def injectivity_radius(self) -> float:
        return math.pi

    def random(self, *batch: int, rng: torch.Generator) -> Tensor:
        x = linalg.random_frames(*batch, 3, 3, rng=rng)
        return x * torch.linalg.det(x).sign()[..., None, None]

    def project(self, x: Tensor) -> Tensor:
        return linalg.nearest_rotation(x)

    def to_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        return x @ _skew(x.mT @ v)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """Half the sum of products, so that a unit tangent vector turns by one radian in unit time."""
        return linalg.inner(u, v, axes=2) / 2

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """Rodrigues' formula: x (1 + (sin θ/θ) a + ((1 − cos θ)/θ²) a²) with a = xᵀv, θ its angle."""
        a = _skew(x.mT @ v)
        q = linalg.inner(a, a, axes=2)[..., None, None] / 2
        first, second = linalg.sinc_root(q), linalg.sinc_root(q / 4) ** 2 / 2
        return x + x @ (first * a + second * (a @ a))

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """At an angle of π there are two shortest ways, and one of them is chosen."""
        sine, cosine, w = _parts(x, y)
        near = (w < 0.5)[..., None]
        small = torch.where(near, w.unsqueeze(-1), 0)
        close = linalg.arcsinc_root(small) / (1 - small).sqrt() * sine
        far = torch.atan2(linalg.norm(sine), cosine).unsqueeze(-1) * _axis(x.mT @ y, sine, cosine)
        return x @ _hat(torch.where(near, close, far))

    def sq_dist(self, x: Tensor, y: Tensor) -> Tensor:
        sine, cosine, w = _parts(x, y)
        near = w < 0.5
        small = torch.where(near, w, 0)
        return torch.where(near, 4 * small * linalg.arcsinc_root(small) ** 2, _far_angle(near, sine, cosine) ** 2)

    def embed(self, x: Tensor) -> Tensor:
        """The entries, scaled so that small distances agree with the angle: |x − y|² = 4 sin²(θ/2)."""
        return x.flatten(-2) / math.sqrt(2)

    def gradient(self, x: Tensor, euclidean: Tensor) -> Tensor:
        return 2 * self.to_tangent(x, euclidean)

    def hessian(self, x: Tensor, gradient: Tensor, product: Tensor, v: Tensor) -> Tensor:
        return 2 * self.to_tangent(x, product - v @ sym(x.mT @ gradient))

    def violation(self, x: Tensor) -> Tensor:
        eye = torch.eye(3, dtype=x.dtype, device=x.device)
        oblique = (x.mT @ x - eye).abs().amax((-1, -2))
        return torch.maximum(oblique, (torch.linalg.det(x) - 1).abs())

    def fault(self, x: Tensor) -> str:
        determinant = torch.linalg.det(x)
        return f"its determinant is {determinant:.4g}, it must be 1" if determinant < 0 else fault_of_frame(x)

    def _shape_hint(self, shape: tuple[int, ...]) -> str:
        return " For unit quaternions use Quaternion()." if shape[-1:] == (4,) else ""


def _skew(a: Tensor) -> Tensor:
    return (a - a.mT) / 2


def _hat(w: Tensor) -> Tensor:
    """The skew matrix of the cross product with w (…, 3)."""
    x, y, z = w.unbind(-1)
    zero = torch.zeros_like(x)
    entries = [zero, -z, y, z, zero, -x, -y, x, zero]
    return torch.stack(entries, -1).unflatten(-1, (3, 3))


def _vee(a: Tensor) -> Tensor:
    """The vector w (…, 3) of which a skew matrix is ``_hat(w)``."""
    entries = [a[..., 2, 1], a[..., 0, 2], a[..., 1, 0]]
    return torch.stack(entries, -1)


def _parts(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of the rotation xᵀy by θ about the axis a: sin θ · a, cos θ, and sin²(θ/2), exactly 0 where x = y."""
    apart = y - x
    a = _skew(x.mT @ apart)
    w = linalg.inner(apart, apart, axes=2) / 8
    return _vee(a), 1 - 2 * w, w


def _far_angle(near: Tensor, sine: Tensor, cosine: Tensor) -> Tensor:
    """The angle where it is large; elsewhere something that is safe to differentiate."""
    safe_sine = torch.where(near.unsqueeze(-1), 1, sine)
    return torch.atan2(linalg.norm(safe_sine), torch.where(near, 1, cosine))


def _axis(turn: Tensor, sine: Tensor, cosine: Tensor) -> Tensor:
    """The axis a of a rotation by a large angle, from the largest column of (1 − cos θ) a aᵀ."""
    eye = torch.eye(3, dtype=turn.dtype, device=turn.device)
    outer = sym(turn) - cosine[..., None, None] * eye
    largest = outer.diagonal(dim1=-2, dim2=-1).argmax(-1)
    column = largest[..., None, None].expand(*turn.shape[:-1], 1)
    axis = linalg.unit(outer.gather(-1, column).squeeze(-1))
    return torch.where(linalg.inner(axis, sine) < 0, -1, 1).unsqueeze(-1) * axis
