"""Working sets of columns: extended or made anew they are the same, and what is built on them."""

import numpy as np
import pytest
from scipy import linalg, sparse

import adafw
from adafw import losses
from adafw.kernels.working_set import take_stale
from adafw.rows import as_rows
from adafw.rows.csr import CSRRows
from adafw.rows.working import moved
from adafw.steps.corrective.atoms import _in_order
from adafw.steps.corrective.gram import STALE, Gram
from adafw.steps.corrective.joining import Shape, steepest
from adafw.steps.corrective.point import Point


def matrix(m=300, n=60, seed=0):
    return sparse.random_array((m, n), density=0.2, rng=np.random.default_rng(seed), format="csr")


@pytest.mark.parametrize("passing", [False, True])  # by columns, and by rows alone
def test_columns_that_come_and_go_leave_what_a_fresh_start_makes(passing):
    rng = np.random.default_rng(1)
    A = matrix()
    rows, last, chosen = CSRRows(A, passing=passing), None, np.zeros(0, np.int64)
    assert rows.turned is not passing
    for _ in range(12):
        stay = chosen[rng.random(chosen.size) < 0.7]
        chosen = np.concatenate([stay, rng.permutation(np.setdiff1d(np.arange(60), stay))[:9]])
        last = rows.working(chosen, last)
        anew = rows.working(chosen)
        for one, other in zip(last.part, anew.part, strict=True):
            np.testing.assert_array_equal(one, other)
        dense = A.toarray()[:, chosen]
        w, p = rng.standard_normal(chosen.size), rng.standard_normal(300)
        np.testing.assert_allclose(last.dot(w), dense @ w, atol=1e-13)
        np.testing.assert_allclose(last.combine(p), p @ dense, atol=1e-12)
        np.testing.assert_allclose(last.squares(p), p @ dense**2, atol=1e-12)
        np.testing.assert_allclose(last.product(p, w), dense.T @ (p * (dense @ w)), atol=1e-11)
        gram = np.zeros((chosen.size, chosen.size))
        last.add_gram(p, gram, 4)
        expected = np.tril(dense.T @ (p[:, None] * dense))
        expected[:4] = 0
        np.testing.assert_allclose(gram, expected, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kept", [60, 59, 40, 3])
def test_sorted_columns_are_the_same_by_rows_and_by_columns(kept, dtype):
    """All of them are the matrix itself, most are picked from its rows, few from its columns."""
    A = matrix().astype(dtype)
    chosen = np.sort(np.random.default_rng(4).permutation(60)[:kept])
    by_columns = CSRRows(A).working(chosen)
    by_rows = CSRRows(A, passing=True).working(chosen)
    for one, other in zip(by_columns.part, by_rows.part, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (by_columns.gram_work, by_columns.gram_pays) == (by_rows.gram_work, by_rows.gram_pays)
    assert np.shares_memory(by_columns.part.values, A.data) == (kept == 60)


def test_long_rows_and_many_columns_are_not_kept_twice():
    rng = np.random.default_rng(5)
    assert not as_rows(sparse.csr_array(rng.random((30, 49)))).turned
    for n, turned in ((8192, True), (8193, False)):
        A = sparse.csr_array((np.ones(30), (np.arange(30), np.arange(30))), shape=(30, n))
        assert as_rows(A).turned is turned


@pytest.mark.parametrize("few", [1, 3, 250])
def test_new_rows_in_both_triangles(few):
    """Bit for bit the same in both, whether they are written one by one or copied."""
    rng = np.random.default_rng(6)
    working = CSRRows(matrix()).working(np.arange(60))
    gram, weights = np.zeros((60, 60)), np.zeros(300)
    working.renew_gram(rng.random(300), 300, gram)
    expected = gram.copy()
    weights[:few] = rng.standard_normal(few)
    working.renew_gram(weights, few, gram)
    np.testing.assert_array_equal(gram, gram.T)
    working.add_gram(weights, expected)
    np.testing.assert_array_equal(np.tril(gram), np.tril(expected))


def test_a_column_that_few_rows_have_all_of_one_class():
    """Its weight grows until the gap is small, and its rows bend less and less: their share of the
    matrix has to follow, small as it is (else 200 iterations end at 1e-7)."""
    rng, groups, m = np.random.default_rng(0), 14, 2000
    A = np.zeros((m, 4 * groups + 1))
    np.put_along_axis(A, 4 * np.arange(groups) + rng.integers(0, 4, (m, groups)), 1.0, 1)
    score = A[:, :-1] @ rng.standard_normal(4 * groups)
    y = np.where(score + rng.logistic(size=m) > 0, 1.0, -1.0)
    A[np.flatnonzero(y > 0)[:6], -1] = 1.0
    f = adafw.LinearModel(sparse.csr_array(A), y, losses.Logistic())
    result = adafw.minimize(
        f, adafw.L1Ball(400.0), adafw.Corrective(), gap_tolerance=1e-10, max_iterations=20
    )
    assert result.status == "converged"
    assert result.x[-1] > 20


def test_a_set_that_holds_all_that_is_wanted_is_kept():
    support, fresh = np.array([1, 4, 7, 8]), np.array([2])
    kept = _in_order(10, support, fresh, {"chosen": np.array([8, 7, 2, 1, 4])})
    np.testing.assert_array_equal(kept, [8, 7, 2, 1, 4])
    kept = _in_order(10, support, fresh, {"chosen": np.array([8, 9, 7, 2, 3, 1, 4])})
    np.testing.assert_array_equal(kept, [8, 7, 1, 4, 2])  # too large to be kept
    kept = _in_order(10, support, np.array([3]), {"chosen": np.array([8, 7, 2, 1, 4])})
    np.testing.assert_array_equal(kept, [8, 7, 1, 4, 3])
    np.testing.assert_array_equal(_in_order(10, support, fresh, {}), [1, 2, 4, 7, 8])


def test_what_is_kept_of_a_set_is_its_columns_in_order():
    before = np.array([5, 2, 9, 7])
    new, kept = moved(before, np.array([5, 9, 1, 3]), 10)
    assert kept == 2
    assert new[0] == 0
    assert new[2] == 1
    assert set(new[[1, 3]]) == {0xFFFFFFFF}
    new, kept = moved(before, np.array([9, 5]), 10)  # out of order: 5 joins anew
    assert kept == 1


@pytest.mark.parametrize("free", [False, True])
def test_the_gram_matrix_follows_bends_and_columns(free):
    f = adafw.LinearModel(matrix(), np.sign(matrix().sum(1) - 5), losses.Logistic())
    rng = np.random.default_rng(2)
    bends = rng.random(300) + 0.1
    gram = Gram(f.working(np.array([3, 1, 20, 8])), 60, {})
    gram.follow(bends, 0.01)
    gram = Gram(f.working(np.array([3, 20, 8, 40, 41])), 60, gram.save())
    bends = bends * (1 + 0.3 * rng.random(300))
    gram.follow(bends, 0.0)
    model = gram.model(np.ones(5), free)
    dense = matrix().toarray()[:, [3, 20, 8, 40, 41]]
    H = dense.T @ (bends[:, None] * dense)
    np.testing.assert_allclose(model.gram, H, atol=1e-12)
    mixed = dense.T @ bends
    if free:
        H -= np.outer(mixed, mixed) / bends.sum()
        np.testing.assert_allclose(model.mixed, mixed, atol=1e-12)
    np.testing.assert_allclose(model.diagonal, np.diag(H), rtol=1e-9)
    factor = gram.factor(np.arange(5), model)
    upper = np.triu(factor)
    np.testing.assert_allclose(upper.T @ upper, H * (1 + 1e-10 * np.eye(5)), rtol=1e-9, atol=1e-12)


def test_a_sampled_matrix_keeps_the_diagonal_of_all_rows():
    rng = np.random.default_rng(3)
    A = sparse.csr_array((rng.random((4000, 40)) < 0.5).astype(float))
    f = adafw.LinearModel(A, np.sign(rng.standard_normal(4000)), losses.Logistic())
    gram = Gram(f.working(np.arange(40)), 40, {})
    bends = rng.random(4000)
    gram.follow(bends, STALE, sampled=True)
    assert np.count_nonzero(gram.bends) < 2500
    model = gram.model(np.ones(40), False)
    exact = A.toarray().T @ (bends[:, None] * A.toarray())
    assert (model.diagonal >= (1 - 1e-12) * np.diag(exact)).all()
    # Of that many rows a sample is right to a few hundredths in every direction.
    spread = linalg.eigh(model.gram, exact, eigvals_only=True)
    assert 0.7 < spread.min() < spread.max() < 1.4
    gram.follow(bends, 0.0)
    np.testing.assert_allclose(gram.model(np.ones(40), False).gram, exact, rtol=1e-10)


def test_rows_that_count_for_little_are_made_anew_late():
    """But those whose bend has doubled at once: a column may have no others."""
    known = np.array([1.0, 1.0, 1e-3, 1e-3, 1e-3, 0.0])
    bends = np.array([1.1, 1.3, 1.9e-3, 2.1e-3, 0.0, 1e-9])
    change = np.empty(6)
    assert take_stale(bends, known, 0.2, 0.1, change)
    np.testing.assert_allclose(change, [0, 0.3, 0, 1.1e-3, 0, 1e-9], rtol=1e-12)
    np.testing.assert_allclose(known, [1, 1.3, 1e-3, 2.1e-3, 1e-3, 1e-9], rtol=1e-12)
    assert not take_stale(known.copy(), known, 0.2, 0.1, change)


def test_atoms_near_those_that_must_join_come_along():
    x, g = np.zeros(6), np.array([-1.0, 1.05, -0.99, 0.97, 0.5, -1.2])
    x[0] = 2.0
    everyone = np.array([1, 2, 5])
    support, shape = np.array([0]), Shape(2.0)
    fresh, must, price = steepest(shape, x, g, support, True, 0.0, 6)
    assert (fresh.tolist(), must, price) == (everyone.tolist(), 2, 0.0)
    # No more than there is room for, the steepest first; none if none must.
    assert steepest(shape, x, g, support, True, 0.0, 2)[0].tolist() == [1, 5]
    # Where sum x = radius, the multiplier may be below 0: who must join does so all the same.
    uphill = np.array([1000.0, 999.0, 998.0, 1001.0, 1019.0, 1021.0])
    fresh, must, _ = steepest(Shape(2.0, False, False), x, uphill, support, True, 0.0, 6)
    assert (fresh.tolist(), must) == ([1, 2, 3, 4], 2)
    calm = np.array([-1.0, 0.99, 0.0, 0.0, 0.0, 0.0])
    assert steepest(shape, x, calm, support, True, 0.0, 6)[:2][1] == 0
    assert not steepest(shape, x, calm, support, True, 0.0, 6)[0].size


def test_moves_that_were_tried_are_taken_as_they_were():
    f = adafw.LinearModel(matrix(), np.sign(matrix().sum(1) - 5), losses.Logistic())
    point = Point(f, np.zeros(60))
    dz = f.rows.dot(-f.gradient(np.zeros(60)))
    t = point.step_size(dz, -1e-3)
    point.move(dz, t)
    value, slopes, bends = f.curves_at(t * dz)
    assert point.value == value
    np.testing.assert_array_equal(point.slopes, slopes)
    np.testing.assert_array_equal(point.bends, bends)


def hull_problem(seed=0, intercept=False, loss=None):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((200, 12))
    loss = loss or losses.Logistic()
    y = np.sign(A @ rng.standard_normal(12) + rng.standard_normal(200))
    f = adafw.LinearModel(A, y, loss)
    hull = adafw.Hull(rng.standard_normal((80, 12)))
    return (adafw.objectives.WithIntercept(f) if intercept else f), hull


def check_active_set(r):
    weights, atoms = r.active_set
    assert (weights > 0).all()
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(weights @ atoms, r.x, atol=1e-12 * max(1, np.abs(r.x).max()))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Squared(), losses.SquaredHinge()])
def test_hulls_of_given_points_are_certified(loss, intercept):
    f, hull = hull_problem(1, intercept, loss)
    r = adafw.minimize(f, hull, adafw.Corrective(), gap_tolerance=1e-10, max_iterations=60)
    assert r.status == "converged"
    assert hull.contains(r.x)
    g = f.gradient(r.x)
    scores = hull.vertices.value @ g
    assert float(g @ r.x - scores.min()) <= 1.1e-10
    check_active_set(r)


