"""How two bases of DNA pair.

Guanine and cytosine hold the two strands of DNA together by three hydrogen bonds, and they could touch in countless
other ways. One base is held, the other is placed anywhere around it, turned in any way. Wanted is the placement of
lowest energy (GFN2-xTB, 20 ms); that of the textbook, by Watson and Crick, has −24 kcal/mol.

The space is S² × gap × SO(3): the direction from which cytosine comes, how much farther than touching it stays, and how
it is turned. The landscape has many funnels, most of them shallow: a base that lies on top of the other one is already
worth −10 kcal/mol. RDKit (BSD-3-Clause) builds the molecules, tblite (LGPL-3.0) computes energies.
"""

import nestbo as nb
from nestbo.gallery import Application, draw, needs

with needs("rdkit", "tblite"):
    from placement import FAR, NEAR, PLACEMENTS, Pair

PAIR = Pair("Cn1cnc2c1nc(N)[nH]c2=O", "Cn1ccc(N)nc1=O")  # a methyl group is where each strand begins
SPACE = nb.Product(nb.Sphere(2), nb.Box(NEAR, FAR), nb.Quaternion())


def energy(x):
    """Of the interaction, in kcal/mol; x is a direction, a gap in Å and a quaternion."""
    return PAIR(x)


APPLICATION = Application(
    name="basepair",
    value="kcal/mol",
    space=SPACE,
    objective=energy,
    picture=PAIR.draw,
    coordinates=PLACEMENTS,
    budget=300,
    worst=50.0,
)

if __name__ == "__main__":
    study = nb.Study(SPACE, seed=0, store="basepair.db")
    study.run(energy, budget=APPLICATION.budget, numpy=True)
    print(f"{study.best.value:.2f} kcal/mol")
    draw(APPLICATION, study).savefig("basepair.png")
