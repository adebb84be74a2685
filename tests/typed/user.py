"""A user's script, which a type checker reads and nobody runs: no error in strict mode, no Any for what is known."""

from pathlib import Path
from typing import assert_type

import torch
from matplotlib.figure import Figure

import nestbo as nb
from nestbo.surrogate import Model


def cost(x: torch.Tensor) -> float:
    """One point; the less, the better."""
    return float(1 - x[0])


def heard(study: nb.Study, trial: nb.Trial) -> None:
    """A callback."""
    assert_type(len(study), int)
    assert_type(trial.value, float | None)


def spaces() -> None:
    """How spaces are made."""
    rng = torch.Generator().manual_seed(0)
    sphere = nb.Sphere(2)
    assert_type(sphere.random(3, rng=rng), torch.Tensor)
    assert_type(sphere.dim, int)
    nb.Product(nb.SPD(2, eigenvalues=(0.1, 5.0), metric="log-euclidean"), nb.Box(0, 1), nb.Box([0, 1], [1, 2]))
    nb.Product(
        tool=nb.Choice("soft", "hard"), force=nb.Box(0, 40, scale="linear"), passes=nb.Integer(1, 8, scale="log")
    )


def studies(path: Path) -> None:
    """Ask, tell, run, read."""
    strategy = nb.HDGaBO(latent_dim="auto", acquisition="logei", outputs="auto", metric="auto")
    study = nb.Study(nb.Sphere(20), strategy, seed=1, store=path, direction="minimize", noise="infer")
    trial = study.ask()
    assert_type(trial, nb.Trial)
    assert_type(trial.x, torch.Tensor)
    assert_type(study.ask(2), list[nb.Trial])
    assert_type(study.tell(trial, cost(trial.x), note="first"), nb.Trial)
    study.tell(3, nb.Observation(1.0, constraints=[0.5], noise=0.1))
    study.tell(4, failed="slipped")
    study.correct(3, 2.0)
    study.discard(trial, note="by mistake")
    study.enqueue([0.0] * 20 + [1.0])
    rules = [nb.stop.After(seconds=60), nb.stop.Target(0.1), nb.stop.Stalled(30), nb.stop.Gain(1e-6)]
    assert_type(study.run(cost, budget=5, stop=rules, callbacks=[heard], progress=False), nb.Study)
    study.run(cost, 1, stop=lambda study, trial: len(study) > 5 and trial.value is not None, on_error="raise")
    assert_type(study.stopped, str | None)
    assert_type(study.best, nb.Trial | None)
    assert_type(study.recommend(), nb.Trial | None)
    assert_type(study.expected_gain(), float | None)
    assert_type(study.pending, list[nb.Trial])
    assert_type(study[0], nb.Trial)
    assert_type(study[1:], nb.History)
    assert_type(study.history.points, torch.Tensor)
    assert_type([each.index for each in study], list[int])
    assert_type(study.models(), dict[str, Model])
    assert_type(study.model().predict(trial.x), torch.Tensor)
    assert_type(study.standings(), list[nb.Standing])
    assert_type(nb.Study.load(path), nb.Study)


def beside(study: nb.Study) -> None:
    """Results, pictures, texts."""
    result = nb.minimize(cost, nb.Sphere(2), budget=3, strategy=nb.GaBO(kernel="gaussian"), stop=nb.stop.Target(0))
    assert_type(result, nb.Minimum)
    assert_type((result.x, result.fun, result.nfev), tuple[torch.Tensor, float, int])
    assert_type(nb.plots.draw(study, "surrogate"), Figure)
    assert_type(nb.report.page(study), str)
    assert_type(nb.problem("ackley", nb.Sphere(2)).objective(study.history.points), torch.Tensor)
    assert_type(nb.strategy("gabo:initial=3"), nb.Strategy)
