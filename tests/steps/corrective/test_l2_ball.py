"""Models minimised over an l2 ball: inside it, along its sphere, and back."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.constraints.counted import CountedSet
from adafw.objectives import WithIntercept
from adafw.rows import dense
from adafw.steps.corrective import curvature
from adafw.steps.corrective.curvature import Hessian, view
from adafw.steps.corrective.damped import Position, at
from adafw.steps.corrective.l2_ball import L2Corrector, _gap, _Model
from adafw.steps.corrective.sampled import Sampled

N = 9


def problem(intercept=False, dtype=np.float64):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((70, N)) * np.geomspace(0.4, 3, N)
    y = np.where(A @ rng.standard_normal(N) + 2 * rng.standard_normal(70) > 0, 1.0, -1.0)
    f: Any = adafw.LinearModel(A.astype(dtype), y.astype(dtype), losses.Logistic())
    return (adafw.objectives.WithIntercept(f) if intercept else f), A, rng


def counting(h):
    products = []

    def product(d):
        products.append(d)
        return h.product(d)

    return Hessian(product, h.scale, h.matrix, h.columns, h.near, h.image), products


def test_the_gap_is_that_of_the_point_opposite():
    g, x = np.array([3.0, -4.0]), np.array([0.5, 0.25])
    assert _gap(g, x, 2.0) == 0.5 + 2 * 5


@pytest.mark.parametrize("way", ["matrix", "products"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("place", ["inside", "on the sphere", "at 0"])
@pytest.mark.parametrize("radius", [0.05, 1.0, 50.0])
def test_models_are_minimised_to_what_is_wanted(way, intercept, place, radius, monkeypatch):
    if way == "products":
        monkeypatch.setattr(curvature, "forms_matrix", lambda rows: False)
    f, A, rng = problem(intercept)
    x = rng.standard_normal(N)
    x *= radius * {"inside": 0.5, "on the sphere": 1.0, "at 0": 0.0}[place] / np.linalg.norm(x)
    seen, g, H = view(f), f.gradient(x), f.hessian(x)
    gap = _gap(g, x, radius)
    for share in (0.3, 1e-3):
        h, products = counting(seen.hessian(seen.predictions(x), seen.weights(x)))
        y, move = _Model(at(seen, x), g, radius, gap, share).minimise(h)
        d = y - x
        assert np.linalg.norm(y) <= radius * (1 + 1e-15)
        assert _gap(g + H @ d, y, radius) <= share * gap
        assert g @ d + d @ H @ d / 2 < 0
        if way == "products":
            np.testing.assert_allclose(move, A @ d, atol=1e-10 * max(1, np.abs(A @ d).max()))
        else:
            assert move is None
        # Of a matrix, H x is one product more.
        assert len(products) <= (8 if share == 0.3 else 20) + (way == "matrix")


@pytest.mark.parametrize(("near", "share", "asked"), [
    (1e-3, 0.3, 0),  # a step that hardly shrinks says little of H x
    (1e-3, 1e-9, 1),  # but too much for this
    (3.0, 0.3, 1),
])  # fmt: skip
def test_what_the_sphere_takes_back_is_guessed_where_it_is_little(near, share, asked, monkeypatch):
    """H x is half a product."""
    monkeypatch.setattr(curvature, "forms_matrix", lambda rows: False)
    f, A, rng = problem()
    ball = adafw.L2Ball(0.5)
    best = adafw.minimize(f, ball, adafw.Corrective(), gap_tolerance=1e-12, max_iterations=50).x
    x = best + near * np.linalg.norm(best) * rng.standard_normal(N) / np.sqrt(N)
    x *= 0.5 / np.linalg.norm(x)
    seen, g, H, images = view(f), f.gradient(x), f.hessian(x), []
    h = seen.hessian(seen.predictions(x), seen.weights(x))
    counted = replace(h, image=lambda z: images.append(1) or h.image(z))
    gap = _gap(g, x, 0.5)
    y, move = _Model(at(seen, x), g, 0.5, gap, share).minimise(counted)
    assert len(images) == asked
    np.testing.assert_allclose(move, A @ (y - x), atol=1e-12)
    if asked:
        assert _gap(g + H @ (y - x), y, 0.5) <= share * gap
    assert _gap(g + H @ (y - x), y, 0.5) <= 2 * share * gap + 1e-12


def model(x, g, radius, share=1e-9):
    f, _, _ = problem()
    return _Model(at(view(f), x), g, radius, 1.0, share)


def quadratic(seed=3):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((N, N))
    H, A = B @ B.T + np.eye(N), rng.standard_normal((5, N))
    return H, A, Hessian(lambda d: (H @ d, A @ d), np.diag(H).copy()), rng


def test_inside_a_step_is_newtons():
    H, A, h, rng = quadratic()
    y, slopes = 0.1 * rng.standard_normal(N), rng.standard_normal(N)
    d, bent, dz = model(y, slopes, 100.0)._step(h, h.nearly(), y, slopes)
    np.testing.assert_allclose(d, -np.linalg.solve(H, slopes), atol=1e-7)
    np.testing.assert_allclose(bent, H @ d, atol=1e-9)
    np.testing.assert_allclose(dz, A @ d, atol=1e-9)


def test_a_step_from_inside_ends_where_it_leaves():
    H, A, h, rng = quadratic()
    y, slopes = np.zeros(N), 10 * rng.standard_normal(N)
    d, bent, dz = model(y, slopes, 0.1)._step(h, h.nearly(), y, slopes)
    first = -slopes / np.diag(H)
    first *= -(slopes @ first) / (first @ H @ first)
    np.testing.assert_allclose(d, first, atol=1e-12)  # one direction was enough
    np.testing.assert_allclose(bent, H @ d, atol=1e-9)
    np.testing.assert_allclose(dz, A @ d, atol=1e-9)


@pytest.mark.parametrize("place", [0.0, 0.5])
@pytest.mark.parametrize("radius", [0.1, 1.0, 3.0])
def test_a_step_goes_across_the_ball_where_p_is_nearly_h(radius, place):
    """To the minimiser for P over the ball, or to where H is least on the way."""
    H, A, h, rng = quadratic()
    y, slopes = rng.standard_normal(N), 10 * rng.standard_normal(N)
    y *= place * radius / np.linalg.norm(y)
    P = H + 0.1 * np.diag(np.diag(H))
    known = replace(h, near=lambda: Sampled(P))
    m = model(y, slopes, radius)
    d, bent, dz = m._step(known, known.nearly(), y, slopes)
    b = P @ y - slopes
    low, high = 0.0, np.linalg.norm(b) / radius
    for _ in range(200):
        s = (low + high) / 2
        length = np.linalg.norm(np.linalg.solve(P + s * np.eye(N), b))
        low, high = (s, high) if length > radius else (low, s)
    exact = np.linalg.solve(P + s * np.eye(N), b) - y
    reached = slopes @ exact + exact @ P @ exact / 2
    found = m._across(known.nearly(), y, slopes)
    assert np.linalg.norm(y + found) <= radius * (1 + 1e-12)
    assert slopes @ found + found @ P @ found / 2 <= 0.98 * reached  # both below 0
    np.testing.assert_array_equal(d, found)  # H is below P here: no end but the step's
    np.testing.assert_allclose(bent, H @ d, atol=1e-9)
    np.testing.assert_allclose(dz, A @ d, atol=1e-9)
    # Where the model is least a third of the way, the step ends there.
    times = -3 * (slopes @ found) / (found @ P @ found)
    steep = Hessian(lambda d: (times * P @ d, A @ d), np.diag(H), near=lambda: Sampled(P))
    d, bent, dz = m._step(steep, steep.nearly(), y, slopes)
    np.testing.assert_allclose(d, found / 3, rtol=1e-12)
    np.testing.assert_allclose(bent, times * P @ d, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(dz, A @ d, atol=1e-9)


def test_where_the_ball_does_not_bind_a_step_is_newtons():
    H, _, h, rng = quadratic()
    y, slopes = np.zeros(N), rng.standard_normal(N)
    known = replace(h, near=lambda: Sampled(H))
    m = model(y, slopes, 100.0)
    assert m._across(known.nearly(), y, slopes) is None
    d, _, _ = m._step(known, known.nearly(), y, slopes)
    np.testing.assert_allclose(d, -np.linalg.solve(H, slopes), atol=1e-9)


@pytest.mark.parametrize("outward", [True, False])
def test_on_the_sphere_a_step_is_newtons_on_the_tangent_plane(outward):
    """(H + s) d = -slopes with <y, d> = 0; where the sphere does not hold y, it comes in."""
    H, A, h, rng = quadratic()
    y = rng.standard_normal(N)
    y *= 2.0 / np.linalg.norm(y)
    slopes = rng.standard_normal(N)
    slopes -= y * (slopes @ y + (3.0 if outward else -3.0)) / 4
    d, bent, dz = model(y, slopes, 2.0)._step(h, h.nearly(), y, slopes)
    np.testing.assert_allclose(bent, H @ d, atol=1e-7)
    np.testing.assert_allclose(dz, A @ d, atol=1e-7)
    if not outward:
        assert y @ d < 0
        return
    plane = np.linalg.svd(y[None])[2][1:].T
    s = 3.0 / 4
    expected = plane @ np.linalg.solve(plane.T @ (H + s * np.eye(N)) @ plane, -plane.T @ slopes)
    np.testing.assert_allclose(d, expected, atol=1e-7)


def test_a_step_whose_way_back_to_the_sphere_leads_up_is_halved():
    """Far along the tangent, where the model is flat, the sphere bends to where it is steep."""
    H, g, x = np.diag([100.0, 1e-9]), np.array([-1e-3, -1.0]), np.array([1.0, 0.0])
    h = Hessian(lambda d: (H @ d, d), np.diag(H).copy())
    y, move = _Model(Position(x, x, 0.0), g, 1.0, 1.0, 1e-6).minimise(h)
    d = y - x
    assert np.linalg.norm(y) <= 1 + 1e-15
    assert g @ d + d @ H @ d / 2 < -0.01
    np.testing.assert_allclose(move, d, atol=1e-12)


def test_points_outside_are_brought_back():
    m = model(np.zeros(N), np.ones(N), 2.0)
    assert m._shrink(np.full(N, 1.0)) == pytest.approx(2 / 3)
    assert m._shrink(np.full(N, 0.1)) == 1.0
    assert m._shrink(np.zeros(N)) == 1.0


def test_a_model_without_curvature_stays():
    h = Hessian(lambda d: (0 * d, 0 * d), np.ones(N))
    y, move = model(np.zeros(N), np.ones(N), 2.0).minimise(h)
    assert not y.any()
    assert not move.any()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_iteration_ends_in_the_ball_and_keeps_what_it_knows(dtype):
    f, A, _ = problem(dtype=dtype)
    ball = adafw.L2Ball(0.5)
    corrector, counted = L2Corrector(), CountedSet(ball)
    x, state = np.zeros(N, dtype), {}
    for t in range(4):
        g, calls = f.gradient(x), counted.lmo_calls
        gap = ball.gap(x, g)
        x, state = corrector.improve(f, counted, x, g, t, state)
        assert counted.lmo_calls == calls + 1
        assert state["gap"] == pytest.approx(gap, rel=1e-4)
        assert x.dtype == dtype
        assert np.linalg.norm(x) <= 0.5 * (1 + (1e-15 if dtype == np.float64 else 1e-6))
        np.testing.assert_allclose(state["weights"], np.mean(A**2, axis=0), rtol=1e-5)
        if dtype == np.float64:
            assert f.predictions(x)[0] is state["predictions"]
            np.testing.assert_allclose(state["predictions"], A @ x, atol=1e-12)
    assert ball.gap(x, f.gradient(x)) <= (1e-8 if dtype == np.float64 else 1e-4)


@pytest.mark.parametrize("fell", [10.0, 1.1])
def test_predictions_of_rough_products_are_not_kept(fell, monkeypatch):
    """Where gaps hardly fall, products have all their digits, and predictions too."""
    monkeypatch.setattr(dense, "_LARGE", 1)
    monkeypatch.setattr(curvature, "forms_matrix", lambda rows: False)
    f, _, _ = problem()
    assert f.rows.rough
    ball, x = adafw.L2Ball(0.5), np.full(N, 0.01)
    g = f.gradient(x)
    state: Any = {"word": 1, "gap": fell * ball.gap(x, g)}
    new, state = L2Corrector().improve(f, ball, x, g, 1, state)
    assert ("predictions" in state) is (fell < 2)
    if fell < 2:
        np.testing.assert_allclose(state["predictions"], f.rows.array @ new, atol=1e-13)


@pytest.mark.parametrize("radius", [1e-3, 0.5, 3.0, 1e4])
@pytest.mark.parametrize("condition", [1.0, 1e6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_matrix_is_solved_at_once(radius, condition, dtype):
    """By its eigenvectors and a bisection for the multiplier."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((20, 20)))[0]
    sizes = np.logspace(0, -np.log10(condition), 20)
    H, g = (turn * sizes) @ turn.T, rng.standard_normal(20)
    x = rng.standard_normal(20)
    x *= 0.7 * radius / np.linalg.norm(x)
    y = _Model(Position(x.astype(dtype), x, 0.0), g, radius, 1.0, 0.1)._solved(H)
    assert y.dtype == dtype
    b, low, high = turn.T @ (H @ x - g), 0.0, 1e6
    if np.linalg.norm(b / sizes) > radius:
        for _ in range(200):
            s = (low + high) / 2
            low, high = (s, high) if np.linalg.norm(b / (sizes + s)) > radius else (low, s)
    exact = turn @ (b / (sizes + high * (low > 0)))
    digits = 1e-6 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(y, exact, atol=digits * radius * max(1.0, condition / 1e4))
    assert np.linalg.norm(y.astype(np.float64)) <= radius * (1 + digits)


