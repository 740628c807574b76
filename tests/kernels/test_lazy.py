"""The list of candidates of the lazy path: what is on it, what falls off, and in which order."""

import numpy as np
import pytest

from adafw.fused import problem
from adafw.kernels import lazy_l1, lazy_projection
from adafw.kernels.parts import Batches, Ledger, Listed, Terms
from adafw.rows.base import as_batch

G, SQUARES, STAMP = 1, 2, 3


def ledger(g, room=4, squares=None, since=0, alpha=1):
    """A table in which no feature is listed, and all are right up to iteration `since`."""
    table = np.zeros((len(g), 4))
    table[:, G] = g
    if squares is not None:
        table[:, SQUARES] = squares
    stamps = table.view(np.uint64)
    stamps[:, STAMP] = 2 * since
    return Ledger(table, stamps, np.zeros(alpha), room, np.zeros(3, np.int64))


def listing(book, features, threshold, capacity=20):
    found = np.full(capacity, -1, np.int64)
    found[: len(features)] = features
    for j in features:
        book.stamps[j, STAMP] |= np.uint64(1)
    return Listed(found, len(features), threshold)


def marked(book):
    return np.flatnonzero(book.stamps[:, STAMP] & np.uint64(1)).tolist()


def test_candidates_below_the_threshold_fall_off():
    book = ledger([5.0, -1.0, 0.5, -3.0, np.nan, 2.0, 9.0], room=9)
    listed = listing(book, [3, 1, 2, 0, 4], 2.0)
    assert lazy_l1.reaching(book.table, listed, 2.0) == 3  # NaN is not below
    thin = lazy_l1.thin(book, listed, 0)
    assert (thin.features[: thin.size].tolist(), thin.threshold) == ([3, 0, 4], 2.0)
    assert marked(book) == [0, 3, 4]


@pytest.mark.parametrize("size", [0, 3])
def test_a_list_that_is_too_long_keeps_half_the_room_at_least_and_all_at_most(size):
    """Beside the active coordinates, which must not crowd out the others."""
    rng = np.random.default_rng(0)
    for room in (4, 9):
        book = ledger(rng.standard_normal(40), room=room)
        listed = listing(book, rng.permutation(40), 1e-9, capacity=40)
        thin = lazy_l1.thin(book, listed, size)
        kept = thin.features[: thin.size]
        assert size + room // 2 <= thin.size <= size + room
        sizes = np.abs(book.table[:, G])
        assert sorted(kept) == np.flatnonzero(sizes >= thin.threshold).tolist() == marked(book)
        exactly = ledger(rng.standard_normal(size + room), room=room)
        whole = lazy_l1.thin(exactly, listing(exactly, range(size + room), 1e-9, capacity=40), size)
        assert (whole.size, whole.threshold) == (size + room, 1e-9)


def test_equal_candidates_stay_together():
    book = ledger([1.0, -1.0] * 10, room=4)
    thin = lazy_l1.thin(book, listing(book, range(20), 0.5), 0)
    assert thin.size == 20
    assert 0.5 <= thin.threshold <= 1.0


def test_a_list_made_anew_holds_what_is_half_as_large_as_the_largest_idle_one():
    g = [8.0, -2.0, 0.9, 1.0, -0.4, 0.0, 1.9, -1.1]
    book = ledger(g, room=8)
    old = listing(book, [5, 4], 3.0)
    index = np.array([0, 7, 99], np.int64)  # the first two are active: 8 is not the measure
    made = lazy_l1.rebuild(book, old, index, 2)
    assert made.threshold == 1.0
    assert made.features[: made.size].tolist() == [0, 1, 3, 6, 7]
    assert marked(book) == [0, 1, 3, 6, 7]
    nothing = ledger([3.0, 0.0, 0.0])
    made = lazy_l1.rebuild(nothing, listing(nothing, [], 1.0), np.array([0], np.int64), 1)
    assert made.threshold == 5e-324
    assert made.features[: made.size].tolist() == [0]


def test_a_list_made_anew_has_room_for_all_and_is_thinned_at_once():
    book = ledger(np.linspace(1.0, 1.9, 50), room=4)
    made = lazy_l1.rebuild(book, listing(book, [], 1.0, capacity=6), np.zeros(1, np.int64), 0)
    assert 2 <= made.size <= 4
    assert made.features.size == 6  # back to its room
    assert marked(book) == sorted(made.features[: made.size].tolist())
    equal = ledger(np.ones(50), room=4)
    made = lazy_l1.rebuild(equal, listing(equal, [], 1.0, capacity=6), np.zeros(1, np.int64), 0)
    assert made.size == 50 <= made.features.size


