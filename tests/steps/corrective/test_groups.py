"""Working sets of groups and of coordinates, their faces, and models minimised over the set."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.constraints.counted import CountedSet
from adafw.objectives import MatrixModel, WithIntercept
from adafw.rows import MatrixRows, as_rows
from adafw.steps.corrective import curvature
from adafw.steps.corrective.curvature import JointPredictions, view
from adafw.steps.corrective.groups import (
    GroupCorrector,
    _Model,
    _price,
    _restricted,
    _working_set,
    holds_rows,
    norms_of,
)

N = 200


def labels(n=N, seed=0):
    """Groups of different sizes, in no order."""
    return np.random.default_rng(seed).integers(0, 40, n)


def expected(kind, x, g):
    """The same one by one: groups in use, then the steepest, as long as fewer than `room` join."""
    used = np.flatnonzero(x)
    if isinstance(kind, adafw.KSparse):
        groups, steep = np.arange(x.size), np.abs(g)
        between = (x != 0) & (np.abs(x) < kind.radius)
        full = np.isclose(np.abs(x).sum(), kind.k * kind.radius)
        price = np.abs(g[between]).min() if full and between.any() else 0.0
        room = max(64, used.size, 2 * kind.k)
    else:
        groups = np.asarray(kind.groups.value).astype(int)
        steep = np.array([np.linalg.norm(g[groups == k]) for k in range(groups.max() + 1)])
        price, room = max(0.0, -(g @ x) / kind.radius), max(64, used.size)
    chosen, joined = set(groups[used].tolist()), 0
    first = True
    for k in np.argsort(-steep, kind="stable"):
        if k in chosen or steep[k] <= price:
            continue
        size = int((groups == k).sum())
        if not first and joined + size >= room:
            break
        chosen.add(int(k))
        joined, first = joined + size, False
    return np.flatnonzero(np.isin(groups, list(chosen)))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("used", [0, 1, 12, 90])
def test_groups_that_beat_what_x_pays_join_steepest_first(seed, used):
    rng = np.random.default_rng(seed)
    g, x = rng.standard_normal(N), np.zeros(N)
    x[rng.permutation(N)[:used]] = 1.0
    kind = adafw.GroupBall(3.0, labels(seed=seed))
    g -= 0.05 * x * seed
    np.testing.assert_array_equal(_working_set(kind, x, g), expected(kind, x, g))
    many = adafw.GroupBall(3.0, np.arange(N) // 100)  # one is larger than the room: it joins alone
    np.testing.assert_array_equal(_working_set(many, x, g), expected(many, x, g))


def test_as_many_join_as_there_are():
    """Groups of five, 90 coordinates in use: 17 more, as 18 would be 90; none of slope 0."""
    g, x = np.random.default_rng(0).standard_normal(600), np.zeros(600)
    x[:90] = 1.0
    kind = adafw.GroupBall(1e6, np.arange(600) // 5)
    found = _working_set(kind, x, g)
    np.testing.assert_array_equal(found, expected(kind, x, g))
    assert found.size == 90 + 17 * 5
    g[:90], g[90:580] = 1.0, 0.0  # uphill for those in use: others need not pay for that
    assert set(_working_set(kind, x, g).tolist()) == {*range(90), *range(580, 600)}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [3, 50])
def test_coordinates_that_beat_what_x_pays_join_steepest_first(seed, k):
    rng = np.random.default_rng(seed)
    kind, g = adafw.KSparse(0.5, k), rng.standard_normal(N)
    for full in (False, True):
        x = np.zeros(N)
        x[: k - 1], x[k - 1 : k + 1] = -0.5, 0.25 if full else 0.1
        np.testing.assert_array_equal(_working_set(kind, x, g), expected(kind, x, g))
        price = np.abs(g[k - 1 : k + 1]).min() if full else 0.0
        joined = np.setdiff1d(_working_set(kind, x, g), np.arange(k + 1))
        assert (np.abs(g[joined]) > price).all()
        assert joined.size <= max(64, 2 * k)


def linear(intercept=False, weighted=False):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((50, 20)) * (rng.random((50, 20)) < 0.5)
    y = np.where(rng.random(50) < 0.4, 1.0, -1.0)
    w = rng.uniform(0.5, 2.0, 50) if weighted else None
    f: Any = adafw.LinearModel(sparse.csr_array(A), y, losses.Logistic(), w)
    return WithIntercept(f) if intercept else f


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_restricted_objective_is_the_same_where_others_are_zero(intercept, weighted):
    f, chosen = linear(intercept, weighted), np.array([1, 4, 5, 17])
    x = np.zeros(20)
    x[chosen] = [1.0, -2.0, 0.5, 3.0]
    small = _restricted(f, chosen)
    assert small.value(x[chosen]) == pytest.approx(f.value(x), rel=1e-13)
    np.testing.assert_allclose(small.gradient(x[chosen]), f.gradient(x)[chosen], atol=1e-14)


@pytest.mark.parametrize("intercept", [False, True])
def test_restricted_outputs_are_the_same_where_others_are_zero(intercept):
    rng = np.random.default_rng(3)
    A, y = rng.standard_normal((40, 6)), rng.integers(0, 4 if intercept else 3, 40)
    f = MatrixModel(A, y, losses.Softmax(), rng.random(40), n_outputs=4, intercept=intercept)
    chosen = np.flatnonzero(np.repeat(np.arange(6) % 2 == 1, 4))
    x = np.zeros(24)
    x[chosen] = rng.standard_normal(12)
    small = _restricted(f, chosen)
    assert small.shape == (3, 4)
    part = x[chosen].reshape(3, 4)
    assert small.value(part) == pytest.approx(f.value(x.reshape(6, 4)), rel=1e-13)
    whole = f.gradient(x.reshape(6, 4)).reshape(-1)[chosen]
    np.testing.assert_allclose(small.gradient(part).reshape(-1), whole, atol=1e-14)


def test_a_set_is_known_by_the_norms_of_its_groups():
    scale = np.array([1.0, 3.0, 2.0, 4.0, 8.0])
    norms = norms_of(adafw.GroupBall(3.0, [0, 0, 1, 2, 2]), scale)
    assert norms.labels.tolist() == [0, 0, 1, 2, 2]
    assert norms.scale.tolist() == [2.0, 2.0, 6.0]
    assert (norms.most, norms.total) == (np.inf, 3.0)  # one group of full norm may still turn
    single = norms_of(adafw.KSparse(0.5, 3), scale)
    assert single.labels.tolist() == [0, 1, 2, 3, 4]
    assert single.scale is scale
    assert (single.most, single.total) == (0.5, 1.5)


def test_what_a_matrix_may_cost():
    f = linear()
    assert _price(f, 20) == f.rows.gram_products
    assert _price(f, 4000) is None
    dense = adafw.LinearModel(np.ones((50, 320)), np.ones(50), losses.Squared())
    assert _price(dense, 320) == 20.0
    assert _price(dense, 32) == 4.0
    y = np.arange(50) % 2
    assert _price(MatrixModel(np.ones((50, 3)), y, losses.Softmax()), 6) is None


SETS = [
    adafw.GroupBall(0.5, np.arange(20) // 3),
    adafw.GroupBall(50.0, np.arange(20) // 3),
    adafw.KSparse(0.1, 3),
    adafw.KSparse(20.0, 4),
]


@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("share", [0.3, 1e-3, 1e-8])
@pytest.mark.parametrize("way", ["matrix", "products", "matrix from the third product on"])
def test_models_are_minimised_to_what_is_wanted(constraint, intercept, share, way, monkeypatch):
    if way != "matrix":
        monkeypatch.setattr(curvature, "forms_matrix", lambda rows: False)
    f, rng = linear(intercept, True), np.random.default_rng(5)
    x = 0.5 * constraint.lmo(rng.standard_normal(20)) + 0.3 * constraint.lmo(-np.ones(20))
    seen, g, H = view(f), f.gradient(x), f.hessian(x)
    gap = constraint.gap(x, g)
    h = seen.hessian(seen.predictions(x), seen.weights(x))
    price = None if way == "products" else 2.0
    share = max(share, 1e-3) if way == "products" else share  # these are limited
    y, move = _Model(x, g, constraint, share * gap, price).minimise(h)
    assert move is None
    assert constraint.violation(y) <= 1e-15
    assert constraint.gap(y, g + H @ (y - x)) <= share * gap * (1 + 1e-12)


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Squared()], ids=repr)
@pytest.mark.parametrize("offset", [10.0, 1e3])
@pytest.mark.parametrize(
    "constraint",
    [adafw.GroupBall(3.0, np.arange(60) % 12), adafw.KSparse(0.3, 5), adafw.KSparse(0.3, 30)],
    ids=repr,
)
def test_columns_far_from_0_without_an_intercept_are_certified(loss, offset, constraint):
    """Models whose curvature along the mean is 1e6 times that of the rest are solved, too."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 60))
    w = rng.standard_normal(60) * (rng.random(60) < 0.2)
    noisy = A @ w + rng.standard_normal(400)
    y = np.sign(noisy) if loss.task == "classification" else noisy
    f = adafw.LinearModel(A + offset * rng.uniform(0.5, 1.5, 60), y, loss)
    r = adafw.minimize(
        f, constraint, adafw.Corrective(), max_iterations=12, record_every=1,
        callbacks=[lambda state, now: now.gap <= 1e-8 * now.value],
    )  # fmt: skip
    assert r.best.gap <= 1e-8 * r.value
    assert r.trace["violation"].max() <= 1e-12


