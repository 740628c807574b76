"""Steps by a matrix that gradients correct: what they cost, what they keep, when they give way."""

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.objectives import WithIntercept
from adafw.rows import as_rows, passes
from adafw.solver import State
from adafw.steps.corrective import secants
from adafw.steps.corrective.box import BoxCorrector
from adafw.steps.corrective.curvature import Points, Predictions, view
from adafw.steps.corrective.secants import followed, secant, stride

M, N = 20_000, 60


def problem(loss=losses.Logistic(), intercept=False, m=M, n=N, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n)) @ rng.standard_normal((n, n)) / 4
    y = np.where(A[:, 0] + rng.logistic(size=m) > 0, 1.0, -1.0)
    f = adafw.LinearModel(A, y, loss)
    return WithIntercept(f) if intercept else f


@pytest.fixture
def read(monkeypatch):
    """The passes over the rows, as they are asked for."""
    found = []
    for name in ("dots", "adds", "at_once", "curve", "squares", "survey"):
        plain = getattr(passes, name)
        monkeypatch.setattr(passes, name, lambda *a, n=name, f=plain: found.append(n) or f(*a))
    return found


def test_a_secant_is_what_the_matrix_then_does():
    rng = np.random.default_rng(0)
    B, s, y = rng.standard_normal((9, 5)), rng.standard_normal(5), rng.standard_normal(5)
    P, g = B.T @ B, np.ones(5)
    y *= np.sign(s @ y)
    new = secant(P, s, y, g)
    np.testing.assert_allclose(new @ s, y, atol=1e-12)
    np.testing.assert_array_equal(new, new.T)
    assert np.linalg.eigvalsh(new).min() > 0
    other = np.linalg.solve(P, rng.standard_normal(5))
    other -= s * (s @ P @ other) / (s @ P @ s)
    other -= s * (y @ other) / (y @ s)  # what neither of the two saw stays
    np.testing.assert_allclose(other @ secant(P, s, P @ s, g) @ other, other @ P @ other)
    for flat in (-y, 1e-4 * P @ s):
        assert secant(P, s, flat, g) is P
    tiny = 1e-13 * s  # a change of slopes that rounding of g could be
    assert secant(P, tiny, P @ tiny, g) is P
    assert secant(P, tiny, P @ tiny, 1e-13 * g) is not P


def test_samples_cost_less_than_a_pass():
    for m, n, wanted in ((30_000, 200, 1800), (5000, 200, 1666), (30_000, 20, 1000),
                         (300_000, 100, 5000), (9000, 100, 1000)):  # fmt: skip
        every = stride(as_rows(np.broadcast_to(1.0, (m, n)), finite=True))
        assert abs(len(range(0, m, every)) - wanted) <= 0.2 * wanted


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Squared(), losses.SquaredHinge()])
def test_an_iteration_is_one_pass(loss, read):
    for _ in range(2):  # a few rows are rehearsed once
        del read[:]
        f = problem(loss)
        r = adafw.minimize(f, adafw.LInfBall(0.05), adafw.Corrective(), max_iterations=4)
    assert read == ["survey", *["at_once"] * 4]
    gaps = [record.gap for record in r.trace]
    assert gaps[-1] < 1e-3 * gaps[0]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("radius", [0.05, 0.5])
def test_corrections_make_steps_converge_faster(intercept, radius, monkeypatch):
    def gradients():
        f, ball = problem(intercept=intercept), adafw.LInfBall(radius)
        r = adafw.minimize(f, ball, adafw.Corrective(), gap_tolerance=1e-9, max_iterations=60)
        assert r.status == "converged"
        assert ball.gap(r.x, f.gradient(r.x)) <= 1.01e-9
        return r.trace[-1].iteration

    corrected = gradients()
    monkeypatch.setattr(secants, "secant", lambda P, s, y, g: P)
    assert corrected < 0.85 * gradients()
    assert corrected <= 14


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("stop", [1, 3, 6])
def test_runs_on_large_data_resume_bit_for_bit(intercept, stop):
    def solved(**how):
        f = problem(intercept=intercept)  # which knows nothing of the run so far
        return adafw.minimize(f, adafw.LInfBall(0.3), adafw.Corrective(), **how)

    whole = solved(max_iterations=9)
    again = solved(max_iterations=9, state=solved(max_iterations=stop).state)
    np.testing.assert_array_equal(whole.x, again.x)
    assert whole.trace[-1].gap == again.trace[-1].gap