def test_a_matrix_without_an_inverse_is_left_to_products():
    x = np.zeros(3)
    model = _Model(Position(x, x, 0.0), np.ones(3), 1.0, 1.0, 0.1)
    assert model._solved(np.diag([1.0, 1.0, -1.0])) is None


@pytest.mark.parametrize("loss", [losses.SmoothedHinge(0.5), losses.Logistic(), losses.Huber(1.0)])
@pytest.mark.parametrize("n", [40, 232])
@pytest.mark.parametrize("intercept", [False, True])
def test_columns_of_heavy_tails_are_certified(loss, n, intercept):
    """Conjugate gradients took 400 steps a system, and led nowhere."""
    rng = np.random.default_rng(5)
    A = rng.standard_cauchy((397, n))
    y = np.where(A @ rng.standard_normal(n) > 0, 1.0, -1.0)
    f: Any = adafw.LinearModel(A, y, loss)
    f = adafw.objectives.WithIntercept(f) if intercept else f
    r = adafw.minimize(f, adafw.L2Ball(0.05), adafw.Corrective(), max_iterations=60,
                       gap_tolerance=1e-6 * f.value(np.zeros(n)))  # fmt: skip
    assert r.status == "converged"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("intercept", [False, True])
def test_units_from_a_millionth_to_a_million_leave_no_gap(seed, intercept):
    """<g, y - x> was what rounding left of larger terms, and the minimiser was taken for no way."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((176, 42)) * 10.0 ** rng.uniform(-6, 6, 42)
    u = rng.standard_normal(42) / np.abs(A).mean(axis=0)
    y = np.where(A @ u + 5 * rng.standard_normal(176) > 0, 1.0, -1.0)
    f = adafw.LinearModel(A, y, losses.Logistic())
    r = adafw.minimize(
        WithIntercept(f) if intercept else f, adafw.L2Ball(1e5), adafw.Corrective(),
        gap_tolerance=1e-5, max_iterations=40, progress=False,
    )  # fmt: skip
    assert r.status == "converged"
