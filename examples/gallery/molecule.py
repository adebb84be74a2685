"""The lowest conformer of cysteine.

A small molecule folds by turning about its single bonds, and its shape decides what it does in a cell. Cysteine, an
amino acid, has five such bonds, and dozens of shapes that are stable. Wanted is the one of lowest energy, with as few
evaluations of a quantum-chemical model as possible (GFN2-xTB, 10 to 20 ms; with a costlier model they take hours).

The space is a torus of five angles, because an angle of 359° is next to one of 1°. A box of angles has a wall there.
The problem is that of Fang, Makkonen, Todorović, Rinke and Chen (J. Chem. Theory Comput. 2021).
"""

import numpy as np

import nestbo as nb
from nestbo.gallery import Application, Coordinates, draw, needs

with needs("rdkit", "tblite"):
    from chemistry import Fold, draw_atoms, softened

LOWEST = -15237.09  # kcal/mol, the lowest of 40 local searches
CLASH = 15.0  # kcal/mol above the lowest: from there on atoms collide
TORSIONS = {  # four atoms of N0 Cα1 Cβ2 S3 C4 O5 O6 each; "H" is the first hydrogen of its neighbour
    "amine": ("H", 0, 1, 4),
    "carboxyl": (0, 1, 4, 5),
    "hydroxyl": (1, 4, 6, "H"),
    "side chain": (0, 1, 2, 3),
    "thiol": (1, 2, 3, "H"),
}
CYSTEINE = Fold("N[C@@H](CS)C(=O)O", TORSIONS.values())


def energy(angles):
    """kcal/mol above the lowest conformer known; the molecule is not relaxed."""
    return softened(CYSTEINE(angles) - LOWEST, above=CLASH)


def picture(angles, axes):
    draw_atoms(axes, CYSTEINE.numbers, CYSTEINE.positions(angles))
    axes.set_title(" ".join(f"{name} {np.degrees(a):.0f}°" for name, a in zip(TORSIONS, angles, strict=True)), size=7)


def pairs(u):
    """Angles from five pairs of cosine and sine."""
    return np.arctan2(u[5:], u[:5])


APPLICATION = Application(
    name="molecule",
    value="kcal/mol above the lowest",
    space=nb.Torus(5),
    objective=energy,
    picture=picture,
    coordinates=[
        Coordinates("angles", [-np.pi] * 5, [np.pi] * 5, np.asarray),
        Coordinates("cosines and sines", [-1.0] * 10, [1.0] * 10, pairs),
    ],
    budget=100,
    worst=50.0,
)

if __name__ == "__main__":
    study = nb.Study(nb.Torus(5), seed=0, store="molecule.db")
    study.run(energy, budget=APPLICATION.budget, numpy=True)
    print(f"{study.best.value:.2f} kcal/mol at {np.degrees(study.best.x.numpy()).round()}°")
    draw(APPLICATION, study).savefig("molecule.png")
