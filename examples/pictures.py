"""The pictures of docs/pictures.md, docs/objectives.md and docs/concepts.md.

Studies are kept in demo/pictures, so that a second run only draws.
"""

from pathlib import Path

import flow
import nested_matrices
import nested_spheres
import torch

import nestbo as nb
from nestbo import plots

STORES, PICTURES = Path("demo/pictures"), Path("docs/pictures")


def waves(x: torch.Tensor) -> float:
    """On the circle: two valleys, one of them deeper."""
    angle = torch.atan2(x[1], x[0])
    return (torch.cos(2 * angle) + 0.5 * torch.sin(angle)).item()


def stiffness(x: torch.Tensor) -> float:
    """How far a 2×2 matrix is from the wanted one."""
    wanted = torch.tensor([[3.0, 1.0], [1.0, 1.5]], dtype=torch.float64)
    return nb.SPD(2).dist(x, wanted).item()


def grasp(x: torch.Tensor) -> float:
    """A direction of approach, a stiffness and two forces: how far each is from what is wanted."""
    direction, matrix, forces = GRASP.split(x)
    wanted = torch.diag(torch.tensor([2.0, 1.0, 0.5], dtype=torch.float64))
    return (direction[0] + nb.SPD(3).dist(matrix, wanted) + (forces - 2).square().sum()).item()


def between(x: torch.Tensor) -> tuple[float, float]:
    """The tool of docs/objectives.md: its error, and how much energy comes back."""
    light, heavy = nb.Sphere(2).random(2, rng=torch.Generator().manual_seed(3))
    return (nb.Sphere(2).dist(x, light) ** 2).item(), -(nb.Sphere(2).dist(x, heavy) ** 2).item()


TOOL = {"objectives": ("error", "energy"), "direction": ("minimize", "maximize")}


GRASP = nb.Product(approach=nb.Sphere(2), stiffness=nb.SPD(3, eigenvalues=(0.1, 4.0)), force=nb.Box([0, 0], [5, 10]))
ACKLEY = nb.problem("ackley", nb.Sphere(2))
ROSENBROCK = nb.problem("rosenbrock", nb.Sphere(5))
SPHERE20 = nb.problem("ackley", nb.Sphere(20), latent_dim=2, seed=0)
SPD5 = nb.problem("ackley", nb.SPD(5, eigenvalues=(0.001, 5.0)), latent_dim=2, seed=0)
NESTED = nb.HDGaBO(2, metric="isotropic")
WAVES = "Two valleys on the circle; the minimum is −1.5"
ON_SPHERE = "Ackley's function on the sphere S^2; the minimum is 0"
GRASPING = "A grasp: direction of approach, stiffness and two forces; the minimum is −1"
HIDDEN = "Ackley's function of a hidden S^2 in S^20; the minimum is 0"
MATRICES = "Ackley's function of hidden 2×2 matrices in SPD(5); the minimum is 0"
STUDIES = {  # the objective, the space, the method, the evaluations, the title, the kinds of picture
    "circle": (waves, nb.Sphere(1), nb.GaBO(), 10, WAVES, ["surrogate"]),
    "sphere": (ACKLEY.objective, ACKLEY.space, nb.GaBO(), 25, ON_SPHERE, ["convergence", "surrogate", "predictions"]),
    "grasp": (grasp, GRASP, nb.GaBO(), 25, GRASPING, ["best", "importance"]),
    "spd2": (
        stiffness,
        nb.SPD(2, eigenvalues=(0.001, 5.0)),
        nb.GaBO(),
        25,
        "The distance to a wanted stiffness; the minimum is 0",
        ["surrogate"],
    ),
    "sphere5": (
        ROSENBROCK.objective,
        ROSENBROCK.space,
        nb.GaBO(),
        25,
        "Rosenbrock's function on S^5; the minimum is 0",
        ["surrogate", "arms"],
    ),
    "sphere20": (SPHERE20.objective, SPHERE20.space, NESTED, 60, HIDDEN, ["latent"]),
    "spd5": (SPD5.objective, SPD5.space, NESTED, 80, MATRICES, ["latent", "subspace", "reconstruction"]),
}


def main() -> None:
    torch.set_num_threads(1)
    STORES.mkdir(parents=True, exist_ok=True)
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, (objective, space, strategy, budget, title, kinds) in STUDIES.items():
        with nb.Study(space, strategy, store=STORES / f"{name}.db") as study:
            study.run(objective, budget=budget)
            for kind in kinds:
                plots.draw(study, kind, title=title).savefig(PICTURES / f"{name}-{kind}.png", dpi=90)
    with nb.Study(nb.Sphere(2), **TOOL, store=STORES / "tool.db") as study:
        study.run(between, budget=25)
        for kind in plots.OF_ALL:
            title = "A tool on S^2: its error, and how much energy comes back"
            plots.draw(study, kind, title=title).savefig(PICTURES / f"two-{kind}.png", dpi=90)
    for example in (flow, nested_spheres, nested_matrices):
        example.main(str(PICTURES / f"{example.__name__}.png"))


if __name__ == "__main__":
    main()
