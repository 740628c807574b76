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
    _GroupFace,
    _Model,
    _part,
    _restricted,
    _SparseFace,
    _working_set,
    holds_rows,
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


def test_a_part_of_a_set_is_the_set_of_a_part():
    face = _part(adafw.GroupBall(3.0, [0, 0, 1, 2, 2]), np.array([0, 1, 3]))
    assert isinstance(face, _GroupFace)
    assert face.kind.radius == 3.0
    assert face.kind.gap(np.zeros(3), np.array([3.0, 4.0, 1.0])) == 15.0
    sparse_face = _part(adafw.KSparse(0.5, 2), np.array([0, 3]))
    assert isinstance(sparse_face, _SparseFace)


def test_the_face_of_groups():
    kind = adafw.GroupBall(10.0, [0, 0, 1, 1, 2])
    y = np.array([3.0, 4.0, 0.0, 0.0, 5.0])  # norms 5, 0, 5: on the sphere
    slopes = np.array([-1.0, -2.0, 7.0, 1.0, -3.0])
    price = (3 + 8 + 15) / 10
    face = _GroupFace(kind).face(y, slopes)
    assert face.free.tolist() == [True, True, False, False, True]
    np.testing.assert_allclose(face.normal, [0.6, 0.8, 0, 0, 1])
    np.testing.assert_allclose(face.units, face.normal)
    np.testing.assert_allclose(face.bend, [price / 5, price / 5, 0, 0, price / 5])
    for point, pull in ((0.99 * y, slopes), (y, -slopes)):  # inside, or pulled inwards
        loose = _GroupFace(kind).face(point, pull)
        assert not loose.normal.any()
        assert not loose.bend.any()
        assert loose.free.tolist() == face.free.tolist()
    # Rounding errors are no groups, whatever the radius.
    tiny = _GroupFace(adafw.GroupBall(1e-9, [0, 0, 1, 1, 2])).face(1e-10 * y, slopes)
    assert tiny.free.tolist() == face.free.tolist()
    y[3] = 1e-12
    assert not _GroupFace(kind).face(y, slopes).free[3]
    large = _GroupFace(adafw.GroupBall(1e6, [0, 0, 1, 1, 2])).face(1e-8 * y, slopes)
    assert not large.free.any()


def test_how_the_norms_of_groups_bend():
    """price * the second derivative of sum of norms, by differences of its gradient."""
    kind, rng = adafw.GroupBall(10.0, [0, 0, 1, 1, 1]), np.random.default_rng(0)
    y = rng.standard_normal(5)
    y *= 10 / (np.linalg.norm(y[:2]) + np.linalg.norm(y[2:]))
    slopes, p = -y + 0.3 * rng.standard_normal(5), rng.standard_normal(5)
    price = -(slopes @ y) / 10

    def gradient(y):
        return np.concatenate([y[:2] / np.linalg.norm(y[:2]), y[2:] / np.linalg.norm(y[2:])])

    change = (gradient(y + 1e-6 * p) - gradient(y - 1e-6 * p)) / 2e-6
    face = _GroupFace(kind).face(y, slopes)
    np.testing.assert_allclose(face.curve(p), price * change, rtol=1e-6)


def test_the_face_of_k_sparse_points():
    kind = adafw.KSparse(2.0, 2)
    y = np.array([2.0, -1.5, 0.5, 0.0, 0.0])  # all of 4 is used
    face = _SparseFace(kind).face(y, np.ones(5))
    assert face.free.tolist() == [False, True, True, False, False]
    assert face.normal.tolist() == [0, -1, 1, 0, 0]
    assert not face.curve(np.ones(5)).any()
    y = np.array([2.0 - 1e-14, -1.0, 0.5, 0.0, -1e-13])  # at its bound to rounding
    for pull, free in ((1.0, True), (-1.0, False)):  # one at its bound is free to come back
        face = _SparseFace(kind).face(y, np.full(5, pull))
        assert face.free.tolist() == [free, True, True, False, False]
        assert not face.normal.any()
    large = _SparseFace(adafw.KSparse(1e6, 2)).face(np.array([1.0, 1e-8, 0, 0, 0]), np.ones(5))
    assert large.free.tolist() == [True, False, False, False, False]
    negative = _SparseFace(kind).face(-y, np.full(5, -1.0))
    assert negative.free.tolist() == [True, True, True, False, False]


