"""What there is to choose from, in a table that needs no import: for ``nestbo list``, ``--help`` and tab completion.

The registries of the library say what exists. A test compares this table with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """How something is written on the command line, and what it is."""

    example: str
    about: str


MANIFOLDS = {
    "euclidean": Entry("euclidean:3", "Vectors of n numbers without bounds."),
    "box": Entry("box:0,0:1,2", "Vectors between a lower and an upper bound; scale=log for several powers of ten."),
    "sphere": Entry("sphere:2", "Directions: unit vectors of n + 1 numbers."),
    "spd": Entry("spd:3:eigenvalues=0.001,5", "Symmetric positive definite n×n matrices, with eigenvalues in bounds."),
    "grassmann": Entry("grassmann:5:2", "Subspaces of dimension p in n dimensions."),
    "stiefel": Entry("stiefel:4:2", "n×p matrices with orthonormal columns."),
    "rotation": Entry("rotation:3", "Rotations of space as 3×3 matrices."),
    "quaternion": Entry("quaternion", "Rotations of space as unit quaternions; q and −q are the same."),
    "torus": Entry("torus:2", "n angles, each the same after a full turn."),
    "simplex": Entry("simplex:2", "n + 1 proportions that sum to 1."),
    "integer": Entry("integer:1:8", "Whole numbers from a lowest to a highest; scale=log for several powers of ten."),
    "choice": Entry("choice:soft,hard,vacuum", "One of several values without an order."),
    "levels": Entry("levels:0.1,0.5,2", "One of several values in an order."),
    "product": Entry("product:(quaternion):(box:0:1)", "Several spaces at once, each in parentheses."),
}
KERNELS = {
    "gaussian": Entry("gabo:kernel=gaussian", "For very smooth functions."),
    "matern12": Entry("gabo:kernel=matern12", "For rough functions: Matérn of smoothness 1/2."),
    "matern32": Entry("gabo:kernel=matern32", "Matérn of smoothness 3/2."),
    "matern52": Entry("gabo:kernel=matern52", "Matérn of smoothness 5/2, the default."),
    "heat": Entry("gabo:kernel=heat", "The heat kernel of a sphere."),
    "spectral-matern": Entry("gabo:kernel=spectral-matern", "The intrinsic Matérn kernel of a sphere."),
    "geodesic-gaussian": Entry("gabo:kernel=geodesic-gaussian", "The kernel of the papers, for short length scales."),
    "geodesic-laplace": Entry("gabo:kernel=geodesic-laplace", "A rough kernel of the angle on a sphere."),
}
STRATEGIES = {
    "randomsearch": Entry("randomsearch", "Independent random points."),
    "gabo": Entry("gabo:initial=5", "Bayesian optimisation on the space itself; the default up to ten dimensions."),
    "hdgabo": Entry("hdgabo:latent_dim=5", "Learn a small nested space and search there; the default above."),
    "euclideanbo": Entry("euclideanbo", "Classical Bayesian optimisation in coordinates."),
    "dropoutbo": Entry("dropoutbo:5", "Some random coordinates at a time."),
    "sirbo": Entry("sirbo:5", "Directions learned by sliced inverse regression."),
    "rembo": Entry("rembo:5", "Random linear subspaces."),
}
PROBLEMS = {
    "ackley": Entry("problem:ackley:latent_dim=5:seed=0", "Many small waves around one deep minimum."),
    "rosenbrock": Entry("problem:rosenbrock:latent_dim=5:seed=0", "A long curved valley."),
    "styblinski-tang": Entry("problem:styblinski-tang:latent_dim=5:seed=0", "Several deep minima of different depth."),
    "product-of-sines": Entry("problem:product-of-sines:latent_dim=5:seed=0", "Many minima between plateaus."),
    "rastrigin": Entry("problem:rastrigin:latent_dim=5:seed=0", "A bowl with regular waves."),
    "levy": Entry("problem:levy:latent_dim=5:seed=0", "Waves over a slope."),
    "griewank": Entry("problem:griewank:latent_dim=5:seed=0", "Very many shallow minima in a bowl."),
}
PLOTS = {
    "convergence": Entry("--kind convergence", "The values and the best value so far."),
    "front": Entry("--kind front", "Several objectives: the trials that nothing dominates."),
    "hypervolume": Entry("--kind hypervolume", "Several objectives: how much of the outcomes the front dominates."),
    "best": Entry("--kind best", "The best point, or where values are noisy the recommended one."),
    "surrogate": Entry("--kind surrogate", "What the model believes."),
    "predictions": Entry("--kind predictions", "Whether the model is reliable."),
    "latent": Entry("--kind latent", "The nested space of HD-GaBO, with the evaluations."),
    "subspace": Entry("--kind subspace", "Which coordinates the nested space keeps."),
    "reconstruction": Entry("--kind reconstruction", "How far the evaluations are from the nested space."),
    "arms": Entry("--kind arms", "Who made each suggestion, and with what success."),
    "importance": Entry("--kind importance", "Which parameters and which directions matter."),
}
TOPICS: dict[str, Mapping[str, Entry]] = {
    "manifolds": MANIFOLDS,
    "kernels": KERNELS,
    "strategies": STRATEGIES,
    "problems": PROBLEMS,
    "plots": PLOTS,
}


def completion(topic: Mapping[str, Entry]) -> Callable[[str], list[tuple[str, str]]]:
    """Tab completion of the names of a topic."""

    def complete(incomplete: str) -> list[tuple[str, str]]:
        return [(name, entry.about) for name, entry in topic.items() if name.startswith(incomplete)]

    return complete
