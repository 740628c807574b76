"""Newton steps on few atoms: gaps, efforts, matrices that are kept, minimisers of the model."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

import adafw
from adafw import losses
from adafw.kernels.parts import AtomModel
from adafw.objectives import WithIntercept
from adafw.rows.working import DenseWorking
from adafw.steps.corrective.gram import CHEAP, STALE, STALE_EXACT, Faces, Gram
from adafw.steps.corrective.newton import (
    CALM,
    EPS,
    GROWING,
    SETTLED,
    WHOLE,
    WHOLE_SHORT,
    Effort,
    Weights,
    _on_face,
    effort,
    minimise,
    newton_steps,
)
from adafw.steps.corrective.point import Point

KINDS = [(False, False), (False, True), (True, True)]  # signed, open


# Weights -----------------------------------------------------------------------------------------


def weights(signed, open_, level=0.0, slack=0.7, n=5, seed=0):
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], n) if signed else np.ones(n)
    u = rng.random(n) * (rng.random(n) < 0.7)
    return Weights(signs, u, slack if open_ else 0.0, open_, signed, level), rng


@pytest.mark.parametrize(("signed", "open_"), KINDS)
@pytest.mark.parametrize("level", [0.0, 0.4])
def test_the_gap_is_the_largest_descent_over_all_vertices(signed, open_, level):
    for seed in range(10):
        at, rng = weights(signed, open_, level, seed=seed)
        slopes = rng.standard_normal(5) + (2.0 if seed % 2 else 0.0)
        radius = float(at.u.sum()) + at.slack
        ends = [slopes, -slopes] if signed else [slopes]
        least = radius * min(float(end.min()) + level for end in ends)
        least = min(least, 0.0) if open_ else least
        here = float(slopes @ (at.signs * at.u)) + level * float(at.u.sum())
        assert at.gap(slopes) == pytest.approx(here - least, abs=1e-14)


def test_a_gap_may_be_rounding():
    at, _ = weights(True, True)
    slopes = np.array([1.0, -7.0, 2.0, 0.0, 3.0])
    assert at.noise(slopes) / EPS == pytest.approx(16 * (at.u.sum() + 0.7) * 7)


@pytest.mark.parametrize("open_", [False, True])
def test_signed_weights_take_their_place(open_):
    at = Weights(
        np.array([1.0, -1.0, 1.0, 1.0]), np.array([0.5, 0.25, 0.0, 0.25]), 0.0, open_, True
    )
    at.slack = 1.0 if open_ else 0.0
    at.place(np.array([0.25, 0.5, 0.0, -0.125]), np.array([1.0, 1.0, -1.0, 1.0]))
    assert at.u.tolist() == [0.25, 0.5, 0.0, 0.125]
    assert at.signs.tolist() == [1.0, 1.0, -1.0, -1.0]
    assert at.slack == (2.0 - 0.875 if open_ else 0.0)
    at.place(np.array([3.0, 0.0, 0.0, 0.0]), at.signs)
    assert at.slack == 0.0


def test_efforts_follow_how_many_atoms_join():
    assert effort(0, 0) is effort(0, 100) is effort(0, 100, True) is effort(0, 9, False, True)
    assert effort(0, 0) is SETTLED
    assert effort(5, 100) is effort(5, 100, True) is effort(5, 100, True, True) is CALM
    assert effort(6, 100) is effort(1, 0) is GROWING
    assert effort(6, 100, True, True) is effort(1, 0, True, True) is WHOLE
    assert effort(6, 100, True) is effort(1, 0, True) is WHOLE_SHORT  # all rows: to the end at once
    assert WHOLE_SHORT.enough < WHOLE.enough
    assert effort(50, 100, False, True) is CALM  # most of those needed come from a sample
    assert effort(51, 100, False, True) is GROWING


# The matrix --------------------------------------------------------------------------------------


def spd(n, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((n, n + 2)) * scale
    return B @ B.T, rng


def test_factors_are_kept_while_face_signs_and_matrix_hold():
    H, rng = spd(6)
    faces, face = Faces(), np.array([0, 2, 5])

    def ask(face, signs, mixed=np.zeros(6), total=0.0):
        own = H - np.outer(mixed, mixed) / total if total else H
        model = AtomModel(H, np.diag(own).copy(), signs, mixed, total)
        factor = faces.factor(face, model)
        upper = np.triu(factor)
        signed = own * np.outer(signs, signs)
        np.testing.assert_allclose(upper.T @ upper, signed[np.ix_(face, face)], atol=1e-12)
        return factor

    one = ask(face, np.ones(6))
    assert ask(face.copy(), np.array([1.0, -1, 1, 1, 1, 1])) is one  # of an atom outside
    assert ask(face, np.array([1.0, 1, -1, 1, 1, 1])) is not one
    one = ask(np.array([0, 2]), np.ones(6))
    two = ask(np.array([0, 2]), np.ones(6), 0.1 * rng.random(6), 2.0)
    assert two is not one
    one = ask(np.array([1, 2]), np.ones(6))
    faces.forget()
    assert ask(np.array([1, 2]), np.ones(6)) is not one


def test_a_matrix_without_a_factor_has_none():
    model = AtomModel(np.ones((2, 2)), np.zeros(2), np.ones(2), np.zeros(2), 0.0)
    faces = Faces()
    assert faces.factor(np.arange(2), model) is None
    assert faces.factor(np.arange(2), model) is None


def test_where_weights_keep_their_sum_a_combination_that_tells_nothing_does_no_harm():
    """H of three atoms from two rows is singular, but not where sum u stays."""
    B = np.random.default_rng(0).standard_normal((2, 3))
    H, slopes, s = B.T @ B, np.array([1.0, -1.0, 0.5]), 0.0
    model = AtomModel(H, np.diag(H).copy(), np.ones(3), np.zeros(3), 0.0)
    upper = np.triu(Faces().factor(np.arange(3), model, tight=True))
    K = upper.T @ upper
    s = K[0, 1] - H[0, 1]
    assert s > 0
    np.testing.assert_allclose(K, H + s, atol=1e-13)
    solve = np.linalg.inv(K)
    d = -solve @ slopes
    d -= solve.sum(axis=1) * (d.sum() / solve.sum())
    pull = H @ d + slopes  # level, as at a minimiser with the sum held
    assert np.ptp(pull) < 1e-12
    assert abs(d.sum()) < 1e-12


def dense(chosen, m=50, n=12, seed=0):
    A = np.random.default_rng(seed).standard_normal((m, n))
    return DenseWorking(A[:, chosen], np.asarray(chosen)), A[:, chosen]


class Counted(DenseWorking):
    """Writes down from which column on a matrix was made, and with how many rows."""

    def __init__(self, array, chosen):
        super().__init__(array, chosen)
        self.made: list[tuple[int, int]] = []

    def add_gram(self, weights, gram, first=0):
        self.made.append((first, int(np.count_nonzero(weights))))
        super().add_gram(weights, gram, first)


def test_a_matrix_is_made_of_what_is_new_alone():
    A = np.random.default_rng(0).standard_normal((50, 12))
    bends = np.random.default_rng(1).random(50) + 0.5

    def gram(chosen, state):
        working = Counted(A[:, chosen], np.array(chosen))
        made = Gram(working, 12, state)
        made.follow(bends, 0.0)
        exact = A[:, chosen].T @ (bends[:, None] * A[:, chosen])
        np.testing.assert_allclose(made.matrix, exact, atol=1e-12)
        return made, working.made

    first, made = gram([3, 1, 7, 9], {})
    assert made == [(0, 50)]
    again, made = gram([3, 1, 7, 9], first.save())
    assert made == []
    assert again.matrix is first.matrix  # in place
    state = again.save()
    more, made = gram([3, 7, 9, 4, 5, 6], state)  # half of it is known
    assert made == [(3, 50)]
    assert more.bends is not state["bends"]
    _, made = gram([3, 7, 0, 2, 4, 5, 6], state)  # less than half is
    assert made == [(0, 50)]
    assert set(state) == {"chosen", "gram", "bends", "held"}


@pytest.mark.parametrize("through", ["one matrix", "the state", "a state of before", "others"])
def test_a_matrix_that_held_far_more_is_made_anew(through):
    """Rounding of what was there stays behind: Poisson data far out stalled for ever."""
    A = np.random.default_rng(0).standard_normal((50, 6))
    bends = np.random.default_rng(1).random(50) + 0.5
    huge = np.where(np.arange(50) == 7, 1e250, bends)
    working = Counted(A[:, :4], np.arange(4))
    gram = Gram(working, 6, {})
    gram.follow(huge, 0.0)
    chosen = [3, 0, 1, 2] if through == "others" else np.arange(4)
    if through != "one matrix":
        state = gram.save()
        if through == "a state of before":
            del state["held"]
        gram = Gram(Counted(A[:, chosen], np.array(chosen)), 6, state)
    gram.follow(bends, 0.0)
    exact = A[:, chosen].T @ (bends[:, None] * A[:, chosen])
    np.testing.assert_allclose(gram.matrix, exact, atol=1e-12)
    assert gram.save()["held"] == pytest.approx(bends.sum())
    gram.follow(3e5 * bends, 0.0)  # not so much that digits are missing: it is moved along
    gram.follow(bends, 0.0)
    assert gram.held == pytest.approx(3e5 * bends.sum())
    np.testing.assert_allclose(gram.matrix, exact, atol=1e-8)


def test_remote_rows_leave_the_state_as_it_was():
    """A product may fail half way: then the state has to be that of the step before."""
    A, bends = np.random.default_rng(0).standard_normal((50, 4)), np.ones(50)
    gram = Gram(Counted(A, np.arange(4)), 4, {})
    gram.follow(bends, 0.0)
    working = Counted(A, np.arange(4))
    working.remote = True
    other = Gram(working, 4, gram.save())
    other.follow(2 * bends, 0.0)
    np.testing.assert_allclose(gram.matrix, A.T @ A)
    np.testing.assert_allclose(other.matrix, 2 * A.T @ A)
    assert gram.bends.tolist() == [1.0] * 50


def test_states_that_hold_no_matrix_are_none():
    working, _ = dense(np.arange(4))
    good = {"chosen": np.arange(4), "gram": np.eye(4), "bends": np.ones(50)}
    assert Gram(working, 12, good).bends is good["bends"]
    for name, other in (("gram", np.eye(3)), ("bends", np.ones(49)), ("chosen", np.eye(4))):
        assert Gram(working, 12, {**good, name: other}).bends is None
        assert Gram(working, 12, {k: v for k, v in good.items() if k != name}).bends is None
        assert Gram(working, 12, {name: good[name]}).bends is None


def test_rows_are_made_anew_where_their_bends_moved():
    A = np.random.default_rng(0).standard_normal((50, 4))
    working = Counted(A, np.arange(4))
    gram, bends = Gram(working, 4, {}), np.ones(50)
    gram.follow(bends, STALE)
    renewed = []
    working.renew_gram = lambda change, count, matrix: renewed.append((change, count))
    bends = bends.copy()
    bends[:3], bends[3] = 1.19, 1.3
    gram.follow(bends, STALE)
    (change, count), *_ = renewed
    assert count == 1
    assert np.flatnonzero(change).tolist() == [3]
    assert change[3] == pytest.approx(0.3)
    gram.follow(bends, STALE_EXACT)
    assert renewed[1][1] == 3
    gram.follow(bends, STALE_EXACT)  # nothing has moved
    assert len(renewed) == 2


def test_rows_of_little_weight_wait_unless_the_matrix_is_to_be_exact():
    A = np.random.default_rng(0).standard_normal((10, 3))
    known = np.ones(10)
    known[0] = 0.1
    now = known.copy()
    now[0] = 0.15
    for stale, follows in ((STALE, False), (STALE_EXACT, True)):
        gram = Gram(DenseWorking(A, np.arange(3)), 3, {})
        gram.follow(known, STALE)
        gram.follow(now, stale)
        assert gram.bends[0] == (0.15 if follows else 0.1)


def test_samples_of_rows_lie_in_one_another_and_count_for_all():
    working, _ = dense(np.arange(3), m=4000)
    gram = Gram(working, 12, {})
    shares = {every: gram._shares(every).copy() for every in (2, 4, 8)}
    for every, share in shares.items():
        assert share.sum() == pytest.approx(4000)
        assert set(np.unique(share)) == {0.0, share.max()}
        assert np.count_nonzero(share) == pytest.approx(4000 / every, rel=0.1)
        assert gram._shares(every) is gram._shares(every)
    assert not (shares[8] > 0)[shares[4] == 0].any()
    assert not (shares[4] > 0)[shares[2] == 0].any()


@pytest.mark.parametrize(
    ("m", "size", "every"),
    [(8000, 100, 2), (8000, 40, 1), (3999, 100, 1), (4000, 100, 2), (80_000, 400, 8),
     (20_000, 400, 2), (10, 400, 1)],
)  # fmt: skip
def test_how_many_rows_are_enough(m, size, every):
    """The matrix costs size / 10 products here: a fifth of that, and 20 rows an atom at least."""
    gram = Gram(DenseWorking(np.zeros((1, size)), np.arange(size)), size, {})
    gram.working.size = m
    assert gram._every() == every


def test_a_sample_stands_for_all_rows_while_they_are_dear():
    working, A = dense(np.arange(100), m=4100, n=100)
    assert working.gram_work / CHEAP == 2
    bends = np.random.default_rng(2).random(4100)
    gram = Gram(working, 100, {})
    gram.follow(bends, STALE, sampled=True)
    part = gram._shares(2) * bends
    np.testing.assert_allclose(gram.matrix, A.T @ (part[:, None] * A), atol=1e-9)
    np.testing.assert_allclose(gram.diagonal, bends @ A**2)
    model = gram.model(np.ones(100), False)
    exact = np.maximum(np.diag(gram.matrix), bends @ A**2)
    assert (model.diagonal >= exact * (1 - 1e-12)).all()
    gram.follow(bends, 0.0)
    np.testing.assert_allclose(gram.matrix, A.T @ (bends[:, None] * A), atol=1e-9)
    assert gram.diagonal.size == 0


# Minimisers of the model -------------------------------------------------------------------------


def atom_model(signed, n=6, seed=0):
    H, rng = spd(n, seed)
    signs = rng.choice([-1.0, 1.0], n) if signed else np.ones(n)
    return AtomModel(H, np.diag(H).copy(), signs, np.zeros(n), 0.0), rng


def gram_of(model):
    gram = Gram(DenseWorking(np.eye(model.signs.size), np.arange(model.signs.size)), 9, {})
    gram.matrix = model.gram
    return gram


@pytest.mark.parametrize("open_", [False, True])
@pytest.mark.parametrize("slack", [0.0, 0.3, 50.0])
def test_steps_on_a_face_end_at_its_minimum(open_, slack):
    """Sum kept where it binds; weights that would fall below 0 leave; slopes follow."""
    full = 0
    for seed in range(20):
        model, rng = atom_model(True, seed=seed)
        H = model.gram * np.outer(model.signs, model.signs)
        u0 = rng.random(6) * (np.arange(6) != 2)
        slopes0 = 3 * rng.standard_normal(6)
        u, slopes = u0.copy(), slopes0.copy()
        rest = _on_face(gram_of(model), model, slopes, u, slack, open_)
        free = open_ and slack > 0
        assert u.min() >= 0
        assert u[2] == 0
        assert u.sum() + rest == pytest.approx(u0.sum() + slack)
        np.testing.assert_allclose(slopes, slopes0 + H @ (u - u0), atol=1e-10)
        d = u - u0
        assert slopes0 @ d + d @ H @ d / 2 < 0
        face = u > 0
        if rest > 0 and free:
            np.testing.assert_allclose(slopes[face], 0, atol=1e-9)
        else:
            assert rest == (0.0 if open_ else slack)
            np.testing.assert_allclose(np.ptp(slopes[face]), 0, atol=1e-9)
            full += free
    assert full > 0 or slack in (0.0, 50.0) or not open_


def test_steps_on_a_face_stay_where_there_is_none():
    model, _ = atom_model(False)
    u, slopes = np.zeros(6), np.ones(6)
    u[3] = 1.0
    assert _on_face(gram_of(model), model, slopes, u, 0.5, True) == 0.5
    assert u[3] == 1.0
    flat = AtomModel(np.ones((6, 6)), np.zeros(6), np.ones(6), np.zeros(6), 0.0)
    u[4] = 1.0
    assert _on_face(gram_of(flat), flat, slopes, u, 0.5, True) == 0.5
    assert u.sum() == 2.0


@pytest.mark.parametrize(("signed", "open_"), KINDS)
@pytest.mark.parametrize("level", [0.0, 0.5])
def test_the_model_is_minimised_over_the_hull(signed, open_, level):
    n = 40  # so many that pairwise steps need the exact ones on faces
    for seed in range(3):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((30, 1)) + 0.1 * rng.standard_normal((30, n))
        H = A.T @ A + 1e-3 * np.eye(n)
        c = rng.standard_normal(n) * 3
        at = Weights(np.ones(n), np.full(n, 0.02), 0.3 if open_ else 0.0, open_, signed, level)
        model = AtomModel(H, np.diag(H).copy(), at.signs, np.zeros(n), 0.0)
        slopes = c + H @ at.u + level
        start = at.u.copy()
        u, slack = minimise(gram_of(model), model, slopes, at, 1e-9)
        w = at.signs * u
        assert (at.u == start).all()
        assert u.min() >= 0
        assert u.sum() + slack == pytest.approx(start.sum() + at.slack)
        np.testing.assert_allclose(slopes, at.signs * (c + H @ w) + level, atol=1e-7)
        end = Weights(at.signs, u, slack, open_, signed, level)
        assert end.gap(at.signs * (slopes - level)) <= 2e-9


# Steps -------------------------------------------------------------------------------------------


class Watched(Gram):
    """Writes down what it was asked to follow."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.asked: list[tuple[float, bool]] = []

    def follow(self, bends, stale_from, sampled=False):
        self.asked.append((stale_from, sampled))
        super().follow(bends, stale_from, sampled)