def test_what_is_active():
    index = np.array([2, 5, 9, 11, 4], np.int64)  # the last is beyond
    found = [j for j in range(13) if lazy_l1.is_active(index, 4, j)]
    assert found == [2, 5, 9, 11]
    assert not lazy_l1.is_active(index, 0, 2)
    assert [j for j in range(13) if lazy_l1.is_active(index, 1, j)] == [2]


def test_leaders_are_the_largest_that_are_not_active_in_order():
    g = np.array([3.0, -7.0, 3.0, 9.0, 7.0, -1.0, 0.5, 3.0])
    book = ledger(g)
    listed = listing(book, [7, 5, 4, 3, 2, 1, 0], 0.4)
    index = np.array([3], np.int64)
    for count, wanted in ((1, [1]), (3, [1, 4, 0]), (5, [1, 4, 0, 2, 7]), (9, None)):
        best, found = np.empty(count), np.empty(count, np.int64)
        assert lazy_l1.leaders(book.table, listed, index, 1, np.inf, (best, found))
        if wanted is None:
            wanted = [1, 4, 0, 2, 7, 5, -1, -1, -1]
        assert found.tolist() == wanted
        assert best.tolist() == [abs(g[j]) if j >= 0 else -1.0 for j in wanted]
    best, found = np.empty(2), np.empty(2, np.int64)
    for refused, fine in ((9.0, False), (9.1, True)):
        assert lazy_l1.leaders(book.table, listed, index, 1, refused, (best, found)) == fine


def csr(dense):
    from scipy import sparse

    from adafw.rows import as_rows

    return as_rows(sparse.csr_array(dense)).arrays


def test_a_touched_feature_catches_up_and_joins_when_it_has_risen():
    """g_j^2 for each iteration missed, its own apart; then g_j changes."""
    rows = csr(np.array([[0.0, 0, 0, 0], [2.0, 0.0, -1.0, 0.5]]))
    book = ledger([1.0, 4.0, -3.0, 0.5], squares=[10.0, 20.0, 30.0, 40.0], since=5)
    book.stamps[3, STAMP] = 2 * 8
    listed = listing(book, [2], 4.0)
    count = lazy_l1.touch(rows, np.uint64(1), 2.0, 9, book, listed)
    assert book.table[:, G].tolist() == [5.0, 4.0, -5.0, 1.5]
    assert book.table[:, SQUARES].tolist() == [10 + 4 * 1, 20, 30 + 4 * 9, 40 + 1 * 0.25]
    assert (book.stamps[:, STAMP] >> np.uint64(1)).tolist() == [9, 5, 9, 9]
    assert listed.features[:count].tolist() == [2, 0]
    assert marked(book) == [0, 2]
    assert book.work.tolist() == [2, 0, 0]  # one iteration behind is none
    h = [lazy_l1.metric(book, j, 9, 0.5) for j in range(4)]
    expected = [14 + 25, 20 + 5 * 16, 66 + 25, 40.25 + 2.25]
    np.testing.assert_allclose(h, 0.5 + np.sqrt(expected))
    g, squares = np.empty(4), np.empty(4)
    lazy_l1.publish(book, 10, g, squares)
    assert g.tolist() == [5.0, 4.0, -5.0, 1.5]
    np.testing.assert_allclose(squares, expected)
    lazy_l1.publish(book, 10, g, squares[:0])


