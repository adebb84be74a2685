"""Three studies, from nothing to pictures: directions, stiffness matrices, and a function hidden in a larger sphere."""

from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

import nestbo as nb
from nestbo import plots

FOLDER = Path("demo")
KINDS = ("convergence", "surrogate", "predictions")


@dataclass(frozen=True)
class Demonstration:
    """A problem, a method, and the pictures to draw; ``name`` is that of the files."""

    name: str
    problem: nb.Problem
    strategy: nb.Strategy
    budget: int
    kinds: tuple[str, ...] = KINDS
    seed: int = 0


STEEP = nb.GaBO(outputs="bilog")  # tames values that rise steeply
DEMONSTRATIONS = (
    Demonstration("sphere", nb.problem("ackley", nb.Sphere(2)), STEEP, 25),
    Demonstration("spd", nb.problem("ackley", nb.SPD(3, eigenvalues=(0.001, 5.0))), STEEP, 40),
    # Of the seeds 0 to 5, five get below 0.15 (median 0.05, seed 3), and seed 0 stays in a local minimum at 2.6.
    Demonstration(
        "hidden",
        nb.problem("ackley", nb.Sphere(20), latent_dim=2, seed=0),
        nb.HDGaBO(),
        60,
        kinds=("convergence", "arms", "importance"),
        seed=3,
    ),
)


def optimise(case: Demonstration) -> nb.Study:
    """A new study; everything told is in its store at once, so that Ctrl-C loses nothing."""
    store = FOLDER / f"{case.name}.db"
    for old in FOLDER.glob(f"{store.name}*"):
        old.unlink()
    study = nb.Study(case.problem.space, case.strategy, seed=case.seed, store=store)
    return study.run(case.problem.objective, case.budget)


def by_chance(case: Demonstration, repeats: int = 100) -> float:
    """The best of as many random points, for comparison: the median of many repeats."""
    x = case.problem.space.random(repeats, case.budget, rng=torch.Generator().manual_seed(0))
    return case.problem.objective(x).amin(-1).median().item()


def described(case: Demonstration) -> str:
    """What is about to be done, in words."""
    space, latent = case.problem.space, case.problem.mapping.latent
    where = f"{space}" if space == latent else f"{space}, hidden on a {latent} in it,"
    return f"Minimising {case.problem.name} on {where} with {case.strategy}"


def standings(study: nb.Study) -> Table:
    """How the models that compete have done."""
    table = Table("model", "suggestions", "share", "chance of success")
    for arm in study.standings():
        table.add_row(arm.arm, str(arm.suggestions), f"{arm.share:.0%}", f"{arm.score:.2f}")
    return table


def main() -> None:
    torch.set_num_threads(1)  # the matrices are small: more threads would only wait for each other
    FOLDER.mkdir(exist_ok=True)
    console = Console(highlight=False)
    table = Table("", "evaluations", "best at random", "best found", "optimum")
    for case in DEMONSTRATIONS:
        console.print(f"\n{described(case)}")
        with optimise(case) as study:
            values = by_chance(case), study.best.value, case.problem.optimal_value
            table.add_row(case.name, str(len(study.history)), *(f"{value:.3g}" for value in values))
            for kind in case.kinds:
                plots.draw(study, kind).savefig(FOLDER / f"{case.name}-{kind}.png")
            if len(study.standings()) > 1:
                console.print(standings(study))
    console.print("", table)
    for case in DEMONSTRATIONS:
        console.print(f"Pictures: {FOLDER}/{case.name}-{{{','.join(case.kinds)}}}.png")
    console.print(f"Studies:  {FOLDER}/*.db; go on with nestbo.Study.load('{FOLDER}/hidden.db')")


if __name__ == "__main__":
    main()
