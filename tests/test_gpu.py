"""The same computations on a GPU; skipped where there is none."""

import pytest
import torch

from nestbo import SPD, GaBO, HDGaBO, Sphere, linalg, problem
from nestbo.experiment import Trials, run
from nestbo.kernels import kernel
from nestbo.memory import Fit, Memory
from nestbo.optimise import lbfgs
from nestbo.strategies import Runs
from nestbo.surrogate import Description, fit

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
SPACES = [Sphere(8), SPD(4, eigenvalues=(0.1, 5.0))]


def runs_on(device, space, objective):
    x = torch.stack([space.random(9, rng=torch.Generator().manual_seed(s)) for s in range(3)])
    rngs = [torch.Generator(device=device).manual_seed(s) for s in range(3)]
    y = objective(x)
    return Runs(x.to(device), y.to(device), x[:, :0].to(device), rngs, [[Memory()] * 9 for _ in range(3)])


@pytest.mark.parametrize("method", [GaBO(), HDGaBO(2), HDGaBO.paper(2)], ids=repr)
@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_suggestions_are_made_where_the_data_are(space, method):
    """Random numbers differ from those of a CPU, so that points differ; they are as valid."""
    hidden = problem("rosenbrock", space, latent_dim=2, seed=0)
    x, memories = method.propose(space, runs_on("cuda", space, hidden.objective))
    assert x.device.type == "cuda"
    space.check(x, 1e-9)
    assert len(memories) == 3


def test_an_experiment_runs_there(tmp_path):
    trials = Trials("ackley", "sphere:8", "hdgabo:latent_dim=2", (0, 1, 2), 2)
    state = run(trials, 12, tmp_path / trials.name, device="cuda", report=lambda line: None)
    assert state.y.shape == (3, 12)
    assert (state.y.amin(1) < state.y[:, :5].amin(1)).any()


def minimised(f, steady):
    start = Sphere(9).random(4, 8, rng=torch.Generator().manual_seed(0)).to("cuda")
    towards = torch.arange(40, dtype=torch.float64, device="cuda").reshape(4, 10) / 20
    return lbfgs(f, Sphere(9), start, data=(towards,), tolerance=1e-8, max_iterations=60, steady=steady)


def test_replayed_iterations_are_the_same():
    def f(x, towards):
        return (x * towards.unsqueeze(1)).sum(-1).cos() + x[..., 0] ** 4

    plain, steady = minimised(f, False), minimised(f, True)
    assert (plain.reason == "converged").sum() > 16
    torch.testing.assert_close(steady.value, plain.value, rtol=0, atol=1e-9)
    assert (steady.iterations == plain.iterations).float().mean() > 0.9


def test_functions_that_wait_for_the_gpu_are_not_replayed():
    calls = []

    def f(x, towards):
        calls.append(float(x.detach().sum()))
        return (x * towards.unsqueeze(1)).sum(-1)

    found = minimised(f, True)
    assert len(calls) > found.iterations.max() >= 3
    torch.zeros(2, device="cuda").normal_()  # nothing is left in the middle of a capture


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_eigenvalues_of_many_matrices(n):
    a = linalg.sym(torch.randn(3, 3000, n, n, generator=torch.Generator().manual_seed(n), dtype=torch.float64))
    values, vectors = linalg.eigh(a.to("cuda"))
    torch.testing.assert_close(values.cpu(), torch.linalg.eigvalsh(a), rtol=0, atol=1e-12)
    torch.testing.assert_close(linalg.spectral(values, vectors).cpu(), a, rtol=0, atol=1e-12)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_fits_agree_with_those_of_a_cpu(space):
    hidden, on = problem("rosenbrock", space, latent_dim=2, seed=0), kernel("matern52", space)
    losses = []
    for device in ("cpu", "cuda"):
        runs = runs_on(device, space, hidden.objective)
        previous = [Fit((0.0, -5.0), 9)] * 3
        losses.append(fit(Description(on), runs.data, previous).loss.cpu())
    torch.testing.assert_close(*losses, rtol=0, atol=1e-6)
