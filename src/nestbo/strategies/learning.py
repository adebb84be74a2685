"""GaBO and HD-GaBO with a metric that is learned, great spheres that the data span, and basins that are closed.

Three ideas. A model may learn a metric of what it sees, as far as its predictions, made before the answers were known,
are better than those of the isotropic one. On a sphere of many dimensions the search uses the great sphere that the
first evaluations span: a function of Wᵀx/|Wᵀx| takes all its values there. And a basin in which the search has come to
an end is closed, so that the next searches look elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from nestbo.acquisition import OPTIMISERS
from nestbo.errors import ArgumentError
from nestbo.kernels import kernel
from nestbo.manifolds import SPD, Space, Sphere
from nestbo.memory import Fit, Memory
from nestbo.nested import NestedMapping, Nesting, smaller
from nestbo.outputs import OUTPUTS, HalfLog, Outputs, Standardise
from nestbo.search import Runs, Section, constraint_models, farthest, rule_fits, rule_name, same, search, unrepeated
from nestbo.search.runs import refits, together
from nestbo.strategies.aligned import along_axes, commuting
from nestbo.strategies.base import alike
from nestbo.strategies.closing import close_basins
from nestbo.strategies.competing import Kind, forecast, kinds_on, scores
from nestbo.strategies.great_spheres import BESIDE, Outlook, beside, outlook, spans
from nestbo.strategies.options import Modelling
from nestbo.surrogate import CRITERIA, Description, Effort, Surrogate, fit

EXTRINSIC = ("gaussian", "matern12", "matern32", "matern52")  # kernels of a straight distance
_WHOLE_MATRICES = 6  # rows up to which matrices are searched as a whole, unless a latent dimension is told
_NESTED = 3  # rows of the matrices that are nested in large ones
_REFINE = 5  # every so many suggestions one refines the best point of all
_SELDOM = 3  # times two: evaluations after which models that do not lead are fitted again


@dataclass(frozen=True)
class Learner(Modelling):
    """The settings of a method that learns a metric, and the method."""

    latent_dim: Any
    metric: str

    def propose(self, space: Space, runs: Runs) -> tuple[Tensor, list[Memory]]:
        """One point for each run, with a memory."""
        x, memories = torch.empty_like(runs.x[:, 0]), [Memory() for _ in runs.rngs]
        for span, which in alike(spans(space, self.latent_dim, runs)).items():
            part = runs.take(which)
            if span.step and isinstance(space, Sphere):
                x[which], found = beside(space, span, part), [Memory(arm=BESIDE) for _ in which]
            else:
                x[which], found = self._propose(space, outlook(space, span.size, part), part)
            for run, memory in zip(which, found, strict=True):
                memories[run] = memory
        return x, memories

    def _propose(self, space: Space, look: Outlook, runs: Runs) -> tuple[Tensor, list[Memory]]:
        """The same for runs that search alike."""
        there = look.seen(runs)
        refining = runs.count % _REFINE == 0
        outputs = self._outputs(bent=(runs.count % 2 == 1 or refining) and not runs.noisy)
        kinds = self._kinds(space, look, runs.noisy)
        chosen = [kinds[k] for k in scores(runs, kinds).argmax(1).tolist()]
        models, fitted = self._fit(look.place, kinds, there, outputs, set(chosen))
        rules = constraint_models(kernel(self.kernel, space), runs)
        x, memories = torch.empty_like(runs.x[:, 0]), [Memory() for _ in runs.rngs]
        for kind, which in alike(chosen).items():
            part, model = there.take(which), models[kind].take(which)
            domain = look.place if kind.nesting is None else model.mapping.latent  # with what is fixed today
            x[which], found = self._search(domain, model, look.mapping.of_run(which), part, rules, refining)
            noise = model.noise_near_best if runs.noisy else [None] * len(which)
            for run, memory, variance in zip(which, found, noise, strict=True):
                memories[run] = replace(memory, arm=kind.name, noise=variance)
        x = space.project(x)
        fits = {_fit_name(kind, outputs): models[kind].fits for kind in fitted}
        memories = self._remembered(look, models, rules, fits, x, memories)
        return unrepeated(space, x, memories, runs, lambda: farthest(space, space, same, rules, runs))

    def _outputs(self, bent: bool = False) -> type[Outputs]:
        """How values are transformed: as told, or with logarithms of the worse half when these have their turn."""
        if self.outputs != "auto":
            return OUTPUTS[self.outputs]
        return HalfLog if bent else Standardise

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
        if self.latent_dim not in (None, "auto"):
            smaller(space, self.latent_dim)

    def models(self, space: Space, runs: Runs) -> dict[str, Surrogate]:
        """The models behind the next suggestion, the one that has predicted best first."""
        look = outlook(space, spans(space, self.latent_dim, runs)[0].size, runs)
        kinds = self._kinds(space, look, runs.noisy)
        found, _ = self._fit(look.place, kinds, look.seen(runs), self._outputs(), set(kinds))
        leading = scores(runs, kinds)[0].argsort(descending=True, stable=True).tolist()
        ways = [look.mapping if kinds[k].nesting is None else found[kinds[k]].mapping for k in leading]
        named = {kinds[k].name: replace(found[kinds[k]], mapping=way) for k, way in zip(leading, ways, strict=True)}
        rules = constraint_models(kernel(self.kernel, space), runs)
        return named | {rule_name(k): rule for k, rule in enumerate(rules)}

    def names(self, space: Space, runs: Runs) -> list[str]:
        """Those of the models that compete in the first run, once one has made a suggestion; earlier ones come last."""
        before = [memory.arm for memory in runs.record.memories[0] if memory.arm is not None]
        if not before:
            return []
        look = outlook(space, spans(space, self.latent_dim, runs)[0].size, runs)
        now = [kind.name for kind in self._kinds(space, look, runs.noisy)]
        return list(dict.fromkeys([*now, *before]))

    def _kinds(self, space: Space, look: Outlook, noisy: bool) -> tuple[Kind, ...]:
        """The models that compete.

        On a great sphere and on large matrices one model is alone, because competition was measured to cost much there
        (docs/hdgabo.md). Noise hides the small matrices that are nested in large ones: under noise a model of the whole
        matrix competes with the nested one.
        """
        if look.place != space:
            return kinds_on(look.place, look.name, "full")
        nested = self._nested(space)
        if nested is None:
            return kinds_on(space, look.name, self.metric)
        return (Kind(f"{look.name}:0"), nested) if noisy else (nested,)

    def _nested(self, space: Space) -> Kind | None:
        """The model of small matrices nested in large ones; spheres have a frame."""
        if self.latent_dim is None or not isinstance(space, SPD):
            return None
        usual = _NESTED if space.n > _WHOLE_MATRICES else space.n
        size = usual if self.latent_dim == "auto" else self.latent_dim
        return Kind(f"nested:{size}:1", Nesting(space, smaller(space, size)), 1.0) if size < space.n else None

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
        return Description(on, kind.nesting, outputs.fit, self.priors, CRITERIA[self.criterion], metric)

    def _search(
        self,
        domain: Space,
        model: Surrogate,
        way: NestedMapping,
        there: Runs,
        rules: list[Surrogate],
        refining: bool,
    ) -> tuple[Tensor, list[Memory]]:
        """Outside of closed basins, or, refining, anywhere."""
        if there.noisy:
            there = replace(there, posterior=model.gp.moments(model.gp.x)[0])
        basins, memories = (None, [Memory() for _ in there.rngs]) if refining else close_basins(model, there)
        ranking = there.ranking if basins is None else torch.where(basins.free, there.ranking, torch.inf)
        each = torch.arange(len(there.x), device=there.x.device)
        near = there.x[each, ranking.argmin(1)].unsqueeze(1)
        axes = len(model.gp.kernel.space.point_shape)
        section = Section(
            domain,
            lambda z: way.lift(model.mapping.lift_near(z, near)),
            lambda z: model.see(z.unflatten(-1, domain.point_shape)).flatten(-axes),
            model.mapping.project(there.x),
            model,
            there,
            model.seen(there.pending),
            basins=basins,
        )
        if along_axes(domain, there):
            section = commuting(section, near)
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
    """Fits to bent values and to values as they are go on apart from each other."""
    return f"{kind.name}:half-log" if outputs is HalfLog else kind.name
