"""One pass of `partial_fit`, done by hand."""

import numpy as np
import pytest

from adafw.fitting import Design, Settings
from adafw.sklearn import stream
from adafw.sklearn.stream import _BATCH, Stream


@pytest.mark.parametrize("weighted", [False, True])
def test_passes_are_steps_on_batches_in_a_new_order_each(weighted):
    """Projected AdaGrad on g = sum w_i slope_i a_i / (b * mean w), the intercept likewise."""
    rng = np.random.default_rng(0)
    m = 2 * _BATCH
    A, y = rng.normal(size=(m, 3)), rng.normal(size=m) + 2
    w = rng.integers(0, 9, m).astype(float) if weighted else None
    settings = Settings(radius=0.7, learning_rate=0.3, loss="squared", seed=5)
    plan = settings.plan("regression")
    design = Design(A, w)
    s = Stream.begin(design, y, plan, None, 0.25)
    x, b, sums, squares, t = np.zeros(3), 0.25, np.zeros(3), 0.0, 0
    for _ in range(2):
        s = s.advance(design, y, plan)
        order = np.random.default_rng([5, t]).permutation(m)
        for batch in (order[:_BATCH], order[_BATCH:]):
            each = 2 * (A[batch] @ x + b - y[batch])
            each = each * (1.0 if w is None else w[batch] / w.mean()) / _BATCH
            g = each @ A[batch]
            sums = sums + g**2
            h = 1e-8 + np.sqrt(sums)
            x = plan.constraint.project(x - 0.3 * g / h, h)
            squares += each.sum() ** 2
            b -= 0.3 * each.sum() / (1e-8 + np.sqrt(squares))
            t += 1
        np.testing.assert_allclose(s.coef, x, rtol=1e-9)
        assert s.intercept == pytest.approx(b, rel=1e-9)
        assert s.t == t


def test_batches_without_weight_are_passed_over():
    """They have no gradient; a mean of weights 0 would be none."""
    rng = np.random.default_rng(1)
    A, y = rng.normal(size=(2 * _BATCH, 2)), rng.normal(size=2 * _BATCH)
    plan = Settings(radius=0.7, learning_rate=0.3, loss="squared", seed=5).plan("regression")
    order = np.random.default_rng([5, 0]).permutation(len(y))
    w = np.zeros(len(y))
    w[order[_BATCH:]] = 1.0
    s = Stream.begin(Design(A, w), y, plan, None, 0.0).advance(Design(A, w), y, plan)
    assert s.t == 1
    assert np.isfinite(s.coef).all()
    assert s.coef.any()


def test_an_intercept_without_a_derivative_stays():
    A, y = np.ones((4, 1)), np.zeros(4)
    plan = Settings(radius=0.7, learning_rate=0.3, loss="squared", seed=5).plan("regression")
    s = Stream.begin(Design(A), y, plan, None, 0.0).advance(Design(A), y, plan)
    assert s.intercept == 0


def test_several_outputs_have_an_intercept_each():
    rng = np.random.default_rng(2)
    A, Y = rng.normal(size=(50, 3)), rng.normal([2.0, -1.0], size=(50, 2))
    given = dict(radius=0.7, learning_rate=0.3, loss="squared")
    plan = Settings(**given).plan("regression", 2, 3)
    begun = np.array([0.25, 0.5])
    s = Stream.begin(Design(A), Y, plan, None, begun).advance(Design(A), Y, plan)
    each = 2 * (begun - Y) / 50
    g, slope = A.T @ each, each.sum(axis=0)
    h = 1e-8 + np.abs(g)
    np.testing.assert_allclose(s.coef, plan.constraint.project(-0.3 * g / h, h), rtol=1e-9)
    np.testing.assert_allclose(s.intercept, begun - 0.3 * slope / (1e-8 + np.abs(slope)))
    fixed = Settings(**given, fit_intercept=False).plan("regression", 2, 3)
    s = Stream.begin(Design(A), Y, fixed, None, begun).advance(Design(A), Y, fixed)
    np.testing.assert_array_equal(s.intercept, begun)


@pytest.mark.parametrize(("given", "left"), [(None, np.inf), (7.0, 7.0)])
def test_a_rate_is_searched_in_the_seconds_given(monkeypatch, given, left):
    asked = []

    def search(f, constraint, preset, seconds):
        asked.append((f.n_terms, constraint.scale, preset(0.5).name, seconds))
        return 0.1

    monkeypatch.setattr(stream, "search", search)
    plan = Settings(radius=0.7, loss="squared", max_seconds=given).plan("regression")
    s = Stream.begin(Design(np.eye(5)), np.arange(5.0), plan, None, 0.0)
    assert asked == [(5, 0.7, "AdaGrad", left)]
    assert s.learning_rate == 0.1
