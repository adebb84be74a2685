"""Arms: who may make a suggestion. ``ARMS`` is where a new one is registered.

An arm has a model of the objective and lays a section through the space, in which that model is believed.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nestbo.errors import ArgumentError, shown
from nestbo.manifolds import SPD, Product, Space, Sphere
from nestbo.manifolds.base import check_size
from nestbo.memory import Memory
from nestbo.nested import Identity, NestedMapping, Nesting, smaller
from nestbo.search.runs import Runs, successes
from nestbo.search.sections import Ball, Map, Section, same
from nestbo.strategies.local import Region, local_model, regions, regions_at_best
from nestbo.surrogate import Surrogate

_SIZES: dict[type[Space], tuple[int, ...]] = {Sphere: (2, 5), SPD: (2, 3)}  # what "auto" tries
_WIDER = 1  # a random great sphere of one dimension more is less often steep in some direction
_LIFT_ITERATIONS = 5  # its start is so good that three settle four digits
_PATIENCE = 40  # suggestions from one embedded space without a success


class Kind(NamedTuple):
    """Which model: that of the space itself, called "full", or one nested in it, called "nested:…"."""

    name: str = "full"
    nesting: Nesting | None = None


class Arm(ABC):
    """Who makes a suggestion: a model, and the section of the space in which it is believed.

    A ``scout`` looks where neither a learned subspace nor a local minimum misleads it.
    """

    name: str  # what memories and reports call it
    kind: Kind
    scout: bool = False

    @abstractmethod
    def section(self, space: Space, model: Surrogate | None, runs: Runs) -> Section:
        """What the arm searches, given its model of each run; None if it said that it needs none."""

    def needs_model(self, noisy: bool) -> bool:
        """Whether its model has to be fitted to the data before the section can be laid."""
        return True


class Place(NamedTuple):
    """Where arms are wanted: a space, a size of the spaces nested in it, and the arms there are already."""

    space: Space
    size: Any
    nesting: Nesting
    arms: tuple[Arm, ...]
    priors: bool

    @property
    def nested(self) -> Kind:
        """The nested model of this size; the full one where nothing is left to nest."""
        whole = self.nesting.ambient == self.nesting.latent
        return Kind() if whole else Kind(f"nested:{_words(self.size)}", self.nesting)


@dataclass(frozen=True)
class Full(Arm):
    """The full model, everywhere on the space: GaBO."""

    name: str = "full"
    kind: Kind = Kind()

    def section(self, space: Space, model: Surrogate | None, runs: Runs) -> Section:
        assert model is not None
        return Section(space, same, same, runs.x, model, runs, model.seen(runs.pending))


@dataclass(frozen=True)
class Lifted(Arm):
    """A nested model on its latent space, and one of ``LIFTS`` back to the space: the paper's HD-GaBO."""

    name: str
    kind: Kind
    lift: str

    @classmethod
    def on(cls, lift: str, place: Place) -> list[Arm]:
        """One, where something is nested."""
        kind = place.nested
        return [] if kind.nesting is None else [cls(f"{kind.name}:{lift}", kind, lift)]

    def section(self, space: Space, model: Surrogate | None, runs: Runs) -> Section:
        assert model is not None
        lift, latent = LIFTS[self.lift](model.mapping, runs), model.mapping.latent
        return Section(latent, lift, same, model.latent_points, model, runs, model.seen(runs.pending))


