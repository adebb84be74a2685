"""The optimisers against pymanopt's trust regions, on one thread, as a page in Markdown.

Three smooth problems are solved from the same batch of starts by nestbo, all at once, and by pymanopt, one after the
other, with gradients and Hessians from torch and with hand-written ones in numpy. Three constrained problems with known
solutions compare nestbo's own methods.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pymanopt
import pymanopt.manifolds
import torch
from numpy import ndarray
from threadpoolctl import threadpool_limits
from torch import Tensor

from nestbo import SPD, Grassmann, Manifold, Sphere, linalg
from nestbo.optimise import augmented_lagrangian, exact_penalty, lbfgs, trust_region

TOLERANCE = 1e-6


class Case(ABC):
    """A problem in nestbo's terms (batched) and in pymanopt's (one point, with derivatives by hand)."""

    name: str
    manifold: Manifold
    theirs: Any

    closed: dict[str, Callable[..., Tensor]] = {}  # noqa: RUF012 (derivatives in closed form, where nestbo is given any)

    @abstractmethod
    def f(self, x: Tensor) -> Tensor: ...
    @abstractmethod
    def single(self, x: Tensor) -> Tensor: ...
    @abstractmethod
    def cost(self, x: ndarray) -> float: ...
    @abstractmethod
    def gradient(self, x: ndarray) -> ndarray: ...
    @abstractmethod
    def hessian(self, x: ndarray, v: ndarray) -> ndarray: ...

    def by_torch(self) -> pymanopt.Problem:
        cost = pymanopt.function.pytorch(self.theirs)(lambda x: self.single(x))
        return pymanopt.Problem(self.theirs, cost)

    def by_hand(self) -> pymanopt.Problem:
        wrap = pymanopt.function.numpy(self.theirs)
        cost, gradient = wrap(lambda x: self.cost(x)), wrap(lambda x: self.gradient(x))
        hessian = wrap(lambda x, v: self.hessian(x, v))
        return pymanopt.Problem(self.theirs, cost, riemannian_gradient=gradient, riemannian_hessian=hessian)


class Quadratic(Case):
    """½-free quadratic tr(xᵀ a x), whose Riemannian derivatives pymanopt converts from Euclidean ones."""

    def __init__(self, a: Tensor) -> None:
        self.a, self.array = a, a.numpy()
        self.closed = {"gradient": lambda x: 2 * self._times(x), "hessian": lambda x, v: 2 * self._times(v)}

    def _times(self, x: Tensor) -> Tensor:
        """a x for points that are vectors or frames."""
        return x @ self.a if len(self.manifold.point_shape) == 1 else self.a @ x

    def single(self, x: Tensor) -> Tensor:
        return (x * (self.a @ x)).sum()

    def cost(self, x: ndarray) -> float:
        return float((x * (self.array @ x)).sum())

    def gradient(self, x: ndarray) -> ndarray:
        return self.theirs.euclidean_to_riemannian_gradient(x, 2 * self.array @ x)

    def hessian(self, x: ndarray, v: ndarray) -> ndarray:
        return self.theirs.euclidean_to_riemannian_hessian(x, 2 * self.array @ x, 2 * self.array @ v, v)


class Rayleigh(Quadratic):
    name, manifold, theirs = "Rayleigh quotient, S^200", Sphere(200), pymanopt.manifolds.Sphere(201)

    def __init__(self, rng: torch.Generator) -> None:
        super().__init__(linalg.sym(torch.randn(201, 201, generator=rng, dtype=torch.float64)))

    def f(self, x: Tensor) -> Tensor:
        return ((x @ self.a) * x).sum(-1)


class Subspace(Quadratic):
    name, manifold, theirs = "dominant subspace, Gr(50, 5)", Grassmann(50, 5), pymanopt.manifolds.Grassmann(50, 5)

    def __init__(self, rng: torch.Generator) -> None:
        root = torch.randn(50, 50, generator=rng, dtype=torch.float64)
        super().__init__(-root @ root.mT)

    def f(self, x: Tensor) -> Tensor:
        return (x * (self.a @ x)).sum((-1, -2))


class Karcher(Case):
    name, manifold = "Karcher mean of 20, SPD(10)", SPD(10)
    theirs = pymanopt.manifolds.SymmetricPositiveDefinite(10)

    def __init__(self, rng: torch.Generator) -> None:
        self.data = self.manifold.random(20, rng=rng)
        self.array = self.data.numpy()

    def f(self, x: Tensor) -> Tensor:
        return self.manifold.sq_dist(x.unsqueeze(-3), self.data).mean(-1) / 2

    def single(self, x: Tensor) -> Tensor:
        root = torch.linalg.cholesky(x)
        left = torch.linalg.solve_triangular(root, self.data, upper=False)
        ratio = torch.linalg.solve_triangular(root, left.mT, upper=False)
        return (torch.linalg.eigvalsh(linalg.sym(ratio)).log() ** 2).sum(-1).mean() / 2

    def _logs(self, x: ndarray) -> tuple[ndarray, ndarray, ndarray, ndarray]:
        """x^{½}, x^{-½} and the eigen-decompositions of log(x^{-½} a x^{-½})."""
        values, vectors = np.linalg.eigh(x)
        root, inverse = ((vectors * values**power) @ vectors.T for power in (0.5, -0.5))
        logs, turns = np.linalg.eigh(inverse @ self.array @ inverse)
        return root, inverse, np.log(logs), turns

    def cost(self, x: ndarray) -> float:
        return float((self._logs(x)[2] ** 2).sum(-1).mean() / 2)

    def gradient(self, x: ndarray) -> ndarray:
        root, _, logs, turns = self._logs(x)
        return -root @ ((turns * logs[:, None]) @ turns.mT).mean(0) @ root

    def hessian(self, x: ndarray, v: ndarray) -> ndarray:
        """The Hessian of ½d² multiplies entry (i, j) in the eigenbasis by (δ/2) coth(δ/2), δ = log λ_i − log λ_j."""
        root, inverse, logs, turns = self._logs(x)
        half = (logs[:, :, None] - logs[:, None, :]) / 2
        factor = np.where(np.abs(half) < 1e-8, 1, half / np.tanh(np.where(half == 0, 1, half)))
        inside = factor * (turns.mT @ (inverse @ v @ inverse) @ turns)
        return root @ (turns @ inside @ turns.mT).mean(0) @ root


@dataclass(frozen=True)
class Row:
    method: str
    calls: int
    seconds: float
    worst: float
    converged: int


def timed(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The median CPU time of some repeats after one to warm up, and the last result."""
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = work()
        times.append(time.process_time() - start)
    return statistics.median(times), result


