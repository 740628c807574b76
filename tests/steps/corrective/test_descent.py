from itertools import product

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.objectives import WithIntercept
from adafw.steps.corrective import descent
from adafw.steps.corrective.point import Point


def working(seed, spread=0.2, evenness=0.3, n=6):
    """Columns much like each other, weights on a sphere, some of which are tiny; or not."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((30, 1)) + spread * rng.standard_normal((30, n))
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    f = adafw.LinearModel(sparse.csr_array(A), y, losses.Logistic())
    x = np.maximum(rng.dirichlet(np.full(n, evenness)), 1e-6) * rng.choice([-1.0, 1.0], n)
    x *= 2 / np.abs(x).sum()
    at = descent.Working(
        f.rows, np.arange(n), x, f.gradient(x), radius=2.0, signed=True, bound=True, price=0.0,
        calm=True, seed=0,
    )  # fmt: skip
    return f, at


@pytest.mark.parametrize("seed", range(30))
def test_polishing_never_raises_the_model(seed):
    """What is cut off where a weight would change its sign may be worth more than all the rest."""
    f, at = working(seed)
    n, H = at.x.size, f.hessian(at.x)
    w = at.x.copy()
    model = descent._Model(at, Point(f, at.x))
    done = model._polish(w, np.arange(n))
    d = w - at.x
    change = at.g @ d + d @ H @ d / 2
    assert change < 0 or (not done and not d.any())
    assert (w * at.x >= 0).all()


def test_polishing_finds_the_minimum_on_its_face():
    """Where no weight would change its sign: the gradient of the model is level along the face."""
    found = 0
    for seed in range(30):
        f, at = working(seed, spread=3.0, evenness=30.0)
        w = at.x.copy()
        if not descent._Model(at, Point(f, at.x))._polish(w, np.arange(w.size)) or not w.all():
            continue
        found += 1
        slope = (at.g + f.hessian(at.x) @ (w - at.x)) * np.sign(w)
        before = at.g * np.sign(w)
        assert np.ptp(slope) <= 0.1 * np.ptp(before)
        assert np.abs(w).sum() == pytest.approx(2.0)
    assert found > 5


def test_violations_of_optimality():
    """|g + multiplier sign(x)| where x is not 0, else what |g| or -g exceeds the multiplier by."""
    g, x = np.array([3.0, -3.0, 0.5, -1.0]), np.array([0.0, 0.0, -2.0, 1.0])
    assert descent._violation(g, x, 1.0, True) == 2 + 2 + 0.5 + 0
    assert descent._violation(g, x, 1.0, False) == 0 + 2 + 0.5 + 0


def test_onto_the_sphere_by_the_shortest_way():
    w, diagonal = np.array([1.0, 0.0, -2.0, 0.1]), np.array([1.0, 1.0, 2.0, 0.5])
    new = w.copy()
    descent._onto_sphere(new, np.flatnonzero(w), diagonal, 10.0)
    assert np.abs(new).sum() == pytest.approx(10.0)
    moved = (new - w)[[0, 2, 3]] * diagonal[[0, 2, 3]] * np.sign(w[[0, 2, 3]])
    np.testing.assert_allclose(moved, moved[0])  # the same price everywhere
    descent._onto_sphere(w, np.flatnonzero(w), diagonal, 1.0)
    assert w[3] == 0  # a sign does not change


def setting(bound, signed=True, intercept=False, price=0.0, radius=1.5, calm=False, seed=0, n=8):
    """A model on all of n columns, and what it is as plain matrices."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((60, n)) * (rng.random((60, n)) < 0.6) * np.geomspace(0.5, 2, n)
    truth = rng.standard_normal(n)
    score = A @ (truth if signed else np.abs(truth)) + rng.standard_normal(60)
    f = adafw.LinearModel(sparse.csr_array(A), np.where(score > 0, 1.0, -1.0), losses.Logistic())
    f = WithIntercept(f) if intercept else f
    x = np.where(np.arange(n) % 3, rng.standard_normal(n), 0.0)
    x = x if signed else np.abs(x)
    x *= (radius if bound else 0.5) / np.abs(x).sum()
    at = descent.Working(
        f.rows, np.arange(n), x, f.gradient(x), radius, signed, bound, price, calm, 3
    )
    return f, at, A


