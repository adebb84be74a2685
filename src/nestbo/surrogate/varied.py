"""What a fit varies: the parameters of the kernel, and with a nesting the subspace as well (paper, section 3.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from nestbo.kernels import ManifoldKernel
from nestbo.manifolds import Euclidean, Manifold, ManifoldProduct
from nestbo.manifolds.euclidean import Cuboid
from nestbo.memory import Fit
from nestbo.nested import Identity, NestedMapping, Nesting
from nestbo.surrogate.description import Description
from nestbo.surrogate.likelihood import NOISE_PRIOR
from nestbo.surrogate.metric import Learned, Metric

NOISE = (1e-6, 1.0)  # the variance of noise relative to that of the signal
MOST_NOISE = 1e3  # of known noise; more would contradict the values
_STARTS = 4
_RANDOM_STARTS = 3  # subspaces
_PENALTY = 10.0  # per squared unit beyond the bounds of a log parameter
_NEARBY = 0.3  # of the deviation of the prior: entries of a metric that a fit starts from
_PERTURBATION = 0.2  # of the typical distance of two subspaces


@dataclass(frozen=True)
class Whole:
    """Log length scales and log relative noise of a model of the space itself, within their bounds."""

    model: Description
    known_noise: bool

    @cached_property
    def manifold(self) -> Cuboid:
        return parameter_box(self.model.kernel, self.known_noise)

    def starts(self, rngs: list[torch.Generator], previous: Sequence[Fit] | None, warm: bool) -> Tensor:
        """(runs, starts, parameters): of a warm fit the previous one, else the prior's median and draws around it."""
        box = self.manifold
        if warm and previous is not None:
            return box.project(_parameters(previous, rngs[0].device))
        median = median_parameters(self.model.kernel)
        size = len(median)
        draws = torch.stack(
            [torch.randn(_STARTS - 1, size, generator=rng, dtype=torch.float64, device=rng.device) for rng in rngs]
        )
        median = median.to(draws)
        return box.project(torch.cat([median.expand(len(rngs), 1, size), median + draws], 1))

    def prepare(self, x: Tensor) -> Tensor:
        """What a fit needs of the points, chosen from them later."""
        return x

    def compare(self, x: Tensor) -> Tensor:
        """What the loss needs of prepared points: computed once, since it does not depend on the parameters."""
        return self.model.kernel.statistic(x, x)

    def loss(self, parameters: Tensor, statistic: Tensor, z: Tensor, *known: Tensor) -> Tensor:
        """The criterion at parameters (runs, starts, size)."""
        model = self.model
        return model.criterion(model.kernel, parameters, statistic.unsqueeze(1), z.unsqueeze(1), model.priors, *known)

    def split(self, point: Tensor) -> tuple[Tensor, Tensor]:
        """The basis, which is empty here, and the parameters."""
        return point[..., :0], point

    def known(self, previous: Sequence[Fit], device: torch.device) -> tuple[Tensor, Tensor]:
        """The basis and the parameters of fits that were made before, to the last bit."""
        return self.split(_parameters(previous, device).squeeze(1))

    def mapping(self, basis: Tensor) -> NestedMapping:
        """From the space to that of the model."""
        return Identity(self.model.kernel.space)

    def learned(self, basis: Tensor) -> Learned | None:
        """The metric, if there is one."""
        return None