def ours(method: str, optimise: Callable[..., Any], case: Case, start: Tensor, repeats: int) -> Row:
    seconds, result = timed(lambda: optimise(case.f, case.manifold, start, tolerance=TOLERANCE), repeats)
    norms = result.gradient_norm
    return Row(method, len(start), seconds, norms.max().item(), int((norms <= TOLERANCE).sum()))


def pymanopts(method: str, problem: pymanopt.Problem, starts: list[ndarray]) -> Row:
    """One call per start; where they stopped, the gradient is evaluated afresh."""
    optimizer = pymanopt.optimizers.TrustRegions(min_gradient_norm=TOLERANCE, verbosity=0, max_iterations=200)
    optimizer.run(problem, initial_point=starts[0])
    begin = time.process_time()
    points = [optimizer.run(problem, initial_point=start).point for start in starts]
    seconds = time.process_time() - begin
    norms = [problem.manifold.norm(x, problem.riemannian_gradient(x)) for x in points]
    return Row(method, len(starts), seconds, max(norms), sum(norm <= TOLERANCE for norm in norms))


def compare(case: Case, batch: int, repeats: int, rng: torch.Generator) -> list[Row]:
    start = case.manifold.random(batch, rng=rng)
    starts = list(start.numpy())
    by_hand = partial(trust_region, **case.closed)
    closed = [ours("nestbo trust region, closed form", by_hand, case, start, repeats)] if case.closed else []
    return [
        *closed,
        ours("nestbo trust region, exact Hessian", trust_region, case, start, repeats),
        ours("nestbo trust region, differences", partial(trust_region, hessian="differences"), case, start, repeats),
        ours("nestbo L-BFGS", lbfgs, case, start, repeats),
        pymanopts("pymanopt trust region, torch gradients", case.by_torch(), starts),
        pymanopts("pymanopt trust region, analytic", case.by_hand(), starts),
    ]


