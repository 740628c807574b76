"""Small passes over working sets and Gram matrices, against numpy."""

import numpy as np
import pytest
from scipy import sparse

from adafw.kernels import working_set
from adafw.kernels.parts import OUTSIDE, AtomModel
from adafw.rows import as_rows


def test_rows_whose_bends_have_moved_are_taken_anew():
    """By more than a share of what is known, or of the least that counts; or twice as much."""
    known = np.array([1.0, 1.0, 1.0, 0.01, 0.01, 0.01, 0.0, 2.0])
    bends = np.array([1.05, 1.15, 0.85, 0.012, 0.019, 0.021, 0.0, 2.0])
    change = np.full(8, 9.0)
    count = working_set.take_stale(bends, before := known.copy(), 0.1, 0.2, change)
    stale = [False, True, True, False, False, True, False, False]
    assert count == 3
    np.testing.assert_allclose(change, np.where(stale, bends - known, 0.0))
    np.testing.assert_array_equal(before, np.where(stale, bends, known))


def test_positions_that_move_take_their_gram_matrix_along():
    rng = np.random.default_rng(0)
    old = np.tril(rng.standard_normal((5, 5)))
    moved = np.array([1, OUTSIDE, 2, 4, OUTSIDE], np.uint32)
    out = np.zeros((6, 6))
    working_set.moved_gram(old, moved, out)
    expected = np.zeros((6, 6))
    for a, b in ((0, 0), (2, 0), (2, 2), (3, 0), (3, 2), (3, 3)):
        expected[moved[a], moved[b]] = old[a, b]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("size", [1, 31, 32, 33, 70])
def test_the_lower_triangle_is_copied_to_the_upper(size):
    gram = np.random.default_rng(size).standard_normal((size, size))
    lower = np.tril(gram)
    working_set.mirror(gram)
    np.testing.assert_array_equal(gram, lower + np.tril(lower, -1).T)


def test_the_diagonal_of_a_model_and_a_face_of_it():
    rng = np.random.default_rng(1)
    B = rng.standard_normal((9, 4))
    gram, mixed, total = B.T @ B, B.sum(axis=0), 9.0
    out, least = np.empty(4), np.array([0.0, 99.0, 0.0, 0.0])
    working_set.diagonal_of(gram, np.empty(0), np.zeros(4), 0.0, out)
    np.testing.assert_allclose(out, np.diag(gram) * (1 + 1e-10), rtol=1e-15)
    working_set.diagonal_of(gram, least, mixed, total, out)
    expected = np.maximum(np.diag(gram), least) - mixed**2 / total
    np.testing.assert_allclose(out, expected * (1 + 1e-10), rtol=1e-13)
    flat = np.ones((1, 1))
    working_set.diagonal_of(flat, np.empty(0), np.ones(1), 1.0, out[:1])
    assert out[0] == pytest.approx(1e-14)  # nothing is left but rounding
    signs = np.array([1.0, -1.0, 1.0, -1.0])
    model = AtomModel(gram, np.arange(4.0) + 1, signs, mixed, total)
    H = (gram - np.outer(mixed, mixed) / total) * np.outer(signs, signs)
    face, matrix = np.array([3, 0, 2]), np.zeros((3, 3))
    working_set.face_matrix(model, face, matrix)
    np.testing.assert_allclose(np.tril(matrix, -1), np.tril(H[np.ix_(face, face)], -1))
    assert np.diag(matrix).tolist() == [4.0, 1.0, 3.0]
    assert not np.triu(matrix, 1).any()
    plain = model._replace(mixed=np.zeros(4), total=0.0)
    working_set.face_matrix(plain, face, matrix)
    whole = (gram * np.outer(signs, signs))[np.ix_(face, face)]
    np.testing.assert_allclose(np.tril(matrix, -1), np.tril(whole, -1))


@pytest.mark.parametrize("index", [np.uint32, np.uint64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_along_a_column(dtype, index):
    """Of any number of entries, from where they begin to where they end; summed in double."""
    rng = np.random.default_rng(2)
    values, rows, p = rng.standard_normal(40).astype(dtype), rng.permutation(40), rng.random(40)
    for first in (0, 3):
        for count in range(14):
            last = first + count
            found = working_set.along(
                values, rows.astype(index), np.uint64(first), np.uint64(last), p
            )
            expected = values[first:last].astype(float) @ p[rows[first:last]]
            assert found == pytest.approx(expected, rel=1e-13, abs=1e-15)


def test_products_of_chosen_columns():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((30, 6)) * (rng.random((30, 6)) < [0.0, 0.1, 0.3, 0.5, 0.7, 1.0])
    columns = as_rows(sparse.csr_array(A)).column_arrays()
    chosen, p, out = np.array([5, 0, 3, 1], np.uint64), rng.standard_normal(30), np.full(4, 9.0)
    working_set.column_combine(columns, chosen, p, out)
    np.testing.assert_allclose(out, A[:, [5, 0, 3, 1]].T @ p, atol=1e-13)
