"""Objectives as second-order steps see them: against derivatives of the objective itself."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.objectives import MatrixModel, WithIntercept
from adafw.rows import MatrixRows, as_rows
from adafw.steps.corrective import curvature
from adafw.steps.corrective.curvature import (
    JointPredictions,
    Points,
    Predictions,
    column_weights,
    view,
)
from adafw.steps.corrective.nearly import forms_matrix

M, N = 50, 6


def data(seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((M, N)) * np.geomspace(0.5, 4, N) * (rng.random((M, N)) < 0.6) + 0.2
    return A, np.where(rng.random(M) < 0.4, 1.0, -1.0), rng.uniform(0.1, 2.0, M), rng


def model(kind, weighted, intercept, loss=losses.Logistic()):
    A, y, w, rng = data()
    stored = A if kind == "dense" else sparse.csr_array(A)
    rows = as_rows(stored)
    rows = rows.centred()[0] if kind == "centred" else rows
    f = adafw.LinearModel(rows, y, loss, w if weighted else None)
    return (WithIntercept(f) if intercept else f), rng.standard_normal(N) / 2, rng


def test_weights_of_columns_are_their_mean_squares_or_their_variances():
    A, _, w, _ = data()
    w /= w.mean()
    A[:, 2], A[:, 4] = 0.0, 7.0
    mean = w @ A / M
    squares, spread = w @ A**2 / M, w @ (A - mean) ** 2 / M
    squares[2] = squares.max()  # a column of zeros weighs as much as the heaviest
    spread[[2, 4]] = spread.max()  # a constant one, too, where the mean does not count
    np.testing.assert_allclose(column_weights(as_rows(A), w, False), squares)
    np.testing.assert_allclose(column_weights(as_rows(A), w, True), spread)
    np.testing.assert_array_equal(column_weights(as_rows(0 * A), w, False), 1.0)
    np.testing.assert_array_equal(column_weights(as_rows(0 * A + 3), w, True), 1.0)
    # Rounding of a column far from 0 is no spread.
    A[:, 4] = 1e8 + 1e-2 * (np.arange(M) % 2)
    np.testing.assert_allclose(column_weights(as_rows(A), w, True)[4], spread.max())


def test_a_matrix_is_made_of_few_columns():
    few = sparse.csr_array((np.ones(40), np.arange(40), np.arange(41)), shape=(40, 500))
    assert forms_matrix(as_rows(np.ones((3, 200))))
    assert not forms_matrix(as_rows(np.ones((3, 201))))
    assert forms_matrix(as_rows(few))
    assert forms_matrix(as_rows(few).centred()[0])  # by what is stored
    assert not forms_matrix(
        as_rows(sparse.csr_array((few.data, few.indices, few.indptr), (40, 501)))
    )
    long = sparse.csr_array(np.hstack([np.ones((3, 40)), np.zeros((3, 170))]))
    assert as_rows(long).gram_products == 20  # more than 16 products
    assert not forms_matrix(as_rows(long))
    assert forms_matrix(as_rows(long[:, :200]))
    assert not forms_matrix(MatrixRows(as_rows(np.ones((3, 6))), (2, 3)))


@pytest.mark.parametrize("matrix", [True, False])
@pytest.mark.parametrize("kind", ["dense", "csr", "centred"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_linear_models_have_their_own_derivatives(kind, weighted, intercept, matrix, monkeypatch):
    if not matrix:
        monkeypatch.setattr(curvature, "forms_matrix", lambda rows: False)
    f, x, rng = model(kind, weighted, intercept)
    seen = view(f)
    assert type(seen) is Predictions
    A = np.column_stack([f.rows.dot(e) for e in np.eye(N)])
    z, w = seen.predictions(x), seen.weights(x)
    np.testing.assert_allclose(z, A @ x, atol=1e-13)
    np.testing.assert_allclose(seen.predict(x), A @ x, atol=1e-13)
    assert seen.value(z) == pytest.approx(f.value(x), rel=1e-13)
    np.testing.assert_allclose(seen.gradient(z), f.gradient(x), atol=1e-14)
    each = (f.model if intercept else f).sample_weight
    each = np.ones(M) / M if each is None else each / each.sum()
    centre = each @ A if intercept else 0
    np.testing.assert_allclose(w, each @ (A - centre) ** 2, rtol=1e-9)
    h = seen.hessian(z, w)
    H = f.hessian(x)
    bends = (f.model if intercept else f).seconds_at(z + (f.best_intercept(x) if intercept else 0))
    np.testing.assert_allclose(h.scale, w * bends.mean())
    d = rng.standard_normal(N)
    image, move = h.product(d)
    np.testing.assert_allclose(image, H @ d, atol=1e-12)
    assert (h.matrix is not None) is matrix
    near = h.nearly()
    np.testing.assert_array_equal(near.rest, h.scale)
    assert near.V.shape == (N, 0)
    if matrix:
        np.testing.assert_allclose(h.matrix, H, atol=1e-13)
        assert move.size == 0
        return
    np.testing.assert_allclose(move, A @ d, atol=1e-13)
    np.testing.assert_allclose(h.image(A @ d), H @ d, atol=1e-12)
    assert not h.image(np.zeros(M)).any()
    listed = kind == "csr" or (kind == "centred" and intercept)
    assert (h.columns is not None) is listed
    if listed:
        own = h.columns()
        turned = sparse.csr_array(own.arrays, shape=(N, M)).toarray()
        less = np.outer(own.mixed, own.mixed) / own.total if intercept else 0
        assert intercept or own.total == 0
        np.testing.assert_allclose(turned @ (own.bends[:, None] * turned.T) - less, H, atol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
def test_moves_that_went_too_far_raise_the_model(intercept):
    f, x, rng = model("dense", True, intercept, losses.SquaredHinge())
    seen, tried = view(f), [8 * rng.standard_normal(N), -3 * rng.standard_normal(N)]
    z = seen.predictions(x)
    h = seen.hessian(z, seen.weights(x), [seen.predict(d) for d in tried])
    np.testing.assert_allclose(h.matrix, f.hessian(x, tried), atol=1e-12)
    assert np.abs(h.matrix - f.hessian(x)).max() > 0.1


def test_flat_losses_have_a_model_all_the_same():
    A, _, _, _ = data()
    f = WithIntercept(adafw.LinearModel(A, 1e3 * np.sign(np.arange(M) - 24.5), losses.Huber(1.0)))
    seen = view(f)
    h = seen.hessian(seen.predict(np.zeros(N)), np.arange(1.0, N + 1))
    np.testing.assert_array_equal(h.scale, np.arange(1.0, N + 1))
    assert not h.product(np.ones(N))[0].any()


def test_what_was_computed_at_z_is_remembered_for_it():
    f, x, _ = model("dense", False, False)
    seen = Predictions(f)
    z = f.rows.dot(x)
    first = seen._curves(z)
    assert seen._curves(z) is not None
    assert seen._curves(z.copy())[1] is first[1]
    assert seen._curves(z + 1)[1] is not first[1]
    assert seen.value(z + 1) == pytest.approx(f.value_at(z + 1))


def test_a_matrix_of_few_sparse_columns_follows_the_rows_whose_bends_have_changed():
    f, x, rng = model("csr", True, False)
    A, seen, bends = f.rows.matrix.toarray(), Predictions(f), rng.uniform(0.5, 1.0, M)
    plain = seen._gram(bends)
    np.testing.assert_allclose(plain, A.T @ (bends[:, None] * A), atol=1e-12)
    memory: Any = {"weights": x}
    seen.memory = memory
    first = seen._gram(bends)
    assert first is memory["gram"]
    assert memory["bends"] is not bends
    now = bends.copy()
    now[:5], now[5], now[6] = 1.1 * bends[:5], 1.3 * bends[5], 1.005 * bends[6]
    for exact, rows in ((False, [5]), (True, [0, 1, 2, 3, 4, 5])):
        seen.exact = exact
        assert seen._gram(now) is first
        known = bends.copy()
        known[rows] = now[rows]
        np.testing.assert_array_equal(memory["bends"], known)
        np.testing.assert_allclose(first, A.T @ (known[:, None] * A), atol=1e-12)
    for name, other in (("gram", np.eye(N - 1)), ("bends", np.ones(M - 1)), ("gram", None)):
        seen.memory = damaged = {**memory, name: other}
        np.testing.assert_allclose(seen._gram(now), A.T @ (now[:, None] * A), atol=1e-12)
        assert damaged["gram"].shape == (N, N)
        assert damaged["bends"].shape == (M,)
    # A row that counts for little waits while the model may be rough.
    light = np.where(np.arange(M) == 3, 0.1, 1.0)
    seen.memory = memory = {}
    seen._gram(light)
    light = np.where(np.arange(M) == 3, 0.15, 1.0)
    for exact, bend in ((False, 0.1), (True, 0.15)):
        seen.exact = exact
        seen._gram(light)
        assert memory["bends"][3] == bend


def test_single_precision_stays():
    A, y, w, _ = data()
    f = adafw.LinearModel(A.astype(np.float32), y.astype(np.float32), losses.Logistic(), w)
    seen, x = view(f), np.ones(N, np.float32)
    z = seen.predictions(x)
    weights = seen.weights(x)
    h = seen.hessian(z, weights)
    for part in (z, weights, seen.gradient(z), h.scale, h.matrix, h.product(x)[0]):
        assert part.dtype == np.float32


def test_matrices_of_single_numbers_are_not_kept():
    A, y, _, _ = data()
    f = adafw.LinearModel(sparse.csr_array(A.astype(np.float32)), y, losses.Logistic())
    seen, x = view(f), np.ones(N, np.float32)
    assert f.rows.gram_grows
    seen.memory = {}
    h = seen.hessian(seen.predictions(x), seen.weights(x))
    assert h.matrix.dtype == np.float32
    assert seen.memory == {}


def test_a_matrix_that_is_kept_is_without_the_intercept():
    f, x, _ = model("csr", True, True)
    seen, plain = view(f), view(f.model)
    seen.memory, z = {}, seen.predictions(x)
    for _ in range(2):
        h = seen.hessian(z, seen.weights(x))
        np.testing.assert_allclose(h.matrix, f.hessian(x), atol=1e-13)
        kept = plain.hessian(z + f.best_intercept(x), seen.weights(x)).matrix
        np.testing.assert_allclose(seen.memory["gram"], kept, atol=1e-13)


def test_rough_products_are_those_of_models_that_may_be_rough():
    A = np.random.default_rng(0).standard_normal((4100, 256))
    f = adafw.LinearModel(A, np.sign(A[:, 0]), losses.Logistic())
    seen = Predictions(f)
    assert not seen.rough  # all digits, unless told otherwise
    exact = seen.hessian(np.zeros(4100), np.ones(256)).product(A[0])[0]
    seen.exact = False
    assert seen.rough
    rough = seen.hessian(np.zeros(4100), np.ones(256)).product(A[0])[0]
    assert 1e-9 < np.abs(rough - exact).max() / np.abs(exact).max() < 1e-5


# Several outputs ---------------------------------------------------------------------------------


def joint(loss, intercept, flat=False):
    A, _, w, rng = data()
    y = rng.integers(0, 3, M) if loss.coupled else rng.standard_normal((M, 3))
    f = MatrixModel(A, y, loss, w, n_outputs=3, intercept=intercept)
    return f, JointPredictions(f, flat), rng.standard_normal((N, 3)) / 2, rng, A


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [losses.Softmax(), losses.Outputs(losses.Squared())])
def test_several_outputs_have_their_own_derivatives(loss, intercept, flat):
    f, seen, x, rng, A = joint(loss, intercept, flat)
    shape = (-1,) if flat else (N, 3)
    z = seen.predictions(x.reshape(shape))
    np.testing.assert_allclose(z, A @ x, atol=1e-13)
    np.testing.assert_allclose(seen.predict(x.reshape(shape)), A @ x, atol=1e-13)
    assert seen.value(z) == pytest.approx(f.value(x), rel=1e-13)
    g = seen.gradient(z)
    np.testing.assert_allclose(g, f.gradient(x).reshape(shape), atol=1e-14)
    each = f.sample_weight / f.sample_weight.sum()
    spread = each @ (A - (each @ A if intercept else 0)) ** 2
    np.testing.assert_allclose(seen.spread(), spread, rtol=1e-9)
    weights = seen.weights(x.reshape(shape))
    np.testing.assert_allclose(weights, np.tile(spread[:, None], 3).reshape(shape), rtol=1e-9)
    h = seen.hessian(z, weights)
    d = rng.standard_normal((N, 3))
    image, move = h.product(d.reshape(shape))
    np.testing.assert_allclose(image, f.hessian_product(x)(d).reshape(shape), atol=1e-13)
    np.testing.assert_allclose(move, A @ d, atol=1e-13)
    s = f.seconds_at(z + f.shift(z))
    totals = each @ (s * (1 - s) if loss.coupled else s)
    np.testing.assert_allclose(seen.totals(s), totals)
    np.testing.assert_allclose(h.scale, (spread[:, None] * totals).reshape(shape), rtol=1e-9)


def test_second_derivatives_of_several_outputs_are_raised_by_means():
    f, seen, x, rng, _ = joint(losses.Softmax(), True)
    z, moves = seen.predictions(x), [rng.standard_normal((M, 3)), rng.standard_normal((M, 3))]

    def at(z):
        return f.seconds_at(z + f.shift(z))

    np.testing.assert_allclose(seen.seconds(z), at(z))
    once = (at(z) + at(z + moves[0])) / 2
    np.testing.assert_allclose(seen.seconds(z, moves[:1]), once)
    np.testing.assert_allclose(seen.seconds(z, moves), (once + at(z + moves[1])) / 2)


def test_flat_losses_of_several_outputs_keep_some_curvature():
    f, seen, _, _, _ = joint(losses.Outputs(losses.Huber(0.5)), False)
    z = np.where(np.arange(M)[:, None] % 5, f.y + 9, f.y)
    s = seen.seconds(z)
    assert s.max() == f.seconds_at(f.y).max()
    assert s.min() == pytest.approx(1e-6 * s.max())
    dead = np.array([1.0, 1e-9, 0.0]) * np.ones((M, 1))
    np.testing.assert_allclose(seen.totals(dead), [1.0, 1e-3, 1e-3])
    assert (seen.totals(0 * dead) > 0).all()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("flat", [False, True])
def test_several_outputs_stay_single(flat, intercept):
    A, _, w, rng = data()
    f = MatrixModel(
        A.astype(np.float32), rng.integers(0, 3, M), losses.Softmax(), w, intercept=intercept
    )
    seen, x = JointPredictions(f, flat), np.ones(3 * N if flat else (N, 3), np.float32)
    z, weights = seen.predictions(x), seen.weights(x)
    h = seen.hessian(z, weights)
    for part in (z, weights, h.scale, h.product(x)[1]):
        assert part.dtype == np.float32


# Any objective -----------------------------------------------------------------------------------


def test_other_objectives_are_seen_as_they_are():
    H = np.diag([1.0, 5.0, 9.0])
    f: Any = adafw.objectives.Quadratic(np.zeros(3), np.ones(3), H)
    f.hessian_product = lambda x: lambda d: H @ d
    seen = view(f)
    assert type(seen) is Points
    x = np.array([1.0, -1.0, 2.0])
    assert seen.predict(x) is x
    assert seen.predictions(x) is x
    assert seen.value(x) == f.value(x)
    np.testing.assert_array_equal(seen.gradient(x), f.gradient(x))
    np.testing.assert_array_equal(seen.weights(x), 1.0)
    h = seen.hessian(x, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(h.scale, [5, 10, 15])
    image, move = h.product(x)
    np.testing.assert_array_equal(image, H @ x)
    assert move is x
    f.hessian_product = lambda x: lambda d: 0 * d
    np.testing.assert_array_equal(seen.hessian(x, np.ones(3)).scale, 1)
    f.hessian_product = lambda x: lambda d: -d
    np.testing.assert_array_equal(seen.hessian(x, np.ones(3)).scale, 1)
    assert not seen.rough
    assert seen.exact
