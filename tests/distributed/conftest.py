"""One cluster of two processes for all tests that need no other."""

import logging
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

import adafw

LOGISTIC = adafw.losses.Logistic()


def problem(m=120, n=14, seed=5, weights=False):
    """Continuous data: no entry of a gradient is 0 by accident."""
    rng = np.random.default_rng(seed)
    A = sparse.random_array((m, n), density=0.5, rng=rng, format="csr")
    A.data = rng.normal(size=A.nnz)
    y = np.where(A @ rng.normal(size=n) + 0.5 * rng.normal(size=m) > 0, 1.0, -1.0)
    w = rng.integers(0, 4, m).astype(float) if weights else None
    return A, y, w


def recipe(X, *others):
    """A function for a worker, by value: this file cannot be imported there."""
    return lambda: (X, *others)


def recipes(cuts=(0, 50, 51, 120), dense=False, **how):
    A, y, w = problem(**how)
    A = A.toarray() if dense else A
    each = [A, y] if w is None else [A, y, w]
    return [recipe(*(v[a:b] for v in each)) for a, b in pairwise(cuts)]


@pytest.fixture(scope="session")
def data():
    """problem(...) -> (A, y, w)."""
    return problem


@pytest.fixture(scope="session")
def parts():
    """recipes(cuts, ...) -> the same data as functions, one a part."""
    return recipes


@pytest.fixture(scope="session")
def quick_starts():
    """Workers are forked from a process that has everything imported, also those started again.

    Starting Python anew is most of what tests with clusters take on a busy machine.
    """
    dask = pytest.importorskip("dask", reason="needs Dask: pip install 'adafw[dask]'")
    utils = pytest.importorskip("distributed.utils", reason="needs Dask")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        needs = ["distributed", "scipy.sparse", "numba", "adafw.fitting", "adafw.distributed.shelf"]
        utils.get_mp_context().set_forkserver_preload(needs)
        yield


@pytest.fixture(scope="session")
def client(quick_starts):
    from adafw.distributed import local_client

    with local_client(2) as made:
        yield made


@pytest.fixture(scope="session")
def model(client):
    """The same problem cut into three parts of 50, 1 and 69 rows."""
    from adafw.distributed import DistributedLinearModel

    return DistributedLinearModel.from_parts(recipes(), LOGISTIC, client=client)


@pytest.fixture
def single():
    A, y, _ = problem()
    return adafw.LinearModel(A, y, LOGISTIC)
