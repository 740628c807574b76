"""Generated data."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from adafw import checks


def support_vector(m: int = 20_000, n: int = 1_000, seed: int = 0) -> tuple[Any, NDArray[Any]]:
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
        rows.append(np.flatnonzero(on))
        columns.append(signs[on])
    starts = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
    A = sparse.csc_array(
        (np.concatenate(columns), np.concatenate(rows), starts), shape=(m, n)
    ).tocsr()
    u = rng.choice([-1.0, 1.0], n)
    y = np.where(A @ u >= 0, 1.0, -1.0)
    return A, np.where(rng.random(m) < 0.05, -y, y)
