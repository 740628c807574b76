"""Offsets, weights and ends of matrix completions, each by hand."""

import math

import numpy as np
import pytest
from scipy import sparse

from adafw import losses
from adafw.fitting import completion
from adafw.fitting.completion import (
    SHRINK,
    Offsets,
    complete,
    fit_offsets,
    leading_pairs,
    norm_from_above,
    smallest_radius,
)
from adafw.fitting.core import Deadline
from adafw.fitting.weighting import Map, by_frequency, by_solution, solve, walk
from adafw.steps.corrective.observed import Observed

RNG = np.random.default_rng(0)
SHAPE = (7, 5)
ROWS, COLS = (a.astype(np.int32) for a in np.nonzero(RNG.random(SHAPE) < 0.7))
Y = RNG.normal(size=len(ROWS)) + 3 + 2 * (ROWS == 1) - COLS


def seen(y=Y, base=0.0, loss=None):
    return Observed(ROWS, COLS, SHAPE, y, np.full(len(y), base), loss or losses.Squared())


def test_offsets_of_squares_are_those_of_ridge_regression():
    """min sum (mean + a_r + b_c - y)^2 + SHRINK (|a|^2 + |b|^2): the mean is not shrunk."""
    Z = np.zeros((len(Y), 13))
    Z[:, 0] = 1
    Z[np.arange(len(Y)), 1 + ROWS] = 1
    Z[np.arange(len(Y)), 8 + COLS] = 1
    penalty = np.diag([0.0] + [SHRINK] * 12)
    wanted = np.linalg.solve(Z.T @ Z + penalty, Z.T @ Y)
    found = fit_offsets(ROWS, COLS, SHAPE, Y, losses.Squared())
    got = np.concatenate([[found.mean], found.rows, found.cols])
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3)


def test_offsets_of_what_was_never_seen_are_zero():
    offsets = Offsets(2.0, np.array([1.0, 10.0]), np.array([0.1, 0.2, 0.3]))
    rows, cols = np.array([0, -1, 1, -1]), np.array([2, 1, -1, -1])
    np.testing.assert_allclose(offsets.at(rows, cols), [3.3, 2.2, 12.0, 2.0])


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        (dict(tol=1e-6), "converged"),
        (dict(tol=0.0, max_iter=2), "max_iter"),
        (dict(tol=0.0, deadline=Deadline(0.0)), "max_seconds"),
        (dict(tol=0.0), "stalled"),
    ],
)
def test_why_a_completion_ended(limits, status):
    limits = {"deadline": Deadline(None), **limits}
    found = complete(seen(), 4.0, limits.pop("tol"), limits.pop("deadline"), **limits)
    X = found.left @ found.right.T
    assert found.status == status
    assert np.linalg.norm(X, "nuc") <= 4 * (1 + 1e-9)
    z = X[ROWS, COLS]
    assert found.value == pytest.approx(((z - Y) ** 2).mean(), rel=1e-12)
    G = np.zeros(SHAPE)
    G[ROWS, COLS] = 2 * (z - Y) / len(Y)
    assert np.vdot(G, X) + 4 * np.linalg.norm(G, 2) <= found.gap * (1 + 1e-9) + 1e-12
    assert found.lower_bound == found.value - found.gap
    assert {"max_iter": 2, "max_seconds": 0}.get(status, found.n_iter) == found.n_iter


@pytest.mark.parametrize("max_iter", [0, 1, 2])
def test_a_gap_is_not_below_the_true_one_where_singular_values_come_from_below(max_iter):
    """Of larger matrices a few products find the norm to some percent only."""
    rng, shape = np.random.default_rng(3), (150, 120)
    rows, cols = (a.astype(np.int32) for a in np.nonzero(rng.random(shape) < 0.5))
    y = rng.normal(size=len(rows))
    view = Observed(rows, cols, shape, y, np.zeros(len(y)), losses.Squared())
    found = complete(view, 20.0, 1e-3, Deadline(None), max_iter=max_iter)
    assert found.status == ("converged" if max_iter == 2 else "max_iter")
    X, G = found.left @ found.right.T, np.zeros(shape)
    G[rows, cols] = 2 * (X[rows, cols] - y) / len(y)
    gap = np.vdot(G, X) + 20 * np.linalg.norm(G, 2)
    assert gap * (1 - 1e-9) <= found.gap <= gap + 1e-3 * found.value
    assert found.lower_bound == found.value - found.gap


def test_a_start_is_scaled_into_the_ball():
    left, right = RNG.normal(size=(7, 2)), RNG.normal(size=(5, 2))
    begun = complete(seen(), 1.5, 0.0, Deadline(0.0), start=(left, right))
    X = begun.left @ begun.right.T
    whole = left @ right.T
    assert np.linalg.norm(X, "nuc") <= 1.5 * (1 + 1e-9)
    share = np.vdot(X, whole) / np.linalg.norm(X) / np.linalg.norm(whole)
    assert share == pytest.approx(1.0)


