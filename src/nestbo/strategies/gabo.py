"""GaBO: Bayesian optimisation on a manifold (Jaquier, Rozo, Calinon and Bürger 2019)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from nestbo.acquisition import ACQUISITIONS, OPTIMISERS, candidates, maximise
from nestbo.errors import ArgumentError
from nestbo.kernels import KERNELS, kernel
from nestbo.manifolds import Manifold
from nestbo.manifolds.base import check_size
from nestbo.outputs import OUTPUTS
from nestbo.strategies.base import Runs, Strategy
from nestbo.surrogate import Surrogate, fit_surrogate, previous_parameters

_FRESH_FIT = 10  # every so many evaluations a fit starts anew, besides from the previous one
_POOL = 256


@dataclass(frozen=True, repr=False)
class GaBO(Strategy):
    """Fit a Gaussian process on the manifold, maximise an acquisition function there, evaluate, repeat.

    The first ``initial`` points are random. ``kernel``, ``acquisition``, ``outputs`` and ``optimiser`` are names from
    the registries of these; ``priors`` makes the fit maximum a posteriori instead of maximum likelihood.

    >>> import torch
    >>> from nestbo import History, Sphere
    >>> suggestion = GaBO().suggest(Sphere(2), History(), 1, torch.Generator().manual_seed(0))[0]
    >>> tuple(suggestion.x.shape)
    (3,)
    """

    kernel: str = "matern52"
    acquisition: str = "logei"
    outputs: str = "standardise"
    optimiser: str = "trust-region"
    priors: bool = True
    initial: int = 5

    def __post_init__(self) -> None:
        check_size("The number of initial points", self.initial)
        choices: dict[str, Collection[str]] = {
            "kernel": KERNELS,
            "acquisition": ACQUISITIONS,
            "outputs": OUTPUTS,
            "optimiser": OPTIMISERS,
        }
        for name, known in choices.items():
            if not isinstance(getattr(self, name), str) or getattr(self, name) not in known:
                raise ArgumentError(f"{name} is one of {', '.join(known)}, got {getattr(self, name)!r}.")
        if not isinstance(self.priors, bool):
            raise ArgumentError(f"priors is True or False, got {self.priors!r}.")

    @classmethod
    def paper(cls) -> Self:
        """As in the paper: geodesic Gaussian kernel, maximum likelihood, expected improvement, trust regions."""
        return cls("geodesic-gaussian", acquisition="ei", priors=False)

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(), cls.paper(), cls(kernel="gaussian", acquisition="ucb", outputs="bilog", optimiser="lbfgs")]

    def propose(self, space: Manifold, runs: Runs) -> tuple[Tensor, list[dict[str, Any]]]:
        if runs.y.shape[1] == 0 or runs.y.shape[1] + runs.pending.shape[1] < self.initial:
            return torch.stack([space.random(rng=rng) for rng in runs.rngs]), [{} for _ in runs.rngs]
        surrogate = self.model(space, runs)
        acquisition = self._acquisition(runs, surrogate)
        drawn = [candidates(space, x, y, g, _POOL) for x, y, g in zip(runs.x, runs.y, runs.rngs, strict=True)]
        pools = [torch.stack(pool, 1) for pool in zip(*drawn, strict=True)]
        x, _ = maximise(acquisition, space, pools, optimiser=OPTIMISERS[self.optimiser])
        return space.project(x), list(surrogate.notes)

    def check(self, space: Manifold) -> None:
        kernel(self.kernel, space)

    def models(self, space: Manifold, runs: Runs) -> dict[str, Surrogate]:
        return {"full": self.model(space, runs)} if runs.y.shape[1] else {}

    def model(self, space: Manifold, runs: Runs) -> Surrogate:
        """The surrogate fitted to each run, warm-started from the notes of its last suggestion."""
        if "full" not in runs.cache:
            on_space = kernel(self.kernel, space)
            runs.cache["full"] = fit_surrogate(
                on_space,
                runs.x,
                runs.y,
                runs.rngs,
                outputs=OUTPUTS[self.outputs],
                priors=self.priors,
                previous=None if runs.y.shape[1] % _FRESH_FIT == 0 else previous_parameters(on_space, runs.notes),
                noise=runs.noise,
            )
        surrogate: Surrogate = runs.cache["full"]
        return surrogate

    def _acquisition(self, runs: Runs, surrogate: Surrogate) -> Any:
        count = runs.pending.shape[1]
        seed = runs.y.shape[1] + count  # one for all runs of a batch, so that a run alone sees the same samples
        pending = runs.pending.flatten(2) if count else None
        return ACQUISITIONS[self.acquisition](surrogate.gp, surrogate.gp.z.amin(-1), pending, seed)