@dataclass(frozen=True)
class Embedded(Arm):
    """The full model on a random great sphere, which is kept while it is of any use.

    A function of Wᵀx/|Wᵀx| takes all its values on almost every great sphere of the latent dimension or more.
    """

    name: str
    nesting: Nesting
    kind: Kind = Kind()
    scout: bool = True

    @classmethod
    def on(cls, place: Place) -> list[Arm]:
        """One, where a sphere a little wider than the latent one is smaller than the space, and new."""
        wide = Nesting(place.space, smaller(place.space, _wider(place.space, place.size)))
        known = any(isinstance(arm, Embedded) and arm.nesting == wide for arm in place.arms)
        learned = any(arm.kind.nesting == wide for arm in place.arms)
        name = f"full:embedded:{_words(place.size)}"
        return [] if wide.ambient == wide.latent or known or learned else [cls(name, wide)]

    def section(self, space: Space, model: Surrogate | None, runs: Runs) -> Section:
        assert model is not None
        known = [self._known(runs, run) for run in range(len(runs.rngs))]
        basis = self.nesting.bases.random_each(1, runs.rngs)[0]
        for run, memory in enumerate(known):
            if memory is not None:
                basis[run] = torch.tensor(memory.columns, dtype=basis.dtype).reshape(basis[run].shape)
        memories = [self._new(basis[run]) if m is None else Memory(frame=m.frame) for run, m in enumerate(known)]
        through, axes = self.nesting.at(basis), len(space.point_shape)
        see = lambda z: through.lift(z.unflatten(-1, through.latent.point_shape)).flatten(-axes)
        starts, pending = through.project(runs.x), model.seen(runs.pending)
        return Section(through.latent, through.lift, see, starts, model, runs, pending, None, memories)

    def _new(self, basis: Tensor) -> Memory:
        """A space is named by a checksum of its entries, which the first memory of it holds."""
        columns = tuple(basis.flatten().tolist())
        return Memory(frame=zlib.crc32(repr(columns).encode()), columns=columns)

    def _known(self, runs: Runs, run: int) -> Memory | None:
        """The memory that holds the space in which a run goes on, unless it is exhausted."""
        told, asked = runs.record.memories[run], runs.asked[run] if runs.asked else []
        under_way = [memory.frame for memory in asked if memory.arm == self.name]
        before = [memory.frame for memory in told if memory.arm == self.name]
        if not under_way and (not before or exhausted(self.name, told, runs.record.scores[run])):
            return None
        wanted = (under_way or before)[-1]
        return next((m for m in (*told, *asked) if m.columns and m.frame == wanted and wanted is not None), None)


def exhausted(arm: str, memories: list[Memory], y: list[float]) -> bool:
    """Whether an embedded space has been searched for long without a success: time for another one."""
    pairs = zip(memories, successes(y), strict=True)
    recent = [(memory.frame, success) for memory, success in pairs if memory.arm == arm][-_PATIENCE:]
    return len(recent) == _PATIENCE and not any(success or frame != recent[-1][0] for frame, success in recent)


@dataclass(frozen=True)
class Local(Arm):
    """Trust regions one after the other, mostly around other points than the best: ``strategies.local``."""

    name: str
    kind: Kind
    priors: bool
    scout: bool = True

    @classmethod
    def on(cls, place: Place) -> list[Arm]:
        """One where there are no embedded spaces; and one around the best point where nothing is nested."""
        if any(isinstance(arm, Embedded) for arm in place.arms):
            return []
        kind, priors = place.nested, place.priors
        near = [] if kind.nesting is not None else [Near(f"{kind.name}:near", kind, priors)]
        return [cls(f"{kind.name}:local", kind, priors), *near]

    def needs_model(self, noisy: bool) -> bool:
        return noisy or self.kind.nesting is not None

    def section(self, space: Space, model: Surrogate | None, runs: Runs) -> Section:
        mapping, runs = Identity(space) if model is None else model.mapping, runs.record
        z = mapping.project(runs.x)
        found = regions(self.name, mapping.latent, z, runs)
        starts = [runs.index(run, region.start) for run, region in enumerate(found)]
        return regional(mapping, z, runs, found, self.priors, [Memory(start=start) for start in starts])


@dataclass(frozen=True)
class Near(Arm):
    """A trust region around the best point."""

    name: str
    kind: Kind
    priors: bool

    def needs_model(self, noisy: bool) -> bool:
        return noisy

    def section(self, space: Space, model: Surrogate | None, runs: Runs) -> Section:
        found = regions_at_best(self.name, runs.record)
        return regional(Identity(space), runs.record.x, runs.record, found, self.priors)


def regional(
    mapping: NestedMapping, z: Tensor, runs: Runs, found: list[Region], priors: bool, memories: Sequence[Memory] = ()
) -> Section:
    """The part of a latent space around the centre of each run's region, with a model of the points around it."""
    latent, each = mapping.latent, torch.arange(len(z), device=z.device)
    centre = torch.tensor([region.centre for region in found], device=z.device)
    radii = torch.tensor([region.radius for region in found], dtype=z.dtype, device=z.device)
    at, near = z[each, centre], runs.x[each, centre].unsqueeze(1)
    ball = Ball(latent, at, latent.typical_distance * radii)
    model, told = local_model(latent, z, at, runs, priors)
    pending = model.seen(mapping.project(runs.pending))
    return Section(latent, lambda p: mapping.lift_near(p, near), same, z, model, told, pending, ball, memories)


