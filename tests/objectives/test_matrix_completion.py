"""MatrixCompletion against loops over the observations, and against one-hot rows."""

import numpy as np
import pytest

import adafw

SHAPE = (4, 3)


def observations(m=9, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(0, SHAPE[0], m), rng.integers(0, SHAPE[1], m)
    rows[-1], cols[-1] = rows[0], cols[0]  # one entry observed twice
    return rows, cols, rng.standard_normal(m).astype(dtype)


def one_hot(rows, cols):
    A = np.zeros((len(rows), SHAPE[0] * SHAPE[1]))
    A[np.arange(len(rows)), rows * SHAPE[1] + cols] = 1
    return A


def test_value_and_gradient_are_those_of_the_loop():
    rows, cols, values = observations()
    f = adafw.MatrixCompletion(rows, cols, values, SHAPE)
    X = np.random.default_rng(1).standard_normal(SHAPE)
    value, gradient = 0.0, np.zeros(SHAPE)
    for r, c, v in zip(rows, cols, values, strict=True):
        value += (X[r, c] - v) ** 2 / 9
        gradient[r, c] += 2 * (X[r, c] - v) / 9
    assert f.value(X) == pytest.approx(value, rel=1e-14)
    np.testing.assert_allclose(f.gradient(X), gradient, rtol=1e-14, atol=1e-16)
    unseen = np.ones(SHAPE, bool)
    unseen[rows, cols] = False
    assert unseen.any()
    assert (f.gradient(X)[unseen] == 0).all()
    assert f.convex
    assert f.n_terms == 9
    assert f.shape == SHAPE


def test_batches_are_observations_with_repeats():
    rows, cols, values = observations()
    f = adafw.MatrixCompletion(rows, cols, values, SHAPE)
    X, batch = np.random.default_rng(1).standard_normal(SHAPE), np.array([0, 3, 3, 8])
    gradient = np.zeros(SHAPE)
    for i in batch:
        gradient[rows[i], cols[i]] += 2 * (X[rows[i], cols[i]] - values[i]) / 4
    np.testing.assert_allclose(f.gradient(X, batch), gradient, rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize(
    "algorithm",
    [
        adafw.FW(adafw.steps.LineSearch()),
        adafw.FW(adafw.steps.ShortStep()),
        adafw.SFW(batch_size=3),
        adafw.CSFW(batch_size=2),
        adafw.AdaCSFW(learning_rate=0.1, batch_size=2),
        adafw.AdaSVRF(learning_rate=0.1),
        adafw.AdaGrad(learning_rate=0.1, batch_size=2),
    ],
    ids=str,
)
def test_runs_are_those_of_the_linear_model_with_one_hot_rows(algorithm):
    rows, cols, values = observations()
    f = adafw.MatrixCompletion(rows, cols, values, SHAPE)
    flat = adafw.LinearModel(one_hot(rows, cols), values, adafw.losses.Squared())
    a = adafw.minimize(f, adafw.L1Ball(2.0), algorithm, max_iterations=30)
    b = adafw.minimize(flat, adafw.L1Ball(2.0), algorithm, max_iterations=30)
    np.testing.assert_allclose(a.x.reshape(-1), b.x, rtol=1e-9, atol=1e-12)
    assert a.x.shape == SHAPE
    assert a.value == pytest.approx(b.value, rel=1e-9)


def test_smoothness_counts_repeated_observations():
    rows, cols, values = observations()
    f = adafw.MatrixCompletion(rows, cols, values, SHAPE)
    A = one_hot(rows, cols)
    assert f.smoothness == pytest.approx(2 * np.linalg.norm(A, 2) ** 2 / 9, rel=1e-14)
    assert f.curvature == 2.0


def test_keeps_float32_and_tells_itself_from_another():
    rows, cols, values = observations(dtype=np.float32)
    f = adafw.MatrixCompletion(rows, cols, values, SHAPE)
    assert f.dtype == f.gradient(np.zeros(SHAPE, np.float32)).dtype == np.float32
    r = adafw.minimize(f, adafw.L2Ball(1.0), adafw.CSFW(), max_iterations=5)
    assert r.x.dtype == np.float32
    cols = cols.copy()
    cols[3] = (cols[3] + 1) % SHAPE[1]
    assert adafw.MatrixCompletion(rows, cols, values, SHAPE).describe() != f.describe()
    assert repr(f) == "LinearModel(9 entries of 4 x 3, Squared)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 4], [0, 0], [1.0, 2.0], SHAPE), "rows must lie between 0 and 3, got 0 to 4"),
        (([0, 1], [0, -1], [1.0, 2.0], SHAPE), "cols must lie between 0 and 2, got -1 to 0"),
        (([0.5], [0], [1.0], SHAPE), "rows must be a vector of integers, got float64"),
        (([True], [0], [1.0], SHAPE), "rows must be a vector of integers, got bool"),
        (([[0]], [0], [1.0], SHAPE), "rows must be a vector of integers"),
        (([0, 1], [0], [1.0], SHAPE), "must be vectors of one length, got shapes"),
        (([0], [0], [[1.0]], SHAPE), "must be vectors of one length, got shapes"),
        (([0], [0], [np.nan], SHAPE), "values must be finite, got NaN or infinity"),
        (([], [], [], SHAPE), "values must have at least one entry"),
        (([0], [0], [1.0], 5), "shape must be a pair of integers >= 1, got 5"),
        (([0], [0], [1.0], (3, 0)), "each number of shape must be an integer >= 1, got 0"),
        (([0], [0], [1.0], (3, 1.5)), "each number of shape must be an integer >= 1, got 1.5"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        adafw.MatrixCompletion(*arguments)