@pytest.mark.parametrize("intercept", [False, True])
def test_the_model_is_that_of_the_objective(intercept):
    f, at, A = setting(True, intercept=intercept)
    point = Point(f, at.x)
    model, H = descent._Model(at, point), f.hessian(at.x)
    diagonal = np.diag(H) + 1e-8 * np.diag(H).mean()
    np.testing.assert_allclose(model.diagonal, diagonal, rtol=1e-10)
    mixed = A.T @ point.bends if intercept else np.zeros(8)
    np.testing.assert_allclose(model.mixed, mixed, atol=1e-14)
    assert model.total == pytest.approx(point.bends.sum() if intercept else 0)
    assert model.slope == pytest.approx(point.slopes.sum() if intercept else 0, abs=1e-14)
    w = at.x + 0.1 * np.arange(8)
    np.testing.assert_allclose(descent.product(at, w), A @ w, atol=1e-13)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("bound", [False, True])
def test_the_way_to_a_point_its_slope_and_its_price(intercept, bound):
    f, at, A = setting(bound, intercept=intercept, price=0.3)
    point, w = Point(f, at.x), at.x + np.linspace(-1, 1, 8)
    dz, slope, toll = descent._Model(at, point).way(w, bound)
    d = w - at.x
    expected = 0.0 if bound else 0.3 * (np.abs(w).sum() - np.abs(at.x).sum())
    assert toll == pytest.approx(expected)
    assert slope == pytest.approx(at.g @ d + expected)
    follow = -(point.bends @ (A @ d)) / point.bends.sum() if intercept else 0.0
    np.testing.assert_allclose(dz, A @ d + follow, atol=1e-12)


@pytest.mark.parametrize("signed", [True, False])
def test_the_vertex_of_a_model_is_the_linear_minimiser(signed):
    f, at, _ = setting(True, signed=signed)
    ball = adafw.L1Ball(1.5) if signed else adafw.Simplex(1.5)
    model = descent._Model(at, Point(f, at.x))
    np.testing.assert_array_equal(model.vertex(), ball.lmo(at.g))
    for g in (-at.g, np.abs(at.g) + 1.0, -np.abs(at.g) - 1.0):
        at.g = g
        np.testing.assert_array_equal(model.vertex(), ball.lmo(g))


def least(at, H, sphere):
    """The least value of the model, price included, over the set: of all its faces."""
    best, c = np.inf, at.g - H @ at.x
    for signs in product((-1, 0, 1) if at.signed else (0, 1), repeat=at.x.size):
        face = np.flatnonzero(signs)
        s = np.array(signs, float)[face]
        K, k = H[np.ix_(face, face)], -(c[face] + (0.0 if sphere else at.price) * s)
        free, along = np.linalg.solve(K, k), np.linalg.solve(K, s)
        ends = [] if sphere else [free]
        if face.size:
            ends.append(free + along * ((at.radius - s @ free) / (s @ along)))
        for end in ends:
            if (s * end >= 0).all() and s @ end <= at.radius * (1 + 1e-12):
                w = np.zeros_like(at.x)
                w[face] = end
                d = w - at.x
                price = 0.0 if sphere else at.price * np.abs(w).sum()
                best = min(best, at.g @ d + d @ H @ d / 2 + price)
    return best


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(
    ("bound", "radius", "price"),
    [
        (True, 0.5, 0.0),
        (True, 2.0, 0.0),
        (False, 2.0, 0.0),
        (False, 40.0, 0.0),
        (False, 40.0, 0.02),
    ],
)
def test_models_are_nearly_minimised_over_the_set(bound, radius, price, signed, intercept):
    full = 0
    for seed in range(4):
        f, at, _ = setting(bound, signed, intercept, price, radius, seed=seed, n=5)
        H = f.hessian(at.x)
        model = descent._Model(at, Point(f, at.x))
        w, binds = model.minimiser(False)
        assert np.abs(w).sum() <= radius * (1 + 1e-12)
        assert signed or w.min() >= 0
        norm = np.abs(w).sum()
        assert not binds or norm <= 0.9 * radius or norm == pytest.approx(radius)
        full += bool(norm == pytest.approx(radius))
        assert binds or not bound
        d = w - at.x
        toll = 0.0 if binds else price
        start = toll * np.abs(at.x).sum()
        value = at.g @ d + d @ H @ d / 2 + toll * np.abs(w).sum()
        best = least(at, H, binds)
        assert start - value >= 0.6 * (start - best)
        held = model.held()
        assert np.abs(held).sum() <= radius * (1 + 1e-12)
        d = held - at.x
        assert at.g @ d + d @ H @ d / 2 + price * np.abs(held).sum() < price * np.abs(at.x).sum()
    assert full >= (3 if bound else 0)


