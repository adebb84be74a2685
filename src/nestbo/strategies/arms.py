"""Arms: a model of the objective, with a way back to the space; and how the next one is chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nestbo.errors import ArgumentError
from nestbo.manifolds import SPD, Manifold, Product, Sphere
from nestbo.manifolds.base import check_size
from nestbo.nested import NestedMapping, Nesting, smaller
from nestbo.strategies.base import Standing, successes
from nestbo.strategies.runs import Runs, latest

FULL, EMBEDDED, LOCAL, NEAR = "full", "embedded", "local", "near"
WORTH = "worth"  # in the notes, with the name of a nested model: that of its basis, compared with the full model
_SIZES: dict[type[Manifold], tuple[int, ...]] = {Sphere: (2, 5), SPD: (2, 3)}  # what "auto" tries
_WIDER = 1  # a random great sphere of one dimension more is less often steep in some direction
_DECAY = 0.93  # of the memory of an arm's earlier suggestions, at each new one
_LIFT_ITERATIONS = 5  # its start is so good that three settle four digits
_PATIENCE = 40  # suggestions from one embedded space without a success
_LUCK = 0.15  # a usual chance of success
_WHILE, _HARDLY = 25, 0.003  # in so many evaluations it should move by so much of its distance to the median
_SELDOM, _OFTEN = 8, 2  # one of so many suggestions is a scout's


@dataclass(frozen=True)
class Arm:
    """Who makes a suggestion: a model, and how its latent space leads back to the space.

    ``model`` is "full" or "nested:…". A nested model has a ``lift`` from ``LIFTS``. The full model searches the space
    itself, or, where there is a ``nesting``, a small space embedded in it.
    """

    model: str
    nesting: Nesting | None = None
    lift: str = ""

    @property
    def name(self) -> str:
        """What notes and reports call it."""
        return f"{self.model}:{self.lift}" if self.lift else self.model

    @property
    def domain(self) -> str:
        """What is searched; arms that differ in the lift only search the same."""
        return self.name if self.model == FULL or self.lift == LOCAL else self.model


Lift = Callable[[Tensor], Tensor]  # from latent points (…, runs, 1, *point) to points of the space


def fitted(mapping: NestedMapping, runs: Runs) -> Lift:
    """The lift nearest to all evaluated points, as in the paper."""
    return mapping.fit_lift(runs.x, max_iterations=_LIFT_ITERATIONS).lift


def incumbent(mapping: NestedMapping, runs: Runs) -> Lift:
    """The lift near the best point."""
    best = runs.best
    return lambda z: mapping.lift_near(z, best)


def random(mapping: NestedMapping, runs: Runs) -> Lift:
    """The lift near a random point of the space."""
    anywhere = torch.stack([mapping.ambient.random(1, rng=rng) for rng in runs.rngs])
    return lambda z: mapping.lift_near(z, anywhere)


LIFTS: dict[str, Callable[[NestedMapping, Runs], Lift]] = {
    "fitted": fitted,
    "incumbent": incumbent,
    "random": random,
}
ARMS = (FULL, *LIFTS, EMBEDDED, LOCAL)


def arms_on(space: Manifold, latent_dim: Any, names: Iterable[str], *, logarithmic: bool) -> list[Arm]:
    """The arms of these names on a space; the full model alone where nothing is nested in it."""
    sizes = _sizes(space) if latent_dim == "auto" else [latent_dim]
    nested = {size: Nesting(space, smaller(space, size), logarithmic) for size in sizes}
    arms = [Arm(FULL)] if FULL in names else []
    for size, nesting in nested.items():
        if nesting.ambient != nesting.latent:
            arms += [Arm(f"nested:{_words(size)}", nesting, name) for name in names if name in LIFTS]
        wide = Nesting(space, smaller(space, _wider(space, size)))
        new = wide.ambient != wide.latent and all(arm.nesting != wide for arm in arms)
        if EMBEDDED in names and new:
            arms.append(Arm(FULL, wide, f"{EMBEDDED}:{_words(size)}"))
    if LOCAL in names and not any(EMBEDDED in arm.lift for arm in arms):
        for size, nesting in nested.items():
            if nesting.ambient == nesting.latent:
                arms += [Arm(FULL, None, LOCAL), Arm(FULL, None, NEAR)]
            else:
                arms.append(Arm(f"nested:{_words(size)}", nesting, LOCAL))
    return arms or [Arm(FULL)]


def _sizes(space: Manifold) -> list[Any]:
    """The latent dimensions worth trying on a space; none where it has no nested spaces, or is small itself."""
    if isinstance(space, Product):
        each = [_sizes(factor) for factor in space.factors]
        count = max(map(len, each))
        return [tuple(sizes[min(k, len(sizes) - 1)] if sizes else None for sizes in each) for k in range(count)]
    return [size for size in _SIZES.get(type(space), ()) if size < space.n]  # type: ignore[attr-defined]


def _wider(space: Manifold, size: Any) -> Any:
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
        raise ArgumentError(f'latent_dim is a whole number, "auto", or a tuple for a product, got {latent_dim!r}.')
    check_size("latent_dim", latent_dim)


def record(names: Iterable[str], notes: list[dict[str, Any]], y: list[float]) -> dict[str, tuple[float, float]]:
    """Successes and failures of each arm in one run, the older ones counting less.

    A success lowers the best value by more than a thousandth of its distance to the median of the first values.
    """
    counts = dict.fromkeys(names, (0.0, 0.0))
    for note, success in zip(notes, successes(y), strict=True):
        if note.get("arm") in counts:
            good, bad = counts[note["arm"]]
            counts[note["arm"]] = _DECAY * good + success, _DECAY * bad + (not success)
    return counts


def exhausted(arm: str, notes: list[dict[str, Any]], y: list[float]) -> bool:
    """Whether an embedded space has been searched for long without a success: time for another one."""
    used = [(note[arm], success) for note, success in zip(notes, successes(y), strict=True) if note.get("arm") == arm]
    recent = used[-_PATIENCE:]
    return len(recent) == _PATIENCE and not any(success or basis != recent[-1][0] for basis, success in recent)


def standings(arms: list[Arm], notes: list[dict[str, Any]], y: list[float]) -> list[Standing]:
    """How the arms of one run have done so far."""
    names = [note["arm"] for note in notes if "arm" in note]
    return [
        Standing(name, names.count(name), names.count(name) / max(1, len(names)), (1 + good) / (2 + good + bad))
        for name, (good, bad) in record([arm.name for arm in arms], notes, y).items()
    ]


def by_success(
    names: list[str],
    notes: list[dict[str, Any]],
    y: list[float],
    rng: torch.Generator,
    pending: int = 0,
    constrained: bool = False,
) -> int:
    """Thompson sampling: each arm draws from Beta(1 + successes, 1 + failures), the largest draw suggests."""
    draw = np.random.default_rng(int(torch.randint(2**62, (), generator=rng, device=rng.device)))
    return int(np.argmax([draw.beta(1 + good, 1 + bad) for good, bad in record(names, notes, y).values()]))


def balanced(
    names: list[str],
    notes: list[dict[str, Any]],
    y: list[float],
    rng: torch.Generator,
    pending: int = 0,
    constrained: bool = False,
) -> int:
    """Mostly by success, now and then from a scout, whom neither a learned subspace nor a local minimum can mislead.

    Theirs is one of eight suggestions. Embedded spaces are scouts, and make every other one while no other arm has the
    usual luck. Where there are none, local searches are, and, next to nested models, the full one. They make all but
    one of eight while the best value stands still, one of them in each eight; and so does the full model alone where no
    nested model is worth its parameters. Where constraints are told, which need not be nested, it is no scout.
    """
    embedded, turn = [name for name in names if EMBEDDED in name], len(notes) + pending
    scouts = embedded or [name for name in names if LOCAL in name]
    learned = any(name.startswith("nested") and name not in scouts for name in names)
    if learned and not embedded and not constrained:
        scouts = [name for name in names if name in (FULL, *scouts)]
    rest = [name for name in names if name not in scouts]
    if not (scouts and rest):
        return by_success(names, notes, y, rng)
    luck = max((1 + good) / (2 + good + bad) for good, bad in record(rest, notes, y).values())
    period = _OFTEN if embedded and luck < _LUCK else _SELDOM
    seldom = turn % period == 1
    if FULL in scouts and not worthwhile(rest, notes):
        return names.index(rest[by_success(rest, notes, y, rng)] if seldom else FULL)
    if seldom if embedded or not stalled(y) else not seldom:
        return names.index(scouts[turn // period % len(scouts)])
    return names.index(rest[by_success(rest, notes, y, rng)])


def worthwhile(names: list[str], notes: list[dict[str, Any]]) -> bool:
    """Whether the model of one of these arms was worth its parameters when last compared with the full one, if ever."""
    found = [latest(notes, f"{WORTH}:{name.rsplit(':', 1)[0]}") for name in names]
    return any(worth is None or worth >= 0 for worth in found)


def stalled(y: list[float]) -> bool:
    """Whether the best value has hardly moved for a while, compared with how far most values are from it."""
    if len(y) <= _WHILE:
        return False
    best, before, usual = min(y), min(y[:-_WHILE]), sorted(y)[len(y) // 2]
    return before - best < _HARDLY * (usual - best)


def in_turn(
    names: list[str],
    notes: list[dict[str, Any]],
    y: list[float],
    rng: torch.Generator,
    pending: int = 0,
    constrained: bool = False,
) -> int:
    """One after the other."""
    return (len(notes) + pending) % len(names)


# From the names of the arms, the memories and values of a run, its generator, how many suggestions are under way, and
# whether constraints were told.
CHOICES: dict[str, Callable[[list[str], list[dict[str, Any]], list[float], torch.Generator, int, bool], int]] = {
    "balanced": balanced,
    "success": by_success,
    "in-turn": in_turn,
}
