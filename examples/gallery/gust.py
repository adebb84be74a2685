"""The worst gust for a quadrotor.

Before a drone is allowed to fly, its controller has to survive the worst gust of wind, not an average one. A gust
pushes along three axes, each push a sum of 32 waves in time, and all gusts have the same energy. Wanted is the gust
that throws the drone farthest off; engineers call it critical excitation, and look for it by drawing gusts at random.

The space is the sphere of 96 amplitudes, S^95: equal energy means a vector of fixed length. The drone does not feel
fast waves, so that few combinations of amplitudes matter, and HD-GaBO learns which.
MuJoCo (Apache-2.0) simulates the drone.
"""

import numpy as np

import nestbo as nb
from nestbo.gallery import Application, Coordinates, draw, needs

with needs("mujoco"):
    from quadrotor import BRYSON, STEP, fly, gain

WAVES, SECONDS = 32, 3.0
ENERGY = 6.0  # N²·s, the integral of the squared force
STEPS = round(SECONDS / STEP)
TIME = (np.arange(STEPS) + 0.5) / STEPS
BASIS = np.stack([np.sin(np.pi * (k + 1) * TIME) for k in range(WAVES)], 1) * np.sqrt(2 / SECONDS)  # orthonormal
REGULATOR = gain(np.diag(BRYSON))
CALM = fly(REGULATOR, np.zeros(3), SECONDS)[0][:, :3]  # without wind it sinks a little: it does not know its payload


def force(x):
    """The push along three axes at every step, in N."""
    return np.sqrt(ENERGY) * BASIS @ x.reshape(3, WAVES).T


def path(x):
    """How far it is from where it would be without wind, at every step, in m; None after a crash."""
    flown = fly(REGULATOR, np.zeros(3), SECONDS, force(x))
    return None if flown is None else flown[0][:, :3] - CALM


def cost(x):
    """Minus the largest distance, in m; a crash counts as 3 m."""
    found = path(x)
    return -3.0 if found is None else -float(np.linalg.norm(found, axis=1).max())


def picture(x, axes):
    seconds = TIME * SECONDS
    for push, name in zip(force(x).T, "xyz", strict=True):
        axes.plot(seconds, push, linewidth=1, label=f"push along {name}, N")
    axes.plot(seconds, 10 * np.linalg.norm(path(x), axis=1), color="black", label="distance, dm")
    axes.set_xlabel("s")
    axes.legend(fontsize=7)


def normalised(u):
    return u / max(np.linalg.norm(u), 1e-9)


def polar(u):
    """Hyperspherical angles."""
    sines = np.concatenate([[1.0], np.cumprod(np.sin(u))])
    return sines * np.append(np.cos(u), 1.0)


SPACE = nb.Sphere(3 * WAVES - 1)
APPLICATION = Application(
    name="gust",
    value="−m",
    space=SPACE,
    objective=cost,
    picture=picture,
    coordinates=[
        Coordinates("normalised amplitudes", [-1.0] * 96, [1.0] * 96, normalised),
        Coordinates("hyperspherical angles", [0.0] * 95, [np.pi] * 94 + [2 * np.pi], polar),
    ],
    budget=150,
    worst=0.0,
)

if __name__ == "__main__":
    study = nb.Study(SPACE, seed=0, store="gust.db")
    study.run(cost, budget=APPLICATION.budget, numpy=True)
    print(f"thrown off by {-study.best.value:.3f} m")
    draw(APPLICATION, study).savefig("gust.png")