@dataclass(frozen=True)
class Nested:
    """A subspace and the parameters of a model on the space nested along it: points of Gr × R^k.

    The bounds of the parameters are a penalty: that is cheaper than following them.
    """

    model: Description
    known_noise: bool
    guess: Tensor | None = None

    @cached_property
    def nesting(self) -> Nesting:
        assert self.model.nesting is not None
        return self.model.nesting

    @cached_property
    def box(self) -> Cuboid:
        return parameter_box(self.model.kernel, self.known_noise)

    @cached_property
    def manifold(self) -> ManifoldProduct:
        return ManifoldProduct(self.nesting.bases, Euclidean(self.box.dim))

    def starts(self, rngs: list[torch.Generator], previous: Sequence[Fit] | None, warm: bool) -> Tensor:
        """(runs, starts, size): of a warm fit the previous one; of others it, a perturbation of it, and new ones.

        New are random subspaces and the guess, with the medians of the priors of the parameters.
        """
        both, median = self.manifold, median_parameters(self.model.kernel).to(rngs[0].device)
        new = [] if warm else [both.join([basis, median]) for basis in self._new(rngs)]
        known = [] if previous is None else self._known(rngs, previous, warm)
        found = torch.cat([*known, *new], 1)
        return both.retract(found, torch.zeros_like(found))  # rounding apart they are points already

    def _new(self, rngs: list[torch.Generator]) -> list[Tensor]:
        drawn = self.nesting.bases.random_each(_RANDOM_STARTS, rngs).movedim(0, 1)
        return [drawn] if self.guess is None else [drawn, self.guess.unsqueeze(1)]

    def _known(self, rngs: list[torch.Generator], previous: Sequence[Fit], warm: bool) -> list[Tensor]:
        last, parameters = (each.unsqueeze(1) for each in self.known(previous, rngs[0].device))
        near = [] if warm else [_perturbed(self.nesting.bases, last, rngs)]
        return [self.manifold.join([basis, parameters]) for basis in (last, *near)]

    def known(self, previous: Sequence[Fit], device: torch.device) -> tuple[Tensor, Tensor]:
        flat = torch.tensor([fit.basis for fit in previous], dtype=torch.float64, device=device)
        basis = flat.reshape(len(flat), *self.nesting.bases.point_shape)
        return basis, _parameters(previous, device).squeeze(1)

    def prepare(self, x: Tensor) -> Tensor:
        return self.nesting.prepare(x)

    def compare(self, x: Tensor) -> Tensor:
        return x

    def loss(self, point: Tensor, prepared: Tensor, z: Tensor, *known: Tensor) -> Tensor:
        model = self.model
        basis, wanted = self.manifold.split(point)
        parameters = self.box.project(wanted)
        latent = self.nesting.project(basis, prepared.unsqueeze(1))
        statistic = model.kernel.statistic(latent, latent)
        loss = model.criterion(model.kernel, parameters, statistic, z.unsqueeze(1), model.priors, *known)
        return loss + _PENALTY * (wanted - parameters).square().sum(-1)

    def split(self, point: Tensor) -> tuple[Tensor, Tensor]:
        basis, parameters = self.manifold.split(point)
        return basis, self.box.project(parameters)

    def mapping(self, basis: Tensor) -> NestedMapping:
        return self.nesting.at(basis)

    def learned(self, basis: Tensor) -> Learned | None:
        return None