def test_the_smallest_radius_gains_little():
    """<G, X> is at least -radius s_1(G): so much the objective can fall to first order."""
    radius = smallest_radius(seen(base=1.0), 0.02)
    G = np.zeros(SHAPE)
    G[ROWS, COLS] = 2 * (1.0 - Y) / len(Y)
    assert radius == pytest.approx(0.02 * ((1 - Y) ** 2).mean() / np.linalg.norm(G, 2), rel=1e-6)


@pytest.mark.parametrize("rank", [0, 2])
def test_a_map_is_its_matrix(rank):
    vectors = np.linalg.qr(RNG.normal(size=(6, max(rank, 1))))[0][:, :rank]
    one = Map(RNG.uniform(0.5, 2, 6), vectors, RNG.uniform(1, 3, rank))
    A = np.diag(one.scale) @ (np.eye(6) + vectors @ np.diag(one.gains - 1) @ vectors.T)
    x = RNG.normal(size=(6, 3))
    np.testing.assert_allclose(one.toarray(), A, atol=1e-14)
    np.testing.assert_allclose(one @ x, A @ x, atol=1e-14)
    np.testing.assert_allclose(one.transposed(x), A.T @ x, atol=1e-14)


def test_what_is_seen_through_maps_is_what_the_whole_matrices_say():
    view = by_frequency(seen())
    A, B = view.rows.toarray(), view.cols.toarray()
    share = 7 * np.bincount(ROWS, minlength=7) / len(Y)
    np.testing.assert_allclose(np.diag(A), 1 / np.sqrt(0.5 * share + 0.5))
    left, right = RNG.normal(size=(7, 2)), RNG.normal(size=(5, 2))
    np.testing.assert_allclose(view.predict(left, right), (A @ left @ (B @ right).T)[ROWS, COLS])
    weights = RNG.normal(size=len(Y))
    G = np.zeros(SHAPE)
    G[ROWS, COLS] = weights
    matrix = view.matrix(weights)
    np.testing.assert_allclose(matrix.toarray(), A.T @ G @ B, atol=1e-14)
    np.testing.assert_allclose(matrix @ right, A.T @ G @ B @ right, atol=1e-14)
    np.testing.assert_allclose(matrix.T @ left, (A.T @ G @ B).T @ left, atol=1e-14)


def test_the_solution_that_makes_the_weights_lies_on_the_boundary():
    """Its directions count as s / (s + s_1 / 10), in a unit that makes them fill the ball."""
    view = by_frequency(seen())
    found = complete(view, 3.0, 1e-4, Deadline(None))
    second, (left, right) = by_solution(view, found, 3.0)
    assert np.linalg.norm(left @ right.T, "nuc") == pytest.approx(3.0, rel=1e-9)
    again = second.rows @ left @ (second.cols @ right).T
    first = view.rows @ found.left @ (view.cols @ found.right).T
    np.testing.assert_allclose(again, first, atol=1e-10)
    s = np.linalg.svd(found.left @ found.right.T, compute_uv=False)[: found.left.shape[1]]
    dear = np.linalg.svd(left @ right.T, compute_uv=False)[: len(s)]
    wanted = s / (s / (0.1 * s[0]) + 1)
    np.testing.assert_allclose(dear / dear.sum(), wanted / wanted.sum(), rtol=1e-9)


def test_iterations_of_both_solutions_count():
    view, rest = by_frequency(seen()), (Deadline(None),)
    first = complete(view, 3.0, 3e-2, *rest)
    second, start = by_solution(view, first, 3.0)
    then = complete(second, 3.0, 1e-4, *rest, start=start)
    weighted, ended = solve(seen(), "adaptive", 3.0, 1e-4, Deadline(None), 200)
    assert weighted.found.n_iter == first.n_iter + then.n_iter > then.n_iter
    np.testing.assert_allclose(ended[0] @ ended[1].T, then.left @ then.right.T, atol=1e-12)
    X = second.rows @ then.left @ (second.cols @ then.right).T
    np.testing.assert_allclose(weighted.found.left @ weighted.found.right.T, X, atol=1e-9)


def test_a_walk_ends_with_the_time():
    radii = [0.5, 1.0, 2.0]
    found = [w.found for w in walk(seen(), "nuclear", radii, 1e-4, Deadline(None), 100)]
    for radius, one in zip(radii, found, strict=True):
        alone = complete(seen(), radius, 1e-6, Deadline(None))
        assert abs(one.value - alone.value) <= one.gap + alone.gap
    assert list(walk(seen(), "nuclear", radii, 1e-4, Deadline(0.0), 100)) == []