def asked(f, state, x=None, radius=0.05):
    """What `followed` answers at x, and where it was led to."""
    x, ball = np.zeros(N) if x is None else x, adafw.LInfBall(radius)
    g, seen, led = f.gradient(x), view(f), []

    def minimiser(near):
        led.append(near)
        return np.clip(x + near.nearest(g, -radius - x, radius - x), -radius, radius)

    gap = ball.gap(x, g)
    new = followed(seen, x, g, gap, seen.weights(x), state, minimiser)
    return new, led, gap


def test_it_gives_way_where_gaps_hardly_fell_three_times():
    f, kept = problem(), {}
    new, led, gap = asked(f, kept)
    assert new is not None
    assert len(led) == 1
    assert (kept["gap"], kept["stuck"]) == (gap, 0)
    for share, before, after in ((1.2, 2, 0), (1.05, 0, 1), (0.8, 1, 2)):  # of the last gap
        state = {**kept, "gap": share * gap, "stuck": before}
        new, led, _ = asked(f, state)
        assert new is not None
        assert state["stuck"] == after
    state = {**kept, "gap": gap, "stuck": 2}
    new, led, _ = asked(f, state)
    assert new is None
    assert not led
    assert "gram" not in state
    assert state["stuck"] == 0


def test_a_step_that_is_too_long_is_cut_or_not_made():
    """P / 4 leads four times too far, P / 400 where nothing is known of f."""
    f, start = problem(losses.Squared()), {}
    whole, led, _ = asked(f, start)
    first = f.value(np.zeros(N))
    for share, cut in ((1 / 4, True), (1 / 400, None)):
        state = {"gram": share * led[0].P, "bends": start["bends"]}
        x, ball = np.zeros(N), adafw.LInfBall(1e3)
        g, seen = f.gradient(x), view(f)
        far = []

        def minimiser(near, far=far, g=g):
            far.append(-np.linalg.solve(near.P, g))
            return far[0]

        new = followed(seen, x, g, ball.gap(x, g), seen.weights(x), state, minimiser)
        assert (new is None) is (cut is None)
        assert ("gram" in state) is (new is not None)
        if new is not None:
            gamma = float(new @ far[0] / (far[0] @ far[0]))
            assert 0.1 <= gamma < 0.5
            np.testing.assert_allclose(new, gamma * far[0], atol=1e-14)
            assert f.value(new) < first
    assert f.value(whole) < first


def test_no_way_down_is_none():
    f, x = problem(), np.zeros(N)
    g, seen = f.gradient(x), view(f)
    assert followed(seen, x, g, 1.0, seen.weights(x), {}, lambda near: x + 1e-3 * g) is None
    assert followed(Points(f), x, g, 1.0, np.ones(N), {}, lambda near: x) is None


def test_a_matrix_that_bends_have_left_is_made_anew():
    """Where gaps fall fast it stays, corrected; what belongs to other rows is not taken."""
    f = problem()
    x = 0.3 * np.clip(np.random.default_rng(1).standard_normal(N), -1, 1)
    kept = {}
    asked(f, kept)
    here = f.curves(x)[2][:: stride(f.rows)]
    gap = asked(f, {}, x, 1.0)[2]
    for last, stays in ((100 * gap, True), (1.2 * gap, False)):
        state = {**kept, "gap": last}
        asked(f, state, x, 1.0)
        np.testing.assert_allclose(
            state["bends"] / state["bends"].sum(),
            kept["bends"] / kept["bends"].sum() if stays else here / here.sum(),
        )
    for wrong in ({"gram": np.eye(3)}, {"bends": np.ones(3)}, {"before": np.ones(3)}):
        state = {**kept, "gap": 100 * gap, **wrong}
        assert asked(f, state, x, 1.0)[0] is not None
        assert state["gram"].shape == (N, N)


def test_columns_that_looked_unrelated_are_sampled_where_gaps_fall_slowly():
    f, kept = problem(), {}
    f.rows.unrelated = lambda centred: True
    gap = asked(f, kept)[2]
    assert kept["alone"] == 1
    np.testing.assert_array_equal(kept["gram"], np.diag(kept["gram"].diagonal()))
    for last, alone in ((100 * gap, 1), (1.2 * gap, 0)):
        state = {**kept, "gap": last}
        asked(f, state)
        assert state["alone"] == alone
        assert bool(np.count_nonzero(state["gram"]) == N) is bool(alone)


