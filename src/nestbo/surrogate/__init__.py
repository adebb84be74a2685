"""The surrogate: Gaussian processes on a manifold or on one nested in it, fitted to many runs at once."""

from nestbo.surrogate.fit import Surrogate, fit_surrogate, median_parameters, previous_parameters, steepness
from nestbo.surrogate.gp import GP, gram_root
from nestbo.surrogate.likelihood import CRITERIA, leave_one_out, negative_log_likelihood
from nestbo.surrogate.model import Model
from nestbo.surrogate.nested import fit_nested, worth_of_basis

__all__ = [
    "CRITERIA",
    "GP",
    "Model",
    "Surrogate",
    "fit_nested",
    "fit_surrogate",
    "gram_root",
    "leave_one_out",
    "median_parameters",
    "negative_log_likelihood",
    "previous_parameters",
    "steepness",
    "worth_of_basis",
]
