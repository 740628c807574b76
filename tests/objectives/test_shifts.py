"""The best intercepts: what their search is made of, against differences and brute force."""

import numpy as np
import pytest
from scipy.optimize import minimize

from adafw import losses
from adafw.objectives.shifts import OutputShifts, SoftmaxShifts, shifts_for

M, K = 40, 4
RNG = np.random.default_rng(0)
Y, Z, W = RNG.integers(0, K, M), RNG.normal(size=(M, K)), RNG.uniform(0.2, 3, M)
W *= M / W.sum()
B = np.array([0.3, -0.2, 0.5, -0.6])


def softmax(z):
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def columns(shifts, z):
    """As the search has them: a column a sample, in the order of their classes."""
    return np.ascontiguousarray(z[shifts.order].T)


def ratio(b):
    """ln(up_c / down_c) of every class, by its definition."""
    p = softmax(Z + b)
    up = np.array([W[c != Y] @ p[c != Y, c] for c in range(K)])
    down = np.array([W[c == Y] @ (1 - p[c == Y, c]) for c in range(K)])
    return np.log(up / down), up, down


def test_what_is_balanced():
    shifts = SoftmaxShifts(Y, K, W)
    up, down, p, off = shifts._sides(columns(shifts, Z), B)
    wanted, upward, downward = ratio(B)
    np.testing.assert_allclose(up, upward)
    np.testing.assert_allclose(down, downward)
    np.testing.assert_allclose(p, softmax(Z + B)[shifts.order].T)
    assert off == pytest.approx(np.abs(wanted).max())


def test_a_step_of_newtons_method_on_the_ratios():
    shifts, h = SoftmaxShifts(Y, K, W), 1e-6
    up, down, p, _ = shifts._sides(columns(shifts, Z), B)
    slopes = [(ratio(B + h * e)[0] - ratio(B - h * e)[0]) / (2 * h) for e in np.eye(K)]
    wanted = -np.linalg.lstsq(np.array(slopes).T, ratio(B)[0], rcond=1e-8)[0]
    found = shifts._newton(up, down, p)
    np.testing.assert_allclose(found - found.mean(), wanted - wanted.mean(), rtol=1e-5)
    far = shifts._newton(up, down, 1e-9 * p)
    assert np.abs(far).max() == pytest.approx(50)  # no further than this in one step


def test_a_step_of_newtons_method_on_the_loss():
    """It lowers the loss, and near the best point is all the way there."""
    shifts = SoftmaxShifts(Y, K, W)
    z = columns(shifts, Z)

    def loss(b):
        return W @ losses.Softmax().value(Z + b, Y)

    assert shifts._loss(z, B) == pytest.approx(loss(B), rel=1e-13)
    best = shifts.best(Z)
    for b in (B, best + 1e-3 * B, 30 * B):
        up, down, p, _ = shifts._sides(z, b)
        step = shifts._descent(z, b, up - down, p)
        assert loss(b + step) < loss(b)
    b = best + 1e-3 * B
    up, down, p, _ = shifts._sides(z, b)
    there = b + shifts._descent(z, b, up - down, p)
    np.testing.assert_allclose(there - there.mean(), best, atol=1e-6)
    up, down, p, _ = shifts._sides(z, best)
    assert np.abs(shifts._descent(z, best, up - down, p)).max() <= 1e-12


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_best_intercepts_are_found_and_have_mean_zero(dtype):
    shifts = shifts_for(losses.Softmax(), Y, K, W)
    assert isinstance(shifts, SoftmaxShifts)
    best = shifts.best(Z.astype(dtype))
    assert best.dtype == dtype
    assert abs(best.mean()) <= 1e-7
    other = minimize(lambda b: W @ losses.Softmax().value(Z + b, Y), np.zeros(K), tol=1e-13).x
    np.testing.assert_allclose(best, other - other.mean(), atol=1e-5)
    # Samples in another order, and predictions moved by a constant, change nothing.
    mixed = RNG.permutation(M)
    again = SoftmaxShifts(Y[mixed], K, W[mixed]).best(Z[mixed].astype(dtype))
    np.testing.assert_allclose(again, best, atol=1e-5)
    moved = shifts.best((Z + RNG.normal(size=(M, 1))).astype(dtype))
    np.testing.assert_allclose(moved, best, atol=1e-5)