@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_an_iteration_descends_inside_the_set(constraint):
    f, counted = linear(True), CountedSet(constraint)
    corrector, x = GroupCorrector(), np.zeros(20)
    state: Any = corrector.init(x)
    assert state == {"gap": 0.0}
    for t in range(6):
        g, before = f.gradient(x), f.value(x)
        if not constraint.gap(x, g) > 1e-12:
            break
        gap = constraint.gap(x, g)
        x, state = corrector.improve(f, counted, x, g, t, state)
        assert constraint.violation(x) <= 1e-12
        assert f.value(x) <= before * (1 + 1e-15)
        if t == 0:  # all coordinates take part: some Newton steps leave little
            assert constraint.gap(x, f.gradient(x)) <= 0.1 * gap
    assert constraint.gap(x, f.gradient(x)) <= 1e-6 * f.value(x)
    assert counted.lmo_calls <= 6
    still, same = corrector.improve(f, constraint, x, np.zeros(20), 1, state)
    assert still is x
    assert same is state


def test_which_problems_fit():
    fits, f = GroupCorrector().fits, linear()
    assert all(fits(f, constraint) for constraint in SETS)
    assert fits(WithIntercept(f), CountedSet(SETS[0]))
    assert not fits(f, adafw.L1Ball(1.0))
    rng = np.random.default_rng(0)
    joint = MatrixModel(rng.standard_normal((30, 3)), rng.integers(0, 2, 30), losses.Softmax())
    rows = np.repeat(np.arange(3)[:, None], 2, axis=1)
    assert fits(joint, adafw.GroupBall(1.0, rows))
    assert holds_rows(adafw.GroupBall(1.0, rows))
    assert not fits(joint, adafw.GroupBall(1.0, rows.T.reshape(3, 2)))
    assert not fits(joint, adafw.KSparse(1.0, 2))
    assert not holds_rows(adafw.GroupBall(1.0, [0, 1]))
    matrices = MatrixRows(as_rows(rng.standard_normal((30, 6))), (3, 2))
    of_matrices = adafw.LinearModel(matrices, rng.standard_normal(30), losses.Squared())
    assert not fits(of_matrices, adafw.KSparse(1.0, 2))
    assert not fits(of_matrices, adafw.GroupBall(1.0, rows))
    bent = adafw.objectives.Quadratic(np.zeros(20), np.ones(20), np.eye(20))
    assert not any(fits(bent, constraint) for constraint in SETS)


@pytest.mark.parametrize("intercept", [False, True])
def test_groups_of_rows_of_several_outputs(intercept):
    rng = np.random.default_rng(4)
    A, y = rng.standard_normal((60, 30)), rng.integers(0, 3, 60)
    f = MatrixModel(A, y, losses.Softmax(), intercept=intercept)
    ball = adafw.GroupBall(0.5, np.repeat(np.arange(30)[:, None], 3, axis=1))
    x, state = np.zeros((30, 3)), {"gap": 0.0}
    for t in range(8):
        x, state = GroupCorrector().improve(f, ball, x, f.gradient(x), t, state)
    assert x.shape == (30, 3)
    assert ball.gap(x, f.gradient(x)) <= 1e-6
    seen = JointPredictions(f)
    np.testing.assert_allclose(seen.predictions(x), A @ x)
