"""Step sizes that look at the objective: short steps, line search, backtracking."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import adafw
from adafw import losses
from adafw.objectives import Line
from adafw.steps import Backtracking, LineSearch, ShortStep, StepRule
from adafw.steps.rules import _search

LOSSES = [
    losses.Squared(),
    losses.Logistic(),
    losses.SquaredHinge(),
    losses.Huber(0.5),
    losses.SmoothedHinge(0.3),
    losses.Poisson(),
]
SMOOTH = LOSSES[:-1]
RULES = [ShortStep(), LineSearch(), Backtracking()]


def model(loss, seed=0, dtype=np.float64, weighted=False):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((40, 8)).astype(dtype)
    y = np.sign(A @ rng.standard_normal(8) + 0.5 * rng.standard_normal(40))
    y = np.abs(rng.poisson(2.0, 40)) if isinstance(loss, losses.Poisson) else y
    return adafw.LinearModel(A, y, loss, rng.random(40) if weighted else None)


def user_sum(f):
    return adafw.UserSum(f.n_terms, f.value, f.gradient, convex=f.convex)


def wave():
    """A smooth nonconvex function of 3 variables with several minima on most lines."""

    def value(x):
        return float(np.sin(5 * x).sum() + 0.3 * (x**2).sum() + 0.2 * np.cos(9 * x[0] * x[1]))

    def gradient(x, batch=None):
        g = 5 * np.cos(5 * x) + 0.6 * x
        g[:2] -= 1.8 * np.sin(9 * x[0] * x[1]) * x[1::-1]
        return g

    return adafw.UserSum(1, value, gradient)


def pieces(f, constraint, seed):
    """x in the set, its gradient, and the direction to the LMO's vertex."""
    rng = np.random.default_rng(seed)
    shape = f.shape or (3,)
    x = sum(constraint.lmo(rng.standard_normal(shape)) * w for w in rng.dirichlet(np.ones(5)))
    x = x.astype(f.dtype)
    g = f.gradient(x)
    return x, g, constraint.lmo(g) - x


def trace(f, rule, constraint=adafw.L1Ball(2.0), n=60, x0=None):
    algorithm = adafw.FW(step_size=rule)
    return adafw.minimize(f, constraint, algorithm, max_iterations=n, record_every=1, x0=x0)


# All rules ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("constraint", [adafw.L1Ball(2.0), adafw.L2Ball(1.0), adafw.Simplex(1.0)])
def test_every_iteration_descends(rule, loss, constraint):
    if isinstance(rule, ShortStep) and isinstance(loss, losses.Poisson):
        rule = ShortStep(L=1e3)  # holds on these sets
    values = trace(model(loss), rule, constraint).trace["value"]
    assert (np.diff(values) <= 1e-15 * np.abs(values[:-1])).all()
    assert values[-1] < values[0]


@pytest.mark.parametrize("rule", [LineSearch(), Backtracking(), ShortStep(L=60.0)], ids=repr)
def test_nonconvex_objectives_descend_too(rule):
    constraint = adafw.LInfBall(2.0)
    for seed in range(8):
        x0 = np.random.default_rng(seed).uniform(-2, 2, 3)
        values = trace(wave(), rule, constraint, x0=x0).trace["value"]
        assert (np.diff(values) <= 1e-15 * np.abs(values[:-1])).all()
        assert values[-1] < values[0] - 0.1


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_converges_to_the_known_minimum(rule):
    c = np.array([0.3, -0.2, 0.1, 0.05])  # inside the ball: f is 0 there, at a linear rate
    f = adafw.LinearModel(np.eye(4), c, losses.Squared())
    r = trace(f, rule, adafw.L2Ball(1.0), n=400)
    assert r.gap <= 1e-12
    np.testing.assert_allclose(r.x, c, atol=1e-6)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_stands_still_at_a_vertex_that_is_optimal(rule):
    f = adafw.LinearModel(np.eye(3), np.array([5.0, 0, 0]), losses.Huber())
    x0 = np.array([1.0, 0, 0])
    r = trace(f, rule, adafw.Simplex(1.0), n=3, x0=x0)
    np.testing.assert_array_equal(r.x, x0)


