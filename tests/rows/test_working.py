"""Rows restricted to some columns: products, Gram matrices, and when these pay."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from adafw.rows import as_rows, working
from adafw.rows.csr import CSRRows
from adafw.rows.working import DenseWorking, PiecedWorking, SparseWorking

M, N = 90, 14
RNG = np.random.default_rng(0)
A = np.where(RNG.random((M, N)) < 0.4, RNG.normal(size=(M, N)), 0.0)
CHOSEN = np.array([5, 0, 13, 7, 2])
KINDS = {
    "dense": lambda: as_rows(A).working(CHOSEN),
    "dense float32": lambda: as_rows(A.astype(np.float32)).working(CHOSEN),
    "by columns": lambda: CSRRows(sparse.csr_array(A)).working(CHOSEN),
    "by rows": lambda: CSRRows(sparse.csr_array(A), passing=True).working(CHOSEN),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
@pytest.mark.parametrize("share", [1.0, 0.8, 0.5, 0.0], ids="{} of the rows".format)
def test_products_and_gram_matrices_are_those_of_the_columns(kind, share, monkeypatch):
    """In slices of a few rows, and of rows with a weight alone where most have none."""
    monkeypatch.setattr(working, "_SLICE", 60)
    rows = KINDS[kind]()
    S = A[:, CHOSEN].astype(np.float32 if "32" in kind else float).astype(float)
    rng = np.random.default_rng(1)
    w, p = rng.normal(size=5), rng.random(M) * (rng.random(M) < share)
    assert rows.size == M
    np.testing.assert_array_equal(rows.chosen, CHOSEN)
    for got, wanted in (
        (rows.dot(w), S @ w), (rows.combine(p), p @ S), (rows.squares(p), p @ S**2),
        (rows.product(p, w), S.T @ (p * (S @ w))),
    ):  # fmt: skip
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, wanted, atol=1e-12)
    full = S.T @ (p[:, None] * S)
    for first in (0, 2):
        gram = np.full((5, 5), 0.5)
        rows.add_gram(p, gram, first)
        np.testing.assert_allclose(np.tril(gram)[first:], np.tril(full + 0.5)[first:], atol=1e-12)
        assert (np.tril(gram)[:first] == np.tril(np.full((5, 5), 0.5))[:first]).all()
    gram = np.zeros((5, 5))
    rows.renew_gram(p, np.count_nonzero(p), gram)
    np.testing.assert_allclose(gram, full, atol=1e-12)


@pytest.mark.parametrize("passing", [False, True], ids=["by columns", "by rows"])
def test_all_columns_in_any_order(passing):
    rows, rng = CSRRows(sparse.csr_array(A), passing=passing), np.random.default_rng(5)
    for chosen in (np.arange(N), np.arange(N)[::-1].copy(), rng.permutation(N)):
        S, some = A[:, chosen], rows.working(chosen)
        w, p = rng.normal(size=N), rng.random(M)
        np.testing.assert_allclose(some.dot(w), S @ w, atol=1e-12)
        np.testing.assert_allclose(some.combine(p), p @ S, atol=1e-12)
        np.testing.assert_allclose(some.squares(p), p @ S**2, atol=1e-12)
        for weights in (p, np.where(np.arange(M) == 4, p, 0.0)):  # of many rows, and of one
            gram = np.zeros((N, N))
            some.renew_gram(weights, np.count_nonzero(weights), gram)
            np.testing.assert_allclose(gram, S.T @ (weights[:, None] * S), atol=1e-12)


def test_how_much_a_gram_matrix_costs():
    """In products: a row of k entries takes part in k (k + 1) / 2 of its entries, about."""
    entries = np.count_nonzero(A[:, CHOSEN], axis=1).astype(float)
    for kind in ("by columns", "by rows"):
        rows = KINDS[kind]()
        assert rows.gram_work == pytest.approx(entries @ entries / (2 * entries.sum()))
        assert rows.gram_pays
    assert KINDS["dense"]().gram_work == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("columns", "entries", "pays"),
    [(64, 1, True), (90, 1, True), (95, 1, False), (300, 100, True), (301, 100, False),
     (200, 190, True), (290, 280, False)],
)  # fmt: skip
def test_when_a_gram_matrix_of_sparse_rows_pays(columns, entries, pays, monkeypatch):
    """Few columns always; then if it costs no more than 200 products; never beyond a limit."""
    assert (working._FEW, working._MANY) == (64, 3000)
    monkeypatch.setattr(working, "_MANY", 300)
    places = (np.arange(entries) + np.arange(40)[:, None]) % columns
    data = sparse.csr_array(
        (np.ones(40 * entries), np.sort(places, axis=1).ravel(), entries * np.arange(41)),
        shape=(40, columns),
    )
    rows = CSRRows(data, passing=True).working(np.arange(columns))
    cost = 1.5 * entries / 2 + 0.01 * columns**3 / (40 * entries)
    assert rows.gram_pays == pays == (columns <= 64 or (columns <= 300 and cost <= 200))


def test_when_a_gram_matrix_of_dense_rows_pays():
    for columns, pays in ((1500, True), (1501, False)):
        assert DenseWorking(np.zeros((2, columns)), np.arange(columns)).gram_pays is pays


def test_room_that_was_reserved_is_given_back():
    rows = KINDS["by rows"]()
    assert isinstance(rows, SparseWorking)
    before, held = [array.copy() for array in rows.part], rows.part.values.base.nbytes
    rows.trim()
    assert rows.part.values.base is None
    assert rows.part.values.nbytes < held
    for one, other in zip(rows.part, before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_more_entries_than_there_is_room_for_at_first():
    """Fresh columns that hold nearly all entries: room is made while they are sought."""
    dense = np.zeros((400, 100))
    dense[:, :3] = np.random.default_rng(2).normal(size=(400, 3))
    dense[::40, 3:] = 1.0
    rows = CSRRows(sparse.csr_array(dense), passing=True)
    first = rows.working(np.array([50, 60]))
    for last in (None, first):
        found = rows.working(np.array([2, 0, 1]) if last is None else np.array([50, 2, 0, 1]), last)
        w = np.random.default_rng(3).normal(size=found.chosen.size)
        np.testing.assert_allclose(found.dot(w), dense[:, found.chosen] @ w, atol=1e-13)


def test_pieces_are_put_together_and_what_was_kept_is_taken_over():
    whole, cuts = as_rows(sparse.csr_array(A)), [0, 20, 50, 60, M]
    asked = []

    def pieces():
        for first, last in itertools.pairwise(cuts):
            rows = CSRRows(sparse.csr_array(A[first:last]), passing=True)

            def restrict(chosen, old, rows=rows, first=first):
                asked.append((first, old))
                return rows.working(chosen, old)

            yield slice(first, last), restrict

    rng = np.random.default_rng(4)
    before = PiecedWorking(pieces, M, np.array([5, 0]), True)
    kept = {part.start: rows for part, rows in before.kept}
    asked.clear()
    here = PiecedWorking(pieces, M, CHOSEN, True, before)
    assert [(first, old is kept[first]) for first, old in asked] == [
        (first, True) for first in cuts[:-1]
    ]
    assert before.kept == []
    assert here.gram_work == pytest.approx(np.mean([rows.gram_work for _, rows in here.kept]))
    disk = PiecedWorking(pieces, M, CHOSEN, False)
    assert disk.gram_work == np.inf
    assert disk.kept == []
    exact = whole.working(CHOSEN)
    w, p = rng.normal(size=5), rng.random(M)
    # To the bit, whatever memory there is.
    np.testing.assert_array_equal(disk.combine(p), here.combine(p))
    np.testing.assert_array_equal(disk.squares(p), here.squares(p))
    np.testing.assert_array_equal(disk.product(p, w), here.product(p, w))
    for rows in (here, disk):
        assert rows.gram_pays
        np.testing.assert_allclose(rows.dot(w), exact.dot(w), atol=1e-13)
        np.testing.assert_allclose(rows.combine(p), exact.combine(p), atol=1e-12)
        np.testing.assert_allclose(rows.squares(p), exact.squares(p), atol=1e-12)
        np.testing.assert_allclose(rows.product(p, w), exact.product(p, w), atol=1e-12)
        grams = np.zeros((2, 5, 5))
        for one, gram in zip((rows, exact), grams, strict=True):
            one.add_gram(p, gram, 1)
        np.testing.assert_allclose(*np.tril(grams), atol=1e-12)
