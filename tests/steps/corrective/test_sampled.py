"""A Hessian from some of the rows: its inverse on a face, its minimiser over a box, its place."""

import numpy as np
import pytest
from scipy.optimize import brentq, lsq_linear
from scipy.sparse import csr_array

import adafw
from adafw import losses
from adafw.objectives import WithIntercept
from adafw.rows import MatrixRows, as_rows
from adafw.steps.corrective.box import BoxCorrector
from adafw.steps.corrective.curvature import view
from adafw.steps.corrective.l2_ball import L2Corrector
from adafw.steps.corrective.nearly import forms_matrix, matrix
from adafw.steps.corrective.sampled import Sampled, sampled
from adafw.steps.corrective.spiked import Spiked, diagonal

M, N = 6000, 60


def made(n=30, condition=1e3, seed=0):
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return Sampled(turn * np.logspace(0, np.log10(condition), n) @ turn.T), rng


def related(seed=0, m=M, n=N):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n)) @ rng.standard_normal((n, n)) / 4
    return A, np.where(A[:, 0] + rng.logistic(size=m) > 0, 1.0, -1.0)


def test_the_inverse_is_that_of_the_free_coordinates():
    near, rng = made()
    r = rng.standard_normal(30)
    for free in (np.ones(30, bool), rng.random(30) < 0.5, np.zeros(30, bool)):
        s, part = near.inverse(free)(r), np.ix_(free, free)
        np.testing.assert_allclose(s[free], np.linalg.solve(near.P[part], r[free]), rtol=1e-9)
        assert not s[~free].any()
    np.testing.assert_allclose(near.raised(2.0).P, near.P + 2 * np.eye(30))
    np.testing.assert_allclose(near.product(r), near.P @ r)


def test_what_is_not_positive_is_solved_by_its_diagonal():
    near = Sampled(np.array([[1.0, 2.0], [2.0, 1.0]]))
    s = near.inverse(np.array([True, True]))(np.array([3.0, 4.0], np.float32))
    np.testing.assert_array_equal(s, [3.0, 4.0])
    assert s.dtype == np.float32


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e7])
@pytest.mark.parametrize("width", [1e-3, 0.3, 100.0])
def test_nearest_is_the_minimiser_over_the_box(condition, width):
    for seed in range(3):
        near, rng = made(condition=condition, seed=seed)
        q = 5 * rng.standard_normal(30)
        lower = -width * rng.random(30)
        upper = lower + width * (0.1 + rng.random(30))  # 0 may be outside
        s = near.nearest(q, lower, upper)
        assert ((lower <= s) & (s <= upper)).all()
        root = np.linalg.cholesky(near.P).T
        target = -np.linalg.solve(root.T, q)
        exact = lsq_linear(root, target, (lower, upper), method="bvls", tol=1e-14).x

        def value(s, near=near, q=q):
            return q @ s + s @ near.P @ s / 2

        assert value(s) - value(exact) <= 1e-8 * abs(value(exact))


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e7])
@pytest.mark.parametrize("radius", [1e-3, 1.0, 1e9])
def test_nearest_in_a_ball_is_the_minimiser_there(condition, radius):
    for seed in range(3):
        near, rng = made(condition=condition, seed=seed)
        q, x = 5 * rng.standard_normal(30), rng.standard_normal(30)
        x *= radius * (seed / 2) / np.linalg.norm(x)  # at 0, inside, and on the sphere
        y = near.nearest_in_ball(x, q, radius)
        assert np.linalg.norm(y) <= radius * (1 + 1e-15)
        size, turn = np.linalg.eigh(near.P)
        b = turn.T @ (near.P @ x - q)
        long = np.linalg.norm(b / size)
        s = 0.0
        if long > radius:
            s = brentq(
                lambda s, b=b, size=size: 1 - radius / np.linalg.norm(b / (size + s)),
                0.0, np.linalg.norm(b) / radius, xtol=1e-300, rtol=1e-14,
            )  # fmt: skip
        best = turn @ (b / (size + s))

        def value(y, near=near, q=q, x=x):
            return q @ (y - x) + (y - x) @ near.P @ (y - x) / 2

        assert value(y) - value(best) <= 1e-6 * abs(value(best))


