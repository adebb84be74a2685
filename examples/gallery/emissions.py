"""Cheap or clean.

The burner of burner.py once more, but taxes do not decide what NOx is worth: a buyer wants to see what each euro
buys. Wanted are all blends of fuel, and ways to run them, that nobody can make both cheaper and cleaner. The law
allows no more than 1.5 g of CO per kWh, which is known only after an evaluation.

The space is again a simplex of six proportions times a box of equivalence ratio and inlet temperature. There are two
objectives, €/MWh for fuel and g of NOx per MWh, and one observed constraint. Cantera (BSD-3-Clause) burns the fuel.
"""

import numpy as np

import nestbo as nb
from nestbo.gallery import Application, draw, needs

with needs("cantera"):
    from burner import AIR, FUELS, GAS, HEAT, MOLAR, OXYGEN, PRICE, burnt
    from burner import APPLICATION as BURNER

MOST_CO = 1.5  # kg/MWh
HIGHEST = (400.0, 5.0)  # €/MWh, decades of g/MWh: where a flame that goes out is put


def emissions(x):
    """€ for fuel, kg of NOx and kg of CO, each per MWh; None where the flame has gone out."""
    blend = np.clip(x[:6], 0, 1)
    blend, ratio, inlet = blend / blend.sum(), x[6], x[7]
    temperature, y = burnt(blend, ratio, inlet)
    mass = blend @ MOLAR
    share = mass / (mass + blend @ OXYGEN * AIR / ratio)
    unburnt = np.array([y[GAS.species_index(fuel)] for fuel in FUELS]) @ (HEAT / MOLAR)
    heat = (share * (blend @ HEAT) / mass - unburnt) / 3600  # MWh per kg of mixture
    if temperature < 1200 or heat <= 0:
        return None
    useful = heat * (1 - 300 / temperature)
    price = share * (blend @ (PRICE * MOLAR)) / mass
    nox, co = (sum(y[GAS.species_index(gas)] for gas in gases) for gases in (("NO", "NO2"), ("CO",)))
    return np.array([price, nox, co]) / useful


def outcome(x):
    """Price, the decimal logarithm of g of NOx per MWh, and how far CO is below what is allowed, in decades."""
    found = emissions(x)
    if found is None:
        return nb.Observation(HIGHEST, constraints=[-3.0])
    price, nox, co = found
    values = (min(price, HIGHEST[0]), min(np.log10(1000 * nox + 1e-3), HIGHEST[1]))
    return nb.Observation(values, constraints=[float(np.log10(MOST_CO / (co + 1e-6)))])


def picture(x, axes):
    shown = x[:6] > 0.005
    axes.bar(np.array(FUELS)[shown], 100 * x[:6][shown], color="tab:green")
    price, nox, _ = emissions(x)
    axes.set_ylabel("% of the blend")
    axes.set_title(f"{price:.1f} €/MWh, {1000 * nox:.0f} g NOx/MWh; φ {x[6]:.2f}, air at {x[7]:.0f} K", size=9)


OBJECTIVES = ("€/MWh", "log10 g NOx/MWh")
APPLICATION = Application(
    name="emissions",
    value="€/MWh",
    space=BURNER.space,
    objective=outcome,
    picture=picture,
    coordinates=BURNER.coordinates,
    budget=80,
    worst=HIGHEST[0],
    objectives=OBJECTIVES,
)

if __name__ == "__main__":
    study = nb.Study(BURNER.space, seed=0, objectives=OBJECTIVES, store="emissions.db")
    study.run(outcome, budget=APPLICATION.budget, numpy=True)
    for trial in study.front:
        print(trial.values, trial.x.numpy().round(2))
    draw(APPLICATION, study).savefig("emissions.png")
