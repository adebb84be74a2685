"""The same computations on a GPU; skipped where there is none."""

import pytest
import torch

from nestbo import SPD, GaBO, HDGaBO, Sphere, problem
from nestbo.experiment import Trials, run
from nestbo.strategies import Runs

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
SPACES = [Sphere(8), SPD(4, eigenvalues=(0.1, 5.0))]


def runs_on(device, space, objective):
    x = torch.stack([space.random(9, rng=torch.Generator().manual_seed(s)) for s in range(3)])
    rngs = [torch.Generator(device=device).manual_seed(s) for s in range(3)]
    y = objective(x)
    return Runs(x.to(device), y.to(device), x[:, :0].to(device), rngs, [[{}] * 9 for _ in range(3)])


@pytest.mark.parametrize("method", [GaBO(), HDGaBO(2), HDGaBO.paper(2)], ids=repr)
@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_suggestions_are_made_where_the_data_are(space, method):
    """Random numbers differ from those of a CPU, so that points differ; they are as valid."""
    hidden = problem("rosenbrock", space, latent_dim=2, seed=0)
    x, notes = method.propose(space, runs_on("cuda", space, hidden.objective))
    assert x.device.type == "cuda"
    space.check(x, 1e-9)
    assert len(notes) == 3


def test_an_experiment_runs_there(tmp_path):
    trials = Trials("ackley", "sphere:8", "hdgabo:latent_dim=2", (0, 1, 2), 2)
    state = run(trials, 12, tmp_path / trials.name, device="cuda", report=lambda line: None)
    assert state.y.shape == (3, 12)
    assert (state.y.amin(1) < state.y[:, :5].amin(1)).any()
