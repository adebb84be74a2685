"""What the three examples with molecules share: GFN2-xTB energies, relaxed molecules, pictures of atoms.

tblite (LGPL-3.0) computes the energies, RDKit (BSD-3-Clause) builds the molecules from their SMILES.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import distance_matrix

from nestbo.gallery import needs

with needs("rdkit", "tblite"):
    from rdkit import Chem
    from rdkit.Chem import AllChem
    from tblite.interface import Calculator

BOHR = 1.8897261246  # per Å
KCAL = 627.5094740631  # kcal/mol per Hartree
COLOURS = {1: "white", 6: "0.35", 7: "tab:blue", 8: "tab:red", 16: "gold"}
COVALENT = {1: 0.31, 6: 0.76, 7: 0.71, 8: 0.66, 16: 1.05}  # radii, Å
# Å. Smaller than van der Waals radii: atoms of a hydrogen bond come closer than these say.
CONTACT = {1: 0.9, 6: 1.55, 7: 1.4, 8: 1.35}


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


def touching(fixed, moving, direction):
    """How far a molecule moves along a direction until it touches a fixed one; both are (numbers, positions)."""
    radii = [np.array([CONTACT[a] for a in numbers]) for numbers, _ in (fixed, moving)]
    reach = radii[0][:, None] + radii[1]
    apart = moving[1][None] - fixed[1][:, None]
    along = apart @ direction
    inside = reach**2 - (apart**2).sum(-1) + along**2  # |apart + s·direction| = reach has a solution where positive
    contact = -along + np.sqrt(np.clip(inside, 0, None))
    return np.where(inside > 0, contact, -np.inf).max()


def softened(energy, above, width=5.0):
    """Energies of colliding atoms grow without bounds; above a level their logarithm will do."""
    return energy if energy < above else above + width * np.log1p((energy - above) / width)


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
