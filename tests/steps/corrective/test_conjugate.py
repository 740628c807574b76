"""Preconditioned conjugate gradients: every iterate, the residual, the move, and what ends them."""

import numpy as np
import pytest

from adafw.steps.corrective.conjugate import solve

N = 7


def system(seed=0):
    """(H, b, positive scales, rows of a linear map)."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((N, N))
    H = B @ B.T + 0.5 * np.eye(N)
    return H, rng.standard_normal(N), rng.uniform(0.5, 4.0, N), rng.standard_normal((11, N))


def krylov(H, b, scale, steps):
    """The minimiser of <d, H d> / 2 - <b, d> over span{M b, (M H) M b, ...}, M = 1 / scale."""
    found = [b / scale]
    for _ in range(steps - 1):
        found.append(H @ found[-1] / scale)
    basis, _ = np.linalg.qr(np.array(found).T)
    return basis @ np.linalg.solve(basis.T @ H @ basis, basis.T @ b)


@pytest.mark.parametrize("metric", [None, "scaled"])
@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_iterates_minimise_over_what_products_span(damping, metric):
    H, b, scale, A = system()
    weights = None if metric is None else np.linspace(1, 5, N)
    damped = H + damping * np.diag(np.ones(N) if weights is None else weights)
    for steps in range(1, N + 1):
        found = solve(
            lambda d: (H @ d, A @ d), b, lambda r: r / scale, 1e-9, steps,
            damping=damping, metric=weights,
        )  # fmt: skip
        assert found.steps == steps
        np.testing.assert_allclose(found.d, krylov(damped, b, scale, steps), atol=1e-8)
        np.testing.assert_allclose(found.residual, b - damped @ found.d, atol=1e-9)
        np.testing.assert_allclose(found.move, A @ found.d, atol=1e-9)
    np.testing.assert_allclose(found.d, np.linalg.solve(damped, b), atol=1e-8)


@pytest.mark.parametrize("tolerance", [0.5, 0.1, 1e-3])
def test_they_end_at_the_first_residual_that_is_small_enough(tolerance):
    H, b, scale, _ = system(1)

    def size(r):
        return np.sqrt(r @ (r / scale))

    sizes = [size(b - H @ krylov(H, b, scale, k)) for k in range(1, N + 1)]
    first = 1 + next(k for k, left in enumerate(sizes) if left <= tolerance * size(b))
    found = solve(lambda d: (H @ d, d), b, lambda r: r / scale, tolerance, 100)
    assert found.steps == first < N
    np.testing.assert_allclose(found.d, krylov(H, b, scale, first), atol=1e-9)


def test_a_projecting_preconditioner_keeps_the_solution_in_its_plane():
    H, b, scale, _ = system(2)
    normal = np.arange(1.0, N + 1)
    across = normal / scale

    def tangent(r):
        return r / scale - across * (normal @ (r / scale)) / (normal @ across)

    found = solve(lambda d: (H @ d, d), b, tangent, 1e-12, 50, projects=True)
    plane = np.linalg.svd(normal[None])[2][1:].T
    expected = plane @ np.linalg.solve(plane.T @ H @ plane, plane.T @ b)
    np.testing.assert_allclose(found.d, expected, atol=1e-9)
    assert found.steps <= N


def test_leaving_ends_them_at_the_point_outside():
    H, b, scale, A = system(3)
    most = np.linalg.norm(krylov(H, b, scale, 3)) - 1e-6
    found = solve(
        lambda d: (H @ d, A @ d), b, lambda r: r / scale, 1e-9, N,
        leave=lambda d: bool(np.linalg.norm(d) > most),
    )  # fmt: skip
    assert found.steps == 3
    np.testing.assert_allclose(found.d, krylov(H, b, scale, 3), atol=1e-9)
    np.testing.assert_allclose(found.residual, b - H @ found.d, atol=1e-9)
    np.testing.assert_allclose(found.move, A @ found.d, atol=1e-9)


def test_a_direction_without_curvature_ends_them_before_it_is_taken():
    b = np.array([1.0, 2.0])
    for H, steps in ((np.zeros((2, 2)), 0), (np.diag([5.0, -1.0]), 1), (-np.eye(2), 0)):
        found = solve(lambda d, H=H: (H @ d, d), b, lambda r: r, 1e-9, 10)
        assert found.steps == steps
        np.testing.assert_allclose(found.residual, b - H @ found.d, atol=1e-12)
        assert found.d.any() == (steps > 0)
        assert found.move.size == (2 if steps else 0)


def test_nothing_is_asked_where_nothing_is_wanted():
    asked = []
    found = solve(lambda d: asked.append(d) or (d, d), np.zeros(3), lambda r: r, 0.1, 5)
    assert (found.steps, asked) == (0, [])
    found = solve(lambda d: asked.append(d) or (d, d), np.ones(3), lambda r: r, 0.1, 0)
    assert (found.steps, asked) == (0, [])
    assert found.residual.tolist() == [1, 1, 1]
