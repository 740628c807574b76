"""What every kind of rows promises: what its dense matrix gives. A new kind is a line in ROWS."""

import json
import tempfile

import numpy as np
import pytest
from scipy import sparse

from adafw.datasets import load_parts, save_parts
from adafw.rows import CentredRows, CSRRows, DenseRows, EntryRows, MatrixRows, Rows, as_rows
from adafw.rows.base import read_only


def matrix(dtype=np.float64, m=30, n=6):
    rng = np.random.default_rng(0)
    A = np.where(rng.random((m, n)) < 0.4, rng.normal(size=(m, n)) + 1, 0.0).astype(dtype)
    A[:, 4] = 0  # a column that is empty
    A[5] = 0
    return A


def centred_csr(dtype):
    A = matrix(dtype)
    return A.astype(float) - A.mean(0, dtype=float), as_rows(sparse.csr_array(A)).centred()[0]


def entries(dtype):
    r, c = np.array([0, 2, 2, 1, 2]), np.array([1, 0, 0, 1, 0])
    A = np.zeros((5, 6))
    A[np.arange(5), 2 * r + c] = 1
    return A, EntryRows(r, c, (3, 2), np.dtype(dtype))


def streamed(dtype, kind):
    """Rows of parts that are read, in pieces of three rows or so."""
    A = matrix(dtype)
    with tempfile.TemporaryDirectory() as folder:
        save_parts(f"{folder}/parts", kind(A), np.ones(len(A)))
        rows = as_rows(load_parts(f"{folder}/parts", stream=True)[0])
        return A, rows  # the files are open, and stay until they are closed


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr("adafw.rows.streamed.PIECE", 150)


#: (a dense matrix, the rows that stand for it).
ROWS = {
    "dense": lambda dtype: (matrix(dtype), as_rows(matrix(dtype))),
    "csr": lambda dtype: (matrix(dtype), as_rows(sparse.csr_array(matrix(dtype)))),
    "centred": centred_csr,
    "entries": entries,
    "matrices": lambda dtype: (
        matrix(dtype),
        MatrixRows(as_rows(sparse.csr_array(matrix(dtype))), (2, 3)),
    ),
    "streamed csr": lambda dtype: streamed(dtype, sparse.csr_array),
    "streamed dense": lambda dtype: streamed(dtype, np.array),
}
#: What is taken from a disk is in memory.
TAKEN = {"streamed csr": CSRRows, "streamed dense": DenseRows}
STORED = {"dense": 180, "streamed dense": 180, "csr": np.count_nonzero(matrix()), "entries": 5}
WITH_COLUMNS = ("dense", "csr", "centred", "streamed csr", "streamed dense")

each_kind = pytest.mark.parametrize("kind", ROWS)
each_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def close(got, exact, dtype=np.float64):
    np.testing.assert_allclose(got, exact, rtol=0, atol=1e-12 if dtype == np.float64 else 1e-4)


def test_every_kind_is_held_to_it(nothing_left_out):
    tried = [make(np.float64)[1] for make in ROWS.values()]
    nothing_left_out(Rows, "rows", tried, "ROWS of tests/rows/test_contract.py")


@each_dtype
@each_kind
def test_products_are_those_of_the_matrix(kind, dtype):
    A, rows = ROWS[kind](dtype)
    rng = np.random.default_rng(1)
    x, p = rng.normal(size=rows.shape[1:]).astype(dtype), rng.normal(size=len(A)).astype(dtype)
    batch = np.array([3, 0, 3])
    for got, exact in (
        (rows.dot(x), A @ x.ravel()),
        (rows.dot(x, batch), A[batch] @ x.ravel()),
        (rows.combine(p), (p @ A).reshape(x.shape)),
        (rows.combine(p[:3], batch), (p[:3] @ A[batch]).reshape(x.shape)),
        (rows.dot_columns(p), (p @ A).reshape(x.shape)),
    ):
        assert got.dtype == dtype
        close(got, exact, dtype)


