"""Where a water molecule binds to uracil.

Whether a drug or a base of RNA dissolves depends on where water holds on to it. Uracil has four places in its plane
that water likes, of different depth, and around them nothing. Wanted is the deepest one, with as few evaluations of a
quantum-chemical model as possible (GFN2-xTB, 6 ms; with a costlier model they take hours).

The space is S² × gap × SO(3): the direction from which water comes, how much farther than touching it stays, and how
it is turned. Three angles for a rotation have a pole where they tear; unit quaternions have none.
RDKit (BSD-3-Clause) builds the molecules, tblite (LGPL-3.0) computes energies.
"""

import numpy as np
from scipy.spatial.transform import Rotation

import nestbo as nb
from nestbo.gallery import Application, Coordinates, draw, needs

with needs("rdkit", "tblite"):
    from chemistry import Energy, draw_atoms, relaxed, softened, touching

URACIL = relaxed("O=c1cc[nH]c(=O)[nH]1")
WATER = relaxed("O")
NUMBERS = np.concatenate([URACIL[0], WATER[0]])
ENERGY = Energy(NUMBERS)
APART = sum(Energy(numbers)(positions) for numbers, positions in (URACIL, WATER))
NEAR, FAR = -0.3, 1.2  # Å beyond touching


def positions(x):
    """Both molecules, for a direction x[:3], a gap x[3] in Å and a quaternion x[4:8]."""
    turned = Rotation.from_quat(x[4:8]).apply(WATER[1])
    contact = touching(URACIL, (WATER[0], turned), x[:3])
    return np.concatenate([URACIL[1], turned + (contact + x[3]) * x[:3]])


def energy(x):
    """Of the interaction, in kcal/mol; repulsion is softened."""
    return softened(ENERGY(positions(x)) - APART, above=0.0)


def picture(x, axes):
    draw_atoms(axes, NUMBERS, positions(x))
    axes.set_title(f"{energy(x):.1f} kcal/mol", size=9)


def euler(u):
    """Two polar angles, the gap, three Euler angles."""
    direction = [np.sin(u[0]) * np.cos(u[1]), np.sin(u[0]) * np.sin(u[1]), np.cos(u[0])]
    return np.r_[direction, u[2], Rotation.from_euler("ZYZ", u[3:]).as_quat()]


def normalised(u):
    """A vector and a quaternion of any length."""
    unit = [part / max(np.linalg.norm(part), 1e-9) for part in (u[:3], u[4:])]
    return np.r_[unit[0], u[3], unit[1]]


PI = np.pi
SPACE = nb.Product(nb.Sphere(2), nb.Box(NEAR, FAR), nb.Quaternion())
APPLICATION = Application(
    name="water",
    value="kcal/mol",
    space=SPACE,
    objective=energy,
    picture=picture,
    coordinates=[
        Coordinates("Euler angles", [0, -PI, NEAR, -PI, 0, -PI], [PI, PI, FAR, PI, PI, PI], euler),
        Coordinates("normalised vectors", [-1] * 3 + [NEAR] + [-1] * 4, [1] * 3 + [FAR] + [1] * 4, normalised),
    ],
    budget=100,
    worst=50.0,
)

if __name__ == "__main__":
    study = nb.Study(SPACE, seed=0, store="water.db")
    study.run(energy, budget=APPLICATION.budget, numpy=True)
    print(f"{study.best.value:.2f} kcal/mol")
    draw(APPLICATION, study).savefig("water.png")
