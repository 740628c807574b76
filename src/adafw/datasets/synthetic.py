"""Generated data."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from adafw import checks


def support_vector(
    m: int = 20_000, n: int = 1_000, seed: int = 0
) -> tuple[sparse.csr_array, NDArray[np.float64]]:
    """The paper's support-vector data (section 4.1, after Duchi 2018, equation 4.3.11).

    a_ij is 0 with probability 1 - 1/j, else +1 or -1; y_i = sign(<a_i, u>) for a random sign
    vector u, flipped with probability 0.05. Returns a CSR matrix and labels in {-1, +1}.
    """
    m, n = checks.integer(m, "m", 1), checks.integer(n, "n", 1)
    rng = np.random.default_rng(seed)
    columns, rows = [], []
    for j in range(n):
        on = rng.random(m) < 1 / (j + 1)
        signs = rng.choice([-1.0, 1.0], m)
        rows.append(np.flatnonzero(on).astype(np.int32))
        columns.append(signs[on])
    starts = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
    A = sparse.csc_array(
        (np.concatenate(columns), np.concatenate(rows), starts), shape=(m, n)
    ).tocsr()
    u = rng.choice([-1.0, 1.0], n)
    y = np.where(A @ u >= 0, 1.0, -1.0)
    return A, np.where(rng.random(m) < 0.05, -y, y)


def text_like(
    m: int = 20_242, n: int = 47_236, nonzeros: float = 75, seed: int = 0
) -> tuple[sparse.csr_array, NDArray[np.float64]]:
    """Data of the shape of RCV1: Zipf terms, about `nonzeros` entries and norm 1 a row.

    Documents have log-normal lengths, term j has probability proportional to 1 / (j + 10); weights
    are (1 + ln count) ln(m / documents with the term). Labels are the signs of a planted model with
    a hundredth of the terms, about half of them +1, five in a hundred flipped.
    """
    m, n = checks.integer(m, "m", 1), checks.integer(n, "n", 1)
    rng = np.random.default_rng(seed)
    # Words drawn twice fall together: about 1.07 words make one distinct term at RCV1's size.
    words = 1.07 * checks.real(nonzeros, "nonzeros", 0, above=True)
    lengths = 1 + rng.poisson(words * rng.lognormal(-0.18, 0.6, m))
    popularity = np.cumsum(1 / (np.arange(n) + 10.0))
    terms = np.searchsorted(popularity, rng.random(lengths.sum()) * popularity[-1])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    # The width that scipy itself would choose, and the only one that scikit-learn takes.
    width = sparse.get_index_dtype(maxval=max(n, len(terms)))
    columns = np.minimum(terms, n - 1).astype(width)
    A = sparse.csr_array((np.ones(len(terms)), columns, starts.astype(width)), shape=(m, n))
    A.sum_duplicates()
    documents = np.bincount(A.indices, minlength=n)
    A.data = (1 + np.log(A.data)) * np.log((m + 1) / documents[A.indices])
    A.data /= np.repeat(np.sqrt(A.multiply(A).sum(axis=1)), np.diff(A.indptr))
    support = rng.choice(
        n, max(1, n // 100), replace=False, p=np.diff(popularity, prepend=0) / popularity[-1]
    )
    u = np.zeros(n)
    u[support] = rng.standard_normal(len(support))
    scores = A @ u
    y = np.where(scores > np.median(scores), 1.0, -1.0)
    return A, np.where(rng.random(m) < 0.05, -y, y)


def correlated_regression(
    m: int = 463_715, n: int = 90, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Regression data of the kind of YearPredictionMSD: correlated columns of unequal scale.

    Rows are normal with covariance eigenvalues falling as 1/k in random directions, columns scaled
    by factors from 1 to 1000. y = 1998 + <a, u> + noise, u decaying and scaled so that the columns
    explain about a quarter of the variance of y, which is 11 squared.
    """
    m, n = checks.integer(m, "m", 1), checks.integer(n, "n", 1)
    rng = np.random.default_rng(seed)
    directions, _ = np.linalg.qr(rng.standard_normal((n, n)))
    root = directions * np.sqrt(1 / np.arange(1, n + 1))
    A = rng.standard_normal((m, n)) @ root.T
    signal = A @ (rng.standard_normal(n) / np.sqrt(np.arange(1, n + 1)))
    # A single row has no spread to scale by.
    signal *= 0.5 * 11 / (signal.std() or 1.0)
    y = 1998 + signal + np.sqrt(0.75) * 11 * rng.standard_normal(m)
    return A * np.logspace(0, 3, n), y


def low_rank(
    n: int = 100, rank: int = 5, share: float = 0.3, noise: float = 0.1, seed: int = 0
) -> tuple[sparse.csr_array, NDArray[np.float64]]:
    """Entries of an n x n matrix of low rank, observed with noise: data for matrix completion.

    X = U V^T / sqrt(rank) with normal factors, so that entries have variance 1; a `share` of them,
    drawn without repeats, is observed. Sample i is the matrix with a single 1 at its place, stored
    as a row of n^2 entries: the problem of `adafw.MatrixCompletion`.
    """
    n, rank = checks.integer(n, "n", 1), checks.integer(rank, "rank", 1)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, n)) / np.sqrt(rank)
    m = max(1, int(checks.real(share, "share", 0, 1) * n * n))
    places = np.sort(rng.choice(n * n, m, replace=False))
    A = sparse.csr_array((np.ones(m), places, np.arange(m + 1)), shape=(m, n * n))
    return A, X.ravel()[places] + checks.real(noise, "noise", 0) * rng.standard_normal(m)


def matching(
    n: int = 50, features: int = 10, noise: float = 0.5, seed: int = 0
) -> tuple[sparse.csr_array, NDArray[np.float64]]:
    """Which of n items is which, by noisy features of theirs: least squares over assignments.

    F holds normal features of n items; G = P F + noise those of the same items in another order,
    P being a permutation matrix. Every entry G_ik is one sample: <row i of X, column k of F> is to
    be near it. Samples are n x n matrices with one row that is not 0, stored as rows of n^2
    entries.
    """
    n, features = checks.integer(n, "n", 1), checks.integer(features, "features", 1)
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n, features))
    G = F[rng.permutation(n)]
    G = G + checks.real(noise, "noise", 0) * rng.standard_normal(G.shape)
    return sparse.csr_array(sparse.kron(sparse.eye_array(n), F.T)), G.ravel()