@pytest.mark.parametrize("calm", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("signed", [True, False])
def test_descents_lead_down_and_tell_what_they_found(signed, intercept, calm):
    for seed in range(4):
        f, at, _ = setting(True, signed, intercept, calm=calm, seed=seed)
        ball = adafw.L1Ball(1.5) if signed else adafw.UnitSimplex(1.5)
        before, gap, found = f.value(at.x), ball.gap(at.x, at.g), []
        for t in range(6):
            w, bound, calm_now, _ = descent.descent(at, Point(f, at.x))
            found.append(calm_now)
            assert ball.violation(w) <= 1e-12
            assert f.value(w) <= before + 1e-14
            before = f.value(w)
            at = descent.Working(
                f.rows, at.chosen, w, f.gradient(w), 1.5, signed, bound, 0.0, calm_now, t
            )
        assert ball.gap(at.x, at.g) <= 1e-3 * gap
        assert any(found)


def test_calm_is_what_hardly_changes():
    """A face that changes in more than a few places is not; nor is a step that was cut."""
    f, at, _ = setting(True, n=40, radius=6.0)
    w, bound, calm, _ = descent.descent(at, Point(f, at.x))
    changed = np.count_nonzero((w != 0) != (at.x != 0))
    assert changed > 2
    assert (bound, calm) == (True, False)


def test_where_models_fail_a_plain_step_descends():
    f, at, _ = setting(True)
    point = Point(f, at.x)
    w, dz, t = descent._plain_step(at, point, descent._Model(at, point))
    assert 0 < t <= 1
    np.testing.assert_allclose(dz, f.rows.dot(w - at.x), atol=1e-13)
    new = at.x + t * (w - at.x)
    assert f.value(new) < f.value(at.x)
    assert np.abs(new).sum() <= 1.5 * (1 + 1e-12)


@pytest.mark.parametrize("signed", [True, False])
def test_where_all_is_calm_what_is_new_comes_in_beside_what_is_settled(signed):
    """Coordinates at 0 that are steeper than the multiplier descend before the polish."""
    for seed in range(6):
        f, at, _ = setting(True, signed, seed=seed)
        at.g = at.g.copy()
        fresh = np.flatnonzero(at.x == 0)
        at.g[fresh] = 0.0
        at.g[fresh[0]] = -50 * np.abs(at.g).max()
        w, bound = descent._Model(at, Point(f, at.x)).minimiser(True)
        assert bound
        assert w[fresh[0]] > 0
        assert np.abs(w).sum() == pytest.approx(1.5)


def test_a_face_that_has_to_change_after_all_changes():
    """Where only what is new descended, and that was not enough: as if nothing had been calm."""
    for n in (8, 40):
        for seed in range(4):
            found = []
            for calm in (False, True):
                f, at, _ = setting(True, n=n, radius=6.0, calm=calm, seed=seed)
                found.append(descent.descent(at, Point(f, at.x))[0])
            np.testing.assert_array_equal(*found)


def test_a_held_multiplier_is_the_price_where_the_set_does_not_bind():
    f, at, _ = setting(False, price=1e3)
    assert not descent._Model(at, Point(f, at.x)).held().any()  # nothing is worth that
    f, at, _ = setting(True, price=1e3)
    assert descent._Model(at, Point(f, at.x)).held().any()
    at.g = -1e3 * np.sign(at.x)  # what is in use pays as much
    w = descent._Model(at, Point(f, at.x)).held()
    np.testing.assert_array_equal(w != 0, at.x != 0)


def test_curvature_met_where_a_step_is_cut_short_is_known_to_the_next_model():
    raised = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        A, u = rng.standard_normal((60, 8)), rng.standard_normal(8)
        y = A @ u + 0.1 * rng.standard_normal(60)
        f = adafw.LinearModel(sparse.csr_array(A), y, losses.Huber(0.05))
        at = descent.Working(
            f.rows, np.arange(8), -4 * u, f.gradient(-4 * u), 200.0, True, False, 0.0, False, 0
        )
        point = Point(f, at.x)
        before = point.bends.copy()
        w = descent.descent(at, point).w
        assert f.value(w) < f.value(at.x)
        assert (point.bends >= before - 1e-15).all()
        raised += bool((point.bends > before + 1e-9).any())
    assert raised > 0


def test_polishing_that_was_not_ended_by_its_residual_is_not_done(monkeypatch):
    for seed in range(30):
        f, at = working(seed, spread=3.0, evenness=30.0)
        w = at.x.copy()
        if descent._Model(at, Point(f, at.x))._polish(w, np.arange(w.size)) and w.all():
            break
    monkeypatch.setattr(descent, "CG_STEPS", 1)
    v = at.x.copy()
    assert not descent._Model(at, Point(f, at.x))._polish(v, np.arange(v.size))
    assert (v != w).any()


def test_where_steps_are_cut_to_next_to_nothing_a_plain_step_is_taken(monkeypatch):
    class Far(descent._Model):
        def minimiser(self, calm):
            return self.at.x - 1e6 * self.at.g, False

    monkeypatch.setattr(descent, "_Model", Far)
    f, at, _ = setting(False, radius=1e7)
    w = descent.descent(at, Point(f, at.x)).w
    assert f.value(w) < f.value(at.x)
    d = w - at.x
    assert abs(d @ at.g) < 0.99 * np.linalg.norm(d) * np.linalg.norm(at.g)  # not along g


@pytest.mark.parametrize("intercept", [False, True])
def test_a_descent_tells_whether_the_set_has_come_to_bind(intercept):
    for radius, binds in ((0.6, True), (1e4, False)):
        f, at, _ = setting(False, intercept=intercept, radius=radius)
        w, bound, _, _ = descent.descent(at, Point(f, at.x))
        assert bound is binds
        assert bool(np.abs(w).sum() == pytest.approx(radius)) is binds


def test_calm_stays_calm_only_where_polishing_came_to_an_end(monkeypatch):
    found = []
    for most in (descent.CG_STEPS, 1):
        monkeypatch.setattr(descent, "CG_STEPS", most)
        found.append([
            descent.descent(at, Point(f, at.x))[2]
            for f, at in (working(seed, spread=3.0, evenness=30.0) for seed in range(8))
        ])  # fmt: skip
    assert any(found[0])
    assert not any(found[1])


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("some", [False, True])
def test_a_descent_goes_on_where_the_last_one_ended(some, intercept):
    f, at, _ = setting(False, intercept=intercept, radius=40.0)
    at.pace = descent.THOROUGH._replace(enough=1e-12)
    model, H = descent._Model(at, Point(f, at.x)), f.hessian(at.x)
    w, only = at.x.copy(), np.array([1, 4, 6]) if some else None
    for epochs in (2, 400):
        model._descend(w, 0.01, False, epochs, only)
    slopes = at.g + H @ (w - at.x)
    chosen = slice(None) if only is None else only
    assert descent._violation(slopes[chosen], w[chosen], 0.01, True) <= 1e-5
    if some:
        np.testing.assert_array_equal(np.delete(w, only), np.delete(at.x, only))
