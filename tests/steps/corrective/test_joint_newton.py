"""The matrix of several outputs against products with the Hessian, one coefficient at a time."""

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.steps.corrective.joint_newton import JointGram, JointPoint, JointRows


def problem(loss, intercept):
    rng = np.random.default_rng(3)
    A = sparse.random(60, 12, 0.4, random_state=3, format="csr")
    y = rng.integers(0, 4, 60) if loss.coupled else rng.normal(size=(60, 4))
    weight = rng.integers(0, 3, 60).astype(float)
    f = adafw.objectives.MatrixModel(A, y, loss, weight, intercept=intercept)
    return f, 0.3 * rng.normal(size=(12, 4)), rng


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", [losses.Softmax(), losses.Outputs(losses.Huber(0.5))])
def test_the_matrix_is_the_hessian_on_the_chosen(loss, intercept):
    f, x, rng = problem(loss, intercept)
    chosen = np.sort(rng.choice(48, 17, replace=False))
    gram, point = JointGram(JointRows(f, chosen)), JointPoint(f, x)
    gram.follow(point.bends, 0.2)
    product, found = f.hessian_product(x), np.empty((17, 17))
    for a, where in enumerate(chosen):
        unit = np.zeros(48)
        unit[where] = 1.0
        found[:, a] = product(unit.reshape(12, 4)).reshape(-1)[chosen]
    np.testing.assert_allclose(gram.matrix, found, atol=1e-12 * np.abs(found).max())


@pytest.mark.parametrize("intercept", [True, False])
def test_it_follows_a_few_rows_and_predictions_follow_intercepts(intercept):
    f, x, rng = problem(losses.Softmax(), intercept)
    chosen = np.arange(0, 48, 3)
    gram = JointGram(JointRows(f, chosen))
    before, after = JointPoint(f, x).bends.copy(), JointPoint(f, x).bends.copy()
    after[:10] = after[:10, ::-1]  # less than half: only these rows are made anew
    gram.follow(before, 0.2)
    gram.follow(after, 0.0)
    anew = JointGram(JointRows(f, chosen))
    anew.follow(after, 0.2)
    np.testing.assert_allclose(gram.matrix, anew.matrix, atol=1e-13)
    d = rng.normal(size=chosen.size)
    dz = gram.working.dot(d)
    slopes = (f.term_weights / f.n_terms)[:, None] * f.loss.curve(after, dz)
    if intercept:  # what predictions do leaves the sum of slopes where it was
        np.testing.assert_allclose(slopes.sum(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose(gram.working.combine(slopes), gram.matrix @ d, atol=1e-13)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", [losses.Softmax(), losses.Outputs(losses.Huber(0.5))])
def test_rows_that_move_little_by_little_are_made_anew_in_the_end(loss, intercept):
    """What the matrix is made of counts, not what was seen last."""
    f, _, rng = problem(loss, intercept)
    chosen = np.arange(0, 48, 3)
    gram = JointGram(JointRows(f, chosen))
    bends = rng.dirichlet(np.full(4, 5.0), 60)
    gram.follow(bends, 0.2)
    kept = bends.copy()
    for step in range(3):
        bends = bends.copy()
        bends[10:30] += 0.06 * np.array([1.0, -1.0, 0.0, 0.0])  # stale from 0.1 on
        bends[step] = 0.05, 0.05, 0.05, 0.85
        kept[step] = bends[step]
        if step == 1:
            kept[10:30] = bends[10:30]
        gram.follow(bends, 0.2)
        anew = JointGram(JointRows(f, chosen))
        anew.follow(kept, 0.2)
        np.testing.assert_allclose(gram.matrix, anew.matrix, atol=1e-13)
        np.testing.assert_array_equal(gram.known, kept)


def test_factors_follow_the_matrix():
    f, x, _ = problem(losses.Softmax(), True)
    chosen = np.arange(0, 48, 3)
    gram, face, signs = JointGram(JointRows(f, chosen)), np.array([0, 2, 5, 7]), np.ones(16)
    before = JointPoint(f, x).bends.copy()
    for share in (1.0, 0.5):  # all of it anew, then a few rows
        bends = before.copy()
        bends[: int(share * 20)] = bends[: int(share * 20), ::-1]
        for now in (before, bends):
            gram.follow(now, 0.0)
            model = gram.model(signs, False)
            upper = np.triu(gram.factor(face, model))
            H = gram.matrix[np.ix_(face, face)]
            np.testing.assert_allclose(upper.T @ upper, H * (1 + 1e-10 * np.eye(4)), atol=1e-14)
    kept = gram.factor(face, model)
    gram.follow(bends, 0.0)  # nothing has moved
    assert gram.factor(face, model) is kept


def test_columns_without_entries_have_some_curvature():
    """Else a step of their own would be 0 / 0."""
    A = sparse.csr_array(np.array([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0], [0.5, 0.0]]))
    f = adafw.objectives.MatrixModel(A, np.array([0, 1, 1, 0]), losses.Softmax(), intercept=True)
    gram = JointGram(JointRows(f, np.arange(4)))
    gram.follow(JointPoint(f, np.zeros((2, 2))).bends, 0.0)
    model = gram.model(np.ones(4), False)
    own = np.diag(gram.matrix)
    np.testing.assert_allclose(model.diagonal[:2] / own[:2] - 1, 1e-10, rtol=1e-3)
    assert (model.diagonal[2:] > 0).all()
    assert (model.diagonal[2:] < 1e-12).all()
    assert (model.total, model.mixed.tolist()) == (0.0, [0.0] * 4)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", [losses.Softmax(), losses.Outputs(losses.Huber(0.5))])
def test_where_most_rows_have_moved_all_are_made_anew(loss, intercept):
    f, x, _ = problem(loss, intercept)
    chosen = np.arange(0, 48, 3)
    gram, anew = JointGram(JointRows(f, chosen)), JointGram(JointRows(f, chosen))
    gram.follow(JointPoint(f, x).bends, 0.2)
    now = np.random.default_rng(0).dirichlet(np.full(4, 2.0), 60)
    for found in (gram, anew):
        found.follow(now, 0.0)
    np.testing.assert_allclose(gram.matrix, anew.matrix, atol=1e-14)
    np.testing.assert_array_equal(gram.known, now)
