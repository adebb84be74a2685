"""The surrogate: Gaussian processes on a manifold or on one nested in it, fitted to many runs at once."""

from nestbo.surrogate.description import Data, Description, Effort
from nestbo.surrogate.fitting import fit
from nestbo.surrogate.gp import GP
from nestbo.surrogate.likelihood import CRITERIA, leave_one_out, negative_log_likelihood
from nestbo.surrogate.metric import Metric, Sight
from nestbo.surrogate.model import Model, Surrogate
from nestbo.surrogate.varied import median_parameters

__all__ = [
    "CRITERIA",
    "GP",
    "Data",
    "Description",
    "Effort",
    "Metric",
    "Model",
    "Sight",
    "Surrogate",
    "fit",
    "leave_one_out",
    "median_parameters",
    "negative_log_likelihood",
]
