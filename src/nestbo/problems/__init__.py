"""Benchmark problems with verified optima."""

from nestbo.problems.base import Problem, problem
from nestbo.problems.functions import PROBLEMS
from nestbo.problems.held_out import HELD_OUT
from nestbo.problems.pose import pose
from nestbo.problems.posed import Posed

__all__ = ["HELD_OUT", "PROBLEMS", "Posed", "Problem", "pose", "problem"]