SETS = [
    adafw.GroupBall(0.5, np.arange(20) // 3),
    adafw.GroupBall(50.0, np.arange(20) // 3),
    adafw.KSparse(0.1, 3),
    adafw.KSparse(20.0, 4),
]


@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("share", [0.3, 1e-3])
@pytest.mark.parametrize("way", ["matrix", "products"])
def test_models_are_minimised_to_what_is_wanted(constraint, intercept, share, way, monkeypatch):
    if way == "products":
        monkeypatch.setattr(curvature, "forms_matrix", lambda rows: False)
    f, rng = linear(intercept, True), np.random.default_rng(5)
    x = 0.5 * constraint.lmo(rng.standard_normal(20)) + 0.3 * constraint.lmo(-np.ones(20))
    seen, g, H = view(f), f.gradient(x), f.hessian(x)
    gap = constraint.gap(x, g)
    h = seen.hessian(seen.predictions(x), seen.weights(x))
    model = _Model(x, g, _part(constraint, np.arange(20)), gap, share)
    y, move = model.minimise(h)
    d = y - x
    assert (move is None) is (way == "matrix")
    if move is not None:
        np.testing.assert_allclose(move, f.rows.dot(d), atol=1e-9 * max(1, np.abs(d).max()))
    assert constraint.violation(y) <= 1e-12
    assert constraint.gap(y, g + H @ d) <= share * gap
    slopes = g.copy()
    for step in (model._projected(h, x, slopes), model._face(h, x, slopes)):
        if step is not None:
            s, image, _ = step
            np.testing.assert_allclose(image, H @ s, atol=1e-10 * max(1, np.abs(s).max()))
            assert slopes @ s + s @ H @ s / 2 < 0
            assert constraint.violation(x + s) <= 1e-12


def test_a_projected_step_is_as_long_as_the_model_falls():
    f = linear()
    constraint, seen, x = SETS[1], view(f), np.zeros(20)
    g, H = f.gradient(x), f.hessian(x)
    h = seen.hessian(seen.predictions(x), seen.weights(x))
    model = _Model(x, g, _part(constraint, np.arange(20)), 1.0, 0.1)
    s, image, _ = model._projected(h, x, g)
    way = constraint.project(x - g / h.scale, h.scale) - x
    np.testing.assert_allclose(s, way * min(1.0, -(g @ way) / (way @ H @ way)), atol=1e-12)
    np.testing.assert_allclose(image, H @ s, atol=1e-12)
    assert model._projected(h, x, 0 * g) is None


def test_steps_far_outside_are_cut_to_some_lengths_of_the_set():
    constraint = adafw.GroupBall(2.0, [0, 0, 1])
    model = _Model(np.zeros(3), np.ones(3), _part(constraint, np.arange(3)), 1.0, 0.1)
    d = np.array([3.0, 4.0, 0.0])
    np.testing.assert_array_equal(model._near(d), d)
    most = 100 * constraint.diameter((3,))
    np.testing.assert_allclose(model._near(1e9 * d), d / 5 * most)
    assert not model._near(np.array([np.inf, 0.0, 1.0])).any()
    assert not model._near(np.zeros(3)).any()


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


def test_a_face_on_which_nothing_is_free_has_no_step():
    f = linear()
    seen, x = view(f), np.zeros(20)
    h, g = seen.hessian(seen.predictions(x), seen.weights(x)), f.gradient(x)
    for constraint in SETS:
        assert _Model(x, g, _part(constraint, np.arange(20)), 1.0, 0.1)._face(h, x, g) is None
