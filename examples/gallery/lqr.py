"""The weights of a drone's controller.

A linear-quadratic regulator needs a matrix that says which errors of position, velocity, attitude and rates hurt, and
which combinations of them. People fill its diagonal by Bryson's rule, and turn knobs. Here the drone carries a payload
that its designer did not know of, and wanted is the matrix with which the real one flies best.

The space is that of symmetric positive definite 12 × 12 matrices, 78 numbers: no other matrix gives a regulator. It is
the first application that Jaquier and Rozo (2020) name for HD-GaBO. MuJoCo (Apache-2.0) flies the drone, scipy solves
the Riccati equation. An evaluation is two flights of three seconds.
"""

import numpy as np
from scipy.linalg import expm

import nestbo as nb
from nestbo.gallery import Application, Coordinates, draw, needs

with needs("mujoco"):
    from quadrotor import BRYSON, STEP, fly, gain

N, LOW, HIGH = 12, 0.05, 20.0  # size of the matrix, bounds of its eigenvalues, in units of Bryson's rule
SCALE = np.sqrt(BRYSON)
STARTS = np.array([[1.0, -0.6, 0.4], [-0.7, 0.9, -0.5]])  # m off
SECONDS, CRASH = 3.0, 30.0
ERRORS = np.repeat([4.0, 0.3, 2.0, 0.02], 3)  # what errors really cost: position, velocity, attitude, rates
THRUST = 0.02  # what differences of thrusts cost


def flight(matrix, start):
    """States and thrusts, None after a crash."""
    return fly(gain(SCALE[:, None] * matrix * SCALE), start, SECONDS)


def flown_cost(matrix, start):
    flown = flight(matrix, start)
    if flown is None:
        return CRASH
    states, thrusts = flown
    differences = thrusts - thrusts.mean(1, keepdims=True)
    return float((states**2 @ ERRORS + THRUST * (differences**2).sum(1)).sum() * STEP)


def cost(matrix):
    """The mean over two flights; an equation without solution is a crash."""
    try:
        return float(np.mean([flown_cost(matrix, start) for start in STARTS]))
    except np.linalg.LinAlgError:
        return CRASH


def picture(matrix, axes):
    for weights, name, colour in ((np.eye(N), "Bryson's rule", "tab:gray"), (matrix, "found", "tab:blue")):
        flights = [np.linalg.norm(flight(weights, start)[0][:, :3], axis=1) for start in STARTS]
        lines = axes.plot(np.arange(len(flights[0])) * STEP, np.stack(flights, 1), color=colour)
        lines[0].set_label(f"{name}: {cost(weights):.2f}")
    axes.set_xlabel("s")
    axes.set_ylabel("m from the goal")
    axes.legend(fontsize=8)


def diagonal(u):
    return np.diag(np.exp(u))


def logarithm(u):
    """The exponential of a symmetric matrix, its eigenvalues kept within bounds: all 78 numbers."""
    symmetric = np.zeros((N, N))
    symmetric[np.tril_indices(N)] = u
    values, vectors = np.linalg.eigh(expm((symmetric + symmetric.T) / 2))
    return (vectors * np.clip(values, LOW, HIGH)) @ vectors.T


SPACE = nb.SPD(N, eigenvalues=(LOW, HIGH))
APPLICATION = Application(
    name="lqr",
    value="cost of a flight",
    space=SPACE,
    objective=cost,
    picture=picture,
    coordinates=[
        Coordinates("diagonal", [np.log(LOW)] * N, [np.log(HIGH)] * N, diagonal),
        Coordinates("logarithm of the matrix", [-2.0] * 78, [2.0] * 78, logarithm),
    ],
    budget=120,
    worst=CRASH,
)

if __name__ == "__main__":
    study = nb.Study(SPACE, seed=0, store="lqr.db")
    study.run(cost, budget=APPLICATION.budget, numpy=True)
    print(f"{study.best.value:.3f}; Bryson's rule {cost(np.eye(N)):.3f}")
    draw(APPLICATION, study).savefig("lqr.png")
