"""Where a water molecule binds to uracil.

Whether a drug or a base of RNA dissolves depends on where water holds on to it. Uracil has four places in its plane
that water likes, of different depth, and around them nothing. Wanted is the deepest one, with as few evaluations of a
quantum-chemical model as possible (GFN2-xTB, 6 ms; with a costlier model they take hours).

The space is S² × gap × SO(3): the direction from which water comes, how much farther than touching it stays, and how
it is turned. Three angles for a rotation have a pole where they tear; unit quaternions have none.
RDKit (BSD-3-Clause) builds the molecules, tblite (LGPL-3.0) computes energies.
"""

import nestbo as nb
from nestbo.gallery import Application, draw, needs

with needs("rdkit", "tblite"):
    from placement import FAR, NEAR, PLACEMENTS, Pair

PAIR = Pair("O=c1cc[nH]c(=O)[nH]1", "O")
SPACE = nb.Product(nb.Sphere(2), nb.Box(NEAR, FAR), nb.Quaternion())


def energy(x):
    """Of the interaction, in kcal/mol; x is a direction, a gap in Å and a quaternion."""
    return PAIR(x)


APPLICATION = Application(
    name="water",
    value="kcal/mol",
    space=SPACE,
    objective=energy,
    picture=PAIR.draw,
    coordinates=PLACEMENTS,
    budget=100,
    worst=50.0,
)

if __name__ == "__main__":
    study = nb.Study(SPACE, seed=0, store="water.db")
    study.run(energy, budget=APPLICATION.budget, numpy=True)
    print(f"{study.best.value:.2f} kcal/mol")
    draw(APPLICATION, study).savefig("water.png")
