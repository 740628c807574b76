"""Settings and data shared by all tests."""

import numpy as np
import pytest
from hypothesis import settings
from scipy import sparse

import adafw

# The same examples on every run; machines under load are no failure.
settings.register_profile("adafw", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("adafw")


@pytest.fixture
def regression():
    """Continuous data, on which no coordinate of a gradient is exactly 0 by accident."""
    rng = np.random.default_rng(5)
    A = rng.normal(size=(60, 12))
    y = A @ rng.normal(size=12) + 0.1 * rng.normal(size=60)
    return A, y


@pytest.fixture
def logistic(regression):
    A, y = regression
    return adafw.LinearModel(A, np.where(y >= 0, 1.0, -1.0), adafw.losses.Logistic())


@pytest.fixture
def sparse_logistic():
    """A sparse problem with an empty row and an all-zero column."""
    rng = np.random.default_rng(3)
    A = sparse.random_array((80, 30), density=0.2, rng=rng, format="csr")
    A = A.toarray()
    A[7], A[:, 4] = 0, 0
    y = np.where(rng.random(80) < 0.5, -1.0, 1.0)
    return adafw.LinearModel(sparse.csr_array(A), y, adafw.losses.Logistic())
