"""A fuel blend for a gas turbine.

A burner may run on six gases in any proportion, lean or rich, with cold or preheated air. Each choice has a price:
the fuel, the taxes on CO2, NOx and CO, what leaves unburnt, and a turbine that likes it hot. Wanted is the
cheapest megawatt-hour, in €.

The space is a simplex of six proportions times a box of equivalence ratio and inlet temperature: proportions add up to
one, and none is negative. The burner is a well-stirred reactor with the chemistry of GRI-Mech 3.0 (53 species, 325
reactions), which comes with Cantera (BSD-3-Clause). Prices are round figures.
"""

import numpy as np

import nestbo as nb
from nestbo.gallery import Application, Coordinates, draw, needs

with needs("cantera"):
    import cantera

cantera.suppress_thermo_warnings()
FUELS = ["H2", "CH4", "C3H8", "CO", "NH3", "C2H6"]
PRICE = np.array([3.0, 0.45, 0.75, 0.18, 0.55, 0.65])  # €/kg
HEAT = np.array([241.8, 802.3, 2043.1, 283.0, 316.8, 1428.6])  # lower heating value, MJ/kmol
OXYGEN = np.array([0.5, 2.0, 5.0, 0.5, 0.75, 3.5])  # kmol for a complete combustion of one kmol
AIR = 32.0 + 3.76 * 28.013  # kg of air per kmol of oxygen
TAX = {"CO2": 0.1, "NO": 40.0, "NO2": 40.0, "N2O": 27.0, "CO": 20.0}  # €/kg
PRESSURE = 15 * cantera.one_atm
RESIDENCE = 0.004  # s that the gas spends in the burner
WORST = 400.0  # €/MWh, where the flame goes out
GAS = cantera.Solution("gri30.yaml")
MOLAR = np.array([GAS.molecular_weights[GAS.species_index(fuel)] for fuel in FUELS])  # kg/kmol


def burnt(blend, ratio, inlet):
    """Temperature in K and mass fractions in the burner, in its steady state."""
    GAS.TP = inlet, PRESSURE
    GAS.set_equivalence_ratio(ratio, dict(zip(FUELS, blend, strict=True)), "O2:1, N2:3.76")
    before = cantera.Reservoir(GAS)
    GAS.equilibrate("HP")  # lit
    burner, after = cantera.IdealGasReactor(GAS, volume=1.0), cantera.Reservoir(GAS)
    flow = cantera.MassFlowController(before, burner, mdot=lambda t: burner.mass / RESIDENCE)
    valve = cantera.PressureController(burner, after, primary=flow, K=1e-5)
    net = cantera.ReactorNet([burner])
    net.rtol, net.atol = 1e-6, 1e-14
    net.advance(20 * RESIDENCE)
    del valve
    return burner.T, burner.phase.Y


def bill(x):
    """€/MWh for fuel, for taxes and for preheating."""
    blend = np.clip(x[:6], 0, 1)
    blend, ratio, inlet = blend / blend.sum(), x[6], x[7]
    temperature, y = burnt(blend, ratio, inlet)
    mass = blend @ MOLAR
    share = mass / (mass + blend @ OXYGEN * AIR / ratio)  # kg of fuel per kg of mixture
    left = np.array([y[GAS.species_index(fuel)] for fuel in FUELS])  # unburnt
    heat = (share * (blend @ HEAT) / mass - left @ (HEAT / MOLAR)) / 3600  # MWh per kg of mixture
    useful = max(heat, 1e-6) * (1 - 300 / max(temperature, 301.0))  # a hotter burner drives a better turbine
    taxes = sum(price * y[GAS.species_index(gas)] for gas, price in TAX.items())
    preheating = 6e-6 * (inlet - 500)
    return np.array([share * (blend @ (PRICE * MOLAR)) / mass, taxes, preheating]) / useful


def cost(x):
    """€/MWh."""
    return min(float(bill(x).sum()), WORST)


def picture(x, axes):
    shown = x[:6] > 0.005
    axes.bar(np.array(FUELS)[shown], 100 * x[:6][shown], color="tab:orange")
    fuel, taxes, _ = bill(x)
    axes.set_ylabel("% of the blend")
    axes.set_title(f"φ {x[6]:.2f}, air at {x[7]:.0f} K: fuel {fuel:.1f}, taxes {taxes:.1f} €/MWh", size=9)


def exponential(u):
    """Proportions as Optuna's documentation makes them: logarithms of uniform numbers, normalised."""
    return np.r_[np.log(u[:6]) / np.log(u[:6]).sum(), u[6:]]


def softmax(u):
    return np.r_[np.exp(u[:6]) / np.exp(u[:6]).sum(), u[6:]]


LOW, HIGH = [0.4, 500.0], [1.0, 800.0]  # equivalence ratio, inlet temperature in K
SPACE = nb.Product(nb.Simplex(5), nb.Box(LOW, HIGH))
APPLICATION = Application(
    name="burner",
    value="€/MWh",
    space=SPACE,
    objective=cost,
    picture=picture,
    coordinates=[
        Coordinates("softmax", [-6.0] * 6 + LOW, [6.0] * 6 + HIGH, softmax),
        Coordinates("normalised logarithms", [0.001] * 6 + LOW, [0.999] * 6 + HIGH, exponential),
    ],
    budget=100,
    worst=WORST,
)

if __name__ == "__main__":
    study = nb.Study(SPACE, seed=0, store="burner.db")
    study.run(cost, budget=APPLICATION.budget, numpy=True)
    print(f"{study.best.value:.2f} €/MWh at {study.best.x.numpy().round(3)}")
    draw(APPLICATION, study).savefig("burner.png")
