"""Linear models under a constraint, fitted to a tolerance: what the front ends share."""

from adafw.fitting.linear import Fit, Settings, fit_linear
from adafw.fitting.names import algorithm_named, constraint_named, loss_named
from adafw.fitting.problem import Problem, make_problem

__all__ = [
    "Fit",
    "Problem",
    "Settings",
    "algorithm_named",
    "constraint_named",
    "fit_linear",
    "loss_named",
    "make_problem",
]