@pytest.mark.parametrize("shape", [(9, 6), (7, 20), (30, 5)])
def test_rows_and_columns_beyond_those_seen_have_no_offset(shape):
    found = fit_offsets(ROWS, COLS, shape, Y, losses.Squared())
    same = fit_offsets(ROWS, COLS, SHAPE, Y, losses.Squared())
    assert found.mean == same.mean
    np.testing.assert_array_equal(found.rows, np.append(same.rows, np.zeros(shape[0] - 7)))
    np.testing.assert_array_equal(found.cols, np.append(same.cols, np.zeros(shape[1] - 5)))


def test_offsets_of_other_losses_are_where_their_sum_is_least():
    """c SHRINK a is what the slopes of a row add up to, c being the loss's curvature."""
    loss, y = losses.Logistic(), np.where(np.median(Y) < Y, 1.0, -1.0)
    found = fit_offsets(ROWS, COLS, SHAPE, y, loss)
    z = found.mean + found.rows[ROWS] + found.cols[COLS]
    slopes = -y / (1 + np.exp(y * z))
    assert abs(slopes.sum()) < 0.02
    for which, offsets in ((ROWS, found.rows), (COLS, found.cols)):
        sums = np.bincount(which, slopes, minlength=len(offsets))
        np.testing.assert_allclose(sums, -0.25 * SHRINK * offsets, atol=0.02)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("slack", [0.3, 10.0])
def test_the_bound_of_a_large_norm_is_that_of_its_formula(monkeypatch, turned, slack):
    """sqrt(ritz / (1 - error)): Lanczos steps from a random vector, by a basis of their space."""
    monkeypatch.setattr(completion, "DENSE", 10)
    A = np.random.default_rng(4).normal(size=(80, 60))
    A = A.T if turned else A
    exact = np.linalg.norm(A, 2)
    below = 0.9 * exact
    chance = math.log(1.648 * math.sqrt(60) / 1e-12)
    relative = min(0.5, slack / below)
    steps = min(60, math.ceil((chance / math.sqrt(2 * relative) + 1) / 2))
    assert steps < 60 or slack < 1
    B = A.T @ A if not turned else A @ A.T
    basis = [np.random.default_rng(1).standard_normal(60)]
    for _ in range(steps):
        for q in basis[:-1] * 2:
            basis[-1] -= (q @ basis[-1]) * q
        basis[-1] /= np.linalg.norm(basis[-1])
        basis.append(B @ basis[-1])
    Q = np.array(basis[:steps])
    ritz = np.linalg.eigvalsh(Q @ B @ Q.T)[-1]
    error = (chance / (2 * steps - 1)) ** 2 if steps < 60 else 0.0
    wanted = math.sqrt(max(ritz, below**2) / max(1 - error, 1e-3))
    found = norm_from_above(sparse.csr_array(A), below, slack)
    assert found == pytest.approx(wanted, rel=1e-6)
    assert found >= exact


def test_lanczos_steps_end_with_the_space_they_span(monkeypatch):
    """A matrix of rank 2 is known after two; so are its singular values."""
    monkeypatch.setattr(completion, "DENSE", 11)  # of 12 entries: it is not written out
    A = np.zeros((4, 3))
    A[0, 0], A[1, 1], A[2, 2] = 5.0, 5.0, 5.0
    products = []

    class Counted:
        shape = A.shape
        T = property(lambda self: A.T)

        def __matmul__(self, v):
            products.append(1)
            return A @ v

    assert norm_from_above(Counted(), 5.0, 1e-6) >= 5.0
    assert len(products) == 1


def test_leading_pairs_are_singular_ones():
    A = sparse.csr_array(np.random.default_rng(2).normal(size=(12, 9)))
    u, s, v = np.linalg.svd(A.toarray())
    U, found, V = leading_pairs(A, np.zeros((9, 0)), 3)
    np.testing.assert_allclose(found, s[:3], rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(U * u[:, :3], axis=0)), 1, rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(V * v[:3].T, axis=0)), 1, rtol=1e-9)
    np.testing.assert_allclose(U * found @ V.T, U @ U.T @ A @ V @ V.T, atol=1e-9)
    assert leading_pairs(A[:2], np.zeros((9, 0)), 5)[1].shape == (2,)


def test_a_solution_of_zero_makes_no_weights():
    view = by_frequency(seen())
    found = complete(view, 3.0, 1.0, Deadline(0.0))
    assert found.left.shape == (7, 0)
    assert by_solution(view, found, 3.0) == (view, None)


