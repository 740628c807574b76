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


def test_newton_ends_inner_steps_where_there_is_no_projection():
    """By K corrective steps alone; with one, after 100 of them spectral steps go on."""
    f = model(1, n=12, rank=15)
    ball = adafw.L2Ball(3.0)
    bare = adafw.UserSet(ball.lmo, np.zeros(12), ball.contains)
    counted = CountedSet(bare)
    newton.NewtonStep(7)._minimiser(f, counted, 0.0)
    assert counted.lmo_calls <= 7 + 1
    counted = CountedSet(bare)
    newton.NewtonStep(150)._minimiser(f, counted, 0.0)
    assert 100 < counted.lmo_calls <= 150 + 1


def test_models_are_minimised_where_they_are_known_to_be():
    """Inside the set at once; on an l2 ball by its formula; else to the gap that is wanted."""
    f = model(2)
    best = f.centre - np.linalg.solve(f.matrix, f.linear)
    wide = CountedSet(adafw.L1Ball(2 * np.abs(best).sum()))
    np.testing.assert_allclose(newton.NewtonStep()._minimiser(f, wide, 1e-6), best, atol=1e-8)
    assert wide.lmo_calls == 1
    small = CountedSet(adafw.L2Ball(0.3 * np.linalg.norm(best)))
    y = newton.NewtonStep()._minimiser(f, small, 1e-6)
    assert newton._gap(f, small, y) <= 1e-6
    assert np.linalg.norm(y) == pytest.approx(0.3 * np.linalg.norm(best))
    assert small.projections == 0
    for ball in (adafw.L1Ball(0.5), adafw.Simplex(1.0), adafw.Box(-0.1, 0.2)):
        start = ball.lmo(np.ones(5))
        near = Quadratic(start, f.gradient(start), f.matrix)
        y = newton.NewtonStep()._minimiser(near, ball, 1e-4)
        assert newton._gap(near, ball, y) <= 1e-4
        assert ball.violation(y) <= 1e-12


@pytest.mark.parametrize("intercept", [False, True])
def test_the_hessian_of_several_outputs_is_that_of_its_products(intercept):
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((30, 3)), rng.integers(0, 3, 30)
    f = adafw.objectives.MatrixModel(A, y, adafw.losses.Softmax(), intercept=intercept)
    x, tried = 0.3 * rng.standard_normal((3, 3)), [3 * rng.standard_normal((3, 3))]
    H = newton._hessian(f, x, [])
    product = f.hessian_product(x)
    for k, unit in enumerate(np.eye(9)):
        np.testing.assert_allclose(H[:, k], product(unit.reshape(3, 3)).reshape(-1), atol=1e-13)
    np.testing.assert_array_equal(H, H.T)
    assert np.abs(newton._hessian(f, x, tried) - H).max() > 1e-3
    linear = adafw.LinearModel(A, np.where(y > 0, 1.0, -1.0), adafw.losses.SquaredHinge())
    d = 5 * rng.standard_normal(3)
    np.testing.assert_array_equal(newton._hessian(linear, d, [-d]), linear.hessian(d, [-d]))


def test_a_newton_step_looks_no_further_than_a_tenth_of_the_gap():
    rng = np.random.default_rng(3)
    A, y = rng.standard_normal((40, 6)), rng.standard_normal(40)
    f, ball = adafw.LinearModel(A, y, adafw.losses.Squared()), adafw.L1Ball(0.15)
    x = np.zeros(6)
    g = f.gradient(x)
    counted = CountedSet(ball)
    new, state = newton.NewtonStep().update(f, counted, x, g, 0, {})
    assert state == {}
    gap = ball.gap(x, g)
    assert 1e-6 * gap < ball.gap(new, f.gradient(new)) <= 0.1 * gap
    assert counted.lmo_calls <= 8
    same, _ = newton.NewtonStep().update(f, ball, new, 0 * g, 1, {})
    assert same is new


def test_curvature_that_was_not_known_is_met_once():
    """All losses but a few are flat at x: the first model leads far beyond the minimum."""
    z = np.linspace(-1, 1, 30)
    f = adafw.LinearModel(z[:, None], 0.3 * z, adafw.losses.Huber(1e-3))
    x = np.array([40.0])
    ball = adafw.LInfBall(50.0)
    counted = adafw.Counted(f)
    for t in range(12):
        x, _ = newton.NewtonStep().update(counted, ball, x, f.gradient(x), t, {})
    assert x[0] == pytest.approx(0.3, abs=1e-6)


@pytest.mark.parametrize("flat", [True, False])
def test_affine_minimisers_where_a_model_hardly_bends(flat):
    """A direction, long enough to leave any hull: the way down that the slopes show."""
    G = np.zeros((3, 3)) if flat else 1e-280 * np.eye(3)
    w = newton._affine(G, np.array([1.0, 2.0, 6.0]))
    assert np.isfinite(w).all()
    assert w[0] > 0 > w[2]
    assert 1e9 < abs(w).max() < 1e215  # times entries of points it is still a number
    assert abs(w.sum()) <= 1e-9 * abs(w).max()
    assert newton._affine(np.full((2, 2), np.nan), np.array([1.0, 2.0])).shape == (2,)


