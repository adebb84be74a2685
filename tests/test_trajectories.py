"""Suggestions stay what they were: methods against trajectories that an earlier version recorded.

Each suggestion is made from the recorded points and values before it, with the memory that the method itself made on
the way. A search amplifies rounding, so the tolerance is tight only on a processor that rounds as the recording one
did. ``python tests/test_trajectories.py NAME …`` records anew, with the code as it stands.
"""

import json
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

import nestbo as nb
from nestbo.constraints import Constraints
from nestbo.history import History, Trial

RECORDED = Path(__file__).parent / "golden" / "trajectories.json"
EQUAL = 1e-9  # of a coordinate, where processors round alike
SHORT = 10  # suggestions that are compared; with --full all that were recorded
LONG = ("hdgabo-sphere", "hdgabo-nested", "hdgabo-product", "gabo-together")  # change with more evaluations
ALIKE, MOST = 1e-3, 0.75  # elsewhere: so many of the suggestions agree so far

SPHERE, SMALL, MATRICES = nb.Sphere(3), nb.Sphere(2), nb.SPD(3, eigenvalues=(0.1, 5.0))
WIDE, LARGE = nb.Sphere(12), nb.SPD(4, eigenvalues=(0.1, 5.0))
BOTH = nb.Product(nb.Sphere(11), nb.SPD(2), nb.Box([0.0], [1.0]))
ISOTROPIC = nb.GaBO(metric="isotropic")


def hidden(name, space, d):
    return nb.problem(name, space, latent_dim=d, seed=1).objective


def mixed(x):
    direction, matrix, force = BOTH.split(x)
    return (direction[0] - 0.6) ** 2 + (matrix - torch.eye(2)).square().sum() + (force - 0.3).square().sum()


def failing(x):
    return None if x[0] > 0.5 else float((x[1] - 0.4) ** 2 + x[2])


def upper(x):
    return x[..., :1] - 0.2


# name: space, strategy, objective, evaluations, what else the suggestions are made from.
CONFIGURATIONS = {
    "gabo-sphere": (SPHERE, ISOTROPIC, hidden("ackley", SPHERE, None), 18, {}),
    "gabo-matrices": (MATRICES, ISOTROPIC, hidden("rosenbrock", MATRICES, None), 14, {}),
    "gabo-paper": (SMALL, nb.GaBO.paper(), hidden("ackley", SMALL, None), 10, {}),
    "gabo-noise": (SPHERE, ISOTROPIC, hidden("ackley", SPHERE, None), 12, {"noise": "infer"}),
    "gabo-known-noise": (SPHERE, ISOTROPIC, hidden("ackley", SPHERE, None), 12, {"noise": 0.01}),
    "gabo-known-constraints": (SPHERE, ISOTROPIC, lambda x: float(x[1]), 10, {"constraints": upper}),
    "gabo-observed-constraints": (SPHERE, ISOTROPIC, lambda x: float(x[1]), 12, {"observed": upper}),
    "gabo-together": (SPHERE, ISOTROPIC, hidden("ackley", SPHERE, None), 14, {"together": 3}),
    "gabo-failures": (SPHERE, nb.GaBO(outputs="bilog", metric="isotropic"), failing, 14, {}),
    "hdgabo-sphere": (nb.Sphere(24), nb.HDGaBO(), hidden("ackley", nb.Sphere(24), 2), 20, {"together": 2}),
    "hdgabo-matrices": (nb.SPD(7), nb.HDGaBO(), hidden("rosenbrock", nb.SPD(7), 2), 9, {}),
    "hdgabo-nested": (WIDE, nb.HDGaBO(2, metric="isotropic"), hidden("ackley", WIDE, 2), 14, {"noise": "infer"}),
    "hdgabo-observed": (
        LARGE,
        nb.HDGaBO(2, metric="isotropic"),
        lambda x: float(x[1, 1]),
        12,
        {"observed": lambda x: x[..., 0, :1] - 1},
    ),
    "hdgabo-product": (BOTH, nb.HDGaBO((2, None, None)), mixed, 14, {}),
    "hdgabo-paper-sphere": (nb.Sphere(4), nb.HDGaBO.paper(2), hidden("ackley", nb.Sphere(4), 2), 9, {}),
    "hdgabo-paper-matrices": (MATRICES, nb.HDGaBO.paper(2), hidden("rosenbrock", MATRICES, 2), 9, {}),
    "euclidean": (SPHERE, nb.EuclideanBO(), hidden("ackley", SPHERE, None), 10, {}),
    "cholesky": (MATRICES, nb.EuclideanBO(coordinates="cholesky"), hidden("rosenbrock", MATRICES, None), 10, {}),
    "dropout": (MATRICES, nb.DropoutBO(2), hidden("rosenbrock", MATRICES, None), 10, {}),
    "sir": (SPHERE, nb.SIRBO(2), hidden("ackley", SPHERE, None), 10, {}),
    "sir-space": (SPHERE, nb.SIRBO(2, "space"), hidden("ackley", SPHERE, None), 10, {"noise": "infer"}),
    "rembo": (SPHERE, nb.REMBO(2, 2), hidden("ackley", SPHERE, None), 14, {"together": 2}),
}