def test_at_zero_they_are_the_logarithms_of_the_shares():
    shifts = SoftmaxShifts(Y, K, W)
    share = np.array([W[c == Y].sum() for c in range(K)]) / M
    best = shifts.best(np.zeros((M, K)))
    np.testing.assert_allclose(best, np.log(share) - np.log(share).mean(), atol=1e-12)


@pytest.mark.parametrize(("size", "most"), [(1.0, 8), (10.0, 14), (3000.0, 400)])
def test_how_many_steps_it_takes(size, most):
    """A few; predictions in the thousands are approached from a distance."""

    class Watched(SoftmaxShifts):
        passes = 0

        def _sides(self, z, b):
            self.passes += 1
            return super()._sides(z, b)

    shifts = Watched(Y, K, W)
    best = shifts.best(size * Z)
    assert shifts.passes <= most
    slopes = losses.Softmax().slope(size * Z + best, Y) * W[:, None]
    assert np.abs(slopes.sum(axis=0)).max() <= 1e-9 * np.abs(slopes).sum()


@pytest.mark.parametrize("loss", [losses.Softmax(), losses.Outputs(losses.Logistic())], ids=repr)
def test_the_inverse_is_that_of_the_second_derivative_in_b(loss):
    if isinstance(loss, losses.Softmax):
        y, shifts = Y, SoftmaxShifts(Y, K, W)
    else:
        y = np.where(RNG.random((M, K)) < 0.5, -1.0, 1.0)
        shifts = shifts_for(loss, y, K, W)
        assert isinstance(shifts, OutputShifts)

    def gradient(b):
        return (W[:, None] * loss.slope(Z + b, y)).sum(axis=0) / M

    h = 1e-6
    bend = np.array([(gradient(B + h * e) - gradient(B - h * e)) / (2 * h) for e in np.eye(K)])
    inverse = shifts.inverse(loss.second(Z + B, y))
    rank = K - 1 if isinstance(loss, losses.Softmax) else K
    assert np.linalg.matrix_rank(inverse, tol=1e-8) == rank
    np.testing.assert_allclose(bend @ inverse @ bend, bend, atol=1e-8)


@pytest.mark.parametrize("loss", [losses.Squared(), losses.Huber(0.4), losses.Poisson()], ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_targets_have_intercepts_of_their_own(loss, dtype):
    """The weighted mean of what is left for a parabola, a search for others."""
    y = RNG.poisson(3.0, (M, 2)).astype(dtype)
    z = (0.3 * RNG.normal(size=(M, 2))).astype(dtype)
    shifts = OutputShifts(losses.Outputs(loss), y, W.astype(dtype))
    best = shifts.best(z)
    assert best.dtype == dtype
    assert (shifts.columns is None) == isinstance(loss, losses.Squared)
    if isinstance(loss, losses.Squared):
        np.testing.assert_allclose(best, W @ (y - z) / W.sum(), rtol=1e-5)
    slopes = (W[:, None] * loss.slope(z + best, y)).sum(axis=0)
    digits = 1e-10 if dtype == np.float64 else 1e-4
    assert np.abs(slopes).max() <= digits * M


def test_a_flat_target_has_no_second_derivative_to_invert():
    shifts = OutputShifts(losses.Outputs(losses.Huber(0.1)), np.ones((3, 2)), np.ones(3))
    s = np.array([[2.0, 0.0], [2.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(shifts.inverse(s), [[0.75, 0.0], [0.0, 0.0]])


def test_what_has_no_intercept_is_refused():
    with pytest.raises(ValueError, match="got none of class number 2"):
        SoftmaxShifts(np.array([0, 1, 1]), 3, np.ones(3))
    with pytest.raises(ValueError, match="got none of class number 0"):
        SoftmaxShifts(np.array([0, 1, 2]), 3, np.array([0.0, 1.0, 1.0]))

    class Other(losses.Softmax):
        pass

    assert isinstance(shifts_for(Other(), Y, K, W), SoftmaxShifts)
    with pytest.raises(TypeError, match="the best intercepts for 3 are not known"):
        shifts_for(3, Y, K, W)