@pytest.mark.parametrize("rule", [ShortStep(), LineSearch()], ids=repr)
@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_float32_stays_float32_and_agrees(rule, loss):
    small = trace(model(loss, dtype=np.float32), rule, n=10)
    large = trace(model(loss), rule, n=10)
    assert small.x.dtype == np.float32
    assert small.value == pytest.approx(large.value, rel=1e-4)


def test_backtracking_descends_in_float32():
    for loss in LOSSES:
        r = trace(model(loss, dtype=np.float32), Backtracking(), n=200)
        assert r.x.dtype == np.float32
        values = r.trace["value"]
        assert (np.diff(values) <= 1e-6 * np.abs(values[:-1])).all()
        assert r.value <= trace(model(loss), ShortStep(L=1e3), n=200).value


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_resumes_bit_for_bit(rule, tmp_path):
    f, constraint = model(losses.Logistic()), adafw.L1Ball(2.0)
    algorithm = adafw.FW(step_size=rule)
    whole = adafw.minimize(f, constraint, algorithm, max_iterations=20)
    half = adafw.minimize(f, constraint, algorithm, max_iterations=9)
    half.state.save(tmp_path / "state.npz")
    state = adafw.State.load(tmp_path / "state.npz")
    rest = adafw.minimize(f, constraint, algorithm, max_iterations=20, state=state)
    np.testing.assert_array_equal(rest.x, whole.x)


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize(
    "algorithm",
    [adafw.SFW, adafw.SVRF, adafw.SPIDERFW, adafw.ORGFW, adafw.CSFW],
    ids=lambda a: a.__name__,
)
def test_refuses_estimated_gradients(rule, algorithm):
    with pytest.raises(TypeError, match=f"{type(rule).__name__} needs exact gradients, got those"):
        adafw.minimize(
            model(losses.Squared()), adafw.L1Ball(1.0), algorithm(step_size=rule), max_iterations=1
        )


# Short steps -------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_short_step_is_its_formula(loss, weighted):
    f = model(loss, weighted=weighted)
    A, w = f.rows.array, np.ones(40) if f.sample_weight is None else f.sample_weight
    L = loss.curvature * np.linalg.norm(np.sqrt(w / w.sum())[:, None] * A, 2) ** 2
    for seed in range(5):
        x, g, d = pieces(f, adafw.L1Ball(2.0), seed)
        gamma, _ = ShortStep()(f, x, g, d, 0, {})
        assert gamma == pytest.approx(min(1.0, -(g @ d) / (L * (d @ d))), rel=1e-12)
        assert ShortStep(L=2 * L)(f, x, g, d, 0, {})[0] <= gamma


def test_short_step_keeps_the_promise_of_smoothness():
    f = model(losses.Logistic())
    for seed in range(20):
        x, g, d = pieces(f, adafw.L2Ball(3.0), seed)
        gamma, _ = ShortStep()(f, x, g, d, 0, {})
        assert f.value(x + gamma * d) <= f.value(x) + gamma * (g @ d) / 2 + 1e-15


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (user_sum(model(losses.Squared())), "does not know its smoothness constant L"),
        (model(losses.Poisson()), "Poisson has no bound on its curvature"),
    ],
)
def test_short_step_asks_for_l_where_it_is_unknown(f, message):
    algorithm = adafw.FW(step_size=ShortStep())
    with pytest.raises(TypeError, match=message):
        adafw.minimize(f, adafw.L1Ball(1.0), algorithm, x0=np.zeros(8), max_iterations=1)


# Line search -------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("radius", [0.1, 1.0, 20.0])
def test_line_search_finds_the_minimum_on_the_segment(loss, radius):
    f = model(loss)
    for seed in range(6):
        x, g, d = pieces(f, adafw.L1Ball(radius), seed)
        best = minimize_scalar(
            lambda gamma, x=x, d=d: f.value(x + gamma * d),
            bounds=(0, 1),
            method="bounded",
            options={"xatol": 1e-12},
        )
        for objective in (f, user_sum(f)):
            gamma, _ = LineSearch()(objective, x, g, d, 0, {})
            assert 0 <= gamma <= 1
            value = f.value(x + gamma * d)
            assert value <= min(best.fun, f.value(x), f.value(x + d)) + 1e-13 * abs(best.fun)
            slope = f.gradient(x + gamma * d) @ d
            assert gamma == 1.0 or abs(slope) <= 1e-10 * abs(g @ d) + 1e-14


