"""Sparse rows: copies by columns, precision, and what rounding must not do."""

import numpy as np
import pytest
from scipy import sparse

from adafw.rows import as_rows, csr
from adafw.rows.csr import CSRRows

RNG = np.random.default_rng(0)
A = np.where(RNG.random((40, 9)) < 0.4, RNG.normal(size=(40, 9)) - 1, 0.0)
MATRIX = sparse.csr_array(A)


def test_points_of_double_precision_stay_so_by_columns_and_for_some_of_them():
    rows = CSRRows(MATRIX.astype(np.float32), np.float64)
    p = np.ones(40, np.float32)
    for some in (
        rows,
        rows.by_columns,
        rows.columns(np.array([3, 1])),
        rows.take(np.array([5, 2])),
    ):
        assert some.dtype == np.float64
    assert rows.dot_columns(p).dtype == np.float64
    assert rows.by_columns.dot(p).dtype == np.float64
    np.testing.assert_allclose(rows.dot_columns(p), A.astype(np.float32).astype(float).sum(axis=0))


def test_rows_that_pass_by_are_copied_by_nobody():
    passing = CSRRows(MATRIX.astype(np.float32), passing=True)
    for rows in (passing, passing.doubled(), passing.take(np.arange(3)), passing.few(np.arange(3))):
        assert rows.passing
        assert not rows.turned
    assert CSRRows(MATRIX).by_columns.passing
    assert not CSRRows(MATRIX.astype(np.float32)).doubled().passing


def test_a_copy_by_columns_is_made_for_wide_data_alone():
    """Where rows are few, a pass over columns jumps about in the shorter vector."""
    for data, copied in ((MATRIX.T.tocsr(), True), (MATRIX, False)):
        rows = CSRRows(data, passing=True)
        p = RNG.normal(size=data.shape[0])
        np.testing.assert_allclose(rows.dot_columns(p), p @ data.toarray(), atol=1e-12)
        assert ("by_columns" in vars(rows)) is copied


def turned(m, n, lengths):
    """Whether rows of these lengths, in turn, are read by columns."""
    each = np.resize(lengths, m)
    starts = np.concatenate([[0], np.cumsum(each)])
    columns = np.concatenate([np.arange(k) for k in each])
    A = sparse.csr_array((np.ones(columns.size), columns, starts), shape=(m, n))
    return CSRRows(A).turned


def test_when_a_copy_by_columns_pays_from_the_first_product_on(monkeypatch):
    """Few rows and columns, short rows; of few columns only where their lengths differ."""
    monkeypatch.setattr(csr, "_TALL", 300)
    assert turned(300, 600, [3])
    assert not turned(301, 600, [3])
    assert turned(20, 8192, [3])
    assert not turned(20, 8193, [3])
    assert turned(20, 600, [0, 96])
    assert not turned(20, 600, [1, 96])
    assert turned(20, 513, [10])
    assert not turned(20, 512, [10])
    assert not turned(20, 512, [10, 10, 11])
    assert turned(20, 512, [8, 12])
    assert turned(20, 512, [0, 48])
    assert not turned(20, 512, [1, 48])


def test_rows_without_rows_or_entries_are_products_of_nothing():
    """Blocks that a filter has emptied."""
    for m in (0, 3):
        rows = CSRRows(sparse.csr_array((m, 4)))
        assert not rows.turned
        np.testing.assert_array_equal(rows.dot(np.ones(4)), np.zeros(m))
        np.testing.assert_array_equal(rows.combine(np.ones(m)), np.zeros(4))


def test_columns_are_alike_unless_their_units_are_far_apart():
    A = sparse.random(200, 40, 0.3, format="csr", random_state=0)
    sizes = np.ones(40)
    assert CSRRows(A).alike
    sizes[0] = 1e-9  # one in twenty may be anything
    sizes[1] = 0.0  # as may columns of zeros
    assert CSRRows(sparse.csr_array(A @ sparse.diags(sizes))).alike
    sizes[:8] = 1e-6
    rows = CSRRows(sparse.csr_array(A @ sparse.diags(sizes)))
    assert not rows.alike
    assert CSRRows(sparse.csr_array((5, 4))).alike


def test_a_few_long_rows_are_read_as_all_are():
    long = np.zeros((100, 60))
    long[:2, :50] = 1.0
    rows = as_rows(sparse.csr_array(long))
    assert rows.turned
    assert not rows.take(np.array([0, 1])).turned
    assert rows.few(np.array([0, 1])).turned


@pytest.mark.parametrize("passing", [False, True])
def test_no_variance_is_below_zero(passing):
    """That of a column of equal entries is rounding."""
    values = RNG.uniform(-3, 3, 20)
    rows = CSRRows(sparse.csr_array(np.tile(values, (50, 1))), passing=passing)
    rows.turned = not passing
    for _ in range(5):
        spread = rows.variances(RNG.random(50))
        assert (spread >= 0).all()
        assert spread.max() <= 1e-13


def test_the_largest_entry_may_be_negative():
    for data in (A, MATRIX):
        assert as_rows(data).largest == np.abs(A).max() == -A.min()
        assert as_rows(-data).largest == np.abs(A).max()


def test_gram_matrices_of_many_columns_leave_the_data_alone():
    wide = sparse.random_array((30, csr._NARROW + 1), density=0.05, rng=RNG, format="csr")
    rows, w, kept = as_rows(wide), RNG.random(30), wide.toarray()
    assert not rows.gram_grows
    for _ in range(2):
        np.testing.assert_allclose(rows.gram(w), (kept * w[:, None]).T @ kept, atol=1e-12)
    np.testing.assert_array_equal(wide.toarray(), kept)
    narrow = as_rows(wide[:, : csr._NARROW])
    assert narrow.gram_grows
    total = np.ones((csr._NARROW,) * 2)
    narrow.add_gram(w, total)
    np.testing.assert_allclose(total, 1 + narrow.gram(w), atol=1e-12)
    np.testing.assert_array_equal(total, total.T)


def test_descriptions_tell_where_entries_are():
    """The same numbers in other columns, in other rows, or beside more columns, are other data."""
    values, columns, starts = np.arange(1.0, 5.0), np.array([0, 2, 1, 3]), np.array([0, 2, 3, 4])
    others = [
        (columns, starts, (3, 5)), (np.array([0, 2, 1, 4]), starts, (3, 5)),
        (columns, np.array([0, 2, 4, 4]), (3, 5)), (columns, starts, (3, 6)),
    ]  # fmt: skip
    told = [
        as_rows(sparse.csr_array((values, c, s), shape=shape)).describe() for c, s, shape in others
    ]
    for k, one in enumerate(told):
        assert all(one != other for other in told[:k])


def test_rows_with_wide_indices_stay_so():
    wide = sparse.csr_array(A)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    rows = CSRRows(wide)
    few = rows.few(np.array([3, 1]))
    assert few.matrix.indices.dtype == few.matrix.indptr.dtype == np.int64
    assert [part.dtype for part in few.arrays] == [part.dtype for part in rows.arrays]
    np.testing.assert_array_equal(few.block(slice(None)), A[[3, 1]])
