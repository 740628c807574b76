"""Generated data of the shapes that certified fits are measured on."""

import numpy as np
from data import text_like
from scipy import sparse


def labels(score, share, rng):
    """-1 and +1, the latter for this share of rows or so, by a logistic model."""
    noisy = score - np.quantile(score, 1 - share) + rng.logistic(size=score.size)
    return np.where(noisy > 0, 1.0, -1.0)


def one_hot(m=32_561, groups=14, n=123, seed=0):
    """Census-like: one column of each group a row, so that groups are collinear."""
    rng = np.random.default_rng(seed)
    sizes = rng.multinomial(n - 2 * groups, rng.dirichlet(np.ones(groups))) + 2
    hidden, columns, offset = rng.standard_normal((m, 3)), [], 0
    for size in sizes:
        score = hidden @ rng.standard_normal((3, size)) + 1.5 * rng.standard_normal(size)
        columns.append(offset + (score + rng.gumbel(size=(m, size))).argmax(axis=1))
        offset += size
    index = np.sort(np.stack(columns, 1), axis=1).astype(np.int32)
    starts = np.arange(0, m * groups + 1, groups, dtype=np.int32)
    A = sparse.csr_array((np.ones(index.size), index.ravel(), starts), shape=(m, n))
    return A, labels(A @ rng.standard_normal(n), 0.25, rng)


def binary(m=49_749, n=300, per_row=11.65, seed=0):
    """Marks with falling frequencies, rows of very different lengths, few positives."""
    rng = np.random.default_rng(seed)
    shares = 1 / (np.arange(n) + 3.0) ** 0.9
    shares = np.minimum(0.9, per_row * shares / shares.sum())
    length = np.exp(0.9 * rng.standard_normal((m, 1))) / np.exp(0.405)
    A = sparse.csr_array((rng.random((m, n)) < np.minimum(shares * length, 0.95)).astype(float))
    score = 1.7 * (A @ (rng.standard_normal(n) * (rng.random(n) < 0.5)))
    return A, labels(score, 0.03, rng)


def counts(m=16_000, n=40_000, per_row=130, seed=0):
    """Word counts as they are, unscaled: frequencies fall as in text."""
    A, y = text_like(m, n, per_row, seed)
    A.data = np.ceil(5 * A.data / A.data.max() * np.random.default_rng(1).exponential(size=A.nnz))
    return A, y


def unrelated(m=20_000, n=1500, per_row=20, seed=0):
    """Columns that have nothing to do with each other: where coordinate descent is at its best."""
    rng = np.random.default_rng(seed)
    shares = 1 / (np.arange(n) + 5.0) ** 0.8
    columns = rng.choice(n, size=m * per_row, p=shares / shares.sum())
    rows = np.repeat(np.arange(m), per_row)
    values = np.abs(rng.standard_normal(m * per_row))
    A = sparse.csr_array((values, (rows, columns)), shape=(m, n))
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    A.sum_duplicates()
    return A, labels(A @ (rng.standard_normal(n) * (rng.random(n) < 0.2)), 0.3, rng)


def scattered(m, n, share=0.3, seed=0):
    """A share of all entries, anywhere."""
    rng = np.random.default_rng(seed)
    A = sparse.csr_array(rng.random((m, n)) * (rng.random((m, n)) < share))
    return A, labels(A @ rng.standard_normal(n), 0.5, rng)


def loose(m=30_000, n=5000, per_row=10, seed=1):
    """Entries anywhere, of both signs: hardly two columns share a row."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(m * per_row)
    places = np.repeat(np.arange(m), per_row), rng.integers(0, n, m * per_row)
    A = sparse.csr_array((values, places), shape=(m, n))
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    A.sum_duplicates()
    score = A @ (rng.standard_normal(n) * (rng.random(n) < 0.1))
    return A, labels(3 * score / score.std(), 0.5, rng)


def dense(m=20_000, n=1000, seed=0):
    """Correlated features: forty factors and noise."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, 40)) @ rng.standard_normal((40, n)) / 6
    A += rng.standard_normal((m, n))
    score = A @ rng.standard_normal(n) / np.sqrt(n)
    return A, np.where(score + rng.logistic(size=m) > 0, 1.0, -1.0)


def few_columns(m=30_000, n=200, mixed=False, seed=0):
    """Gaussian features that have nothing to do with each other, or mixtures of them."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n))
    if mixed:
        A = A @ rng.standard_normal((n, n)) / np.sqrt(n)
    score = A[:, :20] @ rng.standard_normal(20)
    return A, labels(3 * score / score.std(), 0.5, rng)


def pixels(m=6000, n=784, share=0.2, seed=0):
    """An array, as images come, of which most is 0."""
    A, y = scattered(m, n, share, seed)
    return A.toarray(), y


#: Makers of (name, A, y).
PROBLEMS = {
    "one-hot": lambda: ("one-hot 32 561 x 123", *one_hot()),
    "mushrooms": lambda: ("one-hot 8 124 x 112", *one_hot(8124, 21, 112, 1)),
    "binary": lambda: ("binary 49 749 x 300", *binary()),
    "text": lambda: ("text 7 770 x 8 156", *text_like(7770, 8156, 100)),
    "wide text": lambda: ("text 15 935 x 60 346", *text_like(15_935, 60_346, 80, 3)),
    "counts": lambda: ("counts 16 000 x 40 000", *counts()),
    "tiny": lambda: ("dense 270 x 13", *dense(270, 13)),
    "tiny sparse": lambda: ("sparse 351 x 34", *scattered(351, 34)),
    "small": lambda: ("dense 1 000 x 24", *dense(1000, 24)),
    "small sparse": lambda: ("one-hot 3 000 x 123", *one_hot(3000, seed=2)),
    "few columns": lambda: ("dense 30 000 x 200, unrelated", *few_columns()),
    "mixed columns": lambda: ("dense 30 000 x 200, mixed", *few_columns(mixed=True)),
    "pixels": lambda: ("array 6 000 x 784, a fifth not 0", *pixels()),
    "kinds": lambda: ("one-hot 30 000 x 1 000", *one_hot(30_000, 14, 1000, 3)),
    "tall": lambda: ("one-hot 100 000 x 300", *one_hot(100_000, 14, 300, 3)),
    "notes": lambda: ("text 20 000 x 2 000", *text_like(20_000, 2000, 12, 5)),
    "more notes": lambda: ("text 30 000 x 6 000", *text_like(30_000, 6000, 10, 5)),
    "loose": lambda: ("loose 30 000 x 5 000", *loose()),
    "unrelated": lambda: ("unrelated 20 000 x 1 500", *unrelated()),
    "unrelated, short": lambda: ("unrelated 5 000 x 1 500", *unrelated(5000, 1500, 40)),
}
