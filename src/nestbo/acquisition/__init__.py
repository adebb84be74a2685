"""What is maximised to find the next point, and how: ``functions``, ``starts`` of a search, and ``climbing``."""

from nestbo.acquisition.climbing import OPTIMISERS, Limits, Optimiser, maximise
from nestbo.acquisition.functions import (
    ACQUISITIONS,
    Question,
    constrained,
    expected_improvement,
    improvement,
    log_expected_improvement,
)
from nestbo.acquisition.starts import candidates, scattered

__all__ = [
    "ACQUISITIONS",
    "OPTIMISERS",
    "Limits",
    "Optimiser",
    "Question",
    "candidates",
    "constrained",
    "expected_improvement",
    "improvement",
    "log_expected_improvement",
    "maximise",
    "scattered",
]
