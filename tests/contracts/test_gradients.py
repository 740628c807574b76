"""What every gradient estimator promises. A new one is one line in the list."""

import numpy as np
import pytest

import adafw
from adafw import gradients

ESTIMATORS = [
    gradients.Full(),
    gradients.Minibatch(),
    gradients.Minibatch(7),
    gradients.SVRF(),
    gradients.SVRF(batch_size=3, k0=0),
    gradients.SPIDER(),
    gradients.ORGFW(),
    gradients.ORGFW(5, forgetting=0.3),
    gradients.CSFW(),
    gradients.CSFW(100),
]
IDS = [repr(e) for e in ESTIMATORS]


def test_every_estimator_is_held_to_it(nothing_left_out):
    where = "ESTIMATORS of tests/contracts/test_gradients.py"
    nothing_left_out(gradients.GradientEstimator, "gradients", ESTIMATORS, where)


class Watched:
    """An index source that notes every call."""

    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.calls = []

    def integers(self, low, high, size):
        self.calls.append((low, high, size))
        return self.rng.integers(low, high, size=size)


def iterate(gradient, f, rng, T=40):
    """Estimates along a path that does not depend on them."""
    path = np.random.default_rng(1).normal(size=(T, 12)).cumsum(axis=0) / 20
    state = gradient.init(f, path[0])
    for t, x in enumerate(path):
        g, state = gradient.update(f, x, t, state, rng)
        yield t, x, g, state


@pytest.mark.parametrize("gradient", ESTIMATORS, ids=IDS)
def test_at_most_one_draw_of_b_t_indices_an_iteration(gradient, logistic):
    rng = Watched()
    for t, *_ in iterate(gradient, logistic, rng):
        assert len(rng.calls) <= 1
        if rng.calls:
            low, high, size = rng.calls.pop()
            assert (low, high) == (0, 60)
            assert gradient.evaluations(t, 60) in (size, 2 * size)
        else:
            assert gradient.evaluations(t, 60) == 60


@pytest.mark.parametrize("gradient", ESTIMATORS, ids=IDS)
def test_inputs_and_former_estimates_are_left_alone(gradient, logistic):
    seen = []
    for _, x, g, _ in iterate(gradient, logistic, np.random.default_rng(0)):
        seen.append((x, x.copy(), g, g.copy()))
    for x, x_copy, g, g_copy in seen:
        assert np.array_equal(x, x_copy)
        assert np.array_equal(g, g_copy)


@pytest.mark.parametrize("gradient", ESTIMATORS, ids=IDS)
def test_the_state_is_arrays_and_numbers(gradient, logistic):
    for *_, state in iterate(gradient, logistic, np.random.default_rng(0)):
        for value in state.values():
            assert isinstance(value, np.ndarray | int | float)


@pytest.mark.parametrize("gradient", ESTIMATORS, ids=IDS)
def test_dtype_and_shape_are_those_of_x(gradient, regression):
    A, y = regression
    f = adafw.LinearModel(A.astype(np.float32), y, adafw.losses.Squared())
    x = np.zeros(12, np.float32)
    state, rng = gradient.init(f, x), np.random.default_rng(0)
    for t in range(20):
        g, state = gradient.update(f, x, t, state, rng)
        assert (g.dtype, g.shape) == (np.float32, (12,))


@pytest.mark.parametrize(
    "gradient", [gradients.Minibatch(2), gradients.SVRF(2), gradients.SPIDER(2)], ids=repr
)
def test_the_mean_over_many_seeds_is_the_gradient(gradient, logistic):
    """Unbiased given the path; ORGFW and CSFW are not."""
    mean, exact = np.zeros((6, 12)), np.zeros((6, 12))
    runs = 3000
    for seed in range(runs):
        for t, x, g, _ in iterate(gradient, logistic, np.random.default_rng(seed), T=6):
            mean[t] += g / runs
            exact[t] = logistic.gradient(x)
    assert np.abs(mean - exact).max() <= 0.02
