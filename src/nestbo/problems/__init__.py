"""Benchmark problems with verified optima."""

from nestbo.problems.base import Problem, problem
from nestbo.problems.functions import PROBLEMS

__all__ = ["PROBLEMS", "Problem", "problem"]
