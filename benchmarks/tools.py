"""What six tools do beside suggesting points: every cell of the table on docs/choosing.md is tried here.

    python benchmarks/tools.py

needs Optuna, Ax, pymanopt and pandas besides nestbo. It prints a line for each cell: what was tried, and what came.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import io
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from importlib import metadata
from pathlib import Path

import numpy as np
import torch

import nestbo as nb

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
os.chdir(tempfile.mkdtemp())

import botorch  # noqa: E402
import optuna  # noqa: E402
import pymanopt  # noqa: E402
from ax.api.client import Client  # noqa: E402
from ax.api.configs import RangeParameterConfig  # noqa: E402
from scipy import optimize  # noqa: E402

TOOLS = ("nestbo", "Optuna", "Ax", "BoTorch", "scipy", "pymanopt")
PACKAGES = ("nestbo", "optuna", "ax-platform", "botorch", "scipy", "pymanopt")
CELLS: list[tuple[str, str, object]] = []


def cell(row, tool):
    """Register what is tried for a cell; it returns what came, in words."""
    return lambda function: CELLS.append((row, tool, function)) or function


def study(**settings):
    return nb.Study(nb.Box([0, 0], [1, 1]), nb.RandomSearch(), **settings)


def bowl(x):
    return float(x[0] ** 2 + x[1] ** 2)


def numbers(trial):
    return trial.suggest_float("a", 0, 1) ** 2 + trial.suggest_float("b", 0, 1) ** 2


def client(objective="-loss", **settings):
    made = Client(random_seed=0)
    made.configure_experiment([RangeParameterConfig(name=n, parameter_type="float", bounds=(0.0, 1.0)) for n in "ab"])
    made.configure_optimization(objective=objective, **settings)
    return made


def evaluated(made, count, **more):
    for _ in range(count):
        for index, x in made.get_next_trials(max_trials=1).items():
            made.complete_trial(
                index, raw_data={"loss": x["a"] ** 2 + x["b"] ** 2, **{k: f(x) for k, f in more.items()}}
            )
    return made


def problem(cost=None):
    manifold = pymanopt.manifolds.Sphere(3)
    cost = cost or (lambda x: x[0])
    return pymanopt.Problem(
        manifold,
        pymanopt.function.numpy(manifold)(cost),
        euclidean_gradient=pymanopt.function.numpy(manifold)(lambda x: np.array([1.0, 0.0, 0.0])),
    )


def tried(function, *arguments, **options):
    """What comes of an argument that a tool may not know."""
    try:
        return f"gives {function(*arguments, **options)!r}"[:120]
    except TypeError as error:
        return f"refused: {error}"[:120]


def automatic():
    """A client of Ax that evaluates by itself."""
    from ax.api.protocols.metric import IMetric
    from ax.api.protocols.runner import IRunner
    from ax.core.trial_status import TrialStatus

    seen = {}

    class Runner(IRunner):
        def run_trial(self, trial_index, parameterization):
            seen[trial_index] = parameterization["a"] ** 2 + parameterization["b"] ** 2
            return {}

        def poll_trial(self, trial_index, trial_metadata):
            return TrialStatus.COMPLETED

        def stop_trial(self, trial_index, trial_metadata):
            return {}

    class Metric(IMetric):
        def fetch(self, trial_index, trial_metadata):
            return 0, seen[trial_index]

    made = client()
    made.configure_runner(Runner())
    made.configure_metrics([Metric(name="loss")])
    return made, seen


SPHERE = "points of a curved space"


@cell(SPHERE, "nestbo")
def _():
    x = nb.minimize(lambda x: float(x[0]), nb.Sphere(2), budget=6).x
    return f"norm {x.norm():.12f}"


@cell(SPHERE, "Optuna")
def _():
    trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()
    norm = np.linalg.norm([trial.suggest_float(name, -1, 1) for name in "abc"])
    kinds = [n for n in dir(optuna.distributions) if n.endswith("Distribution") and n[0] != "B"]
    return f"three floats: norm {norm:.3f}; distributions: {kinds}"


@cell(SPHERE, "Ax")
def _():
    from ax.api import configs

    ((_, x),) = client().get_next_trials(max_trials=1).items()
    norm = np.linalg.norm(list(x.values()))
    return f"two ranges: norm {norm:.3f}; parameters: {[n for n in dir(configs) if n.endswith('ParameterConfig')]}"


@cell(SPHERE, "BoTorch")
def _():
    from botorch.acquisition import PosteriorMean
    from botorch.models import SingleTaskGP

    x = torch.rand(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = x / x.norm(dim=-1, keepdim=True)
    bounds, mean = torch.tensor([[-1.0], [1.0]]).double().expand(2, 3), PosteriorMean(SingleTaskGP(x, x[:, :1]))
    found, _ = botorch.optim.optimize_acqf(mean, bounds, q=1, num_restarts=2, raw_samples=8)
    names = inspect.signature(botorch.optim.optimize_acqf).parameters
    kinds = [name for name in names if "bound" in name or "constraint" in name]
    return f"data on the sphere, suggestion of norm {found.norm():.3f}; optimize_acqf takes {kinds}"


@cell(SPHERE, "scipy")
def _():
    rule = {"type": "eq", "fun": lambda x: x @ x - 1}
    found = optimize.minimize(lambda x: x[0], [0.1, 0.7, 0.7], method="SLSQP", constraints=[rule])
    return f"an equality constraint of SLSQP: norm {np.linalg.norm(found.x):.12f} at {found.fun:.6f}"


@cell(SPHERE, "pymanopt")
def _():
    found = pymanopt.optimizers.SteepestDescent(verbosity=0).run(problem())
    return f"norm {np.linalg.norm(found.point):.12f}, with a gradient"


NAMES = "named, mixed parameters"


@cell(NAMES, "nestbo")
def _():
    space = nb.Product(tool=nb.Choice("soft", "hard"), force=nb.Box(0, 1), tilt=nb.Sphere(2))
    return str(nb.Study(space, nb.RandomSearch()).ask().parameters)


@cell(NAMES, "Optuna")
def _():
    made = optuna.create_study()
    trial = made.ask()
    trial.suggest_categorical("tool", ["soft", "hard"]), trial.suggest_float("force", 0, 1)
    return str(trial.params)


@cell(NAMES, "Ax")
def _():
    return str(client().get_next_trials(max_trials=1)) + ", and ChoiceParameterConfig"


@cell(NAMES, "BoTorch")
def _():
    return f"optimize_acqf_mixed: {hasattr(botorch.optim, 'optimize_acqf_mixed')}, by column number"


SEVERAL = "several objectives"


@cell(SEVERAL, "nestbo")
def _():
    made = nb.Study(nb.Sphere(2), nb.GaBO(initial=3), objectives=("height", "width"))
    made.run(lambda x: (float(x[0]), float(x[1])), 5, progress=False)
    return f"front of {len(made.front)}"


@cell(SEVERAL, "Optuna")
def _():
    made = optuna.create_study(directions=["minimize", "minimize"])
    made.optimize(lambda t: (numbers(t), -t.params["a"]), n_trials=5)
    return f"front of {len(made.best_trials)}"


@cell(SEVERAL, "Ax")
def _():
    made = evaluated(client("-loss, -cost"), 3, cost=lambda x: -x["a"])
    return f"frontier of {len(made.get_pareto_frontier(use_model_predictions=False))}"


@cell(SEVERAL, "BoTorch")
def _():
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement

    return f"{qLogNoisyExpectedHypervolumeImprovement.__name__}, in a loop of your own"


@cell(SEVERAL, "scipy")
def _():
    try:
        return str(optimize.minimize(lambda x: (x[0], x[1]), [0.5, 0.5]).fun)
    except Exception as error:
        return f"refused: {type(error).__name__}"


@cell(SEVERAL, "pymanopt")
def _():
    try:
        return str(pymanopt.optimizers.SteepestDescent(verbosity=0).run(problem(lambda x: (x[0], x[1]))).cost)
    except Exception as error:
        return f"refused: {type(error).__name__}"


TOTAL = "a total that a second run respects"


@cell(TOTAL, "nestbo")
def _():
    for _ in range(2):
        with study(store="total.db") as made:
            count = len(made.run(bowl, budget=3, progress=False))
    return f"{count} after two runs of budget=3"


@cell(TOTAL, "Optuna")
def _():
    for _ in range(2):
        made = optuna.create_study(study_name="s", storage="sqlite:///total-optuna.db", load_if_exists=True)
        made.optimize(numbers, n_trials=3)
    plain = len(made.trials)
    made.optimize(numbers, n_trials=3, callbacks=[optuna.study.MaxTrialsCallback(6)])
    return f"{plain} after two runs of n_trials=3; MaxTrialsCallback(6) then leaves {len(made.trials)}"


@cell(TOTAL, "Ax")
def _():
    made, seen = automatic()
    for _ in range(2):
        made.run_trials(max_trials=3)
    return f"{len(seen)} after two runs of max_trials=3"


STOP = "what ends a run"


@cell(STOP, "nestbo")
def _():
    rules = [nb.stop.After(60), nb.stop.Target(0.5), nb.stop.Stalled(30)]
    return study().run(bowl, 50, stop=rules, progress=False).stopped


@cell(STOP, "Optuna")
def _():
    made = optuna.create_study()
    made.optimize(numbers, n_trials=50, timeout=60, callbacks=[lambda s, t: s.stop() if s.best_value < 0.5 else None])
    from optuna.terminator import TerminatorCallback

    return f"timeout; study.stop() in a callback, after {len(made.trials)}; {TerminatorCallback.__name__}"


@cell(STOP, "Ax")
def _():
    from ax.global_stopping.strategies.improvement import ImprovementGlobalStoppingStrategy

    rule = ImprovementGlobalStoppingStrategy(min_trials=2)
    return (
        f"run_trials(global_stopping_strategy=…) {tried(automatic()[0].run_trials, 2, global_stopping_strategy=rule)}"
    )


@cell(STOP, "scipy")
def _():
    def enough(intermediate_result):
        if intermediate_result.fun < 0.1:
            raise StopIteration

    found = optimize.minimize(lambda x: x @ x, [0.9, 0.9], callback=enough)
    return f"StopIteration in a callback: {found.message}"


@cell(STOP, "pymanopt")
def _():
    said = []
    for rule in ({"max_iterations": 1}, {"max_time": 0}, {"max_cost_evaluations": 1}, {"min_gradient_norm": 10}):
        found = pymanopt.optimizers.SteepestDescent(verbosity=0, **rule).run(problem())
        said.append(found.stopping_criterion.split(";")[0].split(".")[0][:60])
    return " | ".join(said)


CALL = "calling back"


@cell(CALL, "nestbo")
def _():
    heard = []
    study().run(bowl, 2, callbacks=[lambda study, trial: heard.append(trial.index)], progress=False)
    return f"heard {heard}"


@cell(CALL, "Optuna")
def _():
    made, heard = optuna.create_study(), []
    made.optimize(numbers, n_trials=2, callbacks=[lambda study, trial: heard.append(trial.number)])
    return f"heard {heard}"


@cell(CALL, "Ax")
def _():
    return f"run_trials(callbacks=…) {tried(automatic()[0].run_trials, 2, callbacks=[print])}"


@cell(CALL, "scipy")
def _():
    heard = []
    optimize.minimize(lambda x: x @ x, [0.9, 0.9], callback=heard.append)
    return f"heard {len(heard)}, per iteration"


@cell(CALL, "pymanopt")
def _():
    return f"run(callback=…) {tried(pymanopt.optimizers.SteepestDescent(verbosity=0).run, problem(), callback=print)}"


QUEUE = "a point of your own first"


@cell(QUEUE, "nestbo")
def _():
    made = study()
    made.enqueue([0.5, 0.5])
    return str(made.ask().x.tolist())


@cell(QUEUE, "Optuna")
def _():
    made = optuna.create_study()
    made.enqueue_trial({"a": 0.5, "b": 0.5})
    made.optimize(numbers, n_trials=1)
    return str(made.trials[0].params)


@cell(QUEUE, "Ax")
def _():
    return f"attach_trial gives {client().attach_trial({'a': 0.5, 'b': 0.5})}"


SHELF = "the best of a list"


@cell(SHELF, "nestbo")
def _():
    made = nb.Study(nb.Box([0, 0], [1, 1]), nb.GaBO(initial=3)).run(bowl, 4, progress=False)
    return str(made.ask(among=[[0.1, 0.1], [0.9, 0.9]]).x.tolist())


@cell(SHELF, "Optuna")
def _():
    return f"ask(among=…) {tried(optuna.create_study().ask, among=[{'a': 0.1}, {'a': 0.9}])}"


@cell(SHELF, "Ax")
def _():
    return f"get_next_trials(among=…) {tried(client().get_next_trials, max_trials=1, among=[{'a': 0.1, 'b': 0.1}])}"


@cell(SHELF, "BoTorch")
def _():
    from botorch.acquisition import LogExpectedImprovement
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf_discrete

    x = torch.rand(5, 2, dtype=torch.float64)
    gain = LogExpectedImprovement(SingleTaskGP(x, -x.sum(-1, keepdim=True)), best_f=0.0)
    return f"optimize_acqf_discrete: {optimize_acqf_discrete(gain, 1, torch.rand(4, 2, dtype=torch.float64))[0].shape}"


MEND = "mend a told value"


@cell(MEND, "nestbo")
def _():
    made = study().run(bowl, 1, progress=False)
    return f"{made.correct(0, 2.0).told.corrected} kept; discarded: {made.discard(0).state}"


@cell(MEND, "Optuna")
def _():
    made = optuna.create_study()
    made.optimize(numbers, n_trials=1)
    try:
        made.tell(0, 2.0)
        return "told again"
    except Exception as error:
        return f"refused: {type(error).__name__}: {str(error)[:60]}"


@cell(MEND, "Ax")
def _():
    made = evaluated(client(), 1)
    try:
        made.attach_data(0, raw_data={"loss": 2.0})
        frame = made.summarize()
        return f"attach_data replaces it: {frame['loss'].tolist()}; abandon: {hasattr(made, 'mark_trial_abandoned')}"
    except Exception as error:
        return f"refused: {type(error).__name__}: {str(error)[:60]}"


NOTE = "a note with a trial"


@cell(NOTE, "nestbo")
def _():
    made = study()
    return made.tell(made.ask(), 1.0, note="gripper slipped").told.note


@cell(NOTE, "Optuna")
def _():
    made = optuna.create_study()
    trial = made.ask()
    trial.set_user_attr("note", "gripper slipped")
    return f"user_attrs: {trial.user_attrs}"


@cell(NOTE, "Ax")
def _():
    made = client()
    index = made.attach_trial({"a": 0.5, "b": 0.5})
    said = tried(made.complete_trial, index, raw_data={"loss": 0.5}, note="gripper slipped")
    return f"complete_trial(note=…) {said}"


FAIL = "an objective that raises"


def raising(*_):
    raise ValueError("typo")


@cell(FAIL, "nestbo")
def _():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            study().run(raising, 20, progress=False)
        except nb.ObjectiveError as error:
            return f"{len(said)} warning, then {str(error)[:70]}"
    return "ran on"


@cell(FAIL, "Optuna")
def _():
    made = optuna.create_study()
    try:
        made.optimize(raising, n_trials=20)
    except ValueError:
        first = f"raised at trial {len(made.trials)}"
    made.optimize(raising, n_trials=20, catch=(ValueError,))
    return f"{first}; with catch, {len(made.trials)} recorded as failed, a log line for each"


@cell(FAIL, "Ax")
def _():
    return f"the loop is yours; mark_trial_failed: {hasattr(Client, 'mark_trial_failed')}"


@cell(FAIL, "scipy")
def _():
    try:
        optimize.minimize(raising, [0.0, 0.0])
    except ValueError:
        return "raised, and all evaluations are lost"
    return "ran on"


@cell(FAIL, "pymanopt")
def _():
    try:
        pymanopt.optimizers.SteepestDescent(verbosity=0).run(problem(raising))
    except ValueError:
        return "raised, and all evaluations are lost"
    return "ran on"


INTERRUPT = "Ctrl-C"


def interrupting(after):
    count = iter(range(100))

    def f(*arguments):
        if next(count) == after:
            raise KeyboardInterrupt
        return numbers(*arguments) if isinstance(arguments[0], optuna.Trial) else float(np.asarray(arguments[0]).sum())

    return f


@cell(INTERRUPT, "nestbo")
def _():
    made = study()
    with contextlib.suppress(KeyboardInterrupt):
        made.run(interrupting(3), 9, progress=False)
    left = [trial.status for trial in made]
    made.run(bowl, 1, progress=False)
    return f"{left}, raised; the next run: {[trial.status for trial in made]}"


@cell(INTERRUPT, "Optuna")
def _():
    made = optuna.create_study()
    with contextlib.suppress(KeyboardInterrupt):
        made.optimize(interrupting(3), n_trials=9)
    left = [trial.state.name for trial in made.trials]
    made.optimize(numbers, n_trials=1)
    return f"{left}, raised; the next run: {[trial.state.name for trial in made.trials]}"


@cell(INTERRUPT, "scipy")
def _():
    try:
        optimize.minimize(interrupting(3), [0.5, 0.5])
    except KeyboardInterrupt:
        return "raised, and all evaluations are lost"
    return "ran on"


@cell(INTERRUPT, "pymanopt")
def _():
    try:
        pymanopt.optimizers.NelderMead(verbosity=0).run(problem(interrupting(3)))
    except KeyboardInterrupt:
        return "raised, and all evaluations are lost"
    return "ran on"


RESUME = "killed and loaded again: the same suggestions"


def continued(body, name):
    """Whether six trials are the same in two processes, and in one that ends after three and another that goes on."""
    ends = []
    for k, parts in enumerate(([6], [6], [3, 3])):
        for count in parts:
            code = body.format(path=f"{name}-{k}", count=count)
            done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
        ends.append(done.stdout or done.stderr[-200:])
    again, resumed = ("the same" if end == ends[0] else "others" for end in ends[1:])
    return f"straight again: {again}; resumed: {resumed}"


@cell(RESUME, "nestbo")
def _():
    return continued(
        """
