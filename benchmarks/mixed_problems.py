"""Ten problems with parameters of several kinds at once, as functions of these parameters by name.

Three are real: an ensemble of scikit-learn models on its breast cancer data, a support vector machine on its digits,
and a grasp, whose quality is that of Li and Sastry 1988. Three are textbook designs: a mixture with process variables,
a pressure vessel and a coil spring (both as in Sandgren 1990, constraints as penalties). Four are synthetic. All are
minimised.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import nestbo as nb


@dataclass(frozen=True)
class Problem:
    """A function of the parameters of a space, by name."""

    space: nb.Space
    cost: Callable[..., float]


@cache
def _cancer() -> Any:
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import StandardScaler

    x, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(x)[::3], y[::3]


@cache
def _votes(solver: str, rate: float, trees: int, depth: int, neighbours: int) -> np.ndarray:
    """Cross-validated probabilities of three models, (3, n)."""
    import warnings

    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.neighbors import KNeighborsClassifier

    x, y = _cancer()
    models = (
        LogisticRegression(C=rate, solver=solver, max_iter=50),
        RandomForestClassifier(n_estimators=trees, max_depth=depth, random_state=0),
        KNeighborsClassifier(n_neighbors=neighbours),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a solver that has not converged is judged by its predictions
        return np.stack([cross_val_predict(m, x, y, cv=3, method="predict_proba")[:, 1] for m in models])


def ensemble(weights: np.ndarray, solver: str, rate: float, trees: int, depth: int, neighbours: int) -> float:
    """The cross-validated log-loss of three models that vote with weights, on 190 breast cancer data."""
    _, y = _cancer()
    p = np.clip(weights @ _votes(solver, rate, trees, depth, neighbours), 1e-6, 1 - 1e-6)
    return float(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)))


@cache
def _digits() -> Any:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return x[:600] / 16, y[:600]


def machine(kernel: str, penalty: float, width: float, degree: int, offset: float) -> float:
    """The cross-validated error of a support vector machine on 600 digits."""
    from sklearn.model_selection import cross_val_score
    from sklearn.svm import SVC

    model = SVC(kernel=kernel, C=penalty, gamma=width, degree=degree, coef0=offset, max_iter=20000)
    return float(1 - cross_val_score(model, *_digits(), cv=3).mean())


_RADII = np.array([1.0, 0.7, 0.5])
_FRICTION = {"steel": 0.2, "rubber": 0.9, "silicone": 0.6}
_WEAR = {"steel": 0.0, "rubber": 0.25, "silicone": 0.08}


def grasp(orientation: np.ndarray, fingers: int, opening: float, pad: str) -> float:
    """Minus the least singular value of the grasp matrix of fingers around an ellipsoid; each finger has a price."""
    w, x, y, z = orientation
    turn = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    angles = 2 * np.pi * np.arange(fingers) / fingers
    rays = np.stack([np.cos(angles), np.sin(angles), np.full(fingers, opening)], 1)
    rays = rays / np.linalg.norm(rays, axis=1, keepdims=True) @ turn.T
    points = rays / np.sqrt((rays**2 / _RADII**2).sum(1, keepdims=True))  # where they meet the ellipsoid
    normals = -points / _RADII**2
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    columns = []
    for point, normal in zip(points, normals, strict=True):
        side = np.cross(normal, [0.36, 0.48, 0.8])
        side /= np.linalg.norm(side)
        for force, size in ((normal, 1.0), (side, _FRICTION[pad]), (np.cross(normal, side), _FRICTION[pad])):
            columns.append(size * np.concatenate([force, np.cross(point, force)]))
    quality = np.linalg.svd(np.stack(columns, 1), compute_uv=False)[5] if fingers > 1 else 0.0
    return float(-quality + 0.06 * fingers + _WEAR[pad])


def mixture(shares: np.ndarray, temperature: float, minutes: int, catalyst: str) -> float:
    """Minus the yield of a blend of three solvents: a Scheffé polynomial whose blending terms depend on the process."""
    a, b, c = shares
    heat = (temperature - 60) / 40
    active = {"none": 0.2, "acid": 1.0, "base": 0.7, "enzyme": max(1.2 - 1.5 * heat**2, 0.05)}[catalyst]
    blend = (
        11.7 * a + 9.4 * b + 16.4 * c + 19.0 * a * b * (1 + 0.4 * heat) + 11.4 * a * c - 9.6 * b * c + 25 * a * b * c
    )
    done = 1 - np.exp(-active * minutes / 30 * np.exp(heat))
    return float(-blend * done + 0.03 * minutes + 2.0 * max(heat, 0) ** 2)


def vessel(shell: int, head: int, radius: float, length: float) -> float:
    """The logarithm of the cost of a pressure vessel; plates come in sixteenths of an inch."""
    s, h = 0.0625 * shell, 0.0625 * head
    cost = 0.6224 * s * radius * length + 1.7781 * h * radius**2 + 3.1661 * s**2 * length + 19.84 * s**2 * radius
    volume = np.pi * radius**2 * length + 4 / 3 * np.pi * radius**3
    beyond = (0.0193 * radius / s - 1, 0.00954 * radius / h - 1, 1296000 / volume - 1)
    return float(np.log10(cost) + sum(min(5.0, max(0.0, g)) for g in beyond))


WIRES = (0.009, 0.0118, 0.015, 0.02, 0.028, 0.041, 0.063, 0.092, 0.12, 0.162, 0.207, 0.263, 0.307, 0.394, 0.5)


def spring(coils: int, diameter: float, wire: float) -> float:
    """The logarithm of the volume of the wire of a coil spring that bears 1000 pounds."""
    load, most, modulus = 1000.0, 189000.0, 11.5e6
    index = diameter / wire
    factor = (4 * index - 1) / (4 * max(index, 1.1) - 4) + 0.615 / index
    stress = 8 * factor * load * diameter / (np.pi * wire**3)
    stiffness = modulus * wire**4 / (8 * coils * diameter**3)
    free = load / stiffness + 1.05 * (coils + 2) * wire
    limits = (stress / most, free / 14, (diameter + wire) / 3, 3 / index, 300 / stiffness / 6)
    volume = np.pi**2 * diameter * wire**2 * (coils + 2) / 4
    return float(np.log10(volume) + sum(min(5.0, max(0.0, g - 1)) for g in limits))


_CENTRES = np.array([[0.6, 0.8, 0, 0, 0], [-0.5, 0.5, 0.5, 0.5, 0], [0, 0, 0, 0.6, -0.8]])


def direction(where: np.ndarray, regime: str, order: int) -> float:
    """A bent squared distance to a direction that another one takes the place of in each regime."""
    k = ("low", "middle", "high").index(regime)
    angle = np.arccos(np.clip(where @ _CENTRES[k], -1, 1))
    return float(angle**2 + 0.15 * np.sin(order * angle) ** 2 + 0.05 * abs(order - 3 - k) + (0.3, 0.0, 0.2)[k])


_WANTED = np.array([[3.0, 1.0], [1.0, 1.5]])


def stiffness(matrix: np.ndarray, damping: float, passes: int, law: str) -> float:
    """How far a stiffness is from one that a task wants, which depends on the control law, and a price of passes."""
    wanted = _WANTED * {"joint": 1.0, "cartesian": 1.6, "hybrid": 0.6}[law]
    values, vectors = np.linalg.eigh(matrix)
    goal = np.linalg.eigh(wanted)
    log = lambda e, v: (v * np.log(e)) @ v.T
    away = np.linalg.norm(log(values, vectors) - log(*goal))
    best = 2 * np.sqrt(np.linalg.det(matrix)) / (10 * passes)
    return float(
        away + abs(np.log10(damping / best)) / 2 + 0.05 * passes + {"joint": 0.3, "cartesian": 0.0, "hybrid": 0.2}[law]
    )


def branches(family: str, rounds: int, x: float, y: float) -> float:
    """Rosenbrock, six-hump camel or Beale, as a choice says, of coordinates that a whole number scales."""
    x, y = x * (0.6 + 0.1 * rounds), y * (0.6 + 0.1 * rounds)
    if family == "rosenbrock":
        return float(np.log1p((1 - x) ** 2 + 100 * (y - x**2) ** 2) + 0.5)
    if family == "camel":
        value = (4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (-4 + 4 * y**2) * y**2
        return float(np.log1p(max(value + 1.0316, 0)))
    beale = (1.5 - x + x * y) ** 2 + (2.25 - x + x * y**2) ** 2 + (2.625 - x + x * y**3) ** 2
    return float(np.log1p(beale) + 0.2)


def ackley(a: float, b: float, m: int, n: int, p: str, q: str) -> float:
    """Ackley's function of two numbers, two whole numbers and two switches."""
    z = np.array([a, b, m / 5, n / 5, float(p == "on"), float(q == "off")])
    return float(20 + np.e - 20 * np.exp(-0.2 * np.sqrt(np.mean(z**2))) - np.exp(np.mean(np.cos(2 * np.pi * z))))