def observed(x, f, more):
    """What an evaluation gives: a value, None for a failure, and constraints, None for none."""
    value = f(x)
    rule = more.get("observed")
    return None if value is None else float(value), None if rule is None else rule(x).tolist()


def told(trial, value, constraints):
    facts = None if constraints is None else tuple(constraints)
    return trial.with_failure("no value") if value is None else trial.with_value(value, constraints=facts)


def generator(index):
    return torch.Generator().manual_seed(int(np.random.SeedSequence([3, index]).generate_state(1)[0]))


def rounding():
    """A checksum of sums, products, factors and functions, which differs where processors round differently."""
    x = torch.rand(60, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    gram = x @ x.mT + torch.eye(60, dtype=torch.float64)
    parts = (gram, torch.linalg.cholesky(gram), torch.linalg.eigh(gram).eigenvalues, gram.exp(), gram.sin(), x.sum(0))
    return zlib.crc32(b"".join(part.numpy().tobytes() for part in parts))


def trajectory(name, recorded=()):
    """Points suggested and what became of them; each from the evaluations before it, as far as they are recorded."""
    space, strategy, f, count, more = CONFIGURATIONS[name]
    count = len(recorded) or count
    allowed = None if "constraints" not in more else Constraints.of(more["constraints"], space)
    history, found = History(noise=more.get("noise")), []
    while len(found) < count:
        wanted = min(more.get("together", 1), count - len(found))
        made = strategy.suggest(space, history, wanted, generator(len(found)), constraints=allowed)
        for suggestion in made:
            index = len(found)
            x, *outcome = recorded[index] if recorded else (suggestion.x.tolist(), *observed(suggestion.x, f, more))
            found.append((suggestion.x.tolist(), *outcome))
            trial = Trial(index, torch.tensor(x, dtype=torch.float64), memory=suggestion.memory)
            history = history.add(told(trial, *outcome))
    return found


def points(found):
    return torch.tensor([x for x, *_ in found], dtype=torch.float64)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_suggestions_are_those_of_before(name, request):
    recorded = json.loads(RECORDED.read_text())
    wanted = recorded["trajectories"][name]
    if name not in LONG and not request.config.getoption("--full"):
        wanted = wanted[:SHORT]
    away = (points(trajectory(name, wanted)) - points(wanted)).flatten(1).abs().amax(-1)
    if rounding() == recorded["rounding"]:
        assert away.max() < EQUAL, f"the first other suggestion is {int((away >= EQUAL).nonzero()[0])}"
    else:
        assert (away < ALIKE).double().mean() >= MOST


if __name__ == "__main__":
    torch.set_num_threads(1)
    known = json.loads(RECORDED.read_text())["trajectories"] if RECORDED.exists() else {}
    made = {name: trajectory(name) for name in sys.argv[1:] or CONFIGURATIONS}
    kept = {name: found for name, found in (known | made).items() if name in CONFIGURATIONS}
    RECORDED.write_text(json.dumps({"rounding": rounding(), "trajectories": kept}) + "\n")
