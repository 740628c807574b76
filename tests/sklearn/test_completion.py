"""Matrix completion: certificates by hand, forms of data, radii by folds."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from adafw.fitting.completion import norm_from_above
from adafw.sklearn import MatrixCompletion
from adafw.steps.corrective import nuclear


def observed(m=60, n=40, rank=3, share=0.4, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n)) + rng.normal(size=(m, 1)) + 2
    r, c = np.nonzero(rng.random((m, n)) < share)
    return X, np.column_stack([r, c]), X[r, c] + noise * rng.normal(size=len(r))


LOSSES = {
    "squared": (lambda z, v: (z - v) ** 2, lambda z, v: 2 * (z - v)),
    "huber": (
        lambda z, v: np.where(abs(z - v) <= 0.5, (z - v) ** 2, abs(z - v) - 0.25),
        lambda z, v: 2 * np.clip(z - v, -0.5, 0.5),
    ),
    "logistic": (lambda z, v: np.logaddexp(0, -v * z), lambda z, v: -v / (1 + np.exp(v * z))),
}


@pytest.mark.parametrize("offsets", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_certificate(loss, offsets):
    _, pairs, v = observed()
    v = np.where(v > 2, 1.0, -1.0) if loss == "logistic" else v
    model = MatrixCompletion(60.0, loss=loss, delta=0.5, offsets=offsets, tol=1e-4).fit(pairs, v)
    assert model.status_ == "converged"
    r, c = pairs.T
    X = model.left_ @ model.right_
    assert np.linalg.norm(X, "nuc") <= 60 * (1 + 1e-9)
    z = X[r, c] + model.mean_ + model.row_offsets_[r] + model.col_offsets_[c]
    np.testing.assert_allclose(model.decision_function(pairs), z, rtol=1e-10)
    value, slope = LOSSES[loss]
    assert np.isclose(model.value_, value(z, v).mean(), rtol=1e-10)
    G = np.zeros(X.shape)
    np.add.at(G, (r, c), slope(z, v) / len(v))
    gap = np.vdot(G, X) + 60 * np.linalg.norm(G, 2)
    assert gap <= model.gap_ * (1 + 1e-9) + 1e-12
    assert model.gap_ <= 1e-4 * model.value_
    assert model.lower_bound_ == model.value_ - model.gap_
    if not offsets:
        assert (model.mean_, model.row_offsets_.any(), model.col_offsets_.any()) == (
            0,
            False,
            False,
        )


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("norm", ["frequency", "adaptive"])
def test_certificate_of_a_weighted_norm(norm, loss):
    _, pairs, v = observed()
    v = np.where(v > 2, 1.0, -1.0) if loss == "logistic" else v
    radius = 60.0
    model = MatrixCompletion(radius, norm=norm, loss=loss, tol=1e-4).fit(pairs, v)
    assert (model.status_, model.norm_) == ("converged", norm)
    X, A, B = model.left_ @ model.right_, model.row_map_.toarray(), model.col_map_.toarray()
    if norm == "frequency":
        seen = np.bincount(pairs[:, 0], minlength=60) / len(v)
        np.testing.assert_allclose(A, np.diag((30 * seen + 0.5) ** -0.5), rtol=1e-12)
    inside = np.linalg.solve(A, np.linalg.solve(B, X.T).T)
    assert np.linalg.norm(inside, "nuc") <= radius * (1 + 1e-9)
    z = model.decision_function(pairs)
    value, slope = LOSSES[loss]
    assert np.isclose(model.value_, value(z, v).mean(), rtol=1e-10)
    G = np.zeros(X.shape)
    G[tuple(pairs.T)] = slope(z, v) / len(v)
    gap = np.vdot(G, X) + radius * np.linalg.norm(A.T @ G @ B, 2)
    assert -1e-12 <= gap <= model.gap_ * (1 + 1e-9) + 1e-12
    assert model.gap_ <= 1e-4 * model.value_


def test_what_is_large_is_shrunk_less_by_adapted_weights():
    X, pairs, v = observed(m=90, n=70, share=0.3, noise=0.5, seed=4)
    error = {
        norm: np.sqrt(np.mean((MatrixCompletion(norm=norm).fit(pairs, v).to_array() - X) ** 2))
        for norm in ("nuclear", "adaptive")
    }
    assert error["adaptive"] < 0.8 * error["nuclear"]


def test_a_radius_that_was_chosen_gives_the_same_model_again():
    _, pairs, v = observed()
    chosen = MatrixCompletion(cv=2, norm="adaptive").fit(pairs, v)
    assert chosen.norm_ == "adaptive"
    again = MatrixCompletion(chosen.radius_, norm="adaptive").fit(pairs, v)
    np.testing.assert_array_equal(chosen.predict(pairs), again.predict(pairs))
    assert MatrixCompletion(cv=2).fit(pairs, v).row_map_ is None


def test_it_finds_what_was_hidden():
    X, pairs, v = observed(share=0.5)
    model = MatrixCompletion(cv=2).fit(pairs, v)
    assert np.sqrt(np.mean((model.to_array() - X) ** 2)) < 0.25 * X.std()
    assert model.radius_ in model.radii_
    assert model.scores_[np.argmin(model.scores_)] == model.scores_.min()
    assert model.score(pairs, v) > 0.95


@pytest.mark.parametrize("norm", ["nuclear", "frequency", "adaptive"])
def test_a_search_is_that_of_held_out_tenths(norm):
    """Two of ten folds, by hand: offsets and matrix from the others; it ends one past the best."""
    _, pairs, v = observed(m=40, n=30, noise=0.5)
    model = MatrixCompletion(cv=2, random_state=3, norm=norm).fit(pairs, v)
    best = int(np.argmin(model.scores_))
    assert len(model.scores_) == best + 2
    assert model.radius_ == model.radii_[best]
    folds = list(KFold(10, shuffle=True, random_state=3).split(v))[:2]
    for k in (0, best):
        held_out = []
        for train, test in folds:
            one = MatrixCompletion(model.radii_[k], norm=norm, shape=(40, 30), tol=1e-2)
            one.fit(pairs[train], v[train])
            held_out.append(np.mean((one.predict(pairs[test]) - v[test]) ** 2))
        assert model.scores_[k] == pytest.approx(np.mean(held_out), rel=0.05)


def test_all_forms_of_data_are_one():
    _, pairs, v = observed()
    model = MatrixCompletion(40.0).fit(pairs, v)
    matrix = sparse.csr_array((v, pairs.T), shape=(60, 40))
    triples = np.column_stack([pairs, v])
    users = np.array([f"u{i:02d}" for i in range(60)])
    frame = pd.DataFrame({"user": users[pairs[:, 0]], "item": pairs[:, 1] + 100, "value": v})
    others = [
        (MatrixCompletion(40.0).fit(matrix), pairs),
        (MatrixCompletion(40.0).fit(triples), pairs),
        (MatrixCompletion(40.0).fit(frame), frame[["user", "item"]]),
        (MatrixCompletion(40.0).fit(frame[["user", "item"]], v), frame),
    ]
    shuffled = np.random.default_rng(1).permutation(len(v))
    others.append((MatrixCompletion(40.0).fit(pairs[shuffled], v[shuffled]), pairs))
    for other, places in others:
        np.testing.assert_allclose(other.predict(places), model.predict(pairs), atol=1e-3)
    unknown = others[2][0].predict(pd.DataFrame({"user": ["nobody"], "item": [100]}))
    by_hand = others[2][0]
    assert unknown[0] == by_hand.mean_ + by_hand.col_offsets_[0]
    for outside in (60, 1000):  # the matrix has rows up to 59 and columns up to 39
        far = model.predict(np.array([[outside, 0], [0, outside - 20], [outside, outside]]))
        known = [model.mean_ + model.col_offsets_[0], model.mean_ + model.row_offsets_[0]]
        np.testing.assert_array_equal(far, [*known, model.mean_])


def test_a_frame_is_what_has_columns():
    """Whichever package it comes from."""

    class Frame(dict):
        columns = property(lambda self: list(self))

    _, pairs, v = observed(m=12, n=9)
    users = np.array([f"u{i:02d}" for i in range(12)])[pairs[:, 0]]
    frame = Frame(user=users, item=pairs[:, 1] + 100, value=v)
    model = MatrixCompletion(4.0).fit(frame)
    assert model.row_labels_.tolist() == sorted(set(users))
    same = MatrixCompletion(4.0).fit(pd.DataFrame(dict(frame)))
    np.testing.assert_array_equal(model.predict(frame), same.predict(frame))


def test_probabilities_of_two_values():
    _, pairs, v = observed(noise=0)
    y = np.where(v > np.median(v), 5, 3)
    model = MatrixCompletion(200.0, loss="logistic").fit(pairs, y)
    p = model.predict(pairs)
    assert ((p > 0) & (p < 1)).all()
    assert ((p > 0.5) == (y == 5)).mean() > 0.9


def test_the_norm_of_a_large_matrix_is_bounded_from_above(monkeypatch):
    from adafw.fitting import completion

    rng = np.random.default_rng(2)
    for k in range(5):
        A = sparse.random_array((300, 200 + k), density=0.05, rng=rng).tocsr()
        exact = np.linalg.norm(A.toarray(), 2)
        assert exact <= norm_from_above(A, 0.99 * exact, 1e-6) <= exact * (1 + 1e-9)
        with monkeypatch.context() as patch:
            patch.setattr(completion, "DENSE", 10)
            for slack in (1e-2, 1e-3):
                bound = norm_from_above(A, 0.99 * exact, slack * exact)
                assert exact <= bound <= exact * (1 + 3 * slack)


def test_what_is_refused():
    _, pairs, v = observed()
    for settings, message in (
        ({"radius": 0}, "radius must be a number that is finite and > 0, got 0"),
        ({"radius": "best"}, "radius must be a number > 0 or 'cv', got 'best'"),
        ({"norm": "max"}, "norm must be one of nuclear, frequency, adaptive, got 'max'"),
        ({"cv": 10**6}, "cv must be at most the number of entries"),
        ({"loss": "poisson"}, "loss must be one of squared, huber, logistic, got 'poisson'"),
        ({"radius": 1.0, "loss": "logistic"}, "needs values of two kinds"),
        ({"radius": 1.0, "shape": (2, 2)}, "shape must be a pair of at least"),
    ):
        with pytest.raises(ValueError, match=message):
            MatrixCompletion(**settings).fit(pairs, v)
    for X, y, message in (
        (pairs, np.where(v > 3, np.nan, v), "values must be finite"),
        (pairs - 1, v, "must be >= 0, got -1"),
        (pairs + 0.5, v, "whole numbers"),
        (pairs[:, :1], v, "must have the columns row and column"),
        (pairs, v[:3], "values must be numbers, one a pair"),
        (pairs[:0], v[:0], "at least one observed entry"),
        (sparse.csr_array((3, 3)), np.ones(3), "y must be None where X is a sparse matrix"),
    ):
        with pytest.raises(ValueError, match=message):
            MatrixCompletion(10.0).fit(X, y)
    big = MatrixCompletion(1.0, shape=(4000, 4000)).fit(pairs, v)
    assert big.left_.shape == (4000, big.rank_)
    with pytest.raises(ValueError, match="at most 10000000 entries to be written out"):
        big.to_array()


def test_single_entries_far_off_hold_up_nothing(monkeypatch):
    """Their singular pairs are as steep as others, and bend far more: they join with less."""
    monkeypatch.setattr(nuclear, "LARGE", 0)
    rng = np.random.default_rng(2)
    L, R = rng.normal(size=(2, 300, 3))
    pairs = rng.integers(0, 300, (9000, 2))
    y = np.einsum("ij,ij->i", L[pairs[:, 0]], R[pairs[:, 1]]) + rng.normal(size=9000)
    y[:4] += 60 * np.array([1, -1, 1, -1])
    fit = MatrixCompletion(600.0, shape=(300, 300)).fit(pairs, y)
    assert fit.status_ == "converged"
    assert fit.n_iter_ <= 2


def test_what_else_is_refused():
    _, pairs, v = observed()
    for settings, message in (
        ({"offsets": "yes"}, "offsets must be True or False, got 'yes'"),
        ({"max_seconds": 0}, "max_seconds must be a number that is finite and > 0, got 0"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1, got 0"),
        ({"cv": 1}, "cv must be an integer >= 2, got 1"),
        ({"tol": -1}, "tol must be"),
        ({"loss": "huber", "delta": 0}, "delta must be"),
        ({"radius": 5.0, "shape": 60}, "shape must be a pair of at least"),
        ({"radius": 5.0, "shape": (60, 39)}, r"shape must be a pair of at least \(60, 40\)"),
    ):
        with pytest.raises(ValueError, match=message):
            MatrixCompletion(**settings).fit(pairs, v)
    model = MatrixCompletion(10.0).fit(pairs, v)
    with pytest.raises(ValueError, match=r"must hold pairs \(row, column\), got 1 columns"):
        model.predict(pairs[:, :1])
    with pytest.raises(ValueError, match=r"one a line, got shape \(2,\)"):
        model.predict(pairs[0])


def test_labels_that_mean_nothing_are_refused():
    frame = pd.DataFrame({"user": ["a", "b", None], "item": [1, 2, 3], "value": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="labels of rows must not be missing; drop such lines"):
        MatrixCompletion(1.0).fit(frame)
    frame["user"] = pd.Series([None, "b", "a"], dtype=object)
    with pytest.raises(ValueError, match="labels of rows must not be missing"):
        MatrixCompletion(1.0).fit(frame)
    frame["user"] = [1.0, 2.0, np.nan]
    with pytest.raises(ValueError, match="labels of rows must not be missing"):
        MatrixCompletion(1.0).fit(frame)
    frame["user"], frame["item"] = ["a", "b", "c"], pd.to_datetime(["2020-01-01", None, None])
    with pytest.raises(ValueError, match="labels of columns must not be missing"):
        MatrixCompletion(1.0).fit(frame)
    frame["item"] = ["x", 1, 2]
    with pytest.raises(TypeError, match=r"labels of columns must be of one kind.* got a mixture"):
        MatrixCompletion(1.0).fit(frame)
    frame["item"] = ["x", "y", "z"]
    model = MatrixCompletion(1.0).fit(frame)
    with pytest.raises(TypeError, match="must hold labels as those that were fitted, such as 'a'"):
        model.predict(pd.DataFrame({"user": np.array([1, "a"], object), "item": ["x", "y"]}))


def test_a_completion_that_stops_early_says_so():
    _, pairs, v = observed()
    with pytest.warns(ConvergenceWarning, match=r"\(max_iter\): gap .* tol=1e-09 was asked for"):
        model = MatrixCompletion(40.0, tol=1e-9, max_iter=1).fit(pairs, v)
    assert (model.status_, model.n_iter_) == ("max_iter", 1)
    with pytest.raises(ValueError, match="no radius could be tried in the time; raise max_seconds"):
        MatrixCompletion(max_seconds=1e-9).fit(pairs, v)


def test_a_search_that_the_time_ends_takes_what_was_tried(monkeypatch):
    """Radii count where every fold has its score."""
    from adafw.sklearn import completion

    _, pairs, v = observed()
    whole = MatrixCompletion(cv=2).fit(pairs, v)
    tried, held_out = [], completion._held_out

    def counted(weighted, *rest):
        tried.append(1)
        return held_out(None if len(tried) > 3 else weighted, *rest)

    monkeypatch.setattr(completion, "_held_out", counted)
    model = MatrixCompletion(cv=2).fit(pairs, v)
    np.testing.assert_array_equal(model.radii_, whole.radii_[:1])
    np.testing.assert_array_equal(model.scores_, whole.scores_[:1])


def test_a_shape_may_be_larger_than_what_was_seen():
    _, pairs, v = observed()
    model = MatrixCompletion(10.0, shape=(70, 41)).fit(pairs, v)
    assert model.to_array().shape == (70, 41)
    same = MatrixCompletion(10.0).fit(pairs, v)
    np.testing.assert_allclose(model.to_array()[:60, :40], same.to_array(), atol=1e-2)
    assert not model.row_offsets_[60:].any()
    matrix = sparse.csr_array((v, pairs.T), shape=(80, 50))
    assert MatrixCompletion(10.0).fit(matrix).to_array().shape == (80, 50)
    bare = MatrixCompletion(10.0, offsets=False).fit(pairs, v)
    assert (bare.mean_, bare.row_offsets_.any(), bare.col_offsets_.any()) == (0, False, False)
    np.testing.assert_allclose(bare.to_array(), bare.left_ @ bare.right_)


@pytest.mark.parametrize("norm", ["nuclear", "frequency", "adaptive"])
def test_the_first_radius_of_a_search_can_gain_a_twentieth(norm):
    """By the gradient at 0, in the norm that is searched; radii then grow by half."""
    _, pairs, v = observed(m=30, n=20)
    pairs = pairs[(pairs[:, 0] < 20) | (np.arange(len(v)) % 3 == 0)]
    v = v[: len(pairs)]
    model = MatrixCompletion(cv=2, norm=norm, offsets=False).fit(pairs, v)
    m, n = model.shape_
    G = np.zeros((m, n))
    np.add.at(G, tuple(pairs.T), -2 * v / len(v))
    if norm != "nuclear":
        rows, cols = (
            1 / np.sqrt(0.5 * size * np.bincount(which, minlength=size) / len(v) + 0.5)
            for which, size in zip(pairs.T, (m, n), strict=True)
        )
        G = rows[:, None] * G * cols
    wanted = 0.05 * np.mean(v**2) / np.linalg.norm(G, 2)
    assert model.radii_[0] == pytest.approx(wanted, rel=1e-4)
    np.testing.assert_allclose(model.radii_[1:] / model.radii_[:-1], 1.5)


def test_few_entries_are_held_out_one_by_one():
    _, pairs, v = observed(m=4, n=3, share=0.9)
    model = MatrixCompletion(cv=4, offsets=False).fit(pairs[:7], v[:7])
    assert model.radius_ in model.radii_
    with pytest.raises(ValueError, match="cv must be at most the number of entries, 7, got 8"):
        MatrixCompletion(cv=8).fit(pairs[:7], v[:7])
