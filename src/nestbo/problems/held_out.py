"""Problems on which no constant of the library is chosen: ``HELD_OUT``.

Each is made from a space, the size of the latent space inside it (None for a function of the whole point) and a seed.
A seed draws what hides the function: the projection, the coordinates that matter, the direction of a slope, the truth
that data were made from. The optimal value is exact, or stored as the best that a long search found.
"""

from __future__ import annotations

from nestbo.problems.modelling import MODELLING
from nestbo.problems.posed import Builder
from nestbo.problems.textbook import TEXTBOOK
from nestbo.problems.unknown_metric import UNKNOWN_METRIC

HELD_OUT: dict[str, Builder] = {**UNKNOWN_METRIC, **TEXTBOOK, **MODELLING}