def test_rows_that_were_seen_alike_count_alike():
    """Squares of columns' lengths, for conditioning: those of the whole matrix."""
    vectors = np.linalg.qr(RNG.normal(size=(6, 2)))[0]
    one = Map(np.ones(6), vectors, np.array([2.0, 3.0]))
    np.testing.assert_allclose(one.squares(), (one.toarray() ** 2).sum(axis=0))
    scaled = Map(np.arange(1.0, 7.0), np.zeros((6, 0)), np.zeros(0))
    np.testing.assert_allclose(scaled.squares(), np.arange(1.0, 7.0) ** 2)
    view = by_frequency(seen())
    left, right, bends = RNG.normal(size=(7, 2)), RNG.normal(size=(5, 2)), RNG.random(len(Y))
    up, down = view.diagonals(bends, left, right)
    A, B = view.rows.toarray(), view.cols.toarray()
    H = np.zeros(SHAPE)
    H[ROWS, COLS] = bends
    np.testing.assert_allclose(up, np.diag(A)[:, None] ** 2 * (H @ (B @ right) ** 2), rtol=1e-9)
    np.testing.assert_allclose(down, np.diag(B)[:, None] ** 2 * (H.T @ (A @ left) ** 2), rtol=1e-9)


def test_a_value_is_never_further_above_than_what_the_loss_is_never_below():
    """A ball so wide that the gap over it says nothing, and entries that are all but met."""
    found = complete(seen(), 1e4, 0.0, Deadline(None), max_iter=3)
    assert found.value < 1e-3
    assert found.gap == found.value
    assert found.lower_bound == 0


def test_the_last_iteration_may_be_the_one_that_is_good_enough():
    whole = complete(seen(), 4.0, 1e-6, Deadline(None))
    again = complete(seen(), 4.0, 1e-6, Deadline(None), max_iter=whole.n_iter)
    assert (again.status, again.n_iter) == ("converged", whole.n_iter)
    short = complete(seen(), 4.0, 1e-6, Deadline(None), max_iter=whole.n_iter - 1)
    assert (short.status, short.n_iter) == ("max_iter", whole.n_iter - 1)


def test_a_billionth_of_the_value_is_no_progress():
    class Creeping(Observed):
        steps = 0

        def value(self, z):
            self.steps += 1
            return 5.0 - 1e-12 * self.steps

    view = Creeping(ROWS, COLS, SHAPE, Y, np.zeros(len(Y)), losses.Squared())
    found = complete(view, 4.0, 0.0, Deadline(None), max_iter=30)
    assert (found.status, found.n_iter) == ("stalled", 5)


def test_as_many_pairs_join_as_there_are_factors(monkeypatch):
    asked, real = [], completion.leading_pairs

    def pairs(matrix, right, count):
        asked.append((right.shape[1], count))
        return real(matrix, right, count)

    monkeypatch.setattr(completion, "leading_pairs", pairs)
    rng = np.random.default_rng(3)
    start = rng.normal(size=(7, 11)), rng.normal(size=(5, 11))
    monkeypatch.setattr(completion, "balanced", lambda left, right, radius: (left, right))
    complete(seen(), 4.0, 0.0, Deadline(0.0), start=start)
    complete(seen(), 4.0, 0.0, Deadline(0.0))
    assert asked == [(11, 11), (0, 8)]


def test_the_solution_that_makes_weights_is_a_loose_one_and_factors_are_balanced():
    """As by hand: solved from 0 to 3 %, whatever is asked for of the second."""
    view = by_frequency(seen())
    for radius in (1.0, 3.0, 10.0, 30.0):
        first = complete(view, radius, 3e-2, Deadline(None))
        weighted, _ = solve(seen(), "adaptive", radius, 1e-9, Deadline(None), 200)
        second, _ = by_solution(view, first, radius)
        np.testing.assert_array_equal(weighted.rows.gains, second.rows.gains)
        left, right = weighted.found.left, weighted.found.right
        sizes = np.linalg.svd(left @ right.T, compute_uv=False)[: left.shape[1]]
        for side in (left, right):
            np.testing.assert_allclose(side.T @ side, np.diag(sizes), atol=1e-9 * sizes[0])


def test_a_walk_begins_where_the_last_ended(monkeypatch):
    from adafw.fitting import weighting

    begun, ended, real = [], [], weighting.solve

    def solved(seen, norm, radius, tol, deadline, max_iter, start):
        begun.append(start)
        found, end = real(seen, norm, radius, tol, deadline, max_iter, start)
        ended.append(end)
        return found, end

    monkeypatch.setattr(weighting, "solve", solved)
    list(walk(seen(), "frequency", [0.5, 1.0, 2.0], 1e-3, Deadline(None), 100))
    assert begun[0] is None
    assert begun[1] is ended[0]
    assert begun[2] is ended[1]
