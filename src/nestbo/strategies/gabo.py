"""GaBO and HD-GaBO: Bayesian optimisation on a manifold, and on small manifolds nested in it.

GaBO is Jaquier, Rozo, Calinon and Bürger 2019, HD-GaBO is Jaquier and Rozo 2020. Both take random points first, and
then let one of three methods suggest:

=========================== ==============================================================================
``learning.Learner``        the usual one: it learns which directions matter, see there
``single.Single``           one isotropic model, as published: where no metric can be learned or none is wanted
``many.Many``               several objectives
=========================== ==============================================================================
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from torch import Tensor

from nestbo.acquisition import ACQUISITIONS
from nestbo.errors import ArgumentError, shown
from nestbo.kernels import KERNELS
from nestbo.manifolds import Space
from nestbo.manifolds.base import check_size
from nestbo.memory import Memory
from nestbo.nested import Nesting, smaller
from nestbo.outputs import OUTPUTS
from nestbo.search import Runs, seen, spread_out
from nestbo.strategies.base import Standing, Strategy, check_choice
from nestbo.strategies.competing import standings
from nestbo.strategies.learning import EXTRINSIC, Learner
from nestbo.strategies.many import Many
from nestbo.strategies.options import Acquisition, Climb, Criterion, LatentDim, Lift, Metric, Outputs
from nestbo.strategies.single import LIFTS, Single, check_latent_dim, words
from nestbo.surrogate import CRITERIA, Surrogate

METRICS = ("isotropic", "diagonal", "full", "auto")
_CLIMBS = ("lbfgs", "trust-region")


@dataclass(frozen=True, repr=False, kw_only=True)
class Bayesian(Strategy):
    """The settings that GaBO and HD-GaBO share, and who suggests with them."""

    kernel: str = "matern52"
    acquisition: Acquisition = "logei"
    outputs: Outputs = "auto"
    optimiser: Climb = "lbfgs"
    criterion: Criterion = "likelihood"
    priors: bool = True
    initial: int = 5
    metric: Metric = "auto"

    def __post_init__(self) -> None:
        check_size("The number of initial points", self.initial)
        choices: dict[str, Collection[str]] = {
            "kernel": KERNELS,
            "acquisition": ACQUISITIONS,
            "outputs": (*OUTPUTS, "auto"),
            "optimiser": _CLIMBS,
            "criterion": CRITERIA,
            "metric": METRICS,
        }
        for name, known in choices.items():
            check_choice(name, getattr(self, name), known)
        if not isinstance(self.priors, bool):
            raise ArgumentError(f"priors is True or False, got {shown(self.priors)}.")

    def propose(self, space: Space, runs: Runs) -> tuple[Tensor, list[Memory]]:
        if not runs.begun(self.initial):
            return spread_out(space, runs), [Memory() for _ in runs.rngs]
        return self._method(space, runs).propose(space, seen(space, runs))

    def models(self, space: Space, runs: Runs) -> dict[str, Surrogate]:
        if not runs.y.shape[1]:
            return {}
        return self._method(space, runs).models(space, seen(space, runs))

    def standings(self, space: Space, runs: Runs) -> list[Standing]:
        return standings(self._alone(space).names(space, runs), runs)

    def check(self, space: Space) -> None:
        self._alone(space).check(space)

    def learns(self, space: Space) -> bool:
        """Whether a metric is learned: "auto" does wherever the kernel and the space allow it.

        Args:
            space: Where the points lie.
        """
        if self.metric != "auto":
            return self.metric != "isotropic"
        return self.kernel in EXTRINSIC and self._learner.serves(space)

    def _method(self, space: Space, runs: Runs) -> Learner | Single | Many:
        """Who suggests."""
        return self._alone(space) if runs.outcomes is None else self.many

    def _alone(self, space: Space) -> Learner | Single:
        """The same for a single objective."""
        return self._learner if self.learns(space) else self._single(space)

    @property
    def _learner(self) -> Learner:
        return Learner(
            self.kernel, self.acquisition, self.outputs, self.optimiser, self.criterion, self.priors, None, self.metric
        )

    def _single(self, space: Space) -> Single:
        outputs = _plain(self.outputs)
        return Single(self.kernel, self.acquisition, outputs, self.optimiser, self.criterion, self.priors, self.repeats)

    @property
    def _as_published(self) -> Self:
        """With the settings spelt out that a published method may leave out."""
        return replace(self, metric="isotropic", outputs=_plain(self.outputs))

    @property
    def many(self) -> Many:
        """Who works where there are several objectives; "auto" learns no metric there."""
        return Many(self.kernel, _plain(self.outputs), self.optimiser, self.priors, self.metric)


def _plain(outputs: Outputs) -> Outputs:
    """How values are transformed for a model that is alone: what takes turns is standardised."""
    return "standardise" if outputs == "auto" else outputs


@dataclass(frozen=True, repr=False, kw_only=True)
class GaBO(Bayesian):
    """Fit a Gaussian process on the manifold, suggest the point where the acquisition function is largest, and repeat.

    Args:
        kernel: A name of ``nestbo.kernels.KERNELS``, such as "matern52" or "gaussian".
        acquisition: "logei", "lognei", "ei" or "ucb"; where values are noisy, "logei" is "lognei".
        outputs: How values are transformed for the model: a name of ``nestbo.outputs.OUTPUTS``, such as "standardise",
            or "auto": "standardise" and "half-log" in turn where a metric is learned, else "standardise".
        optimiser: The optimiser of the acquisition function: "lbfgs" or "trust-region".
        criterion: The loss that a fit minimises: "likelihood" or "leave-one-out".
        priors: Whether a fit is maximum a posteriori instead of maximum likelihood.
        initial: The number of random points at the beginning.
        metric: What is learned of the directions that matter: "full", "diagonal" (a length scale for each coordinate),
            "isotropic" for nothing, or "auto", which lets models compete by what they predict.

    >>> import torch
    >>> from nestbo import History, Sphere
    >>> suggestion = GaBO().suggest(Sphere(2), History(), 1, torch.Generator().manual_seed(0))[0]
    >>> tuple(suggestion.x.shape)
    (3,)
    """

    @classmethod
    def paper(cls) -> Self:
        """As in the paper: geodesic Gaussian kernel, maximum likelihood, expected improvement, trust regions."""
        settings: dict[str, Any] = {"kernel": "geodesic-gaussian", "acquisition": "ei", "optimiser": "trust-region"}
        return cls(metric="isotropic", outputs="standardise", priors=False, **settings)

    @cached_property
    def repeats(self) -> bool:
        return self._as_published == self.paper()

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(), cls.paper(), cls(kernel="gaussian", acquisition="ucb", outputs="bilog", metric="isotropic")]

    @property
    def several(self) -> bool:
        return True


@dataclass(frozen=True, repr=False)
class HDGaBO(Bayesian):
    """Learn which directions matter, and search along them.

    With a metric, HD-GaBO searches a great sphere that the data span, or small matrices nested in large ones; see
    ``nestbo.strategies.learning``. With metric="isotropic", it is the method of the paper: one model of a nested space
    of a given size, searched and lifted back; see ``nestbo.strategies.single``.

    Args:
        latent_dim: The size of the nested space: d of S^d, d of d×d matrices, for a product a tuple with None for a
            factor to leave whole; or "auto", if you do not know it.
        lift: With metric="isotropic", how a point of the nested space is lifted: "incumbent" stays near the best point,
            "fitted" (the paper's) as near as it can to all evaluated points.
        exact: With metric="isotropic", whether distances of projected SPD matrices are exact; the paper approximates
            them.
        kernel: A name of ``nestbo.kernels.KERNELS``, such as "matern52" or "gaussian".
        acquisition: "logei", "lognei", "ei" or "ucb"; where values are noisy, "logei" is "lognei".
        outputs: How values are transformed for the model: a name of ``nestbo.outputs.OUTPUTS``, such as "standardise",
            or "auto": "standardise" and "half-log" in turn where a metric is learned, else "standardise".
        optimiser: The optimiser of the acquisition function: "lbfgs" or "trust-region".
        criterion: The loss that a fit minimises: "likelihood" or "leave-one-out".
        priors: Whether a fit is maximum a posteriori instead of maximum likelihood.
        initial: The number of random points at the beginning.
        metric: What is learned of the directions that matter: "full", "diagonal" (a length scale for each coordinate),
            "isotropic" for nothing, or "auto", which lets models compete by what they predict.

    >>> import nestbo as nb
    >>> study = nb.Study(nb.Sphere(30), nb.HDGaBO(), seed=0)
    >>> hidden = nb.problem("ackley", nb.Sphere(30), latent_dim=2, seed=0)
    >>> _ = study.run(hidden.objective, 8, progress=False)
    >>> list(study.models())
    ['spanned:8:1']
    """

    latent_dim: LatentDim = "auto"
    lift: Lift = "incumbent"
    exact: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_latent_dim(self.latent_dim)
        check_choice("lift", self.lift, LIFTS)
        if not isinstance(self.exact, bool):
            raise ArgumentError(f"exact is True or False, got {shown(self.exact)}.")

    @classmethod
    def paper(cls, latent_dim: LatentDim) -> Self:
        """As in the paper: one nested model, geodesic Gaussian kernel, approximate SPD distances, EI, fitted lift.

        Args:
            latent_dim: The size of the nested space, as of HDGaBO.
        """
        settings: dict[str, Any] = {"kernel": "geodesic-gaussian", "acquisition": "ei", "optimiser": "trust-region"}
        settings |= {"outputs": "standardise", "metric": "isotropic"}
        return cls(latent_dim, "fitted", exact=False, priors=False, **settings)

    @cached_property
    def repeats(self) -> bool:
        return self._as_published == self.paper(self.latent_dim)

    @classmethod
    def samples(cls) -> list[Self]:
        return [cls(), cls.paper(1), cls(1, metric="isotropic", criterion="leave-one-out")]

    @property
    def _learner(self) -> Learner:
        return replace(super()._learner, latent_dim=self.latent_dim)

    def _single(self, space: Space) -> Single:
        if self.latent_dim == "auto":
            raise ArgumentError(
                f"HD-GaBO learns no metric here (metric={self.metric!r}, kernel={self.kernel!r}): it has to be told "
                'latent_dim, got "auto". Give it, as in HDGaBO(latent_dim=2), or take GaBO.'
            )
        single, latent = super()._single(space), smaller(space, self.latent_dim)
        if latent == space:
            return single
        nesting = Nesting(space, latent, logarithmic=not self.exact)
        return replace(single, name=f"nested:{words(self.latent_dim)}", nesting=nesting, lift=self.lift)