def problem(loss=losses.Logistic(), intercept=False, m=120, n=8, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n)) + 0.3
    score = A @ rng.standard_normal(n) + rng.standard_normal(m)
    y = np.where(score > 0, 1.0, -1.0) if loss.task == "classification" else score
    f = adafw.LinearModel(A, y, loss)
    return (WithIntercept(f) if intercept else f), A


def start(f, A, signed, open_, level=0.0, radius=1.0):
    n = A.shape[1]
    signs = np.where(np.arange(n) % 2, -1.0, 1.0) if signed else np.ones(n)
    u = np.full(n, radius / n) * (0.5 if open_ else 1.0)
    at = Weights(signs, u, radius - float(u.sum()) if open_ else 0.0, open_, signed, level)
    return at, Point(f, signs * u), Watched(DenseWorking(A, np.arange(n)), n, {})


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Squared(), losses.Huber(0.3)])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("signed", "open_", "level"), [*((*kind, 0.0) for kind in KINDS), (False, True, 0.02),
                                   (True, True, 0.02)],
)  # fmt: skip
def test_steps_end_where_the_gap_on_the_atoms_is_small_enough(
    loss, intercept, signed, open_, level
):
    f, A = problem(loss, intercept)
    for radius in (0.3, 2.0, 20.0):
        at, point, gram = start(f, A, signed, open_, level, radius)
        x = at.signs * at.u
        gap, value = at.gap(f.gradient(x)), f.value(x) + level * float(at.u.sum())
        newton_steps(point, gram, at, gap, Effort(30, 1e-6, 1e-3))
        x = at.signs * at.u
        assert at.u.min() >= 0
        assert at.u.sum() + at.slack == pytest.approx(radius, rel=1e-12)
        assert at.gap(f.gradient(x)) <= max(1.1e-6 * gap, 1e-13)
        assert f.value(x) + level * float(at.u.sum()) < value
        # The point stands at the predictions of x, an intercept near the best one added.
        rest = point.z - A @ x
        np.testing.assert_allclose(rest, rest[0], atol=1e-9)
        assert rest[0] == pytest.approx(f.best_intercept(x) if intercept else 0, abs=0.05)
        assert point.value == pytest.approx(f.value(x), rel=1e-3)


