"""How two bases of DNA pair.

Guanine and cytosine hold the two strands of DNA together by three hydrogen bonds, and they could touch in countless
other ways. One base is held, the other is placed anywhere around it, turned in any way. Wanted is the placement of
lowest energy (GFN2-xTB, 20 ms); that of the textbook, by Watson and Crick, has −24 kcal/mol.

The space is S² × gap × SO(3): the direction from which cytosine comes, how much farther than touching it stays, and how
it is turned. The landscape has many funnels, most of them shallow: a base that lies on top of the other one is already
worth −10 kcal/mol. RDKit (BSD-3-Clause) builds the molecules, tblite (LGPL-3.0) computes energies.
"""

import numpy as np
from scipy.spatial.transform import Rotation

import nestbo as nb
from nestbo.gallery import Application, Coordinates, draw, needs

with needs("rdkit", "tblite"):
    from chemistry import Energy, draw_atoms, relaxed, softened, touching

GUANINE = relaxed("Cn1cnc2c1nc(N)[nH]c2=O")  # its methyl group is where the strand begins
CYTOSINE = relaxed("Cn1ccc(N)nc1=O")
NUMBERS = np.concatenate([GUANINE[0], CYTOSINE[0]])
ENERGY = Energy(NUMBERS)
APART = sum(Energy(numbers)(positions) for numbers, positions in (GUANINE, CYTOSINE))
NEAR, FAR = -0.3, 1.2  # Å beyond touching


def positions(x):
    """Both molecules, for a direction x[:3], a gap x[3] in Å and a quaternion x[4:8]."""
    turned = Rotation.from_quat(x[4:8]).apply(CYTOSINE[1])
    contact = touching(GUANINE, (CYTOSINE[0], turned), x[:3])
    return np.concatenate([GUANINE[1], turned + (contact + x[3]) * x[:3]])


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
    name="basepair",
    value="kcal/mol",
    space=SPACE,
    objective=energy,
    picture=picture,
    coordinates=[
        Coordinates("Euler angles", [0, -PI, NEAR, -PI, 0, -PI], [PI, PI, FAR, PI, PI, PI], euler),
        Coordinates("normalised vectors", [-1] * 3 + [NEAR] + [-1] * 4, [1] * 3 + [FAR] + [1] * 4, normalised),
    ],
    budget=300,
    worst=50.0,
)

if __name__ == "__main__":
    study = nb.Study(SPACE, seed=0, store="basepair.db")
    study.run(energy, budget=APPLICATION.budget, numpy=True)
    print(f"{study.best.value:.2f} kcal/mol")
    draw(APPLICATION, study).savefig("basepair.png")
