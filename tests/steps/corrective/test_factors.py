"""Low-rank matrices as products of factors: predictions, slopes and curvature, one by one."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.objectives import MatrixModel, WithIntercept
from adafw.rows import EntryRows, MatrixRows, as_rows
from adafw.steps.corrective.factors import (
    Factored,
    JointFactored,
    as_factors,
    balanced,
    leading,
)
from adafw.steps.corrective.observed import Observed

SHAPE, M, RANK = (6, 4), 40, 2


def entries(seed=0):
    rng = np.random.default_rng(seed)
    rows, cols = np.sort(rng.integers(0, 6, M)), rng.integers(0, 4, M)
    return rows, cols, np.where(rng.random(M) < 0.5, 1.0, -1.0), rng


def views() -> Any:
    """(name, view, samples as a dense (M, 24) matrix, f as a function of z)."""
    rows, cols, y, rng = entries()
    places = np.zeros((M, 24))
    places[np.arange(M), 4 * rows + cols] = 1.0
    f = adafw.LinearModel(EntryRows(rows, cols, SHAPE, np.dtype(float)), y, losses.Logistic())
    yield "entries", Factored(f, SHAPE), places, f
    base = rng.standard_normal(M)
    seen = Observed(rows.astype(np.int32), cols.astype(np.int32), SHAPE, y, base, losses.Logistic())
    yield "observed", seen, places, adafw.LinearModel(places, y, losses.Logistic())
    dense = rng.standard_normal((M, 24))
    f = adafw.LinearModel(MatrixRows(as_rows(dense), SHAPE), y, losses.Logistic(), rng.random(M))
    yield "matrices", Factored(f, SHAPE), dense, f
    whole = WithIntercept(f)
    yield "intercept", Factored(whole, SHAPE), dense, whole
    flat = adafw.LinearModel(dense, y, losses.Logistic())
    yield "vectors", Factored(flat, SHAPE), dense, flat


VIEWS = list(views())


def point(seed=1):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((6, RANK)), rng.standard_normal((4, RANK)), rng


@pytest.mark.parametrize(("name", "seen", "A", "f"), VIEWS, ids=[v[0] for v in VIEWS])
def test_views_are_derivatives_of_the_objective(name, seen, A, f):
    left, right, rng = point()
    x = left @ right.T
    z = seen.predict(left, right)
    np.testing.assert_allclose(z, A @ x.reshape(-1), atol=1e-12)
    # Columns of memory in another order are no other matrix.
    turned = seen.predict(np.asfortranarray(left), np.asfortranarray(right))
    np.testing.assert_allclose(turned, z, atol=1e-12)
    if name == "observed":
        value = np.mean(losses.Logistic().value(z + seen.base, seen.y))
    else:
        value = f.value(x.reshape(f.shape))
    assert seen.value(z) == pytest.approx(value, rel=1e-12)
    step = 1e-6 * rng.standard_normal(M)
    change = (seen.value(z + step) - seen.value(z - step)) / 2
    assert seen.slopes(z) @ step == pytest.approx(change, rel=1e-5, abs=1e-14)
    bend = seen.bends(z)
    move = seen.bending(bend)(step)
    slopes = (seen.slopes(z + step) - seen.slopes(z - step)) / 2
    np.testing.assert_allclose(move, slopes, atol=1e-12)
    weights = rng.standard_normal(M)
    found = seen.matrix(weights)
    assert sparse.issparse(found) is (name in ("entries", "observed"))
    found = found.toarray() if sparse.issparse(found) else found
    assert found.shape == SHAPE
    np.testing.assert_allclose(found.reshape(-1), weights @ A, atol=1e-12)
    assert seen.least <= seen.value(z)


@pytest.mark.parametrize(("name", "seen", "A", "f"), VIEWS, ids=[v[0] for v in VIEWS])
def test_diagonals_are_those_of_the_hessian_in_the_factors(name, seen, A, f):
    """But for products of different entries of one sample."""
    left, right, _ = point()
    bends = seen.bends(seen.predict(left, right))
    squares = (bends @ A**2).reshape(SHAPE)
    of_left, of_right = seen.diagonals(bends, left, right)
    np.testing.assert_allclose(of_left, squares @ right**2, rtol=1e-10)
    np.testing.assert_allclose(of_right, squares.T @ left**2, rtol=1e-10)
    of_left, of_right = seen.diagonals(0 * bends, left, right)
    assert not of_left.any()
    assert not of_right.any()


def test_bends_are_never_quite_zero():
    rows, cols, y, _ = entries()
    f = adafw.LinearModel(EntryRows(rows, cols, SHAPE, np.dtype(float)), y, losses.Huber(0.5))
    observed = Observed(rows.astype(np.int32), cols.astype(np.int32), SHAPE, y, 0 * y,
                        losses.Huber(0.5))  # fmt: skip
    for seen in (Factored(f, SHAPE), observed):
        bends = seen.bends(np.where(np.arange(M) % 2, y, y + 9))
        assert bends.max() == pytest.approx(2 / M)
        assert bends.min() == pytest.approx(2e-6 / M, rel=1e-9, abs=0)


def test_observed_entries_know_what_no_value_is_below():
    rows, cols, _, rng = entries()
    y = rng.poisson(2.0, M).astype(float)
    args = rows.astype(np.int32), cols.astype(np.int32), SHAPE, y, 0 * y
    seen = Observed(*args, losses.Poisson())
    assert seen.least == pytest.approx(np.mean(losses.Poisson().least(y)))
    assert seen.starts.tolist() == [0, *np.cumsum(np.bincount(rows, minlength=6)).tolist()]
    assert Factored(VIEWS[0][3], SHAPE).least == -np.inf


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [losses.Softmax(), losses.Outputs(losses.Squared())])
def test_several_outputs_are_derivatives_of_the_objective(loss, intercept):
    left, right, rng = point()
    A = rng.standard_normal((M, 6))
    y = rng.integers(0, 4, M) if loss.coupled else rng.standard_normal((M, 4))
    f = MatrixModel(A, y, loss, rng.random(M), intercept=intercept)
    seen, x = JointFactored(f), left @ right.T
    z = seen.predict(left, right)
    assert seen.shape == SHAPE
    np.testing.assert_allclose(z, A @ x, atol=1e-12)
    assert seen.value(z) == pytest.approx(f.value(x), rel=1e-12)
    np.testing.assert_allclose(seen.matrix(seen.slopes(z)), f.gradient(x), atol=1e-13)
    d = rng.standard_normal((6, 4))
    bend = seen.bends(z)
    image = seen.matrix(seen.bending(bend)(A @ d))
    np.testing.assert_allclose(image, f.hessian_product(x)(d), atol=1e-12)
    other = z + 1.0
    assert seen.value(other) == pytest.approx(f.value_at(other + f.shift(other)))
    w = f.term_weights / f.n_terms
    each = w @ (bend * (1 - bend) if loss.coupled else bend)
    spread = w @ (A - (w @ A if intercept else 0)) ** 2
    low = A @ left
    size = w @ (low - low.mean(axis=0)) ** 2
    of_left, of_right = seen.diagonals(bend, left, right)
    np.testing.assert_allclose(of_left, np.outer(spread, each @ right**2), rtol=1e-9)
    np.testing.assert_allclose(of_right, np.outer(each, size), rtol=1e-9)


@pytest.mark.parametrize("kind", ["small", "large", "sparse"])
def test_leading_singular_pairs(kind):
    rng = np.random.default_rng(2)
    side = 30 if kind == "small" else 210
    G: Any = rng.standard_normal((side, side + 5)) @ np.diag(np.geomspace(1, 1e-3, side + 5))
    if kind == "sparse":
        G = sparse.csr_array(np.where(rng.random(G.shape) < 0.2, G, 0))
    u, s, v = leading(G, 3)
    full = G.toarray() if kind == "sparse" else G
    np.testing.assert_allclose(s, np.linalg.svd(full, compute_uv=False)[:3], rtol=1e-9)
    assert (u.shape, v.shape) == ((side, 3), (side + 5, 3))
    np.testing.assert_allclose(full @ v, u * s, atol=1e-7)
    np.testing.assert_allclose(full.T @ u, v * s, atol=1e-7)
    again = leading(G, 3)
    for one, other in zip((u, s, v), again, strict=True):
        np.testing.assert_array_equal(one, other)  # always from the same start


def test_leading_pairs_of_nothing():
    for G in (np.zeros((3, 4)), sparse.csr_array((210, 220)), np.zeros((210, 220))):
        u, s, v = leading(G, 2)
        assert not s.any()
        assert (u.shape[0], v.shape[0]) == G.shape


def test_factors_are_as_short_as_they_can_be_and_inside_the_ball():
    left, right, _ = point()
    x = left @ right.T
    nuclear = np.linalg.svd(x, compute_uv=False).sum()
    for radius in (2 * nuclear, nuclear / 2):
        for a, b in (as_factors(x, radius), balanced(left, right, radius)):
            share = min(1.0, radius / nuclear)
            np.testing.assert_allclose(a @ b.T, share * x, atol=1e-12)
            assert (a**2).sum() == pytest.approx(share * nuclear)
            assert (b**2).sum() == pytest.approx(share * nuclear)
            assert a.shape[1] == b.shape[1] == RANK
            assert a.flags.c_contiguous
            assert b.flags.c_contiguous
    a, b = as_factors(np.zeros(SHAPE), 1.0)
    assert (a.shape, b.shape) == ((6, 0), (4, 0))
    assert balanced(a, b, 1.0) == (a, b)
    wide = balanced(np.ones((2, 5)), np.ones((3, 5)), 100.0)
    np.testing.assert_allclose(wide[0] @ wide[1].T, np.full((2, 3), 5.0))


def test_factors_of_single_numbers_are_double():
    left, right, _ = point()
    x = (left @ right.T).astype(np.float32)
    for factor in as_factors(x, 100.0):
        assert factor.dtype == np.float64
    a, b = as_factors(x, 100.0)
    np.testing.assert_allclose(a @ b.T, x, atol=1e-12)
