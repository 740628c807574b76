"""The l1 ball of matrices: models of several outputs, their minimisers, and steps towards them."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.constraints.counted import CountedSet
from adafw.objectives import MatrixModel
from adafw.steps.corrective import joint
from adafw.steps.corrective.joint import JointCorrector, _onto_sphere, _violation, _Working
from adafw.steps.corrective.joint_newton import JointPoint, JointRows
from adafw.steps.corrective.newton import effort

N, K, M = 5, 3, 60
LOSSES = [losses.Softmax(), losses.Outputs(losses.Squared())]


def problem(loss, intercept=True, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((M, N)) * (rng.random((M, N)) < 0.6)
    z = 2 * A @ rng.standard_normal((N, K)) + rng.standard_normal((M, K))
    y = z.argmax(axis=1) if loss.coupled else z
    w = rng.uniform(0.5, 2.0, M)
    return MatrixModel(
        sparse.csr_array(A.astype(dtype)), y, loss, w, intercept=intercept
    ), A, rng  # fmt: skip


def hessian(f, x, chosen):
    product = f.hessian_product(x)
    found = np.empty((chosen.size, chosen.size))
    for a, where in enumerate(chosen):
        unit = np.zeros(N * K)
        unit[where] = 1.0
        found[:, a] = product(unit.reshape(N, K)).reshape(-1)[chosen]
    return found


def working(loss, intercept=True, bound=True, price=0.0, radius=2.0, seed=0):
    f, A, rng = problem(loss, intercept, seed)
    chosen = np.sort(rng.permutation(N * K)[:10])
    x = np.zeros(N * K)
    x[chosen[::2]] = rng.standard_normal(5)
    x *= (radius if bound else 0.4) / np.abs(x).sum()
    x = x.reshape(N, K)
    at = _Working(f, x, f.gradient(x), chosen, radius, bound, price, 3)
    return f, A, at, hessian(f, x, chosen)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_what_coefficients_move(loss, intercept):
    f, A, at, H = working(loss, intercept)
    d = np.linspace(-1, 1, 10)
    D = np.zeros(N * K)
    D[at.chosen] = d
    move = A @ D.reshape(N, K)
    np.testing.assert_allclose(at.product(d), move, atol=1e-13)
    model = at._model(f.seconds_at(at.z))
    own = np.diag(hessian(MatrixModel(f.rows, f.y, loss, f.sample_weight), at.x, at.chosen))
    if not intercept:
        np.testing.assert_allclose(model.diagonal, own + 1e-8 * own.mean(), rtol=1e-9)
        np.testing.assert_allclose(at._way(model, at.w + d), move, atol=1e-12)
        return
    way = at._way(model, at.w + d)
    np.testing.assert_allclose(way - move, (way - move)[0] * np.ones((M, 1)), atol=1e-12)
    weights = (f.term_weights / f.n_terms)[:, None]
    bent = weights * loss.curve(f.seconds_at(at.z), way)
    np.testing.assert_allclose(bent.sum(axis=0), 0, atol=1e-9)  # intercepts have followed
    np.testing.assert_allclose((A.T @ bent).reshape(-1)[at.chosen], H @ d, atol=1e-9)
    assert at.value == pytest.approx(f.value(at.x), rel=1e-12)


def test_the_vertex_is_the_linear_minimiser():
    _, _, at, _ = working(losses.Softmax())
    vertex = np.zeros(N * K)
    vertex[at.chosen] = at._vertex()
    masked = np.where(np.isin(np.arange(N * K), at.chosen), at.g.reshape(-1), 0.0)
    np.testing.assert_array_equal(vertex, adafw.L1Ball(2.0).lmo(masked))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("bound", "price"), [(True, 0.0), (False, 0.0), (False, 0.05)])
def test_models_are_nearly_minimised_over_the_set(loss, intercept, bound, price):
    for seed in range(3):
        f, _, at, H = working(loss, intercept, bound, price, 2.0 if bound else 4.0, seed)
        w, binds = at._minimiser(at._model(f.seconds_at(at.z)))
        assert np.abs(w).sum() <= at.radius * (1 + 1e-12)
        toll = 0.0 if binds else price

        def value(w, H=H, at=at, toll=toll):
            d = w - at.w
            return at.slopes @ d + d @ H @ d / 2 + toll * np.abs(w).sum()

        best, step = at.w.copy(), 1 / np.linalg.eigvalsh(H)[-1]
        for _ in range(500):
            best = best - step * (at.slopes + H @ (best - at.w))
            best = np.sign(best) * np.maximum(np.abs(best) - step * toll, 0.0)
            best = adafw.L1Ball(at.radius).project(best)
        assert value(at.w) - value(w) >= 0.85 * (value(at.w) - value(best))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_polishing_ends_where_the_model_is_level_along_the_face(loss, intercept):
    found = turned = 0
    for seed in range(12):
        f, _, at, _ = working(loss, intercept, seed=seed)
        x = np.zeros(N * K)  # down from 0, so that hardly a sign changes
        x[at.chosen[::4]] = -f.gradient(np.zeros((N, K))).reshape(-1)[at.chosen[::4]]
        x = (x * 2.0 / np.abs(x).sum()).reshape(N, K)
        at, H = (
            _Working(f, x, f.gradient(x), at.chosen, 2.0, True, 0.0, 3),
            hessian(f, x, at.chosen),
        )
        w = at.w.copy()
        at._polish(at._model(f.seconds_at(at.z)), w)
        d, face = w - at.w, np.flatnonzero(at.w)
        assert not d[at.w == 0].any()
        if not d.any():
            continue
        assert at.slopes @ d + d @ H @ d / 2 < 0
        assert (w * at.w >= 0).all()
        if w[face].all():
            found += 1
            assert np.abs(w).sum() == pytest.approx(2.0)
            level = ((at.slopes + H @ d) * np.sign(w))[face]
            assert np.ptp(level) <= 0.1 * np.ptp((at.slopes * np.sign(w))[face])
        turned += bool(not w[face].all() and np.abs(w).sum() == pytest.approx(2.0))
    assert found > 0
    assert turned > 0


def test_lengths_of_steps():
    """Of squares f is a parabola on the way: one look more leads to its lowest point."""
    f, _, at, _ = working(LOSSES[1], intercept=False)
    d = -at.slopes
    dz = at._way(at._model(f.seconds_at(at.z)), at.w + d)
    slope = float(at.slopes @ d)
    bend = 2 * (f.value_at(at.z + dz) - at.value - slope)
    best = -slope / bend
    for scale, t in ((1.5 * best, 1.0), (4 * best, 0.25), (30 * best, 1 / 30)):
        assert at._step_size(scale * dz, scale * slope, 0.0) == pytest.approx(t)
    toll = -slope / 2  # half of the slope is paid: half as far
    assert at._step_size(4 * best * dz, 4 * best * (slope + toll), 4 * best * toll) == (
        pytest.approx(0.125)
    )
    assert at._step_size(dz, 0.0, 0.0) == 0.0
    assert at._step_size(dz, 1.0, 0.0) == 0.0
    assert at._step_size(-dz, slope, 0.0) < 1e-9
    assert at._step_size(0 * dz, -1e-13, 0.0) == 1.0  # rounding is no ascent


def test_onto_the_sphere_by_the_shortest_way():
    w, diagonal = np.array([1.0, 0.0, -2.0, 0.1]), np.array([1.0, 1.0, 2.0, 0.5])
    new = w.copy()
    _onto_sphere(new, diagonal, 10.0)
    assert np.abs(new).sum() == pytest.approx(10.0)
    moved = (new - w)[[0, 2, 3]] * diagonal[[0, 2, 3]] * np.sign(w[[0, 2, 3]])
    np.testing.assert_allclose(moved, moved[0])
    _onto_sphere(w, diagonal, 1.0)
    assert w[3] == 0
    none = np.zeros(2)
    _onto_sphere(none, np.ones(2), 1.0)
    assert not none.any()


def test_violations_of_optimality():
    g, x = np.array([3.0, -3.0, 0.5, -1.0]), np.array([0.0, 0.0, -2.0, 1.0])
    assert _violation(g, x, 1.0) == 2 + 2 + 0.5 + 0


@pytest.mark.parametrize(
    ("way", "dtype"), [("newton", np.float64), ("newton", np.float32), ("descent", np.float64)]
)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_iterations_lead_to_the_minimum(way, intercept, loss, dtype, monkeypatch):
    if way == "descent":
        monkeypatch.setattr(joint, "MOST", 0)
    f, A, _ = problem(loss, intercept, dtype=dtype)
    ball = adafw.L1Ball(2.0)
    counted, corrector = CountedSet(ball), JointCorrector()
    x, state = np.zeros((N, K), dtype), {}
    first = ball.gap(x, f.gradient(x))
    for t in range(8 if way == "newton" else 25):
        g, calls = f.gradient(x), counted.lmo_calls
        norm = float(np.abs(x).sum())
        if ball.gap(x, g) <= 1e-6 * first:
            break
        x, state = corrector.improve(f, counted, x, g, t, state)
        assert counted.lmo_calls == calls + 1
        assert x.dtype == dtype
        assert np.abs(x).sum() <= 2.0 * (1 + (1e-12 if dtype == np.float64 else 1e-6))
        assert state["norm"] == pytest.approx(norm)
        if dtype == np.float64:
            np.testing.assert_allclose(state["predictions"], A @ x, atol=1e-12)
            assert f.predictions(x)[0] is state["predictions"]
        else:
            assert "predictions" not in state
    assert ball.gap(x, f.gradient(x)) <= (1e-5 if dtype == np.float64 else 1e-4) * first


def test_what_an_iteration_notes():
    rng = np.random.default_rng(0)
    A = sparse.random_array((200, 60), density=0.1, rng=rng).tocsr()
    f = MatrixModel(A, rng.integers(0, 4, 200), losses.Softmax())
    x = np.zeros((60, 4))
    steep = np.sort(np.abs(f.gradient(x)).reshape(-1))[::-1]
    new, state = JointCorrector().improve(f, adafw.L1Ball(1e4), x, f.gradient(x), 1, {})
    assert 0 < np.count_nonzero(new) <= 64
    assert state["level"] == pytest.approx(max(0.1 * steep[0], 0.3 * steep[64]))
    assert (state["norm"], state["bound"]) == (0.0, 0)
    assert set(state) == {"level", "norm", "bound", "predictions"}
    for share, known, bound in ((1.0, 0, 1), (0.95, 0, 0), (0.95, 1, 1), (0.85, 1, 0)):
        y = share * 0.01 * new / np.abs(new).sum()
        _, after = JointCorrector().improve(
            f, adafw.L1Ball(0.01), y, f.gradient(y), 1, {"bound": known}
        )
        assert after["bound"] == bound
    small, y = MatrixModel(A[:, :12], f.y, losses.Softmax()), new[:12] + 0.1
    for share, level in ((0.9, 0.1 * 1e-4), (0.995, 0.0)):  # weight that no longer grows is free
        grown: Any = {"level": 1e-4, "norm": share * np.abs(y).sum()}
        g = small.gradient(y)
        _, after = JointCorrector().improve(small, adafw.L1Ball(1e4), y, g, 1, grown)
        assert after["level"] == pytest.approx(level, abs=0)
    y = new
    still, same = JointCorrector().improve(f, adafw.L1Ball(1.0), y, 0 * y, 1, state)
    assert still is y
    assert same is state


def test_few_coefficients_have_a_matrix(monkeypatch):
    f, A, _ = problem(losses.Softmax())
    chosen = np.array([0, 1, 5, 6, 7])
    x = np.zeros((N, K))
    given: Any = (f, x, f.gradient(x), chosen, 2.0, 0.0, 2.0, 5)
    assert joint._newton(*given) is not None
    entries = (A[:, [0, 0, 1, 2, 2]] != 0).sum(axis=1).astype(float)
    rows = JointRows(f, chosen)
    assert rows.work == pytest.approx(float(entries @ entries) / 2)
    assert rows.gram_work == pytest.approx(rows.work / entries.sum())
    monkeypatch.setattr(joint, "WORK", rows.work - 1)
    assert joint._newton(*given) is None
    monkeypatch.setattr(joint, "WORK", rows.work)
    assert joint._newton(*given) is not None
    monkeypatch.setattr(joint, "MOST", 4)
    assert joint._newton(*given) is None
    assert joint._newton(
        MatrixModel(A, f.y, f.loss), x, f.gradient(x), chosen[:2], 2.0, 0.0, 2.0, 2
    ) is None  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
def test_a_point_has_the_derivatives_of_the_objective(loss):
    f, A, rng = problem(loss)
    x = rng.standard_normal((N, K))
    point = JointPoint(f, x)
    z = A @ x + f.best_intercept(x)
    np.testing.assert_allclose(point.z, z, atol=1e-12)
    assert point.value == pytest.approx(f.value(x), rel=1e-12)
    np.testing.assert_allclose(A.T @ point.slopes, f.gradient(x), atol=1e-12)
    np.testing.assert_allclose(point.bends, f.seconds_at(z), atol=1e-12)
    dz = rng.standard_normal((M, K))
    met = (f.seconds_at(z) + f.seconds_at(z + dz)) / 2
    np.testing.assert_allclose(point.raised_bends(dz), met, atol=1e-12)
    assert point.over(met) is met
    assert not point.free


def test_which_problems_fit():
    f, _, _ = problem(losses.Softmax())
    fits = JointCorrector().fits
    assert fits(f, adafw.L1Ball(1.0))
    assert fits(f, CountedSet(adafw.L1Ball(1.0)))
    assert not fits(f, adafw.Simplex(1.0))
    assert not fits(adafw.LinearModel(np.eye(3), np.ones(3), losses.Squared()), adafw.L1Ball(1.0))


def test_newton_steps_are_told_of_the_whole_gap(monkeypatch):
    """What they leave is a share of it; atoms begin with the signs that descend."""
    seen, plain = [], joint.newton_steps
    monkeypatch.setattr(joint, "newton_steps", lambda *given: seen.append(given) or plain(*given))
    f, _, rng = problem(losses.Softmax())
    x = 0.1 * rng.standard_normal((N, K)) * (rng.random((N, K)) < 0.5)
    g, ball = f.gradient(x), adafw.L1Ball(4.0)
    start = np.abs(x).sum()
    new, state = JointCorrector().improve(f, ball, x, g, 1, {})
    ((point, gram, at, gap, how),) = seen
    assert gap == pytest.approx(ball.gap(x, g))
    assert (at.open, at.signed, at.level) == (True, True, state["level"])
    assert at.u.sum() + at.slack == pytest.approx(4.0)
    assert point.value < f.value(x)
    np.testing.assert_allclose(at.signs * at.u, new.reshape(-1)[gram.working.chosen], atol=1e-12)
    assert start < 4.0
    used = np.count_nonzero(x)
    assert how is effort(gram.working.chosen.size - used, used)


@pytest.mark.parametrize(("used", "joined"), [(5, 64), (60, 120)])
def test_coefficients_that_join_are_twice_those_in_use(used, joined, monkeypatch):
    seen, plain = [], joint.newton_steps
    monkeypatch.setattr(joint, "newton_steps", lambda *given: seen.append(given) or plain(*given))
    rng = np.random.default_rng(0)
    A = sparse.random_array((200, 60), density=0.1, rng=rng).tocsr()
    f, x = MatrixModel(A, rng.integers(0, 4, 200), losses.Softmax()), np.zeros(240)
    x[:used] = 0.01
    x = x.reshape(60, 4)
    free: Any = {"level": 0.0, "norm": 1e3}  # weight costs nothing
    JointCorrector().improve(f, adafw.L1Ball(1e3), x, f.gradient(x), 1, free)
    assert seen[0][1].working.chosen.size == used + joined


def test_a_descent_notes_whether_the_set_binds_in_the_end(monkeypatch):
    monkeypatch.setattr(joint, "MOST", 0)
    f, _, _ = problem(losses.Softmax())
    x = np.zeros((N, K))
    for radius, bound in ((0.5, 1), (1e4, 0)):
        new, state = JointCorrector().improve(f, adafw.L1Ball(radius), x, f.gradient(x), 1, {})
        assert state["bound"] == bound
        assert bool(np.abs(new).sum() == pytest.approx(radius)) is bool(bound)


def test_curvature_met_where_a_step_is_cut_short_is_known_to_the_next_model():
    """The mean of what a model knew and of what is there at the end of its step."""

    class Watched(_Working):
        def _model(self, s, inverse=None):
            known.append(s)
            return super()._model(s, inverse)

        def _way(self, model, w):
            ways.append(super()._way(model, w))
            return ways[-1]

    raised = 0
    for seed in range(6):
        known: list[Any] = []
        ways: list[Any] = []
        f, _, rng = problem(losses.Outputs(losses.Huber(0.05)), seed=seed)
        x = -4 * rng.standard_normal((N, K))
        at = Watched(f, x, f.gradient(x), np.arange(N * K), 400.0, False, 0.0, 0)
        w, _ = at.improved()
        assert f.value(w.reshape(N, K)) < f.value(x)
        np.testing.assert_array_equal(known[0], f.seconds_at(at.z))
        for before, after, way in zip(known, known[1:], ways, strict=False):
            np.testing.assert_array_equal(after, (before + f.seconds_at(at.z + way)) / 2)
            raised += 1
    assert raised > 0


def test_where_no_model_descends_the_way_to_the_vertex_does():
    class Lost(_Working):
        def _minimiser(self, model):
            return self.w + self.slopes, False

    f, _, at, _ = working(losses.Softmax())
    lost = Lost(f, at.x, at.g, at.chosen, 2.0, True, 0.0, 3)
    w, bound = lost.improved()
    assert bound
    d, way = w - lost.w, lost._vertex() - lost.w
    t = float(d @ way / (way @ way))
    np.testing.assert_allclose(d, t * way, atol=1e-14)
    assert 0 < t <= 1
    new = np.zeros(N * K)
    new[at.chosen] = w
    assert f.value(new.reshape(N, K)) < f.value(at.x)
