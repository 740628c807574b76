"""The pieces of a Newton step: minimisers of a quadratic model over the space, a hull, a plane."""

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

import adafw
from adafw.constraints.counted import CountedSet
from adafw.objectives import Line, Quadratic
from adafw.steps import newton, spectral


def model(seed, n=5, rank=9):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((n, rank))
    return Quadratic(rng.standard_normal(n), rng.standard_normal(n), B @ B.T)


def test_curvatures_of_any_scale_count():
    f = Quadratic(np.array([1.0, 2.0, 3.0]), np.ones(3), np.diag([1e-12, 0.25, 4.0]))
    np.testing.assert_allclose(newton._unconstrained(f), [1 - 1e12, -2, 2.75])


def test_of_several_minimisers_the_nearest_in_units_of_the_curvature():
    """<d, (1, 2)> = -1 is best, and a column without curvature moves nothing."""
    H = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 0.0]])
    f = Quadratic(np.zeros(3), np.array([1.0, 2.0, 0.0]), H)
    np.testing.assert_allclose(newton._unconstrained(f), [-0.5, -0.25, 0])


@pytest.mark.parametrize("seed", range(5))
def test_weights_of_sum_zero(seed):
    rng = np.random.default_rng(seed)
    B, slopes = rng.standard_normal((6, 4)), rng.standard_normal(4)
    G = B.T @ B
    w = newton._affine(G, slopes)
    assert abs(w.sum()) <= 1e-12
    level = G @ w + slopes
    assert np.ptp(level) <= 1e-9 * np.abs(slopes).max()
    np.testing.assert_array_equal(newton._affine(G, np.full(4, 3.0)), 0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("constraint", [adafw.L1Ball(1.5), adafw.Simplex(1.5), adafw.LInfBall(0.7)])
def test_corrective_and_projected_steps_find_the_same_minimum(seed, constraint):
    f = model(seed)
    y, done = newton._corrective(f, constraint, constraint.lmo(np.ones(5)), 1e-10, 200)
    assert done
    assert constraint.contains(y, 1e-12)
    assert newton._gap(f, constraint, y) <= 1e-9
    other = newton._projected(f, constraint, constraint.lmo(np.ones(5)), 1e-10, 2000)
    assert f.value(other) == pytest.approx(f.value(y), abs=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_best_weights_of_points(seed):
    rng = np.random.default_rng(seed)
    f, points = model(seed), rng.standard_normal((5, 6))
    images, linear = f.matrix @ points, f.linear - f.matrix @ f.centre
    weights, kept = newton._best_weights(points, images, linear, np.full(6, 1 / 6))
    assert weights.min() > 0
    assert weights.sum() == pytest.approx(1)
    found = f.value(points[:, kept] @ weights)
    start = points[:, kept].mean(axis=1)
    assert found <= f.value(start) + 1e-12
    # On the points that are kept, sum 1 is all that binds.
    slopes = points[:, kept].T @ f.gradient(points[:, kept] @ weights)
    assert np.ptp(slopes) <= 1e-8
    ask = scipy_minimize(
        lambda w: f.value(points @ w), np.full(6, 1 / 6), bounds=[(0, 1)] * 6,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1}, options={"ftol": 1e-14},
    )  # fmt: skip
    assert found >= ask.fun - 1e-9


def test_a_model_without_curvature_ends_in_a_vertex():
    f = Quadratic(np.zeros(3), np.array([1.0, -3.0, 2.0]), np.zeros((3, 3)))
    ball = adafw.L1Ball(2.0)
    for y in (
        newton._projected(f, ball, np.zeros(3), 1e-10, 200),
        newton._corrective(f, ball, np.zeros(3), 1e-10, 200)[0],
    ):
        np.testing.assert_allclose(y, [0, 2, 0])


def test_a_model_that_is_solved_costs_no_projection():
    f, ball = model(0), adafw.L1Ball(1.5)
    y, _ = newton._corrective(f, ball, np.zeros(5), 1e-12, 200)
    counted = CountedSet(ball)
    assert newton._projected(f, counted, y, 1e-9, 100) is y
    assert (counted.projections, counted.lmo_calls) == (0, 1)


@pytest.mark.parametrize("bend", [2.0, 5.0, 7.0])
def test_backtracking_goes_to_the_lowest_point_of_a_parabola(bend):
    """phi = 3 - gamma + bend gamma^2 / 2, from 3; one look more where 1 is too far."""
    line = Line(lambda gamma: 3 - gamma + bend * gamma**2 / 2, lambda gamma: bend * gamma - 1)
    gamma = spectral.backtrack(line, 3.0, 3.0, -1.0, np.dtype(float))
    assert gamma == pytest.approx(1 / bend)
    assert spectral.backtrack(line, 3.0, 9.0, -1.0, np.dtype(float)) == 1.0  # low enough at once


def test_backtracking_halves_where_a_parabola_says_nothing():
    steep = Line(lambda gamma: 0.0 if gamma == 0 else 1e9 * gamma, lambda gamma: -1.0)
    assert spectral.backtrack(steep, 0.0, 0.0, -1.0, np.dtype(float)) <= 2.0**-55
    wall = Line(lambda gamma: np.inf if gamma > 0.3 else -gamma, lambda gamma: -1.0)
    assert spectral.backtrack(wall, 0.0, 0.0, -1.0, np.dtype(float)) == 0.25


def test_a_spectral_step_ends_where_a_point_is_its_own_projection():
    f = Quadratic(np.array([3.0, 0.0]), np.zeros(2), np.eye(2))
    step, ball, x = spectral.SpectralStep(), adafw.LInfBall(1.0), np.array([1.0, 0.0])
    new, state = step.update(f, ball, x, f.gradient(x), 0, {})
    assert new is x
    assert state == {}
    new, state = step.update(f, ball, np.zeros(2), f.gradient(np.zeros(2)), 0, {})
    np.testing.assert_array_equal(new, [1, 0])
    assert (state["length"], state["values"].tolist()) == (1 / 3, [4.5])


def test_lengths_of_spectral_steps():
    """<s, s> / <s, y> of the last step; across the set at first, and where f does not bend."""
    step, ball, g = spectral.SpectralStep(), adafw.LInfBall(2.0), np.array([0.5, -4.0])
    seen = {"x": np.zeros(2), "g": np.zeros(2)}
    x = np.array([1.0, 1.0])
    assert step._length(ball, x, g, None, {}) == 0.5
    assert step._length(ball, x, g, None, seen) == 0.5  # <s, y> < 0
    assert step._length(ball, x, -g, None, seen) == pytest.approx(2 / 3.5)
    h = np.array([1.0, 3.0])
    scaled = spectral.SpectralStep(h)
    assert scaled._length(ball, x, -g, h, seen) == pytest.approx(4 / 3.5)
    assert scaled._length(ball, x, -g, h, {}) == 2 / (4 / 3)