@each_kind
def test_sums_with_weights_in_double_precision_are_in_double_precision(kind):
    A, rows = ROWS[kind](np.float32)
    if kind == "centred":  # less a mean that is rounded to float32
        A = rows.rows.block(slice(None)).astype(float) - rows.mean
    p = np.random.default_rng(13).normal(size=len(A))
    for batch in (None, np.array([3, 0, 3])):
        some = np.arange(len(A)) if batch is None else batch
        got = rows.combine(p[some], batch)
        assert got.dtype == np.float64
        close(got.ravel(), p[some] @ A[some].astype(float))


@each_dtype
@each_kind
def test_numbers_that_they_declare(kind, dtype):
    A, rows = ROWS[kind](dtype)
    w = np.random.default_rng(2).random(len(A)).astype(dtype)
    assert rows.shape[0] == len(A)
    assert rows.stored == STORED.get(kind, STORED["csr"])
    assert rows.largest == pytest.approx(np.abs(A).max(), rel=1e-6)
    close(rows.gram(w), (A * w[:, None]).T @ A, dtype)
    spread = np.average((A - np.average(A, axis=0, weights=w)) ** 2, axis=0, weights=w)
    close(rows.variances(w), spread.reshape(rows.shape[1:]), dtype)
    assert rows.variances(w).dtype == np.float64
    json.dumps(rows.describe())
    assert str(rows)


@each_kind
def test_mean_squares_norms_and_products_with_matrices(kind):
    A, rows = ROWS[kind](np.float64)
    rng = np.random.default_rng(11)
    w = 3 * rng.random(len(A))
    close(rows.mean_squares(w), (w @ A**2 / w.sum()).reshape(rows.shape[1:]))
    assert rows.mean_squares(w).dtype == np.float64
    for p in (1, 2, np.inf):
        close(rows.norms(p), np.linalg.norm(A, p, axis=1))
        close(rows.norms(p, axis=0), np.linalg.norm(A, p, axis=0))
    norm, exact = rows.spectral_norm(w)
    true = np.linalg.norm(np.sqrt(w)[:, None] * A, 2)
    assert exact == (kind != "centred")
    assert norm == pytest.approx(true, rel=1e-10) if exact else norm >= true
    if len(rows.shape) == 2:
        batch = np.array([3, 0, 3])
        for k in (0, 1, 3):
            X, P = rng.normal(size=(6, k)), rng.normal(size=(len(A), k))
            close(rows.dot_matrix(X), A @ X)
            close(rows.dot_matrix(X, batch), A[batch] @ X)
            close(rows.combine_matrix(P), A.T @ P)
            close(rows.combine_matrix(P[:3], batch), A[batch].T @ P[:3])
    image, move = rows.curve(w, rng.normal(size=rows.shape[1:]).astype(float))
    close(image, (A.T @ (w * move)).reshape(rows.shape[1:]))


@each_kind
def test_norms_and_moments_of_float32_are_made_in_double_precision(kind):
    A, rows = ROWS[kind](np.float32)
    exact = A.astype(float)
    if kind == "centred":  # less a mean that is rounded to float32
        exact = rows.rows.block(slice(None)).astype(float) - rows.mean
    w = np.random.default_rng(12).random(len(A))
    for p in (1, 2, np.inf):
        for axis in (0, 1):
            got = rows.norms(p, axis)
            assert got.dtype == np.float64
            np.testing.assert_allclose(got, np.linalg.norm(exact, p, axis=axis), rtol=1e-12)
    got = rows.mean_squares(w)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got.ravel(), w @ exact**2 / w.sum(), rtol=1e-6, atol=1e-12)


@each_kind
def test_empty_batches_give_empty_products(kind):
    _, rows = ROWS[kind](np.float64)
    none = np.zeros(0, np.int64)
    assert rows.dot(np.ones(rows.shape[1:]), none).shape == (0,)
    np.testing.assert_array_equal(rows.combine(np.zeros(0), none), np.zeros(rows.shape[1:]))
    double = ROWS[kind](np.float32)[1].doubled()
    assert double.dot(np.ones(rows.shape[1:]), none).shape == (0,)
    np.testing.assert_array_equal(double.combine(np.zeros(0), none), np.zeros(rows.shape[1:]))
    if len(rows.shape) == 2:
        for each in (rows, double):
            assert each.dot_matrix(np.ones((6, 2)), none).shape == (0, 2)
            np.testing.assert_array_equal(each.combine_matrix(np.zeros((0, 2)), none), 0)


