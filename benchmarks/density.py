"""How much sooner two closed forms give what BoTorch gives: a step of a fit, and a step of a search for the best LogEI.

python benchmarks/density.py        # one thread, a few seconds; prints a table
"""

import time

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.optim.closures import get_loss_closure_with_grads
from botorch.optim.utils import get_parameters
from gpytorch.mlls import ExactMarginalLogLikelihood

import nestbo as nb
from nestbo.experiment.rivals import natural
from nestbo.experiment.rivals.density import density
from nestbo.experiment.rivals.posterior import Posterior
from nestbo.experiment.rivals.stock import MODELS, process

REPEATS = 200


def milliseconds(closure):
    """Of one call, the mean of many."""
    closure()
    began = time.perf_counter()
    for _ in range(REPEATS):
        closure()
    return 1000 * (time.perf_counter() - began) / REPEATS


def fitted(name, n):
    """A model of n random points of S^50, at the parameters that a fit begins with."""
    space = nb.Sphere(50)
    u = natural(space).coordinates(space.random(n, rng=torch.Generator().manual_seed(0)))
    return process(name, u, u.square().sum(-1).sin())


def fits(model):
    """Minus the log density and its gradient: BoTorch's closure and ours."""
    mll = ExactMarginalLogLikelihood(model.likelihood, model).train()
    return get_loss_closure_with_grads(mll, get_parameters(mll, requires_grad=True)), density(mll)


def searches(model):
    """LogEI and its gradient at five points: BoTorch's posterior and ours."""
    model.eval()
    starts = torch.rand(5, 1, model.train_inputs[0].shape[-1], dtype=torch.float64)

    def climb(posterior):
        acquisition = LogExpectedImprovement(posterior, best_f=0.0)
        at = starts.clone().requires_grad_()
        return lambda: torch.autograd.grad(acquisition(at).sum(), at)

    return climb(model), climb(Posterior(model))


if __name__ == "__main__":
    torch.set_num_threads(1)
    print("| step of a | model | points | BoTorch, ms | ours, ms | ratio |\n|---|---|--:|--:|--:|--:|")
    for title, pair in (("fit", fits), ("search", searches)):
        for name in MODELS:
            for n in (50, 105, 205):
                theirs, ours = (milliseconds(step) for step in pair(fitted(name, n)))
                print(f"| {title} | {name} | {n} | {theirs:.2f} | {ours:.2f} | {theirs / ours:.1f} |")
