import numpy as np
import pytest

from adafw import L2Ball, LInfBall, SpectralBall


def singular(a):
    return np.linalg.svd(a, compute_uv=False)


def test_lmo_has_all_singular_values_at_the_radius():
    rng = np.random.default_rng(0)
    for shape in ((5, 3), (3, 5), (4, 4)):
        g = rng.standard_normal(shape)
        v = SpectralBall(0.7).lmo(g)
        np.testing.assert_allclose(singular(v), 0.7, rtol=1e-13)
        assert np.vdot(g, v) == pytest.approx(-0.7 * singular(g).sum(), rel=1e-13)


def test_singular_values_that_are_rounding_count_as_zero():
    rng = np.random.default_rng(1)
    g = rng.standard_normal((6, 2)) @ rng.standard_normal((2, 5))
    s = singular(SpectralBall(1.0).lmo(g))
    np.testing.assert_allclose(s, [1, 1, 0, 0, 0], atol=1e-13)
    np.testing.assert_array_equal(SpectralBall(1.0).lmo(np.zeros((3, 4))), 0)
    one = SpectralBall(1.0).lmo(np.ones((3, 3)))
    np.testing.assert_allclose(one, -np.ones((3, 3)) / 3, atol=1e-15)


@pytest.mark.parametrize(("above", "rank"), [(4.0, 2), (0.25, 1)])
def test_the_threshold_is_that_of_the_contract(above, rank):
    threshold = np.finfo(np.float64).eps * 8  # eps * s_1 * max(shape)
    g = np.zeros((8, 2))
    g[0, 0], g[1, 1] = 1.0, above * threshold
    assert np.linalg.matrix_rank(SpectralBall(1.0).lmo(g), tol=0.5) == rank


@pytest.mark.parametrize("shape", [(64, 64), (100, 30)])
def test_never_outside_but_by_rounding(shape):
    """Newton-Schulz iterations of low degree leave singular values up to 1.2 times the radius."""
    rng = np.random.default_rng(2)
    g = rng.standard_normal(shape) * np.logspace(0, -12, shape[1])
    for dtype, tol in ((np.float64, 1e-13), (np.float32, 2e-6)):
        assert SpectralBall(3.0).violation(SpectralBall(3.0).lmo(g.astype(dtype))) <= tol


def test_is_the_l2_ball_of_a_row_and_the_linf_ball_of_a_diagonal():
    rng = np.random.default_rng(3)
    row, diagonal = 3 * rng.standard_normal((1, 6)), 3 * rng.standard_normal(5)
    h = 10 ** rng.uniform(-1, 1, (1, 6))
    np.testing.assert_allclose(SpectralBall(0.5).lmo(row), L2Ball(0.5).lmo(row))
    np.testing.assert_allclose(
        SpectralBall(0.5).project(row, h), L2Ball(0.5).project(row, h), atol=1e-9
    )
    np.testing.assert_allclose(
        SpectralBall(0.5).project(np.diag(diagonal)),
        np.diag(LInfBall(0.5).project(diagonal)),
        atol=1e-14,
    )


def test_metric_projection_of_rows_and_columns_scaled_apart():
    """With h constant along rows, a diagonal matrix stays diagonal: entries are clipped."""
    h = np.outer([1.0, 100.0, 0.01], np.ones(3))
    x = np.diag([2.0, -0.3, 5.0])
    ours = SpectralBall(1.0).project(x, h)
    np.testing.assert_allclose(ours, np.diag([1.0, -0.3, 1.0]), atol=1e-8)


def test_diameter_joins_opposite_isometries():
    ball = SpectralBall(2.0)
    assert ball.diameter((3, 5)) == pytest.approx(4 * 3**0.5)
    assert ball.diameter((3, 5), np.inf) == 4.0
    assert ball.diameter((3, 5), 4) == pytest.approx(4 * 3**0.25)
    hadamard = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    assert ball.diameter((2, 2), 1) == pytest.approx(4 * np.abs(hadamard).sum())