def test_weights_that_fall_to_zero_leave_one_by_one():
    """Minimisers over hulls of few points, by all their faces."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        f = model(seed, n=3)
        points = rng.standard_normal((3, 5))
        images, linear = f.matrix @ points, f.linear - f.matrix @ f.centre
        start = rng.dirichlet(np.ones(5))
        weights, kept = newton._best_weights(points, images, linear, start)
        y = points[:, kept] @ weights
        assert f.value(y) <= f.value(points @ start) + 1e-12
        assert len(kept) == len(weights) == len(set(kept.tolist()))
        np.testing.assert_allclose(weights.sum(), 1, atol=1e-12)
        again, _ = newton._best_weights(
            points[:, kept], images[:, kept], linear, np.full(len(kept), 1 / len(kept))
        )
        if len(again) == len(weights):
            np.testing.assert_allclose(f.value(points[:, kept] @ again), f.value(y), atol=1e-9)


def test_corrective_steps_start_from_one_point_and_end_where_the_gap_is_wanted():
    f, ball, calls = model(0, n=8), adafw.L2Ball(0.5), []
    for wanted in (1e-6, 0.3):
        counted = CountedSet(ball)
        y, done = newton._corrective(f, counted, ball.lmo(np.ones(8)), wanted, 200)
        assert done
        assert newton._gap(f, ball, y) <= wanted + 1e-9
        calls.append(counted.lmo_calls)
    assert calls[0] > calls[1] > 1
    counted = CountedSet(ball)
    _, done = newton._corrective(f, counted, np.zeros(8), 1e-12, 2)
    assert (done, counted.lmo_calls) == (False, 2)
    again, done = newton._corrective(f, ball, y, 0.3, 5)
    assert done
    assert again is y


def test_weights_that_are_small_and_grow_stay():
    """The nearest point of the simplex: one weight falls to 0 at once, another comes from 1e-6."""
    aim, points = np.array([0.6, 0.5, -0.3, 0.2]), np.eye(4)
    start = np.array([0.5, 0.5 - 2e-6, 1e-6, 1e-6])
    weights, kept = newton._best_weights(points, points.copy(), -aim, start)
    assert kept.tolist() == [0, 1, 3]
    np.testing.assert_allclose(weights, [0.5, 0.4, 0.1], atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_directions_whose_curvature_is_rounding_are_left_out(seed):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((6, 3))
    f = Quadratic(rng.standard_normal(6), B @ rng.standard_normal(3), B @ B.T)
    unit = 1 / np.sqrt(np.diag(f.matrix))
    scaled = np.linalg.pinv(unit[:, None] * B, rcond=1e-6)
    shortest = unit * (scaled.T @ (scaled @ (unit * f.linear)))
    np.testing.assert_allclose(newton._unconstrained(f), f.centre - shortest, atol=1e-9)


def test_projected_steps_go_on_where_corrective_ones_have_not_ended():
    """The middle of a simplex is made of more vertices than there are corrective steps."""
    n = 110
    f, simplex = Quadratic(np.eye(n)[0], np.eye(n)[0] - 1 / n, np.eye(n)), adafw.Simplex(1.0)
    counted = CountedSet(simplex)
    y = newton.NewtonStep()._minimiser(f, counted, 1e-6)
    assert counted.lmo_calls > 100
    assert counted.projections > 0
    assert newton._gap(f, simplex, y) <= 1e-6
    assert simplex.contains(y)


def test_a_model_of_no_numbers_has_no_minimiser():
    f = Quadratic(np.zeros(3), np.ones(3), np.full((3, 3), np.nan))
    assert np.isnan(newton._unconstrained(f)).all()


def test_eight_models_are_all_and_each_knows_the_steps_before():
    class Steep(Quadratic):
        def hessian(self, x, tried=()):
            told.append([step.copy() for step in tried])
            return 1e-3 * np.eye(2)

    told = []
    f, x = Steep(np.zeros(2), np.array([1.0, -2.0]), 1e6 * np.eye(2)), np.zeros(2)
    new, _ = newton.NewtonStep().update(f, adafw.L2Ball(1e6), x, f.gradient(x), 0, {})
    assert f.value(new) < f.value(x)
    assert [len(steps) for steps in told] == [*range(8)]
    for steps in told:
        assert all((a == b).all() for a, b in zip(steps, told[-1], strict=False))


def test_columns_without_curvature_do_not_hold_up_projected_steps():
    H = np.diag([4.0, 0.0, 1.0])
    f, ball = Quadratic(np.zeros(3), np.array([-8.0, 0.0, 3.0]), H), adafw.L1Ball(2.5)
    y = newton._projected(f, ball, np.full(3, 0.1), 1e-9, 500)
    assert newton._gap(f, ball, y) <= 1e-8
