"""Models minimised over a box, by every way there is: a matrix, columns, products, spikes."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.constraints.counted import CountedSet
from adafw.rows import dense
from adafw.steps.corrective import curvature
from adafw.steps.corrective.box import BoxCorrector, _gap, _Model, bounds
from adafw.steps.corrective.curvature import Hessian, view
from adafw.steps.corrective.spiked import Spiked

N = 12


def test_bounds_have_the_shape_of_x():
    x = np.zeros((2, 3), np.float32)
    lower, upper = bounds(adafw.LInfBall(0.5), x)
    assert lower.dtype == np.float32
    np.testing.assert_array_equal(lower, np.full((2, 3), -0.5))
    np.testing.assert_array_equal(upper, np.full((2, 3), 0.5))
    lower, upper = bounds(CountedSet(adafw.Box(-1.0, [1.0, 2.0, 3.0])), np.zeros(3))
    assert (lower.tolist(), upper.tolist()) == ([-1, -1, -1], [1, 2, 3])


def test_the_gap_is_that_of_the_best_corner():
    g, x = np.array([1.0, -2.0, 0.0]), np.array([0.5, 0.25, 0.1])
    lower, upper = np.array([-1.0, -1.0, -1.0]), np.array([2.0, 3.0, 4.0])
    assert _gap(g, x, lower, upper) == 1.5 + 2 * 2.75


def problem(kind, loss=losses.Logistic(), intercept=False):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((80, N)) * np.geomspace(0.3, 3, N) * (rng.random((80, N)) < 0.5)
    y = np.where(A @ rng.standard_normal(N) + rng.standard_normal(80) > 0, 1.0, -1.0)
    f: Any = adafw.LinearModel(sparse.csr_array(A) if kind == "columns" else A, y, loss)
    return (adafw.objectives.WithIntercept(f) if intercept else f), A, rng


class Counting:
    """H with its products counted; `spikes` stand for all of it but a diagonal."""

    def __init__(self, h, spikes=None):
        self.products = 0

        def product(d):
            self.products += 1
            return h.product(d)

        near = h.near if spikes is None else (lambda: spikes)
        self.h = Hessian(product, h.scale, h.matrix, h.columns, near, h.image)


@pytest.mark.parametrize("kind", ["matrix", "columns", "products", "spikes"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("share", [0.3, 1e-6])
@pytest.mark.parametrize("radius", [0.02, 0.3, 30.0])
def test_models_are_minimised_to_what_is_wanted(kind, intercept, share, radius, monkeypatch):
    if kind != "matrix":
        monkeypatch.setattr(curvature, "forms_matrix", lambda rows: False)
    f, A, rng = problem(kind, intercept=intercept)
    lower, upper = -radius * rng.random(N), radius * rng.random(N)
    x = lower + rng.random(N) * (upper - lower)
    x[0], x[1] = lower[0], upper[1]
    seen, g = view(f), f.gradient(x)
    h, H = seen.hessian(seen.predictions(x), seen.weights(x)), f.hessian(x)
    spikes = None
    if kind == "spikes":
        size, turn = np.linalg.eigh(H)
        spikes = Spiked(np.full(N, float(size[:-3].mean())), turn[:, -3:] * np.sqrt(size[-3:]))
    counting = Counting(h, spikes)
    gap = _gap(g, x, lower, upper)
    y, move = _Model(x, g, lower, upper, gap, share).minimise({"word": 1}, counting.h)
    assert max((lower - y).max(), (y - upper).max()) <= 1e-15 * radius
    d = y - x
    assert _gap(g + H @ d, y, lower, upper) <= share * gap * (1 + 1e-6)
    assert g @ d + d @ H @ d / 2 < 0
    if kind == "matrix":
        assert move is None
        assert counting.products == 0
        return
    np.testing.assert_allclose(move, A @ d, atol=1e-10 * max(1, np.abs(A @ d).max()))
    most = {"columns": (1, 14), "products": (7, 21), "spikes": (2, 17)}[kind]
    assert counting.products <= most[share < 0.1]


@pytest.mark.parametrize("radius", [0.02, 0.3, 30.0])
def test_a_step_on_the_face_descends_and_says_where_it_led(radius, monkeypatch):
    monkeypatch.setattr(curvature, "forms_matrix", lambda rows: False)
    f, A, rng = problem("products")
    x, seen = np.zeros(N), view(f)
    h, H, g = seen.hessian(seen.predictions(x), seen.weights(x)), f.hessian(x), f.gradient(x)
    model = _Model(x, g, np.full(N, -radius), np.full(N, radius), 1.0, 1e-6)
    d = radius * rng.uniform(-1, 1, N)
    d[0], d[1] = radius, -radius
    slopes = g + H @ d
    new, after, step = model._face(h, d, slopes)
    np.testing.assert_allclose(after, g + H @ new, atol=1e-9)
    np.testing.assert_allclose(step, A @ (new - d), atol=1e-9)
    assert (np.abs(new) <= radius).all()

    def value(d):
        return g @ d + d @ H @ d / 2

    assert value(new) < value(d)
    if radius == 30.0:  # nothing binds: it is the minimiser
        np.testing.assert_allclose(new, np.linalg.solve(H, -g), atol=1e-4)


def test_where_no_step_descends_a_face_stays():
    # A model that bends the more the nearer one looks.
    h = Hessian(lambda d: (d if np.abs(d).max() > 4 else 1e30 * np.sign(d), d), np.ones(2))
    model = _Model(np.zeros(2), np.ones(2), -np.ones(2), np.ones(2), 1.0, 0.1)
    d, slopes = np.array([1.0, -1.0]), np.array([5.0, -5.0])
    new, after, step = model._face(h, d, slopes)
    assert step is None
    assert new is d
    assert after is slopes


@pytest.mark.parametrize("length", [0.5, 1.0, 3.0])
def test_a_step_on_which_the_model_is_least_well_before_its_end_is_cut(length):
    """P = H / length: from 0.6 of the step on it is taken whole."""
    H = np.diag([2.0, 3.0])
    h = Hessian(lambda d: (H @ d, d), np.diag(H))
    near = Spiked(np.diag(H) / length, np.zeros((2, 1)))
    g = np.array([-1.0, 0.6])
    model = _Model(np.zeros(2), g, np.full(2, -9.0), np.full(2, 9.0), 1.0, 0.1)
    zero = np.zeros(2)
    d, slopes, move = model._towards(h, near, zero, g, zero, g)
    share = 1.0 if length <= 1 / 0.6 else 1 / length
    np.testing.assert_allclose(d, -share * length * g / np.diag(H))
    np.testing.assert_allclose(slopes, g + H @ d, atol=1e-15)
    np.testing.assert_allclose(move, d)
    # Where P leads uphill, the diagonal does not: the first coordinate is held at its bound.
    model = _Model(np.zeros(2), g, np.full(2, -9.0), np.array([0.1, 9.0]), 1.0, 0.1)
    d, slopes, _ = model._towards(h, near, zero, g, zero, -g)
    np.testing.assert_allclose(d, [0.1, -0.2])
    np.testing.assert_allclose(slopes, [-0.8, 0], atol=1e-15)


def test_coordinates_at_a_bound_that_pulls_them_out_are_held():
    """The others go to the minimum of the model among themselves."""
    rng = np.random.default_rng(1)
    B = rng.standard_normal((6, 6))
    H, A = B @ B.T + np.eye(6), rng.standard_normal((4, 6))
    h = Hessian(lambda d: (H @ d, A @ d), np.diag(H).copy())
    lower, upper = np.full(6, -50.0), np.full(6, 50.0)
    lower[5] = upper[5] = 0.0  # no room at all
    model = _Model(np.zeros(6), np.zeros(6), lower, upper, 1.0, 1e-9)
    d = np.array([-50.0, 50.0, -50.0, 50.0, 3.0, 0.0])
    slopes = np.array([7.0, -7.0, -1.0, 1.0, 2.0, 5.0])
    free = [2, 3, 4]  # two at a bound that pulls them in, one between
    new, after, step = model._face(h, d, slopes)
    np.testing.assert_array_equal(new[[0, 1, 5]], d[[0, 1, 5]])
    expected = d[free] - np.linalg.solve(H[np.ix_(free, free)], slopes[free])
    np.testing.assert_allclose(new[free], expected, atol=1e-6)
    np.testing.assert_allclose(after, slopes + H @ (new - d), atol=1e-9)
    np.testing.assert_allclose(step, A @ (new - d), atol=1e-9)


def test_coordinates_near_a_bound_that_pulls_them_out_go_there():
    """Within a hundredth of the box: at once, while the others take their Newton step."""
    H = np.array([[2.0, 1.0], [1.0, 4.0]])
    h = Hessian(lambda d: (H @ d, d), np.diag(H).copy())
    model = _Model(np.zeros(2), np.zeros(2), np.full(2, -50.0), np.full(2, 50.0), 1.0, 1e-9)
    for sign in (1.0, -1.0):
        d, slopes = sign * np.array([-49.5, 1.0]), sign * np.array([9.0, 8.0])
        new, after, _ = model._face(h, d, slopes)
        np.testing.assert_allclose(new, sign * np.array([-50.0, -1.0]))
        np.testing.assert_allclose(after, slopes + H @ (new - d))


def test_a_step_out_of_the_box_is_halved_until_the_model_falls():
    """Cut off at the bound, a step along a narrow valley may lead up its side."""
    H, slopes = np.array([[1.0, 0.94], [0.94, 1.0]]), np.array([0.3, -0.4])
    h = Hessian(lambda d: (H @ d, d), np.ones(2))
    lower, upper = np.array([-0.3, -0.5]), np.array([2.0, 1.9])
    model = _Model(np.zeros(2), np.zeros(2), lower, upper, 1.0, 1e-9)
    step = -slopes * (slopes @ slopes) / (slopes @ H @ slopes)  # ended outside at once

    def fall(gamma):
        s = np.clip(gamma * step, lower, upper)
        return slopes @ s + s @ H @ s / 2

    assert fall(1.0) > 0
    assert fall(0.5) > 0
    assert fall(0.25) < 0
    new, after, move = model._face(h, np.zeros(2), slopes)
    np.testing.assert_allclose(new, np.clip(0.25 * step, lower, upper))
    np.testing.assert_allclose(after, slopes + H @ new, atol=1e-12)
    np.testing.assert_allclose(move, new, atol=1e-12)


def test_conjugate_gradients_end_outside():
    """Where more than a twentieth of the step, in units of the model, is outside the box."""
    H = np.diag([1.0, 1.0, 2.0])
    one = np.ones(3)
    model = _Model(np.zeros(3), np.zeros(3), -one, one, 1.0, 1e-9)
    for slopes, unit, steps in (
        ([-5.0, -0.1, -1.0], 1.0, 1), ([5.0, 0.1, 1.0], 1.0, 1), ([-1.1, -0.5, -1.0], 1.0, 2),
        ([-5.0, -0.1, -1.0], 1e-6, 2), ([-1.1, -0.5, -1.0], 1e6, 2),
    ):  # fmt: skip
        h = Hessian(lambda d: (H @ d, d), np.array([unit, 1.0, 1.0]))
        found = model._conjugate(h, lambda r: r, np.zeros(3), np.array(slopes))
        assert found.steps == steps
        if steps > 1:
            np.testing.assert_allclose(found.d, -np.array(slopes) / np.diag(H), atol=1e-9)
    # From where it stands, not from 0.
    h = Hessian(lambda d: (H @ d, d), one)
    slopes = np.array([-1.1, -0.5, -1.0])
    assert model._conjugate(h, lambda r: r, np.array([0.9, 0.0, 0.0]), slopes).steps == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("constraint", [adafw.LInfBall(0.1), adafw.Box(-0.05, 0.2)], ids=str)
def test_an_iteration_ends_in_the_box_and_keeps_what_it_knows(constraint, dtype):
    f, A, _ = problem("products")
    f = adafw.LinearModel(A.astype(dtype), f.y, losses.Logistic())
    corrector, counted = BoxCorrector(), CountedSet(constraint)
    x = constraint.start((N,)).astype(dtype)
    state: Any = corrector.init(x)
    assert state == {"word": 1}
    for t in range(4):
        g = f.gradient(x)
        gap = constraint.gap(x, g)
        calls = counted.lmo_calls
        x, state = corrector.improve(f, counted, x, g, t, state)
        assert counted.lmo_calls == calls + 1
        assert state["gap"] == pytest.approx(gap, rel=1e-5)
        assert constraint.violation(x) == 0
        assert x.dtype == dtype
        if dtype == np.float64:
            np.testing.assert_allclose(state["predictions"], A @ x, atol=1e-12)
            assert f.predictions(x)[0] is state["predictions"]
        np.testing.assert_allclose(state["weights"], np.mean(A**2, axis=0), rtol=1e-5)
    assert state["word"] != 1
    assert constraint.gap(x, f.gradient(x)) <= (1e-9 if dtype == np.float64 else 1e-5)


def test_points_are_in_the_box_to_the_last_bit():
    """x + (lower - x) is not always lower."""
    f, _, rng = problem("products")
    for _ in range(20):
        lower, upper = -0.05 * rng.random(N), 0.05 * rng.random(N)
        x = lower + rng.random(N) * (upper - lower)
        box = adafw.Box(lower, upper)
        new, _ = BoxCorrector().improve(f, box, x, f.gradient(x), 1, {"word": 1})
        assert ((lower <= new) & (new <= upper)).all()
        assert ((new == lower) | (new == upper)).any()


def test_models_leave_their_matrix_and_their_gradient_as_they_are():
    """Where losses are flat a sweep divides by more than the curvature that is there."""
    matrix, g = np.diag([2.0, 0.0, 1.0]), np.array([1.0, -1.0, 0.5])
    h = Hessian(lambda d: (matrix @ d, np.empty(0)), np.ones(3), matrix)
    kept = matrix.copy(), g.copy()
    state: Any = {"word": 1}
    y, _ = _Model(np.zeros(3), g, np.full(3, -0.4), np.full(3, 0.4), 1.0, 1e-9).minimise(state, h)
    np.testing.assert_allclose(y, [-0.4, 0.4, -0.4])
    np.testing.assert_array_equal(matrix, kept[0])
    np.testing.assert_array_equal(g, kept[1])


def alike(kind, rng):
    """Columns on which coordinate steps hardly move."""
    A = rng.standard_normal((142, 20))
    if kind == "copies":
        return np.hstack([A, A + 1e-7 * rng.standard_normal(A.shape)])
    if kind == "the same":
        return np.hstack([A, A])
    if kind == "far from 0":
        return A + 1e3 * rng.random(20)
    if kind == "one row":
        A[0] *= 1e4
        return A
    return 1 / (1 + np.arange(142)[:, None] + np.arange(12))  # Hilbert's


@pytest.mark.parametrize("kind", ["copies", "the same", "far from 0", "one row", "Hilbert"])
@pytest.mark.parametrize("make", [losses.Squared, losses.SquaredHinge, losses.Logistic])
@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_matrices_of_columns_that_are_alike_are_solved_on_faces(kind, make, stored):
    """A thousand sweeps left gaps as large as the value."""
    rng = np.random.default_rng(1)
    A = alike(kind, rng)
    z = A @ rng.standard_normal(A.shape[1]) / np.abs(A).mean()
    y = z + rng.standard_normal(142) if make is losses.Squared else np.where(z > 0, 1.0, -1.0)
    f = adafw.LinearModel(stored(A), y, make())
    for ball in (adafw.LInfBall(1.0), adafw.Box(-0.3, 2.0)):
        r = adafw.minimize(
            f, ball, adafw.Corrective(), gap_tolerance=1e-6 * f.value(np.zeros(A.shape[1])),
            max_iterations=60,
        )  # fmt: skip
        assert r.status == "converged"
        g = A.T @ make().slope(A @ r.x, y) / 142
        assert g @ (r.x - ball.lmo(g)) <= 1.1e-6 * f.value(np.zeros(A.shape[1]))


def test_a_way_to_a_face_ends_at_the_bounds_it_meets():
    H = np.array([[2.0, 1.9, 0.0], [1.9, 2.0, 0.0], [0.0, 0.0, 1.0]])
    g = np.array([-3.0, 0.0, -0.25])
    model = _Model(np.zeros(3), g, np.full(3, -1.0), np.full(3, 1.0), 1.0, 0.1)
    d, slopes = np.zeros(3), g.copy()
    model._solve_faces(H, d, slopes)
    np.testing.assert_allclose(d, [1.0, -0.95, 0.25])
    np.testing.assert_allclose(slopes, g + H @ d)
    d, slopes = np.array([1.0, -1.0, 1.0]), g + H @ [1.0, -1.0, 1.0]
    model._solve_faces(H, d, slopes)  # nothing is free
    assert d.tolist() == [1.0, -1.0, 1.0]
    d = np.zeros(3)
    model._solve_faces(-H, d, g.copy())  # no minimum to go to
    assert not d.any()


@pytest.mark.parametrize("kind", ["matrix", "columns"])
def test_orders_go_on_where_they_were(kind, monkeypatch):
    if kind == "columns":
        monkeypatch.setattr(curvature, "forms_matrix", lambda rows: False)
    f, _, _ = problem("columns")
    seen, x = view(f), np.zeros(N)
    model = _Model(x, f.gradient(x), np.full(N, -0.1), np.full(N, 0.1), 1.0, 0.3)
    state: Any = {"word": 1}
    words = {1}
    for _ in range(3):
        model.minimise(state, seen.hessian(seen.predictions(x), seen.weights(x)))
        assert isinstance(state["word"], int)
        words.add(state["word"])
    assert len(words) == 4


@pytest.mark.parametrize("fell", [10.0, 1.1])
def test_predictions_of_rough_products_are_not_kept(fell, monkeypatch):
    """Where gaps hardly fall, products have all their digits, and predictions too."""
    monkeypatch.setattr(dense, "_LARGE", 1)
    monkeypatch.setattr(curvature, "forms_matrix", lambda rows: False)
    f, _, _ = problem("products")
    assert f.rows.rough
    ball, x = adafw.LInfBall(0.1), np.full(N, 0.01)
    g = f.gradient(x)
    state: Any = {"word": 1, "gap": fell * ball.gap(x, g)}
    new, state = BoxCorrector().improve(f, ball, x, g, 1, state)
    assert ("predictions" in state) is (fell < 2)
    if fell < 2:
        np.testing.assert_allclose(state["predictions"], f.rows.array @ new, atol=1e-13)


def test_columns_without_entries_stay_where_they_are(monkeypatch):
    monkeypatch.setattr(curvature, "forms_matrix", lambda rows: False)
    f, A, _ = problem("columns")
    A[:, [2, 7]] = 0.0
    f = adafw.LinearModel(sparse.csr_array(A), f.y, losses.Logistic())
    x = np.full(N, 0.03)
    state: Any = {"word": 1}
    for t in range(3):
        x, state = BoxCorrector().improve(f, adafw.LInfBall(0.1), x, f.gradient(x), t, state)
        assert np.isfinite(x).all()
        np.testing.assert_array_equal(x[[2, 7]], 0.03)


def test_where_losses_are_flat_coordinates_go_to_their_bounds(monkeypatch):
    """The model is linear there: its minimiser is a corner."""
    monkeypatch.setattr(curvature, "forms_matrix", lambda rows: False)
    _, A, _ = problem("columns")
    f = adafw.LinearModel(sparse.csr_array(A), np.full(80, 1e3), losses.Huber(1.0))
    x, seen = np.zeros(N), view(f)
    h, g = seen.hessian(seen.predictions(x), seen.weights(x)), f.gradient(x)
    lower, upper = np.full(N, -0.1), np.full(N, 0.2)
    model = _Model(x, g, lower, upper, _gap(g, x, lower, upper), 0.1)
    y, move = model.minimise({"word": 1}, h)
    np.testing.assert_allclose(y, np.where(g > 0, -0.1, 0.2), atol=1e-15)
    np.testing.assert_allclose(move, A @ y, atol=1e-12)
