"""How much sooner the closure of nestbo.experiment.rivals.density gives what BoTorch's own gives.

python benchmarks/density.py        # one thread, a few seconds; prints a table
"""

import time

import torch
from botorch.optim.closures import get_loss_closure_with_grads
from botorch.optim.utils import get_parameters
from gpytorch.mlls import ExactMarginalLogLikelihood

import nestbo as nb
from nestbo.experiment.rivals import natural
from nestbo.experiment.rivals.density import density
from nestbo.experiment.rivals.stock import MODELS
from nestbo.experiment.rivals.stock import _model as stock_model

REPEATS = 200


def milliseconds(closure):
    """Of one call, the mean of many."""
    closure()
    began = time.perf_counter()
    for _ in range(REPEATS):
        closure()
    return 1000 * (time.perf_counter() - began) / REPEATS


def closures(model, n):
    """BoTorch's and ours, for n random points of S^50."""
    space = nb.Sphere(50)
    u = natural(space).coordinates(space.random(n, rng=torch.Generator().manual_seed(0)))
    made = stock_model(model, u, u.square().sum(-1).sin())
    mll = ExactMarginalLogLikelihood(made.likelihood, made).train()
    return get_loss_closure_with_grads(mll, get_parameters(mll, requires_grad=True)), density(mll)


if __name__ == "__main__":
    torch.set_num_threads(1)
    print("| model | points | BoTorch, ms | ours, ms | ratio |\n|---|--:|--:|--:|--:|")
    for model in MODELS:
        for n in (50, 105, 205):
            theirs, ours = (milliseconds(closure) for closure in closures(model, n))
            print(f"| {model} | {n} | {theirs:.2f} | {ours:.2f} | {theirs / ours:.1f} |")