def fitted(mapping: NestedMapping, runs: Runs) -> Map:
    """The lift nearest to all evaluated points, as in the paper."""
    return mapping.fit_lift(runs.x, max_iterations=_LIFT_ITERATIONS).lift


def incumbent(mapping: NestedMapping, runs: Runs) -> Map:
    """The lift near the best point."""
    best = runs.best
    return lambda z: mapping.lift_near(z, best)


def random(mapping: NestedMapping, runs: Runs) -> Map:
    """The lift near a random point of the space, which is drawn when it is first needed."""
    anywhere = cache(lambda: torch.stack([mapping.ambient.random(1, rng=rng) for rng in runs.rngs]))
    return lambda z: mapping.lift_near(z, anywhere())


LIFTS: dict[str, Callable[[NestedMapping, Runs], Map]] = {"fitted": fitted, "incumbent": incumbent, "random": random}

# What the name of an arm stands for at a place; in this order, whatever order they are named in.
Maker = Callable[[Place], list[Arm]]
ARMS: dict[str, Maker] = {
    "full": lambda place: [],  # once on every space, see arms_on
    **{lift: partial(Lifted.on, lift) for lift in LIFTS},
    "embedded": Embedded.on,
    "local": Local.on,
}
_LAST = ("embedded", "local")


def arms_on(
    space: Space, latent_dim: Any, names: tuple[str, ...], *, logarithmic: bool = False, priors: bool = True
) -> tuple[Arm, ...]:
    """The arms of these names on a space; the full model alone where nothing is nested in it."""
    ordered = sorted(names, key=lambda name: _LAST.index(name) if name in _LAST else -1)
    makers = tuple(ARMS[name] for name in ordered)  # as they are registered now
    return _arms_on(space, latent_dim, "full" in ordered, makers, logarithmic, priors)


@cache
def _arms_on(
    space: Space, latent_dim: Any, full: bool, makers: tuple[Maker, ...], logarithmic: bool, priors: bool
) -> tuple[Arm, ...]:
    arms: list[Arm] = [Full()] if full else []
    for size in _sizes(space) if latent_dim == "auto" else [latent_dim]:
        nesting = Nesting(space, smaller(space, size), logarithmic)
        for make in makers:
            arms += make(Place(space, size, nesting, tuple(arms), priors))
    arms.sort(key=lambda arm: isinstance(arm, Local | Near))  # local searches follow the arms of all sizes
    return tuple(arms) or (Full(),)


def _sizes(space: Space) -> list[Any]:
    """The latent dimensions worth trying on a space; none where it has no nested spaces, or is small itself."""
    if isinstance(space, Product):
        each = [_sizes(factor) for factor in space.factors]
        count = max(map(len, each))
        return [tuple(sizes[min(k, len(sizes) - 1)] if sizes else None for sizes in each) for k in range(count)]
    return [size for size in _SIZES.get(type(space), ()) if size < space.n]  # type: ignore[attr-defined]


def _wider(space: Space, size: Any) -> Any:
    """The size of an embedded space: spheres only, since small matrices inside large ones reach too little of them."""
    if isinstance(space, Product) and size is not None:
        return tuple(map(_wider, space.factors, size))
    return min(size + _WIDER, space.n) if isinstance(space, Sphere) and size is not None else None


def _words(size: Any) -> str:
    return ",".join("none" if d is None else str(d) for d in (size if isinstance(size, tuple) else (size,)))


def check_latent_dim(latent_dim: Any) -> None:
    """Refuse what cannot be a latent dimension of any space."""
    if latent_dim == "auto":
        return
    if isinstance(latent_dim, tuple) and latent_dim and "auto" not in latent_dim:
        for size in latent_dim:
            if size is not None:
                check_latent_dim(size)
        return
    if isinstance(latent_dim, str | tuple):
        raise ArgumentError(f'latent_dim is a whole number, "auto", or a tuple for a product, got {shown(latent_dim)}.')
    check_size("latent_dim", latent_dim)
