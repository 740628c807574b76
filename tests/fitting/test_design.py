"""Samples of rows, and what weights change."""

import numpy as np
import pytest

import adafw
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
