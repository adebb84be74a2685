"""GaBO and HD-GaBO with a metric that is learned, great spheres that the data span, and basins that are closed.

Three ideas. A model may learn a metric of what it sees, as far as its predictions, made before the answers were known,
are better than those of the isotropic one. On a sphere of many dimensions the search lives on the great sphere that the
first evaluations span: a function of Wᵀx/|Wᵀx| takes all its values there. And a basin in which the search has come to
an end is closed, so that the next ones look elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nestbo.acquisition import OPTIMISERS
from nestbo.errors import ArgumentError
from nestbo.kernels import kernel
from nestbo.manifolds import SPD, Manifold, Space, Sphere, released
from nestbo.memory import Fit, Memory
from nestbo.nested import Identity, NestedMapping, NestedSphere, Nesting, smaller
from nestbo.outputs import Log, Outputs, Standardise
from nestbo.search import Runs, Section, constraint_models, farthest, rule_fits, rule_name, same, search, unrepeated
from nestbo.search.runs import latest, refits, successes, together
from nestbo.search.sections import Basins
from nestbo.surrogate import Description, Effort, Metric, Sight, Surrogate, fit

EXTRINSIC = ("gaussian", "matern12", "matern32", "matern52")  # kernels of a straight distance
STRENGTHS = (0.25, 1.0)  # of full metrics: one that hardly moves, one that may lose a direction
_WHOLE = 20  # dimensions up to which a sphere is searched as a whole
_WHOLE_MATRICES = 6  # rows up to which matrices are searched as a whole, unless a latent dimension is told
_STALL = 16  # suggestions without a success before steps beside a great sphere, twice as many after each in vain
_BESIDE = "beside"  # who makes these steps, in memories
_STEP = 0.05  # radians: far enough for a slope to show, near enough for it to be one
_NESTED = 3  # rows of the matrices that are nested in large ones
_SPANNED, _WIDER = 8, 3  # dimensions of the great sphere at first: so many, or so many more than the latent ones
_REFINE = 5  # every so many suggestions one refines the best point of all
_PATIENCE = 2  # suggestions for each dimension after which a basin that has not become noticeably better is closed
_LEAST, _MOST = 10, 30  # of these suggestions
_NOTICEABLE = 0.01  # of the distance from the median to the best value: what ends a stall, and keeps a basin open
_SELDOM = 3  # times two: evaluations after which models that do not lead are fitted again
_DECAY = 0.9  # of what earlier predictions count, at each later one
_WORST = -50.0  # nats that one prediction can cost
_EDGE = 0.5  # correlation with the centre at the edge of a closed basin, to the power of how many are closed


class Kind(NamedTuple):
    """Which model: on the space that is searched or on one nested in it, with a metric of some strength or none."""

    name: str
    nesting: Nesting | None = None
    strength: float = 0.0
    diagonal: bool = False

    def metric(self, place: Space) -> Metric | None:
        """The metric to be learned on what is searched; None for the isotropic model."""
        latent = place if self.nesting is None else self.nesting.latent
        return Metric(Sight(released(latent)), self.strength, self.diagonal) if self.strength else None


@cache
def kinds_on(place: Space, name: str, metric: str) -> tuple[Kind, ...]:
    """The models that compete on what is searched as a whole; the isotropic one first, which ties go to."""
    isotropic, diagonal = Kind(f"{name}:0"), Kind(f"{name}:diagonal", strength=1.0, diagonal=True)
    full = [Kind(f"{name}:{strength:g}", strength=strength) for strength in STRENGTHS]
    wanted = {"auto": (isotropic, diagonal, *full), "diagonal": (diagonal,), "full": full[-1:]}[metric]
    metrics = {kind: found for kind in wanted if (found := kind.metric(place)) is not None and found.size}
    if metric == "auto":  # where no coordinates are mixed, a full metric is a diagonal one
        metrics = {kind: found for kind, found in metrics.items() if kind.diagonal or found.mixed}
    return tuple(kind for kind in wanted if kind is isotropic or kind in metrics) or (isotropic,)


@dataclass(frozen=True)
class Outlook:
    """What is searched in each run: a place, a mapping from the space to it, and what names it in memories."""

    place: Space
    mapping: NestedMapping
    name: str
    memories: list[Memory]

    def seen(self, runs: Runs) -> Runs:
        """The runs as they are there; evaluations beside a great sphere are no data of it."""
        lies = self.mapping.ambient.dist(self.mapping.lift(self.mapping.project(runs.x)), runs.x) < _OFF
        if not lies.all():
            runs = runs.only(lies.all(0).nonzero().flatten().tolist())
        return replace(runs.at(self.mapping.project(runs.x), runs.y), pending=self.mapping.project(runs.pending))


_OFF = 1e-6  # radians from a great sphere


class Span(NamedTuple):
    """What a run searches: a great sphere of some dimension, or the space; and whether a step beside it is due."""

    size: int
    step: int = 0  # +1 or −1 along the first direction beside the great sphere, 0 for none


def spans(space: Space, latent_dim: Any, runs: Runs) -> list[Span]:
    """What each run searches next.

    A function that takes all its values on a small great sphere is found there. For any other the best point of the
    sphere is not the best of all: after a stall two small steps beside the sphere, there and back, tell. If one of them
    is a success, the dimension is doubled; if not, it grows by the direction that was tried.
    """
    if isinstance(latent_dim, int):
        smaller(space, latent_dim)  # refuses one that does not fit
    if latent_dim is None or not isinstance(space, Sphere) or space.n <= _WHOLE:
        return [Span(space.dim)] * len(runs.rngs)
    least = latent_dim + _WIDER if isinstance(latent_dim, int) else _SPANNED
    record, asked = runs.record, runs.asked or [[] for _ in runs.rngs]
    found = []
    for told, values, under_way in zip(record.memories, record.scores, asked, strict=True):
        stepping = any(memory.arm == _BESIDE for memory in under_way)
        span = grown(told, values, min(least, space.n), space.n)
        found.append(Span(span.size) if stepping else span)
    return found


def grown(memories: Sequence[Memory], values: Sequence[float], size: int, most: int) -> Span:
    """The dimension after all stalls, and the step that is due."""
    quiet = steps = vain = 0
    lucky = zip(memories, successes(values), successes(values, _NOTICEABLE), strict=True)
    for memory, success, much in lucky:
        if memory.arm == _BESIDE:
            steps += 1
            if success or steps == 2:
                vain = 0 if success else vain + 1
                size, quiet, steps = min(most, 2 * size if success else size + 1), 0, 0
        else:
            quiet = 0 if much else quiet + (memory.arm is not None)
    due = size < most and (steps == 1 or quiet >= _STALL * 2**vain)
    return Span(size, (1 if steps == 0 else -1) if due else 0)


def outlook(space: Space, size: int, runs: Runs) -> Outlook:
    """The great sphere of some dimension that the first evaluations of each run span, or the space itself."""
    if size == space.dim:
        return Outlook(space, Identity(space), "full", [Memory() for _ in runs.rngs])
    memories = [_spanned(runs, run, size) for run in range(len(runs.rngs))]
    frames = torch.stack([_frame(runs, run, memory, size) for run, memory in enumerate(memories)])
    new = [_known(runs, run) is None for run in range(len(memories))]
    said = [memory if fresh else Memory(frame=memory.frame) for memory, fresh in zip(memories, new, strict=True)]
    return Outlook(Sphere(size), NestedSphere(frames), f"spanned:{size}", said)


def beside(space: Manifold, span: Span, runs: Runs) -> Tensor:
    """A small step from the best point of each run along the next direction of its frame, there or back."""
    wider = span.size + 1
    frames = [_frame(runs, run, _spanned(runs, run, span.size), wider) for run in range(len(runs.rngs))]
    each = torch.arange(len(runs.x), device=runs.x.device)
    best = runs.x[each, runs.ranking.argmin(1)]
    return space.exp(best, span.step * _STEP * space.to_tangent(best, torch.stack(frames)[..., -1]))


def _known(runs: Runs, run: int) -> Memory | None:
    """The memory that says what spans the frame of a run."""
    asked = runs.asked[run] if runs.asked else []
    return next((memory for memory in (*runs.record.memories[run], *asked) if memory.span), None)


def _spanned(runs: Runs, run: int, size: int) -> Memory:
    known = _known(runs, run)
    if known is not None:
        return known
    seed = int(torch.randint(2**53, (), generator=runs.rngs[run], device=runs.rngs[run].device))
    count = min(size + 1, runs.y.shape[1])
    return Memory(frame=seed, span=tuple(runs.index(run, place) for place in range(count)))


def _frame(runs: Runs, run: int, memory: Memory, size: int) -> Tensor:
    """Orthonormal columns (D+1, size+1) of which the first span the first points."""
    record = runs.record
    place = {record.index(run, k): k for k in range(record.y.shape[1])}
    points = record.x[run, [place[index] for index in memory.span if index in place]]
    rng = torch.Generator().manual_seed(memory.frame or 0)
    all_columns = runs.x.shape[-1]  # are drawn, so that the first ones stay the same when the sphere grows
    drawn = torch.randn(all_columns, all_columns, generator=rng, dtype=torch.float64).to(runs.x)
    count = min(len(points), size + 1)
    return torch.linalg.qr(torch.cat([points[:count].mT, drawn[:, count : size + 1]], -1)).Q


def scores(runs: Runs, kinds: tuple[Kind, ...]) -> Tensor:
    """How well each model has predicted values before they were known, in nats, (runs, kinds)."""
    found = torch.zeros(len(runs.rngs), len(kinds), dtype=torch.float64)
    record = runs.record
    for run, (memories, values) in enumerate(zip(record.memories, record.y.tolist(), strict=True)):
        for memory, y in zip(memories, values, strict=True):
            if memory.forecast:
                news = [_log_density(memory.forecast.get(kind.name), y) for kind in kinds]
                found[run] = _DECAY * found[run] + torch.tensor(news, dtype=torch.float64)
    return found


def _log_density(forecast: tuple[float, float, float] | None, y: float) -> float:
    """Of a normal distribution with a deviation on each side of its middle, up to a constant."""
    if forecast is None:
        return 0.0
    low, middle, high = forecast
    side = max(high - middle if y > middle else middle - low, 1e-300)
    return max(_WORST, -(((y - middle) / side) ** 2) / 2 - math.log(max(high - low, 1e-300)))


def close_basins(model: Surrogate, runs: Runs) -> tuple[Basins | None, list[Memory]]:
    """The basins that are closed now, in which the search of each run has come to an end, and what says so."""
    gp, places, patience = model.gp, [], min(max(_LEAST, _PATIENCE * model.mapping.latent.dim), _MOST)
    correlation = gp.kernel.correlation(gp.x, gp.x, gp.lengthscale).cpu()
    ranking, memories, free = runs.ranking.tolist(), [], []
    for run in range(len(ranking)):
        closed, best, open_places = _closed(correlation[run], ranking[run], runs, run, patience)
        places.append(closed)
        free.append(open_places)
        memories.append(Memory(closed=tuple(runs.index(run, k) for k in closed), best=runs.index(run, best)))
    if not any(places):
        return None, memories
    width = max(map(len, places))
    padded = torch.tensor([[*closed, *[0] * (width - len(closed))] for closed in places], device=runs.x.device)
    real = torch.tensor([[k < len(closed) for k in range(width)] for closed in places], device=runs.x.device)
    each = torch.arange(len(places), device=runs.x.device).unsqueeze(-1)
    counts = torch.tensor([max(1, len(closed)) for closed in places], device=runs.x.device)
    return Basins(
        model, gp.x[each, padded], real, _EDGE ** counts.double(), torch.stack(free).to(runs.x.device)
    ), memories


def _closed(correlation: Tensor, y: list[float], runs: Runs, run: int, patience: int) -> tuple[list[int], int, Tensor]:
    """Places of the centres of closed basins, of the best evaluation outside, and which evaluations are outside."""
    place = {runs.index(run, k): k for k in range(len(y))}
    memories = runs.record.memories[run]
    last = latest(memories, lambda memory: memory if memory.best is not None else None)
    closed = [] if last is None else [place[index] for index in last.closed if index in place]
    free = _outside(correlation, closed)
    best = _best(free, y)
    before = None if last is None or last.best not in place else place[last.best]
    enough = _NOTICEABLE * (sorted(y)[len(y) // 2] - min(y))
    if before is None or y[best] < y[before] - enough:
        return closed, best, free
    waited = sum(memory.best == runs.index(run, before) for memory in memories)
    if waited < patience:
        return closed, before, free
    closed = [*closed, best]
    free = _outside(correlation, closed)
    if not free.any():
        closed, free = [], torch.ones_like(free)
    return closed, _best(free, y), free


def _outside(correlation: Tensor, closed: list[int]) -> Tensor:
    """Which evaluations are outside; basins become wider with each that is closed, until nothing is left outside."""
    if not closed:
        return torch.ones(len(correlation), dtype=torch.bool)
    return (correlation[closed] < _EDGE ** len(closed)).all(0)


def _best(free: Tensor, y: list[float]) -> int:
    places = free.nonzero().flatten().tolist() or range(len(y))
    return min(places, key=y.__getitem__)


@dataclass(frozen=True)
class Learner:
    """The settings of a method that learns a metric, and the method."""

    kernel: str
    acquisition: str
    optimiser: str
    priors: bool
    latent_dim: Any
    metric: str

    def propose(self, space: Space, runs: Runs) -> tuple[Tensor, list[Memory]]:
        """One point for each run, with a memory."""
        each = spans(space, self.latent_dim, runs)
        x, memories = torch.empty_like(runs.x[:, 0]), [Memory() for _ in runs.rngs]
        for span in dict.fromkeys(each):
            which = [run for run, own in enumerate(each) if own == span]
            part = runs.take(which)
            if span.step and isinstance(space, Sphere):
                x[which], found = beside(space, span, part), [Memory(arm=_BESIDE) for _ in which]
            else:
                x[which], found = self._propose(space, outlook(space, span.size, part), part)
            for run, memory in zip(which, found, strict=True):
                memories[run] = memory
        return x, memories

    def _propose(self, space: Space, look: Outlook, runs: Runs) -> tuple[Tensor, list[Memory]]:
        """The same for runs that search alike."""
        there = look.seen(runs)
        refining = runs.count % _REFINE == 0
        outputs = Log if runs.count % 2 and not refining and not runs.noisy else Standardise
        kinds = self._kinds(space, look)
        chosen = scores(runs, kinds).argmax(1).tolist()
        leading = {kinds[k] for k in chosen}
        models, fitted = self._fit(look.place, kinds, there, outputs, leading)
        rules = constraint_models(kernel(self.kernel, space), runs)
        x, memories = torch.empty_like(runs.x[:, 0]), [Memory() for _ in runs.rngs]
        for k in dict.fromkeys(chosen):
            which = [run for run, own in enumerate(chosen) if own == k]
            part, model = there.take(which), models[kinds[k]].take(which)
            x[which], found = self._search(model, look.mapping.of_run(which), part, rules, refining)
            noise = model.noise_near_best if runs.noisy else [None] * len(which)
            for run, memory, variance in zip(which, found, noise, strict=True):
                memories[run] = replace(memory, arm=kinds[k].name, noise=variance)
        x = space.project(x)
        fits = {_fit_name(kind, outputs): models[kind].fits for kind in fitted}
        memories = self._remembered(look, models, rules, fits, x, memories)
        return unrepeated(space, x, memories, runs, lambda: farthest(space, space, same, rules, runs))

    def serves(self, space: Space) -> bool:
        """Whether the latent dimension means something here: a sphere or matrices have one."""
        return self.latent_dim in (None, "auto") or isinstance(space, Sphere | SPD)

    def check(self, space: Space) -> None:
        """Refuse what no metric can be learned with."""
        on = kernel(self.kernel, space)
        if self.kernel not in EXTRINSIC:
            raise ArgumentError(f"A metric is learned with the kernels {', '.join(EXTRINSIC)}, got {self.kernel!r}.")
        if not self.serves(on.space):
            raise ArgumentError(
                f'With metric="{self.metric}", latent_dim is for a Sphere or SPD, got {space}. Leave it out.'
            )
        if isinstance(self.latent_dim, int):
            smaller(space, self.latent_dim)

    def models(self, space: Space, runs: Runs) -> dict[str, Surrogate]:
        """The models behind the next suggestion, the one that has predicted best first."""
        look = outlook(space, spans(space, self.latent_dim, runs)[0].size, runs)
        kinds = self._kinds(space, look)
        found, _ = self._fit(look.place, kinds, look.seen(runs), Standardise, set(kinds))
        leading = scores(runs, kinds)[0].argsort(descending=True, stable=True).tolist()
        ways = [look.mapping if kinds[k].nesting is None else found[kinds[k]].mapping for k in leading]
        named = {kinds[k].name: replace(found[kinds[k]], mapping=way) for k, way in zip(leading, ways, strict=True)}
        rules = constraint_models(kernel(self.kernel, space), runs)
        return named | {rule_name(k): rule for k, rule in enumerate(rules)}

    def names(self, space: Space, runs: Runs) -> list[str]:
        """Those of the models that compete in the first run now, and of those that have made suggestions before."""
        look = outlook(space, spans(space, self.latent_dim, runs)[0].size, runs)
        now = [kind.name for kind in self._kinds(space, look)]
        before = [memory.arm for memory in runs.record.memories[0] if memory.arm is not None]
        return list(dict.fromkeys([*now, *before]))

    def _kinds(self, space: Space, look: Outlook) -> tuple[Kind, ...]:
        """The models that compete: on large matrices a nested one, too; on a great sphere, where few directions matter,
        one alone: competition was measured to cost a factor of 3 there.
        """
        if look.place != space:
            return kinds_on(look.place, look.name, "full")
        nested = [Kind(f"nested:{size}:1", Nesting(space, smaller(space, size)), 1.0) for size in self._sizes(space)]
        return tuple(nested) or kinds_on(space, look.name, self.metric)

    def _sizes(self, space: Space) -> tuple[Any, ...]:
        """Sizes of spaces nested in the space: of large matrices only, spheres have a frame."""
        if self.latent_dim is None or not isinstance(space, SPD):
            return ()
        if self.latent_dim != "auto":
            return (self.latent_dim,) if self.latent_dim < space.n else ()
        return (_NESTED,) if space.n > _WHOLE_MATRICES else ()

    def _fit(
        self, place: Space, kinds: tuple[Kind, ...], there: Runs, outputs: type[Outputs], leading: set[Kind]
    ) -> tuple[dict[Kind, Surrogate], set[Kind]]:
        """Every model of the data, and which were fitted: those that do not lead are now and then.

        Gradients of the full model are a guess of a subspace that is looked for anew.
        """
        models: dict[Kind, Surrogate] = {}
        fitted: set[Kind] = set()
        resting = there.count // 2 % _SELDOM != 0  # both maps of outputs have their turn
        for kind in kinds:
            previous, effort = together(refits(there, _fit_name(kind, outputs)))
            if resting and kind not in leading and previous is not None:
                effort = Effort.NONE
            guess = None
            if kind.nesting is not None and effort is Effort.ANEW:
                full = fit(self._description(place, Kind("full:0"), outputs), there.data)
                guess = kind.nesting.active(full.gradients(there.x))
            models[kind] = fit(self._description(place, kind, outputs), there.data, previous, effort, guess=guess)
            fitted |= {kind} if effort is not Effort.NONE else set()
        return models, fitted

    def _description(self, place: Space, kind: Kind, outputs: type[Outputs]) -> Description:
        latent, metric = place if kind.nesting is None else kind.nesting.latent, kind.metric(place)
        on = kernel(self.kernel, latent if metric is None else metric.sight.seen)
        return Description(on, kind.nesting, outputs.fit, self.priors, metric=metric)

    def _search(
        self, model: Surrogate, way: NestedMapping, there: Runs, rules: list[Surrogate], refining: bool
    ) -> tuple[Tensor, list[Memory]]:
        """Outside of closed basins, or, refining, anywhere."""
        if there.noisy:
            there = replace(there, posterior=model.gp.moments(model.gp.x)[0])
        basins, memories = (None, [Memory() for _ in there.rngs]) if refining else close_basins(model, there)
        ranking = there.ranking if basins is None else torch.where(basins.free, there.ranking, torch.inf)
        each = torch.arange(len(there.x), device=there.x.device)
        near = there.x[each, ranking.argmin(1)].unsqueeze(1)
        latent, axes = model.mapping.latent, len(model.gp.kernel.space.point_shape)
        section = Section(
            latent,
            lambda z: way.lift(model.mapping.lift_near(z, near)),
            lambda z: model.see(z.unflatten(-1, latent.point_shape)).flatten(-axes),
            model.mapping.project(there.x),
            model,
            there,
            model.seen(there.pending),
            basins=basins,
        )
        return search(section, rules, self.acquisition, OPTIMISERS[self.optimiser]), memories

    def _remembered(
        self,
        look: Outlook,
        models: dict[Kind, Surrogate],
        rules: list[Surrogate],
        fits: dict[str, tuple[Fit, ...]],
        x: Tensor,
        memories: list[Memory],
    ) -> list[Memory]:
        """Memories with the frames, the fits and what every model predicts for the suggestion."""
        forecasts = {kind.name: forecast(model, look.mapping.project(x.unsqueeze(1))) for kind, model in models.items()}
        found = []
        for run, memory in enumerate(memories):
            new = {name: each[run] for name, each in fits.items()}
            said = {name: rows[run] for name, rows in forecasts.items() if all(map(math.isfinite, rows[run]))}
            own = look.memories[run]
            more: dict[str, Any] = {"fits": new | rule_fits(rules, run), "frame": own.frame, "span": own.span}
            found.append(replace(memory, **more, forecast=said if len(said) == len(models) else {}))
        return found


def _fit_name(kind: Kind, outputs: type[Outputs]) -> str:
    """Fits to logarithms and to values as they are go on apart from each other."""
    return f"{kind.name}:log" if outputs is Log else kind.name


def forecast(model: Surrogate, x: Tensor) -> list[tuple[float, float, float]]:
    """For one point x (runs, 1, *point) of each run: the value that a model expects, one deviation below and above."""
    mean, variance = model.gp.moments(model.see(model.mapping.project(x)))
    deviation = (variance + (model.gp.scale * model.gp.noise).unsqueeze(-1)).sqrt()
    each = [model.outputs.inverse(mean + side * deviation).squeeze(-1).tolist() for side in (-1, 0, 1)]
    return list(zip(*each, strict=True))
