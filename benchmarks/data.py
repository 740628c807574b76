"""Data of the benchmarks: the real RCV1-v2 where ADAFW_DATA names its folder, else its shape."""

import os
from pathlib import Path

import numpy as np
from scipy import sparse


def text_like(m: int, n: int, per_row: int, seed: int = 0) -> tuple[sparse.csr_array, np.ndarray]:
    """Rows of unit length with about `per_row` features, whose frequencies fall as in text."""
    rng = np.random.default_rng(seed)
    ranks = np.minimum(n ** rng.random((m, per_row)), n - 1).astype(np.int64)
    columns = rng.permutation(n).astype(np.int32)[ranks]
    values = rng.random((m, per_row)) + 0.1
    starts = np.arange(0, m * per_row + 1, per_row, dtype=np.int32)
    A = sparse.csr_array((values.ravel(), columns.ravel(), starts), shape=(m, n))
    A.sum_duplicates()
    lengths = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).ravel())
    A.data /= np.repeat(lengths, np.diff(A.indptr))
    score = A @ (rng.standard_normal(n) * (rng.random(n) < 0.05))
    return A, np.where(score + 0.1 * rng.standard_normal(m) > 0, 1.0, -1.0)


def rcv1() -> tuple[str, sparse.csr_array, np.ndarray]:
    """(name, A, y): 20 242 documents, 47 236 terms."""
    file = Path(os.environ.get("ADAFW_DATA", "")) / "rcv1_v2_binary.npz"
    if not file.is_file():
        return "generated, RCV1's shape", *text_like(20_242, 47_236, 75)
    z = np.load(file)
    A = sparse.csr_array(
        (z["data_micro"] * 1e-6, z["indices"].astype(np.int32), z["indptr"]),
        shape=tuple(z["shape"]),
    )[:20_242]
    return "RCV1-v2", A, z["y"][:20_242].astype(float)
