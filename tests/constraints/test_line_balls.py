"""Balls of rows, of columns and of the root mean square."""

import numpy as np
import pytest

from adafw import ColumnBall, L2Ball, RMSBall, RowBall

X = np.array([[3.0, 4.0, 0.0], [0.3, 0.0, 0.4]])
H = np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]])


def test_lines_are_balls_of_their_own():
    """Row by row, and column by column, what the l2 ball of each gives."""
    ball = L2Ball(1.0)
    for lines, turn in ((RowBall(1.0), lambda a: a), (ColumnBall(1.0), np.transpose)):
        x, h = turn(X), turn(H)
        expected = np.array([ball.lmo(row) for row in X])
        np.testing.assert_allclose(turn(lines.lmo(x)), expected, atol=1e-15)
        for metric in (None, h):
            each = zip(X, H if metric is not None else (None, None), strict=True)
            expected = np.array([ball.project(row, weights) for row, weights in each])
            np.testing.assert_allclose(turn(lines.project(x, metric)), expected, atol=1e-15)
        assert lines.violation(x) == pytest.approx(4.0)
        np.testing.assert_array_equal(turn(lines.project(x))[1], X[1])  # inside
        assert lines.diameter(x.shape) == pytest.approx(2 * np.sqrt(2))
        assert lines.diameter(x.shape, 1) == pytest.approx(2 * 2 * np.sqrt(3))
        assert lines.diameter(x.shape, 4) == pytest.approx(2 * 2**0.25)
        assert lines.diameter(x.shape, np.inf) == 2.0


def test_vectors_stand_for_matrices():
    for kind, name in ((RowBall, "RowBall"), (ColumnBall, "ColumnBall")):
        flat, full = kind(0.5, shape=(2, 3)), kind(0.5)
        assert (flat.shape, full.shape) == ((6,), None)
        assert repr(flat) == f"{name}(radius=0.5, shape=(2, 3))"
        assert repr(full) == f"{name}(radius=0.5)"
        np.testing.assert_array_equal(flat.lmo(X.ravel()), full.lmo(X).ravel())
        np.testing.assert_array_equal(flat.lmo(X), full.lmo(X))
        ours = flat.project(X.ravel(), H.ravel())
        np.testing.assert_array_equal(ours, full.project(X, H).ravel())
        assert flat.diameter(6, 1) == full.diameter((2, 3), 1)
        assert flat.violation(X.ravel()) == full.violation(X)
        assert flat.start(6).shape == (6,)
        with pytest.raises(ValueError, match=f"this {name} holds matrices, got shape"):
            full.lmo(X.ravel())
        with pytest.raises(ValueError, match=f"this {name} holds vectors of 6 entries"):
            flat.lmo(np.ones(7))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_squares_neither_overflow_nor_vanish(scale):
    v = RowBall(2.0).lmo(X * scale)
    np.testing.assert_allclose(v, [[-1.2, -1.6, 0.0], [-1.2, 0.0, -1.6]], rtol=1e-14)
    assert RowBall(1e100).violation(X * 1e120) == pytest.approx(5e20)


def test_a_row_of_zeros_has_no_direction():
    v = RowBall(2.0).lmo(np.array([[0.0, 0.0], [1.0, 0.0]]))
    np.testing.assert_array_equal(v, [[0.0, 0.0], [-2.0, 0.0]])
    assert not np.signbit(v[0]).any()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_long_rows_of_half_precision_have_a_length(name):
    """Whose square is beyond what float16 can say, and has too few digits in bfloat16."""
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, name)
    g = torch.full((2, 90_000), 0.5, dtype=dtype)
    v = RowBall(300.0).lmo(g)
    assert v.dtype == dtype
    np.testing.assert_allclose(v.float().numpy(), -1.0, rtol=1e-2)
    assert RowBall(300.0).violation(g) == 0
    assert RowBall(100.0).violation(g) == pytest.approx(0.5, rel=1e-3)
    np.testing.assert_allclose(RowBall(30.0).project(g).float().numpy(), 0.1, rtol=1e-2)


def test_the_root_mean_square_is_that_of_all_entries():
    ball = RMSBall(0.5)
    rms = np.sqrt(np.mean(X**2))
    np.testing.assert_allclose(ball.lmo(X), -0.5 * X / rms, rtol=1e-14)
    assert ball.violation(X) == pytest.approx((rms - 0.5) / 0.5)
    same = L2Ball(0.5 * np.sqrt(6))
    for h in (None, H):
        np.testing.assert_allclose(ball.project(X, h), same.project(X, h), rtol=1e-14)
    for p in (1, 2, 4, np.inf):
        assert ball.diameter((2, 3), p) == pytest.approx(same.diameter((2, 3), p))
