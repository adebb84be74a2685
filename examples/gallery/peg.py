"""The stiffness of a wrist that inserts a peg.

A robot pushes a square peg into a hole that is never quite where the drawing says: up to 2 mm aside and tilted by 2.5°.
A wrist that is too stiff jams and breaks things, one that is too soft does not arrive. Wanted is the stiffness, a
6 × 6 matrix of forces and torques against shifts and turns, with which the peg goes in with least force.

The space is that of symmetric positive definite 6 × 6 matrices, 21 numbers: no other stiffness is stable. The wrist is
16 cm above the tip, and what is known to work (compliance with its centre at the tip, Whitney 1982) couples forces with
torques: a diagonal matrix is a compromise. Only the plane of the misalignment matters, a nested structure. MuJoCo
(Apache-2.0) simulates the robot.
"""

import numpy as np
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

import nestbo as nb
from nestbo.gallery import Application, Coordinates, draw, needs

with needs("mujoco"):
    import mujoco

HALF, GAP, LENGTH, ARM, DEPTH = 0.010, 0.0004, 0.06, 0.16, 0.030  # m: peg, clearance, peg, wrist to tip, hole
CHAMFER, WALL, ABOVE, SPEED = 0.006, 0.03, 0.010, 0.065  # m, m, m above the hole at the start, m/s
MASS, CENTRE, INERTIA = 1.2, -0.05, np.array([0.006, 0.006, 0.002])  # kg, m below the wrist, kg·m²
STEP, SECONDS, SETTLED = 0.002, 0.8, 25  # s, s, steps after which forces count
LOW, HIGH = 0.02, 5.0  # bounds of eigenvalues, in units of SCALE
SCALE = np.sqrt(np.array([800.0] * 3 + [8.0] * 3))  # N/m and N·m/rad at 1
PLANE = np.kron(np.eye(2), Rotation.from_euler("z", 0.6).as_matrix())  # of the misalignment, turned from the axes
# Shift in m and tilt in degrees of the hole; pull in N and twist in N·m of a cable at the wrist.
SCENES = [(-0.002, -2.5, 5.0, 0.2), (0.002, -2.5, -5.0, 0.2), (-0.002, 2.5, -5.0, -0.2), (0.002, 2.5, 5.0, -0.2)]


def hole():
    """Four walls, each with a chamfer of 45°, as boxes of MuJoCo."""
    inner, wide, geoms = HALF + GAP, HALF + GAP + 0.02, []
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        wall, side = np.array([x, y, 0]) * (inner + WALL), (WALL, inner + 2 * WALL)
        wall[2] = -0.02 - CHAMFER
        geoms.append((side if x else side[::-1], 0.02, wall, 0))
        into = np.array([x, y, -1.0]) / np.sqrt(2)  # from the face of the chamfer into the material
        middle = np.array([x, y, 0]) * (inner + CHAMFER / 2) + [0, 0, -CHAMFER / 2] + 0.004 * into
        face = CHAMFER / np.sqrt(2)
        geoms.append(((face, wide) if x else (wide, face), 0.004, middle, -45 if x + y > 0 else 45))
    euler = [f"0 {angle} 0" if k < 4 else f"{-angle} 0 0" for k, (*_, angle) in enumerate(geoms)]
    return "".join(
        f'<geom type="box" size="{a} {b} {height}" pos="{x} {y} {z}" euler="{turn}"/>'
        for ((a, b), height, (x, y, z), _), turn in zip(geoms, euler, strict=True)
    )


MODEL = mujoco.MjModel.from_xml_string(f"""
<mujoco><compiler angle="degree"/>
<option timestep="{STEP}" gravity="0 0 0" cone="elliptic" impratio="5" integrator="implicitfast"/>
<default><geom friction="0.25 0.005 0.0001" solref="0.006 1" solimp="0.95 0.99 0.0005"/></default>
<worldbody><body name="hole">{hole()}</body><body name="tool" pos="0 0 0.2"><freejoint/>
<inertial pos="0 0 {CENTRE}" mass="{MASS}" diaginertia="{" ".join(map(str, INERTIA))}"/>
<geom type="box" size="{HALF} {HALF} {LENGTH / 2}" pos="0 0 {LENGTH / 2 - ARM}" mass="0"/></body></worldbody>
</mujoco>""")
DATA = mujoco.MjData(MODEL)
TOOL = MODEL.body("tool").id
AT_WRIST = np.diag(np.sqrt(np.r_[[MASS] * 3, INERTIA + MASS * CENTRE**2 * np.array([1, 1, 0])]))  # root of the mass


def root(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(values)) @ vectors.T


