"""Which problems are compared with which methods: ``SUITES``, where a new comparison is registered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from nestbo.errors import ArgumentError
from nestbo.experiment.tasks import FEW_DIMENSIONS, HELD_OUT, HELD_OUT_METRIC, MATRICES, PAPER, RIVALLED, Task, matrices
from nestbo.experiment.trials import ORACLE, Trials
from nestbo.manifolds import SPD, Sphere, space
from nestbo.manifolds.base import check_size
from nestbo.strategies import REMBO, SIRBO, DropoutBO, EuclideanBO, GaBO, HDGaBO, RandomSearch, Strategy


@dataclass(frozen=True)
class Method:
    """A method by its label: the strategy for a task, None where it has none; ``about`` says what it is."""

    about: str
    strategy: Callable[[Task], Strategy | str | None]

    def text(self, task: Task) -> str | None:
        """The strategy's text form, or "oracle"."""
        found = self.strategy(task)
        return found.specification if isinstance(found, Strategy) else found


def _matrices_only(make: Callable[[Task], Strategy]) -> Callable[[Task], Strategy | None]:
    return lambda task: make(task) if task.matrices else None


def _vectors_only(make: Callable[[Task], Strategy]) -> Callable[[Task], Strategy | None]:
    return lambda task: None if task.matrices else make(task)


def _recorded(task: Task) -> None:
    """Of methods that this version has no more: their results stay, and nothing new is run."""


METHODS: dict[str, Method] = {
    "random": Method("random search", lambda task: RandomSearch()),
    "bo": Method("Euclidean BO", lambda task: EuclideanBO()),
    "cholesky-bo": Method("Cholesky BO", _matrices_only(lambda task: EuclideanBO(coordinates="cholesky"))),
    "dropout": Method("dropout BO", _vectors_only(lambda task: DropoutBO(task.vectors))),
    "cholesky-dropout": Method(
        "Cholesky dropout", _matrices_only(lambda task: DropoutBO(task.vectors, coordinates="cholesky"))
    ),
    "sir": Method("SIR-BO", lambda task: SIRBO(task.vectors)),
    "cholesky-sir": Method("Cholesky SIR-BO", _matrices_only(lambda task: SIRBO(task.vectors, coordinates="cholesky"))),
    "rembo": Method("REMBO", _vectors_only(lambda task: REMBO(task.vectors))),
    "cholesky-rembo": Method(
        "Cholesky REMBO", _matrices_only(lambda task: REMBO(task.vectors, coordinates="cholesky"))
    ),
    "gabo-paper": Method("GaBO, paper", lambda task: GaBO.paper()),
    "gabo-paper-lbfgs": Method("GaBO, paper, L-BFGS", lambda task: replace(GaBO.paper(), optimiser="lbfgs")),
    "gabo": Method("GaBO", lambda task: GaBO(metric="isotropic")),
    "hdgabo-paper": Method("HD-GaBO, paper", lambda task: HDGaBO.paper(task.size)),
    "hdgabo-paper-lbfgs": Method(
        "HD-GaBO, paper, L-BFGS", lambda task: replace(HDGaBO.paper(task.size), optimiser="lbfgs")
    ),
    "hdgabo": Method("HD-GaBO 0.1", _recorded),
    "hdgabo-nested": Method("HD-GaBO 0.1, nested model only", _recorded),
    "hdgabo-unknown": Method("HD-GaBO 0.1, d unknown", _recorded),
    "hdgabo-auto": Method("HD-GaBO", lambda task: HDGaBO()),
    "oracle": Method("oracle", lambda task: ORACLE if task.latent_dim else None),
}


def _sized(size: int) -> Method:
    return Method(f"HD-GaBO, d = {size}", _vectors_only(lambda task: HDGaBO(size)))


MISMATCH: dict[str, Method] = {
    **{label: METHODS[label] for label in ("random", "gabo", "hdgabo")},
    **{f"hdgabo-{size}": Method(f"HD-GaBO 0.1, d = {size}", _recorded) for size in (3, 7, 10)},
    "hdgabo-unknown": METHODS["hdgabo-unknown"],
    "hdgabo-auto": METHODS["hdgabo-auto"],
    **{f"hdgabo-auto-{size}": _sized(size) for size in (3, 7, 10)},
}
ABLATION: dict[str, Method] = {
    "hdgabo-auto": METHODS["hdgabo-auto"],
    "whole": Method("the whole space searched: GaBO", lambda task: GaBO()),
    "nested": Method("an isotropic nested model alone", lambda task: HDGaBO(task.size, metric="isotropic")),
    "isotropic": Method("an isotropic model of the whole space", lambda task: GaBO(metric="isotropic")),
    "standardised": Method("values as they are", lambda task: HDGaBO(outputs="standardise")),
    "logarithmic": Method("logarithms of values", lambda task: HDGaBO(outputs="log")),
    "gaussian-kernel": Method("Gaussian kernel", lambda task: HDGaBO(kernel="gaussian")),
    "matern32-kernel": Method("Matérn-3/2 kernel", lambda task: HDGaBO(kernel="matern32")),
}


def _curved_only(text: str) -> Callable[[Task], str | None]:
    """For spheres and matrices: other tangent charts are the natural ones."""
    return lambda task: text if isinstance(space(task.space), Sphere | SPD) else None


