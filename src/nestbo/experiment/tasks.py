"""Problems that are compared on: ``Task``, and the lists of them that suites are made of."""

from __future__ import annotations

from dataclasses import dataclass

from nestbo.manifolds import SPD, Box, Product, Quaternion, Rotation, Sphere, space

MATRICES = "eigenvalues=0.001,5"


@dataclass(frozen=True)
class Task:
    """A problem on a space, behind a projection to the latent space of size ``latent_dim``, or bare.

    ``noise`` is the standard deviation of what is observed, in units of the range of values: the median at random
    points less the optimal value.
    """

    problem: str
    space: str
    latent_dim: int | None = None
    noise: float = 0.0

    @property
    def where(self) -> str:
        """A short name of the space: its kind, and its size or its dimension: "sphere-50", "product-9"."""
        found = space(self.space)
        kind = self.space.split(":")[0]
        return f"{kind}-{found.n if isinstance(found, Sphere | SPD) else found.dim}"

    @property
    def key(self) -> str:
        """A short name: "ackley-sphere-50"."""
        return f"{self.problem}-{self.where}" + (f"-noise-{self.noise:g}" if self.noise else "")

    @property
    def matrices(self) -> bool:
        """Whether points are SPD matrices."""
        return isinstance(space(self.space), SPD)

    @property
    def size(self) -> int:
        """That of the latent space; of bare problems, what a method may assume."""
        return self.latent_dim or (3 if self.matrices else 5)

    @property
    def vectors(self) -> int:
        """The dimension of the linear space that holds the latent one: vectors of R^(d+1), entries of d×d matrices."""
        return self.size * (self.size + 1) // 2 if self.matrices else self.size + 1


def spheres(*problems: str) -> list[Task]:
    """On S^5 in S^50 and S^70."""
    return [Task(name, f"sphere:{size}", 5) for size in (50, 70) for name in problems]


def matrices(*problems: str) -> list[Task]:
    """On SPD(3) in SPD(10) and SPD(12)."""
    return [Task(name, f"spd:{size}:{MATRICES}", 3) for size in (10, 12) for name in problems]


PAPER = (
    *spheres("rosenbrock", "ackley", "product-of-sines"),
    *matrices("rosenbrock", "styblinski-tang", "product-of-sines"),
)
HELD_OUT_METRIC = (
    Task("quadratic", "sphere:50", 5),
    Task("neural-network", "sphere:50", 5),
    Task("levy", "sphere:50", 5),
    Task("rastrigin", "sphere:50", 5),
    *(Task(f"unnormalised-{name}", "sphere:50") for name in ("ackley", "rosenbrock", "levy")),
    *(Task(f"few-coordinates-{name}", "sphere:50") for name in ("ackley", "rosenbrock", "levy")),
    Task("linear", "sphere:50"),
    *(Task(name, f"spd:10:{MATRICES}", 3) for name in ("quadratic", "neural-network", "levy", "rastrigin")),
)
_SMALL_SPACES = (
    *(f"sphere:{n}" for n in (2, 3, 5, 20)),
    *(f"spd:{n}:{MATRICES}" for n in (2, 3, 5)),
    *(Box((-2,) * n, (3,) * n).specification for n in (6, 20)),
    Quaternion().specification,
    Product(Quaternion(), Box((-2,) * 3, (3,) * 3)).specification,
)
FEW_DIMENSIONS = tuple(
    Task(name, where)
    for where in _SMALL_SPACES
    for name in ("ackley", "rosenbrock", "styblinski-tang", "product-of-sines")
)
_POSE = Product(Quaternion(), Box((-1, -1, -1, 0.5, 0.5, 0.5), (1, 1, 1, 2, 2, 2)))
_SEEN_TWICE = Product(Rotation(3), Rotation(3), SPD(3, eigenvalues=(0.1, 5)))
HELD_OUT = (
    Task("michalewicz", "sphere:30", 3),
    Task("dixon-price", "sphere:100", 10),
    Task("zakharov", "sphere:500", 5),
    Task("zakharov", f"spd:6:{MATRICES}", 2),
    Task("dixon-price", f"spd:15:{MATRICES}", 4),
    Task("rayleigh-quotient", "sphere:20"),
    Task("von-mises-fisher", "sphere:20"),
    Task("wishart", f"spd:5:{MATRICES}"),
    Task("schwefel", Box((-500,) * 20, (500,) * 20).specification),
    Task("subspace-dixon-price", Box((-1,) * 100, (1,) * 100).specification),
    Task("phases", "torus:30"),
    Task("portfolio", "simplex:30"),
    Task("registration", _POSE.specification),
    Task("stiffness-seen-twice", _SEEN_TWICE.specification),
    Task("thomson", Product(*[Sphere(2)] * 6).specification),
    *(Task("zakharov", "sphere:30", 3, noise) for noise in (0.01, 0.1)),
    *(Task("von-mises-fisher", "sphere:20", noise=noise) for noise in (0.01, 0.1)),
)
_EIGHT = (
    *(f"{name}-sphere-50" for name in ("ackley", "rosenbrock", "product-of-sines")),
    *(f"{name}-spd-10" for name in ("rosenbrock", "product-of-sines")),
    *("michalewicz-sphere-30", "subspace-dixon-price-box-100", "wishart-spd-5"),
)
RIVALLED = tuple(task for task in (*PAPER, *HELD_OUT) if task.key in _EIGHT)