import nestbo as nb
s = nb.Study(nb.Box([0, 0], [1, 1]), nb.GaBO(initial=2), seed=0, store="{path}.db")
s.run(lambda x: float(x[0] ** 2 + x[1]), {count}, progress=False)
print([t.x.tolist() for t in s])
""",
        "nestbo",
    )


@cell(RESUME, "Optuna")
def _():
    return continued(
        """
import optuna
optuna.logging.disable_default_handler()
s = optuna.create_study(study_name="s", storage="sqlite:///{path}.db", load_if_exists=True,
                        sampler=optuna.samplers.TPESampler(seed=0))
s.optimize(lambda t: t.suggest_float("a", 0, 1) ** 2 + t.suggest_float("b", 0, 1), n_trials={count})
print([t.params for t in s.trials])
""",
        "optuna",
    )


@cell(RESUME, "Ax")
def _():
    return continued(
        """
import os, logging
logging.disable(50)
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
if os.path.exists("{path}.json"):
    c = Client.load_from_json_file("{path}.json")
else:
    c = Client(random_seed=0)
    c.configure_experiment([RangeParameterConfig(name=n, parameter_type="float", bounds=(0.0, 1.0)) for n in "ab"])
    c.configure_optimization(objective="-loss")
for _ in range({count}):
    for i, x in c.get_next_trials(max_trials=1).items():
        c.complete_trial(i, raw_data={{"loss": x["a"] ** 2 + x["b"]}})
