"""Projected adaptive gradients line by line: the metric, the rate, the projection."""

import math

import numpy as np
import pytest

import adafw
from adafw.gradients import Full
from adafw.metrics import Adam, Metric
from adafw.steps import AdaptiveStep, PreconditionedStep, ProjectedStep

F = adafw.UserSum(1, lambda x: 0.0, lambda x, batch=None: x)


class Told(Metric):
    """m = g + t, h = 1 + 3 t in its first entry and 1 elsewhere."""

    def init(self, x):
        return {}

    def update(self, g, t, state):
        h = np.ones_like(g)
        h[0] += 3 * t
        return g + t, h, {"asked": t}


@pytest.mark.parametrize("constraint", [adafw.L1Ball(0.4), adafw.L2Ball(0.4), adafw.Simplex(2.0)])
def test_a_step_is_its_formula(constraint):
    step = ProjectedStep(lambda t: [0.5, 0.25, 0.125][t], Told())
    x, g = np.array([0.2, 0.1, 0.15]), np.array([-3.0, 2.0, 0.5])
    for t, eta in enumerate([0.5, 0.25, 0.125]):
        h = np.array([1.0 + 3 * t, 1.0, 1.0])
        aim = constraint.project(x - eta * (g + t) / h, h)
        new, state = step.update(F, constraint, x, g, t, {})
        np.testing.assert_array_equal(new, aim)
        assert state == {"asked": t}
        if t:
            assert np.abs(aim - constraint.project(x - eta * (g + t) / h)).max() > 1e-3


@pytest.mark.parametrize(
    "make", [ProjectedStep, PreconditionedStep, lambda eta, metric: AdaptiveStep(
        eta, metric=metric, inner="corrective")], ids=["projected", "preconditioned", "corrective"]
)  # fmt: skip
def test_it_is_the_linear_term_that_must_not_be_zero(make):
    ball, x = adafw.L1Ball(1.0), np.array([0.5, 0.0, 0.0])
    step = make(0.5, Told())
    moved, _ = step.update(F, ball, x, np.zeros(3), 1, {})
    assert np.abs(moved - x).max() > 1e-3
    still, _ = step.update(F, ball, x, np.full(3, -1.0), 1, {})
    assert still is x


def test_momentum_goes_on_after_the_gradient():
    ball, x = adafw.L2Ball(1.0), np.array([0.5, 0.0])
    step = ProjectedStep(0.1, Adam())
    state = step.init(x)
    first, state = step.update(F, ball, x, np.array([1.0, -2.0]), 0, state)
    second, state = step.update(F, ball, first, np.zeros(2), 1, state)
    assert second[0] < first[0] < 0.5
    assert second[1] > first[1] > 0.0


def test_rates_are_finite_and_above_zero():
    for bad in (math.inf, 0.0, -1.0):
        with pytest.raises(ValueError, match="learning_rate"):
            ProjectedStep(bad)
    assert AdaptiveStep(math.inf).rate(3) == math.inf
    with pytest.raises(TypeError, match="metric must be one of"):
        ProjectedStep(0.1, "adagrad")


def test_only_sets_with_a_projection_in_a_metric_will_do():
    class Round(adafw.L2Ball):
        projection = "euclidean"

    ProjectedStep(0.1).check(F, adafw.L2Ball(1.0), Full())
    for bad in (Round(1.0), adafw.UserSet(lambda g: -np.sign(g), np.zeros(4))):
        with pytest.raises(TypeError, match="needs a set with a projection in a diagonal metric"):
            ProjectedStep(0.1).check(F, bad, Full())