PROBLEMS = {
    "ensemble": Problem(
        nb.Product(
            weights=nb.Simplex(2),
            solver=nb.Choice("lbfgs", "liblinear", "saga"),
            rate=nb.Box(1e-4, 1e3, scale="log"),
            trees=nb.Integer(3, 40),
            depth=nb.Integer(1, 8),
            neighbours=nb.Integer(1, 30),
        ),
        ensemble,
    ),
    "machine": Problem(
        nb.Product(
            kernel=nb.Choice("rbf", "poly", "sigmoid"),
            penalty=nb.Box(1e-3, 1e3, scale="log"),
            width=nb.Box(1e-4, 10, scale="log"),
            degree=nb.Integer(2, 5),
            offset=nb.Box(-1, 1),
        ),
        machine,
    ),
    "grasp": Problem(
        nb.Product(
            orientation=nb.Quaternion(),
            fingers=nb.Integer(2, 6),
            opening=nb.Box(-1, 1),
            pad=nb.Choice("steel", "rubber", "silicone"),
        ),
        grasp,
    ),
    "mixture": Problem(
        nb.Product(
            shares=nb.Simplex(2),
            temperature=nb.Levels(20, 40, 60, 80, 100),
            minutes=nb.Integer(5, 120),
            catalyst=nb.Choice("none", "acid", "base", "enzyme"),
        ),
        mixture,
    ),
    "vessel": Problem(
        nb.Product(shell=nb.Integer(1, 40), head=nb.Integer(1, 40), radius=nb.Box(10, 80), length=nb.Box(10, 240)),
        vessel,
    ),
    "spring": Problem(
        nb.Product(coils=nb.Integer(1, 40), diameter=nb.Box(0.6, 3, scale="log"), wire=nb.Levels(*WIRES)), spring
    ),
    "direction": Problem(
        nb.Product(where=nb.Sphere(4), regime=nb.Choice("low", "middle", "high"), order=nb.Integer(1, 9)), direction
    ),
    "stiffness": Problem(
        nb.Product(
            matrix=nb.SPD(2, eigenvalues=(0.1, 10.0)),
            damping=nb.Box(1e-2, 10, scale="log"),
            passes=nb.Integer(1, 12),
            law=nb.Choice("joint", "cartesian", "hybrid"),
        ),
        stiffness,
    ),
    "branches": Problem(
        nb.Product(
            family=nb.Choice("rosenbrock", "camel", "beale"), rounds=nb.Integer(1, 8), x=nb.Box(-2, 2), y=nb.Box(-2, 2)
        ),
        branches,
    ),
    "ackley": Problem(
        nb.Product(
            a=nb.Box(-1, 1),
            b=nb.Box(-1, 1),
            m=nb.Integer(-5, 5),
            n=nb.Integer(-5, 5),
            p=nb.Choice("off", "on"),
            q=nb.Choice("off", "on"),
        ),
        ackley,
    ),
}