def test_hulls_with_rows_less_their_mean():
    f, hull = hull_problem(5, loss=losses.Squared())
    rows, _ = f.rows.centred()
    centred = adafw.LinearModel(rows, f.y - f.y.mean(), losses.Squared())
    r = adafw.minimize(centred, hull, adafw.Corrective(), gap_tolerance=1e-10, max_iterations=60)
    assert r.status == "converged"
    whole = adafw.objectives.WithIntercept(f)
    other = adafw.minimize(whole, hull, adafw.Corrective(), gap_tolerance=1e-10, max_iterations=60)
    assert r.value == pytest.approx(other.value, abs=1e-9)


def test_hulls_go_on_bit_by_bit_and_from_any_point(tmp_path):
    f, hull = hull_problem(2)
    x0 = np.full(80, 1 / 80) @ hull.vertices.value
    whole = adafw.minimize(f, hull, adafw.Corrective(), x0=x0, max_iterations=5)
    part = adafw.minimize(f, hull, adafw.Corrective(), x0=x0, max_iterations=2)
    part.state.save(tmp_path / "s.npz")
    f, _ = hull_problem(2)
    state = adafw.State.load(tmp_path / "s.npz")
    rest = adafw.minimize(f, hull, adafw.Corrective(), state=state, max_iterations=5)
    np.testing.assert_array_equal(rest.x, whole.x)


@pytest.mark.parametrize("radius", [0.5, 1e3])
@pytest.mark.parametrize("make", [adafw.L1Ball, adafw.Simplex, adafw.UnitSimplex])
def test_the_active_set_makes_x(make, radius):
    f, _ = hull_problem(3)
    r = adafw.minimize(f, make(radius), adafw.Corrective(), gap_tolerance=1e-9, max_iterations=50)
    check_active_set(r)
    _, atoms = r.active_set
    for atom in atoms.toarray():
        assert make(radius).contains(atom)
        assert np.count_nonzero(atom) <= 1


def test_sets_without_vertices_have_no_active_set():
    f, _ = hull_problem(4)
    r = adafw.minimize(f, adafw.L2Ball(1.0), adafw.Corrective(), max_iterations=3)
    assert r.active_set is None
