"""Fact C.1: the Frank-Wolfe gap is >= 0, bounds the error of convex f, and is 0 at a minimiser."""

import numpy as np
import pytest

import adafw
from tests.paper.conftest import paths_of


def fw_gap(problem, x):
    g = problem.f.gradient(x)
    return g @ (x - problem.constraint.lmo(g))


def test_gap_is_nonnegative_and_bounds_the_error(problem):
    rng = np.random.default_rng(0)
    n = problem.f.shape[0]
    for _ in range(200):
        corners = [problem.constraint.lmo(rng.standard_normal(n)) for _ in range(3)]
        x = rng.dirichlet(np.full(3, 0.5)) @ np.array(corners)
        error = problem.f.value(x) - problem.minimum
        assert error >= 0
        assert fw_gap(problem, x) >= error - 1e-9


def test_gap_vanishes_at_a_minimiser_and_nowhere_near(problem):
    assert abs(fw_gap(problem, problem.x_star)) <= 1e-9
    away = 0.9 * problem.x_star + 0.1 * problem.constraint.lmo(np.arange(6.0) - 2.2)
    assert fw_gap(problem, away) > 1e-4


@pytest.mark.parametrize(
    "algorithm",
    [adafw.FW(adafw.steps.LineSearch()), adafw.AdaCSFW(learning_rate=0.1, batch_size=6)],
    ids=str,
)
def test_traces_keep_it(problem, algorithm):
    for path in paths_of(problem.f, problem.constraint, algorithm):
        r = adafw.minimize(problem.f, problem.constraint, algorithm, max_iterations=200, path=path)
        trace = r.trace
        assert (trace["gap"] >= trace["value"] - problem.minimum - 1e-9).all()
        assert (trace["lower_bound"] <= problem.minimum + 1e-9).all()
        assert r.lower_bound >= r.value - r.gap
