import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from adafw import Birkhoff, Polytope


def test_lmo_is_the_cheapest_permutation():
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 5):
        g = rng.standard_normal((n, n))
        v = Birkhoff().lmo(g)
        assert set(v.ravel()) <= {0.0, 1.0}
        assert (v.sum(0) == 1).all()
        assert (v.sum(1) == 1).all()
        costs = [sum(g[i, p[i]] for i in range(n)) for p in itertools.permutations(range(n))]
        assert np.vdot(g, v) == pytest.approx(min(costs))


def test_zero_and_start_are_the_identity():
    np.testing.assert_array_equal(Birkhoff().lmo(np.zeros((4, 4))), np.eye(4))
    np.testing.assert_array_equal(Birkhoff().start((4, 4)), np.eye(4))


def test_rows_columns_and_signs_are_all_looked_at():
    """Each of the three conditions broken alone."""
    rows_only = np.array([[1.0, 0.0], [0.75, 0.25]])
    assert Birkhoff().violation(rows_only) == pytest.approx(0.75)
    assert Birkhoff().violation(rows_only.T) == pytest.approx(0.75)
    negative = np.array([[1.25, -0.25], [-0.25, 1.25]])
    assert Birkhoff().violation(negative) == pytest.approx(0.25)
    for x in (rows_only, rows_only.T, negative):
        assert not Birkhoff().contains(x)
    assert Birkhoff().violation(np.full((2, 2), 0.5)) == 0


@pytest.mark.parametrize(
    ("x", "off"),
    [
        (np.zeros((3, 3)), 1.0),
        (np.diag([1.0, 1.0, 0.4]), 0.6),  # a row and a column too small, none too large
        (np.full((2, 2), 0.375), 0.25),
        (np.full((2, 2), 0.625), 0.25),
        (np.array([[0.25]]), 0.75),
    ],
)
def test_sums_below_one_are_as_far_off_as_sums_above(x, off):
    assert Birkhoff().violation(x) == pytest.approx(off)
    assert not Birkhoff().contains(x)


def test_projection_agrees_with_a_general_solver():
    rng = np.random.default_rng(1)
    A = np.vstack([np.kron(np.eye(3), np.ones(3)), np.kron(np.ones(3), np.eye(3))[:2]])
    for _ in range(5):
        x, h = rng.standard_normal(9), 10 ** rng.uniform(-1, 1, 9)
        found = minimize(
            lambda v, x=x, h=h: np.sum(h * (v - x) ** 2),
            np.full(9, 1 / 3),
            jac=lambda v, x=x, h=h: 2 * h * (v - x),
            bounds=[(0, 1)] * 9,
            constraints={"type": "eq", "fun": lambda v: A @ v - 1},
            method="SLSQP",
            options={"ftol": 1e-16, "maxiter": 1000},
        )
        ours = Birkhoff().project(x.reshape(3, 3), h.reshape(3, 3))
        np.testing.assert_allclose(ours.ravel(), found.x, atol=1e-6)


def test_projection_of_a_multiple_of_a_permutation_is_the_permutation():
    p = np.eye(6)[[2, 0, 1, 5, 4, 3]]
    for h in (None, 10 ** np.random.default_rng(2).uniform(-3, 3, (6, 6))):
        np.testing.assert_allclose(Birkhoff().project(50 * p, h), p, atol=1e-10)


def test_euclidean_projection_of_nearby_points_is_affine():
    """Inside, only row and column means are moved."""
    rng = np.random.default_rng(3)
    n = 8
    x = 1 / n + 0.01 * rng.standard_normal((n, n))
    rows, columns, mean = x.mean(1, keepdims=True), x.mean(0), x.mean()
    expected = x - rows - columns + mean + 1 / n
    np.testing.assert_allclose(Birkhoff().project(x), expected, atol=1e-14)


@pytest.mark.parametrize("n", [40, 120])
def test_projection_of_larger_matrices_is_optimal(n):
    rng = np.random.default_rng(4)
    x, h = rng.standard_normal((n, n)), 10 ** rng.uniform(-2, 2, (n, n))
    v = Birkhoff().project(x, h)
    assert Birkhoff().violation(v) <= 1e-14
    g = h * (v - x)
    assert Birkhoff().gap(v, g) <= 1e-12 * np.sum(g * (v - x))


@pytest.mark.parametrize("orders", [0, 1, 3, 8])
def test_projection_is_that_onto_the_polytope_of_its_rows_and_columns(orders):
    """Two methods: with an inequality, though it never binds, a polytope takes the other one."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        n = int(rng.integers(2, 13))
        x = rng.dirichlet(np.ones(n), n) + 10 ** rng.uniform(-3, 1) * rng.standard_normal((n, n))
        h = 10 ** rng.uniform(-orders, 0, (n, n))
        sums = np.vstack([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])
        polytope = Polytope(np.ones((1, n * n)), [2.0 * n], sums[:-1], np.ones(2 * n - 1))
        ours = Birkhoff().project(x, h)
        other = polytope.project(x.ravel(), h.ravel()).reshape(n, n)
        moved = np.sqrt(np.sum(h * (ours - other) ** 2))
        assert moved <= 1e-10 * np.sqrt(np.sum(h * (ours - x) ** 2))


def test_diameter_joins_permutations_without_common_entries():
    assert Birkhoff().diameter((3, 3)) == pytest.approx(6**0.5)
    assert Birkhoff().diameter((3, 3), 1) == 6.0
    assert Birkhoff().diameter((3, 3), np.inf) == 1.0
    assert Birkhoff().diameter((1, 1)) == 0.0


def test_refuses_what_is_not_square():
    for shape in ((2, 3), (4,), (2, 2, 2)):
        with pytest.raises(ValueError, match="square matrices"):
            Birkhoff().lmo(np.ones(shape))


def test_metrics_that_hardly_feel_some_entries():
    """The offset of an adaptive metric makes such: distances alone do not tell the right face."""
    rng, ball = np.random.default_rng(0), Birkhoff()
    for _ in range(100):
        x, h = np.round(rng.standard_normal((3, 3))), rng.choice([1e-8, 1.0], (3, 3))
        p = ball.project(x, h)
        g = h * (p - x)
        assert np.vdot(g, p - ball.lmo(g)) <= 1e-13 * np.vdot(g, p - x) + 1e-15


@pytest.mark.filterwarnings("error")
def test_a_metric_without_end_warns_of_nothing():
    h = np.full((4, 4), 1e300)
    h[0, 0] = 1e-12
    x = np.random.default_rng(6).standard_normal((4, 4))
    assert Birkhoff().violation(Birkhoff().project(x, h)) <= 1e-14


def test_costs_near_the_largest_number_are_compared_as_small_ones():
    """Sums of two of them are out of range."""
    huge = np.finfo(np.float64).max
    for seed in range(5):
        g = np.random.default_rng(seed).uniform(-1, 1, (4, 4))
        np.testing.assert_array_equal(Birkhoff().lmo(huge * g), Birkhoff().lmo(g))
