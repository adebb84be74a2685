"""Two studies, from nothing to pictures: directions in space, then stiffness matrices."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

import nestbo as nb
from nestbo import plots

FOLDER = Path("demo")
PROBLEMS = {  # a name for the files, the problem, and how many evaluations it gets
    "sphere": (nb.problem("ackley", nb.Sphere(2)), 25),
    "spd": (nb.problem("styblinski-tang", nb.SPD(3, eigenvalues=(0.001, 5.0))), 30),
}


def optimise(problem: nb.Problem, budget: int, store: Path) -> nb.Study:
    """A new study of ``budget`` evaluations; everything told is in its store, also if you press Ctrl-C."""
    for old in store.parent.glob(f"{store.name}*"):
        old.unlink()
    return nb.Study(problem.space, nb.GaBO(), seed=0, store=store).run(problem.objective, budget)


def picture(study: nb.Study, name: str) -> list[str]:
    """Every kind of picture of a study, as files."""
    files = {kind: FOLDER / f"{name}-{kind}.png" for kind in plots.DRAWINGS}
    for kind, file in files.items():
        plots.draw(study, kind).savefig(file)
    return [str(file) for file in files.values()]


def main() -> None:
    console = Console()
    FOLDER.mkdir(exist_ok=True)
    table = Table("problem", "space", "evaluations", "found", "optimum", "distance", "pictures")
    for name, (problem, budget) in PROBLEMS.items():
        console.print(f"\n[bold]{problem.name}[/bold] on {problem.space}")
        with optimise(problem, budget, FOLDER / f"{name}.db") as study:
            found = [f"{study.best.value:.4g}", f"{problem.optimal_value:.4g}"]
            away = f"{problem.space.dist(study.best.x, problem.optimum).item():.2g}"
            files = picture(study, name)
            table.add_row(problem.name, str(problem.space), str(budget), *found, away, "\n".join(files))
    console.print("\n", table)
    console.print("Go on where a study stopped: nb.Study.load('demo/sphere.db').run(objective, 10)")


if __name__ == "__main__":
    main()