def test_line_search_takes_a_handful_of_points():
    for loss in LOSSES[1:]:
        f = adafw.Counted(model(loss))
        r = trace(f, LineSearch(), n=50)
        per_iteration = f.gradients / f.n_terms / 50 - 1 - len(r.trace) / 50
        assert per_iteration < 25


def test_line_search_on_a_nonconvex_line_ends_in_a_valley_below_the_start():
    f, constraint = wave(), adafw.LInfBall(2.0)
    for seed in range(40):
        x, g, d = pieces(f, constraint, seed)
        gamma, _ = LineSearch()(f, x, g, d, 0, {})
        assert f.value(x + gamma * d) < f.value(x)
        slope = f.gradient(x + gamma * d) @ d
        assert gamma == 1.0 or abs(slope) <= 1e-6 * np.linalg.norm(d)


def test_line_search_survives_an_overflow_beyond_the_minimum():
    f = adafw.LinearModel(np.array([[1.0], [-1.0]]), np.array([3.0, 0.0]), losses.Poisson())
    r = trace(f, LineSearch(), adafw.L1Ball(5000.0), n=2)
    assert abs(f.gradient(r.x)[0]) <= 1e-9
    assert trace(f, Backtracking(), adafw.L1Ball(5000.0), n=60).value <= r.value + 1e-6


# Backtracking ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_backtracking_descends_as_its_estimate_says(loss):
    f, rule, state = model(loss), Backtracking(), {}
    x = np.zeros(8)
    for t in range(40):
        g = f.gradient(x)
        d = adafw.L1Ball(2.0).lmo(g) - x
        last = state.get("M")
        gamma, state = rule(f, x, g, d, t, state)
        M, slope, square = state["M"], g @ d, d @ d
        assert gamma == pytest.approx(min(1.0, -slope / (M * square)), rel=1e-14)
        model_value = f.value(x) + gamma * slope + gamma**2 * M * square / 2
        assert f.value(x + gamma * d) <= model_value + 1e-14 * abs(f.value(x))
        assert last is None or last * 0.9 * (1 - 1e-15) <= M
        x = x + gamma * d


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_backtracking_never_overshoots_the_smoothness_constant(loss):
    f = model(loss)
    state = trace(f, Backtracking(increase=3.0), n=100).state.step
    assert 0 < state["M"] <= 3.0 * f.smoothness


def test_backtracking_starts_with_the_curvature_along_d():
    f = model(losses.Squared())
    x, g, d = pieces(f, adafw.L1Ball(2.0), 0)
    exact, _ = LineSearch()(f, x, g, d, 0, {})
    assert Backtracking()(f, x, g, d, 0, {})[0] == pytest.approx(exact, rel=1e-9)


def test_backtracking_goes_to_the_vertex_where_f_is_linear():
    f = adafw.UserSum(1, lambda x: float(x.sum()), lambda x, batch: np.ones_like(x), convex=True)
    r = trace(f, Backtracking(), adafw.L1Ball(1.0), n=1, x0=np.zeros(2))
    np.testing.assert_array_equal(r.x, [-1.0, 0.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ShortStep(L=0.0), "L must be a number that is finite and > 0, got 0"),
        (lambda: Backtracking(increase=1.0), "increase must be a number that is finite and > 1"),
        (lambda: Backtracking(decrease=0.0), "decrease must be a number > 0 and <= 1, got 0"),
        (lambda: Backtracking(decrease=1.1), "decrease must be a number > 0 and <= 1, got 1.1"),
    ],
)
def test_refuses_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_rule_of_the_users_own():
    class Half(StepRule):
        def __call__(self, f, x, g, d, t, state):
            return 0.5, {"calls": state.get("calls", 0) + 1}

    f = adafw.LinearModel(np.eye(2), np.array([5.0, 0.0]), losses.Squared())
    r = adafw.minimize(f, adafw.L1Ball(1.0), adafw.FW(step_size=Half()), max_iterations=3)
    np.testing.assert_array_equal(r.x, [0.875, 0.0])
    assert r.state.step["calls"] == 3