@each_kind
def test_rows_without_weight_do_not_count(kind):
    """Not even if they are the first that are read, or all but one."""
    A, rows = ROWS[kind](np.float64)
    for counts in (np.arange(len(A)) > len(A) // 2, np.arange(len(A)) == 3):
        w, some = np.where(counts, np.arange(len(A)) + 1.0, 0.0), A[counts]
        share = w[counts] / w.sum()
        close(rows.mean_squares(w).ravel(), share @ some**2)
        close(rows.variances(w).ravel(), share @ (some - share @ some) ** 2)
        close(rows.gram(w), (some * w[counts, None]).T @ some)


@each_kind
def test_descriptions_tell_data_apart(kind):
    """Of the same data they are equal; another entry, or another shape, is other data."""
    A, rows = ROWS[kind](np.float64)
    assert rows.describe() == ROWS[kind](np.float64)[1].describe()
    assert rows.describe() != ROWS[kind](np.float32)[1].describe() or kind == "entries"
    fewer = rows.take(np.arange(len(A) - 1))
    assert fewer.describe() != rows.describe()


def test_centred_rows_are_told_by_their_mean():
    rows = as_rows(sparse.csr_array(matrix()))
    one, other = rows.centred()[0], rows.centred(np.arange(30.0))[0]
    assert one.describe() != other.describe()
    assert one.describe() != rows.describe()
    assert one.plain == (rows, True)
    assert rows.plain == (rows, False)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_entry_of_centred_rows_may_be_on_either_side_of_the_mean(sign):
    A = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [8.0, 0.0]]) * sign
    dense, single = as_rows(A).centred()[0], as_rows(A.astype(np.float32)).doubled().centred()[0]
    for rows in (dense, single, as_rows(sparse.csr_array(A)).centred()[0]):
        assert rows.largest == 6.0
    # The mean itself may be what is far from 0, and what is stored near it.
    rows = CentredRows(as_rows(A), np.array([sign * 10.0, 0.0]))
    assert rows.largest == 10.0


def test_norms_of_centred_rows_are_made_slice_by_slice(monkeypatch):
    monkeypatch.setattr("adafw.rows.centred._SLICE", 20)
    A, rows = centred_csr(np.float64)
    for p in (1, 2, np.inf):
        close(rows.norms(p), np.linalg.norm(A, p, axis=1))
        close(rows.norms(p, axis=0), np.linalg.norm(A, p, axis=0))
    assert rows.largest == pytest.approx(np.abs(A).max())
    monkeypatch.setattr("adafw.rows.centred._SLICE", 2)  # less than a row
    close(rows.norms(1), np.linalg.norm(A, 1, axis=1))


@pytest.mark.parametrize("kind", ["dense", "csr", "centred", "streamed csr"])
def test_a_few_rows_run_the_same_code_as_all(kind):
    A, rows = ROWS[kind](np.float32)
    some = rows.few(np.array([4, 1]))
    x = np.random.default_rng(3).normal(size=6).astype(np.float32)
    close(some.dot(x), A[[4, 1]] @ x, np.float32)
    if kind == "csr":
        assert some.turned is rows.turned is True
        assert [a.dtype for a in some.arrays] == [a.dtype for a in rows.arrays]
        long = CSRRows(rows.matrix, np.float64, passing=True)
        for kept in (long.few(np.array([1])), long.take(np.array([1])), long.doubled()):
            assert (kept.dtype, kept.passing, kept.turned) == (np.float64, True, False)


