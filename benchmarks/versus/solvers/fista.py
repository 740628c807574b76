"""Projected FISTA: y = x + beta (x - last), x = project(y - grad f(y) / L)."""

import numpy as np
from solver import Solver

import adafw


def solve(problem, budget):
    ball, L = adafw.L1Ball(problem.radius), problem.smoothness
    x = y = np.zeros(problem.A.shape[1])
    t = 1.0
    for _ in range(budget):
        last, x = x, ball.project(y - problem.f.gradient(y) / L)
        t, old = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
        y = x + (old - 1) / t * (x - last)
    return x


SOLVERS = (Solver("projected FISTA", solve, (2, 5, 12, 30, 80)),)