def test_few_steps_are_enough_and_the_matrix_is_as_new_as_it_has_to_be():
    f, A = problem()
    for how, most in ((SETTLED, 6), (CALM, 4), (GROWING, 2), (WHOLE, 6)):
        at, point, gram = start(f, A, True, True, radius=5.0)
        gap = at.gap(f.gradient(at.signs * at.u))
        newton_steps(point, gram, at, gap, how)
        assert len(gram.asked) <= most
        assert {stale for stale, _ in gram.asked} == {STALE_EXACT}  # a cheap one is never old
        sampled = [part for _, part in gram.asked]
        if how in (SETTLED, CALM):
            assert not any(sampled)
            assert at.gap(f.gradient(at.signs * at.u)) <= how.enough * gap
        elif how is GROWING:
            assert sampled == [True, True]
        else:
            assert sampled == [True, True, True, *[False] * (len(sampled) - 3)]


def test_a_dear_matrix_may_be_old_until_steps_are_slow():
    f, A = problem(m=400, n=60)
    at, point, gram = start(f, A, True, True, radius=8.0)
    assert gram.working.gram_work > CHEAP
    gap = at.gap(f.gradient(at.signs * at.u))
    newton_steps(point, gram, at, gap, Effort(12, 1e-9, 1e-3))
    stale = [share for share, _ in gram.asked]
    assert stale[0] == stale[1] == STALE
    assert sorted(stale, reverse=True) == stale  # once it has been too old, never again
    assert at.gap(f.gradient(at.signs * at.u)) <= 1e-9 * gap