@pytest.mark.parametrize("weighted", [False, True])
def test_an_estimate_follows_the_slopes_of_its_batch(weighted):
    """alpha_i = w_i 2 (<a_i, x> + b - y_i) / m; a row that stands twice changes nothing more."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((5, 7)) * (rng.random((5, 7)) < 0.7)
    y, x = rng.standard_normal(5), rng.standard_normal(7)
    w = rng.random(5) if weighted else np.empty(0)
    terms = Terms(csr(A), y, w, 0, 0.25)
    book = ledger(np.zeros(7), room=4, alpha=5)
    book.table[:, 0] = x
    batches = Batches(3, as_batch(np.array([1, 4, 4, 0, 2]), 5), np.array([0, 3, 5]))
    listed = listing(book, [], 5e-324, capacity=8)
    for k, seen in ((0, [1, 4]), (1, [0, 1, 2, 4])):
        listed = lazy_l1.refresh(terms, batches, k, book, listed, 0)
        alpha = 2 * (A @ x + 0.25 - y) * (w if weighted else 1) / 5
        alpha[[i for i in range(5) if i not in seen]] = 0.0
        np.testing.assert_allclose(book.alpha, alpha, rtol=1e-13)
        np.testing.assert_allclose(book.table[:, G], A.T @ alpha, atol=1e-14)
        assert sorted(listed.features[: listed.size].tolist()) == marked(book)
        large = np.flatnonzero(np.abs(book.table[:, G]) >= listed.threshold)
        assert set(large) <= set(marked(book))


def test_a_list_without_room_for_a_row_is_thinned_and_then_made_longer():
    rows = csr(np.array([[1.0, 1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 1.0]]))
    terms = Terms(rows, np.array([-1.0, -2.0]), np.empty(0), 0, 0.0)
    batches = Batches(0, as_batch(np.array([0, 1]), 2), np.array([0, 1, 2]))
    book = ledger(np.zeros(5), room=4, alpha=2)
    listed = lazy_l1.refresh(terms, batches, 0, book, listing(book, [], 5e-324, capacity=3), 0)
    assert book.work.tolist() == [0, 0, 0]
    assert (listed.size, listed.features.size) == (3, 3)
    listed = lazy_l1.refresh(terms, batches, 1, book, listed, 0)
    assert book.work.tolist() == [0, 1, 0]
    assert listed.features.size == 4 * (3 + 3)
    assert sorted(listed.features[: listed.size].tolist()) == [0, 1, 2, 3, 4]
    # x = 0: alpha = 2 (0 - y) / m
    assert book.table[:, G].tolist() == [1.0, 1.0, 3.0, 2.0, 2.0]


def test_a_list_down_to_a_threshold():
    book = ledger([3.0, -0.5, 1.0, 0.0, -2.0, 0.9], room=2)
    listed = listing(book, [1, 3], 9.0, capacity=5)
    made = lazy_projection.list_down_to(book, listed, 0.9)
    assert made.features[: made.size].tolist() == [0, 2, 4, 5]
    assert marked(book) == [0, 2, 4, 5]
    assert made.threshold == 0.9
    assert made.features.size >= 2 * 4 + 3  # as many more, and the room that it had
    assert book.work.tolist() == [0, 0, 1]
    wide = lazy_projection.list_down_to(book, listing(book, [1], 9.0, capacity=500), 0.9)
    assert wide.features.size == 500
    grown = lazy_projection.list_down_to(ledger(np.ones(900), room=2),
                                         Listed(np.empty(300, np.int64), 0, 9.0), 0.5)  # fmt: skip
    assert grown.size == 900
    assert grown.features.size <= 2 * 900 + 8 + 1, "no list grows for ever"


def test_what_is_collected_has_a_place_after_shrinking():
    """The support, and candidates with eta |g_j| > start; |u|, 1 / h and u of each."""
    book = ledger([3.0, -0.5, 1.0, 4.0, -2.0], squares=[1.0, 4.0, 9.0, 16.0, 25.0], since=6)
    book.table[[1, 3], 0] = 0.5, -0.25
    listed = listing(book, [4, 3, 2, 0], 0.9)
    steps = problem.steps(_adagrad(0.5), 6, 1, np.empty(0))
    active = problem.active(np.array([1, 3]), 5, 5)
    count, finite = lazy_projection.collect(book, listed, steps, 0, 6, 2, active, 0.6)
    assert finite
    index = active.index[:count]
    assert index.tolist() == [1, 3, 4, 0]
    h = 1e-8 + np.sqrt(book.table[index, SQUARES] + book.table[index, G] ** 2)
    u = book.table[index, 0] - 0.5 * book.table[index, G] / h
    np.testing.assert_allclose(active.x[:count], u, rtol=1e-12)
    np.testing.assert_allclose(active.g[:count], np.abs(u), rtol=1e-12)
    np.testing.assert_allclose(active.h[:count], 1 / h, rtol=1e-12)
    book.table[0, G] = 1e160  # its square is infinite
    assert not lazy_projection.collect(book, listed, steps, 0, 6, 2, active, 0.6)[1]


@pytest.mark.parametrize("where", [0, 1, 3])
def test_a_sum_of_squares_that_is_infinite_is_told(where):
    """Of a candidate, of the support, of both: g is finite, but no step would move x there."""
    book = ledger([3.0, -0.5, 1.0, 4.0, -2.0], squares=np.full(5, 1e308), since=6)
    book.table[[1, 3], 0] = 0.5, -0.25
    listed = listing(book, [4, 3, 2, 0], 0.9)
    steps = problem.steps(_adagrad(0.5), 6, 1, np.empty(0))
    for squares, g, fine in ((1e308, 2.0, True), (1.7e308, 1e153, True), (1.7e308, 1e154, False)):
        book.table[where, [G, SQUARES]] = g, squares
        active = problem.active(np.array([1, 3]), 5, 5)
        assert lazy_projection.collect(book, listed, steps, 0, 6, 2, active, 0.6)[1] == fine


def _adagrad(rate):
    import adafw

    return adafw.AdaGrad(rate, gradient=adafw.gradients.CSFW(2))