def insert(stiffness, shift, tilt, pull, twist):
    """How far the tip ends from the bottom of the hole, in depths, the largest force and torque, and the tip's path."""
    inverse = np.linalg.inv(AT_WRIST)
    damping = 1.4 * AT_WRIST @ root(inverse @ stiffness @ inverse) @ AT_WRIST
    mujoco.mj_resetData(MODEL, DATA)
    q, v, frame = DATA.qpos, DATA.qvel, Rotation.from_euler("y", tilt, degrees=True).as_matrix()
    goal = Rotation.from_matrix(frame).as_quat(scalar_first=True)
    start = frame @ [0, 0, ARM + ABOVE] + [shift, 0, 0]  # the robot believes that the hole is straight below
    q[:3], q[3:7] = start, goal
    angle, lever, disturbed = np.empty(3), np.empty(3), np.array([pull, 0, 0, 0, twist, 0])
    tips, loads = [], []
    for k in range(round(SECONDS / STEP)):
        wanted = start - min(ABOVE + DEPTH, SPEED * STEP * k) * frame[:, 2]
        mujoco.mju_subQuat(angle, goal, q[3:7])
        spring = stiffness @ np.concatenate([(wanted - q[:3]) @ frame, angle])
        wrench = spring - damping @ np.concatenate([v[:3] @ frame, v[3:]]) + disturbed
        axes, force = DATA.xmat[TOOL].reshape(3, 3), frame @ wrench[:3]
        mujoco.mju_cross(lever, DATA.xipos[TOOL] - DATA.xpos[TOOL], force)  # MuJoCo wants forces at the centre of mass
        DATA.xfrc_applied[TOOL, :3], DATA.xfrc_applied[TOOL, 3:] = force, axes @ wrench[3:] - lever
        mujoco.mj_step(MODEL, DATA)
        tips.append(DATA.xpos[TOOL] - ARM * axes[:, 2])
        loads.append(spring)
        if not abs(q[2]) < 1:
            raise ArithmeticError("the simulation has diverged")
    loads, tips = np.array(loads[SETTLED:]), np.array(tips)
    force, torque = (np.linalg.norm(part, axis=1).max() for part in (loads[:, :3], loads[:, 3:]))
    return np.linalg.norm(tips[-1] - [0, 0, -DEPTH]) / DEPTH, force, torque, tips


def insertions(matrix):
    stiffness = PLANE.T @ (SCALE[:, None] * matrix * SCALE) @ PLANE
    return [insert(stiffness, *scene) for scene in SCENES]


def cost(matrix):
    """What is left of the way, plus the force in units of 40 N, plus the torque in units of 4 N·m; a mean."""
    return float(np.mean([left + force / 40 + torque / 4 for left, force, torque, _ in insertions(matrix)]))


def picture(matrix, axes):
    for (*_, tips), (shift, tilt, *_) in zip(insertions(matrix), SCENES, strict=True):
        axes.plot(1000 * tips[:, 0], 1000 * tips[:, 2], label=f"{1000 * shift:+.0f} mm, {tilt:+.1f}°")
    for side in (-1, 1):
        axes.fill_between(side * np.array([0.4, 6.4]), [-6, 0], -40, color="0.8")
    axes.set_xlabel(f"mm aside of the tip's centre (the hole has {1000 * GAP} mm of play)")
    axes.set_ylabel("mm above the hole")
    axes.legend(fontsize=7)


def diagonal(u):
    return np.diag(np.exp(u))


def logarithm(u):
    """The exponential of a symmetric matrix, its eigenvalues kept within bounds: all 21 numbers."""
    symmetric = np.zeros((6, 6))
    symmetric[np.tril_indices(6)] = u
    values, vectors = np.linalg.eigh(expm((symmetric + symmetric.T) / 2))
    return (vectors * np.clip(values, LOW, HIGH)) @ vectors.T


SPACE = nb.SPD(6, eigenvalues=(LOW, HIGH), aligned=True)
APPLICATION = Application(
    name="peg",
    value="way left + force + torque",
    space=SPACE,
    objective=cost,
    picture=picture,
    coordinates=[
        Coordinates("diagonal", [np.log(LOW)] * 6, [np.log(HIGH)] * 6, diagonal),
        Coordinates("logarithm of the matrix", [-2.5] * 21, [2.5] * 21, logarithm),
    ],
    budget=120,
    worst=5.0,
)

if __name__ == "__main__":
    study = nb.Study(SPACE, seed=0, store="peg.db")
    study.run(cost, budget=APPLICATION.budget, numpy=True)
    print(f"{study.best.value:.3f}")
    draw(APPLICATION, study).savefig("peg.png")