def test_what_a_gram_matrix_of_sparse_rows_costs():
    """In products: half the mean length of a row, as an entry of it meets it."""
    A = matrix()
    lengths = np.count_nonzero(A, axis=1)
    rows = as_rows(sparse.csr_array(A))
    assert rows.gram_products == pytest.approx(lengths @ lengths / (2 * lengths.sum()))
    assert as_rows(sparse.csr_array((3, 2))).gram_products == 0
    assert as_rows(A).gram_products == np.inf


@each_kind
def test_rows_taken_are_those_of_the_matrix(kind):
    A, rows = ROWS[kind](np.float64)
    chosen = np.array([4, 1, 1, 3])
    some = rows.take(chosen)
    assert type(some) is TAKEN.get(kind, type(rows))
    assert some.shape == (4, *rows.shape[1:])
    x = np.random.default_rng(3).normal(size=rows.shape[1:])
    close(some.dot(x), A[chosen] @ x.ravel())


@each_kind
def test_in_double_precision_products_are_float64(kind):
    A, rows = ROWS[kind](np.float32)
    double = rows.doubled()
    assert type(double) is type(rows)
    assert double.dtype == np.float64
    rng = np.random.default_rng(4)
    x, p = rng.normal(size=rows.shape[1:]), rng.normal(size=len(A))
    tolerance = 1e-6 if kind == "centred" else 1e-12  # whose mean is rounded to float32
    np.testing.assert_allclose(double.dot(x), A.astype(float) @ x.ravel(), atol=tolerance)
    np.testing.assert_allclose(double.dot_columns(p).ravel(), p @ A.astype(float), atol=tolerance)
    assert double.doubled().dtype == np.float64
    assert double.dot(x).dtype == double.combine(p).dtype == np.float64
    w = np.abs(p)
    np.testing.assert_allclose(double.gram(w), (A * w[:, None]).T @ A, atol=10 * tolerance)
    assert double.gram(w).dtype == np.float64
    np.testing.assert_allclose(double.curve(w, x)[0].ravel(), double.gram(w) @ x.ravel(), atol=1e-5)
    single = np.ones(rows.shape[1:], np.float32)
    assert rows.dot(single).dtype == np.float32
    if kind == "centred":
        assert double.mean.dtype == np.float64


@each_kind
def test_what_is_taken_of_rows_in_double_precision_stays_so(kind):
    double, chosen = ROWS[kind](np.float32)[1].doubled(), np.array([4, 1, 3])
    taken = [double.take(chosen), double.few(chosen)]
    taken += [double.columns(chosen)] if kind in WITH_COLUMNS else []
    for some in taken:
        assert some.dtype == np.float64
        for batch in (None, np.array([2])):
            assert some.dot(np.ones(some.shape[1:]), batch).dtype == np.float64


@each_dtype
@pytest.mark.parametrize("chosen", [[4, 0, 3], [2], [5, 4, 3, 2, 1, 0], [1, 1]], ids=str)
@pytest.mark.parametrize("kind", WITH_COLUMNS)
def test_columns_are_those_of_the_matrix(kind, chosen, dtype):
    A, rows = ROWS[kind](dtype)
    some, B = rows.columns(np.array(chosen)), A[:, chosen]
    assert type(some) is TAKEN.get(kind, type(rows))
    assert some.dtype == dtype
    rng = np.random.default_rng(5)
    x, p = rng.normal(size=len(chosen)).astype(dtype), rng.normal(size=len(A)).astype(dtype)
    batch = np.array([9, 2, 2])
    close(some.dot(x), B @ x, dtype)
    close(some.dot(x, batch), B[batch] @ x, dtype)
    close(some.combine(p), p @ B, dtype)
    close(some.gram(np.abs(p)), (B * np.abs(p)[:, None]).T @ B, dtype)
    if kind == "csr":
        assert some.matrix.format == "csr"
        assert some.matrix.has_canonical_format


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_columns_are_kept_as_rows_of_their_own(kind):
    A, rows = ROWS[kind](np.float64)
    turned = rows.by_columns
    assert turned is rows.by_columns
    assert turned.shape == A.shape[::-1]
    x = np.random.default_rng(6).normal(size=len(A))
    close(turned.dot(x), A.T @ x)
    close(turned.dot(x, np.array([5, 0])), A.T[[5, 0]] @ x)
    if kind == "csr":  # what kernels want: unsigned, and column j between its two starts
        values, places, starts = turned.arrays
        assert places.dtype.kind == starts.dtype.kind == "u"
        for j in range(6):
            part = slice(int(starts[j]), int(starts[j + 1]))
            np.testing.assert_array_equal(values[part], A[places[part], j])


