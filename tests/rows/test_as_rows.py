"""What is taken for rows, what is refused, and matrices piece by piece."""

import numpy as np
import pytest
from scipy import sparse

import adafw.rows
from adafw.datasets import load_parts, save_parts
from adafw.rows import (
    CSRRows,
    DenseRows,
    StreamedRows,
    as_rows,
    in_pieces,
    stored_entries,
    values_of,
    widened,
)
from adafw.rows.csr import as_csr

A = np.where(np.random.default_rng(0).random((11, 4)) < 0.6, 1.5, 0.0)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (sparse.csr_array(A + 1j), TypeError, "real numbers, got complex"),
        (A + 1j, TypeError, "real numbers"),
        (np.ones(3), ValueError, r"two dimensions \(rows are samples\), got shape \(3,\)"),
        (np.ones((2, 2, 2)), ValueError, "two dimensions"),
        (np.ones((0, 3)), ValueError, r"at least one row and one column, got shape \(0, 3\)"),
        (np.ones((3, 0)), ValueError, r"at least one row and one column, got shape \(3, 0\)"),
        (sparse.csr_array((0, 3)), ValueError, "at least one row"),
        (sparse.csr_array((3, 0)), ValueError, "at least one row"),
        (np.where(A > 0, np.nan, A), ValueError, "A must be finite"),
        (sparse.csr_array(np.where(A > 0, np.inf, A)), ValueError, "A must be finite"),
    ],
)
def test_what_is_no_data_is_refused(data, error, message):
    with pytest.raises(error, match=message):
        as_rows(data)


@pytest.mark.parametrize("make", [np.array, sparse.csr_array, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int16, bool])
def test_what_fits_is_kept_and_the_rest_converted(make, dtype):
    data = make(A.astype(dtype))
    rows = as_rows(data)
    assert as_rows(rows) is rows
    assert isinstance(rows, DenseRows if make is np.array else CSRRows)
    assert rows.dtype == (dtype if dtype in (np.float32, np.float64) else np.float64)
    np.testing.assert_allclose(rows.block(slice(None)), A.astype(dtype).astype(float))


def test_repeated_and_unsorted_entries_are_summed_in_a_copy():
    data = sparse.csr_array(
        (np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), np.array([0, 3, 3])), shape=(2, 2)
    )
    rows = as_rows(data)
    np.testing.assert_array_equal(rows.block(slice(None)), [[2.0, 5.0], [0.0, 0.0]])
    np.testing.assert_array_equal(data.data, [1.0, 2.0, 4.0])
    assert rows.matrix.has_canonical_format
    good = sparse.csr_array(A)
    assert np.shares_memory(as_rows(good).matrix.data, good.data)


@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_numbers_are_looked_at_wherever_they_are(make, monkeypatch):
    """Piece by piece where there are many; not again where someone has."""
    monkeypatch.setattr(adafw.rows, "_AT_ONCE", 10)
    for place in ((0, 0), (5, 2), (10, 3), (9, 1)):
        bad = np.ones((11, 4))
        as_rows(make(bad))
        bad[place] = np.nan
        with pytest.raises(ValueError, match="A must be finite"):
            as_rows(make(bad))
        as_rows(make(bad), finite=True)
    wide = np.ones((3, 25))  # rows of more than are looked at in one go
    as_rows(make(wide))
    wide[2, 20] = np.inf
    with pytest.raises(ValueError, match="A must be finite"):
        as_rows(make(wide))


@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_pieces_make_up_the_matrix(make, tmp_path, monkeypatch):
    data = make(A)
    for size in (1, 4, 11, 50):
        pieces = list(in_pieces(data, size))
        assert [part.start for part, _ in pieces] == list(range(0, 11, size))
        assert pieces[-1][0].stop == 11
        whole = [p if make is np.array else p.toarray() for _, p in pieces]
        np.testing.assert_array_equal(np.vstack(whole), A)
        assert all(p.shape[0] == part.stop - part.start for part, p in pieces)
    monkeypatch.setattr("adafw.rows.streamed.PIECE", 100)
    save_parts(tmp_path / "parts", data, np.ones(11))
    streamed = load_parts(tmp_path / "parts", stream=True)[0]
    assert isinstance(as_rows(streamed), StreamedRows)
    found, ends = np.zeros((11, 4)), []
    for part, piece in in_pieces(streamed, 3):
        found[part] = piece if make is np.array else piece.toarray()
        ends.append(part.stop)
    np.testing.assert_array_equal(found, A)
    assert len(ends) > 2
    assert ends[-1] == 11


@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_pieces_are_for_those_who_look_for_themselves(make):
    bad = np.where(A > 0, np.nan, A)
    pieces = [piece for _, piece in in_pieces(make(bad), 4)]
    whole = [p if make is np.array else p.toarray() for p in pieces]
    np.testing.assert_array_equal(np.vstack(whole), bad)


def test_a_matrix_is_widened_by_columns_of_zeros():
    data = sparse.csr_array(A)
    wide = widened(data, 7)
    assert wide.shape == (11, 7)
    np.testing.assert_array_equal(wide.toarray(), np.hstack([A, np.zeros((11, 3))]))
    assert widened(data, 4) is data
    assert widened(A, 4) is A
    assert widened(A, 7) is None
    np.testing.assert_array_equal(values_of(data), data.data)
    assert values_of(A) is A


def test_entries_that_a_sparse_matrix_stores():
    rows, columns, values = stored_entries(sparse.csc_array(A.astype(np.float32)))
    dense = np.zeros((11, 4))
    dense[rows, columns] = values
    np.testing.assert_array_equal(dense, A)
    assert values.dtype == np.float64
    assert stored_entries(A) is None


def test_arrays_are_put_into_a_matrix_as_they_are():
    data = sparse.csr_array(A)
    starts = data.indptr.astype(np.int64)
    made = as_csr(data.data, data.indices, starts, data.shape)
    assert np.shares_memory(made.data, data.data)
    assert np.shares_memory(made.indices, data.indices)
    assert made.indptr.dtype == made.indices.dtype
    assert made.has_canonical_format
    wide = as_csr(np.ones(1), np.array([0], np.int32), np.array([0, 1]), (1, 2**31))
    assert wide.indices.dtype == wide.indptr.dtype == np.int64


def test_a_description_that_is_settled_is_not_made_again():
    for rows in (as_rows(A.copy()), as_rows(sparse.csr_array(A))):
        before = rows.describe()
        settled = rows.described()
        assert settled is not rows
        assert rows.description is None
        stored = rows.array if isinstance(rows, DenseRows) else rows.matrix.data
        stored[...] = 7.0
        assert settled.describe() == before
        assert rows.describe() != before
