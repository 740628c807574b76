"""What corrective runs certify, held against plain products with the data."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.constraints import Hull, L1Ball, NuclearBall
from adafw.objectives import MatrixModel
from adafw.steps.corrective.hull import HullCorrector


def regression(m: int = 50, n: int = 6) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, n))
    return A, A @ rng.standard_normal(n) + rng.standard_normal(m)


def measured(A: Any, y: Any, x: Any) -> tuple[float, Any]:
    """(value, gradient) of the mean square, from the data."""
    rest = A @ x - y
    return float(np.mean(rest**2)), 2 * A.T @ rest / len(y)


def test_one_model_on_two_hulls() -> None:
    # Columns A a_j are kept from step to step: those of one hull are not those of another.
    A, y = regression()
    f = adafw.LinearModel(A, y, losses.Squared())
    points = np.random.default_rng(3).standard_normal((8, 6))
    for V in (points, points[::-1]):
        result = adafw.minimize(
            f, Hull(V), adafw.Corrective(), gap_tolerance=1e-9, max_iterations=50
        )
        value, g = measured(A, y, result.x)
        assert result.status == "converged"
        assert result.value == pytest.approx(value, rel=1e-12)
        assert float(g @ result.x - (V @ g).min()) <= 2e-9


def test_columns_of_a_hull_are_kept_while_they_are_in_use() -> None:
    """Each is as long as the data: those of vertices that have left would fill the memory."""
    A, y = regression()
    f, corrector = adafw.LinearModel(A, y, losses.Squared()), HullCorrector()
    vertices = np.random.default_rng(3).standard_normal((8, A.shape[1]))
    for chosen in ([0, 3], [3, 5, 1], [5]):
        columns = corrector._columns(f, vertices, np.array(chosen))
        np.testing.assert_allclose(columns, A @ vertices[chosen].T, rtol=1e-12)
        assert sorted(corrector._images[f.rows][1]) == sorted(chosen)


def test_predictions_that_come_down_from_far_keep_their_digits() -> None:
    # Moved along from x0, they would be known to 1e8 * eps alone, and the gap by 1e8 times that.
    A, y = regression()
    f, radius = adafw.LinearModel(A, y, losses.Squared()), 1e8
    x0 = np.zeros(6)
    x0[0] = radius
    result = adafw.minimize(f, L1Ball(radius), adafw.Corrective(), x0=x0, max_iterations=30)
    value, g = measured(A, y, result.x)
    assert result.value == pytest.approx(value, rel=1e-13)
    assert float(g @ result.x) + radius * np.abs(g).max() <= 1e-4


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_sparse_rows_on_the_nuclear_ball(kind: Any) -> None:
    A, y = regression()
    f = adafw.LinearModel(kind(A), y, losses.Squared())
    ball = NuclearBall(0.5, shape=(2, 3))
    result = adafw.minimize(f, ball, adafw.Corrective(), gap_tolerance=1e-8, max_iterations=50)
    value, g = measured(A, y, result.x)
    assert result.value == pytest.approx(value, rel=1e-12)
    assert float(g @ result.x) + 0.5 * np.linalg.norm(g.reshape(2, 3), 2) <= 2e-8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_joint_runs_go_on_bit_for_bit(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 40)).astype(dtype)
    y = (A @ rng.standard_normal((40, 2)) + rng.standard_normal((200, 2))).astype(dtype)

    def run(**options: Any) -> adafw.Result:
        f = MatrixModel(A, y, losses.Outputs(losses.Squared()), intercept=True)
        return adafw.minimize(f, L1Ball(1e3), adafw.Corrective(), **options)

    whole = run(max_iterations=8)
    for k in (1, 4):
        again = run(max_iterations=8, state=run(max_iterations=k).state)
        np.testing.assert_array_equal(again.x, whole.x)


def test_runs_on_the_nuclear_ball_go_on_bit_for_bit() -> None:
    # Factors whose columns lie in order in memory come back from a state with rows in order.
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 40)) * np.where(np.arange(40) % 2, 1e-3, 1e4)
    y = rng.integers(0, 3, 60)

    def run(**options: Any) -> adafw.Result:
        f = MatrixModel(A, y, losses.Softmax(), intercept=True)
        return adafw.minimize(f, NuclearBall(1.0), adafw.Corrective(), **options)

    whole = run(max_iterations=6)
    for k in (1, 3, 5):
        again = run(max_iterations=6, state=run(max_iterations=k).state)
        np.testing.assert_array_equal(again.x, whole.x)