def test_where_no_row_of_a_sample_bends_the_diagonal_is_all():
    f = problem()
    P = secants._made(f, np.full(N, 2.0), np.zeros(7), 1, alone=False)
    np.testing.assert_array_equal(P, 2 * np.eye(N))


def test_corrected_steps_need_some_rows_to_tell_of_all():
    for m, n, near in ((6000, 60, True), (480, 60, False), (2100, 201, True), (1900, 201, False),
                       (5000, 501, False)):  # fmt: skip
        f = problem(m=m, n=n)
        x, ball, state = np.zeros(n), adafw.LInfBall(0.05), BoxCorrector().init(np.zeros(n))
        assert isinstance(view(f), Predictions)
        _, state = BoxCorrector().improve(f, ball, x, f.gradient(x), 0, state)
        assert ("before" in state) is near


def of_all_lengths(loss, n=N, spread=2.0, m=M):
    """Rows whose lengths differ by orders: a few hold nearly all of H."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((m, n)) @ rng.standard_normal((n, n)) / 4
    A *= rng.lognormal(0, spread, (m, 1))
    y = np.where(A[:, 0] + rng.logistic(size=m) > 0, 1.0, -1.0)
    return adafw.LinearModel(A, y, loss)


@pytest.mark.parametrize(
    ("loss", "most"), [(losses.Squared(), 6), (losses.SquaredHinge(), 22), (losses.Logistic(), 24)]
)
def test_few_rows_that_hold_nearly_all_are_among_those_that_tell(loss, most):
    f, ball = of_all_lengths(loss), adafw.L2Ball(0.7)
    wanted = 1e-5 * f.value(np.zeros(N))
    r = adafw.minimize(f, ball, adafw.Corrective(), gap_tolerance=wanted, max_iterations=60)
    assert r.status == "converged"
    assert r.trace[-1].iteration <= most


def test_rows_are_drawn_by_what_they_add():
    """Of rows that add as much, so many as are asked for; those that add most, all of them."""
    f = of_all_lengths(losses.Squared())
    adds, weights = f.rows.heavy, f.rows.mean_squares(np.ones(M))
    all_of_them = f.rows.gram(np.full(M, 2.0 / M))
    for count in (500, 2000):
        P = secants._drawn(f, weights, np.full(M, 2.0 / M), adds, count)
        roots = np.sqrt(all_of_them.diagonal())
        assert np.abs(P - all_of_them).max() <= 0.05 * roots.max() ** 2
        assert np.abs((P - all_of_them) / np.outer(roots, roots)).max() <= 0.1
    nothing = secants._drawn(f, weights, np.zeros(M), np.zeros(M), 500)
    np.testing.assert_array_equal(nothing, np.diag(weights))


@pytest.mark.parametrize("stop", [1, 2, 4])
def test_runs_on_rows_of_all_lengths_resume_bit_for_bit(stop, tmp_path):
    def solved(**how):
        f = of_all_lengths(losses.SquaredHinge())
        return adafw.minimize(f, adafw.L2Ball(0.7), adafw.Corrective(), **how)

    whole, path = solved(max_iterations=7), tmp_path / "state.npz"
    solved(max_iterations=stop).state.save(path)
    again = solved(max_iterations=7, state=State.load(path))
    np.testing.assert_array_equal(whole.x, again.x)


@pytest.mark.parametrize("ball", [adafw.L2Ball(0.3), adafw.LInfBall(0.05)])
@pytest.mark.parametrize(
    "wrong",
    [
        {"before": 7}, {"before": "text"}, {"slopes": np.array(["a"] * N)}, {"slopes": 1e300},
        {"gram": np.zeros((N, N))}, {"gram": -np.eye(N)}, {"gram": np.eye(N, dtype=np.float32)},
        {"bends": 3}, {"before": np.ones((N, 1))},
    ],
    ids=lambda wrong: f"{next(iter(wrong))}-{np.asarray(next(iter(wrong.values()))).dtype}",
)  # fmt: skip
def test_what_no_run_leaves_in_a_state_is_not_gone_by(ball, wrong):
    f = problem()
    state = adafw.minimize(f, ball, adafw.Corrective(), max_iterations=2).state
    state.step.update(wrong)
    r = adafw.minimize(f, ball, adafw.Corrective(), max_iterations=8, state=state)
    assert r.gap <= 1e-3