c.save_to_json_file("{path}.json")
print(c.summarize()[["a", "b"]].to_numpy().tolist())
""",
        "ax",
    )


FRAME = "a table of pandas; a table in a notebook"


@cell(FRAME, "nestbo")
def _():
    made = study().run(bowl, 2, progress=False)
    return f"to_dataframe {made.to_dataframe().shape}; _repr_html_: {'_repr_html_' in dir(made)}"


@cell(FRAME, "Optuna")
def _():
    made = optuna.create_study()
    made.optimize(numbers, n_trials=2)
    return f"trials_dataframe {made.trials_dataframe().shape}; _repr_html_: {'_repr_html_' in dir(made)}"


@cell(FRAME, "Ax")
def _():
    made = evaluated(client(), 2)
    return f"summarize {made.summarize().shape}; _repr_html_: {'_repr_html_' in dir(made)}"


@cell(FRAME, "scipy")
def _():
    found = optimize.minimize(lambda x: x @ x, [0.9, 0.9])
    return f"evaluations in the result: {[k for k in found if 'hist' in k]}; _repr_html_: {'_repr_html_' in dir(found)}"


TYPES = "types"


for _tool, _package in zip(TOOLS, ("nestbo", "optuna", "ax", "botorch", "scipy", "pymanopt"), strict=True):

    @cell(TYPES, _tool)
    def _(package=_package):
        folder = Path(next(iter(importlib.util.find_spec(package).submodule_search_locations)))
        return f"py.typed: {(folder / 'py.typed').exists()}"


IMPORTANCE = "which parameter matters"


@cell(IMPORTANCE, "nestbo")
def _():
    made = nb.Study(nb.Box([0, 0], [1, 1]), nb.GaBO(initial=3)).run(bowl, 6, progress=False)
    return f"{type(nb.plots.importance(made)).__name__} of nb.plots.importance"


@cell(IMPORTANCE, "Optuna")
def _():
    made = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    made.optimize(numbers, n_trials=10)
    return str(optuna.importance.get_param_importances(made))


@cell(IMPORTANCE, "Ax")
def _():
    from ax.analysis.plotly.sensitivity import SensitivityAnalysisPlot

    (found,) = evaluated(client(), 8).compute_analyses([SensitivityAnalysisPlot()], display=False)
    return f"{type(found).__name__}: {str(found.title)[:60]}"


TRUST = "under noise, the point to rely on"


@cell(TRUST, "nestbo")
def _():
    rng = np.random.default_rng(0)
    made = nb.Study(nb.Box([0, 0], [1, 1]), nb.GaBO(initial=3), noise=0.04)
    made.run(lambda x: bowl(x) + 0.2 * rng.standard_normal(), 6, progress=False)
    return f"recommend(): trial {made.recommend().index}, luckiest: trial {made.best.index}"


@cell(TRUST, "Optuna")
def _():
    rng, made = np.random.default_rng(0), optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    made.optimize(lambda trial: numbers(trial) + 0.2 * rng.standard_normal(), n_trials=6)
    luckiest = min(made.trials, key=lambda trial: trial.value).number
    return f"best_trial: {made.best_trial.number}, luckiest: {luckiest}; {[n for n in dir(made) if 'best' in n]}"


@cell(TRUST, "Ax")
def _():
    made = evaluated(client(), 6)
    found = made.get_best_parameterization(use_model_predictions=True)[0]
    return f"get_best_parameterization(use_model_predictions=True): {found}"


SERVER = "a database server"


@cell(SERVER, "nestbo")
def _():
    return "through Optuna's storage: tests/test_postgres.py"


@cell(SERVER, "Optuna")
def _():
    return "RDBStorage: tests/test_postgres.py"


@cell(SERVER, "Ax")
def _():
    from ax.api.configs import StorageConfig
    from ax.storage.sqa_store.db import create_all_tables, get_engine, init_engine_and_session_factory

    init_engine_and_session_factory(url="sqlite:///ax.db")
    create_all_tables(get_engine())
    storage = StorageConfig(url="sqlite:///ax.db")
    made = Client(random_seed=0, storage_config=storage)
    made.configure_experiment([RangeParameterConfig(name="a", parameter_type="float", bounds=(0.0, 1.0))], name="kept")
    made.configure_optimization(objective="-loss")
    made.complete_trial(made.attach_trial({"a": 0.5}), raw_data={"loss": 0.5})
    loaded = Client.load_from_database("kept", storage_config=storage)
    return f"SQLite through its SQL storage: {len(loaded.summarize())} trial after loading"


def main():
    versions = [f"{package} {metadata.version(package)}" for package in PACKAGES]
    print(", ".join(versions), f"Python {sys.version.split()[0]}")
    row = None
    for name, tool, attempt in CELLS:
        if name != row:
            print(f"\n{name}")
            row = name
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                came = attempt()
        except Exception as error:
            came = f"raised {type(error).__name__}: {str(error)[:120]}"
        print(f"  {tool:9} {came}", flush=True)


if __name__ == "__main__":
    main()
