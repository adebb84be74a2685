"""What the three examples with molecules need: GFN2-xTB energies, folded and relaxed molecules, pictures of atoms.

tblite (LGPL-3.0) computes the energies, RDKit (BSD-3-Clause) builds the molecules from their SMILES.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import distance_matrix

from nestbo.gallery import needs

with needs("rdkit", "tblite"):
    from rdkit import Chem
    from rdkit.Chem import AllChem, rdMolTransforms
    from tblite.interface import Calculator

BOHR = 1.8897261246  # per Å
KCAL = 627.5094740631  # kcal/mol per Hartree
COLOURS = {1: "white", 6: "0.35", 7: "tab:blue", 8: "tab:red", 16: "gold"}
COVALENT = {1: 0.31, 6: 0.76, 7: 0.71, 8: 0.66, 16: 1.05}  # radii, Å


class Energy:
    """The energy of given atoms, in kcal/mol, at positions (n, 3) in Å."""

    def __init__(self, numbers):
        self.numbers, self.calculator = np.asarray(numbers), None

    def result(self, positions):
        if self.calculator is None:
            self.calculator = Calculator("GFN2-xTB", self.numbers, positions * BOHR)
            self.calculator.set("verbosity", 0)
        self.calculator.update(positions * BOHR)
        return self.calculator.singlepoint()

    def __call__(self, positions):
        return self.result(positions).get("energy") * KCAL

    def with_gradient(self, flat):
        found = self.result(flat.reshape(-1, 3))
        return found.get("energy") * KCAL, found.get("gradient").ravel() * KCAL * BOHR


def embedded(smiles, seed=7):
    """An RDKit molecule with hydrogens and positions of a force field."""
    molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
    AllChem.EmbedMolecule(molecule, randomSeed=seed)
    AllChem.MMFFOptimizeMolecule(molecule, maxIters=2000)
    return molecule, np.array([atom.GetAtomicNum() for atom in molecule.GetAtoms()])


def relaxed(smiles):
    """Atomic numbers and relaxed positions, in principal axes around the centre."""
    molecule, numbers = embedded(smiles)
    energy = Energy(numbers)
    start = molecule.GetConformer().GetPositions().ravel()
    found = minimize(energy.with_gradient, start, jac=True, method="L-BFGS-B", options={"maxiter": 200})
    positions = found.x.reshape(-1, 3)
    positions = positions - positions.mean(0)
    return numbers, positions @ np.linalg.svd(positions)[2].T


def softened(energy, above, width=5.0):
    """Energies of colliding atoms grow without bounds; above a level their logarithm will do."""
    return energy if energy < above else above + width * np.log1p((energy - above) / width)


class Fold:
    """A molecule whose bonds are turned: a torsion is four atoms, "H" being the first hydrogen of its neighbour."""

    def __init__(self, smiles, torsions):
        self.molecule, self.numbers = embedded(smiles)
        self.energy = Energy(self.numbers)
        self.torsions = [self._atoms(*torsion) for torsion in torsions]

    def _atoms(self, first, second, third, fourth):
        first = self._hydrogen(second) if first == "H" else first
        fourth = self._hydrogen(third) if fourth == "H" else fourth
        return first, second, third, fourth

    def _hydrogen(self, atom):
        neighbours = self.molecule.GetAtomWithIdx(atom).GetNeighbors()
        return min(other.GetIdx() for other in neighbours if other.GetAtomicNum() == 1)

    def positions(self, angles):
        """Of all atoms when the bonds are turned to these angles, in Å."""
        shape = self.molecule.GetConformer()
        for atoms, angle in zip(self.torsions, angles, strict=True):
            rdMolTransforms.SetDihedralRad(shape, *atoms, float(angle))
        return shape.GetPositions()

    def __call__(self, angles):
        """The energy, in kcal/mol."""
        return self.energy(self.positions(angles))


def draw_atoms(axes, numbers, positions):
    """Atoms as discs, bonds as lines, seen along the axis of least extent."""
    centred = positions - positions.mean(0)
    seen = centred @ np.linalg.svd(centred)[2].T
    radii = np.array([COVALENT[a] for a in numbers])
    bonded = distance_matrix(seen, seen) < 1.25 * (radii[:, None] + radii)
    for i, j in np.argwhere(np.triu(bonded, 1)):
        axes.plot(*seen[[i, j], :2].T, color="0.5", linewidth=3, zorder=1)
    order = np.argsort(seen[:, 2])
    colours = [COLOURS[numbers[i]] for i in order]
    axes.scatter(*seen[order, :2].T, s=500 * radii[order], c=colours, edgecolors="0.2", zorder=2)
    axes.set_aspect("equal")
    axes.margins(0.15)
    axes.axis("off")
