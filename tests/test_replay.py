"""What makes iterations that a GPU can replay; the replay itself is tested where there is a GPU (test_gpu.py)."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from nestbo import SPD, HDGaBO, Sphere, linalg, problem
from nestbo.linalg.frames import _gram_schmidt
from nestbo.linalg.jacobi import jacobi
from nestbo.memory import Memory
from nestbo.optimise import lbfgs
from nestbo.optimise.lbfgs import _Problem
from nestbo.optimise.state import State
from nestbo.strategies import Runs

WAITS = {
    "aten._local_scalar_dense.default",
    "aten._linalg_check_errors.default",
    "aten._linalg_svd.default",
    "aten._unique2.default",
    "aten.equal.default",
    "aten.linalg_qr.default",
    "aten.masked_select.default",
    "aten.nonzero.default",
    "aten.repeat_interleave.Tensor",
}
SOLVED_OTHERWISE = 4  # the size of matrices whose eigenvalues a GPU need not be waited for


class Waiting(TorchDispatchMode):
    """Notes the operations whose result a host would have to wait for on a GPU."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        name = str(function)
        masked = name.startswith("aten.index") and any(
            isinstance(index, torch.Tensor) and index.dtype == torch.bool
            for index in (arguments[1] if isinstance(arguments[1], list | tuple) else ())
        )
        large = name == "aten._linalg_eigh.default" and arguments[0].shape[-1] > SOLVED_OTHERWISE
        if name in WAITS or masked or large:
            self.found.append(name)
        return function(*arguments, **(options or {}))


@pytest.mark.parametrize("method", [HDGaBO(2), HDGaBO(2, metric="isotropic"), HDGaBO.paper(2)], ids=repr)
@pytest.mark.parametrize("space", [Sphere(6), SPD(4, eigenvalues=(0.1, 5.0))], ids=str)
def test_no_iteration_waits_for_its_results(space, method, monkeypatch):
    waiting, steps, step = Waiting(), [], _Problem.step

    def watched(self, state):
        steps.append(state)
        with waiting:
            return step(self, state)

    monkeypatch.setattr(_Problem, "step", watched)
    x = torch.stack([space.random(8, rng=torch.Generator().manual_seed(s)) for s in range(2)])
    rngs = [torch.Generator().manual_seed(s) for s in range(2)]
    y = problem("rosenbrock", space, latent_dim=2, seed=0).objective(x)
    method.propose(space, Runs(x, y, x[:, :0], rngs, [[Memory()] * 8 for _ in range(2)]))
    assert len(steps) > 5
    assert waiting.found == []


ONES = torch.ones(5, 5, dtype=torch.float64)


@pytest.mark.parametrize(
    "waiting",
    [
        lambda: bool(ONES.sum() > 0),
        lambda: ONES[ONES > 0],
        lambda: ONES.clone().__setitem__(ONES > 0, ONES[0, 0]),
        lambda: torch.unique(ONES),
        lambda: torch.linalg.eigh(ONES),
        lambda: torch.linalg.cholesky(ONES + torch.eye(5)),
    ],
    ids=["bool", "mask", "masked assignment", "unique", "eigh", "cholesky"],
)
def test_waiting_is_noticed(waiting):
    with Waiting() as mode:
        waiting()
    assert mode.found


def test_a_state_is_overwritten_by_another():
    def state(value):
        full = torch.full((2, 3), value)
        return State(torch.arange(2), *[full.clone() for _ in range(6)], (full.clone(),), (full.clone(), full.clone()))

    old, new = state(0.0), state(1.0)
    x, memory = old.x, old.memory[1]
    old.overwrite(new)
    assert (x == 1).all()
    assert (memory == 1).all()
    assert old.x is x


@pytest.mark.parametrize("shape", [(4, 3, 3), (2, 51, 6), (7, 1)], ids=str)
def test_gram_schmidt_is_the_qr_factor(shape):
    a = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(_gram_schmidt(a), linalg.orthonormal(a), rtol=0, atol=1e-13)
    assert _gram_schmidt(torch.zeros_like(a)).isfinite().all()


def test_steady_changes_nothing_where_there_is_no_gpu():
    start = Sphere(4).random(3, rng=torch.Generator().manual_seed(0))
    one, two = (lbfgs(lambda x: x[..., 0] ** 2 + x[..., 1], Sphere(4), start, steady=s) for s in (False, True))
    assert torch.equal(one.point, two.point)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_jacobi_agrees_with_lapack(n):
    rng = torch.Generator().manual_seed(n)
    a = linalg.sym(torch.randn(500, n, n, generator=rng, dtype=torch.float64))
    near = torch.eye(n, dtype=torch.float64) + 1e-9 * a
    graded = torch.logspace(0, -8, n, dtype=torch.float64)
    for matrices in (a, a @ a, near, torch.zeros_like(a), 1e150 * a, 1e-150 * a, graded[:, None] * a * graded):
        values, vectors = jacobi(matrices.reshape(5, 100, n, n))
        size = matrices.abs().amax((-1, -2)).clamp(min=1e-300)[:, None]
        expected = torch.linalg.eigvalsh(matrices)
        assert ((values.reshape(500, n) - expected).abs() <= 1e-13 * size).all()
        assert (values.diff(dim=-1) >= 0).all()
        eye = torch.eye(n, dtype=torch.float64).expand(5, 100, n, n)
        torch.testing.assert_close(vectors.mT @ vectors, eye, rtol=0, atol=1e-13)
        restored = linalg.spectral(values, vectors).reshape(500, n, n)
        assert ((restored - matrices).abs() <= 1e-13 * size[..., None]).all()
