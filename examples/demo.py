"""Two studies, from nothing to pictures: directions in space, then 3×3 stiffness matrices."""

from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

import nestbo as nb
from nestbo import plots

FOLDER = Path("demo")
PROBLEMS = {  # a name for the files, the problem, and how many evaluations it gets
    "sphere": (nb.problem("ackley", nb.Sphere(2)), 25),
    "spd": (nb.problem("ackley", nb.SPD(3, eigenvalues=(0.001, 5.0))), 40),
}


def optimise(problem: nb.Problem, budget: int, store: Path) -> nb.Study:
    """A new study; everything told is in its store at once, so that Ctrl-C loses nothing."""
    for old in store.parent.glob(f"{store.name}*"):
        old.unlink()
    strategy = nb.GaBO(outputs="bilog")  # tames values that rise steeply
    return nb.Study(problem.space, strategy, seed=0, store=store).run(problem.objective, budget)


def by_chance(problem: nb.Problem, budget: int) -> float:
    """The best of as many random points, for comparison."""
    return problem.objective(problem.space.random(budget, rng=torch.Generator().manual_seed(0))).min().item()


def main() -> None:
    torch.set_num_threads(1)  # the matrices are small: more threads would only wait for each other
    FOLDER.mkdir(exist_ok=True)
    console = Console()
    table = Table("", "evaluations", "best at random", "best found", "optimum", "distance to it")
    for name, (problem, budget) in PROBLEMS.items():
        console.print(f"\nMinimising {problem.name} on {problem.space}", highlight=False)
        with optimise(problem, budget, FOLDER / f"{name}.db") as study:
            values = (by_chance(problem, budget), study.best.value, problem.optimal_value)
            away = problem.space.dist(study.best.x, problem.optimum).item()
            table.add_row(name, str(len(study.history)), *(f"{number:.3g}" for number in (*values, away)))
            for kind in plots.DRAWINGS:
                plots.draw(study, kind).savefig(FOLDER / f"{name}-{kind}.png")
    console.print("", table)
    console.print(f"Pictures: {FOLDER}/*-{{{','.join(plots.DRAWINGS)}}}.png", highlight=False)
    console.print(f"Studies:  {FOLDER}/*.db; go on with nestbo.Study.load('{FOLDER}/spd.db')", highlight=False)


if __name__ == "__main__":
    main()
