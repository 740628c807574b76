"""Problems that break second-order steps: what tests of every corrector run over."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

import adafw
from adafw import losses
from adafw.objectives import WithIntercept


def labels(rng: np.random.Generator, A: Any, noise: float = 1.0) -> Any:
    u = rng.standard_normal(A.shape[1])
    z = A @ u
    return np.where(
        z / (np.abs(z).max() + 1e-300) + noise * rng.standard_normal(len(z)) > 0, 1.0, -1.0
    )


def hostile(n: int = 12) -> Iterator[tuple[str, Any, Any, Any]]:
    """(name, A, y, loss) with n columns each."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, n))
    y = labels(rng, A)
    yield "plain", A, y, losses.Logistic()
    yield "squared", A, A @ rng.standard_normal(n) + rng.standard_normal(60), losses.Squared()
    yield "sparse", sparse.csr_matrix(A * (rng.random(A.shape) < 0.3)), y, losses.Logistic()
    twice = A.copy()
    twice[:, 1], twice[:, 2], twice[:, 3] = twice[:, 0], -twice[:, 0], 0.0
    yield "collinear and zero columns", twice, y, losses.Logistic()
    yield "more columns than rows", A[: n // 2], y[: n // 2], losses.Logistic()
    yield "one sample", A[:1], y[:1], losses.Logistic()
    yield "separable", A, np.where(A @ rng.standard_normal(n) > 0, 1.0, -1.0), losses.Logistic()
    scales = np.where(np.arange(n) % 2, 1e-3, 1e4)
    yield "unscaled", A * scales, y, losses.Logistic()
    yield "squared hinge", A, y, losses.SquaredHinge()
    yield "smoothed hinge", A, y, losses.SmoothedHinge(0.1)
    yield "huber, far out", A, 50 * rng.standard_normal(60), losses.Huber(0.1)
    yield "poisson", 0.3 * A, rng.poisson(1.0, 60).astype(float), losses.Poisson()
    onehot = np.eye(4)[rng.integers(0, 4, 60)]
    groups = np.hstack([onehot, onehot[:, ::-1], np.eye(n - 8)[rng.integers(0, n - 8, 60)]])
    yield "one-hot", sparse.csr_matrix(groups), y, losses.Logistic()


def models(n: int = 12) -> Iterator[tuple[str, Any]]:
    """The same as objectives, with weights and intercepts among them."""
    rng = np.random.default_rng(1)
    for name, A, y, loss in hostile(n):
        yield name, adafw.LinearModel(A, y, loss)
        if len(set(y)) > 1:
            weight = rng.integers(0, 3, len(y)).astype(float)
            weight[:2] = 1.0
            yield f"{name}, intercept", WithIntercept(adafw.LinearModel(A, y, loss))
            yield f"{name}, weights", adafw.LinearModel(A, y, loss, weight)
