"""What has been tried: trials, and the history of a study, the only state of an optimisation."""

from nestbo.history.history import Direction, Directions, History, Noise
from nestbo.history.trial import Observation, State, Status, Told, Trial, noted

__all__ = [
    "Direction",
    "Directions",
    "History",
    "Noise",
    "Observation",
    "State",
    "Status",
    "Told",
    "Trial",
    "noted",
]