def test_columns_that_the_sample_lacks_are_known_by_all_rows():
    P = np.diag([4.0, 0.0, 1.9])
    np.testing.assert_allclose(sampled(P, np.array([4.2, 3.0, 4.0])).P.diagonal(), [4, 3, 4], 1e-5)


@pytest.mark.parametrize("intercept", [False, True])
def test_related_columns_are_solved_with_a_sample(intercept):
    """P^-1 H has eigenvalues between a third and three, where the diagonal's span thousands."""
    A, y = related()
    A = A + 3 * intercept
    f = adafw.LinearModel(A, y, losses.Logistic())
    f = WithIntercept(f) if intercept else f
    seen, x = view(f), np.full(N, 0.01)
    assert not forms_matrix(f.rows)
    h = seen.hessian(seen.predict(x), seen.weights(x))
    near = h.nearly()
    assert isinstance(near, Sampled)
    H = np.column_stack([h.product(e)[0] for e in np.eye(N)])
    size = np.linalg.eigvals(np.linalg.solve(near.P, H)).real
    assert 0.3 < size.min() < size.max() < 4
    assert np.linalg.cond(H / np.sqrt(np.outer(h.scale, h.scale))) > 1e3


def test_unrelated_columns_are_a_diagonal():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((M, N))
    some = as_rows(A).every(10)
    assert some.unrelated()
    assert not as_rows(A + 1).every(10).unrelated()
    assert as_rows(A + 1).every(10).unrelated(centred=True)
    assert not as_rows(related()[0]).every(10).unrelated()
    A[:, 3] = 0
    assert as_rows(A).every(10).unrelated()
    rows = as_rows(A)
    assert rows.every(10) is rows.every(10)
    np.testing.assert_array_equal(rows.every(10).array, A[::10])
    f = adafw.LinearModel(A, np.sign(A[:, 0]), losses.Logistic())
    seen, x = view(f), np.zeros(N)
    near = seen.hessian(seen.predict(x), seen.weights(x)).nearly()
    assert isinstance(near, Spiked)
    assert not near.V.size
    assert near.leads  # a step may go where the diagonal says
    assert not diagonal(near.rest).leads
    s = near.nearest(np.linspace(-9, 9, N), -np.ones(N), np.full(N, 0.5))
    np.testing.assert_array_equal(s, np.clip(-np.linspace(-9, 9, N) / near.rest, -1, 0.5))