def unconstrained_table(batch: int, repeats: int, rng: torch.Generator) -> list[str]:
    lines = [
        "| problem | method | CPU time (s) | pymanopt torch / this | analytic / this | largest gradient | below 1e-6 |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for case in (Rayleigh(rng), Karcher(rng), Subspace(rng)):
        rows = compare(case, batch, repeats, rng)
        by_torch, by_hand = rows[-2:]
        for row in rows:
            ratios = f"{by_torch.seconds / row.seconds:.1f} | {by_hand.seconds / row.seconds:.1f}"
            accuracy = f"{row.worst:.1e} | {row.converged} of {row.calls}"
            lines.append(f"| {case.name} | {row.method} | {row.seconds:.2f} | {ratios} | {accuracy} |")
    return lines


@dataclass(frozen=True)
class Constrained:
    name: str
    manifold: Manifold
    f: Callable[[Tensor], Tensor]
    constraints: dict[str, Callable[[Tensor], Tensor]]
    start: Tensor
    solution: Tensor

    def violation(self, x: Tensor) -> float:
        parts = {"inequalities": lambda c: (-c).clamp(min=0), "equalities": torch.abs}
        return max(parts[kind](c(x)).max().item() for kind, c in self.constraints.items())


def cap(batch: int, rng: torch.Generator) -> Constrained:
    sphere, pole = Sphere(20), torch.eye(21, dtype=torch.float64)[0]
    slope = sphere.random(rng=rng)
    across = linalg.unit(sphere.to_tangent(pole, slope))
    poles = pole.expand(batch, 21)
    return Constrained(
        "linear function on a cap of S^20",
        sphere,
        lambda x: x @ slope,
        {"inequalities": lambda x: x @ pole - math.cos(0.7)},
        sphere.exp(poles, 0.4 * sphere.random_tangent(poles, rng)),
        math.cos(0.7) * pole - math.sin(0.7) * across,
    )


def orthant(batch: int, rng: torch.Generator) -> Constrained:
    sphere = Sphere(20)
    target = sphere.random(rng=rng)
    return Constrained(
        "nearest point of the positive orthant of S^20",
        sphere,
        lambda x: -x @ target,
        {"inequalities": lambda x: x},
        sphere.random(batch, rng=rng).abs(),
        linalg.unit(target.clamp(min=0)),
    )


def determinant(batch: int, rng: torch.Generator) -> Constrained:
    spd = SPD(5)
    target = spd.random(rng=rng)
    return Constrained(
        "nearest matrix of given determinant, SPD(5)",
        spd,
        lambda x: spd.sq_dist(x, target) / 2,
        {"equalities": lambda x: torch.logdet(x) - target.logdet() / 2 - 1},
        spd.random(batch, rng=rng),
        target * math.exp((1 - target.logdet().item() / 2) / 5),
    )


def constrained_table(batch: int, repeats: int, rng: torch.Generator) -> list[str]:
    lines = [
        "| problem | method | CPU time (s) | largest distance to the solution | largest violation | converged |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for case in (cap(batch, rng), orthant(batch, rng), determinant(batch, rng)):
        methods: dict[str, Callable[..., Any]] = {
            "augmented Lagrangian": partial(augmented_lagrangian, **case.constraints),
            "exact penalty": partial(exact_penalty, **case.constraints),
        }
        if "equalities" not in case.constraints:
            region = partial(trust_region, constraints=case.constraints["inequalities"])
            methods = {"constrained trust region": region, **methods}
        for name, method in methods.items():
            seconds, result = timed(partial(method, case.f, case.manifold, case.start), repeats)
            gap = case.manifold.dist(result.point, case.solution).max().item()
            lines.append(
                f"| {case.name} | {name} | {seconds:.2f} | {gap:.1e} | {case.violation(result.point):.1e} |"
                f" {(result.reason == 'converged').sum()} of {batch} |"
            )
    return lines


PAGE = """# Optimisers: speed and accuracy

Every method runs in one process on one thread, from the same {batch} random starts, to a gradient norm of 1e-6.
nestbo minimises from all starts at once; its time is for the whole batch, the median of {repeats} after a first run to
warm up. pymanopt minimises from one start per call; its time is the sum of its {batch} calls, after a first one to warm
up. Its cost function uses torch with automatic first and second derivatives, or numpy with both written by hand.
"Closed form" is nestbo with the gradient and the products of the Hessian written by hand
(`trust_region(f, space, start, gradient=…, hessian=…)`). Times are CPU times.

Machine: {cores} CPU cores, one thread used; torch {torch}, pymanopt {pymanopt}.

{unconstrained}

Ratios above 1 mean that the method is faster than pymanopt.

## Constraints

Three problems whose solutions are known in closed form and lie on the boundary. The constrained trust region takes
inequalities only, needs a feasible start and keeps every iterate feasible; the other two methods start anywhere and
satisfy constraints to within 1e-6.

{constrained}

Made by `python benchmarks/optimisers.py --out docs/optimisers.md`.
"""


def page(batch: int, repeats: int) -> str:
    rng = torch.Generator().manual_seed(0)
    return PAGE.format(
        batch=batch,
        repeats=repeats,
        cores=os.cpu_count(),
        torch=version("torch"),
        pymanopt=version("pymanopt"),
        unconstrained="\n".join(unconstrained_table(batch, repeats, rng)),
        constrained="\n".join(constrained_table(batch, repeats, rng)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the page here")
    parser.add_argument("--batch", type=int, default=32, help="number of starts")
    parser.add_argument("--repeats", type=int, default=3, help="timed repeats of each of nestbo's methods")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        text = page(options.batch, options.repeats)
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