@each_dtype
def test_products_with_all_columns_of_wide_data_are_made_column_by_column(dtype):
    A = matrix(dtype, 6, 40)
    rows, p = as_rows(sparse.csr_array(A)), np.random.default_rng(9).normal(size=6).astype(dtype)
    close(rows.dot_columns(p), p @ A, dtype)
    np.testing.assert_array_equal(rows.dot_columns(p), rows.by_columns.dot(p))
    assert rows.dot_columns(p).dtype == dtype
    close(rows.centred()[0].dot_columns(p), p @ (A - A.mean(0)), dtype)


@pytest.mark.parametrize("kind", WITH_COLUMNS)
def test_blocks_are_rows_of_the_matrix(kind):
    A, rows = ROWS[kind](np.float64)
    close(rows.block(slice(3, 9)), A[3:9])


@pytest.mark.parametrize("kind", ["dense", "csr", "streamed csr", "streamed dense"])
def test_centred_rows_have_mean_zero(kind):
    A, rows = ROWS[kind](np.float64)
    w = np.random.default_rng(7).random(len(A))
    for weights in (None, w):
        inner, mean = rows.centred(weights)
        B = A - np.average(A, axis=0, weights=weights)
        close(mean, np.average(A, axis=0, weights=weights))
        x = np.random.default_rng(8).normal(size=6)
        close(inner.dot(x), B @ x)


def test_what_a_kind_cannot_do_is_said():
    for kind in ("entries", "matrices"):
        rows = ROWS[kind](np.float64)[1]
        with pytest.raises(TypeError, match=f"{type(rows).__name__} cannot be centred"):
            rows.centred()
        with pytest.raises(TypeError, match="cannot be restricted to some columns"):
            rows.columns(np.array([0]))
        with pytest.raises(TypeError, match="cannot be written out as a dense array"):
            rows.block(slice(0, 1))
        with pytest.raises(TypeError, match="cannot be saved; save the matrix it is made of"):
            rows.parts()
    inner = ROWS["centred"](np.float64)[1]
    assert isinstance(inner, CentredRows)
    with pytest.raises(TypeError, match="CentredRows cannot be saved"):
        inner.parts()


def test_no_entries_at_all():
    rows = as_rows(sparse.csr_array((3, 2)))
    assert (rows.stored, rows.largest) == (0, 0.0)
    close(rows.dot_columns(np.ones(3)), np.zeros(2))


def test_what_is_read_only_cannot_be_written_and_leaves_the_rest_alone():
    array = np.arange(3.0)
    view = read_only(array)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 9.0
    array[0] = 5.0
    assert view[0] == 5.0


@pytest.mark.parametrize("kind", ["dense", "csr", "streamed csr", "streamed dense"])
def test_a_description_that_is_settled_stays(kind):
    rows = ROWS[kind](np.float64)[1]
    settled = rows.described()
    assert settled.describe() == rows.describe()
    assert settled.describe() is settled.describe()
    assert rows.describe() is not rows.describe()


@pytest.mark.parametrize("where", ["remote", "streamed"])
def test_rows_made_of_others_are_where_these_are(where):
    class Far(DenseRows):
        def status(self):
            return "3 of 4 machines"

    far, mean = Far(matrix()), np.ones(6)
    setattr(far, where, True)
    for rows in (CentredRows(far, mean), MatrixRows(far, (2, 3)), CentredRows(far, mean).doubled()):
        assert getattr(rows, where)
        assert rows.status() == "3 of 4 machines"
    here = as_rows(matrix())
    for rows in (CentredRows(here, mean), MatrixRows(here, (2, 3))):
        assert (rows.remote, rows.streamed, rows.status()) == (False, False, "")
