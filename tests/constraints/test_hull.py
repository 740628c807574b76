import numpy as np
import pytest
from scipy.optimize import minimize

from adafw import Hull, Simplex
from adafw.constraints import hull


def test_lmo_takes_the_first_of_equal_rows():
    hull = Hull([[1.0, 0], [0, 1], [0, 1], [-1, 0]])
    np.testing.assert_array_equal(hull.lmo(np.array([0.0, -1])), [0, 1])
    np.testing.assert_array_equal(hull.lmo(np.zeros(2)), [1, 0])
    np.testing.assert_array_equal(hull.start(2), [1, 0])


def test_hull_of_unit_vectors_is_the_simplex():
    rng = np.random.default_rng(0)
    hull, simplex = Hull(2 * np.eye(5)), Simplex(2.0)
    for _ in range(20):
        x, h = rng.standard_normal(5) * 2, 10 ** rng.uniform(-2, 2, 5)
        np.testing.assert_array_equal(hull.lmo(x), simplex.lmo(x))
        np.testing.assert_allclose(hull.project(x, h), simplex.project(x, h), atol=1e-12)
    for p in (1, 1.5, 2, np.inf):
        assert hull.diameter(5, p) == pytest.approx(simplex.diameter(5, p))


def test_projection_agrees_with_a_general_solver():
    rng = np.random.default_rng(1)
    for _ in range(10):
        points, x = rng.standard_normal((6, 3)), 2 * rng.standard_normal(3)
        h = 10 ** rng.uniform(-1, 1, 3)
        found = minimize(
            lambda w, a=points, x=x, h=h: np.sum(h * (w @ a - x) ** 2),
            np.full(6, 1 / 6),
            bounds=[(0, 1)] * 6,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        np.testing.assert_allclose(Hull(points).project(x, h), found.x @ points, atol=1e-5)


def test_repeated_and_collinear_points_do_no_harm():
    rng = np.random.default_rng(2)
    line = np.outer(rng.integers(-3, 4, 30), [1.0, 2.0, -1.0])
    hull = Hull(line)
    p = hull.project(np.array([5.0, 5.0, 5.0]))
    end = line[np.argmax(line @ np.ones(3))]
    assert hull.violation(p) <= 1e-14
    np.testing.assert_allclose(
        p, np.clip(5 / 3, None, np.abs(end).max() / 2) * np.array([1, 2, -1])
    )


def test_violation_is_the_distance():
    square = Hull([[0.0, 0], [0, 2], [2, 0], [2, 2]])
    assert square.violation(np.array([1.0, 1])) <= 1e-15
    assert square.violation(np.array([5.0, 6])) == pytest.approx(5 / 2)


def test_rows_may_be_matrices():
    hull = Hull(np.arange(24.0).reshape(4, 2, 3))
    assert hull.shape == (2, 3)
    np.testing.assert_array_equal(hull.lmo(-np.ones((2, 3))), np.arange(18, 24).reshape(2, 3))


def test_many_vertices_are_compared_in_slices():
    rng = np.random.default_rng(3)
    points = rng.standard_normal((5000, 2))
    far = max(np.linalg.norm(points - p, axis=1).max() for p in points[::50])
    assert far <= Hull(points).diameter(2) <= 2 * np.linalg.norm(points, axis=1).max()


@pytest.mark.parametrize("pair", [(0, 4999), (4998, 4999), (1999, 2000), (3, 2500)])
def test_the_furthest_pair_is_found_wherever_it_is(pair):
    """In one slice of the rows or in two."""
    points = np.random.default_rng(3).standard_normal((5000, 2))
    points[list(pair)] = [[30.0, 0.0], [-10.0, 9.0]]
    for p, width in ((1, 49.0), (2, 41.0), (np.inf, 40.0)):
        assert Hull(points).diameter(2, p) == pytest.approx(width)


def test_a_vertex_returned_is_a_copy():
    hull = Hull([[1.0, 0], [0, 1]])
    hull.lmo(np.array([-1.0, 0]))[:] = 7
    hull.start(2)[:] = 7
    np.testing.assert_array_equal(hull.lmo(np.array([-1.0, 0])), [1, 0])
    given = np.eye(2)
    hull = Hull(given)
    given[:] = 7
    np.testing.assert_array_equal(hull.start(2), [1, 0])


def test_a_solver_that_gives_up_leaves_it_to_the_second(monkeypatch):
    def gives_up(A, b, maxiter):
        raise RuntimeError("Maximum number of iterations reached.")

    rng = np.random.default_rng(4)
    vertices, x = rng.standard_normal((9, 4)), 3 * rng.standard_normal(4)
    wanted = Hull(vertices).project(x)
    monkeypatch.setattr("scipy.optimize.nnls", gives_up)
    np.testing.assert_allclose(Hull(vertices).project(x), wanted, rtol=1e-7)
    with np.errstate(all="raise"):
        assert hull._by_active_set(np.ones((2, 3)), np.ones(2)).sum() == pytest.approx(1)


def test_refuses_what_are_no_points():
    with pytest.raises(ValueError, match="a point in each row"):
        Hull([1.0, 2.0])
    with pytest.raises(ValueError, match="must be finite"):
        Hull([[1.0, np.nan]])


def test_the_second_way_finds_what_the_first_does(monkeypatch):
    """Where the first ends at a point that is none, as SciPy 1.15's does at times."""
    rng = np.random.default_rng(3)
    vertices, x = rng.standard_normal((9, 4)), 3 * rng.standard_normal(4)
    wanted = Hull(vertices).project(x)
    monkeypatch.setattr(hull, "_by_active_set", lambda A, b: np.eye(1, A.shape[1])[0])
    np.testing.assert_allclose(Hull(vertices).project(x), wanted, rtol=1e-7)


def test_weights_where_all_vertices_are_the_point():
    one = Hull(np.ones((3, 2)))
    np.testing.assert_array_equal(one.weights(np.ones(2)), [1, 0, 0])
    np.testing.assert_allclose(one.project(np.array([4.0, -2])), [1, 1])


def test_both_solvers_find_the_weights():
    A = np.vstack([np.array([[1.0, -1, 2], [1, 1, -3]]), np.ones(3)])
    b = np.array([0.0, 0.0, 1.0])
    for solve in (hull._by_active_set, hull._by_bounds):
        w = solve(A, b)
        assert w.sum() == pytest.approx(1)
        np.testing.assert_allclose(w, hull._by_active_set(A, b), atol=1e-12)
    np.testing.assert_allclose(A[:2] @ w, 0, atol=1e-12)


@pytest.mark.parametrize(("size", "length"), [(1e150, 1e200), (1e-200, 1e-200), (1e-150, 1e300)])
def test_lmo_of_large_and_small_vertices_along_long_and_short_directions(size, length):
    """No product of both overflows or vanishes."""
    rng = np.random.default_rng(5)
    points = rng.standard_normal((9, 4))
    for g in rng.standard_normal((5, 4)):
        wanted = points[np.argmin(points @ g)]
        np.testing.assert_allclose(Hull(size * points).lmo(length * g), size * wanted, rtol=1e-14)


def test_a_diameter_is_found_once(monkeypatch):
    """Sliding steps ask in every iteration, and all pairs of vertices are many."""
    rng = np.random.default_rng(0)
    hull = Hull(rng.standard_normal((30, 4)))
    width, asked = hull.diameter(4), []
    monkeypatch.setattr("scipy.spatial.distance.cdist", lambda *a, **k: asked.append(a))
    assert hull.diameter(4) == width
    assert not asked
    with pytest.raises(ValueError, match="p must be a number"):
        hull.diameter(4, 0.5)