@pytest.mark.parametrize("decrease", [0.5, 0.9])
def test_backtracking_starts_from_what_the_last_descent_suggests(decrease):
    """<g, d>^2 / (2 descent ||d||^2), clipped to [decrease M, M]; 100 is far above L = 1 here."""
    f = adafw.LinearModel(np.eye(2), np.zeros(2), adafw.losses.Squared())
    x, d = np.array([1.0, -1.0]), np.array([-1.5, 0.5])
    g = f.gradient(x)
    slope, square, M = float(g @ d), float(d @ d), 100.0
    for suggested in (1.0, 0.6 * M, 0.95 * M, 1e6):
        descent = slope**2 / (2 * suggested * square)
        state = {"M": M, "value": f.value(x) + descent}
        gamma, after = adafw.steps.Backtracking(decrease=decrease)(f, x, g, d, 1, state)
        expected = min(max(suggested, decrease * M), M)
        assert after["M"] == pytest.approx(expected, rel=1e-9)
        assert gamma == pytest.approx(-slope / (expected * square), rel=1e-9)


@pytest.mark.parametrize(
    ("slope", "root", "most"),
    [
        (lambda gamma: 2 * (gamma - 0.4), 0.4, 4),
        (lambda gamma: math.exp(8 * gamma) - 20, math.log(20) / 8, 18),
        (lambda gamma: math.exp(40 * gamma) - 2, math.log(2) / 40, 30),
        (lambda gamma: gamma**11 - 0.5, 0.5 ** (1 / 11), 14),
        (lambda gamma: gamma**60 - 1e-9, 1e-9 ** (1 / 60), 26),
        (lambda gamma: 1 - 1e-3 / (gamma + 1e-6), 1e-3 - 1e-6, 29),
        (lambda gamma: math.copysign(1.0, gamma - 0.3), 0.3, 50),
        (lambda gamma: (gamma - 0.7) ** 9, 0.7, 150),
        (lambda gamma: -1.0 if gamma < 0.3 else 1e12 * (gamma - 0.3), 0.3, 145),
    ],
)
def test_roots_of_slopes_take_few_points(slope, root, most):
    """False position where slopes say something, else halves; never beyond the root."""
    points = []
    line = Line(lambda gamma: 0.0, lambda gamma: points.append(gamma) or slope(gamma))
    found = _search(line, slope(0.0), True, float(np.finfo(float).eps))
    assert found == pytest.approx(root, rel=1e-10)
    assert slope(found) <= 0
    assert points[0] == 1.0
    assert len(points) <= most


def test_slopes_that_fall_to_the_end_lead_to_the_vertex():
    line = Line(lambda gamma: -gamma, lambda gamma: -1.0)
    assert _search(line, -1.0, True, 1e-16) == 1.0
    assert _search(line, -1.0, False, 1e-16) == 1.0
    assert _search(line, 0.0, True, 1e-16) == 0.0
    up = Line(lambda gamma: 5 * gamma, lambda gamma: -1.0)  # falls where one looks, and is above
    assert _search(up, -1.0, False, 1e-16) <= 1e-15


def test_backtracking_remembers_the_value_where_it_was():
    f = model(losses.Logistic())
    x, g, d = pieces(f, adafw.L1Ball(2.0), 1)
    _, state = Backtracking()(f, x, g, d, 0, {})
    assert state["value"] == pytest.approx(f.value(x), rel=1e-14)
    assert set(state) == {"M", "value"}
    assert Backtracking()(f, x, g, -d, 1, state) == (0.0, state)
    assert Backtracking()(f, x, g, 0 * d, 1, state) == (0.0, state)


def test_backtracking_raises_its_estimate_as_often_as_it_takes():
    f = adafw.LinearModel(1e6 * np.eye(2), np.zeros(2), losses.Squared())
    x, d = np.array([1.0, -1.0]), np.array([-1.5, 0.5])
    g, L = f.gradient(x), 1e12
    for start in (1e-6, 1.0):
        state = {"M": start, "value": f.value(x) + 1e300}
        gamma, after = Backtracking(decrease=1.0)(f, x, g, d, 1, state)
        assert L <= after["M"] <= 2 * L
        assert math.log2(after["M"] / start) == pytest.approx(round(math.log2(after["M"] / start)))
        assert gamma == pytest.approx(-(g @ d) / (after["M"] * (d @ d)))


