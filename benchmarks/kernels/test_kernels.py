"""Times of single kernels and of whole iterations: pytest benchmarks/kernels --benchmark-only."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pytest
from data import rcv1
from timing import Side

import adafw
from adafw import losses, paths

_, A, Y = rcv1()
F = adafw.LinearModel(A, Y, losses.Logistic())
X = np.random.default_rng(0).standard_normal(A.shape[1])
BATCH = np.random.default_rng(1).integers(0, A.shape[0], A.shape[0] // 100)
BALL = adafw.L1Ball(100.0)
ALGORITHMS = {
    "CSFW": adafw.CSFW(),
    "AdaCSFW": adafw.AdaCSFW(100.0, 5),
    "AdaSVRF": adafw.AdaSVRF(100.0),
    "AdaGrad": adafw.AdaGrad(1.0, gradient=adafw.gradients.CSFW()),
}


@pytest.mark.parametrize("batch", [None, BATCH], ids=["all rows", "batch"])
def test_products(benchmark, batch):
    benchmark(F.gradient, X, batch)


@pytest.mark.parametrize("side", ["numba", "scipy"])
def test_batch_product_against_scipy(benchmark, side):
    benchmark((lambda: F.rows.dot(X, BATCH)) if side == "numba" else (lambda: A[BATCH] @ X))


def test_l1_projection(benchmark):
    h = 0.1 + np.abs(X)
    benchmark(BALL.project, X, h)


@pytest.mark.parametrize("path", ["generic", "fused", "lazy"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_ten_iterations(benchmark, name, path):
    try:
        paths.find(F, BALL, ALGORITHMS[name], path)
    except ValueError:
        pytest.skip("no such path")
    benchmark(Side(F, BALL, ALGORITHMS[name], path, each=10, first=20))


def test_minimize_on_a_small_problem(benchmark):
    rng = np.random.default_rng(0)
    small = adafw.LinearModel(rng.random((100, 10)), rng.random(100), losses.Squared())
    benchmark(adafw.minimize, small, BALL, adafw.AdaCSFW(1.0), max_iterations=100)