def _small_sphere(task: Task) -> str | None:
    """RPM-BO, which is told the dimension of the sphere that the objective depends on."""
    hidden = isinstance(space(task.space), Sphere) and task.latent_dim
    return f"rpm:latent_dim={task.latent_dim}" if hidden else None


RIVALS: dict[str, Method] = {
    **{label: METHODS[label] for label in ("random", "gabo", "hdgabo-auto")},
    "turbo": Method("TuRBO", lambda task: "turbo"),
    "turbo-logei": Method("TuRBO with LogEI", lambda task: "turbo:acquisition=logei"),
    "turbo-tangent": Method("TuRBO, tangent space", _curved_only("turbo:chart=tangent")),
    "botorch": Method("BoTorch GP, LogEI", lambda task: "botorch"),
    "saas": Method("BoTorch MAP-SAAS, LogEI", lambda task: "botorch:model=saas"),
    "rpm": Method("RPM-BO, d told", _small_sphere),
    "cma-es": Method("CMA-ES with restarts", lambda task: "cmaes"),
    "tpe": Method("Optuna TPE", lambda task: "optuna"),
    "optuna-gp": Method("Optuna GP", lambda task: "optuna:sampler=gp"),
    "nelder-mead": Method("Nelder–Mead", lambda task: "local"),
    "powell": Method("Powell", lambda task: "local:method=powell"),
}


@dataclass(frozen=True)
class Cell:
    """Trials of one method on one problem of a suite, and the name of their file."""

    task: Task
    label: str
    trials: Trials

    @property
    def name(self) -> str:
        """Of the file: problem, method and seeds."""
        first, last = self.trials.seeds[0], self.trials.seeds[-1]
        return f"{self.task.key}__{self.label}__{first}-{last}.npz"


@dataclass(frozen=True)
class Suite:
    """A comparison after ``budget`` evaluations; ``names.ABOUT`` says what it compares."""

    tasks: tuple[Task, ...]
    methods: Mapping[str, Method]
    budget: int = 305

    def cells(
        self, methods: str = "all", problems: str = "all", *, seeds: Sequence[int], chunk: int | None = None
    ) -> list[Cell]:
        """All of these methods on all of these problems, in the order given; trials in files of ``chunk`` each.

        Methods are labels, problems are parts of keys, both separated by commas.
        """
        width = len(seeds) if chunk is None else chunk
        check_size("The number of trials", len(seeds))
        check_size("chunk", width)
        parts = [tuple(seeds[k : k + width]) for k in range(0, len(seeds), width)]
        chosen = ((task, label) for label in self.labels(methods) for task in self.chosen(problems))
        return [
            Cell(task, label, Trials(task.problem, task.space, text, part, task.latent_dim, task.noise))
            for task, label in chosen
            if (text := self.methods[label].text(task)) is not None
            for part in parts
        ]

    def labels(self, text: str) -> list[str]:
        """The methods that a text chooses."""
        labels = list(self.methods) if text == "all" else text.split(",")
        for label in labels:
            if label not in self.methods:
                raise ArgumentError(f"Methods of this suite are {', '.join(self.methods)}, got {label!r}.")
        return labels

    def chosen(self, text: str) -> list[Task]:
        """The problems that a text chooses: those whose key contains one of its parts, in the parts' order."""
        found: dict[Task, None] = {}
        for part in [""] if text == "all" else text.split(","):
            some = [task for task in self.tasks if part in task.key]
            if not some:
                keys = ", ".join(task.key for task in self.tasks)
                raise ArgumentError(f"Problems of this suite are {keys}, or parts of these names, got {part!r}.")
            found |= dict.fromkeys(some)
        return list(found)


SUITES: dict[str, Suite] = {
    "paper": Suite(PAPER, METHODS),
    "hdgabo": Suite(
        (Task("ackley", "sphere:50", 5), *matrices("rosenbrock", "styblinski-tang")[:2]),
        {
            label: METHODS[label]
            for label in ("random", "gabo", "hdgabo-paper", "hdgabo-paper-lbfgs", "hdgabo-auto", "oracle")
        },
    ),
    "mismatch": Suite(
        (
            *(Task(name, "sphere:50", 5) for name in ("ackley", "product-of-sines")),
            *(Task("ackley", space) for space in ("sphere:20", f"spd:5:{MATRICES}")),
        ),
        MISMATCH,
    ),
    "ablation": Suite(
        (
            *(Task(name, "sphere:50", 5) for name in ("ackley", "product-of-sines")),
            *(Task(name, f"spd:10:{MATRICES}", 3) for name in ("rosenbrock", "product-of-sines")),
        ),
        ABLATION,
        155,
    ),
    "rivals": Suite(
        RIVALLED,
        RIVALS,
        105,
    ),
    "rivals-205": Suite(RIVALLED, RIVALS, 205),
    "few-dimensions": Suite(
        FEW_DIMENSIONS,
        {label: METHODS[label] for label in ("gabo", "hdgabo-auto")},
        205,
    ),
    "held-out": Suite(
        HELD_OUT,
        {**RIVALS, "oracle": METHODS["oracle"]},
        205,
    ),
    "held-out-metric": Suite(
        HELD_OUT_METRIC,
        {label: METHODS[label] for label in ("random", "gabo", "hdgabo", "hdgabo-auto", "oracle")},
        205,
    ),
}


def suite(name: str) -> Suite:
    """A registered suite."""
    if name not in SUITES:
        raise ArgumentError(f"Suites are {', '.join(SUITES)}, got {name!r}.")
    return SUITES[name]
