import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from adafw.rows import as_rows


def matrix(m, n, seed, density=0.4):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, n)) * (rng.random((m, n)) < density)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 12),
    st.integers(1, 150),
    st.integers(0, 1000),
    st.sampled_from([np.float64, np.float32]),
    st.sampled_from([np.asarray, sparse.csr_array]),
    st.data(),
)
def test_products_with_a_batch_and_with_all_rows(m, n, seed, dtype, kind, data):
    A = matrix(m, n, seed).astype(dtype)
    rows = as_rows(kind(A))
    batch = np.array(data.draw(st.lists(st.integers(0, m - 1), min_size=1, max_size=30)))
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal(n).astype(dtype), rng.standard_normal(m).astype(dtype)
    tol = {"rtol": 0, "atol": 1e-12 if dtype == np.float64 else 1e-4}
    exact = A.astype(np.float64)
    np.testing.assert_allclose(rows.dot(x), exact @ x, **tol)
    np.testing.assert_allclose(rows.dot(x, batch), exact[batch] @ x, **tol)
    np.testing.assert_allclose(rows.combine(w), exact.T @ w, **tol)
    np.testing.assert_allclose(rows.combine(w[batch], batch), exact[batch].T @ w[batch], **tol)
    for product in (rows.dot(x, batch), rows.combine(w)):
        assert product.dtype == dtype


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_batch_outside_the_data_is_refused(kind):
    rows = as_rows(kind(matrix(5, 3, 0)))
    for bad in (-1, 5):
        with pytest.raises(IndexError, match="row numbers from 0 to 4"):
            rows.dot(np.ones(3), np.array([0, bad]))
        with pytest.raises(IndexError, match="row numbers from 0 to 4"):
            rows.combine(np.ones(2), np.array([0, bad]))
    with pytest.raises(ValueError, match=r"x must have shape \(3,\), got \(4,\)"):
        rows.dot(np.ones(4), np.array([0]))
    with pytest.raises(ValueError, match=r"weights must have shape \(2,\), got \(3,\)"):
        rows.combine(np.ones(3), np.array([0, 1]))
    for bad in ((1, 3), (3, 1)):
        with pytest.raises(ValueError, match="x must have shape"):
            rows.dot(np.ones(bad), np.array([0]))


def test_full_products_have_the_same_bits_on_any_number_of_cores(monkeypatch):
    rng = np.random.default_rng(0)
    A = sparse.random_array((4000, 500), density=0.15, rng=rng).tocsr()
    rows, x, w = as_rows(A), rng.standard_normal(500), rng.standard_normal(4000)
    found = []
    for cores in ("1", "2", "5"):
        monkeypatch.setenv("OMP_NUM_THREADS", cores)
        found.append((rows.dot(x), rows.combine(w)))
    for dots, sums in found:
        np.testing.assert_array_equal(dots, found[0][0])
        np.testing.assert_array_equal(sums, found[0][1])
        np.testing.assert_allclose(dots, A @ x, atol=1e-10)
        np.testing.assert_allclose(sums, A.T @ w, atol=1e-10)


def test_64_bit_indices_and_mapped_data_are_taken_as_they_are(tmp_path):
    A = sparse.csr_array(matrix(9, 7, 1))
    wide = sparse.csr_array(
        (A.data, A.indices.astype(np.int64), A.indptr.astype(np.int64)), shape=A.shape
    )
    np.save(tmp_path / "values.npy", A.data)
    mapped = sparse.csr_array(A.shape)
    mapped.data = np.load(tmp_path / "values.npy", mmap_mode="r")
    mapped.indices, mapped.indptr = A.indices, A.indptr
    x = np.arange(7.0)
    for other in (wide, mapped):
        np.testing.assert_array_equal(as_rows(other).dot(x), as_rows(A).dot(x))
