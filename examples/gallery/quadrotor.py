"""What the two examples with a quadrotor share: its simulation in MuJoCo (Apache-2.0) and its linear controller.

The controller is designed for a model that knows neither the payload, which hangs off centre, nor the lag of motors.
"""

import numpy as np
from scipy.linalg import solve_continuous_are

from nestbo.gallery import needs

with needs("mujoco"):
    import mujoco

MASS, ARM, DRAG, GRAVITY = 1.0, 0.17, 0.016, 9.81  # kg, m, N·m per N of thrust, m/s²
LAG, STEP = 0.04, 0.005  # s: of motors, of the simulation
STRONGEST = 7.0  # N, the thrust of a motor
INERTIA = np.array([0.008, 0.009, 0.015])  # kg·m²
HOVER = MASS * GRAVITY / 4
MOTORS = [(ARM, 0, -DRAG), (0, ARM, DRAG), (-ARM, 0, -DRAG), (0, -ARM, DRAG)]  # x, y, drag


def quadrotor():
    sites = "".join(f'<site name="m{k}" pos="{x} {y} 0"/>' for k, (x, y, _) in enumerate(MOTORS))
    motors = "".join(
        f'<general site="m{k}" gear="0 0 1 0 0 {drag}" ctrlrange="0 {STRONGEST}" dyntype="filter" dynprm="{LAG}"/>'
        for k, (_, _, drag) in enumerate(MOTORS)
    )
    return f"""
<mujoco><option timestep="{STEP}" gravity="0 0 -{GRAVITY}" density="1.2" viscosity="2e-5" integrator="implicitfast"/>
<worldbody><body name="quad"><freejoint/>
<inertial pos="0 0 0" mass="{MASS}" diaginertia="{" ".join(map(str, INERTIA))}"/>
<geom type="box" size="0.15 0.15 0.03" mass="0" contype="0" conaffinity="0"/>
<body name="load" pos="0.05 0.03 -0.06"><geom type="sphere" size="0.04" mass="0.3" contype="0" conaffinity="0"/></body>
{sites}</body></worldbody><actuator>{motors}</actuator></mujoco>"""


MODEL = mujoco.MjModel.from_xml_string(quadrotor())
DATA = mujoco.MjData(MODEL)
BODY = MODEL.body("quad").id

# The designer's model: position, velocity, rotation vector and body rates (12), thrusts of four motors.
A, B = np.zeros((12, 12)), np.zeros((12, 4))
A[:3, 3:6], A[6:9, 9:12] = np.eye(3), np.eye(3)
A[3, 7], A[4, 6] = GRAVITY, -GRAVITY
B[5] = 1 / MASS
B[9] = np.array([y for _, y, _ in MOTORS]) / INERTIA[0]
B[10] = -np.array([x for x, _, _ in MOTORS]) / INERTIA[1]
B[11] = np.array([drag for _, _, drag in MOTORS]) / INERTIA[2]
# Bryson's rule: one over the square of the largest acceptable error of each state, in m, m/s, rad, rad/s.
BRYSON = 1 / np.array([0.3, 0.3, 0.3, 1, 1, 1, 0.3, 0.3, 0.3, 2, 2, 2]) ** 2


def gain(weights):
    """The linear-quadratic regulator for weights (12, 12) of the state; thrusts have weight 1."""
    return B.T @ solve_continuous_are(A, B, weights, np.eye(4))


def fly(regulator, start, seconds, force=None):
    """States (n, 12) and thrusts (n, 4) on the way from a start to the origin; None after a crash.

    ``force`` (n, 3) acts on the body, in N.
    """
    mujoco.mj_resetData(MODEL, DATA)
    x, v, pushed = DATA.qpos, DATA.qvel, DATA.xfrc_applied[BODY]
    x[:3], x[3:7], DATA.act[:] = start, [1, 0, 0, 0], HOVER
    steps, angle, level = round(seconds / STEP), np.empty(3), np.array([1.0, 0, 0, 0])
    states, thrusts = np.empty((steps, 12)), np.empty((steps, 4))
    for k in range(steps):
        mujoco.mju_subQuat(angle, x[3:7], level)
        state = np.concatenate([x[:3], v[:3], angle, v[3:]])
        DATA.ctrl[:] = np.clip(HOVER - regulator @ state, 0, STRONGEST)
        if force is not None:
            pushed[:3] = force[k]
        mujoco.mj_step(MODEL, DATA)
        states[k], thrusts[k] = state, DATA.ctrl
        if not np.abs(x[:3]).sum() < 8 or angle @ angle > 4:
            return None
    return states, thrusts
