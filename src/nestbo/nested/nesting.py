"""The family of mappings from a space to a smaller one, among which a fit chooses.

``MAPPINGS`` is where a new mapping is registered, by the manifold it nests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError, shown
from nestbo.manifolds import SPD, Grassmann, Manifold, ManifoldProduct, Product, Space, Sphere
from nestbo.nested.base import NestedMapping
from nestbo.nested.identity import Identity
from nestbo.nested.product import NestedProduct
from nestbo.nested.spd import NestedLogSPD, NestedSPD
from nestbo.nested.sphere import NestedSphere

MAPPINGS: dict[type[Space], type[NestedMapping]] = {Sphere: NestedSphere, SPD: NestedSPD, Product: NestedProduct}


@dataclass(frozen=True)
class Nesting:
    """All mappings from ``ambient`` to ``latent``, one for each point of the manifold ``bases``.

    With ``logarithmic``, SPD matrices are projected for a fit as exp(Wᵀ log(X) W), the paper's approximation.
    """

    ambient: Space
    latent: Space
    logarithmic: bool = False

    def __post_init__(self) -> None:
        kind = family(self.ambient)
        if self.ambient != self.latent and (kind not in MAPPINGS or kind is not family(self.latent)):
            known = ", ".join(each.__name__.lower() for each in MAPPINGS)
            raise ArgumentError(
                f"Spaces that nest are {known}, each in its own kind, got {self.ambient} to {self.latent}."
            )
        sized = not isinstance(self.ambient, Product) and self.ambient != self.latent
        if sized and smaller(self.ambient, self.latent.n) != self.latent:  # type: ignore[attr-defined]
            raise ArgumentError(f"A latent space of {self.ambient} differs in size only, got {self.latent}.")
        if isinstance(self.ambient, Product) and len(self.ambient.factors) != len(self.latent.factors):  # type: ignore[attr-defined]
            raise ArgumentError(f"Nested products have as many factors, got {self.ambient} to {self.latent}.")

    @property
    def kind(self) -> type[NestedMapping]:
        """The class of the mappings."""
        return Identity if self.ambient == self.latent else MAPPINGS[family(self.ambient)]

    @cached_property
    def parts(self) -> tuple[Nesting, ...]:
        """The nestings of the factors; a nesting that is not one of products is its own and only part."""
        if self.kind is not NestedProduct:
            return (self,)
        pairs = zip(self.ambient.factors, self.latent.factors, strict=True)  # type: ignore[attr-defined]
        return tuple(Nesting(a, b, self.logarithmic) for a, b in pairs)

    @property
    def bases(self) -> Manifold:
        """The subspaces spanned by W; a product of these where the space is one."""
        if self.kind is NestedProduct:
            return ManifoldProduct(*(part.bases for part in self._learned))
        return Grassmann(self.ambient.point_shape[0], self.latent.point_shape[0])

    @property
    def _learned(self) -> list[Nesting]:
        return [part for part in self.parts if part.kind is not Identity]

    def _split(self, basis: Tensor) -> list[Tensor]:
        """The basis of each part, empty for an identity."""
        if self.kind is not NestedProduct:
            return [basis]
        packed = iter(self.bases.split(basis))  # type: ignore[attr-defined]
        return [basis[..., :0] if part.kind is Identity else next(packed) for part in self.parts]

    def at(self, basis: Tensor) -> NestedMapping:
        """The mapping with this basis, and a default lift."""
        if self.kind is not NestedProduct:
            return self.kind.at(basis, self.ambient)
        return NestedProduct(tuple(part.at(b) for part, b in zip(self.parts, self._split(basis), strict=True)))

    @property
    def compared(self) -> Space:
        """The latent space with the metric of a fit: log-Euclidean where logarithms are projected."""
        if self.kind is NestedProduct:
            return Product(*(part.compared for part in self.parts))
        return replace(self.latent, metric="log-euclidean") if self._takes_logs else self.latent  # type: ignore[type-var]

    def prepare(self, x: Tensor) -> Tensor:
        """What ``project`` needs of points x (…, *point), to be computed once in a fit."""
        if self.kind is NestedProduct:
            split = self.ambient.split(x)  # type: ignore[attr-defined]
            return self.ambient.join(p.prepare(part) for p, part in zip(self.parts, split, strict=True))  # type: ignore[attr-defined]
        return linalg.logm(x) if self._takes_logs else x

    def project(self, basis: Tensor, prepared: Tensor) -> Tensor:
        """Latent points (…, *runs, n, *point) of prepared ones, differentiable in the basis (*runs, …)."""
        if self.kind is NestedProduct:
            each = zip(self.parts, self._split(basis), self.ambient.split(prepared), strict=True)  # type: ignore[attr-defined]
            return self.latent.join(part.project(b, x) for part, b, x in each)  # type: ignore[attr-defined]
        if self._takes_logs:
            return NestedLogSPD(basis, self.ambient).project_log(prepared)  # type: ignore[arg-type]
        return self.at(basis).project(prepared)

    @property
    def _takes_logs(self) -> bool:
        return self.logarithmic and self.kind is NestedSPD

    def active(self, gradients: Tensor) -> Tensor:
        """The basis (…) along which a function varies most, from its gradients (…, n, *point) in the ambient space.

        A function of project(x) has all of them in the span of W: as vectors on a sphere, as matrices W S Wᵀ on SPD.
        """
        if self.kind is NestedProduct:
            split = zip(self.parts, self.ambient.split(gradients), strict=True)  # type: ignore[attr-defined]
            return self.bases.join(part.active(g) for part, g in split if part.kind is not Identity)  # type: ignore[attr-defined]
        second = (gradients @ gradients.mT).sum(-3) if isinstance(self.ambient, SPD) else gradients.mT @ gradients
        return linalg.eigh(second)[1][..., -self.latent.point_shape[0] :]


def family(space: Space) -> type[Space]:
    """The class by which mappings of a space are registered; that of a product, whatever its factors are."""
    return Product if isinstance(space, Product) else type(space)


def smaller(space: Space, latent_dim: Any) -> Space:
    """The latent manifold of a size: S^d, d×d matrices, a product of these with None for a factor left whole."""
    if latent_dim is None:
        return space
    if isinstance(space, Product):
        return Product(*map(smaller, space.factors, _entries(space, latent_dim)))
    if family(space) not in MAPPINGS:
        raise ArgumentError(f"{space} has no nested spaces inside; they exist in a Sphere, SPD and products of these.")
    size: int = space.n  # type: ignore[attr-defined]
    if isinstance(latent_dim, bool) or not isinstance(latent_dim, int) or not 1 <= latent_dim <= size:
        raise ArgumentError(f"latent_dim of {space} is a whole number from 1 to {size}, got {shown(latent_dim)}.")
    return replace(space, n=latent_dim)  # type: ignore[type-var]


def _entries(space: Product, latent_dim: Any) -> tuple[Any, ...]:
    if not isinstance(latent_dim, tuple) or len(latent_dim) != len(space.factors):
        raise ArgumentError(
            f"latent_dim of {space} is a tuple with one entry per factor, None for one to leave whole, "
            f"got {shown(latent_dim)}."
        )
    return latent_dim