def test_an_intercept_that_is_not_the_best_is_mended_by_the_first_step():
    """Of squares the model is f itself: one step leads to the minimum, wherever b was."""
    f, A = problem(losses.Squared(), intercept=True)
    for off in (0.0, 0.7, -3.0):
        at, point, gram = start(f, A, True, True, radius=3.0)
        gap = at.gap(f.gradient(at.signs * at.u))
        point.start(point.z + off)
        newton_steps(point, gram, at, gap, Effort(1, 0.0, 1e-9))
        assert at.gap(f.gradient(at.signs * at.u)) <= 0.01 * gap
        assert point.slopes.sum() == pytest.approx(0, abs=1e-12)


def test_slopes_that_are_known_are_those_of_the_first_step():
    f, A = problem()
    found = []
    for given in (False, True):
        at, point, gram = start(f, A, True, True)
        g = f.gradient(at.signs * at.u)
        newton_steps(point, gram, at, at.gap(g), GROWING, g.copy() if given else None)
        found.append(at.signs * at.u)
    np.testing.assert_allclose(*found, atol=1e-14)


def test_nothing_moves_where_nothing_is_to_be_gained():
    f, A = problem(losses.Squared())
    best = scipy_minimize(
        lambda w: f.value(w), np.full(8, 1 / 8), jac=f.gradient, bounds=[(0, 1)] * 8,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1}, options={"ftol": 1e-16},
    ).x  # fmt: skip
    at, _, gram = start(f, A, False, False)
    at.u = np.maximum(best, 0) / np.maximum(best, 0).sum()
    before, point = at.u.copy(), Point(f, at.u)
    newton_steps(point, gram, at, 1.0, SETTLED)  # a gap so far below what is asked for
    assert np.abs(at.u - before).max() < 1e-5
    assert len(gram.asked) == 1
    flat = adafw.LinearModel(A, np.full(120, 0.0), losses.Huber(0.3))
    at = Weights(np.ones(8), np.zeros(8), 1.0, True, True)
    newton_steps(Point(flat, np.zeros(8)), gram, at, 1.0, SETTLED)
    assert not at.u.any()
    assert at.slack == 1.0