@dataclass(frozen=True)
class Warped:
    """The entries of a metric and the parameters of a kernel on what it sees; with a nesting the subspace as well."""

    model: Description
    known_noise: bool
    guess: Tensor | None = None

    @cached_property
    def metric(self) -> Metric:
        assert self.model.metric is not None
        return self.model.metric

    @cached_property
    def box(self) -> Cuboid:
        return parameter_box(self.model.kernel, self.known_noise)

    @cached_property
    def manifold(self) -> Manifold:
        flat = Euclidean(self.metric.size + self.box.dim)
        return flat if self.model.nesting is None else ManifoldProduct(self.model.nesting.bases, flat)

    def starts(self, rngs: list[torch.Generator], previous: Sequence[Fit] | None, warm: bool) -> Tensor:
        """(runs, starts, size): the previous fit; of a fit that starts anew also the isotropic kernel, and nearby."""
        known = [] if previous is None else [self._joined(previous, rngs[0].device)]
        found = torch.cat([*known, *([] if warm else self._new(rngs))], 1)
        return found if self.model.nesting is None else self.manifold.retract(found, torch.zeros_like(found))

    def _new(self, rngs: list[torch.Generator]) -> list[Tensor]:
        device, nesting = rngs[0].device, self.model.nesting
        median = median_parameters(self.model.kernel).to(device)
        isotropic = torch.cat([torch.zeros(self.metric.size, dtype=torch.float64, device=device), median])
        if nesting is None:
            drawn = torch.stack(
                [torch.randn(1, self.metric.size, generator=r, dtype=torch.float64, device=device) for r in rngs]
            )
            near = torch.cat([_NEARBY * drawn, median.expand(len(rngs), 1, -1)], -1)
            return [isotropic.expand(len(rngs), 1, -1), near]
        bases = [nesting.bases.random_each(_RANDOM_STARTS, rngs).movedim(0, 1)]
        bases += [] if self.guess is None else [self.guess.unsqueeze(1)]
        return [self.manifold.join([basis, isotropic.expand(*basis.shape[:2], -1)]) for basis in bases]  # type: ignore[attr-defined]

    def _joined(self, previous: Sequence[Fit], device: torch.device) -> Tensor:
        flat, parameters = self.known(previous, device)
        return torch.cat([flat, parameters], -1).unsqueeze(1)

    def known(self, previous: Sequence[Fit], device: torch.device) -> tuple[Tensor, Tensor]:
        flat = torch.tensor([fit.basis for fit in previous], dtype=torch.float64, device=device)
        return flat, _parameters(previous, device).squeeze(1)

    def prepare(self, x: Tensor) -> Tensor:
        return self.metric.sight.coordinates(x) if self.model.nesting is None else x

    def compare(self, x: Tensor) -> Tensor:
        return x

    def loss(self, point: Tensor, prepared: Tensor, z: Tensor, *known: Tensor) -> Tensor:
        model, sight = self.model, self.metric.sight
        flat, wanted = self._parted(point)
        basis, entries = self._of(flat)
        parameters, phi = self.box.project(wanted), prepared.unsqueeze(1)
        if model.nesting is not None:
            phi = sight.coordinates(model.nesting.project(basis, phi))
        seen = sight.warped(self.metric.factor(entries), phi)
        loss = model.criterion(
            model.kernel, parameters, model.kernel.statistic(seen, seen), z.unsqueeze(1), model.priors, *known
        )
        beyond = (wanted - parameters).square().sum(-1)
        return loss + _PENALTY * beyond + entries.square().sum(-1) / 2

    def _parted(self, point: Tensor) -> tuple[Tensor, Tensor]:
        """What mapping and metric are made of, and the parameters of the kernel before they are kept in bounds."""
        return point[..., : -self.box.dim], point[..., -self.box.dim :]

    def _of(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """The basis, empty without a nesting, and the entries of the metric."""
        basis, entries = flat[..., : -self.metric.size], flat[..., -self.metric.size :]
        return basis if self.model.nesting is None else basis.unflatten(
            -1, self.model.nesting.bases.point_shape
        ), entries

    def split(self, point: Tensor) -> tuple[Tensor, Tensor]:
        flat, wanted = self._parted(point)
        return flat, self.box.project(wanted)

    def mapping(self, basis: Tensor) -> NestedMapping:
        nesting = self.model.nesting
        return Identity(self.metric.sight.space) if nesting is None else nesting.at(self._of(basis)[0])

    def learned(self, basis: Tensor) -> Learned:
        """The metric of each run."""
        return Learned(self.metric.sight, self.metric.factor(self._of(basis)[1]))


def _parameters(previous: Sequence[Fit], device: torch.device) -> Tensor:
    """The fitted parameters of each run, (runs, 1, parameters)."""
    return torch.tensor([fit.parameters for fit in previous], dtype=torch.float64, device=device).unsqueeze(1)


def _perturbed(bases: Manifold, at: Tensor, rngs: list[torch.Generator]) -> Tensor:
    """Bases (runs, 1, *basis) moved in random directions."""
    step = _PERTURBATION * bases.typical_distance
    moved = [bases.exp(w, step * bases.random_tangent(w, rng)) for w, rng in zip(at, rngs, strict=True)]
    return torch.stack(moved)


def median_parameters(kernel: ManifoldKernel) -> Tensor:
    """The median of the prior of (log length scales, log relative noise)."""
    return torch.cat([kernel.median_lengthscale.log(), torch.tensor([NOISE_PRIOR[0]], dtype=torch.float64)])


def parameter_box(kernel: ManifoldKernel, known: bool) -> Cuboid:
    """Bounds of (log length scales, log relative noise); with known noise the latter sets the signal's scale."""
    low, high = kernel.lengthscale_bounds
    least, most = max(NOISE[0], kernel.tolerance), MOST_NOISE if known else NOISE[1]
    return Cuboid(
        [*low.log().tolist(), math.log(least)],  # type: ignore[arg-type]
        [*high.log().tolist(), math.log(most)],  # type: ignore[arg-type]
    )
