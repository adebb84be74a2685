"""What the two examples with a pair of molecules share: where the second one is placed, and what that is worth.

A placement is a direction, a gap and a rotation. tblite (LGPL-3.0) computes the energies.
"""

import numpy as np
from chemistry import Energy, draw_atoms, relaxed, softened
from scipy.spatial.transform import Rotation

from nestbo.gallery import Coordinates

# Å. Smaller than van der Waals radii: atoms of a hydrogen bond come closer than these say.
CONTACT = {1: 0.9, 6: 1.55, 7: 1.4, 8: 1.35}
NEAR, FAR = -0.3, 1.2  # Å beyond touching
PI = np.pi


def touching(fixed, moving, direction):
    """How far a molecule moves along a direction until it touches a fixed one; both are (numbers, positions)."""
    radii = [np.array([CONTACT[a] for a in numbers]) for numbers, _ in (fixed, moving)]
    reach = radii[0][:, None] + radii[1]
    apart = moving[1][None] - fixed[1][:, None]
    along = apart @ direction
    inside = reach**2 - (apart**2).sum(-1) + along**2  # |apart + s·direction| = reach has a solution where positive
    contact = -along + np.sqrt(np.clip(inside, 0, None))
    return np.where(inside > 0, contact, -np.inf).max()


class Pair:
    """Two molecules: the first is held, the second is placed beside it.

    A placement is a direction x[:3] from which the second one comes, a gap x[3] in Å beyond touching, and a quaternion
    x[4:8] that turns it.
    """

    def __init__(self, held, placed):
        self.held, self.placed = relaxed(held), relaxed(placed)
        self.numbers = np.concatenate([self.held[0], self.placed[0]])
        self.energy = Energy(self.numbers)
        self.apart = sum(Energy(numbers)(positions) for numbers, positions in (self.held, self.placed))

    def positions(self, x):
        """Of all atoms, in Å."""
        turned = Rotation.from_quat(x[4:8]).apply(self.placed[1])
        contact = touching(self.held, (self.placed[0], turned), x[:3])
        return np.concatenate([self.held[1], turned + (contact + x[3]) * x[:3]])

    def __call__(self, x):
        """The energy of the interaction, in kcal/mol; repulsion is softened."""
        return softened(self.energy(self.positions(x)) - self.apart, above=0.0)

    def draw(self, x, axes):
        draw_atoms(axes, self.numbers, self.positions(x))
        axes.set_title(f"{self(x):.1f} kcal/mol", size=9)


def euler(u):
    """A placement from two polar angles, the gap and three Euler angles."""
    direction = [np.sin(u[0]) * np.cos(u[1]), np.sin(u[0]) * np.sin(u[1]), np.cos(u[0])]
    return np.r_[direction, u[2], Rotation.from_euler("ZYZ", u[3:]).as_quat()]


def normalised(u):
    """A placement from a vector and a quaternion of any length."""
    unit = [part / max(np.linalg.norm(part), 1e-9) for part in (u[:3], u[4:])]
    return np.r_[unit[0], u[3], unit[1]]


PLACEMENTS = [
    Coordinates("Euler angles", [0, -PI, NEAR, -PI, 0, -PI], [PI, PI, FAR, PI, PI, PI], euler),
    Coordinates("normalised vectors", [-1] * 3 + [NEAR] + [-1] * 4, [1] * 3 + [FAR] + [1] * 4, normalised),
]