@pytest.mark.parametrize("ball", [adafw.LInfBall(0.02), adafw.L2Ball(0.3), adafw.Box(-0.01, 0.02)])
@pytest.mark.parametrize(("m", "shape"), [(6000, (20, 30)), (6000, (10, 15)), (300, (10, 15))])
def test_matrices_of_coefficients_have_no_sample(ball, m, shape):
    """Rows that are matrices are no rows of a matrix."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, shape[0] * shape[1]))
    y = np.sign(A @ rng.standard_normal(A.shape[1]) + 9 * rng.standard_normal(m))
    f = adafw.LinearModel(MatrixRows(as_rows(A), shape), y, losses.Logistic())
    r = adafw.minimize(f, ball, adafw.Corrective(), gap_tolerance=1e-9, max_iterations=20)
    assert (r.status, r.x.shape) == ("converged", shape)
    flat = adafw.LinearModel(A, y, losses.Logistic())
    g = flat.gradient(r.x.ravel())
    assert g @ (r.x.ravel() - ball.lmo(g)) <= 1.1e-9


@pytest.mark.parametrize("ball", [adafw.LInfBall(0.5), adafw.L2Ball(5.0), adafw.Box(-0.2, 0.3)])
@pytest.mark.parametrize(("shape", "known"), [((30, 20), 400), ((300, 200), 5000), ((9, 60), 5000)])
def test_completions_over_simple_sets_are_certified(ball, shape, known):
    rng = np.random.default_rng(0)
    places = [rng.integers(0, size, known) for size in shape]
    f = adafw.MatrixCompletion(*places, rng.standard_normal(known), shape)
    r = adafw.minimize(f, ball, adafw.Corrective(), gap_tolerance=1e-9, max_iterations=20)
    assert r.status == "converged"


def test_when_all_rows_make_the_matrix():
    assert forms_matrix(as_rows(np.ones((1600, 200))))
    assert not forms_matrix(as_rows(np.ones((1601, 200))))
    assert forms_matrix(as_rows(np.ones((1 << 12, 32))))
    assert not forms_matrix(as_rows(np.ones(((1 << 12) + 1, 32))))
    for elsewhere in ("streamed", "remote"):  # a product would be a pass, or a round trip, as well
        rows = as_rows(np.ones(((1 << 12) + 1, 32)))
        setattr(rows, elsewhere, True)
        assert forms_matrix(rows)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_matrix_is_kept_while_bends_change_by_a_factor_alone(intercept):
    """A fifth of what they sum to may come and go; the matrix of others is made anew."""
    A, _ = related()
    some, w, kept = as_rows(A).every(12), np.full(500, 0.2), {}

    def expected(bends):
        own = A[::12]
        mixed = bends @ own
        return (own.T * bends) @ own - intercept * np.outer(mixed, mixed) / bends.sum()

    first = matrix(some, w, intercept, kept)
    np.testing.assert_allclose(first, expected(w), atol=1e-10)
    assert kept["gram"] is first
    np.testing.assert_allclose(matrix(some, 3 * w, intercept, kept), 3 * first, rtol=1e-14)
    for share, stays in ((0.09, True), (0.11, False)):
        other = 3 * w * np.where(np.arange(500) % 2, 1 - 2 * share, 1 + 2 * share)
        found = matrix(some, other, intercept, kept)
        assert (kept["gram"] is first) is stays
        np.testing.assert_allclose(found, 3 * first if stays else expected(other), atol=1e-10)
    # What is there of other rows, or of no curvature, is nothing to go by.
    for known in ({"gram": first, "bends": w[1:]}, {"gram": first[1:], "bends": w},
                  {"gram": first, "bends": 0 * w}, {"bends": w}):  # fmt: skip
        np.testing.assert_allclose(matrix(some, w, intercept, dict(known)), expected(w), atol=1e-10)


def test_unrelated_columns_in_a_box_take_a_product_a_model(monkeypatch):
    """Where all rows make a model: its first step goes where the diagonal says, and is enough."""
    monkeypatch.setattr("adafw.steps.corrective.box.followed", lambda *given: None)
    rng = np.random.default_rng(1)
    A = rng.standard_normal((20_000, 60))
    f = adafw.LinearModel(A, np.sign(A[:, 0] + rng.standard_normal(20_000)), losses.Logistic())
    x, ball, asked = np.zeros(60), adafw.LInfBall(0.1), []
    plain = f.rows.curve
    f.rows.curve = lambda *given: asked.append(1) or plain(*given)
    new, _ = BoxCorrector().improve(f, ball, x, f.gradient(x), 0, {"word": 1})
    assert asked == [1]
    assert ball.gap(new, f.gradient(new)) < 0.1 * ball.gap(x, f.gradient(x))


@pytest.mark.parametrize("corrector", [BoxCorrector(), L2Corrector()])
def test_few_dense_columns_need_no_sample(corrector):
    """Some of the rows make a matrix as it is."""
    ball, x = corrector.sets[0](1.0), np.zeros(60)
    for m, n, near in ((6000, 60, True), (480, 60, False), (1900, 201, False)):
        A, y = related(m=m, n=n)
        for f in (adafw.LinearModel(A, y, losses.Logistic()),
                  adafw.LinearModel(A, y, losses.Squared())):  # fmt: skip
            assert corrector.near(f, ball, x[:n], x[:n]) is near
    sparse = adafw.LinearModel(csr_array(related()[0]), related()[1], losses.Logistic())
    assert not corrector.near(sparse, ball, x, x)
    assert not corrector.near(adafw.UserSum(1, np.sum, lambda x, k: x), ball, x, x)


@pytest.mark.parametrize("loss", ["Logistic", "SquaredHinge", "Huber"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("constraint", [adafw.LInfBall(0.05), adafw.LInfBall(2.0),
                                        adafw.L2Ball(0.3), adafw.L2Ball(5.0)])  # fmt: skip
def test_few_related_columns_converge_in_few_gradients(constraint, intercept, loss):
    A, y = related(2)
    A[:, 7], A[:, 8], A[3, 9] = A[:, 6], 0.0, 50.0  # a copy, nothing, an outlier
    f = adafw.LinearModel(A * np.logspace(-2, 1, N), y, getattr(losses, loss)())
    f = WithIntercept(f) if intercept else f
    r = adafw.minimize(f, constraint, adafw.Corrective(), gap_tolerance=1e-9, max_iterations=25)
    assert r.status == "converged"
    assert constraint.gap(r.x, f.gradient(r.x)) < 1.1e-9


@pytest.mark.parametrize("constraint", [adafw.LInfBall(0.1), adafw.L2Ball(0.5)])
def test_runs_resume_bit_for_bit(constraint):
    A, y = related(3)

    def solved(**how):
        f = adafw.LinearModel(A, y, losses.Logistic())  # which knows nothing of the run so far
        return adafw.minimize(f, constraint, adafw.Corrective(), **how)

    whole = solved(max_iterations=6)
    again = solved(max_iterations=6, state=solved(max_iterations=3).state)
    np.testing.assert_array_equal(whole.x, again.x)


@pytest.mark.parametrize("loss", [losses.Huber(0.03), losses.SmoothedHinge(0.03)])
def test_where_few_rows_bend_all_make_the_matrix(loss):
    """Of eight rows a column some tenth would: too few for a matrix, and runs did not end."""
    A, y = related(4, 8000, 60)
    y = y if isinstance(loss, losses.SmoothedHinge) else A[:, 0] + y
    f = adafw.LinearModel(A, y, loss)
    ball, gap = adafw.LInfBall(0.3), 1e-7 * f.value(np.zeros(60))
    r = adafw.minimize(f, ball, adafw.Corrective(), gap_tolerance=gap, max_iterations=30)
    assert r.status == "converged"
    seen = view(f)
    h = seen.hessian(f.rows.dot(r.x), seen.weights(r.x))
    assert h.matrix is not None
    np.testing.assert_allclose(h.matrix, f.hessian(r.x), atol=1e-12)


def test_columns_far_from_0_have_no_rough_products_with_an_intercept():
    """Single precision loses what they are less their means."""
    A, y = related(5, 6000, 220)  # of fewer columns some of the rows make a matrix
    far, near = A + 600, A + 6
    assert as_rows(far).far
    assert not as_rows(near).far
    assert not as_rows(np.hstack([near, np.ones((6000, 1))])).far  # a column that is constant
    f = adafw.LinearModel(far, y, losses.Logistic())
    for model, rough in ((f, True), (WithIntercept(f), False)):
        seen = view(model)
        seen.exact = False
        assert seen.rough is rough
    f, ball = WithIntercept(f), adafw.LInfBall(0.3)
    r = adafw.minimize(f, ball, adafw.Corrective(), gap_tolerance=1e-6, max_iterations=25)
    assert r.status == "converged"


def test_columns_of_tiny_numbers_hold_nothing_up():
    A, y = related(6)
    A[:, 5] *= 1e-158
    f = adafw.LinearModel(A, y, losses.Logistic())
    r = adafw.minimize(
        f, adafw.LInfBall(0.5), adafw.Corrective(), gap_tolerance=1e-8, max_iterations=20
    )
    assert r.status == "converged"


@pytest.mark.parametrize("size", [1e145, 1e170])
def test_balls_whose_squared_radius_is_0_are_no_trouble(size):
    rng = np.random.default_rng(0)
    B, slopes = rng.standard_normal((30, 6)), rng.standard_normal(6)
    plain = Sampled(B.T @ B).nearest_in_ball(np.zeros(6), slopes, 0.01)
    radius = 0.01 / size
    found = Sampled(np.clip(B.T @ B * size, None, 1e300)).nearest_in_ball(
        np.zeros(6), slopes, radius
    )
    assert np.linalg.norm(found) <= (1 + 1e-9) * radius
    np.testing.assert_allclose(found * size, plain, rtol=1e-6)