def test_backtracking_takes_rounding_for_no_ascent():
    """Values that cannot show a descent of 1e-16 of their size leave the estimate where it is."""
    for size in (1.0, -1e3):
        f = adafw.UserSum(1, lambda x, size=size: size, lambda x, batch=None: 0 * x, convex=True)
        g, d = np.array([-4e-16 * abs(size), 0.0]), np.array([1.0, 0.0])
        gamma, state = Backtracking()(f, np.zeros(2), g, d, 0, {})
        assert gamma == 1.0
        assert state["M"] / abs(size) == pytest.approx(4e-16, abs=0)


def test_short_steps_ask_for_l_before_any_work():
    with pytest.raises(TypeError, match="does not know its smoothness constant L"):
        ShortStep().check(user_sum(model(losses.Squared())), adafw.gradients.Full())
    ShortStep(L=2.0).check(user_sum(model(losses.Squared())), adafw.gradients.Full())


def test_backtracking_stands_still_where_squares_underflow():
    f = adafw.UserSum(1, lambda x: -x[0], lambda x, batch=None: -np.ones(1), convex=True)
    state = {"M": 3.0, "value": 1.0}
    for kept in ({}, state):
        found = Backtracking()(f, np.zeros(1), -np.ones(1), np.array([1e-200]), 1, kept)
        assert found == (0.0, kept)


def test_the_first_estimate_is_the_curvature_at_the_start():
    """Of exp(-x / 2) on the way from 0 to 2: from there on it falls, and no estimate is raised."""
    f = adafw.UserSum(
        1, lambda x: math.exp(-x[0] / 2), lambda x, batch=None: -np.exp(-x / 2) / 2, convex=True
    )
    x, d = np.zeros(1), np.array([2.0])
    gamma, state = Backtracking()(f, x, f.gradient(x), d, 0, {})
    assert state["M"] == pytest.approx((1 - math.exp(-1e-3)) / 1e-3 / 4, rel=1e-9)
    assert gamma == 1.0


@pytest.mark.parametrize("beyond", [math.inf, math.nan, -1.0, -2.0])
def test_without_a_curvature_the_first_estimate_leads_to_the_vertex(beyond):
    line = Line(lambda gamma: 0.0, lambda gamma: beyond if gamma else -1.0)
    assert Backtracking()._first(line, -1.0, 4.0, 0.0, {}) == 0.25
    known = Line(line.value, line.slope, 8.0)
    assert Backtracking()._first(known, -1.0, 4.0, 0.0, {}) == 2.0


@pytest.mark.parametrize("convex", [True, False])
def test_slopes_and_values_that_are_no_numbers_are_too_far(convex):
    """Both end at 0.3, beyond which nothing is known."""
    unknown = Line(lambda gamma: -gamma, lambda gamma: -1.0 if gamma <= 0.3 else math.nan)
    assert _search(unknown, -1.0, convex, 2.0**-52) == pytest.approx(0.3, rel=1e-10)
    if not convex:
        unknown = Line(lambda gamma: -gamma if gamma <= 0.3 else math.nan, lambda gamma: -1.0)
        assert _search(unknown, -1.0, convex, 2.0**-52) == pytest.approx(0.3, rel=1e-10)


def test_line_searches_of_single_numbers_end_at_their_rounding():
    points = []

    def gradient(x, batch=None):
        points.append(float(x[0]))
        return np.asarray(4 * (x - 0.3) ** 3, x.dtype)

    f = adafw.UserSum(1, lambda x: float((x[0] - 0.3) ** 4), gradient, convex=True)
    counts = []
    for dtype in (np.float32, np.float64):
        x, d = np.zeros(1, dtype), np.ones(1, dtype)
        g = gradient(x)
        points.clear()
        gamma, _ = LineSearch()(f, x, g, d, 0, {})
        assert gamma == pytest.approx(0.3, rel=1e-3)
        counts.append(len(points))
    assert 2 * counts[0] < counts[1]