def test_signs_that_were_given_stay_as_they_were():
    """Atoms of weight 0 turn in a copy: a step that is cut goes back to the signs before it."""
    f, A = problem(seed=2)
    at, point, gram = start(f, A, True, True, radius=3.0)
    at.u[:] = 0.0
    at.slack, given = 3.0, at.signs
    before, g = given.copy(), f.gradient(np.zeros(8))
    at.signs[:] = before[:] = np.sign(g)  # all of them the wrong way round
    point.start(0 * point.z)
    newton_steps(point, gram, at, at.gap(g), SETTLED)
    np.testing.assert_array_equal(given, before)
    used = at.u > 0
    assert used.any()
    assert (at.signs[used] != before[used]).any()


def test_bends_that_a_matrix_follows_are_only_read():
    working, _ = dense(np.arange(3))
    gram, first, second = Gram(working, 12, {}), np.ones(50), np.linspace(1.0, 2.0, 50)
    for bends in (first, second, 0.5 * second):
        gram.follow(bends, 0.0)
    assert (first == 1.0).all()
    np.testing.assert_array_equal(second, np.linspace(1.0, 2.0, 50))
    np.testing.assert_array_equal(gram.bends, 0.5 * second)


@pytest.mark.parametrize("intercept", [False, True])
def test_slopes_that_are_known_at_the_start_are_not_those_of_later_steps(intercept):
    f, A = problem(intercept=intercept)
    for radius in (2.0, 20.0):
        at, point, gram = start(f, A, True, True, radius=radius)
        g = f.gradient(at.signs * at.u)
        gap = at.gap(g)
        newton_steps(point, gram, at, gap, Effort(30, 1e-6, 1e-3), g.copy())
        assert at.gap(f.gradient(at.signs * at.u)) <= 1.1e-6 * gap
