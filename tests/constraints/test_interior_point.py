import numpy as np
import pytest

from adafw.constraints import interior_point
from adafw.constraints.linear_system import dense_rows, spd_solver


def problem(rng, n, m, k, orders):
    """m inequalities and k equalities around a point; some inequalities are tight there."""
    inside = rng.uniform(-1, 1, n)
    A = rng.standard_normal((k + m, n))
    slack = np.r_[np.zeros(k), rng.uniform(0, 1, m) * (rng.random(m) < 0.8)]
    low = np.where(rng.random(n) < 0.5, -np.inf, inside - rng.uniform(0, 1, n))
    high = np.where(rng.random(n) < 0.5, np.inf, inside + rng.uniform(0, 1, n))
    x, h = 10 * rng.standard_normal(n), 10 ** rng.uniform(-orders, orders, n)
    return x, h, low, high, A, np.arange(k + m) >= k, A @ inside + slack


@pytest.mark.parametrize("orders", [0, 3, 8])
@pytest.mark.parametrize(
    ("n", "m", "k"), [(8, 5, 2), (8, 40, 2), (8, 40, 0), (20, 0, 5), (5, 0, 0)]
)
def test_conditions_of_optimality(n, m, k, orders):
    """Feasible, and x - v is, in the metric, a combination of active rows and bounds."""
    rng = np.random.default_rng([n, m, k, orders])
    for _ in range(10):
        x, h, low, high, A, less, b = problem(rng, n, m, k, orders)
        v = interior_point.project(x, h, low, high, dense_rows(A, less), b, "test")
        assert (v >= low).all()
        assert (v <= high).all()
        over = A @ v - b
        assert over[less].max(initial=0) <= 1e-13 * (np.abs(A).sum(1) + np.abs(b)).max(initial=1)
        assert np.abs(over[~less]).max(initial=0) <= 1e-13 * (1 + np.abs(b).max(initial=0))
        near = 1e-7 * (1 + np.abs(v))
        normals = [A[less & (over > -1e-7)], A[~less], -A[~less]]
        normals += [-np.eye(n)[v - low <= near], np.eye(n)[high - v <= near]]
        cone = np.vstack(normals)
        pull = np.sqrt(h) * (x - v)
        from scipy.optimize import nnls

        rest = nnls((cone / np.sqrt(h)).T, pull)[1] if len(cone) else np.linalg.norm(pull)
        assert rest <= 1e-7 * np.linalg.norm(np.sqrt(h) * x)


def test_few_and_many_rows_solve_the_same_equations():
    """Rows repeated: more rows than columns, and all of them dependent."""
    rng = np.random.default_rng(1)
    x, h, low, high, A, less, b = problem(rng, 10, 4, 1, 1)
    few = interior_point.project(x, h, low, high, dense_rows(A, less), b, "test")
    again = dense_rows(np.tile(A, (4, 1)), np.tile(less, 4))
    many = interior_point.project(x, h, low, high, again, np.tile(b, 4), "test")
    np.testing.assert_allclose(many, few, atol=1e-9)


def test_equalities_alone_have_a_formula():
    rng = np.random.default_rng(2)
    A, b, x = rng.standard_normal((3, 7)), rng.standard_normal(3), rng.standard_normal(7)
    h = 10 ** rng.uniform(-2, 2, 7)
    free = np.full(7, np.inf)
    rows = dense_rows(A, np.zeros(3, dtype=bool))
    v = interior_point.project(x, h, -free, free, rows, b, "test")
    expected = x - (A / h).T @ np.linalg.solve((A / h) @ A.T, A @ x - b)
    np.testing.assert_allclose(v, expected, atol=1e-12)


def test_contradictory_rows_are_reported():
    rows = dense_rows(np.array([[1.0, 1.0], [1.0, 1.0]]), np.zeros(2, dtype=bool))
    with pytest.raises(RuntimeError, match="stalled at a relative error"):
        interior_point.project(
            np.zeros(2), np.ones(2), np.zeros(2), np.ones(2), rows, np.array([1.0, 2.0]), "test"
        )


def test_singular_systems_are_solved_where_they_can_be():
    rng = np.random.default_rng(3)
    B = rng.standard_normal((6, 3))
    matrix, y = B @ B.T, rng.standard_normal(6)
    solved = spd_solver(matrix)(matrix @ y)
    np.testing.assert_allclose(matrix @ solved, matrix @ y, atol=1e-9)
    np.testing.assert_allclose(spd_solver(np.diag([2.0, 0.0]))(np.array([4.0, 1.0])), [2, 0])


@pytest.mark.parametrize("seed", range(5))
def test_newtons_method_on_multipliers_finds_the_same_point_by_itself(seed):
    """It is not a way to fail quickly: where the metric is even enough, it needs no other."""
    rng = np.random.default_rng(seed)
    x, h, low, high, A, less, b = problem(rng, 20, 0, 5, 0.5)
    path = interior_point._CentralPath(x, h / h.max(), low, high, dense_rows(A, less), b)
    found = interior_point._by_dual_newton(path)
    point = path.start()
    for _ in range(40):
        point = path.next(point)
    np.testing.assert_allclose(found, point.v, atol=1e-7)


def test_without_bounds_one_step_of_the_central_path_is_the_formula():
    rng = np.random.default_rng(4)
    A, b, x = rng.standard_normal((3, 7)), rng.standard_normal(3), rng.standard_normal(7)
    h, free = 10 ** rng.uniform(-2, 2, 7), np.full(7, np.inf)
    rows = dense_rows(A, np.zeros(3, dtype=bool))
    path = interior_point._CentralPath(x, h / h.max(), -free, free, rows, b)
    expected = x - (A / h).T @ np.linalg.solve((A / h) @ A.T, A @ x - b)
    np.testing.assert_allclose(path.next(path.start()).v, expected, atol=1e-9)
