"""GaBO on the sphere and on SPD matrices, with what it found as it goes."""

import time

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import nestbo as nb

BUDGET = 40
PROBLEMS = [("ackley", "sphere:2"), ("rosenbrock", "sphere:5"), ("styblinski-tang", "spd:2:eigenvalues=0.001,5.0")]
METHODS = {"random search": nb.RandomSearch(), "GaBO": nb.GaBO()}


def optimise(problem: nb.Problem, strategy: nb.Strategy, progress: Progress, title: str) -> nb.History:
    """Suggest, evaluate, remember; the best value so far beside the bar."""
    history = nb.History()
    task = progress.add_task(title, total=BUDGET, best="")
    for k in range(BUDGET):
        suggestion = strategy.suggest(problem.space, history, 1, torch.Generator().manual_seed(k))[0]
        value = problem.objective(suggestion.x).item()
        history = history.add(nb.Trial(k, suggestion.x, value, "told", suggestion.notes))
        progress.update(task, advance=1, best=f"best {history.best.value:.4g}")
    return history


def sparkline(history: nb.History, optimal: float) -> str:
    """Regret along the run, on a logarithmic scale, as a line of blocks."""
    best = torch.tensor([t.value for t in history], dtype=torch.float64).cummin(0).values - optimal
    level = best.clamp(min=1e-3).log10()
    scaled = (7 * (level + 3) / (level.max() + 3).clamp(min=1e-9)).round().clamp(0, 7).int().tolist()
    return "".join(" ▁▂▃▄▅▆▇"[v] for v in scaled)


def main() -> None:
    console, started = Console(), time.perf_counter()
    table = Table("problem", "method", "best value", "optimum", "regret along the run (log)", title="What was found")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[best]}"), console=console) as progress:
        for name, space in PROBLEMS:
            problem = nb.problem(name, nb.space(space))
            for method, strategy in METHODS.items():
                history = optimise(problem, strategy, progress, f"{name} on {space}, {method}")
                optimal = problem.optimal_value
                row = (name, method, f"{history.best.value:.4f}", f"{optimal:.4f}", sparkline(history, optimal))
                table.add_row(*row)
    console.print(table)
    console.print(f"{BUDGET} evaluations each; {time.perf_counter() - started:.0f} s in all.")


if __name__ == "__main__":
    main()
