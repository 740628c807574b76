"""Samples of rows, and what weights change."""

import weakref

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.fitting import Design


@pytest.mark.parametrize("seed", range(4))
def test_a_sample_has_every_class_number(seed):
    y = np.zeros(2000, int)
    y[[7, 1500, 1999]] = 1, 2, 3
    part, labels = Design(np.arange(2000.0)[:, None]).sample(y, 20, seed)
    assert set(labels) == {0, 1, 2, 3}
    assert part.rows.shape[0] == len(labels) <= 24
    np.testing.assert_array_equal(labels, y[part.rows.dot(np.ones(1)).astype(int)])


def test_a_sample_has_the_weights_of_its_rows():
    y = np.where(np.arange(2000) % 2, 1.0, -1.0)
    weights = 1 + np.arange(2000.0)
    part, _ = Design(np.arange(2000.0)[:, None], weights).sample(y, 20, 0)
    np.testing.assert_array_equal(part.weights, 1 + part.rows.dot(np.ones(1)))
    small, _ = Design(np.arange(10.0)[:, None], weights[:10]).sample(y[:10], 20, 0)
    np.testing.assert_array_equal(small.weights, weights[:10])


def test_the_scale_is_that_of_the_weighted_rows():
    rng = np.random.default_rng(0)
    A, w = rng.normal(size=(50, 3)) * [1.0, 5.0, 0.0], rng.integers(0, 4, 50).astype(float)
    copies = np.repeat(A, w.astype(int), axis=0)
    scale = Design(A, w).scale
    np.testing.assert_allclose(scale[:2], copies[:, :2].var(axis=0), rtol=1e-12)
    assert scale[2] == scale[1]  # a feature that does not vary takes the largest variance


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_what_hardly_varies_is_told_in_any_unit(unit):
    """Variances of 1, 1e-8 and 1e-12 of the largest: the last may be rounding."""
    A = unit * np.outer([1.0, -1.0, 1.0, -1.0], [1.0, 1e-4, 1e-6])
    np.testing.assert_allclose(Design(A).scale / unit**2, [1.0, 1e-8, 1.0])
    np.testing.assert_array_equal(Design(np.ones((3, 2))).scale, np.ones(2))


@pytest.mark.parametrize("loss", [adafw.losses.Squared(), adafw.losses.Huber(0.3)], ids=repr)
def test_weights_are_copies_of_rows_with_an_intercept_too(loss):
    rng = np.random.default_rng(1)
    A, y, w = rng.normal(size=(40, 3)) + 1, rng.normal(size=40) + 5, rng.integers(0, 4, 40)
    weighted = Design(A, w.astype(float)).risk(y, loss, True)
    copied = Design(np.repeat(A, w, axis=0)).risk(np.repeat(y, w), loss, True)
    x = rng.normal(size=3)
    assert weighted.f.value(x) == pytest.approx(copied.f.value(x), rel=1e-12)
    assert weighted.intercept(x) == pytest.approx(copied.intercept(x), rel=1e-9)
    np.testing.assert_allclose(weighted.f.gradient(x), copied.f.gradient(x), atol=1e-9)


def test_numbers_whose_squares_overflow_are_refused():
    y = np.ones(2)
    Design(np.full((2, 1), 9e144)).risk(9e144 * y, losses.Squared(), True)
    with pytest.raises(ValueError, match=r"features must be at most 1e\+145 in size"):
        Design(np.full((2, 1), 1.1e145))
    with pytest.raises(
        ValueError, match=r"targets must be at most 1e\+145 in size.* got 1.1e\+145"
    ):
        Design(np.eye(2)).risk(np.array([1.0, -1.1e145]), losses.Squared(), True)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_value_at_any_intercept(weighted):
    """By hand, with and without an intercept that is minimised over, for one output and several."""
    rng = np.random.default_rng(0)
    A, x, y = rng.normal(size=(9, 3)), rng.normal(size=3), rng.normal(size=9)
    w = rng.random(9) if weighted else None
    design = Design(A, w)
    for loss, target in ((losses.Squared(), y), (losses.Logistic(), np.sign(y))):
        for b in (0.0, 1.7):
            risk = design.risk(target, loss, True)
            by_hand = np.average(loss.value(A @ x + b, target), weights=w)
            assert risk.value_at(x, b) == pytest.approx(by_hand)
            assert risk.f.value(x) <= by_hand + 1e-12
            best = np.average(loss.value(A @ x + risk.intercept(x), target), weights=w)
            assert risk.f.value(x) == pytest.approx(best)
    plain = design.risk(y, losses.Squared(), False)
    assert plain.intercept(x) == 0
    assert plain.value_at(x, 0.0) == pytest.approx(np.average((A @ x - y) ** 2, weights=w))
    assert plain.value_at(x, 0.5) == pytest.approx(np.average((A @ x + 0.5 - y) ** 2, weights=w))
    X, Y, b = rng.normal(size=(3, 2)), rng.normal(size=(9, 2)), np.array([0.3, -2.0])
    joint = design.risk(Y, losses.Outputs(losses.Squared()), True)
    by_hand = np.average(((A @ X + b - Y) ** 2).sum(axis=1), weights=w)
    assert joint.value_at(X, b) == pytest.approx(by_hand)


def test_a_sample_without_weight_counts_all_rows_alike():
    A, y = np.arange(20.0).reshape(10, 2), np.where(np.arange(10) < 5, 1.0, -1.0)
    weights = np.zeros(10)
    weights[7] = 1.0
    seen = set()
    for seed in range(40):
        part, _ = Design(A, weights).sample(y, 4, seed)
        seen.add(part.weights is None)
        assert part.weights is None or part.weights.sum() == 1
    assert seen == {True, False}


def test_a_sample_of_a_disk_is_a_tenth_of_memory_at_most(tmp_path, monkeypatch):
    from adafw.datasets import load_parts, save_parts

    save_parts(tmp_path / "parts", np.ones((100, 5)), np.arange(100.0))
    B, y = load_parts(tmp_path / "parts", stream=True)
    design = Design(B)
    for memory, rows in ((10**9, 100), (60 * 100, 10), (60 * 205, 20), (1, 2)):
        monkeypatch.setattr("adafw.fitting.design.machine_bytes", lambda memory=memory: memory)
        part, some = design.sample(np.array(y), 1000, 0)
        size = min(100, max(2, int(0.1 * memory * 100 / (12 * 500 + 1))))
        assert size in (rows, rows - 1)
        assert size - 2 <= len(some) <= max(2, size)
        assert part.rows.shape[0] == len(some)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_data_go_when_nothing_holds_them(dtype):
    """At once, not when the collector comes: a loop of fits would pile them up."""
    design = Design(np.ones((3, 2), dtype))
    assert design.doubled.rows.dtype == np.float64
    seen = weakref.ref(design), weakref.ref(design.doubled)
    del design
    assert [one() for one in seen] == [None, None]


def test_a_class_that_does_not_occur_has_its_column():
    """As in a batch of a stream."""
    A, y = np.eye(4), np.array([0, 1, 1, 0])
    f = Design(A).risk(y, losses.Softmax(), False, outputs=3).f
    assert f.shape == (4, 3)
    assert Design(A).risk(y, losses.Softmax(), False).f.shape == (4, 2)
